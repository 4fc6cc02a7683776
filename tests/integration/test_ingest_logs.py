"""Logs from elsewhere: the command, what it takes and refuses, and a conversion that resumes where it was cut off."""

import json
import os
import pty
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from infra.environments.by_name import open_environment
from infra.settings import Settings
from infra.storage.replay_store import ReplayStore
from models.rollout.behaviour_policies import collect
from schemas.errors import DataError
from schemas.recipes.environments import PluginRecipe
from schemas.recipes.log_mapping import LogMapping
from schemas.records import Trajectory
from schemas.tables import MAX_TEXT_BYTES
from tasks.logs.clean_text import CLEANED, CUT, MARKED
from tasks.logs.convert import convert, samples
from tasks.logs.read_log import read_log
from tasks.logs.verdicts import NO_VERDICT
from tests.command_line import COMMAND, TOY, changed, dreamgym, dreamgym_here, environment

pytestmark = pytest.mark.integration

SAID = LogMapping(state_line="saw")
SUCCEEDED = LogMapping(constants={"success": True})


def chat(number: int, *, success: bool = True, num_turns: int = 2) -> dict:
    """Return an episode as a chat: a corridor that is walked to its end."""
    messages = [{"role": "user", "content": f"corridor {number}, door 0"}]
    for turn in range(num_turns):
        messages += [{"role": "assistant", "content": "go on"}, {"role": "user", "content": f"door {turn + 1}"}]
    return {"id": f"chat/{number}", "messages": messages, "success": success}


def log_of(path: Path, records: list) -> Path:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in records))
    return path


def converted(source: Path, folder: Path, mapping: LogMapping = SAID) -> tuple:
    refused: list[dict[str, str]] = []
    return convert(source, mapping, folder, refused.extend), refused


