"""Traces of agents: each kind in its smallest file, and calls that are joined to one conversation."""

import json
from collections.abc import Iterator

import pytest

from schemas.recipes.log_mapping import LogMapping, MessageMapping
from tasks.logs.conversations import THE_END, Conversation, conversation_of
from tasks.logs.convert import samples
from tasks.logs.known_kinds import kind_of_record, known_kinds
from tasks.logs.log_kind import UNREAD, Recorded
from tasks.logs.tracers.calls import COMPACTED, OTHERS, Call, conversation_of_calls
from tasks.logs.tracers.tool_spans import ACTED, ToolRun, with_tool_runs

PLAIN = MessageMapping()
RULES = {"role": "system", "content": "rules"}
ASKED = {"role": "user", "content": "a trip"}
ARGUMENTS = '{"days": 2}'
BOOK = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "book", "arguments": ARGUMENTS}}]}
OK = {"role": "tool", "content": "ok"}
SAID = {"role": "assistant", "content": "booked"}
SENT = [RULES, ASKED, BOOK, OK]
TRIP = Conversation(["a trip", "ok", THE_END], ["book(days=2)", "booked"], ["", ""])


def attribute(key: str, value: object) -> dict:
    kind = {str: "stringValue", int: "intValue", bool: "boolValue", float: "doubleValue"}[type(value)]
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def parts(*messages: dict) -> str:
    """Return messages as OpenTelemetry's GenAI conventions write them."""
    return json.dumps(list(map(with_parts, messages)))


def with_parts(message: dict) -> dict:
    if message["role"] == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "response": message["content"]}]}
    calls = [
        {"type": "tool_call", "name": "book", "arguments": json.loads(ARGUMENTS)} for _ in message.get("tool_calls", [])
    ]
    texts = [{"type": "text", "content": message["content"]}] if message["content"] else []
    return {"role": message["role"], "parts": [*texts, *calls]}


def span(began: int = 0, **attributes: object) -> dict:
    """Return a span, with underscores for dots in the names of its attributes."""
    told = [attribute(name.replace("__", "."), value) for name, value in attributes.items()]
    return {"traceId": "t", "startTimeUnixNano": str(began), "attributes": told}


def genai(began: int, sent: list[dict], answered: list[dict], **others: object) -> dict:
    messages = {"gen_ai__input__messages": parts(*sent), "gen_ai__output__messages": parts(*answered)}
    return span(began, **messages, **others)


def export(*spans: dict) -> dict:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def console(one: dict) -> dict:
    """Return a span as the console of the SDK writes it."""
    told = {each["key"]: next(iter(each["value"].values())) for each in one["attributes"]}
    return {"name": "chat", "context": {"trace_id": "t"}, "start_time": "2026-01-01T00:00:00Z", "attributes": told}


NUMBERED = {
    "OpenInference": {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.contents.0.message_content.type": "text",
        "llm.input_messages.0.message.contents.0.message_content.text": "a trip",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "book",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": ARGUMENTS,
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
        "gen_ai.prompt.1.tool_calls.0.arguments": ARGUMENTS,
        "gen_ai.prompt.2.role": "tool",
        "gen_ai.prompt.2.content": "ok",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "booked",
    },
}


def event(name: str, **body: object) -> dict:
    values = [{"key": key, "value": value} for key, value in body.items()]
    return {"traceId": "t", "spanId": "s", "eventName": f"gen_ai.{name}", "body": {"kvlistValue": {"values": values}}}


def text(value: str) -> dict:
    return {"stringValue": value}


def record(**values: dict) -> dict:
    return {"kvlistValue": {"values": [{"key": key, "value": value} for key, value in values.items()]}}


EVENTS = [
    event("user.message", content=text("a trip")),
    event(
        "assistant.message",
        tool_calls={"arrayValue": {"values": [record(function=record(name=text("book"), arguments=text(ARGUMENTS)))]}},
    ),
    event("tool.message", content=text("ok")),
    event("choice", message=record(content=text("booked"))),
]


def mlflow_span(kind: str, sent: object, answered: object) -> dict:
    told = {"mlflow.spanType": kind, "mlflow.spanInputs": sent, "mlflow.spanOutputs": answered}
    return {"attributes": {name: json.dumps(value) for name, value in told.items()}}


def mlflow_trace(*spans: dict) -> dict:
    judged = [
        {"assessment_name": "success", "feedback": {"value": True}},
        {"assessment_name": "correct", "expectation": {"value": False}},
    ]
    return {"info": {"trace_id": "t", "assessments": judged}, "data": {"spans": list(spans)}}


def generation(began: str, sent: object, answered: object) -> dict:
    return {"type": "GENERATION", "startTime": began, "input": sent, "output": answered}


def langsmith_run(id: str, kind: str, **fields: object) -> dict:
    return {"id": id, "trace_id": "t", "run_type": kind, "inputs": {}, **fields}


