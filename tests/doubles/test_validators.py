"""The strict validators: each of the 24 lines of what must hold on the wire, broken and kept."""

from __future__ import annotations

import json

import pytest

from dragoman.testing.mock.validate import Rules, fingerprint
from wire_bodies import (
    ANTHROPIC_TOOLS,
    LONE,
    SCHEMA,
    THOUGHT,
    Json,
    answer,
    anthropic,
    asked,
    assistant,
    calling,
    chat,
    declare,
    fn,
    function_call,
    gemini,
    marked,
    output,
    passes,
    reasoning,
    refused,
    reply,
    responses,
    result,
    said,
    text,
    told,
    turn,
    use,
    user,
)

# Anthropic


def test_every_call_is_answered_in_the_next_message() -> None:
    """docs/reference/wire.md, rule 1"""
    passes("anthropic", anthropic(user("hi"), assistant(use("a"), use("b")), user(result("a"), result("b"), "and"), tools=ANTHROPIC_TOOLS))
    unanswered = [
        [user("hi"), assistant(use("a"), use("b")), user(result("a"))],
        [user("hi"), assistant(use("b")), user("never mind", result("b"))],
        [user("hi"), assistant(use("a"), use("b")), user(result("a")), user(result("b"))],
        [user("hi"), assistant(use("b"), "after the call"), user(result("b"))],
        [user("hi"), assistant(use("b"))],
    ]
    for messages in unanswered:
        expected = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: b."
        refused("anthropic", anthropic(*messages, tools=ANTHROPIC_TOOLS), 1, expected)


def test_no_result_without_its_call() -> None:
    """docs/reference/wire.md, rule 2"""
    body = anthropic(user("hi"), assistant(use("a")), user(result("a"), result("b")), tools=ANTHROPIC_TOOLS)
    refused("anthropic", body, 2, "messages.2.content.1: unexpected `tool_use_id` found in `tool_result` blocks: b.")
    refused("anthropic", anthropic(user(result("a"))), 2, "messages.0.content.0: unexpected `tool_use_id`")
    orphan = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    body = anthropic(user("hi"), assistant(orphan, "so"), user("go on"))
    refused("anthropic", body, 2, "unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1.")


def test_ids_are_unique_and_have_one_result_each() -> None:
    """docs/reference/wire.md, rules 3 and 23"""
    body = anthropic(user("hi"), assistant(use("a"), use("a")), user(result("a")), tools=ANTHROPIC_TOOLS)
    refused("anthropic", body, 3, "messages.1.content.1: `tool_use` ids must be unique")
    twice = anthropic(user("hi"), assistant(use("a")), user(result("a"), result("a")), tools=ANTHROPIC_TOOLS)
    message = "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a"
    refused("anthropic", twice, 3, message)
    later = anthropic(*twice["messages"][:2], user(result("a")), assistant(use("a")), user(result("a")), tools=ANTHROPIC_TOOLS)
    passes("anthropic", later)
    run = anthropic(user("hi"), assistant(use("a")), assistant(use("a")), user(result("a")), tools=ANTHROPIC_TOOLS)
    refused("anthropic", run, 3, "messages.2.content.0: `tool_use` ids must be unique")


def test_ids_match_the_pattern() -> None:
    """docs/reference/wire.md, rule 4"""
    body = anthropic(user("hi"), assistant(use("functions.Bash:0")), user(result("functions.Bash:0")), tools=ANTHROPIC_TOOLS)
    refused("anthropic", body, 4, "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    refused("anthropic", anthropic(user(result("a.b"))), 4, "messages.0.content.0.tool_result.tool_use_id: String should match pattern")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (user(""), "text content blocks must be non-empty"),
        (user(" \n"), "text content blocks must contain non-whitespace text"),
        (user(result("a", [text("")])), "text content blocks must be non-empty"),
        ({"role": "user", "content": ""}, "messages.2: user messages must have non-empty content"),
        (user(), "messages.2: user messages must have non-empty content"),
    ],
)
def test_no_empty_text(message: Json, expected: str) -> None:
    """docs/reference/wire.md, rule 5"""
    refused("anthropic", anthropic(user("hi"), assistant(use("a")), message, tools=ANTHROPIC_TOOLS), 5, expected)
    passes("anthropic", anthropic(user("hi"), assistant(), user("hi"), assistant(use("a")), user(result("a", "")), tools=ANTHROPIC_TOOLS))