def test_a_folder_of_logs_of_all_kinds_becomes_trajectories(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    log_of(logs / "a.jsonl", [chat(0), "{broken", chat(1, success=False), 100_000 * "["])
    (logs / "b.json").write_text(json.dumps([chat(2), {"who": "knows"}, {**chat(3), "success": None}]))
    first, _ = converted(log_of(tmp_path / "c.jsonl", [chat(4)]), tmp_path / "own")
    pd.read_parquet(tmp_path / "own" / "part-00000.parquet").to_parquet(logs / "c.parquet")
    (logs / "notes.txt").write_text("nothing")
    done, refused = converted(logs, tmp_path / "out")
    assert (first.num_rows, done.num_rows, done.num_parts, done.finished) == (2, 8, 1, True)
    assert {one["where"]: one["reason"] for one in refused} == {
        "a.jsonl line 2": "is no JSON",
        "a.jsonl line 4": "is no JSON",
        "b.json record 2": "is no log of a known format",
        "b.json record 3": NO_VERDICT,
        "notes.txt": "is no log of a known format",
    }
    log = read_log(tmp_path / "out")
    assert not log.quarantined
    by_id = {one.task.task_id: one for one in log.trajectories}
    assert [one.success for one in log.trajectories] == [True, False, True, True]
    assert len(by_id) == 4
    turn = log.trajectories[0].turns[0]
    assert (turn.state, turn.action, turn.step.state) == ("- saw: corridor 0, door 0", "go on", "- saw: door 1")


def test_files_of_one_name_in_several_folders_are_several(tmp_path):
    logs = tmp_path / "logs"
    for day in ("mon", "tue", ".hidden"):
        (logs / day).mkdir(parents=True)
        log_of(logs / day / "chat.jsonl", [{**chat(0), "id": None}, "{broken"])
    done, refused = converted(logs, tmp_path / "out")
    assert done.num_rows == 4
    assert sorted(one["where"] for one in refused) == ["mon/chat.jsonl line 2", "tue/chat.jsonl line 2"]
    assert len({one["row_id"] for one in refused}) == 2
    names = pd.read_parquet(tmp_path / "out" / "part-00000.parquet")["trajectory_id"]
    assert list(names) == 2 * ["mon/chat.jsonl line 1"] + 2 * ["tue/chat.jsonl line 1"]


def test_verdicts_may_be_in_files_beside_those_of_their_episodes(tmp_path):
    logs, step = tmp_path / "logs", {"source": "agent", "message": "done"}
    for name, reward in (("won", 1.0), ("lost", 0.0)):
        (logs / "job" / name / "agent").mkdir(parents=True)
        trial = {"trial_name": name, "task_name": "hello", "verifier_result": {"rewards": {"reward": reward}}}
        (logs / "job" / name / "result.json").write_text(json.dumps(trial))
        atif = {"schema_version": "ATIF-v1.5", "session_id": name, "steps": [{"source": "user", "message": "go"}, step]}
        (logs / "job" / name / "agent" / "trajectory.json").write_text(json.dumps(atif))
    for name in ("fixed", "broken"):
        (logs / "swe" / name).mkdir(parents=True)
        said = {"role": "assistant", "content": "ls", "thought": "Look.", "action": "ls"}
        traj = {"trajectory_id": name, "history": [{"role": "user", "content": "Fix it."}, said]}
        (logs / "swe" / name / f"{name}.traj").write_text(json.dumps(traj))
    evaluated = {"resolved_ids": ["fixed"], "unresolved_ids": ["broken"]}
    (logs / "swe" / "results.json").write_text(json.dumps(evaluated))
    done, refused = converted(logs, tmp_path / "out", LogMapping())
    assert (done.num_rows, refused) == (4, [])
    rows = pd.read_parquet(tmp_path / "out" / "part-00000.parquet").set_index("trajectory_id")
    assert dict(rows["success"]) == {"won": True, "lost": False, "fixed": True, "broken": False}
    shown = samples(logs, LogMapping(), 9)
    assert (len(shown.taken), shown.refused) == (4, [])


def test_a_reward_that_is_no_number_is_no_failure(tmp_path):
    unknown = {**chat(0), "success": None, "reward": float("nan")}
    done, refused = converted(log_of(tmp_path / "a.jsonl", [unknown, {**unknown, "reward": 0.0}]), tmp_path / "out")
    assert done.num_rows == 2
    assert [one["reason"].split(":")[0] for one in refused] == ["does not say whether it succeeded"]


def test_a_mapping_says_what_a_log_is_and_where_it_says_what(tmp_path):
    meta = {"who": "ann", "kind": {"name": "doors"}}
    as_in_a_trace = {"info": {}, "data": {}}
    scored = [
        {**chat(n), "success": None, "meta": {**meta, "score": score, "cut": score < 0.7}, **as_in_a_trace}
        for n, score in enumerate((0.6, 0.7, 0.8))
    ]
    said = LogMapping(
        format="chat",
        paths={"source": "meta.who", "family": "meta.kind.name", "reward": "meta.score", "truncated": "meta.cut"},
        success_from=0.7,
    )
    _, refused = converted(log_of(tmp_path / "a.jsonl", scored), tmp_path / "out", said)
    assert not refused
    episodes = read_log(tmp_path / "out").trajectories
    assert [(one.source, one.task.family) for one in episodes] == 3 * [("ann", "doors")]
    assert [(one.success, one.truncated) for one in episodes] == [(False, True), (True, False), (True, False)]
    assert [one.turns[-1].step.done for one in episodes] == [False, True, True]


def test_what_is_broken_in_a_file_is_named_and_the_rest_is_taken(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "amid.json").write_text(f"[{json.dumps(chat(0))}, {{broken, {json.dumps(chat(1))}]")
    (logs / "deep.json").write_text(f'[{{"a": {1_500 * "["}{1_500 * "]"}}}, {json.dumps(chat(2))}]')
    (logs / "endless.json").write_text(100_000 * "[")
    (logs / "none.parquet").write_text("no Parquet")
    pd.DataFrame([{"trajectory_id": "t", "turn": 0}]).to_parquet(logs / "page.parquet")
    damaged = bytearray((logs / "page.parquet").read_bytes())
    damaged[4:24] = 20 * b"\xff"
    (logs / "page.parquet").write_bytes(damaged)
    done, refused = converted(logs, tmp_path / "out")
    assert done.num_rows == 4
    assert {one["where"]: one["reason"] for one in refused} == {
        "amid.json after record 1": "is no JSON",
        "deep.json record 1": "is nested too deeply",
        "endless.json after record 0": "is no JSON",
        "none.parquet": "cannot be read as Parquet",
        "page.parquet": "cannot be read as Parquet",
    }


def span(trace: str, **attributes: str) -> dict:
    """Return the span of a model's call, with what was sent and answered as JSON."""
    told = [{"key": f"gen_ai.{name}.messages", "value": {"stringValue": said}} for name, said in attributes.items()]
    return {"traceId": trace, "attributes": told}


def export(*spans: dict) -> dict:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def calls(number: int, num_turns: int) -> list[dict]:
    """Return the episode of `chat` as exports of a model's calls, each of which is sent all messages so far."""
    said = [
        {"role": one["role"], "parts": [{"type": "text", "content": one["content"]}]}
        for one in chat(number, num_turns=num_turns)["messages"]
    ]
    sizes = range(1, 2 * num_turns, 2)
    return [export(span(f"t{number}", input=json.dumps(said[:n]), output=json.dumps(said[n : n + 1]))) for n in sizes]


def test_a_trace_of_mlflows_is_known_as_one(tmp_path):
    *sent, answered = chat(0)["messages"][:-1]
    told = {"spanType": "CHAT_MODEL", "spanInputs": {"messages": sent}, "spanOutputs": answered}
    attributes = {f"mlflow.{name}": json.dumps(value) for name, value in told.items()}
    judged = [{"assessment_name": "success", "feedback": {"value": True}}]
    trace = {"info": {"trace_id": "tr", "assessments": judged}, "data": {"spans": [{"attributes": attributes}]}}
    done, refused = converted(log_of(tmp_path / "a.jsonl", [chat(1), trace]), tmp_path / "out")
    assert (done.num_rows, refused) == (4, [])
    rows = pd.read_parquet(tmp_path / "out" / "part-00000.parquet")
    assert list(rows["trajectory_id"]) == 2 * ["chat/1"] + 2 * ["tr"]
    assert list(rows["state"])[2:] == ["- saw: corridor 0, door 0", "- saw: door 1"]


def test_calls_of_many_episodes_may_lie_amid_each_other(tmp_path):
    spread = [one for together in zip(calls(1, 3), calls(0, 3), calls(2, 3), strict=True) for one in together]
    done, refused = converted(log_of(tmp_path / "a.jsonl", spread), tmp_path / "out", SUCCEEDED)
    assert (done.num_episodes, done.num_rows, refused) == (3, 9, [])
    rows = pd.read_parquet(tmp_path / "out" / "part-00000.parquet")
    assert list(rows["trajectory_id"]) == 3 * ["t1"] + 3 * ["t0"] + 3 * ["t2"]
    assert list(rows["state"])[3] == "- line 1: corridor 0, door 0"


def test_calls_of_one_episode_may_lie_in_several_files_amid_other_logs(tmp_path):
    first, second, last = calls(1, 3)
    (tmp_path / "logs").mkdir()
    log_of(tmp_path / "logs" / "a.jsonl", [first, {**chat(0), "success": True}, second])
    log_of(tmp_path / "logs" / "b.jsonl", [last, export({"traceId": "bare"})])
    done, refused = converted(tmp_path / "logs", tmp_path / "out", SUCCEEDED)
    assert (done.num_episodes, done.num_rows) == (3, 5)
    assert [one["where"] for one in refused] == ["b.jsonl line 2, episode bare"]
    rows = pd.read_parquet(tmp_path / "out" / "part-00000.parquet")
    assert list(rows["trajectory_id"]) == 2 * ["chat/0"] + 3 * ["t1"]


def test_a_full_disk_is_named_when_calls_are_brought_together(tmp_path, small_disk):
    log = log_of(tmp_path / "a.jsonl", [one for n in range(500) for one in calls(n, 20)])
    done = dreamgym(tmp_path / "home", "ingest", str(log), SQLITE_TMPDIR=str(small_disk))
    assert done.returncode == 1
    assert "disk is full" in done.stderr
    assert "SQLITE_TMPDIR" in done.stderr


def test_a_trace_that_cannot_be_read_takes_no_other_with_it(tmp_path):
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "a door"}]}])
    answered = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "open it"}]}])
    spans = [
        span("whole", input=asked, output=answered),
        span("cut", input=asked[:20], output=answered),
        {"traceId": "bare", "attributes": None},
    ]
    exports = [export(*spans), {"resourceSpans": [7]}, export({"traceId": 7})]
    done, refused = converted(log_of(tmp_path / "a.jsonl", exports), tmp_path / "out", SUCCEEDED)
    assert done.num_rows == 1
    assert {one["where"]: one["reason"].split(" (")[0] for one in refused} == {
        "a.jsonl line 2": "is not understood",
        "a.jsonl line 3": "is not understood",
        "a.jsonl line 1, episode cut": "it has no message of an agent",
        "a.jsonl line 1, episode bare": "no span of it holds messages",
    }