LANGCHAIN = [
    {"type": "human", "content": "a trip"},
    {"type": "ai", "content": "", "tool_calls": [{"name": "book", "args": {"days": 2}, "id": "c"}]},
    {"type": "tool", "content": "ok"},
]
GENERATED = {"generations": [[{"message": {"type": "ai", "content": "booked"}, "text": "booked"}]]}


def observation(second: int, **others: object) -> dict:
    """Return a row of Langfuse's observations, as its exports to blob storage have it."""
    started = f"2026-01-01 00:00:0{second}.000000"
    return {"id": "o", "trace_id": "t", "type": "GENERATION", "name": "chat", "start_time": started, **others}


TRACE_ROW = {"id": "t", "timestamp": "2026-01-01 00:00:00", "bookmarked": False, "input": "a trip", "output": "booked"}

VERCELS_CALL = json.dumps([{"toolName": "book", "input": json.loads(ARGUMENTS)}])
CONTENTS = [
    {"role": "user", "parts": [{"text": "a trip"}]},
    {"role": "model", "parts": [{"function_call": {"name": "book", "args": json.loads(ARGUMENTS)}}]},
    {"role": "user", "parts": [{"function_response": {"name": "book", "response": "ok"}}]},
]


def named_event(name: str, body: dict) -> dict:
    """Return an event of a span that is a message, written as JSON."""
    return {"name": f"gen_ai.{name}", "attributes": [attribute("gen_ai.event.content", json.dumps(body))]}


WEAVES = {"trace_id": "t", "started_at": "2026-01-01T00:00:01Z"}
MODEL = "weave:///acme/trips/op/openai.chat.completions.create:5f1"


def choices(message: dict) -> dict:
    return {"choices": [{"index": 0, "message": message}]}


def weave_call(id: str, name: str, inputs: dict, output: object, parent: str | None = "root") -> dict:
    return {**WEAVES, "id": id, "parent_id": parent, "op_name": name, "inputs": inputs, "output": output}


BRAINTRUST = {"root_span_id": "t", "created": "2026-01-01T00:00:01Z"}
OPIK_SPAN = {"trace_id": "t", "parent_span_id": None, "type": "llm", "start_time": "2026-01-01T00:00:01Z"}
OPIK_TRACE = {
    **{"id": "t", "project_id": "p", "start_time": "2026-01-01T00:00:00Z", "input": {}, "output": {}},
    "feedback_scores": [{"name": "success", "value": 1.0}],
}
OPIK_CALL = {**OPIK_SPAN, "id": "s1", "input": {"messages": SENT}, "output": choices(SAID)}
DATADOGS_RESULT = {"role": "tool", "content": "", "tool_results": [{"result": "ok", "tool_id": "c"}]}
DATADOGS_CALL = {"role": "assistant", "content": "", "tool_calls": [{"name": "book", "arguments": {"days": 2}}]}


def datadog_span(id: str, kind: str, **fields: object) -> dict:
    named = {"span_id": id, "parent_id": "1", "span_kind": kind, "trace_id": "t", "ml_app": "trips", "start_ns": 1.0}
    return {"id": id, "type": "span", "attributes": {**named, **fields}}


