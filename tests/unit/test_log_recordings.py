"""Recordings of agents that are no traces: each kind in its smallest file."""

import json

import pytest

from schemas.errors import DataError
from schemas.recipes.log_mapping import LogMapping
from tasks.logs.transitions import Episode, episodes_in

USE = {"type": "tool_use", "name": "find", "input": {"title": "Blue"}}
SEEN = {"type": "tool_result", "content": "shelf C4"}


def line(number: int, role: str, content: object, parent: int | None, **others: object) -> dict:
    message = {"role": role, "content": content}
    named = {"uuid": f"u{number}", "parentUuid": parent if parent is None else f"u{parent}", "sessionId": "s1"}
    return {"type": role, **named, "message": message, **others}


CLAUDE_CODE = [
    {"type": "summary", "summary": "x", "leafUuid": "u9"},
    line(0, "user", "Find it.", None),
    line(1, "assistant", "It is nowhere.", 0),  # a branch that was left
    line(8, "assistant", "Of a sub-agent.", 0, isSidechain=True),
    line(2, "assistant", [{"type": "text", "text": "I look."}, USE], 0),
    line(3, "user", [SEEN], 2),
    line(4, "assistant", [{"type": "text", "text": "It is on C4."}], 3),
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "s1"}},
    {
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Find it."}]},
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Find it."}},
    {
        "type": "response_item",
        "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I look."}]},
    },
    {"type": "response_item", "payload": {"type": "function_call", "name": "find", "arguments": '{"title": "Blue"}'}},
    {"type": "response_item", "payload": {"type": "function_call_output", "output": "shelf C4"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is on C4."}],
        },
    },
]
OPENHANDS = [
    {"id": 0, "source": "agent", "action": "system", "args": {"content": "rules"}},
    {"id": 1, "source": "user", "action": "message", "args": {"content": "Find it."}},
    {
        "id": 2,
        "source": "agent",
        "action": "call_tool_mcp",
        "args": {"name": "find", "arguments": {"title": "Blue"}, "thought": "I look."},
    },
    {"id": 3, "source": "environment", "observation": "mcp", "content": "shelf C4"},
    {"id": 4, "source": "agent", "action": "finish", "args": {"final_thought": "It is on C4."}},
]
ATIF = {
    "schema_version": "ATIF-v1.4",
    "session_id": "s1",
    "steps": [
        {"step_id": 1, "source": "system", "message": "rules"},
        {"step_id": 2, "source": "user", "message": "Find it."},
        {
            "step_id": 3,
            "source": "agent",
            "message": "I look.",
            "tool_calls": [{"function_name": "find", "arguments": {"title": "Blue"}}],
            "observation": {"results": [{"content": "shelf C4"}]},
        },
        {"step_id": 4, "source": "agent", "message": "It is on C4."},
    ],
}
SMOLAGENTS = {
    "name": "s1",
    "steps": [
        {"task": "Find it."},
        {"plan": "1. Look."},
        {
            "step_number": 1,
            "model_output": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": {"title": "Blue"}}}
            ],
            "observations": "shelf C4",
        },
        {"step_number": 2, "model_output": "It is on C4.", "tool_calls": None, "observations": ""},
    ],
}
OLDER_CODEX = [
    {"id": "s1", "timestamp": "2025-07-03T10:00:00.000Z", "instructions": None, "git": {}},
    *(one["payload"] for one in CODEX if one["type"] == "response_item"),
]
OLDER_CODEX.insert(2, {"record_type": "state"})
PRINTED = [
    {"type": "system", "subtype": "init", "session_id": "s1"},
    *(
        {
            "type": one["type"],
            "session_id": "s1",
            "message": one["message"],
            "parent_tool_use_id": one.get("isSidechain"),
        }
        for one in CLAUDE_CODE[1:]
        if one["uuid"] != "u1"
    ),
    {"type": "result", "session_id": "s1", "result": "It is on C4."},
]
SDK = [
    {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": {"type": "text", "text": "rules"}},
    {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": [{"type": "text", "text": "Find it."}]}},
    {
        **{"kind": "ActionEvent", "source": "agent", "thought": [{"type": "text", "text": "I look."}]},
        "tool_call": {"id": "c", "name": "find", "arguments": '{"title": "Blue"}'},
    },
    {"kind": "ObservationEvent", "source": "environment", "observation": {"content": [{"type": "text", "text": "shelf C4"}]}},
    {"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "status", "value": "running"},
    {"kind": "MessageEvent", "source": "agent", "llm_message": {"role": "assistant", "content": "It is on C4."}},
]  # fmt: skip
SMOLAGENTS_STEPS = [
    {"task": "Find it.", "task_images": None},
    {"plan": "1. Look.", "model_output_message": {"role": "assistant", "content": "1. Look."}},
    *(one for one in SMOLAGENTS["steps"] if "step_number" in one),
]
GEMINI_CLI = {
    "sessionId": "s1",
    "messages": [
        {"type": "info", "content": "Welcome."},
        {"type": "user", "content": "Find it."},
        {
            **{"type": "gemini", "content": "I look.", "thoughts": []},
            "toolCalls": [
                {
                    **{"name": "find", "args": {"title": "Blue"}},
                    "result": [{"functionResponse": {"name": "find", "response": {"output": "shelf C4"}}}],
                }
            ],
        },
        {"type": "gemini", "content": "It is on C4."},
    ],
}
SWE_AGENT = {
    "trajectory_id": "s1",
    "trajectory": [],
    "history": [
        {"role": "system", "content": "rules", "message_type": "system_prompt"},
        {"role": "user", "content": "An example.", "is_demo": True},
        {"role": "assistant", "content": "x", "thought": "x", "action": "x", "is_demo": True},
        {"role": "user", "content": "Find it."},
        {
            **{"role": "assistant", "content": "I look.", "thought": "I look.", "action": 'find(title="Blue")\n'},
            "tool_calls": [{"function": {"name": "bash", "arguments": '{"command": "find"}'}}],
        },
        {"role": "tool", "content": [{"type": "text", "text": "shelf C4"}]},
        {"role": "assistant", "content": "It is on C4.", "thought": "", "action": "It is on C4."},
    ],
}
VERIFIERS = {
    "id": "s1",
    "task": {"key": "t-7", "data": {"prompt": "Find it."}},
    "nodes": [
        {"parent": None, "message": {"role": "system", "content": "rules"}},
        {"parent": 0, "message": {"role": "user", "content": "Find it."}},
        {
            "parent": 1,
            "message": {
                **{"role": "assistant", "content": None, "reasoning_content": "I look."},
                "tool_calls": [{"id": "c", "name": "find", "arguments": '{"title": "Blue"}'}],
            },
        },
        {"parent": 2, "message": {"role": "tool", "content": "shelf C4"}},
        {"parent": 3, "message": {"role": "assistant", "content": "It is on C4."}},
    ],
    "rewards": {"right": {"score": 1.0, "weight": 0.75}, "format": {"score": 0.0, "weight": 0.25}},
}
FOUND = ['find(title="Blue")', "It is on C4."]


def episodes(tmp_path, content: object, name: str = "a.jsonl", *, success: bool | None = None) -> list[Episode]:
    """Return the episodes in a file of records, or of text, with this outcome where they have none."""
    written = content if isinstance(content, str) else "\n".join(map(json.dumps, content))
    (tmp_path / name).write_text(written)
    constants = {} if success is None else {"success": success}
    return list(episodes_in({name: tmp_path / name}, LogMapping(constants=constants)))


def actions(one: Episode) -> list[str]:
    assert not one.reason, one.reason
    return [row["action"] for row in one.rows]


@pytest.mark.parametrize(
    ("records", "name", "kind"),
    [
        (CLAUDE_CODE, "s1", "claude_code"),
        (PRINTED, "s1", "claude_code"),
        (CODEX, "s1", "codex"),
        (OLDER_CODEX, "s1", "codex"),
        (OPENHANDS, "events", "openhands"),
        ([{"instance_id": "i1", "history": OPENHANDS}], "i1", "openhands"),
        ([{"instance_id": "i1", "history": [OPENHANDS[:2], OPENHANDS[2:4], OPENHANDS[4:]]}], "i1", "openhands"),
        (SDK, "events", "openhands_sdk"),
        ([{"instance_id": "i1", "history": SDK}], "i1", "openhands_sdk"),
        ([GEMINI_CLI], "s1", "gemini_cli"),
        ([SWE_AGENT], "s1", "swe_agent"),
        ([VERIFIERS], "s1", "verifiers"),
        ([ATIF], "s1", "atif"),
        ([SMOLAGENTS | {"trajectory_id": "s1"}], "s1", "smolagents"),
        (SMOLAGENTS_STEPS, "memory", "smolagents"),
    ],
)
def test_every_session_is_the_same_episode(tmp_path, records, name, kind):
    (one,) = episodes(tmp_path, records, success=True)
    assert actions(one) == FOUND
    assert one.kind == kind.replace("_", "-")
    assert [row["thought"] for row in one.rows] == ["I look.", ""]
    assert one.rows[0]["next_state"] == one.rows[1]["state"] == "- line 1: shelf C4"
    assert one.rows[0]["trajectory_id"] == name
    assert one.rows[-1]["instruction"] == "Find it."


@pytest.mark.parametrize(
    ("written", "generated"),
    [
        ("system\nrules\nuser\nFind it.\nassistant\n", "I look.\nuser\nshelf C4\nassistant\nIt is on C4."),
        (
            "<|im_start|>system\nrules<|im_end|>\n<|im_start|>user\nFind it.<|im_end|>\n<|im_start|>assistant\n",
            "I look.<|im_end|>\n<|im_start|>user\nshelf C4<|im_end|>\n<|im_start|>assistant\nIt is on C4.<|im_end|>",
        ),
    ],
)
def test_generations_of_verl_are_turns_with_a_score(tmp_path, written, generated):
    (one,) = episodes(tmp_path, [{"input": written, "output": generated, "score": 0.5, "gts": "C4", "step": 3}])
    assert one.kind == "completions"
    assert actions(one) == ["I look.", "It is on C4."]
    assert [row["reward"] for row in one.rows] == [0.0, 0.5]
    assert one.rows[-1]["instruction"] == "Find it."
    (plain,) = episodes(tmp_path, [{"input": "2 + 2 =", "output": "4", "score": 1, "step": 3}])
    assert (actions(plain), plain.rows[-1]["success"]) == (["4"], True)


def test_calls_in_mistrals_template_are_read(tmp_path):
    text = (
        '<s>[AVAILABLE_TOOLS] [{}][/AVAILABLE_TOOLS][INST] Find it.[/INST][TOOL_CALLS] [{"name": "find", "arguments": {}}]</s>'
        '[TOOL_RESULTS] {"content": {"shelf": "C4"}, "call_id": "1"}[/TOOL_RESULTS] It is on C4.</s>'
    )
    (one,) = episodes(tmp_path, [{"id": "a", "text": text, "reward": 1.0}])
    assert actions(one) == ["find()", "It is on C4."]
    assert one.rows[1]["state"] == '- line 1: {"shelf": "C4"}'


def test_openhands_says_how_it_finished_and_pairs_may_lack_an_observation(tmp_path):
    null = {"id": -1, "observation": "null", "content": ""}
    finished = {**OPENHANDS[4], "args": {"outputs": {}, "thought": "It is on C4."}}
    pairs = [[OPENHANDS[1], null], OPENHANDS[2:4], [finished, null]]
    (one,) = episodes(tmp_path, [{"instance_id": "i1", "history": pairs, "report": {"resolved": False}}])
    assert (actions(one), one.rows[-1]["success"]) == (FOUND, False)
    silent = [*OPENHANDS[:4], {**OPENHANDS[4], "args": {}}]
    (one,) = episodes(tmp_path, silent, success=True)
    assert actions(one) == [FOUND[0], "finish()"]


def test_a_folder_with_a_file_for_each_event_is_an_episode(tmp_path):
    numbered = [{**event, "id": number} for number, event in enumerate(OPENHANDS, 7)]
    files = {}
    for session in ("a", "b"):
        (tmp_path / session / "events").mkdir(parents=True)
        for event in numbered:
            name = f"{session}/events/{event['id']}.json"
            (tmp_path / name).write_text(json.dumps(event))
            files[name] = tmp_path / name
    found = episodes_in(dict(sorted(files.items())), LogMapping(constants={"success": True}))
    assert [actions(one) for one in found] == [FOUND, FOUND]


WRITTEN = {
    "ChatML": ("<|im_start|>{}\n", "<|im_end|>\n"),
    "Llama 3": ("<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>"),
    "Gemma": ("<start_of_turn>{}\n", "<end_of_turn>\n"),
    "roles on lines": ("{}\n", "\n"),
}


@pytest.mark.parametrize("template", WRITTEN)
def test_a_text_that_a_chat_template_wrote_is_a_conversation(tmp_path, template):
    begin, end = WRITTEN[template]
    said = [("system", "rules"), ("user", "Find it."), ("assistant", "look"), ("user", "shelf C4"), ("assistant", "C4")]
    text = "".join(f"{begin.format(role)}{words}{end}" for role, words in said)
    (one,) = episodes(tmp_path, [{"id": "a", "text": text, "reward": 1.0}])
    assert (one.kind, actions(one), one.rows[-1]["reward"]) == ("completions", ["look", "C4"], 1.0)
    assert one.rows[0]["instruction"] == "Find it."


def test_completions_of_trl_have_the_reward_of_their_only_function(tmp_path):
    made = {"step": "40", "prompt": "2 + 2 =", "completion": "4", "right": 1.0, "advantage": 0.7}
    (one,) = episodes(tmp_path, [made])
    assert (actions(one), one.rows[0]["reward"], one.rows[0]["instruction"]) == (["4"], 1.0, "2 + 2 =")
    (named,) = episodes(tmp_path, [{**made, "right": 3, "hung_reward": 0.5}])
    assert named.rows[0]["reward"] == 0.5
    (unknown,) = episodes(tmp_path, [{**made, "short": 0.5}])
    assert "does not say whether it succeeded" in unknown.reason


ASKED = [{"role": "user", "content": "Find it."}]
CALLED = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "find", "arguments": "{}"}}]}
NOW = [*ASKED, CALLED, {"role": "tool", "content": "shelf C4"}]
CONTENTS = [{"role": "user", "parts": [{"text": "Find it."}]}]


