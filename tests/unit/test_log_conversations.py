"""Conversion of conversations and traces to turns: hand-made ones of each kind, and what is refused of them."""

import json

import pytest

from schemas.recipes.log_mapping import LogMapping, MessageMapping
from tasks.logs.conversations import THE_END, Conversation, conversation_of, requests_of
from tasks.logs.messages import value_at
from tasks.logs.tracers import langfuse, mlflow
from tasks.logs.tracers.otlp import spans_of, trace_of

PLAIN = MessageMapping()


def test_sharegpt_messages_alternate_and_system_ones_never_count():
    messages = [
        {"from": "system", "value": "rules"},
        {"from": "human", "value": "a door"},
        {"from": "gpt", "value": "open door"},
        {"from": "human", "value": "a hall"},
    ]
    assert conversation_of(messages, PLAIN) == Conversation(["a door", "a hall"], ["open door"], [""])


def test_states_may_be_all_messages_before_an_answer_as_an_agent_loop_sends_them():
    messages = [
        {"role": "developer", "content": "rules"},
        {"role": "user", "content": [{"type": "text", "text": "a door"}]},
        {"role": "assistant", "content": "Thought: hm.\nopen"},
        {"role": "user", "content": "a hall"},
        {"role": "assistant", "content": "done"},
    ]
    first = '- 1 system: "rules"\n- 2 user: "a door"'
    second = f'{first}\n- 3 assistant: "Thought: hm.\\nopen"\n- 4 user: "a hall"'
    expected = Conversation(
        [first, second, f'{second}\n- 5 assistant: "done"'], ["Thought: hm.\nopen", "done"], ["", ""], "a door"
    )
    assert requests_of(messages, PLAIN) == expected
    called = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": "{}"}}]}
    with pytest.raises(ValueError, match="message 3 has tool calls"):
        requests_of([*messages[:2], called], PLAIN)
    with pytest.raises(ValueError, match="no message of a user"):
        requests_of(messages[2:3], PLAIN)


def test_agenttraj_messages_are_cut_out_of_what_is_said():
    messages = [
        {"from": "human", "value": "You are in a house."},
        {"from": "gpt", "value": "OK"},
        {"from": "human", "value": "Observation: a room"},
        {"from": "gpt", "value": "Thought: the desk\nAction: go to desk 1"},
        {"from": "human", "value": "Observation: a desk"},
    ]
    mapping = MessageMapping(skip=2, action=r"Action:\s*(.+)", observation=r"Observation:\s*(.+)")
    assert conversation_of(messages, mapping) == Conversation(
        ["a room", "a desk"], ["go to desk 1"], ["Thought: the desk"]
    )
    with pytest.raises(ValueError, match="no action in message 2"):
        conversation_of(messages, mapping.model_copy(update={"skip": 0, "observation": ""}))


def test_openai_tool_calls_are_actions_and_what_tools_say_is_seen():
    call = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"city": "Köln", "days": 2}'}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a trip"}]},
        {"role": "assistant", "content": "thinking", "tool_calls": [call, call]},
        {"role": "tool", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "so", "function_call": {"name": "pay", "arguments": ""}},
        {"role": "function", "content": "paid"},
        {"role": "assistant", "content": "booked"},
    ]
    action = 'book(city="Köln", days=2)'
    expected = Conversation(
        ["a trip", "one\ntwo", "paid", THE_END], [f"{action}; {action}", "pay()", "booked"], ["thinking", "so", ""]
    )
    assert conversation_of(messages, PLAIN) == expected


@pytest.mark.parametrize(
    ("message", "thought"),
    [
        ({"content": "<think>\nthe desk\n</think>\n\ngo"}, "the desk"),
        ({"content": "go", "reasoning_content": "the desk"}, "the desk"),
        ({"content": [{"type": "thinking", "thinking": "the desk"}, {"type": "text", "text": "go"}]}, "the desk"),
        ({"content": "<think>the <|im_end|> [state]\x07</think>go"}, "the (im_end) (state)"),
        ({"content": "go"}, ""),
    ],
)
def test_an_agents_own_words_stand_beside_its_action(message, thought):
    talk = conversation_of([{"role": "user", "content": "a room"}, {"role": "assistant", **message}], PLAIN)
    assert (talk.actions, talk.thoughts) == (["go"], [thought])


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "assistant", "content": "hi"}], "no message of an agent"),
        ([{"role": "user", "content": "hi"}], "no message of an agent"),
        ([{"role": "narrator", "content": "hi"}], "role 'narrator' of message 1"),
        ([{"role": "user", "content": [{"type": "image_url", "text": None}]}], "a part that is not text: image_url"),
    ],
)
def test_what_is_not_understood_is_said(messages, reason):
    with pytest.raises(ValueError, match=reason):
        conversation_of(messages, PLAIN)


def test_paths_lead_into_lists_and_names_with_dots():
    record = {"a": {"b": [{"c": 1}]}, "x.y": {"z": 2}}
    assert [value_at(record, path) for path in ("a.b.0.c", "x.y.z", "a.q", "a.b.7")] == [1, 2, None, None]