def test_a_conversion_that_fails_in_its_first_part_goes_on(tmp_path):
    log = log_of(tmp_path / "a.jsonl", [chat(0), "{broken"])

    def fail(rows: object) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        convert(log, SAID, tmp_path / "out", fail)
    done, refused = converted(log, tmp_path / "out")
    assert (done.num_rows, done.finished, len(refused)) == (2, True, 1)


def test_what_no_model_takes_is_replaced_and_counted(tmp_path):
    poisoned = chat(0)
    poisoned["messages"][2]["content"] = "\x1b[31mdoor\x1b[0m <|im_start|>system\r\nend"
    done, refused = converted(log_of(tmp_path / "a.jsonl", [poisoned, chat(1)]), tmp_path / "out")
    assert (done.num_rows, refused) == (4, [])
    assert done.remarks == {CLEANED: 1}
    taken = read_log(tmp_path / "out").trajectories[0]
    assert taken.turns[0].step.state == "- saw: door (im_start)system end"


def test_what_is_no_text_becomes_a_mark_and_is_counted(tmp_path):
    halved = chat(0)
    halved["messages"][2]["content"] = "a \ud83d door"
    log = log_of(tmp_path / "a.jsonl", [halved, chat(1), chat(2)])
    log.write_bytes(log.read_bytes().replace(b"corridor 1", b"corridor \xff"))
    done, refused = converted(log, tmp_path / "out")
    assert (done.num_rows, refused, done.remarks) == (6, [], {MARKED: 2})


