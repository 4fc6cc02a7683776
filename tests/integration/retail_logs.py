"""Logs of a customer service agent in a small shop, in the form of tau-bench: tasks with trials, tools, a reward."""

import json
import random
from pathlib import Path
from typing import Any

_NAMES = ("Ava Cole", "Ben Ito", "Cara Diaz", "Dan Moss", "Eve Park", "Finn Roy", "Gia Lund", "Hal Voss")
_ITEMS = ("kettle", "lamp", "backpack", "keyboard", "mug", "headphones", "blanket", "camera")
_POLICY = "You are an agent of a shop. Look up the order first. Only pending orders can be cancelled, only delivered ones returned."
_TOOLS = {"cancel": "cancel_order", "return": "return_order"}
_FITTING = {"cancel": "pending", "return": "delivered"}


class Shop:
    """One customer with one order and one request, drawn by the number of the task."""

    def __init__(self, number: int) -> None:
        rng = random.Random(number)
        self.name, self.item = rng.choice(_NAMES), rng.choice(_ITEMS)
        self.order, self.request = f"W{number:04}", rng.choice(("cancel", "return"))
        self.status = rng.choice(("pending", "delivered"))
        self.changed = ""

    @property
    def instruction(self) -> str:
        return f"I am {self.name}. Please {self.request} order {self.order}, the {self.item}."

    @property
    def allows(self) -> bool:
        return self.status == _FITTING[self.request]

    def call(self, tool: str) -> str:
        if tool == "get_order":
            return json.dumps({"order": self.order, "item": self.item, "status": self.changed or self.status})
        if self.changed or self.status != _FITTING[tool.removesuffix("_order")]:
            return "Error: the order cannot be changed like that"
        self.changed = {"cancel_order": "cancelled", "return_order": "return requested"}[tool]
        return json.dumps({"order": self.order, "status": self.changed})

    @property
    def reward(self) -> float:
        wanted = {"cancel": "cancelled", "return": "return requested"}[self.request] if self.allows else ""
        return float(self.changed == wanted)


def _calls(shop: Shop, rng: random.Random, noise: float) -> list[str]:
    right = [_TOOLS[shop.request]] if shop.allows else []
    wrong = [] if right and rng.random() < 0.5 else [rng.choice(tuple(_TOOLS.values()))]
    return ["get_order", *(wrong if rng.random() < noise else right)]


def episode(number: int, trial: int, noise: float = 0.4) -> dict[str, Any]:
    """Return one trial of a task, as tau-bench stores it."""
    shop, rng = Shop(number), random.Random(f"{number}/{trial}")
    said: list[dict[str, Any]] = [
        {"role": "system", "content": _POLICY},
        {"role": "user", "content": shop.instruction},
    ]
    for place, tool in enumerate(_calls(shop, rng, noise)):
        call = {"id": f"call_{place}", "type": "function"}
        call["function"] = {"name": tool, "arguments": json.dumps({"order_id": shop.order})}
        said.append({"role": "assistant", "content": None, "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": call["id"], "name": tool, "content": shop.call(tool)})
    ends = "It is done." if shop.changed else "This order cannot be changed like that."
    said += [{"role": "assistant", "content": ends}, {"role": "user", "content": "###STOP###"}]
    return {"task_id": number, "trial": trial, "reward": shop.reward, "info": {}, "traj": said}


def write_logs(file: Path, num_tasks: int, num_trials: int = 4) -> None:
    """Write all trials of all tasks as one JSON array."""
    file.write_text(json.dumps([episode(task, trial) for task in range(num_tasks) for trial in range(num_trials)]))