def attribute(key: str, value: object) -> dict:
    kind = {str: "stringValue", int: "intValue", bool: "boolValue"}[type(value)]
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def test_of_an_opentelemetry_trace_the_fullest_call_is_the_conversation():
    sent = [
        {"role": "user", "parts": [{"type": "text", "content": "a trip"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "1", "name": "book", "arguments": {"days": 2}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": {"ok": True}}]},
    ]
    answered = [{"role": "assistant", "parts": [{"type": "text", "content": "booked"}]}]

    def span(name: str, *attributes: dict) -> dict:
        return {"traceId": "t", "name": name, "attributes": list(attributes)}

    first = span("chat", attribute("gen_ai.input.messages", json.dumps(sent[:1])))
    last = span(
        "chat",
        attribute("gen_ai.input.messages", json.dumps(sent)),
        attribute("gen_ai.output.messages", json.dumps(answered)),
    )
    exports = [
        {"resourceSpans": [{"scopeSpans": [{"spans": [last, span("root", attribute("success", True))]}]}]},
        {"resourceSpans": [{"scopeSpans": [{"spans": [first]}]}]},
    ]
    trace = trace_of("t", [span for export in exports for _, span in spans_of(export)]).record
    assert trace["success"] is True
    talk = conversation_of(trace["messages"], PLAIN)
    assert talk == Conversation(["a trip", '{"ok": true}', THE_END], ["book(days=2)", "booked"], ["", ""])


NUMBERED = {
    "OpenInference": {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "a trip",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "book",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"days": 2}',
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "ok",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "booked",
    },
    "OpenLLMetry": {
        "gen_ai.prompt.template": "no message",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "a trip",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.tool_calls.0.name": "book",
        "gen_ai.prompt.1.tool_calls.0.arguments": '{"days": 2}',
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.content": "ok",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "booked",
    },
}


@pytest.mark.parametrize("by", NUMBERED)
def test_messages_of_numbered_attributes_are_a_conversation_and_no_fields_of_the_record(by):
    attributes = [attribute(name, value) for name, value in reversed(NUMBERED[by].items())]
    record = trace_of("t", [{"traceId": "t", "attributes": [*attributes, attribute("success", True)]}]).record
    talk = conversation_of(record.pop("messages"), PLAIN)
    assert talk == Conversation(["a trip", "ok", THE_END], ["book(days=2)", "booked"], ["", ""])
    assert record == {"trajectory_id": "t", "success": True}


def test_of_a_langfuse_trace_the_fullest_generation_is_the_conversation_and_scores_are_fields():
    asked, answer = [{"role": "user", "content": "a door"}], {"role": "assistant", "content": "open it"}
    first = {"type": "GENERATION", "input": asked, "output": None}
    last = {"type": "GENERATION", "input": {"model": "m", "messages": asked}, "output": answer}
    tool = {"type": "TOOL", "input": {"a": 1}, "output": "2"}
    trace = {"id": "lf", "observations": [last, first, tool], "scores": [{"name": "solved", "value": 1}]}
    assert langfuse.is_trace(trace)
    record = langfuse.conversation_in(trace)
    assert (record["trajectory_id"], record["solved"]) == ("lf", 1)
    assert conversation_of(record["messages"], PLAIN) == Conversation(["a door", THE_END], ["open it"], [""])
    with pytest.raises(ValueError, match="no generation of the trace holds messages"):
        langfuse.conversation_in({"observations": [{"type": "GENERATION"}]})


def test_of_an_mlflow_trace_the_fullest_call_is_the_conversation():
    def span(kind: str, sent: object, answered: object) -> dict:
        told = {"mlflow.spanType": kind, "mlflow.spanInputs": sent, "mlflow.spanOutputs": answered}
        return {"attributes": {name: json.dumps(value) for name, value in told.items()}}

    asked = {"messages": [{"role": "user", "content": "a door"}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": "open it"}}]}
    judged = [{"assessment_name": "success", "feedback": {"value": True}}]
    trace = {
        "info": {"trace_id": "tr-1", "assessments": judged, "tags": {"family": "doors"}},
        "data": {"spans": [span("CHAIN", asked, {}), span("CHAT_MODEL", asked, answer)]},
    }
    record = mlflow.conversation_in(trace)
    assert (record["trajectory_id"], record["success"], record["tags"]["family"]) == ("tr-1", True, "doors")
    assert conversation_of(record["messages"], PLAIN) == Conversation(["a door", THE_END], ["open it"], [""])
    with pytest.raises(ValueError, match="no span of the trace is a call"):
        mlflow.conversation_in({"info": {}, "data": {"spans": [span("CHAIN", asked, {})]}})


def test_a_mapping_refuses_what_it_does_not_know():
    for wrong in (
        {"format": "csv"},
        {"paths": {"nme": "x"}},
        {"messages": {"action": "("}},
        {"messages": {"action": "x"}},
    ):
        with pytest.raises(ValueError, match="validation error"):
            LogMapping.model_validate(wrong)
