"""Conversion of conversations to turns: hand-made ones, and what is refused of them."""

import pytest

from schemas.recipes.log_mapping import LogMapping, MessageMapping
from tasks.logs.conversations import PARTS, THE_END, Conversation, conversation_of, requests_of
from tasks.logs.messages import value_at

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
    ],
)
def test_what_is_not_understood_is_said(messages, reason):
    with pytest.raises(ValueError, match=reason):
        conversation_of(messages, PLAIN)


def test_an_image_becomes_a_mark_and_is_remarked_on():
    page = [{"type": "text", "text": "a page"}, {"type": "image_url", "image_url": {"url": "data:"}}, "below"]
    talk = conversation_of([{"role": "user", "content": page}, {"role": "assistant", "content": "click"}], PLAIN)
    assert (talk.seen[0], talk.remarks) == ("a page\n[image_url]\nbelow", (PARTS,))


def test_paths_lead_into_lists_and_names_with_dots():
    record = {"a": {"b": [{"c": 1}]}, "x.y": {"z": 2}}
    assert [value_at(record, path) for path in ("a.b.0.c", "x.y.z", "a.q", "a.b.7")] == [1, 2, None, None]


def test_a_mapping_refuses_what_it_does_not_know():
    for wrong in (
        {"paths": {"nme": "x"}},
        {"messages": {"action": "("}},
        {"messages": {"action": "x"}},
    ):
        with pytest.raises(ValueError, match="validation error"):
            LogMapping.model_validate(wrong)


def test_roles_may_be_written_in_any_letters():
    messages = [{"role": "CUSTOMER", "content": "a door"}, {"role": "Bot", "content": "open door"}]
    mapping = MessageMapping(agent=("BOT",), environment=("Customer",))
    assert conversation_of(messages, mapping).actions == ["open door"]
    assert requests_of([{"role": "User", "content": "a door"}, messages[1]], mapping).actions == ["open door"]