def test_thinking_of_the_latest_turn_is_unchanged_and_first_where_it_has_a_budget() -> None:
    """docs/reference/wire.md, rule 6"""
    known = Rules(known_signatures=frozenset({fingerprint(THOUGHT)}))
    changed = THOUGHT | {"thinking": "Let me look"}
    loop = [user("hi"), assistant(THOUGHT, use("a")), user(result("a"))]
    passes("anthropic", anthropic(*loop, tools=ANTHROPIC_TOOLS), known)
    old = [user("hi"), assistant(changed, "hello"), user("more"), assistant("fine"), user("go on")]
    passes("anthropic", anthropic(*old), known)
    modified = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
    loop[1] = assistant(changed, use("a"))
    refused("anthropic", anthropic(*loop, tools=ANTHROPIC_TOOLS), 6, f"messages.1.content.0: {modified}", known)
    loop[1] = assistant("So.", THOUGHT, use("a"))
    passes("anthropic", anthropic(*loop, tools=ANTHROPIC_TOOLS))
    budget = {"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 2048}}
    refused("anthropic", anthropic(*loop, tools=ANTHROPIC_TOOLS) | budget, 6, "messages.1.content.0.type: Expected `thinking`")
    done = anthropic(*loop, assistant("Done."), user("more"), assistant("So.", THOUGHT, "and."), user("go on"), tools=ANTHROPIC_TOOLS)
    refused("anthropic", done | budget, 6, f"messages.5.content.1: {modified}")
    refused("anthropic", anthropic(user("hi"), assistant(THOUGHT), user("hi")), 6, "The final block in an assistant message cannot be")
    unsigned = assistant(THOUGHT | {"signature": ""}, "so")
    refused("anthropic", anthropic(user("hi"), unsigned, user("hi")), 6, "messages.1.content.0: Invalid `signature` in `thinking` block")


def test_manual_thinking_wants_the_open_turn_to_start_with_thinking() -> None:
    """docs/reference/wire.md, rule 6"""
    manual = {"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 2048}, "tools": ANTHROPIC_TOOLS}
    steps = [assistant(use("a")), user(result("a")), assistant(use("b")), user(result("b"))]
    expected = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    refused("anthropic", anthropic(user("hi"), *steps, **manual), 6, expected)
    passes("anthropic", anthropic(user("hi"), assistant(THOUGHT, use("a")), *steps[1:], **manual))
    passes("anthropic", anthropic(user("hi"), *steps, user("stop"), **manual))
    passes("anthropic", anthropic(user("hi"), *steps, tools=ANTHROPIC_TOOLS, thinking={"type": "adaptive"}))


def test_the_user_has_the_last_word() -> None:
    """docs/reference/wire.md, rule 7"""
    message = "This model does not support assistant message prefill. The conversation must end with a user message."
    refused("anthropic", anthropic(user("hi"), assistant("The answer is")), 7, message)


def test_cache_marks() -> None:
    """docs/reference/wire.md, rule 8"""
    tool = ANTHROPIC_TOOLS[0] | marked("1h")
    system = [text("You help.", **marked("1h"))]
    blocks = [text("a", **marked()), text("b", **marked())]
    passes("anthropic", anthropic(user(*blocks), tools=[tool], system=system))
    five = anthropic(user(*blocks, text("c", **marked())), tools=[tool], system=system)
    refused("anthropic", five, 8, "A maximum of 4 blocks with cache_control may be provided. Found 5.")
    nested = result("a", [text("out", **marked("1h"))])
    late = anthropic(user("hi"), assistant(use("a")), user(nested), system=[text("x", **marked())], tools=ANTHROPIC_TOOLS)
    order = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    refused("anthropic", late, 8, f"messages.2.content.0.content.0.cache_control.ttl: {order}")
    on_thought = anthropic(user("hi"), assistant(THOUGHT | marked(), "so"), user("hi"))
    refused("anthropic", on_thought, 8, "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted")
    refused("anthropic", anthropic(user(text("", **marked()))), 8, "cache_control cannot be set for empty text blocks")


def test_system_is_a_field_of_the_request() -> None:
    """docs/reference/wire.md, rule 9"""
    passes("anthropic", anthropic(user("hi"), system="You help."))
    expected = 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter'
    refused("anthropic", anthropic({"role": "system", "content": "You help."}, user("hi")), 9, expected)


# OpenAI Chat


def test_calls_are_followed_by_their_tool_messages() -> None:
    """docs/reference/wire.md, rule 10"""
    passes("openai_chat", chat(said("user"), calling("call_1", "call_2"), answer("call_1"), answer("call_2"), said("user")))
    cut = "The following tool_call_ids did not have response messages: call_2"
    for tail in ([], [said("user")], [said("user"), answer("call_2")], [calling("call_3"), answer("call_3")]):
        refused("openai_chat", chat(said("user"), calling("call_1", "call_2"), answer("call_1"), *tail), 10, cut)
    orphan = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    refused("openai_chat", chat(said("user"), answer("call_1")), 10, orphan)
    refused("openai_chat", chat(said("user"), calling("call_1"), answer("call_1"), said("user"), answer("call_1")), 10, orphan)
    stranger = chat(said("user"), calling("call_1"), answer("call_9"))
    refused("openai_chat", stranger, 10, "'tool_call_id' of 'call_9' not found in 'tool_calls' of previous message.")
    twice = chat(said("user"), calling("call_1"), answer("call_1"), answer("call_1"))
    refused("openai_chat", twice, 10, "Duplicate value for 'tool_call_id' of 'call_1', in messages[2] and messages[3].")
    swapped = chat(said("user"), calling("call_1", "call_2"), answer("call_2"), answer("call_1"))
    passes("openai_chat", swapped)


def test_chat_ids_have_forty_characters() -> None:
    """docs/reference/wire.md, rule 11"""
    passes("openai_chat", chat(said("user"), calling("c" * 40), answer("c" * 40)))
    expected = "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40"
    found = refused("openai_chat", chat(said("user"), calling("c" * 41), answer("c" * 41)), 11, expected)
    assert found.code == "string_above_max_length"


def test_reasoning_is_passed_back() -> None:
    """docs/reference/wire.md, rule 12"""
    deepseek = Rules(service="deepseek", reasoning_field="reasoning_content", reasoning_back="always")
    kimi = Rules(service="kimi", reasoning_field="reasoning_content", reasoning_back="calls")
    bare = chat(said("user"), calling("call_1"), answer("call_1"))
    kept = chat(said("user"), calling("call_1", reasoning_content="Hm."), answer("call_1"))
    empty = chat(said("user"), calling("call_1", reasoning_content=""), answer("call_1"))
    missing = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
    refused("openai_chat", bare, 12, "The `reasoning_content` in the thinking mode must be passed back to the API.", deepseek)
    refused("openai_chat", bare, 12, missing, kimi)
    refused("openai_chat", empty, 12, missing, kimi)
    for body, rules in ((kept, deepseek), (kept, kimi), (empty, deepseek), (chat(said("user"), said("assistant"), said("user")), kimi)):
        passes("openai_chat", body, rules)
    refused("openai_chat", kept, 12, "Unknown parameter: 'messages[1].reasoning_content'.")
    refused("openai_chat", chat(said("user"), said("assistant"), said("user")), 12, "must be passed back", deepseek)
    switched_off = chat(*bare["messages"], thinking={"type": "disabled"})
    passes(
        "openai_chat",
        switched_off,
        Rules(service="kimi", reasoning_field="r", reasoning_back="calls", extra_fields=frozenset({"thinking"})),
    )


def test_strict_templates() -> None:
    """docs/reference/wire.md, rule 13"""
    strict = Rules(strict_template=True)
    step = [calling("call_1"), answer("call_1"), said("assistant")]
    passes("openai_chat", chat(said("system"), said("user"), *step, said("user")), strict)
    alternate = "After the optional system message, conversation roles must alternate user and assistant roles"
    refused("openai_chat", chat(said("user"), said("user")), 13, alternate, strict)
    refused("openai_chat", chat(said("assistant"), said("user")), 13, alternate, strict)
    refused("openai_chat", chat(said("user"), *step[:2], said("user")), 13, alternate, strict)
    for messages in ([said("system"), said("system"), said("user")], [said("user"), said("system")]):
        refused("openai_chat", chat(*messages), 13, "System message must be at the beginning.", strict)
    mistral = Rules(call_id="mistral")
    passes("openai_chat", chat(said("user"), calling("a1B2c3D4e"), answer("a1B2c3D4e")), mistral)
    expected = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    assert refused("openai_chat", chat(said("user"), calling("call_1"), answer()), 13, expected, mistral).code == "3280"


SIGNED = {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0}
MARK = {"cache_control": {"type": "ephemeral"}}
OPENROUTER = Rules(service="openrouter", reasoning_field="reasoning_details", reasoning_back="always", empty_text_refused=True)
MISTRAL = Rules(service="mistral", call_id="mistral", empty_text_refused=True)
GROQ = Rules(service="groq", max_tokens_field="max_completion_tokens")


@pytest.mark.parametrize(
    ("rules", "body"),
    [
        (OPENROUTER, chat(said("user"), calling("call_1", content="", reasoning_details=[SIGNED]), answer("call_1"))),
        (OPENROUTER, chat(said("user", [text("hi") | MARK]), provider={"order": ["anthropic"]}, models=["a/b"], top_k=5)),
        (OPENROUTER, chat(said("user"), preset="p", usage={"include": True}, tools=[{"type": "openrouter:web_search", "parameters": {}}])),
        (MISTRAL, chat(said("user"), calling("a1B2c3D4e", content=[]), answer("a1B2c3D4e"))),
        (MISTRAL, chat(said("user"), {"role": "assistant", "content": "So", "prefix": True})),
        (MISTRAL, chat(said("user"), tools=[{"function": {"name": "f", "parameters": {"type": "object"}}}], tool_choice="any")),
        (MISTRAL, chat(said("user", [{"type": "image_url", "image_url": "https://example.org/a.png"}]))),
        (MISTRAL, chat(said("user", [{"type": "document_url", "document_url": "https://example.org/a.pdf"}]), safe_prompt=True)),
        (MISTRAL, chat(said("user"), said("assistant", [{"type": "thinking", "thinking": [text("hm")]}, text("a")]), said("user"))),
        (GROQ, chat(said("user"), max_tokens=5, reasoning_format="parsed", reasoning_effort="default")),
        (Rules(service="deepseek"), chat(said("user"), calling("call_1", reasoning_content="hm"), answer("call_1"), said("system"))),
        (Rules(service="glm"), chat(said("user"), thinking={"type": "enabled", "clear_thinking": False}, reasoning_effort="max")),
        (Rules(), chat(said("user"), {"role": "assistant", "content": "a", "annotations": []}, said("user"), tools=None)),
        (Rules(), chat(said("user"), functions=[{"name": "f"}], function_call="auto")),
    ],
)
def test_what_a_service_accepts_beyond_the_protocol(rules: Rules, body: Json) -> None:
    """As recorded."""
    passes("openai_chat", body, rules)


def test_what_single_services_and_models_refuse() -> None:
    """As recorded, or as their SDKs say."""
    effort = "Invalid value: 'medium'. Supported values are: 'none' and 'high'."
    refused("openai_chat", chat(said("user"), reasoning_effort="medium"), 0, effort, MISTRAL)
    for word, rules in (("xhigh", GROQ), ("max", Rules(service="together")), ("medium", Rules(service="kimi"))):
        refused("openai_chat", chat(said("user"), reasoning_effort=word), 0, f"Invalid value: '{word}'.", rules)
    refused("openai_chat", chat(said("user"), reasoning={"effort": "much"}), 0, "Invalid value: 'much'.", OPENROUTER)
    refused("openai_chat", {**chat(said("user"), stop=["x"]), "model": "o1-mini"}, 0, "'stop' is not supported with this model.")
    refused("openai_chat", {**chat(said("system"), said("user")), "model": "o1-mini"}, 0, "does not support 'system' with this model")
    refused("openai_chat", chat(said("user"), temperature=2.5), 0, "decimal above maximum value. Expected a value <= 2")
    refused("openai_chat", {**chat(said("user"), web_search_options={}), "model": "gpt-4o"}, 0, "Web search options not supported")
    heard = said("user", [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}])
    refused("openai_chat", {**chat(heard), "model": "gpt-5-mini"}, 0, "expected to be either text or image_url type")
    passes("openai_chat", {**chat(heard), "model": "gpt-audio"})
    picture = said("user", [{"type": "image_url", "image_url": {"url": "data:image/png;base64,UGxlYXNl"}}])
    refused("openai_chat", chat(picture), 0, "You uploaded an unsupported image.")
    marks = [said("user", [text("hi") | MARK]), said("assistant")] * 5
    claude = {**chat(*marks, said("user")), "model": "anthropic/claude-sonnet-5.5"}
    refused("openai_chat", claude, 8, "A maximum of 4 blocks with cache_control may be provided. Found 5.", OPENROUTER)
    odd = chat(said("user"), said("assistant", reasoning_details=[{"type": "thinking"}]), said("user"))
    refused("openai_chat", odd, 0, "Invalid value: 'thinking'.", OPENROUTER)


@pytest.mark.parametrize("word", ["oneOf", "allOf", "not", "prefixItems", "patternProperties"])
def test_a_strict_schema_may_not_use_every_word(word: str) -> None:
    inner = {"type": "object", "properties": {"x": {word: []}}, "required": ["x"], "additionalProperties": False}
    schema = {"name": "answer", "strict": True, "schema": inner}
    body = chat(said("user"), response_format={"type": "json_schema", "json_schema": schema})
    refused("openai_chat", body, 0, f"In context=('properties', 'x'), '{word}' is not permitted.")
    body["response_format"]["json_schema"]["strict"] = False
    passes("openai_chat", body)


def test_some_services_refuse_empty_text() -> None:
    """docs/reference/wire.md, rule 14"""
    rules = Rules(empty_text_refused=True)
    for content in ("", [text("")]):
        body = chat(said("user"), calling("call_1"), answer("call_1", content))
        refused("openai_chat", body, 14, "text content is empty", rules)
        passes("openai_chat", body)
    passes("openai_chat", chat(said("user"), calling("call_1"), answer("call_1", "(no output)")), rules)


# OpenAI Responses


def test_calls_and_outputs_meet_by_call_id() -> None:
    """docs/reference/wire.md, rule 15"""
    passes("openai_responses", responses(asked(), function_call("call_1"), function_call("call_2"), output("call_2"), output("call_1")))
    refused("openai_responses", responses(asked(), function_call()), 15, "No tool output found for function call call_1.")
    orphan = "No tool call found for function call output with call_id call_1."
    refused("openai_responses", responses(asked(), output()), 15, orphan)
    refused("openai_responses", responses(asked(), output(), function_call()), 15, orphan)
    passes("openai_responses", responses(output(), previous_response_id="resp_1"))
    long = responses(asked(), function_call("c" * 65), output("c" * 65))
    refused("openai_responses", long, 15, "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64")


def test_reasoning_and_the_item_it_precedes_stay_together() -> None:
    """docs/reference/wire.md, rule 16"""
    rules = Rules(reasoning_items={"msg_1": "rs_1", "fc_1": "rs_1"})
    passes("openai_responses", responses(asked(), reasoning(), told(id="msg_1"), function_call(id="fc_1"), output()), rules)
    alone = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    for tail in ([], [asked()], [output("call_2")]):
        items = [asked(), function_call(), function_call("call_2"), output(), *([output("call_2")] if tail != [output("call_2")] else [])]
        refused("openai_responses", responses(*items, reasoning(), *tail), 16, alone)
    bereft = "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: 'rs_1'"
    refused("openai_responses", responses(asked(), told(id="msg_1"), asked()), 16, bereft, rules)
    refused("openai_responses", responses(reasoning(), told("so"), asked(), told(id="msg_1"), asked()), 16, bereft, rules)


def test_encrypted_content_is_the_services_own() -> None:
    """docs/reference/wire.md, rule 17"""
    body = responses(asked(), reasoning(), told(), asked())
    passes("openai_responses", body, Rules(known_signatures=frozenset({"gAAAAABsecretDQ=="})))
    found = refused(
        "openai_responses", body, 17, "The encrypted content gAAA...DQ== could not be verified.", Rules(known_signatures=frozenset())
    )
    assert found.code == "invalid_encrypted_content"
    bare = reasoning()
    del bare["encrypted_content"]
    lost = refused(
        "openai_responses", responses(asked(), bare, told(), store=False), 17, "Item with id 'rs_1' not found. Items are not persisted"
    )
    assert lost.status == 404


# Gemini


def test_function_responses_answer_the_call_turn() -> None:
    """docs/reference/wire.md, rule 18"""
    calls = turn("model", "I look.", fn("read"), fn("list"))
    replies = turn("user", reply("read"), reply("list"), "and then?")
    passes("gemini", gemini(turn("user", "hi"), calls, replies, tools=declare()))
    count = (
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
    )
    early = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    late = "Please ensure that function response turn comes immediately after a function call turn."
    cases = [
        ([turn("user", "hi"), calls, turn("user", reply("read"))], count),
        ([turn("user", "hi"), calls, turn("user", "never mind")], count),
        ([turn("model", fn()), turn("user", reply())], early),
        ([turn("user", reply())], late),
        ([turn("user", "hi"), turn("model", "so")], "Please ensure that single turn requests end with a user role"),
        ([turn("user", "hi"), calls, turn("user", "so:", reply("read"), reply("list"))], "come before any other part"),
        ([turn("user", "hi"), calls, turn("user", reply("list"), reply("read"))], "in the order of the function calls"),
        ([turn("model", "hello"), turn("user", "hi")], "starts with a user turn"),
    ]
    for contents, expected in cases:
        refused("gemini", gemini(*contents, tools=declare()), 18, expected)


def test_thought_signatures_ride_on_the_part() -> None:
    """docs/reference/wire.md, rule 19"""
    rules = Rules(thought_signatures=True)
    first = [turn("user", "hi"), turn("model", fn(signature="c2ln"), fn()), turn("user", reply(), reply())]
    passes("gemini", gemini(*first, tools=declare()), rules)
    passes(
        "gemini",
        gemini(turn("user", "hi"), turn("model", fn()), turn("user", reply()), turn("model", "so"), turn("user", "go on"), tools=declare()),
        rules,
    )
    bare = gemini(*first, turn("model", fn("list")), turn("user", reply("list")), tools=declare())
    refused("gemini", bare, 19, "Function call is missing a thought_signature in functionCall parts.", rules)
    refused("gemini", bare, 19, "function call `default_api:list` , position 4", rules)
    passes("gemini", bare)
    skipped = gemini(
        turn("user", "hi"), turn("model", fn(signature="skip_thought_signature_validator")), turn("user", reply()), tools=declare()
    )
    passes("gemini", skipped, rules)
    inside = gemini(turn("user", "hi"), turn("model", fn(thoughtSignature="c2ln")), turn("user", reply()), tools=declare())
    refused("gemini", inside, 19, "Unknown name \"thoughtSignature\" at 'contents[1].parts[0].function_call'")
    refused(
        "gemini", gemini(*first, tools=declare()), 19, "Thought signature is not valid", Rules(known_signatures=frozenset({"b3RoZXI="}))
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            SCHEMA | {"additionalProperties": False},
            "Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters'",
        ),
        (SCHEMA | {"$schema": "x"}, 'Unknown name "$schema"'),
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}},
            "Unknown name \"$ref\" at 'tools[0].function_declarations[0].parameters.properties[0].value'",
        ),
        ({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}, "Proto field is not repeating, cannot start list."),
        (
            {"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}},
            "only 'enum' and 'date-time' are supported for STRING type",
        ),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, "parameters.properties[a].items: missing field."),
        (
            {"type": "object", "properties": {"a": {"anyOf": [], "items": {"type": "string"}}}},
            "items: field predicate failed: $type == Type.ARRAY",
        ),
        ({"properties": {"a": {"type": "string"}}}, "parameters.properties: only allowed for OBJECT type"),
        (SCHEMA | {"required": ["b"]}, "parameters.required[0]: property is not defined"),
        ({"type": "object", "properties": {"a": {"type": "integer", "enum": [1]}}}, "enum[0]' (TYPE_STRING), 1"),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, 'v1beta.Type), "text"'),
    ],
)
def test_tool_schemas_in_the_accepted_form(schema: Json, expected: str) -> None:
    """docs/reference/wire.md, rule 20"""
    subset = Rules(tool_schema="subset")
    refused("gemini", gemini(turn("user", "hi"), tools=declare(parameters=schema)), 20, expected, subset)
    passes("gemini", gemini(turn("user", "hi"), tools=declare(parameters=SCHEMA)), subset)
    if schema.get("type") == "object":
        passes("gemini", gemini(turn("user", "hi"), tools=declare(parametersJsonSchema=schema)))
    full = gemini(turn("user", "hi"), tools=declare(parametersJsonSchema=SCHEMA))
    refused("gemini", full, 20, 'Unknown name "parametersJsonSchema"', subset)