TRACES: dict[str, list[dict]] = {
    "weave": [
        weave_call("root", "weave:///acme/trips/op/Agent.run:5f0", {"request": "a trip"}, {"success": True}, None),
        weave_call("m1", MODEL, {"self": {}, "messages": [RULES, ASKED]}, choices(BOOK)),
        {**weave_call("m2", MODEL, {"messages": SENT}, choices(SAID)), "started_at": "2026-01-01T00:00:02Z"},
    ],
    "braintrust": [
        {
            **BRAINTRUST,
            "span_id": "t",
            "span_attributes": {"type": "task"},
            "scores": {"success": 1},
            "input": "a trip",
        },
        {
            **{**BRAINTRUST, "span_id": "m", "span_parents": ["t"], "span_attributes": {"type": "llm"}},
            **{"input": SENT, "output": [{"index": 0, "message": SAID}], "metrics": {"start": 1.5}},
        },
    ],
    "opik": [{"trace": OPIK_TRACE, "spans": [OPIK_CALL]}],
    "opik, rows": [OPIK_CALL, OPIK_TRACE],
    "datadog": [
        datadog_span("1", "agent", parent_id="undefined", evaluations={"success": {"value": True}}),
        datadog_span(
            "2",
            "llm",
            input={"messages": [RULES, ASKED, DATADOGS_CALL, DATADOGS_RESULT]},
            output={"messages": [{"role": "assistant", "content": "booked"}]},
        ),
    ],
    "otel": [export(genai(2, SENT, [SAID], success=True)), export(genai(1, [ASKED], [BOOK]))],
    "otel, in a console": [console(genai(1, SENT, [SAID], success=True))],
    "otel, in an event": [
        export(span(1, success=True) | {"events": [{"attributes": genai(1, SENT, [SAID])["attributes"]}]})
    ],
    "otel, pydantic-ai": [export(span(1, pydantic_ai__all_messages=parts(*SENT[1:], SAID), success=True))],
    "otel, events of what was asked and said": [
        export(
            span(1, success=True)
            | {
                "events": [
                    {"name": f"gen_ai.content.{name}", "attributes": [attribute(f"gen_ai.{name}", json.dumps(told))]}
                    for name, told in (("prompt", SENT), ("completion", [SAID]))
                ]
            }
        )
    ],
    "otel, messages as events": [
        export(
            span(1, success=True)
            | {
                "events": [
                    *(named_event(f"{one['role']}.message", one) for one in SENT),
                    named_event("choice", {"message": SAID}),
                ]
            }
        )
    ],
    "otel, Vercel": [
        export(
            span(1, ai__prompt__messages=json.dumps(SENT), ai__response__text="booked", success=True),
            span(0, ai__prompt__messages=json.dumps([ASKED]), ai__response__toolCalls=VERCELS_CALL),
            span(0, ai__prompt='{"messages": []}'),
        )
    ],
    "otel, ADK": [
        export(
            span(
                1,
                gcp__vertex__agent__llm_request=json.dumps({"contents": CONTENTS}),
                gcp__vertex__agent__llm_response=json.dumps(
                    {"content": {"role": "model", "parts": [{"text": "booked"}]}}
                ),
                success=True,
            ),
            span(2, gcp__vertex__agent__llm_request="{}", gcp__vertex__agent__llm_response="{}"),
        )
    ],
    "otel, nested attributes of Phoenix": [
        {
            **{"context": {"trace_id": "t"}, "start_time": "2026-01-01T00:00:00Z"},
            "attributes": {
                "success": True,
                "llm": {
                    "input_messages": [
                        {"message": {"role": "user", "content": "a trip"}},
                        {
                            "message": {
                                "role": "assistant",
                                "tool_calls": [{"tool_call": {"function": {"name": "book", "arguments": ARGUMENTS}}}],
                            }
                        },
                        {"message": {"role": "tool", "content": "ok"}},
                    ],
                    "output_messages": [{"message": {"role": "assistant", "content": "booked"}}],
                },
            },
        }
    ],
    "otel, row of Logfire": [
        {
            **{"trace_id": "t", "span_id": "s", "start_timestamp": "2026-01-01T00:00:00Z"},
            "attributes": {"pydantic_ai.all_messages": list(map(with_parts, [*SENT[1:], SAID])), "success": True},
        }
    ],
    "jaeger": [
        {
            "traceID": "t",
            "spans": [
                {
                    **{"traceID": "t", "startTime": 1, "logs": []},
                    "tags": [
                        {"key": "gen_ai.input.messages", "type": "string", "value": parts(*SENT)},
                        {"key": "gen_ai.output.messages", "type": "string", "value": parts(SAID)},
                        {"key": "success", "type": "bool", "value": True},
                    ],
                }
            ],
        }
    ],
    "otel, pydantic-ai's first version": [
        export(
            span(
                1,
                success=True,
                all_messages_events=json.dumps(
                    [
                        *({"event.name": f"gen_ai.{one['role']}.message", **one} for one in SENT),
                        {"event.name": "gen_ai.choice", "index": 0, "message": SAID},
                    ]
                ),
            )
        )
    ],
    **{
        f"otel, {by}": [
            export({**span(1, success=True), "attributes": [attribute(*one) for one in reversed(told.items())]})
        ]
        for by, told in ((by, {**told, "success": True}) for by, told in NUMBERED.items())
    },
    "otel, in plain text": [
        span(3, gen_ai__operation__name="chat", gen_ai__completion="booked", success=True),
        span(2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="book", gen_ai__tool__message="ok"),
        span(
            1,
            gen_ai__operation__name="chat",
            gen_ai__prompt="a trip",
            gen_ai__tool__name="book",
            gen_ai__tool__call__arguments=ARGUMENTS,
        ),
    ],
    "otel, table of Phoenix": [
        {
            "context.trace_id": "t",
            "start_time": "2026-01-01T00:00:01Z",
            "attributes.success": True,
            "attributes.llm.model_name": None,
            "attributes.llm.input_messages": [
                {"message.role": "user", "message.content": "a trip", "message.tool_calls": None},
                {
                    "message.role": "assistant",
                    "message.tool_calls": [
                        {"tool_call.function.name": "book", "tool_call.function.arguments": ARGUMENTS}
                    ],
                },
                {"message.role": "tool", "message.content": "ok"},
            ],
            "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": "booked"}],
        }
    ],
    "otel, evaluated": [
        export(
            {
                **genai(1, SENT, [SAID]),
                "events": [
                    {
                        "attributes": span(gen_ai__evaluation__name="success", gen_ai__evaluation__score__label="true")[
                            "attributes"
                        ]
                    }
                ],
            }
        )
    ],
    "otel-logs": [{"resourceLogs": [{"scopeLogs": [{"logRecords": EVENTS}]}]}],
    "otel-logs, in a console": [
        {
            **{"trace_id": "0x1", "span_id": "0x2", "severity_number": 9, "timestamp": "2026-01-01T00:00:00Z"},
            "attributes": {"event.name": f"gen_ai.{name}"},
            "body": body,
        }
        for name, body in (*((f"{one['role']}.message", one) for one in SENT), ("choice", {"message": SAID}))
    ],
    "mlflow": [
        mlflow_trace(
            mlflow_span("CHAIN", {"messages": [ASKED]}, {}),
            mlflow_span("CHAT_MODEL", {"messages": SENT}, {"choices": [{"message": SAID}]}),
        )
    ],
    "mlflow, row of a table": [
        {
            **{"trace_id": "t", "trace_metadata": {}, "request": "a trip"},
            "assessments": [{"assessment_name": "success", "feedback": {"value": True}}],
            "spans": [mlflow_span("CHAT_MODEL", {"messages": SENT}, {"choices": [{"message": SAID}]})],
        }
    ],
    "mlflow, LangChain": [mlflow_trace(mlflow_span("CHAT_MODEL", [LANGCHAIN], GENERATED))],
    "langfuse": [
        {
            "id": "t",
            "observations": [
                generation("2026-01-01T00:00:02Z", {"model": "m", "messages": SENT}, SAID),
                generation("2026-01-01T00:00:01Z", [ASKED], BOOK),
                {"type": "TOOL", "input": {"a": 1}, "output": "2"},
            ],
            "scores": [{"name": "success", "value": 1}],
        }
    ],
    "langfuse, downloaded": [
        {
            "trace": {"id": "t", "metadata": "{}", "scores": [{"name": "success", "value": 1}]},
            "observations": [
                generation("2026-01-01T00:00:02Z", json.dumps({"messages": SENT}), json.dumps(SAID)),
                generation("2026-01-01T00:00:01Z", json.dumps([ASKED]), json.dumps(BOOK)),
            ],
        }
    ],
    "langfuse-tables": [
        observation(2, input=SENT, output=SAID),
        observation(1, input=[ASKED], output=BOOK),
        {"id": "s", "trace_id": "t", "name": "success", "value": 1, "data_type": "NUMERIC"},
    ],
    "langfuse-tables, CSV": [
        observation(1, input=json.dumps([ASKED]), output=json.dumps(BOOK)),
        observation(2, input=json.dumps(SENT), output=json.dumps(SAID)),
        TRACE_ROW | {"scores": json.dumps({"success": [1]})},
    ],
    "langfuse-tables, of traces alone": [TRACE_ROW | {"input": json.dumps(SENT), "scores": {"success": ["true"]}}],
    "langsmith": [
        langsmith_run("t", "chain", feedback_stats={"success": {"n": 1, "avg": 1.0}}),
        langsmith_run("r1", "llm", parent_run_id="t", inputs={"messages": [LANGCHAIN]}, outputs=GENERATED),
    ],
    "langsmith, exported": [
        langsmith_run("t", "chain", feedback_stats=json.dumps({"success": {"avg": 1.0}, "smile": {"avg": None}})),
        langsmith_run(
            "r1",
            "llm",
            parent_run_id="t",
            inputs=json.dumps({"messages": SENT}),
            outputs=json.dumps({"messages": [SAID]}),
        ),
    ],
    "langgraph": [
        {"checkpoint": {"thread_id": "t"}, "values": {"messages": LANGCHAIN[:count], "success": True}}
        for count in (0, 1)
    ]
    + [{"checkpoint": {"thread_id": "t"}, "values": {"messages": [*LANGCHAIN, SAID], "success": True}}],
    "langsmith, a tree": [
        langsmith_run(
            "t",
            "chain",
            feedback_stats={"success": {"avg": 1.0}},
            child_runs=[
                langsmith_run(
                    "r0",
                    "chain",
                    parent_run_id="t",
                    child_runs=[
                        langsmith_run(
                            "r1", "llm", parent_run_id="r0", inputs={"messages": SENT}, outputs={"messages": [SAID]}
                        )
                    ],
                )
            ],
        )
    ],
    "openai-agents": [
        {"object": "trace.span", "trace_id": "t", "span_data": {"type": "agent"}},
        {"object": "trace.span", "trace_id": "t", "span_data": {"type": "generation", "input": SENT, "output": [SAID]}},
        {"object": "trace", "id": "t", "metadata": {"success": True}},
    ],
}


