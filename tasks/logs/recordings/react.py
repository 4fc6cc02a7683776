"""Text of ReAct agents: `> action` and what it showed (ALFWorld), or lines of thoughts, actions and observations (HotpotQA)."""

import re
from collections.abc import Iterator
from typing import Any

from tasks.logs.log_kind import WHOLE, Part, Recorded
from tasks.logs.shapes.in_words import Message

TITLE, SPANS_FILES = "Text of ReAct agents", False

_PROMPT = re.compile(r"^> ?(?=\S)", re.MULTILINE)
_LABEL = re.compile(r"^(Question|Thought|Action Input|Action|Observation|Final Answer)(?: \d+)?: ?", re.MULTILINE)
_QUESTION = re.compile(r"^Question:", re.MULTILINE)
_STATUS = re.compile(r"^(?:STATUS: *|\d+ r )(OK|FAIL|[01])\b.*$", re.MULTILINE)
"""Last line of an episode: of a log, or as a notebook prints it."""
_ACT, _OBS = (re.compile(rf"^{label} \d+: ?", re.MULTILINE) for label in ("Act", "Obs"))
"""Labels that notebooks print in place of `> `."""
_EXAMPLES_END = "Here is the task:"
"""Words before which only examples are shown."""
_ANSWER = re.compile(r"\bAnswer is (CORRECT|INCORRECT)\b")
_SCORE = re.compile(r"Your score \(min 0\.0, max 1\.0\): ([\d.]+)")
"""Last words of WebShop."""
_THINK = "think["
"""Beginning of an action that only thinks, which is answered OK."""
_TEXTS = ("text", "trajectory", "scratchpad")
_TASK = re.compile(r"[Yy]our task is to: *(.+?)\.?$", re.MULTILINE)


def recognises(record: dict[str, Any]) -> bool:
    """Return whether a record is a text with marked actions, or has one in a field."""
    text = _text(record)
    is_alone = record.keys() == {"text"} and bool(_PROMPT.search(text) or _ACT.search(text))
    return is_alone or _labels(text) > 1


def parts_of(record: dict[str, Any]) -> list[Part]:
    """Return the text, which may hold several episodes."""
    return [(WHOLE, record)]


def recorded(parts: list[dict[str, Any]]) -> Iterator[Recorded]:
    """Yield the episodes of a text: each ends with its status, or where the next question begins."""
    text, fields = _text(parts[0]), {name: value for name, value in parts[0].items() if name not in _TEXTS}
    for one in _labelled(text, fields) if _labels(text) > 1 else _prompted(_OBS.sub("", _ACT.sub("> ", text))):
        yield Recorded(
            one.messages, {**fields, **{name: said for name, said in one.fields.items() if said is not None}}
        )


def _text(record: dict[str, Any]) -> str:
    return next((record[name] for name in _TEXTS if isinstance(record.get(name), str)), "")


def _labels(text: str) -> int:
    return len({one[1] for one in _LABEL.finditer(text)} & {"Thought", "Action", "Observation"})


def _prompted(text: str) -> Iterator[Recorded]:
    ends = [*_STATUS.finditer(text)]
    begins = [0, *(one.end() for one in ends)]
    for number, begin in enumerate(begins):
        end = ends[number] if number < len(ends) else None
        episode = text[begin : end.start() if end else len(text)].rpartition(_EXAMPLES_END)[2].strip("#\n ")
        if episode:
            task = _TASK.search(episode)
            fields = {"instruction": task[1] if task else None, "success": end[1] in ("OK", "1") if end else None}
            yield Recorded(list(_turns(episode)), fields)


def _turns(episode: str) -> Iterator[Message]:
    first, *others = _PROMPT.split(episode)
    yield {"role": "user", "content": first.strip()}
    for one in others:
        action, _, shown = one.partition("\n")
        if action.startswith("think:"):
            yield {"role": "assistant", "content": "", "reasoning": action.removeprefix("think:").strip()}
        else:
            yield {"role": "assistant", "content": action.strip()}
            yield {"role": "user", "content": shown.strip()}


def _labelled(text: str, fields: dict[str, Any]) -> Iterator[Recorded]:
    """Yield the episodes of labelled lines; one without its question is asked the one beside it."""
    episodes = list[list[Message]]()
    asked = fields.get("question") or _LABEL.split(text)[0].strip()
    if asked and not _QUESTION.search(text):
        text = f"Question: {asked}\n{text}"
    for label, said in _without_thinking(_pairs(text)):
        if label == "Question" or not episodes:
            episodes.append([])
        if label == "Action Input":  # of LangChain's agents
            episodes[-1][-1]["content"] += f"[{said}]"
            continue
        role = "user" if label in ("Question", "Observation") else "assistant"
        words = {"content": "", "reasoning": said} if label == "Thought" else {"content": said}
        episodes[-1].append({"role": role, **words})
    yield from (Recorded(one, _judged(one)) for one in episodes)


def _judged(messages: list[Message]) -> dict[str, Any]:
    """Return what the last observation says of the episode, as HotpotQA's and WebShop's do."""
    verdict, score = (one.search(messages[-1]["content"]) for one in (_ANSWER, _SCORE))
    return {"success": verdict[1] == "CORRECT"} if verdict else {"reward": float(score[1])} if score else {}


def _without_thinking(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield labels with what stands at them; an action that only thinks is a thought, and its answer is left out."""
    thinks = False
    for label, said in pairs:
        is_answer, thinks = thinks and label == "Observation", label == "Action" and said.startswith(_THINK)
        if not is_answer:
            yield ("Thought", said.removeprefix(_THINK).removesuffix("]")) if thinks else (label, said)


def _pairs(text: str) -> list[tuple[str, str]]:
    _, *parts = _LABEL.split(text)
    return [(label, said.strip()) for label, said in zip(parts[::2], parts[1::2], strict=True)]