def test_tools_are_declared_on_every_request() -> None:
    """docs/reference/wire.md, rule 21"""
    contents = [turn("user", "hi"), turn("model", fn()), turn("user", reply())]
    passes("gemini", gemini(*contents, tools=declare()))
    assert refused("gemini", gemini(*contents), 21, "declare the functions").paraphrase
    passes("anthropic", anthropic(user("hi"), assistant(use("a")), user(result("a"))))
    passes("openai_chat", chat(said("user"), calling("call_1"), answer("call_1")))


def test_a_run_of_one_role_is_one_turn_for_gemini() -> None:
    """docs/reference/wire.md, rule 18: recorded exchanges with such runs were answered."""
    calls = [turn("model", fn("read")), turn("model", fn("list"))]
    apart = [turn("user", reply("read")), turn("user", reply("list")), turn("user", "and then?")]
    passes("gemini", gemini(turn("user", "hi"), turn("user", "ho"), *calls, *apart, tools=declare()))
    passes("gemini", gemini(turn("user", "hi"), turn("model", "So."), turn("model", fn()), turn("user", reply()), tools=declare()))


def test_gemini_takes_a_list_of_one_as_the_thing_itself() -> None:
    declared = {"functionDeclarations": {"name": "read", "parameters": {"type": 6, "properties": {}}}}
    body = {"contents": {"role": "user", "parts": {"text": "hi"}}, "systemInstruction": {"parts": {"text": ""}}, "tools": declared}
    passes("gemini", body)
    refused("gemini", body | {"contents": {"parts": {"words": "hi"}}}, 0, "Unknown name \"words\" at 'contents[0].parts[0]'")