@pytest.mark.parametrize(
    ("exchange", "expected"),
    [
        ({"request": {"messages": NOW}, "response": {"choices": [{"message": {"role": "assistant", "content": "C4"}}]}},
         ["find()", "C4"]),
        ({"request": {"contents": CONTENTS},
          "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "C4"}]}}]}}, ["C4"]),
        ({"input": ASKED, "response": {"output": [{"type": "message", "role": "assistant", "content": "C4"}]}}, ["C4"]),
        ({"request": {"body": {"messages": ASKED}},
          "response": {"status_code": 200, "body": {"role": "assistant", "content": [{"type": "text", "text": "C4"}]}}},
         ["C4"]),
        ({"input": "Find it.", "output": [{"type": "function_call", "name": "find", "arguments": "{}"}]}, ["find()"]),
        ({"messages": ASKED, "output": "C4"}, ["C4"]),
        ({"messages": ASKED, "response": "C4"}, ["C4"]),
        ({"messages": ASKED, "output": [{"role": "assistant", "content": "C4"}]}, ["C4"]),
        ({"request_body": {"messages": ASKED}, "response_body": {"choices": [{"message": CALLED}]}}, ["find()"]),
        ({"responses_create_params": {"input": ASKED},
          "response": {"output": [{"type": "function_call", "name": "find", "arguments": "{}"},
                                  {"type": "function_call_output", "output": "shelf C4"},
                                  {"type": "message", "role": "assistant", "content": "C4"}]}}, ["find()", "C4"]),
    ],
)  # fmt: skip
def test_a_request_and_its_response_are_a_conversation(tmp_path, exchange, expected):
    (one,) = episodes(tmp_path, [{**exchange, "score": 1.0}])
    assert (one.kind, actions(one), one.rows[-1]["success"]) == ("exchanges", expected, True)


def test_exchanges_of_one_session_are_one_episode(tmp_path):
    first = {"request": {"messages": ASKED}, "response": {"choices": [{"message": CALLED}]}, "timestamp": "2026-01-01"}
    answer = {"choices": [{"message": {"role": "assistant", "content": "C4"}}]}
    second = {"request": {"messages": NOW}, "response": answer, "timestamp": "2026-01-02", "reward": 1}
    (one,) = episodes(tmp_path, [{**part, "session_id": "s1"} for part in (second, first)])
    assert (actions(one), one.rows[-1]["reward"], one.rows[0]["trajectory_id"]) == (["find()", "C4"], 1.0, "s1")


def test_exchanges_that_are_sent_all_before_again_are_one_episode(tmp_path):
    other = {"request": {"messages": ASKED}, "response": {"choices": [{"message": {**CALLED, "content": "Other."}}]}}
    first = {"request": {"messages": ASKED}, "response": {"choices": [{"message": CALLED}]}}
    answer = {"choices": [{"message": {"role": "assistant", "content": "C4"}}]}
    alone, grown = episodes(tmp_path, [other, first, {"request": {"messages": NOW}, "response": answer}], success=True)
    assert [len(one.rows) for one in (alone, grown)] == [1, 2]
    assert actions(grown) == ["find()", "C4"]
    broken = {"request": {"messages": ASKED}, "response": {"choices": [{}]}}
    bad, *same = sorted(episodes(tmp_path, [other, other, broken], success=True), key=lambda one: len(one.rows))
    assert (bad.rows, bool(bad.reason)) == ([], True)
    assert len({one.rows[0]["trajectory_id"] for one in same}) == 2, "the same answer to the same question, twice"


@pytest.mark.parametrize("named", [{}, {"trace_id": "t"}])
def test_a_request_that_failed_is_no_turn_and_the_next_one_goes_on(tmp_path, named):
    answers = [{"choices": [{"message": one}]} for one in (CALLED, {"role": "assistant", "content": "C4"})]
    failed = {"messages": NOW, "response": None, "status": "failure"}
    sent = [{"messages": ASKED, "response": answers[0]}, failed, {"messages": NOW, "response": answers[1]}]
    logged = [{**one, **named, "timestamp": number} for number, one in enumerate(sent, 1)]
    (one,) = episodes(tmp_path, logged, success=True)
    assert actions(one) == ["find()", "C4"]


def test_invocations_that_bedrock_logs_are_exchanges(tmp_path):
    asked = {"messages": [{"role": "user", "content": [{"text": "Find it."}]}]}
    answered = {"output": {"message": {"role": "assistant", "content": [{"text": "C4"}]}}}
    record = {"requestId": "r1", "input": {"inputBodyJson": asked}, "output": {"outputBodyJson": answered}}
    (one,) = episodes(tmp_path, [{"timestamp": "2026-01-01", **record}], success=True)
    assert (one.kind, one.rows[0]["state"], actions(one)) == ("exchanges", "- line 1: Find it.", ["C4"])


def test_webshop_ends_with_its_score_and_what_only_thinks_is_a_thought(tmp_path):
    text = (
        "WebShop\nInstruction:\ni need a towel\n\nAction: search[towel]\nObservation:\n[B07]\n\nAction: think[B07 fits.]\n"
        "Observation: OK.\n\nAction: click[B07]\nObservation: Your score (min 0.0, max 1.0): 1.0\n"
    )
    (one,) = episodes(tmp_path, text, "a.txt")
    assert (actions(one), one.rows[-1]["thought"]) == (["search[towel]", "click[B07]"], "B07 fits.")
    assert ("i need a towel" in one.rows[0]["instruction"], one.rows[-1]["reward"]) == (True, 1.0)


PAGES = [
    ("s7", {}),
    ("search_results/s7/['red',%20'mug']/1", {"keywords": ["red", "mug"], "search_result_asins": ["B01"], "page": 1}),
    ("search_results/s7/['red',%20'mug']/2", {"keywords": ["red", "mug"], "search_result_asins": ["B07"], "page": 2}),
    (
        "item_page/s7/B07/['red',%20'mug']/2/{}",
        {"keywords": "['red', 'mug']", "page": "2", "asin": "B07", "options": {}},
    ),
    (
        "item_sub_page/s7/B07/['red',%20'mug']/2/Description/{}",
        {"keywords": "['red', 'mug']", "page": "2", "asin": "B07", "options": {}},
    ),
    (
        "item_page/s7/B07/['red',%20'mug']/2/{}",
        {"keywords": "['red', 'mug']", "page": "2", "asin": "B07", "options": {}},
    ),
    (
        "item_page/s7/B07/['red',%20'mug']/2/{'size':%20'Large'}",
        {"keywords": "['red', 'mug']", "page": "2", "asin": "B07", "options": {"size": "Large"}},
    ),
    ("done/s7/B07/{'size':%20'Large'}", {"asin": "B07", "options": {"size": "Large"}, "price": 9.5}),
]
"""Pages that a shop logs while somebody looks for a red mug and buys one: addresses, and what it notes of each."""
BOUGHT = [
    *("search[red mug]", "click[next >]", "click[b07]", "click[description]", "click[< prev]", "click[large]"),
    "click[buy now]",
]


def pages(*chosen: int) -> list[dict]:
    """Return the lines of a session with these pages."""
    lines = []
    for address, content in (PAGES[number] for number in chosen):
        page = address.split("/")[0] if "/" in address else "index"
        about = {"url": f"http://shop:3000/{address}", "goal": {"asin": "B07", "instruction_text": "Buy a red mug."}}
        noted = {"content": {**content, "my_thing": "yolo"}} if content else {"my_thing": "yolo"}
        paid = {"reward": 0.75, "reward_info": {"r_type": 1.0}} if page == "done" else {}
        lines.append({"page": page, **about, **noted, **paid})
    return lines


def test_what_a_person_clicked_in_webshop_follows_from_the_pages(tmp_path):
    (one,) = episodes(tmp_path, pages(0, 1, 1, *range(2, 8)))
    assert actions(one) == BOUGHT
    assert one.remarks == ("pages that were loaded again, which were left out",)
    assert (one.rows[0]["instruction"], one.rows[0]["trajectory_id"]) == ("Buy a red mug.", "s7")
    assert one.rows[1]["state"] == (
        '- line 1: page: search_results\n- line 2: keywords: red mug\n- line 3: number: 1\n- line 4: search_result_asins: ["B01"]'
    )
    assert one.rows[4]["state"].splitlines()[:2] == ["- line 1: page: item_sub_page", "- line 2: tab: description"]
    last = one.rows[-1]
    assert (last["reward"], last["success"], last["truncated"]) == (0.75, False, False)


def test_a_session_without_a_purchase_was_given_up(tmp_path):
    (one,) = episodes(tmp_path, pages(0, 1, 0, 1))
    assert actions(one) == ["search[red mug]", "click[back to search]", "search[red mug]"]
    assert (one.rows[-1]["success"], one.rows[-1]["truncated"]) == (False, True)


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_session_of_which_a_page_is_missing_is_refused(tmp_path, missing):
    (one,) = episodes(tmp_path, pages(*(number for number in range(8) if number != missing)))
    assert "a page between them is missing" in one.reason


def test_a_page_whose_address_names_no_session_is_refused_alone(tmp_path):
    lost, one = episodes(tmp_path, [{**pages(1)[0], "url": "http://shop:3000/"}, *pages(*range(8))])
    assert ("names no session" in lost.reason, actions(one)) == (True, BOUGHT)


def test_calls_in_llamas_template_are_read(tmp_path):
    call = '<|python_tag|>{"name": "find", "parameters": {"title": "Blue"}}'
    said = [("user", "Find it."), ("assistant", call), ("ipython", "shelf C4"), ("assistant", "C4")]
    text = "".join(f"<|start_header_id|>{role}<|end_header_id|>\n\n{words}<|eot_id|>" for role, words in said)
    (one,) = episodes(tmp_path, [{"text": text, "reward": 1.0}])
    assert actions(one) == ['find(title="Blue")', "C4"]


def test_responses_that_name_the_one_before_are_one_episode_each_chain(tmp_path):
    def exchange(number: int, before: str | None, sent: dict, output: dict) -> dict:
        response = {"id": f"r{number}", "created_at": number, "output": [output], "previous_response_id": before}
        return {"request": {"input": [sent]}, "response": response}

    call, said = {"type": "function_call", "name": "find", "arguments": "{}"}, {"role": "assistant", "content": "C4"}
    seen = {"type": "function_call_output", "output": "shelf C4"}
    some = [exchange(3, "r1", seen, said), exchange(1, None, *ASKED, call), exchange(2, None, *ASKED, said)]
    first, second = episodes(tmp_path, some, success=True)
    assert [actions(one) for one in (first, second)] == [["find()", "C4"], ["C4"]]
    assert [one.rows[0]["trajectory_id"] for one in (first, second)] == ["r1", "r2"]


def test_an_error_that_the_program_writes_for_the_agent_is_none_of_its_messages(tmp_path):
    error = line(9, "assistant", "API Error: 529", 3, isApiErrorMessage=True)
    session = [*CLAUDE_CODE[:-1], error, {**CLAUDE_CODE[-1], "parentUuid": "u9"}]
    assert actions(*episodes(tmp_path, session, success=True)) == FOUND


def test_a_message_without_a_parent_follows_the_line_before_it(tmp_path):
    compacted = [*CLAUDE_CODE[:-2], {**CLAUDE_CODE[-2], "parentUuid": None}, CLAUDE_CODE[-1]]
    (one,) = episodes(tmp_path, compacted, success=True)
    assert actions(one) == FOUND


def test_a_thought_of_openhands_is_a_tool_of_its_own(tmp_path):
    thought = {"id": 2, "source": "agent", "action": "think", "args": {"thought": "I look."}}
    logged = {"id": 3, "source": "agent", "observation": "think", "content": "It was logged."}
    (one,) = episodes(tmp_path, [*OPENHANDS[:2], thought, logged, *OPENHANDS[2:]], success=True)
    assert actions(one) == ['think(thought="I look.")', *FOUND]


def test_two_sessions_may_be_in_one_file_and_a_report_is_a_verdict(tmp_path):
    other = [{**one, "sessionId": "s2"} for one in CLAUDE_CODE if "sessionId" in one]
    both = [one for pair in zip(CLAUDE_CODE[1:], other, strict=True) for one in pair]
    assert [actions(one) for one in episodes(tmp_path, both, success=True)] == [FOUND, FOUND]
    record = {"instance_id": "i1", "history": OPENHANDS, "test_result": {"report": {"resolved": False}}}
    (one,) = episodes(tmp_path, [record])
    assert (one.rows[-1]["done"], one.rows[-1]["success"]) == (True, False)


def rows(name: object, *rewards: float, terminated: bool = True) -> list[dict]:
    last = len(rewards) - 1
    return [
        {
            "episode_id": name,
            "step": number,
            "observation": f"door {number}",
            "action": f"go {number}",
            "reward": reward,
            "terminated": terminated and number == last,
            "truncated": False,
        }
        for number, reward in enumerate(rewards)
    ]


def test_rows_of_episodes_may_lie_amid_each_other_and_out_of_order(tmp_path):
    one, other = rows(0, 0.0, 0.5, 1.0), rows("b", 0.0, 0.0, 0.0, terminated=False)
    found = episodes(tmp_path, [one[2], other[0], one[0], other[1], one[1], other[2]])
    assert [actions(each) for each in found] == [["go 0", "go 1", "go 2"]] * 2
    assert [row["reward"] for row in found[0].rows] == [0.0, 0.5, 1.0]
    assert [
        (each.rows[-1]["trajectory_id"], each.rows[-1]["success"], each.rows[-1]["truncated"]) for each in found
    ] == [
        ("0", True, False),
        ("b", False, True),
    ]
    assert [row["state"] for row in found[0].rows] == ["- line 1: door 0", "- line 1: door 1", "- line 1: door 2"]


@pytest.mark.parametrize("apart", [{"seed": 1}, {"trial": 1}, {}])
def test_episodes_of_one_name_are_told_apart(tmp_path, apart):
    again = [{**row, **apart} for row in rows(7, 0.0, 0.0)]
    first, second = episodes(tmp_path, [*rows(7, 0.0, 1.0), *again])
    assert [row["reward"] for row in first.rows] == [0.0, 1.0]
    assert [row["reward"] for row in second.rows] == [0.0, 0.0]


def test_an_episode_with_a_step_missing_is_refused(tmp_path):
    (one,) = episodes(tmp_path, [row for row in rows("e", 0.0, 0.0, 0.0, 1.0) if row["step"] != 2])
    assert (one.rows, one.reason) == ([], "step 2 is missing")
    undone = rows("e", 0.0, 0.0, 1.0)
    undone[1]["action"] = None
    (one,) = episodes(tmp_path, undone)
    assert (one.rows, one.reason) == ([], "a step amid it has no action")
    unnamed = [
        {key: value for key, value in row.items() if key != "episode_id"} for row in [*undone, *rows("f", 0.0, 1.0)]
    ]
    bad, good = episodes(tmp_path, unnamed)
    assert (bad.reason, len(good.rows)) == ("a step amid it has no action", 2)
    twice = [row for pair in zip(rows("e", 0.0, 1.0), rows("e", 0.0, 1.0), strict=True) for row in pair]
    (one,) = episodes(tmp_path, twice)
    assert one.reason == "its steps stand twice, and nothing tells its episodes apart"


def test_a_last_row_without_an_action_is_what_was_seen_at_the_end(tmp_path):
    *acted, last = rows("e", 0.0, 0.0, 1.0)
    (one,) = episodes(tmp_path, [*acted, {**last, "action": None}])
    assert [row["reward"] for row in one.rows] == [0.0, 1.0]
    assert (one.rows[-1]["next_state"], one.rows[-1]["done"]) == (f"- line 1: {last['observation']}", True)


def test_the_last_step_of_rlds_is_what_was_seen_at_the_end_and_has_no_reward(tmp_path):
    steps = [
        {"observation": f"door {n}", "action": f"go {n}" if n < 2 else "", "reward": float(n == 1), "is_last": n == 2}
        for n in range(3)
    ]
    (one,) = episodes(tmp_path, [{"steps": [*steps[:-1], steps[-1] | {"is_terminal": True}]}])
    assert (actions(one), [row["reward"] for row in one.rows]) == (["go 0", "go 1"], [0.0, 1.0])
    assert (one.rows[-1]["next_state"], one.rows[-1]["done"]) == ("- line 1: door 2", True)
    (one,) = episodes(tmp_path, [{"steps": [*steps[:-1], steps[-1] | {"is_terminal": False}]}])
    assert one.rows[-1]["truncated"]


def test_columns_of_several_episodes_are_cut_where_each_ends(tmp_path):
    columns = {
        **{"observations": [f"door {n}" for n in range(5)], "actions": [f"go {n}" for n in range(5)]},
        **{"rewards": [0.0, 1.0, 0.0, 0.5, 0.0], "terminals": [False, True, False, False, False]},
        "timeouts": [False, False, False, True, False],
    }
    won, stopped, cut_off = episodes(tmp_path, [columns])
    assert [actions(one) for one in (won, stopped, cut_off)] == [["go 0", "go 1"], ["go 2", "go 3"], ["go 4"]]
    assert [[row["reward"] for row in one.rows] for one in (won, stopped)] == [[0.0, 1.0], [0.0, 0.5]]
    ends = [(one.rows[-1]["done"], one.rows[-1]["truncated"]) for one in (won, stopped, cut_off)]
    assert ends == [(True, False), (False, True), (False, True)]
    one_reward = {"observations": ["a", "b"], "actions": ["go", "go"], "rewards": [1.0], "dones": [False, True]}
    (one,) = episodes(tmp_path, [one_reward])
    assert (len(one.rows), one.rows[-1]["reward"], one.rows[-1]["done"]) == (2, 1.0, True)


def test_what_is_written_after_a_thought_and_an_action_is_their_result(tmp_path):
    steps = [
        {"thought": "look", "action": "go", "observation": "a pen"},
        {"thought": "", "action": "take", "observation": "ok"},
    ]
    (one,) = episodes(tmp_path, [{"task": "Find the pen.", "success": True, "steps": steps}])
    assert [row["state"] for row in one.rows] == ["- line 1: Find the pen.", "- line 1: a pen"]
    assert (one.rows[-1]["next_state"], actions(one)) == ("- line 1: ok", ["go", "take"])
    swe_agent = [{"action": "ls", "observation": "a.py", "response": "Look.", "thought": "Look."}]
    (one,) = episodes(tmp_path, [{"problem_statement": "Fix it.", "resolved": 1, "trajectory": swe_agent}])
    assert (one.rows[0]["state"], one.rows[0]["next_state"]) == ("- line 1: Fix it.", "- line 1: a.py")


def test_results_of_calls_made_at_once_are_kept_though_each_has_another_parent(tmp_path):
    other = line(5, "assistant", [{**USE, "input": {"title": "Red"}}], 2)
    last = line(7, "assistant", "Both are there.", 6)
    both = [*CLAUDE_CODE[:5], other, line(3, "user", [SEEN], 2), line(6, "user", [SEEN], 5), last]
    (one,) = episodes(tmp_path, both, success=True)
    assert actions(one)[0] == 'find(title="Blue"); find(title="Red")'
    assert one.rows[0]["next_state"] == "- line 1: shelf C4\n- line 2: shelf C4"


def test_what_the_program_says_is_neither_the_users_nor_the_agents(tmp_path):
    cost = line(9, "user", "<command-name>/cost</command-name>", 3)
    (one,) = episodes(tmp_path, [*CLAUDE_CODE[:6], cost, line(4, "assistant", "It is on C4.", 9)], success=True)
    assert one.rows[0]["next_state"] == "- line 1: shelf C4"
    about = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>x"}]}
    (one,) = episodes(tmp_path, [CODEX[0], {"type": "response_item", "payload": about}, *CODEX[1:]], success=True)
    assert one.rows[0]["instruction"] == "Find it."
    condensed = {"id": 9, "source": "agent", "action": "condensation", "args": {"summary": "x"}}
    (one,) = episodes(tmp_path, [*OPENHANDS, condensed], success=True)
    assert actions(one) == ['find(title="Blue")', "It is on C4."]


def test_a_printed_session_that_ran_out_of_turns_was_stopped(tmp_path):
    end = {"type": "result", "subtype": "error_max_turns", "session_id": PRINTED[0]["session_id"]}
    (one,) = episodes(tmp_path, [*[row for row in PRINTED if row["type"] != "result"], end], success=False)
    assert (one.rows[-1]["truncated"], one.rows[-1]["done"]) == (True, False)


def test_rows_of_messages_may_be_in_order_of_time_alone(tmp_path):
    said = [("user", "u1", 1), ("assistant", "a2", 4), ("user", "u2", 3), ("assistant", "a1", 2)]
    (one,) = episodes(
        tmp_path,
        [
            {"session_id": 0, "role": role, "content": text, "created_at": f"2025-01-01T00:00:0{second}Z"}
            for role, text, second in said
        ],
        success=True,
    )
    assert [(row["state"], row["action"]) for row in one.rows] == [("- line 1: u1", "a1"), ("- line 1: u2", "a2")]


def test_results_beside_steps_are_no_episodes(tmp_path):
    steps = [{"observation": "dark", "action": "light"}, {"observation": "lit", "action": "leave"}]
    (one,) = episodes(tmp_path, [{"steps": steps, "results": [{"name": "score"}], "success": True}])
    assert actions(one) == ["light", "leave"]


def test_rows_of_messages_are_conversations_by_their_names_and_numbers(tmp_path):
    csv = "conversation_id,turn,role,content,success\na,1,assistant,C4,true\nb,0,user,Hm?,\na,0,user,Find it.,\nb,1,assistant,No.,0\n"
    first, second = episodes(tmp_path, csv, "a.csv")
    assert [(actions(one), one.rows[-1]["success"], one.rows[0]["trajectory_id"]) for one in (first, second)] == [
        (["C4"], True, "a"),
        (["No."], False, "b"),
    ]
    stored = [
        {"id": 1, "session_id": "s", "message": json.dumps({"type": "human", "data": {"content": "Find it."}})},
        {"id": 2, "session_id": "s", "message": json.dumps({"type": "ai", "data": {"content": "C4"}})},
    ]
    (one,) = episodes(tmp_path, stored, success=True)
    assert (one.kind, actions(one)) == ("message-rows", ["C4"])


def test_rows_that_name_no_episode_are_one_up_to_its_end(tmp_path):
    won, stopped = ([{**row, "t": 0} for row in rows("x", 0.0, reward)] for reward in (1.0, 0.0))
    stopped[-1] |= {"terminated": False, "truncated": True}
    unnamed = [{name: value for name, value in row.items() if name != "episode_id"} for row in (*won, *stopped)]
    first, second = episodes(tmp_path, unnamed)
    assert [(len(one.rows), one.rows[-1]["reward"], one.rows[-1]["truncated"]) for one in (first, second)] == [
        (2, 1.0, False),
        (2, 0.0, True),
    ]


def test_steps_may_be_in_one_record_with_what_follows_and_calls(tmp_path):
    steps = [
        {"obs": "a door", "action": {"name": "open", "arguments": {"door": 1}}, "next_obs": "a hall", "thought": "in"},
        {"obs": "a hall", "action": "look", "next_obs": "a lamp"},
    ]
    (one,) = episodes(tmp_path, [{"id": "e1", "goal": "get in", "steps": steps, "success": True}])
    assert actions(one) == ["open(door=1)", "look"]
    assert (one.rows[0]["thought"], one.rows[-1]["next_state"]) == ("in", "- line 1: a lamp")
    assert (one.rows[0]["instruction"], one.rows[0]["trajectory_id"]) == ("get in", "e1")


def test_a_table_in_text_has_numbers_and_truth_in_words(tmp_path):
    table = "episode,step,obs,action,reward,done\n0,10,door 10,wait,1,True\n0,9,door 9,go 9,0,False\n1,0,door 0,go 0,0,False\n"
    won, stopped = episodes(tmp_path, table, "a.csv")
    assert actions(won) == ["go 9", "wait"], "10 comes after 9"
    assert [row["reward"] for row in won.rows] == [0.0, 1.0]
    assert (won.rows[-1]["success"], stopped.rows[-1]["truncated"]) == (True, True)


def test_states_and_actions_may_be_lists_beside_each_other(tmp_path):
    lists = {"goal": "buy", "states": ["page 1", "page 2", "bought"], "actions": ["search[kettle]", "click[buy]"]}
    (one,) = episodes(tmp_path, [lists | {"reward": 1.0}])
    assert actions(one) == ["search[kettle]", "click[buy]"]
    assert one.rows[-1]["next_state"] == "- line 1: bought"
    (without_end,) = episodes(tmp_path, [lists | {"states": lists["states"][:2], "success": True}])
    assert actions(without_end) == actions(one)
    (uneven,) = episodes(tmp_path, [lists | {"states": ["page 1"], "success": True}])
    assert "no log of a known format" in uneven.reason


def test_a_trajectory_of_agent_reward_bench_has_its_reward_in_a_summary(tmp_path):
    steps = [{"num": n, "axtree": f"page {n}", "action": f"click('{n}')", "reasoning": "on"} for n in range(2)]
    summary = {"cum_reward": 1.0, "terminated": True, "truncated": False}
    (one,) = episodes(tmp_path, [{"benchmark": "webarena", "goal": "buy", "steps": steps, "summary_info": summary}])
    assert actions(one) == ["click('0')", "click('1')"]
    last = one.rows[-1]
    assert (last["instruction"], last["success"], last["truncated"]) == ("buy", True, False)
    ended = [*steps, {"num": 2, "axtree": "bought", "action": None, "reasoning": None}]
    (one,) = episodes(tmp_path, [{"goal": "buy", "steps": ended, "summary_info": summary}])
    assert (len(one.rows), one.rows[-1]["next_state"]) == (2, "- line 1: bought")


def step(name: str, done: object, **result: object) -> dict:
    output = {"next_goal": "search", "action": [{name: done}]}
    return {"model_output": output, "result": [result], "state": {"url": "http://w", "title": "Shop", "tabs": []}}


@pytest.mark.parametrize(("end", "success", "truncated"), [(True, True, False), (False, False, True)])
def test_a_history_of_browser_use_says_how_it_ended(tmp_path, end, success, truncated):
    first = step("input_text", {"index": 1, "text": "mug"}, is_done=False, extracted_content="typed")
    ended = {"is_done": True, "success": True} if end else {"is_done": False}
    (one,) = episodes(tmp_path, [{"history": [first, step("done", {"text": "Red mug"}, **ended)]}])
    assert actions(one) == ['input_text(index=1, text="mug")', 'done(text="Red mug")']
    assert one.rows[1]["state"] == "- line 1: url: http://w\n- line 2: title: Shop\n- line 3: typed"
    assert (one.rows[-1]["success"], one.rows[-1]["truncated"]) == (success, truncated)
    assert one.rows[0]["thought"] == "search"


def test_a_demonstration_of_mind2web_has_pages_and_operations(tmp_path):
    done = [("<input id=1>", "TYPE", "red mug"), ("<button id=2>", "CLICK", "")]
    made = [{"cleaned_html": page, "operation": {"op": op, "value": value}} for page, op, value in done]
    (one,) = episodes(
        tmp_path, [{"annotation_id": "a1", "confirmed_task": "Find a mug", "actions": made}], success=True
    )
    assert actions(one) == ["TYPE red mug", "CLICK"]
    assert (one.rows[0]["instruction"], one.rows[0]["trajectory_id"]) == ("Find a mug", "a1")


def test_a_table_of_mind2web_has_a_row_for_each_operation(tmp_path):
    made = [
        {
            **{"annotation_id": "a1", "confirmed_task": "Find a mug", "target_action_index": number},
            **{"cleaned_html": page, "operation": json.dumps({"op": op, "value": ""})},
        }
        for number, page, op in (("1", "<b>", "CLICK"), ("0", "<a>", "TYPE"))
    ]
    (one,) = episodes(tmp_path, made, success=True)
    assert actions(one) == ["TYPE", "CLICK"]
    assert (one.rows[0]["state"], one.rows[0]["trajectory_id"]) == ("- line 1: <a>", "a1")


REFLEXION = """\
You see a desk 1. Your task is to: put a pen in shelf.

> think: I need a pen.
OK.
> take pen 1
You pick up the pen 1.
> put pen 1 in shelf 1
You put it there.

STATUS: OK
You see a bed 1. Your task is to: find a lamp.
> look
Nothing.
STATUS: FAIL
"""
HOTPOT = """\
Question: Where is the tower?
Thought 1: I search for it.
Action 1: Search[tower]
Observation 1: It is in Paris.
Action 2: Finish[Paris]
"""


def test_text_of_react_agents_holds_episodes(tmp_path):
    first, second = episodes(tmp_path, REFLEXION, "a.txt")
    assert actions(first) == ["take pen 1", "put pen 1 in shelf 1"]
    assert (first.rows[0]["thought"], first.rows[0]["instruction"]) == ("I need a pen.", "put a pen in shelf")
    assert [one.rows[-1]["success"] for one in (first, second)] == [True, False]
    assert first.rows[0]["next_state"] == "- line 1: You pick up the pen 1."
    shown = "Environment #0:\nExamples.\n> take mug 9\nTaken.\nHere is the task:\n"
    again, _ = episodes(tmp_path, f"#####\n{shown}{REFLEXION}#####\n", "a.log")
    assert [row["action"] for row in again.rows] == actions(first)
    notebook = "You see a desk 1.\nAct 1: think: A pen?\nObs 1: OK.\nAct 2: take pen 1\nObs 2: Taken.\n1 r 1 rs [1]\n"
    (printed,) = episodes(tmp_path, notebook, "d.txt")
    assert (actions(printed), printed.rows[-1]["success"]) == (["take pen 1"], True)
    (one,) = episodes(tmp_path, HOTPOT, "b.txt", success=True)
    assert actions(one) == ["Search[tower]", "Finish[Paris]"]
    assert (one.rows[0]["thought"], one.rows[1]["state"]) == ("I search for it.", "- line 1: It is in Paris.")
    chain = "Question: Which?\nThought: Look.\nAction: find\nAction Input: mug\nObservation: M8\nFinal Answer: M8\n"
    (one,) = episodes(tmp_path, chain, "e.txt", success=True)
    assert actions(one) == ["find[mug]", "M8"]
    bare = HOTPOT.partition("\n")[2]
    (one,) = episodes(tmp_path, [{"id": "q", "question": "Where is it?", "trajectory": bare, "success": True}])
    assert actions(one) == ["Search[tower]", "Finish[Paris]"]
    assert (one.rows[0]["state"], one.rows[-1]["success"]) == ("- line 1: Where is it?", True)
    right, wrong = (HOTPOT + f"Observation 2: Answer is {verdict}\n" for verdict in ("CORRECT", "INCORRECT"))
    assert [one.rows[-1]["success"] for one in episodes(tmp_path, right + wrong, "c.txt")] == [True, False]


def test_actions_that_are_named_are_taken_and_a_greeting_is_none(tmp_path):
    said = [
        "Rules.",
        "OK.",
        "You see a desk.",
        "THOUGHT: A pen?\nACTION: go to desk",
        "A pen.",
        "THOUGHT: Yes.\nACTION: take pen",
    ]
    chat = [{"from": "gpt" if n % 2 else "human", "value": text} for n, text in enumerate(said)]
    (one,) = episodes(tmp_path, [{"id": 1, "conversations": chat}], success=True)
    assert actions(one) == ["go to desk", "take pen"]
    assert one.rows[0]["thought"] == "THOUGHT: A pen?"
    mixed = [*chat[:-1], {"from": "gpt", "value": "I am done."}]
    (one,) = episodes(tmp_path, [{"id": 1, "conversations": mixed}], success=True)
    assert actions(one)[0] == "OK.", "an agent that does not always name its actions is taken at its word"


def test_a_format_that_nobody_knows_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text("{}")
    with pytest.raises(
        DataError,
        match="format 'csv' of the mapping is not known: there are transitions, chat, langfuse-tables, opik",
    ):
        list(episodes_in({"a.jsonl": tmp_path / "a.jsonl"}, LogMapping(format="csv")))


def test_weighted_rewards_of_verifiers_are_one(tmp_path):
    (one,) = episodes(tmp_path, [VERIFIERS])
    assert (one.rows[-1]["reward"], one.rows[-1]["task_id"]) == (0.75, "t-7")


def test_an_episode_that_ran_out_of_steps_is_no_success_though_nothing_else_is_said(tmp_path):
    chat = {
        "messages": [*ASKED, {"role": "assistant", "content": "I look."}],
        "info": {"exit_status": "LimitsExceeded"},
    }
    (one,) = episodes(tmp_path, [chat])
    last = one.rows[-1]
    assert (last["success"], last["done"], last["truncated"], last["reward"]) == (False, False, True, 0.0)
    assert one.verdict_at == "info.exit_status"


def test_a_file_without_any_part_of_an_episode_is_named(tmp_path):
    (one,) = episodes(tmp_path, [{"type": "summary", "summary": "x", "leafUuid": "u9"}])
    assert one.reason == "is a file without any part of an episode"
    assert episodes(tmp_path, "") == []
