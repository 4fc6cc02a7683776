"""Mappings of logs that nobody else writes: each with the smallest log that needs it."""

import json

import pytest

from schemas.recipes.log_mapping import LogMapping
from tasks.logs.transitions import Episode, episodes_in

SPOKEN = [
    {"speaker": "user", "utterance": {"text": "cancel order 7"}},
    {"speaker": "assistant", "tool": {"name": "cancel", "with": {"order": 7}}},
    {"speaker": "tool", "utterance": {"text": "cancelled"}},
]
NAMES = {"role": "speaker", "text": "utterance.text", "call": "tool.name", "arguments": "tool.with"}


def read(folder, mapping: dict, *records, files: int = 1) -> list[Episode]:
    """Return the episodes of records, in one file or each in its own."""
    for number in range(files):
        mine = records[number::files] if files > 1 else records
        (folder / f"{number}.jsonl").write_text("\n".join(map(json.dumps, mine)))
    return list(episodes_in({file.name: file for file in sorted(folder.iterdir())}, LogMapping.model_validate(mapping)))


def shown(episode: Episode) -> list[tuple[str, str, str, bool]]:
    assert not episode.reason, episode.reason
    return [(row["state"], row["action"], row["next_state"], row["success"]) for row in episode.rows]


CANCELLED = [("- line 1: cancel order 7", "cancel(order=7)", "- line 1: cancelled", True)]


def test_messages_whose_fields_have_other_names(tmp_path):
    mapping = {"names": NAMES, "messages": {"at": "talk"}}
    [episode] = read(tmp_path, mapping, {"talk": SPOKEN, "success": True})
    assert shown(episode) == CANCELLED


def test_episodes_inside_a_record_share_its_other_fields(tmp_path):
    mapping = {"names": NAMES, "episodes_at": "of.runs", "messages": {"at": "talk"}, "paths": {"task_id": "case"}}
    runs = [{"talk": SPOKEN, "success": True}, {"talk": SPOKEN, "success": False, "case": "own"}]
    first, second = read(tmp_path, mapping, {"case": "shared", "of": {"runs": runs}})
    assert shown(first) == CANCELLED
    assert [one.rows[0]["task_id"] for one in (first, second)] == ["shared", "own"]
    assert [one.rows[0]["success"] for one in (first, second)] == [True, False]


def test_rows_that_share_an_id_are_one_conversation_wherever_they_are(tmp_path):
    rows = [{"session": {"id": number}, **message} for message in SPOKEN for number in (0, 1)]
    rows[-1]["success"], rows[-2]["success"] = False, True
    mapping = {"names": NAMES, "joined_by": "session.id"}
    first, second = read(tmp_path, mapping, *rows, files=2)
    assert shown(first) == CANCELLED
    assert (second.rows[0]["trajectory_id"], second.rows[0]["success"]) == ("1", False)


def test_a_file_is_one_conversation(tmp_path):
    mapping = {"names": NAMES, "file_is_episode": True, "constants": {"success": True}}
    [episode] = read(tmp_path, mapping, *SPOKEN)
    assert shown(episode) == CANCELLED
    assert episode.rows[0]["trajectory_id"] == "0.jsonl"


def test_steps_whose_fields_have_other_names(tmp_path):
    names = {"observation": "screen.text", "action": "cmd", "next_observation": "after", "step": "no"}
    steps = [
        {"run": "a", "no": 2, "screen": {"text": "lit"}, "cmd": "leave", "after": "gone", "success": True},
        {"run": "a", "no": 1, "screen": {"text": "dark"}, "cmd": "light", "after": "lit"},
    ]
    [joined] = read(tmp_path, {"names": names, "joined_by": "run", "format": "steps"}, *steps)
    assert [row[1] for row in shown(joined)] == ["light", "leave"]
    assert shown(joined)[-1] == ("- line 1: lit", "leave", "- line 1: gone", True)


@pytest.mark.parametrize(
    ("mapping", "record", "reason"),
    [
        ({"joined_by": "session.id"}, {"role": "user", "content": "hi"}, "has nothing at session.id"),
        ({"episodes_at": "runs"}, {"runs": "none"}, "has no list of episodes at runs"),
    ],
)
def test_records_that_a_mapping_does_not_fit_are_refused_with_the_reason(tmp_path, mapping, record, reason):
    [episode] = read(tmp_path, mapping, record)
    assert (episode.rows, reason in episode.reason) == ([], True)


def test_messages_in_an_array_are_joined_as_lines_are(tmp_path):
    joined = [{**one, "session": {"id": 0}} for one in SPOKEN]
    [episode] = read(
        tmp_path,
        {"names": NAMES, "joined_by": "session.id", "success_otherwise": True},
        [{"role": one["speaker"], "content": "", **one} for one in joined],
    )
    assert shown(episode) == CANCELLED