def found(records: list[dict]) -> Iterator[tuple[str, Recorded]]:
    """Yield the kind and the episodes of records, gathered by the names of their parts."""
    kind = kind_of_record(records[0], "")
    assert {kind_of_record(one, "") for one in records} == {kind}
    by_name: dict[str, list[dict]] = {}
    for one in records:
        for name, part in known_kinds()[kind].parts_of(one):
            by_name.setdefault(name, []).append(part)
    for some in by_name.values():
        yield from ((kind, one) for one in known_kinds()[kind].recorded(some))


@pytest.mark.parametrize("by", TRACES)
def test_every_kind_of_trace_is_the_same_conversation(by):
    ((kind, one),) = found(TRACES[by])
    assert kind == by.split(",")[0]
    assert conversation_of(one.messages, PLAIN) == TRIP
    if kind != "otel-logs":  # their events hold no verdict
        assert one.fields["success"] in (True, 1, "true")
    assert one.remarks == ()
    assert "correct" not in one.fields, "what was expected is no verdict"


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([export(span(1, success=True))], "no span of it holds messages"),
        ([{"resourceLogs": [{"scopeLogs": [{"logRecords": [event("usage")]}]}]}], "no event of it is a message"),
        (
            [mlflow_trace(mlflow_span("CHAIN", {"messages": [ASKED]}, {}))],
            "no span of the trace is a call of a model with messages",
        ),
        ([{"observations": [{"type": "GENERATION"}]}], "no generation of the trace holds messages"),
        ([langsmith_run("t", "chain")], "no span of the trace is a call of a model with messages"),
        ([{"object": "trace", "id": "t"}], "no span of the trace is a call of a model with messages"),
    ],
)
def test_a_trace_without_messages_says_so(records, reason):
    with pytest.raises(ValueError, match=reason):
        list(found(records))