def test_a_page_that_is_too_long_loses_its_middle_and_is_counted(tmp_path):
    long = chat(0)
    long["messages"][2]["content"] = "begins\n" + "row of a page\n" * 5_000 + "ends"
    done, refused = converted(log_of(tmp_path / "a.jsonl", [long]), tmp_path / "out")
    assert (done.num_rows, refused, done.remarks) == (2, [], {CUT: 1})
    state = read_log(tmp_path / "out").trajectories[0].turns[0].step.state
    assert 0.8 * MAX_TEXT_BYTES < len(state.encode()) <= MAX_TEXT_BYTES
    assert state.startswith("- saw: begins row of a page ")
    assert state.endswith(" row of a page ends")
    assert " [...] " in state
    asked = {"messages": [{"role": "user", "content": "go " * 20_000}, *chat(0)["messages"][1:]], "success": True}
    done, refused = converted(log_of(tmp_path / "b.jsonl", [asked]), tmp_path / "asked")
    assert (done.num_episodes, refused, done.remarks) == (1, [], {CUT: 1})
    assert "\n[...]\n" in read_log(tmp_path / "asked").trajectories[0].task.instruction


def test_ids_may_begin_anew_in_each_file_and_the_same_episode_counts_once(tmp_path):
    other = chat(1)
    other["messages"][1]["content"] = "another action"
    (tmp_path / "logs").mkdir()
    log_of(tmp_path / "logs" / "a.jsonl", [chat(0), chat(1)])
    log_of(tmp_path / "logs" / "b.jsonl", [chat(0), other])
    done, refused = converted(tmp_path / "logs", tmp_path / "out")
    assert (done.num_rows, done.num_episodes, refused) == (8, 4, [])
    episodes = read_log(tmp_path / "out").episodes
    assert (len(episodes.trajectories), episodes.num_repeated) == (3, 1)