def test_gemini_takes_a_part_of_a_signature_alone() -> None:
    signed = {"role": "model", "parts": [{"thought": True, "thoughtSignature": "c2ln"}]}
    passes("gemini", gemini(turn("user", "hi"), signed, turn("user", "go on")))


def test_responses_are_output_or_error_under_the_calls_id() -> None:
    """docs/reference/wire.md, rule 22"""
    ask, calls = turn("user", "hi"), turn("model", fn(id="c1"), fn(id="c2"))
    passes("gemini", gemini(ask, calls, turn("user", reply(id="c1"), reply(id="c2", response={"error": "gone"})), tools=declare()))
    for response in ({}, {"result": "ok"}, {"output": "ok", "error": "no"}):
        body = gemini(ask, turn("model", fn()), turn("user", reply(response=response)), tools=declare())
        refused("gemini", body, 22, "either output or", Rules(our_results=True))
        passes("gemini", body)  # the rule is ours: the service takes any object
    as_text = gemini(ask, turn("model", fn()), turn("user", reply(response="ok")), tools=declare())
    refused(
        "gemini",
        as_text,
        22,
        "Invalid value at 'contents[2].parts[0].function_response.response' (type.googleapis.com/google.protobuf.Struct)",
    )
    by_name = gemini(ask, calls, turn("user", reply(id="read"), reply(id="read")), tools=declare())
    refused("gemini", by_name, 22, "expected the function call's id 'c1'")