def test_examples_of_an_evaluation_in_weave_are_episodes_with_their_scores():
    evaluation = weave_call("root", "weave:///acme/trips/op/Evaluation.evaluate:1", {}, {}, None)
    examples = [
        one
        for number, correct in enumerate((True, False))
        for one in (
            weave_call(
                f"e{number}",
                "weave:///acme/trips/op/Evaluation.predict_and_score:1",
                {"example": number},
                {"output": "booked", "scores": {"judge": {"correct": correct}}},
            ),
            weave_call(f"m{number}", MODEL, {"messages": [ASKED]}, choices(SAID), f"e{number}"),
        )
    ]
    played = [one for _, one in found([evaluation, *examples])]
    assert [(one.fields["trajectory_id"], one.fields["correct"]) for one in played] == [("e0", True), ("e1", False)]
    assert all(len(one.messages) == 2 for one in played)


def test_the_last_result_in_weave_is_known_from_its_tools_operation():
    agent = weave_call("root", "weave:///acme/trips/op/Agent.run:5f0", {"request": "a trip"}, "ok", None)
    model = weave_call("m", MODEL, {"messages": [ASKED]}, choices(BOOK))
    tool = weave_call("w", "weave:///acme/trips/op/Agent.book:1", {"self": {}, "days": 2}, {"status": "booked"})
    ((_, one),) = found([agent, {**tool, "started_at": "2026-01-01T00:00:02Z"}, model])
    assert one.messages[-1] == {"role": "tool", "content": '{"status": "booked"}'}


def test_what_cannot_be_read_in_a_span_is_remarked_on_and_the_rest_is_taken():
    cut = genai(1, [ASKED], [BOOK])
    cut["attributes"][1]["value"]["stringValue"] = "<cut off"
    ((_, one),) = found([export(cut, genai(2, SENT, [SAID]), {"traceId": "t", "attributes": 7})])
    assert conversation_of(one.messages, PLAIN) == TRIP
    assert one.remarks == (UNREAD,)
    with pytest.raises(ValueError, match="holds messages that can be read"):
        list(found([export(span(1, gen_ai__input__messages="<cut off"))]))


def executed(began: int, name: str, **others: object) -> dict:
    """Return the span of a tool that was executed."""
    more = {f"gen_ai__tool__call__{key}": value for key, value in others.items()}
    return span(began, gen_ai__operation__name="execute_tool", gen_ai__tool__name=name, **more)


def test_the_result_of_the_last_call_is_in_the_span_of_its_tool():
    again = {"role": "assistant", "content": "", "tool_calls": BOOK["tool_calls"]}
    spans = [
        genai(1, [ASKED], [BOOK]),
        executed(3, "book", arguments=ARGUMENTS, result="ok"),
        genai(4, [ASKED, BOOK, OK], [again]),
        executed(5, "book", arguments=ARGUMENTS, result="sold out"),
    ]
    ((_, one),) = found([export(*spans)])
    assert conversation_of(one.messages, PLAIN).actions == ["book(days=2)", "book(days=2)"]
    assert conversation_of(one.messages, PLAIN).seen == ["a trip", "ok", "sold out"]
    assert one.remarks == ()
    with_ids = [{**call, "id": id} for call, id in zip([*BOOK["tool_calls"]] * 2, ("c1", "c2"), strict=True)]
    calls = [{"role": "assistant", "content": "", "tool_calls": [call]} for call in with_ids]
    runs = [ToolRun("book", id, ARGUMENTS, id) for id in ("c7", "c2", "c1")]
    messages, _ = with_tool_runs([ASKED, calls[0], OK, calls[1]], runs)
    assert messages[-1] == {"role": "tool", "content": "c2"}, "ids tell runs apart, whatever their order"