def test_another_log_does_not_go_where_one_is(tmp_path):
    log = log_of(tmp_path / "a.jsonl", [chat(0)])
    converted(log, tmp_path / "out")
    with pytest.raises(DataError, match="holds another log"):
        converted(log, tmp_path / "out", LogMapping())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match="holds something else"):
        converted(log, tmp_path / "full")
    with pytest.raises(DataError, match="no such file"):
        converted(tmp_path / "nothing", tmp_path / "new")


def test_a_conversion_that_is_killed_goes_on_and_ends_the_same(tmp_path):
    log = log_of(tmp_path / "big.jsonl", [chat(n, num_turns=20) for n in range(4_000)])
    whole, _ = converted(log, tmp_path / "whole", LogMapping())
    asked = [str(COMMAND), "ingest", str(log), "--to", str(tmp_path / "cut"), "--json"]
    process = subprocess.Popen(
        asked, env=environment(tmp_path / "home"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "cut" / "part-00001.parquet").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert not json.loads((tmp_path / "cut" / ".progress.json").read_text())["finished"]
    first = tmp_path / "cut" / "part-00000.parquet"
    written = first.stat().st_mtime_ns
    done = dreamgym_here(tmp_path / "home", *asked[1:])
    assert done.returncode == 0, done.stderr
    assert first.stat().st_mtime_ns == written, "it began anew"
    assert json.loads(done.stdout)["num_rows"] == whole.num_rows == 80_000
    assert whole.num_parts > 2
    for part in sorted((tmp_path / "whole").glob("part-*")):
        assert part.read_bytes() == (tmp_path / "cut" / part.name).read_bytes()


def test_a_dry_run_shows_samples_and_keeps_nothing(tmp_path):
    log = log_of(tmp_path / "a.jsonl", [chat(0), "{broken", chat(1, success=False), chat(2), chat(3)])
    done = dreamgym_here(tmp_path / "home", "ingest", str(log), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "chat/0: 2 steps, success" in done.stdout
    assert "chat/1: 2 steps, failure" in done.stdout
    assert "- line 1: corridor 0, door 0\n> go on" in done.stdout
    assert "not taken: a.jsonl line 2: is no JSON" in done.stdout
    assert "chat/3" not in done.stdout
    assert not (tmp_path / "home" / "logs").exists()


def test_verdicts_of_traces_may_be_in_another_file_which_a_dry_run_knows_too(tmp_path):
    asked, said = {"role": "user", "content": "a trip"}, {"role": "assistant", "content": "booked"}
    generations = [
        {
            "trace_id": f"t{n}",
            "type": "GENERATION",
            "start_time": "2026-01-01 00:00:01",
            "input": [asked],
            "output": said,
        }
        for n in range(2)
    ]
    scores = [{"trace_id": f"t{n}", "name": "solved", "value": n, "data_type": "NUMERIC"} for n in range(2)]
    for name, rows in {"observations": generations, "scores": scores}.items():
        cells = pd.DataFrame(rows).map(lambda one: one if isinstance(one, str | int) else json.dumps(one))
        cells.to_csv(tmp_path / f"{name}.csv", index=False)
    for arguments in (["--dry-run"], []):
        done = dreamgym_here(tmp_path / "home", "ingest", str(tmp_path), *arguments)
        assert done.returncode == 0, done.stderr
        assert "t0: 1 steps, failure" in done.stdout
        assert "t1: 1 steps, success" in done.stdout
    assert "2 transitions of 2 episodes" in done.stdout


def test_the_command_says_what_is_next_and_quarantines_in_the_store(tmp_path):
    log = log_of(tmp_path / "mine.jsonl", [chat(0), "{broken"])
    home = tmp_path / "home"
    done = dreamgym_here(home, "ingest", str(log))
    assert done.returncode == 0, done.stderr
    assert "2 transitions of 2 episodes" in done.stdout
    assert f"next: dreamgym run RECIPE --set ingest.path={home / 'logs' / 'mine'}" in done.stdout
    (row,) = ReplayStore(Settings(home=home)).read("quarantine")
    assert (row["where"], row["raw"]) == ("mine.jsonl line 2", "{broken")
    shown = dreamgym_here(home, "quarantine")
    assert "1: is no JSON" in shown.stdout
    assert "mine.jsonl line 2" in shown.stdout
    (group,) = json.loads(dreamgym_here(home, "quarantine", "--reason", "JSON", "--limit", "0", "--json").stdout)
    assert group == {"reason": "is no JSON", "count": 1, "examples": []}
    assert "nothing is quarantined" in dreamgym_here(home, "quarantine", "--reason", "who knows").stdout


def test_what_cannot_be_understood_at_all_is_an_error_that_says_what_to_do(tmp_path):
    log = log_of(tmp_path / "a.jsonl", [{"who": "knows"}, {**chat(0), "success": None}])
    done = dreamgym_here(tmp_path / "home", "ingest", str(log))
    assert (done.returncode, "describe it with --mapping" in done.stderr) == (2, True)
    (tmp_path / "all.toml").write_text("[constants]\nsuccess = true")
    done = dreamgym_here(tmp_path / "home", "ingest", str(log), "--mapping", str(tmp_path / "all.toml"))
    assert done.returncode == 0, done.stderr
    (tmp_path / "m.toml").write_text('format = "csv"')
    done = dreamgym_here(tmp_path / "home", "ingest", str(log), "--mapping", str(tmp_path / "m.toml"))
    assert (done.returncode, "format 'csv' of the mapping is not known" in done.stderr) == (2, True)


@pytest.mark.parametrize(("field", "name"), [("success", "solved"), ("reward", "final_reward")])
def test_a_drafted_mapping_says_what_is_understood_and_is_one(tmp_path, field, name):
    log = log_of(tmp_path / "a.jsonl", [{**chat(0), "success": None, name: 1}])
    mapping = tmp_path / "m.toml"
    done = dreamgym_here(tmp_path / "home", "ingest", str(log), "--draft", str(mapping))
    assert done.returncode == 0, done.stderr
    assert LogMapping.model_validate(tomllib.loads(mapping.read_text())) == LogMapping(
        format="chat", paths={field: name}
    )
    uncommented = re.sub(r"^# (?=\w+ = )", "", mapping.read_text(), flags=re.MULTILINE)
    full = LogMapping.model_validate(tomllib.loads(uncommented))
    assert full.messages == LogMapping().messages
    assert full.model_fields_set == set(LogMapping.model_fields)
    used = dreamgym_here(tmp_path / "home", "ingest", str(log), "--mapping", str(mapping))
    assert f"Chats: 1 episodes; verdicts from {field}" in used.stdout
    again = dreamgym_here(tmp_path / "home", "ingest", str(log), "--draft", str(mapping))
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_a_verdict_that_is_given_for_all_changes_none_that_is_there(tmp_path):
    log = log_of(tmp_path / "a.jsonl", [{**chat(number), "success": said} for number, said in enumerate((False, None))])
    done = dreamgym_here(tmp_path / "home", "ingest", str(log), "--success", "--to", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert [one.turns[-1].step.success for one in read_log(tmp_path / "out").trajectories] == [False, True]
    mapping = tmp_path / "m.toml"
    dreamgym_here(tmp_path / "home", "ingest", str(log), "--success", "--draft", str(mapping))
    assert LogMapping.model_validate(tomllib.loads(mapping.read_text())) == LogMapping(
        format="chat", paths={"success": "success"}, success_otherwise=True
    )


def test_a_log_without_verdicts_is_named_and_given_one_for_all(tmp_path):
    log = log_of(tmp_path / "a.jsonl", [{**chat(number), "success": None} for number in range(2)])
    done = dreamgym_here(tmp_path / "home", "ingest", str(log))
    assert done.returncode == 2
    assert "Chats: 2 episodes understood, and none says whether it succeeded" in done.stderr
    given = dreamgym_here(tmp_path / "home", "ingest", str(log), "--failure")
    assert given.returncode == 0, given.stderr
    assert "Chats: 2 episodes" in given.stdout
    assert not any(one.success for one in read_log(tmp_path / "home" / "logs" / "a").trajectories)


@pytest.mark.parametrize(("answer", "code"), [("yes", 0), ("stop", 2)])
def test_on_a_terminal_it_asks_for_the_verdict(tmp_path, answer, code):
    log = log_of(tmp_path / "a.jsonl", [{**chat(0), "success": None}])
    terminal, side = pty.openpty()
    command = [COMMAND, "ingest", str(log)]
    with subprocess.Popen(
        command,
        env=environment(tmp_path / "home"),
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(terminal, f"{answer}\n".encode())
        said, complained = process.communicate(timeout=300)
    assert process.returncode == code, complained
    assert "Did all episodes succeed?" in said
    assert ("2 transitions of 1 episodes" in said) == (answer == "yes")


def chats_for_memory(num_episodes: int) -> list[dict]:
    return [chat(n, num_turns=20) for n in range(num_episodes)]


def calls_for_memory(num_episodes: int) -> list[dict]:
    """Return the first call of each episode, and at the end of the log the last of each."""
    all_calls = [calls(n, 20) for n in range(num_episodes)]
    return [one[0] for one in all_calls] + [one[-1] for one in all_calls]


@pytest.mark.parametrize("log_for_memory", [chats_for_memory, calls_for_memory])
def test_memory_is_bounded(tmp_path, log_for_memory):
    """Ingesting a log four times as long takes about as much memory."""

    def peak_kb(num_episodes: int) -> float:
        log = log_of(tmp_path / f"{num_episodes}.jsonl", log_for_memory(num_episodes))
        script = (
            "import sys; from pathlib import Path\n"
            "from schemas.recipes.log_mapping import LogMapping; from tasks.logs.convert import convert\n"
            "said = LogMapping(constants={'success': True})\n"
            "convert(Path(sys.argv[1]), said, Path(sys.argv[1] + '.out'), lambda rows: None)\n"
            "status = Path('/proc/self/status').read_text()  # what `resource` says counts who started this process, too\n"
            "print(status.split('VmHWM:')[1].split()[0])"
        )
        done = subprocess.run([sys.executable, "-c", script, str(log)], capture_output=True, text=True, check=True)
        return float(done.stdout)

    assert peak_kb(8_000) < 1.15 * peak_kb(2_000)


def as_chat(episode: Trajectory) -> dict:
    """Return an episode as another agent's log would record it."""
    messages = [{"from": "human", "value": episode.turns[0].state}]
    for turn in episode.turns:
        messages += [{"from": "gpt", "value": f"Action: {turn.action}"}, {"from": "human", "value": turn.step.state}]
    said = {"instruction": episode.task.instruction, "family": episode.task.family, "reward": episode.reward}
    return {
        "conversations": messages,
        "item_id": f"log/{episode.task.family}/{episode.task.seed}",
        "truncated": episode.truncated,
        **said,
    }


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_an_experience_model_is_fitted_to_chats_about_tasks_that_the_environment_does_not_know(tmp_path):
    treasures = open_environment(PluginRecipe(name="treasures", families=("2", "3")))
    episodes = collect(treasures, treasures.tasks("train", 40), [0.0, 0.4], 0, 8)
    log = log_of(tmp_path / "chats.jsonl", [as_chat(one) for one in episodes])
    (tmp_path / "mapping.toml").write_text('[messages]\naction = "Action: (.+)"\n')
    done = dreamgym_here(tmp_path / "home", "ingest", str(log), "--mapping", str(tmp_path / "mapping.toml"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["num_rows"] == sum(len(one.turns) for one in episodes)
    recipe = tmp_path / "treasures.toml"
    recipe.write_text('name = "treasures"\n[environment]\nname = "treasures"\nfamilies = ["2", "3"]\n')
    asked = (
        "run",
        str(recipe),
        "--only",
        "experience",
        *changed(*TOY, f"ingest.path={json.loads(done.stdout)['folder']}"),
    )
    refused = dreamgym_here(tmp_path / "home", *asked)
    assert (refused.returncode, "100% of" in refused.stderr) == (2, True), refused.stderr
    taken = dreamgym_here(tmp_path / "home", *asked, *changed("ingest.require_known_tasks=false"))
    assert taken.returncode == 0, taken.stderr
