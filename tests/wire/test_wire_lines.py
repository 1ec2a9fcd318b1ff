"""What must hold on the wire, line by line: that our bodies keep each line, and that the validator would have noticed if they did not.

Every test does two things: it looks at what is sent, without the validator's help, and it breaks the line in a copy of a valid body
to see it refused in the service's words.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from dragoman.providers import anthropic, gemini, openai_chat, openai_responses
from dragoman.providers.openai_chat import BRIDGE
from dragoman.providers.wire import Destination as WireDestination
from dragoman.providers.wire_calls import mistral_id, wire_id
from dragoman.testing.mock.validate import Rules, Violation, validate
from wire import cases
from wire.cases import CASES
from wire.destinations import BY_NAME, DESTINATIONS, Destination

Json = dict[str, Any]
ANTHROPIC, OPENAI, RESPONSES, GEMINI = (BY_NAME[name] for name in ("anthropic", "openai", "responses", "gemini"))
UNSENT = {"search", "search_and_tools", "json_schema_and_tools"}
"""Cases that some destinations say they cannot do."""


def sent(protocol: str) -> Iterator[tuple[Destination, str, Json]]:
    """Every body of every destination of a protocol."""
    for to in DESTINATIONS:
        if to.protocol == protocol:
            yield from ((to, name, to.body(request)) for name, request in CASES.items() if name not in UNSENT)


def refused(to: Destination, name: str, change: Callable[[Json], None], line: int, message: str, rules: Rules | None = None) -> Violation:
    """A valid body, changed: the validator refuses it, with this line's number and these words."""
    body = copy.deepcopy(to.body(CASES[name]))
    assert validate(to.protocol, body, rules or to.rules) is None
    change(body)
    found = validate(to.protocol, body, rules or to.rules)
    assert found is not None, "the violation went unnoticed"
    assert message in found.message
    assert found.line == line
    return found


def blocks(body: Json, kind: str) -> list[Json]:
    return [block for message in body["messages"] for block in message["content"] if block["type"] == kind]


# --- Anthropic --------------------------------------------------------------------------------------------------------------


def test_line_01_every_tool_use_is_answered_first_thing_in_the_next_message() -> None:
    """docs/reference/wire.md, rule 1."""
    answered = 0
    for to, name, body in sent("anthropic"):
        for index, message in enumerate(body["messages"]):
            kinds = [block["type"] for block in message["content"]]
            calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
            if not calls:
                continue
            assert kinds[-len(calls) :] == ["tool_use"] * len(calls), f"{to.name} {name}: something follows a tool_use"
            following = body["messages"][index + 1]
            results = [block.get("tool_use_id") for block in following["content"][: len(calls)]]
            assert (following["role"], results) == ("user", calls), f"{to.name} {name}"
            answered += len(calls)
    assert answered > 100

    def put_text_first(body: Json) -> None:
        body["messages"][2]["content"].insert(0, {"type": "text", "text": "Be quick."})

    missing = "`tool_use` ids were found without `tool_result` blocks immediately after: call_1"
    refused(ANTHROPIC, "results_and_a_word_of_the_user", put_text_first, 1, missing)
    refused(ANTHROPIC, "parallel_calls_of_one_tool", lambda body: body["messages"][2]["content"].pop(0), 1, missing)
    refused(ANTHROPIC, "text_after_call", lambda body: body["messages"][1]["content"].reverse(), 1, missing)


def test_line_02_no_result_is_an_orphan() -> None:
    """docs/reference/wire.md, rule 2."""
    for to, name, body in sent("anthropic"):
        calls = {block["id"] for block in blocks(body, "tool_use")}
        assert {block["tool_use_id"] for block in blocks(body, "tool_result")} == calls, f"{to.name} {name}"
    assert not blocks(ANTHROPIC.body(CASES["orphan_result"]), "tool_result")

    def add_orphan(body: Json) -> None:
        body["messages"][-1]["content"].insert(0, {"type": "tool_result", "tool_use_id": "call_9", "content": "whose?"})

    refused(ANTHROPIC, "multi_turn", add_orphan, 2, "unexpected `tool_use_id` found in `tool_result` blocks: call_9")


def test_line_03_ids_are_unique_and_have_one_result_each() -> None:
    """docs/reference/wire.md, rule 3."""
    for to, name, body in sent("anthropic"):
        calls = [block["id"] for block in blocks(body, "tool_use")]
        results = [block["tool_use_id"] for block in blocks(body, "tool_result")]
        assert len(set(calls)) == len(calls) == len(results), f"{to.name} {name}"
    assert [block["id"] for block in blocks(ANTHROPIC.body(CASES["duplicate_ids"]), "tool_use")] == ["call_1", "call_1-2", "call_1-3"]

    def repeat_id(body: Json) -> None:
        body["messages"][1]["content"][1]["id"] = body["messages"][1]["content"][0]["id"]

    def repeat_result(body: Json) -> None:
        body["messages"][2]["content"].insert(0, body["messages"][2]["content"][0])

    refused(ANTHROPIC, "parallel_calls_of_one_tool", repeat_id, 3, "`tool_use` ids must be unique")
    refused(ANTHROPIC, "one_call", repeat_result, 3, "each tool_use must have a single result")