def test_other_tracers_name_their_tools_in_their_own_way():
    tool = {"attributes": [attribute("openinference.span.kind", "TOOL"), attribute("tool.name", "book")]}
    tool["attributes"] += [attribute("input.value", ARGUMENTS), attribute("output.value", "ok")]
    ((_, one),) = found([export(genai(1, [ASKED], [BOOK]), {**span(2), **tool})])
    assert conversation_of(one.messages, PLAIN).seen == ["a trip", "ok"]
    observations = [
        generation("2026-01-01T00:00:01Z", [ASKED], BOOK),
        {"type": "TOOL", "name": "book", "input": {"days": 2}, "output": "ok", "startTime": "2026-01-01T00:00:02Z"},
    ]
    ((_, one),) = found([{"id": "t", "observations": observations}])
    assert conversation_of(one.messages, PLAIN).seen == ["a trip", "ok"]


def generations(*pairs: tuple[object, object]) -> list[dict]:
    """Return a trace of Langfuse with these inputs and outputs, written as JSON."""
    texts = [[one if isinstance(one, str) else json.dumps(one) for one in pair] for pair in pairs]
    made = [generation(f"2026-01-01T00:00:0{number}Z", *pair) for number, pair in enumerate(texts)]
    return [{"id": "t", "observations": made}]


GENAI = {"role": "user", "parts": [{"type": "text", "content": "a trip"}]}
GEMINI = [
    {"role": "user", "parts": [{"text": "a trip"}]},
    {"role": "model", "parts": [{"function_call": {"name": "book", "args": {"days": 2}}}]},
    {"role": "user", "parts": [{"function_response": {"name": "book", "response": "ok"}}]},
]
LANGCHAIN_CALL = {"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": BOOK["tool_calls"]}}
DEFINITION = {"role": "tool", "content": {"type": "function", "function": {"name": "book"}}}


@pytest.mark.parametrize(
    "pairs",
    [
        [
            (
                {"contents": GEMINI, "model": "m"},
                {"candidates": [{"content": {"role": "model", "parts": [{"text": "booked"}]}}]},
            )
        ],
        [
            (
                {"contents": GEMINI},
                {"content": {"role": "model", "parts": [{"text": "booked"}]}, "finish_reason": "STOP"},
            )
        ],
        [([GENAI], [with_parts(BOOK)]), ([with_parts(OK)], [with_parts(SAID)])],
        [([ASKED, LANGCHAIN_CALL, {"role": "book", "content": "ok"}, DEFINITION], {"index": 0, "message": SAID})],
        [
            ({"prompt": "a trip"}, [{"toolCallId": "c", "toolName": "book", "input": ARGUMENTS}]),
            ([OK], SAID),
        ],
        [({"args": ["a trip"]}, BOOK), ([OK], "booked")],
        [([ASKED], BOOK), ({"content": "role"}, OK), ({"content": "role"}, SAID)],  # what was sent is not recorded
    ],
    ids=["Gemini", "its agents", "GenAI", "LangChain", "Vercel", "a text", "answers alone"],
)
def test_generations_are_recorded_as_each_client_sends_and_answers(pairs):
    ((_, one),) = found(generations(*pairs))
    assert conversation_of(one.messages, PLAIN) == TRIP


def test_a_trace_most_of_which_cannot_be_read_is_refused():
    unreadable = ({"messages": ["role='user' content='a trip'", "role='assistant'"]}, SAID)
    ((_, one),) = found(generations(unreadable, ([ASKED], BOOK), (SENT, SAID)))
    assert (conversation_of(one.messages, PLAIN), one.remarks) == (TRIP, (UNREAD,))
    with pytest.raises(ValueError, match="1 of its 2 generations cannot be read"):
        list(found(generations(unreadable, ("user: a trip", "booked"))))


def test_where_messages_hold_no_calls_the_spans_of_tools_are_the_actions():
    asked_and_said = genai(1, [RULES, ASKED], [SAID])
    ((_, one),) = found([export(asked_and_said, executed(2, "book", arguments=ARGUMENTS, result="ok"))])
    assert conversation_of(one.messages, PLAIN) == TRIP
    assert one.remarks == (ACTED,)
    several = genai(3, [RULES, ASKED, SAID, {"role": "user", "content": "thanks"}], [SAID])
    ((_, one),) = found([export(asked_and_said, executed(2, "book", result="ok"), several)])
    assert conversation_of(one.messages, PLAIN).actions == ["booked", "booked"], "nobody knows between which"


SEARCH = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "search", "arguments": "{}"}}]}
SHOWN = {"role": "tool", "content": "a list"}
TALK = [ASKED, SEARCH, SHOWN, BOOK, OK, SAID]
JUDGE = [
    Call([{"role": "user", "content": f"Was it good? {n}"}], [{"role": "assistant", "content": "yes"}]) for n in "ab"
]
SUMMARY = {"role": "user", "content": "Summary: a list was shown."}


