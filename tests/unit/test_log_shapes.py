"""Messages and verdicts of logs in all the shapes that people have: one library desk, one conversation."""

import json
from functools import partial

import pytest

from schemas.recipes.log_mapping import LogMapping, MessageMapping
from schemas.tables import MAX_TEXT_BYTES
from tasks.logs.clean_text import CUT
from tasks.logs.conversations import DEMONSTRATIONS, EMPTY, GREETING, PARTS, conversation_of
from tasks.logs.messages import messages_in
from tasks.logs.transitions import _field, episodes_in
from tasks.logs.verdicts import CONTRADICTION, OTHER_STEPS, STOPPED, verdict_on

ASKED, BOOK, SAID = "Reserve it.", '{"book": "B12"}', "It is reserved."
CALL = {"name": "find", "arguments": {"title": "Blue", "copies": 2}}
TEXT = json.dumps(CALL["arguments"])
USER, END = {"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}
TOOL = {"role": "tool", "content": BOOK}


def assistant(**fields) -> dict:
    return {"role": "assistant", "content": None, **fields}


SHAPES = {
    "OpenAI": [USER, assistant(tool_calls=[{"id": "c", "function": {**CALL, "arguments": TEXT}}]), TOOL, END],
    "OpenAI, older": [USER, assistant(function_call=CALL), {"role": "function", "content": BOOK}, END],
    "flat": [USER, assistant(tool_calls=[{"id": "c", **CALL}]), TOOL, END],
    "inspect": [USER, assistant(tool_calls=[{"function": "find", "arguments": CALL["arguments"]}]), TOOL, END],
    "Anthropic": [
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": [{"type": "tool_use", "name": "find", "input": CALL["arguments"]}]},
        {"role": "user", "content": [{"type": "tool_result", "content": [{"type": "text", "text": BOOK}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": SAID}]},
    ],
    "Responses": [
        USER,
        {"type": "function_call", "call_id": "c", "name": "find", "arguments": TEXT},
        {"type": "function_call_output", "call_id": "c", "output": BOOK},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
    ],
    "Responses, built-in and custom tools": [
        USER,
        {"type": "custom_tool_call", "call_id": "c", "name": "find", "input": TEXT},
        {"type": "custom_tool_call_output", "call_id": "c", "output": BOOK},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
    ],
    "Responses, a tool of a server": [
        USER,
        {"type": "mcp_call", "name": "find", "arguments": TEXT, "output": BOOK},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
    ],
    "Bedrock": [
        {"role": "user", "content": [{"text": ASKED}]},
        {"role": "assistant", "content": [{"toolUse": {"name": "find", "input": CALL["arguments"]}}]},
        {"role": "user", "content": [{"toolResult": {"content": [{"json": json.loads(BOOK)}]}}]},
        {"role": "assistant", "content": [{"text": SAID}]},
    ],
    "OpenAI, a custom tool": [
        {"role": "USER", "content": ASKED},
        assistant(tool_calls=[{"type": "custom", "custom": {"name": "find", "input": TEXT}}]),
        {"role": "ipython", "content": BOOK},
        END,
    ],
    "Anthropic, a tool of a server": [
        USER,
        assistant(
            content=[
                {"type": "server_tool_use", "name": "find", "input": CALL["arguments"]},
                {"type": "find_tool_result", "content": [{"type": "text", "text": BOOK}]},
                {"type": "text", "text": SAID},
            ]
        ),
    ],
    "pydantic-ai, a tool of a server": [
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ASKED}]},
        {
            "kind": "response",
            "parts": [
                {"part_kind": "builtin-tool-call", "tool_name": "find", "args": TEXT},
                {"part_kind": "builtin-tool-return", "content": json.loads(BOOK)},
                {"part_kind": "text", "content": SAID},
            ],
        },
    ],
    "LangChain, flat with blocks": [
        {"type": "human", "content": ASKED},
        {
            "type": "ai",
            "content": [{"type": "tool_use", "name": "find", "input": CALL["arguments"]}],
            "tool_calls": [{"name": "find", "args": CALL["arguments"]}],
        },
        {"type": "tool", "content": BOOK},
        {"type": "ai", "content": SAID},
    ],
    "Vercel": [
        USER,
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "find", "input": CALL["arguments"]}]},
        {"role": "tool", "content": [{"type": "tool-result", "output": {"type": "json", "value": json.loads(BOOK)}}]},
        {"role": "assistant", "content": [{"type": "text", "text": SAID}]},
    ],
    "Vercel, older": [
        USER,
        {"role": "assistant", "content": [{"type": "tool-call", "toolName": "find", "args": CALL["arguments"]}]},
        {"role": "tool", "content": [{"type": "tool-result", "result": BOOK}]},
        END,
    ],
    "Responses, with what nobody says": [
        USER,
        {"type": "mcp_list_tools", "tools": []},
        {"type": "function_call", "name": "find", "arguments": TEXT},
        {"type": "function_call_output", "output": BOOK},
        END,
    ],
    "inspect, a tool that failed": [
        USER,
        assistant(tool_calls=[{"function": "find", "arguments": CALL["arguments"]}]),
        {"role": "tool", "content": "", "error": {"type": "timeout", "message": BOOK}},
        END,
    ],
    "Gemini": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": CALL["arguments"]}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": json.loads(BOOK)}}]},
        {"role": "model", "parts": [{"text": SAID}]},
    ],
    "ShareGPT": [
        {"from": "human", "value": ASKED},
        {"from": "function_call", "value": json.dumps(CALL)},
        {"from": "observation", "value": BOOK},
        {"from": "gpt", "value": SAID},
    ],
    "ShareGPT with roles, calls in a list": [
        USER,
        {"role": "tool_call", "content": json.dumps([{**CALL, "arguments": TEXT}])},
        {"role": "tool_response", "content": BOOK},
        END,
    ],
    "calls that are JSON in text": [USER, assistant(tool_calls=[json.dumps({"function": CALL})]), TOOL, END],
    "all calls as JSON in text": [USER, assistant(tool_calls=json.dumps([{"function": CALL}])), TOOL, END],
    "Hermes": [
        {"from": "human", "value": ASKED},
        {"from": "gpt", "value": f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"},
        {"from": "tool", "value": f"<tool_response>\n{BOOK}\n</tool_response>"},
        {"from": "gpt", "value": SAID},
    ],
    "pydantic-ai": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "rules"},
                {"part_kind": "user-prompt", "content": ASKED},
            ],
        },
        {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "find", "args": TEXT}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "content": json.loads(BOOK)}]},
        {"kind": "response", "parts": [{"part_kind": "text", "content": SAID}]},
    ],
    "LangChain, calls as OpenAI wrote them": [
        {"type": "human", "data": {"content": ASKED}},
        {"type": "ai", "data": {"content": "", "additional_kwargs": {"tool_calls": [{"id": "c", "function": CALL}]}}},
        {"type": "tool", "data": {"content": BOOK}},
        {"type": "AIMessageChunk", "data": {"content": SAID}},
    ],
    "LangChain, messages_to_dict": [
        {"type": "system", "data": {"content": "rules"}},
        {"type": "human", "data": {"content": ASKED}},
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "find", "args": CALL["arguments"], "id": "c"}]}},
        {"type": "tool", "data": {"content": BOOK}},
        {"type": "ai", "data": {"content": SAID, "tool_calls": []}},
    ],
    "LangChain, dumpd": [
        {"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": ASKED}},
        {
            "lc": 1,
            "id": ["langchain", "AIMessageChunk"],
            "kwargs": {"content": "", "tool_calls": [{"name": "find", "args": CALL["arguments"]}]},
        },
        {"lc": 1, "id": ["langchain", "ToolMessage"], "kwargs": {"content": BOOK}},
        {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": SAID}},
    ],
    "text and roles of SWE-agent": [
        {"role": "system", "text": None},
        {"role": "user", "text": ASKED},
        {"role": "ai", "text": 'find(title="Blue", copies=2)'},
        {"role": "user", "text": BOOK},
        {"role": "ai", "text": SAID},
        {"role": "exit", "content": "submitted"},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_messages_is_the_same_conversation(shape):
    talk = conversation_of(SHAPES[shape], MessageMapping())
    assert talk.actions == ['find(title="Blue", copies=2)', SAID]
    assert talk.seen[:2] == [ASKED, BOOK]
    assert talk.remarks == ()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_file_of_nothing_but_messages_is_a_conversation(tmp_path, shape):
    log = tmp_path / "a.json"
    log.write_text(json.dumps(SHAPES[shape]))
    (one,) = episodes_in({"a.json": log}, LogMapping(constants={"success": True}))
    assert [row["action"] for row in one.rows] == ['find(title="Blue", copies=2)', SAID]


def test_a_call_between_tags_that_is_no_json_stays_text():
    broken = {"role": "assistant", "content": "<tool_call>{broken}</tool_call>"}
    assert conversation_of([USER, broken], MessageMapping()).actions == [broken["content"]]


def test_words_before_a_call_are_its_thought_and_several_calls_are_one_turn():
    call = partial(assistant, function_call={"name": "a", "arguments": "{}"})
    talk = conversation_of([USER, assistant(content="Let me see."), call(), call(), TOOL, END, END], MessageMapping())
    assert talk.actions == ["a(); a()", f"{SAID}\n{SAID}"]
    assert talk.thoughts == ["Let me see.", ""]


def test_greetings_and_empty_messages_are_no_turns_and_are_remarked_on():
    greeted = [assistant(content="Hello!"), USER, assistant(content=""), {"role": "user", "content": ""}, END]
    talk = conversation_of(greeted, MessageMapping())
    assert (talk.seen[0], talk.actions) == (ASKED, [SAID])
    assert talk.remarks == (GREETING, EMPTY)


@pytest.mark.parametrize(
    ("arguments", "action"), [('{"title": "Blu', 'f({"title": "Blu)'), ("[1, 2]", "f([1, 2])"), ("", "f()")]
)
def test_arguments_that_are_no_record_stand_as_they_are(arguments, action):
    called = assistant(tool_calls=[{"function": {"name": "f", "arguments": arguments}}])
    assert conversation_of([USER, called], MessageMapping()).actions == [action]


@pytest.mark.parametrize("name", ["messages", "conversations", "traj", "trajectory", "history"])
@pytest.mark.parametrize("written", [lambda messages: messages, json.dumps])
def test_a_list_of_messages_is_found_under_its_usual_names(name, written):
    assert messages_in({"id": 1, name: written([USER, END])}, "") == [USER, END]


def test_other_lists_are_no_messages_and_prompt_and_completion_are_one_list():
    assert messages_in({"history": [{"action": "ls"}], "messages": [USER, END]}, "") == [USER, END]
    assert messages_in({"trajectory": ["a"], "history": []}, "") is None
    assert messages_in({"prompt": [USER], "completion": [END]}, "") == [USER, END]
    assert messages_in({"prompt": ASKED, "completion": [END]}, "") == [USER, END]
    assert messages_in({"prompt": ASKED, "completion": SAID}, "") is None
    assert messages_in({"values": {"messages": [USER, END]}}, "") == [USER, END]
    assert messages_in({"history": "[broken"}, "") is None


def test_a_first_message_that_is_marked_as_no_action_is_a_greeting():
    acknowledged = {"from": "gpt", "loss": False, "value": "Understood."}
    acts = {"from": "gpt", "loss": True, "value": "Think: yes.\n\nAct: answer(4)"}
    talk = conversation_of([USER, acknowledged, USER, acts], MessageMapping())
    assert (talk.actions, talk.remarks) == (["answer(4)"], (GREETING,))


def test_an_action_that_is_too_long_loses_its_middle_and_half_a_character_becomes_a_mark(tmp_path):
    log = tmp_path / "a.json"
    calls = [
        {"function": {"name": "write", "arguments": json.dumps({"text": text})}} for text in ("x" * 40_000, "\ud83d")
    ]
    talk = [USER, *(one for call in calls for one in (assistant(tool_calls=[call]), TOOL))]
    log.write_text(json.dumps({"messages": talk, "success": True}))
    (one,) = episodes_in({"a.json": log}, LogMapping())
    long, half = (row["action"] for row in one.rows)
    assert len(long.encode()) <= MAX_TEXT_BYTES
    assert "[...]" in long
    assert half == 'write(text="\N{REPLACEMENT CHARACTER}")'
    assert CUT in one.remarks


def test_episodes_may_be_under_their_names(tmp_path):
    log = tmp_path / "a.json"
    log.write_text(json.dumps({name: {"messages": [USER, END], "success": True} for name in ("one", "two")}))
    assert [one.rows[0]["trajectory_id"] for one in episodes_in({"a.json": log}, LogMapping())] == ["one", "two"]


def test_demonstrations_before_an_episode_are_left_out_and_remarked_on():
    shown = [{**USER, "is_demo": True}, {**END, "content": "shown", "is_demo": True}]
    talk = conversation_of([*shown, USER, END], MessageMapping())
    assert (talk.actions, talk.seen[0], talk.remarks) == ([SAID], ASKED, (DEMONSTRATIONS,))


def test_samples_of_an_evaluation_are_episodes(tmp_path):
    sample = {"id": 1, "epoch": 1, "messages": SHAPES["inspect"], "scores": {"match": {"value": "C"}}}
    log = tmp_path / "eval.json"
    log.write_text(
        json.dumps({"version": 2, "samples": [sample, {**sample, "id": 2, "scores": {"match": {"value": "I"}}}]})
    )
    found = list(episodes_in({"eval.json": log}, LogMapping()))
    assert [(one.rows[-1]["trajectory_id"], one.rows[-1]["success"]) for one in found] == [("1", True), ("2", False)]
    assert found[0].where == "eval.json line 1, samples 1"


def test_a_chat_with_records_of_another_kind_beside_its_messages_is_one_episode(tmp_path):
    log = tmp_path / "a.jsonl"
    log.write_text(json.dumps({"id": 1, "messages": SHAPES["OpenAI"], "data": [{"rows": 3}], "success": True}))
    (one,) = episodes_in({"a.jsonl": log}, LogMapping())
    assert len(one.rows) == 2


def verdict(record: dict, num_steps: int = 3, mapping: LogMapping | None = None):
    mapping = mapping or LogMapping()
    found = verdict_on(partial(_field, record, mapping), mapping, num_steps)
    return found.success, found.rewards, found.truncated, found.remarks


@pytest.mark.parametrize(
    ("record", "success", "rewards"),
    [
        ({"success": 1}, True, [0, 0, 1]),
        ({"success": "false"}, False, [0, 0, 0]),
        ({"resolved": True}, True, [0, 0, 1]),
        ({"passed": "yes"}, True, [0, 0, 1]),
        ({"target": False}, False, [0, 0, 0]),
        ({"correctness": 1.0}, True, [0, 0, 1]),
        ({"outcome": "success"}, True, [0, 0, 1]),
        ({"verdict": "failed"}, False, [0, 0, 0]),
        ({"scores": {"includes": {"value": "N"}}}, False, [0, 0, 0]),
        ({"info": {"success": True}}, True, [0, 0, 1]),
        ({"metadata": {"reward": 0.25}}, False, [0, 0, 0.25]),
        ({"final_reward": 1}, True, [0, 0, 1]),
        ({"reward": True}, True, [0, 0, 1]),
        ({"reward": -0.5}, False, [0, 0, -0.5]),
        ({"rewards": [[0.0], [0.0], [0.5]]}, False, [0, 0, 0.5]),
        ({"scores": {"hung": {"value": 0.5}}}, False, [0, 0, 0.5]),
        ({"is_resolved": True}, True, [0, 0, 1]),
        ({"won": 0}, False, [0, 0, 0]),
        ({"reward_info": {"reward": 1.0}}, True, [0, 0, 1]),
        ({"rewards": {"solved": 1.0}}, True, [0, 0, 1]),
        ({"reward": [0.0, 0.5, 1.0]}, True, [0, 0.5, 1]),
        ({"scores": [{"name": "passed", "value": 1}, {"name": "cost", "value": 0}]}, True, [0, 0, 1]),
        ({"feedback": [{"key": "correctness", "score": 0}]}, False, [0, 0, 0]),
        ({"metrics": {"success": True}}, True, [0, 0, 1]),
        ({"reward": 0.67}, False, [0, 0, 0.67]),
        ({"reward": 0.67, "success": False}, False, [0, 0, 0.67]),
    ],
)
def test_a_verdict_is_found_under_its_usual_names_and_types(record, success, rewards):
    assert verdict(record) == (success, rewards, False, ())


def test_verdicts_that_contradict_each_other_are_remarked_on():
    assert verdict({"score": 1.0, "reward": 0.0}) == (False, [0, 0, 0], False, (CONTRADICTION,))
    assert verdict({"success": True, "reward": 0.0})[3] == (CONTRADICTION,)
    assert verdict({"success": True, "resolved": False})[3] == (CONTRADICTION,)
    assert verdict({"score": 1.0, "reward": 1.0})[3] == ()
    assert verdict({"reward": [0.0, 1.0]}) == (True, [0, 0, 1], False, (OTHER_STEPS,))


@pytest.mark.parametrize(
    "stop",
    [
        *({"truncated": True}, {"is_truncated": 1}, {"truncated": "yes"}, {"truncations": [False, True]}),
        *({"info": {"TimeLimit.truncated": True}}, {"info": {"exit_status": "LimitsExceeded"}}),
        *(
            {"stop_condition": "max_turns_reached"},
            {"exit_status": "submitted (exit_cost)"},
            {"state": "max_steps_error"},
        ),
        *({"error": "Agent reached maximum iteration in headless mode"}, {"subtype": "error_max_turns"}),
        *({"limit": {"type": "message", "limit": 3}}, {"termination_reason": "too many steps"}),
    ],
)
def test_an_agent_that_ran_out_of_steps_was_stopped(stop):
    assert verdict({"reward": 0.0, **stop})[2]
    assert verdict({"success": True, **stop})[3] == (STOPPED,)


@pytest.mark.parametrize(
    "end",
    [
        *({"stop_condition": "done"}, {"exit_status": "submitted"}, {"exit_status": 1}, {"truncated": 0}),
        *({"finish_reason": "stop"}, {"error": "no such file"}, {"state": "success"}, {"limit": None}),
    ],
)
def test_an_agent_that_ended_by_itself_was_not(end):
    assert not verdict({"reward": 0.0, **end})[2]


@pytest.mark.parametrize(
    "record", [{}, {"success": "submitted"}, {"reward": float("nan")}, {"rewards": {"a": 1, "b": 0}}, {"target": "yes"}]
)
def test_without_a_verdict_none_is_guessed(record):
    with pytest.raises(ValueError, match="does not say whether it succeeded"):
        verdict(record)


IMAGE = {"type": "image", "source": {"data": "iVBOR" * 99}}
SHOTS = {
    "Anthropic": {"role": "user", "content": [{"type": "tool_result", "content": [IMAGE]}]},
    "Responses": {"type": "computer_call_output", "output": {"type": "input_image", "image_url": "data:iVBOR"}},
    "LangChain": {"type": "tool", "data": {"content": [IMAGE]}},
    "Gemini": {"role": "user", "parts": [{"inlineData": {"data": "iVBOR"}}]},
    "Bedrock": {"role": "user", "content": [{"image": {"source": {"bytes": "iVBOR"}}}]},
}


@pytest.mark.parametrize("shape", SHOTS)
def test_an_image_becomes_a_mark_and_is_counted(shape):
    talk = conversation_of([USER, assistant(tool_calls=[{"function": CALL}]), SHOTS[shape], END], MessageMapping())
    assert "iVBOR" not in talk.seen[1]
    assert talk.seen[1].startswith("[")
    assert talk.remarks == (PARTS,)


THOUGHTS = {
    "a template's closing tag": assistant(content=f"I look.</think>\n\n{SAID}"),
    "Gemini": {"role": "model", "parts": [{"text": "I look.", "thought": True}, {"text": SAID}]},
    "Bedrock": assistant(content=[{"reasoningContent": {"reasoningText": {"text": "I look."}}}, {"text": SAID}]),
    "Anthropic, with one that cannot be read": assistant(
        content=[
            {"type": "redacted_thinking", "data": "x"},
            {"type": "thinking", "thinking": "I look."},
            {"type": "text", "text": SAID},
        ]
    ),
}


@pytest.mark.parametrize("shape", THOUGHTS)
def test_reasoning_is_a_thought_and_no_action(shape):
    talk = conversation_of([USER, THOUGHTS[shape]], MessageMapping())
    assert (talk.thoughts, talk.actions, talk.remarks) == (["I look."], [SAID], ())


def test_tags_are_calls_of_the_agent_only_and_words_beside_a_result_are_the_users():
    example = {"role": "user", "content": f"Write <tool_call>{json.dumps(CALL)}</tool_call>. {ASKED}"}
    acted = {"role": "assistant", "content": f"<tool_call>{json.dumps(CALL)}</tool_call>"}
    answer = {"role": "user", "content": f"<tool_response>{BOOK}</tool_response>Go on."}
    talk = conversation_of([example, acted, answer, END], MessageMapping())
    assert talk.actions == ['find(title="Blue", copies=2)', SAID]
    assert talk.seen[:2] == [example["content"], f"{BOOK}\nGo on."]


def test_a_call_before_anything_was_said_is_an_action_of_an_episode_that_says_what_was_asked(tmp_path):
    messages = [assistant(tool_calls=[{"function": CALL}]), TOOL, END]
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps({"messages": messages, "success": True, **more}) for more in ({"instruction": ASKED}, {}))
    )
    known, unknown = episodes_in({"a.jsonl": tmp_path / "a.jsonl"}, LogMapping())
    assert known.rows[0]["state"] == "- line 1: the episode begins"
    assert known.rows[0]["action"] == 'find(title="Blue", copies=2)'
    assert unknown.reason == "does not say what was asked: map `instruction`"


def test_a_command_beside_or_in_a_fence_of_every_answer_is_the_action():
    beside = assistant(content="I look.\n```\nls\n```", thought="I look.", action="ls\n")
    fenced = assistant(content="THOUGHT: I look.\n\n```bash\nls -l\n```")
    for said, action in ((beside, "ls"), (fenced, "ls -l")):
        talk = conversation_of([USER, said, {"role": "user", "content": "a.py"}, said], MessageMapping())
        assert talk.actions == [action, action]
        assert talk.thoughts[0].endswith("I look.")
    kept = conversation_of([USER, fenced, USER, END, USER, fenced], MessageMapping())
    assert kept.actions[0] == fenced["content"], "some answers have no command"