def test_line_04_ids_are_of_the_accepted_characters_and_do_not_collide() -> None:
    """docs/reference/wire.md, rule 4: sanitised injectively."""
    for to, name, body in sent("anthropic"):
        for block in blocks(body, "tool_use"):
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["id"]), f"{to.name} {name}"
    for name in ("foreign_ids", "ids_alike_but_for_a_mark", "ids_of_100_characters"):
        given = [call.id for message in CASES[name].messages for call in message.calls]
        assert len({block["id"] for block in blocks(ANTHROPIC.body(CASES[name]), "tool_use")}) == len(given)

    def foreign(body: Json) -> None:
        body["messages"][1]["content"][0]["id"] = "functions.Bash:0"

    refused(ANTHROPIC, "one_call", foreign, 4, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")


def test_line_05_no_text_is_empty_and_none_blank_by_itself() -> None:
    """docs/reference/wire.md, rule 5."""
    for to, name, body in sent("anthropic"):
        assert all(block["text"] for block in blocks(body, "text")), f"{to.name} {name}"
        for message in body["messages"]:
            assert any(block["type"] != "text" or block["text"].strip() for block in message["content"]), f"{to.name} {name}"
        assert all(message["content"] for message in body["messages"]), f"{to.name} {name}"
        for block in blocks(body, "tool_result"):
            assert all(part["text"].strip() for part in block["content"] if part["type"] == "text"), f"{to.name} {name}"
    assert ANTHROPIC.body(CASES["empty_user_text"])["messages"][0]["content"][0]["text"] == "(empty message)"

    def say(text: str) -> Callable[[Json], None]:
        return lambda body: body["messages"][1]["content"][0].update(text=text)

    refused(ANTHROPIC, "multi_turn", say(""), 5, "text content blocks must be non-empty")
    refused(ANTHROPIC, "multi_turn", say(" \n"), 5, "text content blocks must contain non-whitespace text")
    refused(ANTHROPIC, "multi_turn", lambda body: body["messages"][0].update(content=[]), 5, "user messages must have non-empty content")


def test_line_06_thinking_stays_in_its_place_and_byte_for_byte() -> None:
    """docs/reference/wire.md, rule 6."""
    for name in ("anthropic_thinking", "anthropic_redacted_thinking", "anthropic_thinking_in_two_steps"):
        prepared = ANTHROPIC.prepare(CASES[name])
        for message in CASES[name].messages:
            for part in message.parts:
                if (opaque := getattr(part, "opaque", None)) is not None:
                    assert opaque.json.encode() in prepared.body
        kinds = [block["type"] for block in json.loads(prepared.body)["messages"][1]["content"]]
        assert kinds[0] in ("thinking", "redacted_thinking")
    for to, name, body in sent("anthropic"):
        for message in body["messages"]:
            assert message["content"][-1]["type"] not in ("thinking", "redacted_thinking"), f"{to.name} {name}"

    modified = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"

    def edit(body: Json) -> None:
        body["messages"][1]["content"][0]["thinking"] += "!"

    def move(body: Json) -> None:
        content = body["messages"][1]["content"]
        content.insert(1, content.pop(0))
        body["thinking"] = {"type": "enabled", "budget_tokens": 2_048}

    refused(ANTHROPIC, "anthropic_thinking", edit, 6, modified)
    refused(BY_NAME["anthropic-budget"], "anthropic_thinking", move, 6, "Expected `thinking` or `redacted_thinking`, but found `text`")


def test_line_06_a_loop_keeps_its_thinking_mode_though_later_steps_think_no_more() -> None:
    """docs/reference/wire.md, rule 6: an older model thinks before the first call only; thinking is not switched within a turn."""
    budget = BY_NAME["anthropic-budget"]
    assert budget.body(CASES["anthropic_thinking_only_before_the_first_step"])["thinking"] == {"type": "enabled", "budget_tokens": 24_576}
    for name in ("a_loop_without_thinking", "a_loop_without_thinking_and_a_word", "another_provider_in_mid_loop"):
        assert "thinking" not in budget.body(CASES[name]), name

        def switch_on(body: Json) -> None:
            body["thinking"] = {"type": "enabled", "budget_tokens": 2_048}

        refused(budget, name, switch_on, 6, "Expected `thinking` or `redacted_thinking`, but found `tool_use`")


def test_line_07_the_user_has_the_last_word() -> None:
    """docs/reference/wire.md, rule 7."""
    for to, name, body in sent("anthropic"):
        roles = [message["role"] for message in body["messages"]]
        assert (roles[0], roles[-1]) == ("user", "user"), f"{to.name} {name}"
    assert ANTHROPIC.body(CASES["ends_with_assistant"])["messages"][-1]["content"][0]["text"] == "Continue."
    prefill = "This model does not support assistant message prefill. The conversation must end with a user message."
    refused(ANTHROPIC, "ends_with_assistant", lambda body: body["messages"].pop(), 7, prefill)


def marks(value: object) -> Iterator[Json]:
    if isinstance(value, dict):
        if "cache_control" in value:
            yield value["cache_control"]
        for item in value.values():
            yield from marks(item)
    elif isinstance(value, list):
        for item in value:
            yield from marks(item)


def test_line_08_at_most_four_blocks_are_marked_for_the_cache() -> None:
    """docs/reference/wire.md, rule 8: tools, system, environment, last message."""
    for to, name, body in sent("anthropic"):
        assert 1 <= len(list(marks(body))) <= 4, f"{to.name} {name}"
    body = ANTHROPIC.body(CASES["full_featured_request"])
    assert "cache_control" in body["tools"][-1]
    assert "cache_control" in body["system"][-1]
    assert "cache_control" in body["messages"][0]["content"][-1]
    assert "cache_control" in body["messages"][-1]["content"][-1]

    def one_more(body: Json) -> None:
        body["tools"][0]["cache_control"] = {"type": "ephemeral"}

    def an_hour_late(body: Json) -> None:
        body["messages"][-1]["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}

    refused(ANTHROPIC, "full_featured_request", one_more, 8, "A maximum of 4 blocks with cache_control may be provided. Found 5.")
    late = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    refused(ANTHROPIC, "full_featured_request", an_hour_late, 8, late)


def test_line_08_claude_behind_openrouter_is_marked_for_the_cache_too() -> None:
    """docs/reference/wire.md, rule 8: without marks nothing is cached there."""
    claude = BY_NAME["openrouter-claude"]
    for to, name, body in sent("openai_chat"):
        count = len(list(marks(body)))
        least = int("image_alone" not in name)  # only a text block takes a mark
        assert least <= count <= 4 if to is claude else not count, f"{to.name} {name}"
    body = claude.body(CASES["full_featured_request"])
    assert "cache_control" in body["tools"][-1]
    system, *messages = body["messages"]
    assert system["role"] == "system"
    assert "cache_control" in system["content"][-1]
    for message in (messages[0], messages[-1]):
        assert "cache_control" in [block for block in message["content"] if block["type"] == "text"][-1]
    after_tool = claude.body(CASES["one_call"])["messages"][-1]
    assert after_tool["role"] == "tool"
    assert "cache_control" in after_tool["content"][-1]

    def one_more(body: Json) -> None:
        body["tools"][0]["cache_control"] = {"type": "ephemeral"}

    refused(claude, "full_featured_request", one_more, 8, "A maximum of 4 blocks with cache_control may be provided. Found 5.")


def test_line_09_system_is_a_field_of_its_own() -> None:
    """docs/reference/wire.md, rule 9."""
    for to, name, body in sent("anthropic"):
        assert {message["role"] for message in body["messages"]} <= {"user", "assistant"}, f"{to.name} {name}"
        settings = CASES[name].settings
        is_asked_in_words = settings.response_mime == "application/json" and not settings.response_schema
        assert ("system" in body) == (is_asked_in_words or bool(CASES[name].system.strip())), f"{to.name} {name}"

    def as_a_message(body: Json) -> None:
        body["messages"].insert(0, {"role": "system", "content": body.pop("system")})

    refused(ANTHROPIC, "system", as_a_message, 9, 'Unexpected role "system"')


# --- OpenAI Chat ------------------------------------------------------------------------------------------------------------


def test_line_10_tool_messages_follow_their_calls_in_order() -> None:
    """docs/reference/wire.md, rule 10; PROVIDERS-5: a functionResponse becomes a `tool` message."""
    for to, name, body in sent("openai_chat"):
        expected: list[str] = []
        for message in body["messages"]:
            if message["role"] == "tool":
                assert expected, f"{to.name} {name}: a tool message without its call"
                assert message["tool_call_id"] == expected.pop(0), f"{to.name} {name}"
                continue
            assert not expected, f"{to.name} {name}: something stands between call and result"
            expected = [call["id"] for call in message.get("tool_calls", [])]
        assert not expected, f"{to.name} {name}"

    unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    orphan = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
    refused(OPENAI, "parallel_calls_of_one_tool", lambda body: body["messages"].pop(), 10, unanswered)
    refused(OPENAI, "one_call", lambda body: body["messages"].pop(1), 10, orphan)
    refused(OPENAI, "one_call", lambda body: body["messages"].insert(2, {"role": "user", "content": "Wait."}), 10, unanswered)


def test_line_11_ids_have_at_most_40_characters() -> None:
    """docs/reference/wire.md, rule 11."""
    for to, name, body in sent("openai_chat"):
        made = [call["id"] for message in body["messages"] for call in message.get("tool_calls", [])]
        longest = 256 if to.profile.call_id == "kept" else 40
        assert all(1 <= len(each) <= longest for each in made), f"{to.name} {name}"
        assert len(set(made)) == len(made), f"{to.name} {name}"

    def lengthen(body: Json) -> None:
        body["messages"][1]["tool_calls"][0]["id"] = body["messages"][2]["tool_call_id"] = "c" * 41

    message = "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40"
    refused(OPENAI, "one_call", lengthen, 11, message)


def test_line_12_reasoning_goes_back_where_the_profile_says_so() -> None:
    """docs/reference/wire.md, rule 12."""
    for to, name, body in sent("openai_chat"):
        field, back = to.profile.reasoning_field, to.profile.reasoning_back
        for message in body["messages"]:
            if message["role"] == "assistant":
                due = back == "always" or (back == "calls" and "tool_calls" in message)
                if field == "reasoning_details" or back == "given":
                    continue  # sent where there is some
                assert bool(message.get(field or "reasoning_content")) == due, f"{to.name} {name}"
    said = BY_NAME["deepseek"].body(CASES["thoughts_unsigned"])["messages"]
    assert [message["reasoning_content"] for message in said if message["role"] == "assistant"] == ["Let me look.", "Done."]
    kept = BY_NAME["glm"].body(CASES["thoughts_unsigned"])["messages"]
    assert [message.get("reasoning_content") for message in kept if message["role"] == "assistant"] == ["Let me look.", "Done."]
    plain = BY_NAME["glm"].body(CASES["multi_turn"])["messages"]
    assert not [message for message in plain if "reasoning_content" in message], "no placeholder where there was no thinking"

    def forget(body: Json) -> None:
        del body["messages"][1]["reasoning_content"]

    def mention(body: Json) -> None:
        body["messages"][1]["reasoning_content"] = "Let me look."

    back = "The `reasoning_content` in the thinking mode must be passed back to the API."
    missing = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
    refused(BY_NAME["deepseek"], "thoughts_unsigned", forget, 12, back)
    refused(BY_NAME["kimi"], "thoughts_unsigned", forget, 12, missing)
    refused(OPENAI, "thoughts_unsigned", mention, 12, "Unknown parameter: 'messages[1].reasoning_content'")


def test_line_12_reasoning_details_go_back_unchanged_to_the_model_that_made_them() -> None:
    """docs/reference/wire.md, rule 12: Gemini refuses a tool result behind OpenRouter without them, and Claude loses its thinking."""
    claude, gemini = BY_NAME["openrouter-claude"], BY_NAME["openrouter-gemini"]
    called = claude.body(CASES["openrouter_details_and_call"])["messages"][1]
    assert called["reasoning_details"] == cases.DETAILS
    assert called["tool_calls"]
    assert claude.body(CASES["openrouter_details_encrypted"])["messages"][1]["reasoning_details"] == cases.DETAILS[1:]
    assert claude.body(CASES["openrouter_details_alone"])["messages"][1] == {
        "role": "assistant",
        "reasoning_details": cases.DETAILS,
        "content": None,
    }
    for other in (gemini, OPENAI, BY_NAME["vllm"]):
        assert "reasoning_details" not in str(other.body(CASES["openrouter_details_and_call"])), other.name

    def forge(body: Json) -> None:
        body["messages"][1]["reasoning_details"][0]["signature"] = "Rm9yZ2Vk"

    refused(claude, "openrouter_details_and_call", forge, 12, "Invalid `signature`")


def test_line_13_strict_templates_get_one_system_message_and_turns_that_alternate() -> None:
    """docs/reference/wire.md, rule 13."""
    checked = 0
    for to, name, body in sent("openai_chat"):
        if to.profile.merge_runs:
            _check_merged(to, name, body)
        if not to.profile.strict_template:
            continue
        roles = [message["role"] for message in body["messages"]]
        assert not {"system", "developer"} & set(roles[1:]), f"{to.name} {name}"
        plain = [
            message["role"] for message in body["messages"] if message["role"] in ("user", "assistant") and "tool_calls" not in message
        ]
        assert plain == ["user", "assistant"] * (len(plain) // 2) + ["user"] * (len(plain) % 2), f"{to.name} {name}: {roles}"
        for message in body["messages"]:
            for call in message.get("tool_calls", []):
                assert isinstance(json.loads(call["function"]["arguments"]), dict), f"{to.name} {name}"
        checked += 1
    assert checked > 400
    alternate = "After the optional system message, conversation roles must alternate user and assistant roles"
    vllm, mistral = BY_NAME["vllm"], BY_NAME["mistral"]

    def split(body: Json) -> None:
        body["messages"].insert(1, {"role": "user", "content": "And also:"})

    def foreign_id(body: Json) -> None:
        body["messages"][1]["tool_calls"][0]["id"] = body["messages"][2]["tool_call_id"] = "call_1"

    refused(vllm, "multi_turn", split, 13, alternate)
    refused(
        vllm, "system", lambda body: body["messages"].insert(1, body["messages"].pop(0)), 13, "System message must be at the beginning."
    )
    refused(mistral, "one_call", foreign_id, 13, "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.")


def _check_merged(to: Destination, name: str, body: Json) -> None:
    """Hosted services: runs of one role are merged and arguments are objects, but nothing is put between a tool's result and the user."""
    said = [message for message in body["messages"] if message["role"] in ("user", "assistant")]
    assert not [message for message in said if message["content"] == BRIDGE], f"{to.name} {name}"
    for first, second in pairwise(body["messages"]):
        is_run = first["role"] == second["role"] != "tool" and "tool_calls" not in first
        assert not is_run or "reasoning_details" in first or "reasoning_details" in second, f"{to.name} {name}"
    for message in said:
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict), f"{to.name} {name}"
            assert to.profile.call_id != "mistral" or re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]), f"{to.name} {name}"