@pytest.mark.parametrize(
    "calls",
    [
        [Call([ASKED], [SEARCH]), Call(TALK[:3], [BOOK]), Call(TALK[:5], [SAID])],
        [Call(TALK[:5], [SAID]), Call([ASKED], [SEARCH])],  # times that are not known
        [Call([ASKED], [SEARCH], 1), Call([SHOWN], [BOOK], 2), Call([OK], [SAID], 3)],  # only what is new
        [Call([ASKED], [SEARCH], 1), Call(TALK[:3], [BOOK], 2), Call(TALK[2:5], [SAID], 3)],  # a window
        [
            Call([RULES, ASKED], [SEARCH], 1),
            Call([RULES, ASKED, *TALK[1:3]], [BOOK], 2),
            Call([RULES, ASKED, *TALK[3:5]], [SAID], 3),
        ],
        [Call([ASKED], [SEARCH], 1), Call([], [], 2), Call(TALK[:5], [SAID], 3)],  # a call of which nothing is known
    ],
)
def test_calls_are_joined_where_they_go_on_or_overlap(calls):
    assert conversation_of_calls(calls)[0] == TALK


def test_a_summary_stands_where_messages_were():
    calls = [Call([ASKED], [SEARCH], 1), Call(TALK[:3], [BOOK], 2), Call([ASKED, SUMMARY], [SAID], 3)]
    assert conversation_of_calls(calls) == ([*TALK[:4], SUMMARY, SAID], (COMPACTED,))
    assert conversation_of_calls([*calls[:2], Call([SUMMARY], [SAID], 3, is_compacted=True)])[0] == [
        *TALK[:4],
        SUMMARY,
        SAID,
    ]


def test_messages_that_were_kept_after_a_summary_are_not_said_again():
    summary = {"role": "user", "content": "so far: a trip"}
    calls = [Call([ASKED], [BOOK], 1), Call([summary, BOOK, OK], [SAID], 2, is_compacted=True)]
    messages, remarks = conversation_of_calls(calls)
    assert (messages, remarks) == ([ASKED, BOOK, OK, SAID], (COMPACTED,))


def test_judges_and_sub_agents_are_other_conversations():
    agent = [Call([ASKED], [SEARCH], 2), Call(TALK[:3], [SAID], 4)]
    inner = Call([{"role": "user", "content": "Search."}, *([BOOK, OK] * 5)], [SAID], 3)
    assert conversation_of_calls([JUDGE[0], *agent, inner, JUDGE[1]]) == ([*TALK[:3], SAID], (OTHERS,))
    assert conversation_of_calls(JUDGE[:1]) == ([*JUDGE[0].sent, *JUDGE[0].answered], ())
    assert conversation_of_calls([]) == ([], ())


def test_an_answer_that_was_asked_for_again_is_left_where_nobody_went_on():
    calls = [Call([ASKED], [BOOK], 1), Call([ASKED], [SEARCH], 2), Call(TALK[:3], [SAID], 3)]
    assert conversation_of_calls(calls) == ([*TALK[:3], SAID], (OTHERS,))


def within(id: str, parent: str, one: dict, kind: str = "chat") -> dict:
    """Return a span in its place in the tree."""
    named = [attribute("gen_ai.operation.name", kind)]
    return {**one, "spanId": id, "parentSpanId": parent, "attributes": [*one["attributes"], *named]}


def agent(id: str, parent: str = "", began: int = 0, **attributes: object) -> dict:
    return within(id, parent, span(began, **attributes), "invoke_agent")


def the_agents(*spans: dict) -> Recorded:
    ((_, one),) = found([export(*spans)])
    return one


SUB = [
    within("s1", "sub", genai(3, [ASKED], [BOOK])),
    within("s2", "sub", genai(4, [ASKED, BOOK, OK], [BOOK])),
    within("s3", "sub", genai(5, [ASKED, BOOK, OK, BOOK, OK], [SAID])),
]
"""A sub-agent that was given the same task and took more steps."""


def test_the_outermost_agent_is_the_one_though_a_sub_agent_says_more():
    asks = {**BOOK, "tool_calls": [{"function": {"name": "book", "arguments": ARGUMENTS}}]}
    outer = [
        within("c1", "root", genai(1, [RULES, ASKED], [asks])),
        within("c2", "root", genai(9, [RULES, ASKED, asks, {"role": "tool", "content": "done"}], [SAID])),
    ]
    one = the_agents(agent("root", success=True), agent("sub", "root", 2), *outer, *SUB)
    assert conversation_of(one.messages, PLAIN).seen == ["a trip", "done", THE_END]
    assert one.remarks == (OTHERS,)


def test_an_agent_that_only_speaks_is_the_one_around_a_sub_agent_that_acts():
    planner = {"role": "assistant", "content": "first book"}
    outer = [
        within("c1", "root", genai(1, [ASKED], [planner])),
        within("c2", "root", genai(9, [ASKED, planner, {"role": "user", "content": "booked"}], [SAID])),
    ]
    one = the_agents(agent("root"), agent("sub", "root", 2), *outer, *SUB)
    assert conversation_of(one.messages, PLAIN).actions == ["first book", "booked"]