def test_ids_are_unique_in_the_conversation_and_not_empty() -> None:
    """docs/reference/wire.md, rule 23"""
    again = [calling("call_1"), answer("call_1"), calling("call_1"), answer("call_1")]
    refused("openai_chat", chat(said("user"), *again), 23, "'call_1' is not unique")
    refused("openai_chat", chat(said("user"), calling("")), 23, "Invalid 'messages[1].tool_calls[0].id': empty string.")
    twice = responses(asked(), function_call(), function_call(), output())
    refused("openai_responses", twice, 23, "Duplicate 'call_id': call_1")
    same_item = responses(asked(), told(id="msg_1"), asked(), told(id="msg_1"), asked())
    refused("openai_responses", same_item, 23, "Duplicate item found with id msg_1. Remove duplicate items from your input and try again.")
    contents = [turn("user", "hi"), turn("model", fn(id="c"), fn(id="c")), turn("user", reply(id="c"), reply(id="c"))]
    refused("gemini", gemini(*contents, tools=declare()), 23, "'c' is not unique")


def test_lone_surrogates_never_reach_the_wire() -> None:
    """docs/reference/wire.md, rule 24"""
    found = refused("anthropic", anthropic(user(LONE)), 24, "The request body is not valid JSON: no low surrogate in string: line 1 column")
    column = int(found.message.split("column ")[1].split()[0])
    assert json.dumps(anthropic(user(LONE)), separators=(",", ":"))[column - 1 :].startswith("\\ud83d")
    refused("openai_chat", chat(said("user", LONE)), 24, "We could not parse the JSON body of your request.")
    escaped = calling("call_1")
    escaped["tool_calls"][0]["function"]["arguments"] = '{"path":"\\ud83d"}'
    refused("openai_chat", chat(said("user"), escaped, answer("call_1")), 24, "We could not parse")
    refused("openai_responses", responses(asked(), told(LONE), asked()), 24, "We could not parse")
    refused("gemini", gemini(turn("user", "hi"), turn("model", fn(LONE)), turn("user", reply())), 24, "Invalid JSON payload received.")
    passes("anthropic", anthropic(user("a whole pair: \U0001f600, and its name: \\ud83d")))