def test_line_14_no_text_is_empty_and_silence_says_so() -> None:
    """docs/reference/wire.md, rule 14."""
    for to, name, body in sent("openai_chat"):
        for message in body["messages"]:
            content = message["content"]
            said = [part["text"] for part in content if part["type"] == "text"] if isinstance(content, list) else [content]
            assert all(text is None or text.strip() for text in said), f"{to.name} {name}"
            assert content is not None or message.get("tool_calls") or message.get("reasoning_details"), f"{to.name} {name}"
    tool = [message["content"] for message in OPENAI.body(CASES["silent_result"])["messages"] if message["role"] == "tool"]
    assert tool == ["(no output)", "(no output)"]

    def hush(body: Json) -> None:
        body["messages"][2]["content"] = ""

    refused(BY_NAME["kimi"], "silent_result", hush, 14, "text content is empty")


# --- OpenAI Responses -------------------------------------------------------------------------------------------------------


def items(body: Json, kind: str) -> list[Json]:
    return [item for item in body["input"] if item["type"] == kind]


def test_line_15_calls_and_outputs_meet_by_call_id() -> None:
    """docs/reference/wire.md, rule 15."""
    for to, name, body in sent("openai_responses"):
        calls = [item["call_id"] for item in items(body, "function_call")]
        assert [item["call_id"] for item in items(body, "function_call_output")] == calls, f"{to.name} {name}"
        assert all(1 <= len(each) <= 64 for each in calls), f"{to.name} {name}"
        assert len(set(calls)) == len(calls), f"{to.name} {name}"

    def lengthen(body: Json) -> None:
        for item in body["input"][1:]:
            item["call_id"] = "c" * 65

    refused(RESPONSES, "one_call", lambda body: body["input"].pop(), 15, "No tool output found for function call call_1.")
    refused(
        RESPONSES, "one_call", lambda body: body["input"].pop(1), 15, "No tool call found for function call output with call_id call_1."
    )
    refused(RESPONSES, "one_call", lengthen, 15, "Expected a string with maximum length 64")