def test_a_guardrail_is_no_agent_and_what_is_said_outside_of_agents_is_none_of_theirs():
    check = within("g1", "guard", genai(1, [{"role": "user", "content": "Is it safe?"}], [BOOK]))
    title = within("t1", "", genai(1, [{"role": "user", "content": "Name this."}], [SAID]))
    calls = [within("c1", "root", genai(2, SENT[:2], [BOOK])), within("c2", "root", genai(3, SENT, [SAID]))]
    spans = [title, agent("root"), within("guard", "root", span(1), "guardrail"), check, *calls]
    assert conversation_of(the_agents(*spans).messages, PLAIN) == TRIP


def test_a_verdict_on_the_whole_counts_before_those_on_its_parts():
    tool = within("t1", "root", span(2, success=True), "execute_tool")
    inner = within("c1", "root", genai(1, SENT, [SAID], success=True))
    assert the_agents(agent("root", success=False), tool, inner).fields["success"] is False
    assert "success" not in the_agents(agent("root"), tool, within("c1", "root", genai(1, SENT, [SAID]))).fields
    scores = [
        {"name": "success", "value": 1, "observationId": "g1"},
        {"name": "success", "value": 0, "observationId": None},
        {"name": "correctness", "value": 0, "dataType": "CATEGORICAL", "stringValue": "correct"},
    ]
    generation = {"type": "GENERATION", "input": SENT, "output": SAID}
    ((_, one),) = found([{"id": "t", "observations": [generation], "scores": scores[::-1]}])
    assert (one.fields["success"], one.fields["correctness"]) == (0, "correct")


def test_calls_that_are_sent_what_is_new_go_on_when_the_user_speaks_again():
    again = {"role": "user", "content": "another"}
    calls = [Call([RULES, ASKED], [BOOK], 1), Call([OK], [SAID], 2), Call([again], [BOOK], 3), Call([OK], [SAID], 4)]
    assert conversation_of_calls(calls) == ([ASKED, BOOK, OK, SAID, again, BOOK, OK, SAID], ())
    chained = [Call([ASKED], [SAID], 1), Call([again], [BOOK], 2, goes_on=True)]
    assert conversation_of_calls(chained) == ([ASKED, SAID, again, BOOK], ())


def test_a_summary_may_stand_for_the_first_message_where_the_rest_is_known():
    summary = {"role": "user", "content": "so far: a trip"}
    calls = [Call([RULES, ASKED], [BOOK], 1), Call([RULES, summary, BOOK, OK], [SAID], 2)]
    assert conversation_of_calls(calls) == ([ASKED, BOOK, OK, SAID], (COMPACTED,))


def test_calls_that_were_recorded_twice_are_no_other_conversations():
    calls = [Call([ASKED], [BOOK], 1), Call([ASKED], [BOOK], 1), Call(SENT, [SAID], 2), Call(SENT, [SAID], 2)]
    assert conversation_of_calls(calls)[1] == ()


TOOLS_IN_TRACES = {
    "LangSmith": [
        langsmith_run("t", "chain"),
        langsmith_run("l", "llm", inputs={"messages": [ASKED]}, outputs={"messages": [BOOK]}),
        langsmith_run("b", "tool", inputs={"days": 2}, outputs={"output": "ok"}, name="book"),
    ],
    "MLflow": [
        mlflow_trace(
            mlflow_span("CHAT_MODEL", {"messages": [ASKED]}, {"choices": [{"message": BOOK}]}),
            {**mlflow_span("TOOL", {"days": 2}, "ok"), "name": "book"},
        )
    ],
    "OpenAI Agents": [
        {"object": "trace", "id": "t"},
        {
            "object": "trace.span",
            "trace_id": "t",
            "id": "1",
            "span_data": {"type": "generation", "input": [ASKED], "output": [BOOK]},
        },
        {
            "object": "trace.span",
            "trace_id": "t",
            "id": "2",
            "span_data": {"type": "function", "name": "book", "input": ARGUMENTS, "output": "ok"},
        },
    ],
}


@pytest.mark.parametrize("by", TOOLS_IN_TRACES)
def test_the_last_result_is_taken_from_its_tool_in_other_traces_too(by):
    ((_, one),) = found(TOOLS_IN_TRACES[by])
    assert conversation_of(one.messages, PLAIN).seen == ["a trip", "ok"]


def test_a_dry_run_joins_what_is_in_several_files_as_an_ingest_does(tmp_path):
    spans = [genai(1, SENT[:2], [BOOK], success=True), genai(2, SENT, [SAID])]
    for number, one in enumerate(spans):
        (tmp_path / f"{number}.json").write_text(json.dumps(export(one)))
    (rows,) = samples(tmp_path, LogMapping(), 3).taken
    assert [row["action"] for row in rows] == TRIP.actions


def test_the_name_of_an_only_evaluation_does_not_matter():
    named = {"gen_ai__evaluation__name": "task_completion", "gen_ai__evaluation__score__value": 0.9}
    result = span(**named, gen_ai__evaluation__score__label="pass")
    judged = {
        **genai(1, SENT, [SAID]),
        "events": [{"name": "gen_ai.evaluation.result", "attributes": result["attributes"]}],
    }
    assert the_agents(judged).fields["scores"] == {"task_completion": {"value": "pass"}}
