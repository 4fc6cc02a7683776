"""Play and train with TRL's GRPOTrainer in the latest dream of this home, through environment_factory."""

import json
import tempfile
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer
from trl.trainer import grpo_trainer

from flows.services.serve_experience_model import gymnasium_dream
from models.network.language_model import load_model
from tasks.backbones.find_backbone import SHIPPED

STATES: list[str] = []
_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }}"
    "{% for c in m['tool_calls'] or [] %}{{ c['function']['name'] }} {{ c['function']['arguments'] }}{% endfor %}"
    "[end]{% endgeneration %}{% else %}{{ m['content'] }}[state]{% endif %}{% endfor %}"
)
"""Chat template with a marker at the end of each message, so that no token reaches into the next."""


class InTheDream:
    """Dream of one's own as TRL expects it: a tool that the policy calls."""

    def __init__(self) -> None:
        self._dream = gymnasium_dream()

    def reset(self, **_: Any) -> str:
        """Return a task and its first state."""
        return self._dream.reset(seed=0)[0]

    def act(self, action: str) -> str:
        """Do something.

        Args:
            action: What to do.
        """
        state, *_ = self._dream.step(action)
        STATES.append(state)
        return state


def call_of(words: Any, ids: list[int], **_: Any) -> dict[str, Any]:
    """Return what the policy writes as a call of the tool."""
    call = {"type": "function", "function": {"name": "act", "arguments": {"action": words.decode(ids)}}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def reward(completions: list[Any], **_: Any) -> list[float]:
    """Return alternating rewards, so that there is something to learn: a dream that learnt so little is never won."""
    return [float(number % 2) for number, _ in enumerate(completions)]


model = load_model(SHIPPED / "textworld-tiny")
words = model.tokenizer
words.chat_template, words.response_template = _TEMPLATE, {}
grpo_trainer.parse_response = call_of
before = [one.detach().clone() for one in model.network.parameters()]
trainer = GRPOTrainer(
    model=model.network,
    reward_funcs=reward,
    args=GRPOConfig(
        tempfile.mkdtemp(),
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=16,
        max_tool_calling_iterations=1,
        max_steps=2,
        learning_rate=1e-3,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
    ),
    train_dataset=Dataset.from_list([{"prompt": [{"role": "user", "content": "cook"}]}] * 8),
    processing_class=words,
    environment_factory=InTheDream,
)
trainer.train()
moved = any(not torch.equal(a, b) for a, b in zip(before, model.network.parameters(), strict=True))
seen = any("- you: kitchen" in state for state in STATES)
print(json.dumps({"steps": trainer.state.global_step, "weights_moved": moved, "states_seen": seen}))