def test_line_16_reasoning_stays_with_the_item_it_led_to_or_leaves() -> None:
    """docs/reference/wire.md, rule 16."""
    for to, name, body in sent("openai_responses"):
        for index, item in enumerate(body["input"]):
            if item["type"] == "reasoning":
                following = body["input"][index + 1]
                assert following["type"] == "function_call" or following.get("role") == "assistant", f"{to.name} {name}"
                assert "id" not in item, f"{to.name} {name}"
                assert isinstance(following.get("content", []), list), f"{to.name} {name}"
    kinds = [item["type"] for item in RESPONSES.body(CASES["responses_reasoning_twice"])["input"]]
    assert kinds == ["message", "reasoning", "message", "reasoning", "function_call", "function_call_output"]
    for name in ("responses_reasoning_last", "responses_reasoning_alone"):
        assert not items(RESPONSES.body(CASES[name]), "reasoning")

    def put_last(body: Json) -> None:
        body["input"].insert(3, body["input"].pop(1))

    refused(
        RESPONSES,
        "responses_reasoning_and_call",
        put_last,
        16,
        "of type 'reasoning' was provided without its required following item.",
    )

    def put_plain_text_behind_an_id(body: Json) -> None:
        body["input"][1]["id"] = "rs_1"
        body["input"][2]["content"] = "I look."

    alone = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    refused(RESPONSES, "responses_reasoning_twice", put_plain_text_behind_an_id, 16, alone)


