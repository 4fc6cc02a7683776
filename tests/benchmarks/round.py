"""Rounds per second of a whole round: policy, experience model, retrieval, reward, update.

32 episodes of five turns, eight of each task. Each turn the policy is shown a task of 30 tokens and a state of 120 and
acts with 8; the experience model is shown these, the action and one retrieved demonstration, and writes 40 tokens. With
random weights the text has no meaning: states follow from actions by chance, and every other episode of a task
succeeds.
"""

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from models.network.precision import matmul_dtype
from models.retrieval.encoders import HashingEncoder
from models.retrieval.replay_index import join
from models.text.prompts import TransitionQuery
from schemas.records import AgentTask, Step
from tests.benchmarks.network import endless_format, network, rates, text
from tests.benchmarks.single_turn import generate

NUM_TASKS, GROUP, NUM_TURNS = 4, 8, 5
TASK, STATE, ACTION, WRITTEN = 30, 120, 8, 40
NUM_STORED = 20_000
_REPEATS, _KL = 3, 0.01
_SURE, _UNSURE = 100, 1
"""Factors of the policy's logits: with the first 40 of 160 situations differ, with the second all of them.

In a round of the default recipe 200 to 240 of 1,500 do.
"""


def tasks() -> list[AgentTask]:
    """Return all tasks that are dreamt."""
    instructions = [text(TASK, f"task {number}") for number in range(NUM_TASKS)]
    return [
        AgentTask(one, one, "train", "family", initial_state=text(STATE, one))
        for one in instructions
        for _ in range(GROUP)
    ]


