"""The tree of errors. Each says what failed, where, and what to do; the command line maps it to an exit code.

DreamGymError            exit 1: the run failed
|-- InputError           exit 2: a recipe, a file or a command is wrong
|   |-- RecipeError
|   `-- DataError
|-- IntegrityError       exit 1: bytes are not what their digest says
|-- StorageError         exit 1: a store cannot be read or written
|-- EngineError          exit 1: an inference engine or endpoint cannot start, or refuses
|   `-- EngineUnavailable  died, hangs or answers nonsense; it is started anew, within limits
|-- EnvironmentUnavailable exit 1: a real environment fails, and fails again
|-- TrainingError        exit 1: a training on several ranks was cut off
|-- ConflictError        exit 1: somebody else was faster
`-- GateRefused          exit 3: evaluated, but not good enough
"""


class DreamGymError(Exception):
    """Something failed; the message says what, where and what to do."""

    exit_code = 1


class InputError(DreamGymError):
    """What was handed in is wrong: a recipe, a file, a setting or a command."""

    exit_code = 2


class RecipeError(InputError):
    """A recipe is not valid: a typo, a wrong type or an impossible combination."""


class DataError(InputError):
    """Data handed in cannot be used at all; single bad rows go to quarantine instead."""


class IntegrityError(DreamGymError):
    """Stored bytes do not match their recorded digest."""


class StorageError(DreamGymError):
    """A store cannot be read or written: missing, read-only or full."""


class EngineError(DreamGymError):
    """An inference engine, or an endpoint, cannot start, or refuses what it is asked."""


class EngineUnavailable(EngineError):
    """An inference engine died, hangs, or answers nonsense: started anew, it may answer the same question."""


class EnvironmentUnavailable(DreamGymError):
    """A real environment fails, and fails again: nothing is said about a policy that it did not let play."""


class TrainingError(DreamGymError):
    """A training on several ranks was cut off."""


class ConflictError(DreamGymError):
    """What this rested on changed meanwhile; looked at anew, it may be right or not."""


class GateRefused(DreamGymError):
    """The candidate was evaluated and the gate said no."""

    exit_code = 3