def test_line_17_encrypted_content_goes_to_nobody_but_the_model_that_made_it() -> None:
    """docs/reference/wire.md, rule 17."""
    name = "responses_reasoning_and_call"
    prepared = RESPONSES.prepare(CASES[name])
    kept = {key: value for key, value in cases.REASONING.items() if key != "id"}
    assert json.dumps(kept, separators=(",", ":")).encode() in prepared.body
    for to in DESTINATIONS:
        if to is not RESPONSES:
            assert b"gAAAAABfirst" not in to.prepare(CASES[name]).body, to.name

    def keep(body: Json) -> None:
        body["input"].insert(1, cases.REASONING)

    unverified = "The encrypted content gAAA...st== could not be verified."
    assert refused(BY_NAME["responses-other-model"], name, keep, 17, unverified).code == "invalid_encrypted_content"
    refused(BY_NAME["xai"], name, keep, 17, unverified)


# --- Gemini -----------------------------------------------------------------------------------------------------------------


def parts(body: Json, kind: str) -> list[Json]:
    return [part[kind] for content in body["contents"] for part in content["parts"] if kind in part]


def test_line_18_a_turn_of_calls_is_followed_by_one_content_of_their_responses() -> None:
    """docs/reference/wire.md, rule 18; PROVIDERS-6."""
    for to, name, body in sent("gemini"):
        contents = body["contents"]
        roles = [content["role"] for content in contents]
        assert roles == ["user", "model"] * (len(roles) // 2) + ["user"], f"{to.name} {name}"
        for index, content in enumerate(contents):
            calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            if calls:
                answers = [part.get("functionResponse", {}) for part in contents[index + 1]["parts"][: len(calls)]]
                assert [each.get("name") for each in answers] == [call["name"] for call in calls], f"{to.name} {name}"
                assert [each.get("id") for each in answers] == [call.get("id") for call in calls], f"{to.name} {name}"

    def text_first(body: Json) -> None:
        body["contents"][2]["parts"].reverse()

    number = "Please ensure that the number of function response parts is equal to the number of function call parts"
    refused(GEMINI, "parallel_calls_of_one_tool", lambda body: body["contents"][2]["parts"].pop(), 18, number)
    refused(GEMINI, "results_and_a_word_of_the_user", text_first, 18, "function response parts come before any other part")
    refused(GEMINI, "multi_turn", lambda body: body["contents"].pop(), 18, "end with a user role")
    refused(GEMINI, "multi_turn", lambda body: body["contents"].pop(0), 18, "starts with a user turn")


def test_line_19_signatures_are_siblings_on_their_part_and_the_first_call_has_one() -> None:
    """docs/reference/wire.md, rule 19; PROVIDERS-8: the documented skip value where one is missing, at every position."""
    for to, name, body in sent("gemini"):
        for content in body["contents"]:
            calls = [part for part in content["parts"] if "functionCall" in part]
            assert not any("thoughtSignature" in part["functionCall"] for part in calls), f"{to.name} {name}"
            if calls and to.profile.thought_signatures:
                assert calls[0].get("thoughtSignature"), f"{to.name} {name}"
                assert not any("thoughtSignature" in part for part in calls[1:]), f"{to.name} {name}"
    model = GEMINI.body(CASES["gemini_signature_on_call"])["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in model] == [None, cases.GEMINI_SIGNATURE, None]
    foreign = BY_NAME["vertex"].body(CASES["gemini_signature_on_call"])["contents"][1]["parts"]
    assert foreign[1]["thoughtSignature"] == "skip_thought_signature_validator"
    assert json.dumps(cases.GEMINI_THOUGHT, separators=(",", ":")).encode() in GEMINI.prepare(CASES["gemini_signed_thought"]).body

    def drop(body: Json) -> None:
        del body["contents"][1]["parts"][0]["thoughtSignature"]

    def sink(body: Json) -> None:
        part = body["contents"][1]["parts"][0]
        part["functionCall"]["thoughtSignature"] = part.pop("thoughtSignature")

    def forge(body: Json) -> None:
        body["contents"][1]["parts"][0]["thoughtSignature"] = "Zm9yZ2Vk"

    refused(GEMINI, "one_call", drop, 19, "Function call is missing a thought_signature in functionCall parts")
    refused(GEMINI, "one_call", sink, 19, 'Unknown name "thoughtSignature"')
    refused(GEMINI, "one_call", forge, 19, "Thought signature is not valid")


def test_line_20_schemas_go_whole_where_the_model_takes_them_and_reduced_where_not() -> None:
    """docs/reference/wire.md, rule 20."""
    declared = GEMINI.body(CASES["full_schema"])["tools"][0]["functionDeclarations"]
    assert declared[0]["parametersJsonSchema"] == cases.FULL_SCHEMA
    subset = BY_NAME["gemini-subset"]
    whole, empty = subset.body(CASES["full_schema"])["tools"][0]["functionDeclarations"]
    text = json.dumps(whole)
    assert not {"$ref", "$schema", "$defs", "additionalProperties", "allOf", "oneOf", "const", "uri", "email"} & set(
        re.findall(r'"(.*?)"', text)
    )
    assert set(whole["parameters"]["properties"]) == set(cases.FULL_SCHEMA["properties"])
    assert whole["parameters"]["required"] == ["tree", "either"]
    assert whole["parameters"]["properties"]["both"]["required"] == ["name"]
    assert "parameters" not in empty, "an object without properties is refused at the root; no parameters at all is not"

    def open_up(body: Json) -> None:
        body["tools"][0]["functionDeclarations"][0]["parameters"]["additionalProperties"] = False

    def retype(body: Json) -> None:
        body["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["maybe"]["type"] = ["string", "null"]

    def reform(body: Json) -> None:
        body["tools"][0]["functionDeclarations"][0]["parameters"]["properties"]["maybe"]["format"] = "uri"

    def send_whole(body: Json) -> None:
        body["tools"] = GEMINI.body(CASES["full_schema"])["tools"]

    unknown = "Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters'"
    refused(subset, "full_schema", open_up, 20, unknown)
    refused(subset, "full_schema", retype, 20, 'Unknown name "type"')
    refused(subset, "full_schema", reform, 20, "are supported for STRING type")
    refused(subset, "full_schema", send_whole, 20, 'Unknown name "parametersJsonSchema"')


def test_line_20_a_schema_that_refers_to_itself_stays_small() -> None:
    """docs/reference/wire.md, rule 20: references are followed, but never round and round."""
    every = {f"n{i}": {"type": "object", "properties": {f"p{j}": {"$ref": f"#/$defs/n{j}"} for j in range(6)}} for i in range(6)}
    knot = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n0"}}, "$defs": every, "allOf": [{"$ref": "#"}]}
    tool = msgspec.structs.replace(cases.NOW, parameters=json.dumps(knot))
    request = msgspec.structs.replace(CASES["single_prompt"], tools=(tool,))
    assert len(BY_NAME["gemini-subset"].prepare(request).body) < 2_000_000


# --- all --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", DESTINATIONS, ids=[to.name for to in DESTINATIONS])
def test_line_21_tools_are_declared_on_every_request(to: Destination) -> None:
    """docs/reference/wire.md, rule 21; PROVIDERS-7: the service remembers nothing, so each request declares them, byte for byte."""
    request = CASES["several_steps"]
    said = set()
    for end in range(1, len(request.messages) + 1):
        body = to.body(msgspec.structs.replace(request, messages=request.messages[:end]))
        said.add(json.dumps(body["tools"]))
    declared = body["tools"][0].get("functionDeclarations", body["tools"])
    assert len(said) == 1
    assert [each.get("function", each)["name"] for each in declared] == ["read_file", "run", "now"]
    if to.protocol == "gemini":
        refused(to, "one_call", lambda body: body.pop("tools"), 21, "declare the functions")


def test_line_22_a_response_is_output_or_error_under_the_id_of_its_call() -> None:
    """docs/reference/wire.md, rule 22; VALUES-2: never the tool's name for an id."""
    for to, name, body in sent("gemini"):
        results = [part for message in CASES[name].messages for part in message.results]
        for given, answer in zip(results, parts(body, "functionResponse"), strict=True):
            assert list(answer["response"]) == ["error" if given.is_error else "output"], f"{to.name} {name}"
            assert answer.get("id", given.call_id) == given.call_id, f"{to.name} {name}"
    both = parts(GEMINI.body(CASES["parallel_calls_of_one_tool"]), "functionResponse")
    assert [each["id"] for each in both] == ["call_1", "call_2"]

    def respond(**fields: Any) -> Callable[[Json], None]:
        return lambda body: body["contents"][2]["parts"][0]["functionResponse"].update(fields)

    refused(GEMINI, "one_call", respond(response="text"), 22, "Invalid value at 'contents[2].parts[0].function_response.response'")
    refused(GEMINI, "one_call", respond(response={"result": "text"}), 22, "either output or, where the function failed, error")
    refused(GEMINI, "one_call", respond(id="read_file"), 22, "expected the function call's id 'call_1'")


def read_chat(*wanted: str) -> Any:
    calls = [{"id": each, "type": "function", "function": {"name": "now", "arguments": "{}"}} for each in wanted]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    data = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    return openai_chat.from_wire(data, wire(OPENAI), lambda: {"call_1"})


def read_responses(*wanted: str) -> Any:
    output = [{"type": "function_call", "call_id": each, "name": "now", "arguments": "{}"} for each in wanted]
    return openai_responses.from_wire({"id": "1", "status": "completed", "output": output}, wire(RESPONSES), lambda: {"call_1"})


def read_anthropic(*wanted: str) -> Any:
    content = [{"type": "tool_use", "id": each, "name": "now", "input": {}} for each in wanted]
    data = {"id": "1", "type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use", "usage": {}}
    return anthropic.from_wire(data, wire(ANTHROPIC), lambda: {"call_1"})


def read_gemini(*wanted: str) -> Any:
    called = [{"functionCall": {"id": each, "name": "now", "args": {}}} for each in wanted]
    data = {"candidates": [{"content": {"role": "model", "parts": called}, "finishReason": "STOP"}]}
    return gemini.from_wire(data, wire(GEMINI), lambda: {"call_1"})


def wire(to: Destination) -> WireDestination:
    return WireDestination(to.deployment, to.profile, to.row[1])


@pytest.mark.parametrize("read", [read_chat, read_responses, read_anthropic, read_gemini])
def test_line_23_duplicate_and_empty_ids_become_unique_when_they_are_read(read: Callable[..., Any]) -> None:
    """docs/reference/wire.md, rule 23."""
    stored = [call.id for call in read("call_1", "", "x", "x", "").message.calls]
    assert len(set(stored)) == 5
    assert all(stored)
    assert "call_1" not in stored, "the conversation has used it already"
    assert stored[2] == "x"
    assert stored == [call.id for call in read("call_1", "", "x", "x", "").message.calls]


def test_line_23_wire_ids_are_a_function_of_the_id_alone() -> None:
    """docs/reference/wire.md, rule 23."""
    odd = ["functions.Bash:0", "functions.Bash:1", "a.b", "a:b", "a_b", "", "c" * 99, "c" * 100, "dx-1", "日本", "\ud83d"]
    for made in (lambda each: wire_id(each, 40), lambda each: wire_id(each, 64), mistral_id):
        assert len({made(each) for each in odd}) == len(odd)
        assert [made(each) for each in odd] == [made(each) for each in odd]
    name = "foreign_ids"
    alone, among = CASES[name], (*CASES["several_steps"].messages, *CASES[name].messages)
    for to in (ANTHROPIC, OPENAI, RESPONSES, GEMINI):
        longer = to.body(msgspec.structs.replace(alone, messages=among))
        assert set(ids_of(to.body(alone))) < set(ids_of(longer)), "what stands before an id changes nothing about it"

    def repeat(body: Json) -> None:
        calls = body["messages"][1]["tool_calls"]
        calls[1]["id"] = body["messages"][3]["tool_call_id"] = calls[0]["id"]

    def repeat_item(body: Json) -> None:
        body["input"][2]["call_id"] = body["input"][1]["call_id"]

    def repeat_part(body: Json) -> None:
        for content in body["contents"][1:]:
            for part in content["parts"]:
                part.get("functionCall", part.get("functionResponse"))["id"] = "call_1"

    refused(OPENAI, "parallel_calls_of_one_tool", repeat, 23, "the id 'call_1' is not unique")
    refused(RESPONSES, "parallel_calls_of_one_tool", repeat_item, 23, "Duplicate 'call_id': call_1")
    refused(GEMINI, "parallel_calls_of_one_tool", repeat_part, 23, "the function call id 'call_1' is not unique")


def ids_of(value: object, key: str = "") -> list[str]:
    """Every call's id in a body, in whatever protocol."""
    if isinstance(value, dict):
        return [found for name, item in value.items() for found in ids_of(item, name)]
    if isinstance(value, list):
        return [found for item in value for found in ids_of(item, key)]
    return [value] if key in ("id", "call_id") and isinstance(value, str) else []


LONE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]")


def test_line_24_lone_surrogates_never_reach_the_wire() -> None:
    """docs/reference/wire.md, rule 24: neither as bytes nor as escapes, nor as escapes within arguments."""
    for to in DESTINATIONS:
        for name, request in CASES.items():
            if name not in UNSENT:
                body = to.prepare(request).body
                body.decode()
                escaped = [found.group() for found in LONE.finditer(body)]
                assert not escaped, f"{to.name} {name}: {escaped}"
    said = OPENAI.body(CASES["lone_surrogates"])["messages"]
    assert said[0]["content"] == "low \ufffd half"
    assert said[1]["content"][0]["text"] == "half \ufffd a pair, and a pair in two halves 🙂"
    name = "arguments_with_surrogate_escapes"
    arguments = json.loads(OPENAI.body(CASES[name])["messages"][1]["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"command": "🙂 \ufffd \ufffd", "\ufffd": 1}

    def spoil(body: Json) -> None:
        first = next(body[key] for key in ("messages", "input", "contents") if key in body)[0]
        content = first.get("content") or first["parts"]
        content[0]["text"] = "half \ud83d"

    refused(ANTHROPIC, "single_prompt", spoil, 24, "no low surrogate in string")
    refused(OPENAI, "single_prompt", spoil, 24, "We could not parse the JSON body of your request")
    refused(RESPONSES, "single_prompt", spoil, 24, "We could not parse the JSON body of your request")
    refused(GEMINI, "single_prompt", spoil, 24, "Unpaired surrogate")