def stored() -> tuple[np.ndarray, list[str]]:
    """Return the vectors and demonstrations of the replay store."""
    size = 3 * HashingEncoder().num_dimensions
    vectors = np.random.default_rng(0).standard_normal((NUM_STORED, size), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors, [f" {text(5, i)} =>\n{text(30, i)}" for i in range(NUM_STORED)]


def ours() -> list[float]:
    """Measure our rollout, experience model, index and trainer; many situations are alike."""
    return _ours(_SURE)


def ours_apart() -> list[float]:
    """Measure them where no two situations are alike."""
    return _ours(_UNSURE)


def _ours(sureness: float) -> list[float]:
    from models.experience.experience_model import ExperienceModel
    from models.experience.plain_experience import PlainExperience
    from models.experience.predictors import LocalPredictor
    from models.generation.torch_engine import TorchEngine, engine_weights
    from models.retrieval.replay_index import IndexedTransition, ReplayIndex
    from models.rollout.rollouts import Rollout
    from schemas.recipes.networks import ExperienceRecipe
    from tests.rollouts import plain_policy, rollout_options
    from tests.training import rl, scoring, trainer_of

    policy, reference, model = network(sureness), network(sureness), network()
    format, options = endless_format(), rl(loss={"kl_coefficient": _KL}, updates_per_round=1, learning_rate=4e-4)
    index = ReplayIndex(HashingEncoder())
    vectors, demonstrations = stored()
    index.add(vectors, [IndexedTransition("", False, one) for one in demonstrations])
    predictor = LocalPredictor(TorchEngine(engine_weights(model), 0), PlainExperience(format), WRITTEN)
    dreaming = ExperienceModel(predictor, index, ExperienceRecipe(num_retries=0), 1)
    trainer = trainer_of(policy, reference, options, dtype=matmul_dtype("cpu"))
    played = rollout_options(max_steps=NUM_TURNS)
    acting = plain_policy(format, remember_episode=False, max_action_tokens=ACTION)

    def work() -> None:
        dream = _Dream(dreaming)
        episodes = Rollout(TorchEngine(engine_weights(policy), 0), acting, dream, "dream", played).play(tasks())
        named = [replace(one, group_id=str(number // GROUP)) for number, one in enumerate(episodes)]
        groups, _ = scoring().informative_groups(named)
        trainer.train(groups)

    return rates(work, 1, _REPEATS)


class _Dream:
    """Environment that queries an experience model and ignores its predictions."""

    def __init__(self, model) -> None:
        self._model = model
        self._tasks: dict[int, AgentTask] = {}
        self._states: dict[int, str] = {}
        self._num_turns: dict[int, int] = {}

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """See Environment."""
        self._tasks |= tasks
        self._states |= {slot: task.initial_state for slot, task in tasks.items()}
        self._num_turns |= dict.fromkeys(tasks, 0)
        return {slot: self._states[slot] for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """See Environment."""
        self._model.predict(
            [TransitionQuery(self._tasks[slot], self._states[slot], action) for slot, action in actions.items()]
        )
        return {slot: self._followed(slot, action) for slot, action in actions.items()}

    def _followed(self, slot: int, action: str) -> Step:
        self._states[slot] = text(STATE, action)
        self._num_turns[slot] += 1
        done = self._num_turns[slot] == NUM_TURNS
        success = done and slot % 2 == 0
        return Step(self._states[slot], float(success), done=done, success=success)


def glued() -> list[float]:
    """Measure TRL, transformers and LanceDB with minimal glue, in float32 or bfloat16, whichever is faster."""
    return max((_glued(dtype, _SURE) for dtype in (torch.float32, torch.bfloat16)), key=statistics.median)


def glued_apart() -> list[float]:
    """Measure them where no two situations are alike."""
    return max((_glued(dtype, _UNSURE) for dtype in (torch.float32, torch.bfloat16)), key=statistics.median)


def _glued(dtype: torch.dtype, sureness: float) -> list[float]:
    from tests.benchmarks.update import padded_batch, trl_step, trl_trainer

    played, format, model = tasks(), endless_format(), network().to(dtype)
    trainer, remember = trl_trainer(_from_disk(sureness), NUM_TURNS * len(played), beta=_KL), _memory()

    def work() -> None:
        policy, prompts, completions = deepcopy(trainer.model).to(dtype).eval(), [], []
        states, past = [task.initial_state for task in played], [[] for _ in played]
        for _ in range(NUM_TURNS):
            moments = [format.turn_prompt(*one) for one in zip(played, past, states, strict=True)]
            acted = written(policy, moments, ACTION, greedy=False)
            actions = [format.decode(ids) for ids in acted]
            found = remember(played, states, actions)
            asked = [
                format.situation(TransitionQuery(task, state, action, (), (demonstration,)))
                for task, state, action, demonstration in zip(played, states, actions, found, strict=True)
            ]
            written(model, asked, WRITTEN, greedy=True)
            states = [text(STATE, action) for action in actions]
            past = [[*before, action][-2:] for before, action in zip(past, actions, strict=True)]
            prompts += moments
            completions += acted
        batch = padded_batch(prompts, completions)
        trl_step(trainer, batch | {"ref_per_token_logps": _reference_logprobs(trainer, batch)})

    return rates(work, 1, _REPEATS)


def _memory() -> Callable[[list[AgentTask], list[str], list[str]], list[str]]:
    """Return a function that finds the nearest demonstrations with LanceDB, for all queries of a turn at once."""
    import lancedb
    import pyarrow as pa

    vectors, demonstrations = stored()
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = lancedb.connect(tempfile.mkdtemp()).create_table("t", pa.table({"vector": column, "text": demonstrations}))
    encoder = HashingEncoder()

    def remember(played: list[AgentTask], states: list[str], actions: list[str]) -> list[str]:
        queries = join(encoder, [task.instruction for task in played], states, actions)
        found = table.search(list(queries)).metric("cosine").limit(1).select(["text"]).to_list()
        by_query = {row["query_index"]: row["text"] for row in found}
        return [by_query[number] for number in range(len(queries))]

    return remember


def written(policy: Any, prompts: Sequence[list[int]], num_tokens: int, *, greedy: bool) -> list[list[int]]:
    """Return the tokens that transformers generates after prompts, which are padded on the left."""
    longest = max(map(len, prompts))
    ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return generate(policy, ids, mask, num_tokens, greedy=greedy).tolist()


def _from_disk(sureness: float) -> Any:
    """Return the network loaded from a folder, where TRL looks for the reference of the KL term."""
    from transformers import AutoModelForCausalLM

    folder = tempfile.mkdtemp()
    network(sureness).save_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(folder)


def _reference_logprobs(trainer: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    ids, mask = (torch.cat([batch[f"prompt_{what}"], batch[f"completion_{what}"]], dim=1) for what in ("ids", "mask"))
    with torch.no_grad(), trainer.accelerator.autocast():
        return trainer._get_per_token_logps_and_entropies(trainer.ref_model, ids, mask, ACTION)[0]
