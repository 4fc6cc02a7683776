"""Error hierarchy. Each message says what failed, where, and what to do; the command line maps it to an exit code.

DreamGymError            exit 1: the run failed
|-- InputError           exit 2: a recipe, a file or a command is wrong
|   |-- RecipeError
|   `-- DataError
|-- IntegrityError       exit 1: bytes do not match their digest
|-- StorageError         exit 1: a store cannot be read or written
|   `-- RemovedError       removed to save space; computed again
|-- EngineError          exit 1: an inference engine or endpoint cannot start, or refuses
|   `-- EngineUnavailable  dead, hanging or answering nonsense; restarted, within limits
|-- EnvironmentUnavailable exit 1: a real environment fails repeatedly
|-- TrainingError        exit 1: a training diverged, or was cut off on several ranks
|-- ConflictError        exit 1: another process was faster
`-- GateRefused          exit 3: evaluated, but not good enough
"""


class DreamGymError(Exception):
    """Base class of all errors; the message says what failed, where and what to do."""

    exit_code = 1


class InputError(DreamGymError):
    """Invalid input: a recipe, a file, a setting or a command."""

    exit_code = 2


class RecipeError(InputError):
    """Invalid recipe: a typo, a wrong type or an impossible combination."""


class DataError(InputError):
    """Data that cannot be used at all; single bad rows go to quarantine instead."""


class IntegrityError(DreamGymError):
    """Stored bytes do not match their recorded digest."""


class StorageError(DreamGymError):
    """A store cannot be read or written: missing, read-only or full."""


class RemovedError(StorageError):
    """An object was removed to save space; whatever made it can make it again."""


class EngineError(DreamGymError):
    """An inference engine or endpoint cannot start, or refuses a request."""


class EngineUnavailable(EngineError):
    """An inference engine died, hangs or answers nonsense; after a restart it may answer the same request."""


class EnvironmentUnavailable(DreamGymError):
    """A real environment fails repeatedly, so a policy that it did not let play cannot be judged."""


class TrainingError(DreamGymError):
    """A training diverged, or was cut off on several ranks."""


class ConflictError(DreamGymError):
    """State that a decision relied on changed in the meantime; check again and retry."""


class GateRefused(DreamGymError):
    """The candidate was evaluated and the gate said no."""

    exit_code = 3
