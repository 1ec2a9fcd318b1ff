"""Validates the turns of an Anthropic conversation: calls and their results, thinking, and the order of roles."""

from __future__ import annotations

from dragoman.testing.mock.anthropic_blocks import THINKING_TYPES, content_of
from dragoman.testing.mock.anthropic_models import abilities_of
from dragoman.testing.mock.violation import Json, Rules, Violation, fingerprint


def results_violation(body: Json, _rules: Rules) -> Violation | None:
    """Every call of a turn needs exactly one result, at the start of the next message, and every result a call."""
    messages = body["messages"]
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        blocks = content_of(message)
        if message["role"] == "user":
            if found := _leading_results_violation(blocks, index, open_calls):
                return found
            open_calls = []
            continue
        for at, block in enumerate(blocks):
            if block["type"] == "text" and open_calls:
                return _unanswered_violation(index, open_calls)
            if block["type"] != "tool_use":
                continue
            if block["id"] in open_calls:
                return Violation(3, f"messages.{index}.content.{at}: `tool_use` ids must be unique")
            open_calls.append(block["id"])
        following = messages[index + 1] if index + 1 < len(messages) else {"role": "", "content": []}
        if following["role"] == "assistant":  # the turn goes on
            continue
        answered = _leading_results(content_of(following)) if following["role"] == "user" else []
        if missing := [each for each in open_calls if each not in answered]:
            return _unanswered_violation(index, missing)
    return None


def _leading_results_violation(blocks: list[Json], index: int, open_calls: list[str]) -> Violation | None:
    answered: set[str] = set()
    for at, block in enumerate(blocks):
        if block["type"] != "tool_result":
            continue
        call = block["tool_use_id"]
        if call not in open_calls:
            wording = f"messages.{index}.content.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
            return Violation(2, f"{wording}Each `tool_result` block must have a corresponding `tool_use` block in the previous message.")
        if call in answered:
            wording = f"messages.{index}.content.{at}: each tool_use must have a single result. "
            return Violation(3, f"{wording}Found multiple `tool_result` blocks with id: {call}")
        answered.add(call)
    return None


def server_results_violation(body: Json, _rules: Rules) -> Violation | None:
    """The service's own tools: each result must follow its call in the same turn. A call may still be waiting for it at the end, or when
    the calls made beside it have their results: the result is then the first thing in the next answer."""
    messages = body["messages"]
    open_calls: dict[str, str] = {}
    for index, message in enumerate(messages):
        blocks = content_of(message)
        if message["role"] == "user" and open_calls and any(block["type"] != "tool_result" for block in blocks):
            return _waiting_violation(open_calls, index - 1)
        for at, block in enumerate(blocks):
            kind = block["type"]
            if kind in ("server_tool_use", "mcp_tool_use"):
                open_calls[block["id"]] = block["name"]
            elif kind.endswith("_tool_result") and open_calls.pop(block["tool_use_id"], None) is None:
                wording = f"messages.{index}.content.{at}: unexpected `tool_use_id` found in `{kind}` blocks: {block['tool_use_id']}. "
                return Violation(2, f"{wording}Each `{kind}` block must have a corresponding `server_tool_use` block before it.")
    return None


def _waiting_violation(open_calls: dict[str, str], index: int) -> Violation:
    call, name = next(iter(open_calls.items()))
    wording = f"`{name}` tool use with id `{call}` was found without a corresponding `{name}_tool_result` block"
    return Violation(1, f"messages.{index}: {wording}")


def thinking_violation(body: Json, rules: Rules) -> Violation | None:
    """Thinking must not end a message; in the latest turn it must be unchanged, and first where it has a budget."""
    messages = body["messages"]
    for index, message in enumerate(messages):
        blocks = content_of(message)
        if blocks and blocks[-1]["type"] in THINKING_TYPES and not _goes_on(messages, index):
            return Violation(6, f"messages.{index}: The final block in an assistant message cannot be `{blocks[-1]['type']}`.")
        for at, block in enumerate(blocks):
            if block["type"] == "thinking" and not block["signature"]:
                return Violation(6, f"messages.{index}.content.{at}: Invalid `signature` in `thinking` block")
    has_budget = (body.get("thinking") or {}).get("type") == "enabled"
    turn = _latest_turn(messages)
    if found := _missing_thinking_violation(body, turn):
        return found
    for index in turn:
        blocks = content_of(messages[index])
        thinking = [at for at, block in enumerate(blocks) if block["type"] in THINKING_TYPES]
        moved = (
            has_budget and bool(thinking and thinking[0]) and not _goes_on(messages, index - 1) and not _has_found(blocks[: thinking[0]])
        )
        known = rules.known_signatures
        changed = [at for at in thinking if known is not None and fingerprint(blocks[at]) not in known]
        if moved or changed:
            where = f"messages.{index}.content.{(changed or thinking)[0]}"
            wording = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
            return Violation(6, f"{where}: {wording} These blocks must remain as they were in the original response.")
    return None


def _goes_on(messages: list[Json], index: int) -> bool:
    """Whether the message after this one is part of the same turn of the assistant."""
    return 0 <= index < len(messages) - 1 and messages[index]["role"] == messages[index + 1]["role"] == "assistant"


def _has_found(blocks: list[Json]) -> bool:
    """Whether one of the service's own tools has answered: then the model may think again."""
    return any(block["type"].endswith("_tool_result") for block in blocks)


def _missing_thinking_violation(body: Json, turn: list[int]) -> Violation | None:
    """Manual thinking: a turn whose tool loop is still open must start with a thinking block."""
    messages = body["messages"]
    config = body.get("thinking") or {}
    in_loop = any(block["type"] == "tool_result" for block in content_of(messages[-1]))
    if config.get("type") != "enabled" or not in_loop or not turn:
        return None
    opening = content_of(messages[turn[0]])
    found = opening[0]["type"] if opening else ""
    if not found or found in THINKING_TYPES:
        return None
    wording = f"Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` message "
    wording += "must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
    wording += (
        "include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation "
    )
    return Violation(
        6, f"messages.{turn[0]}.content.0.type: {wording}at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
    )


def _latest_turn(messages: list[Json]) -> list[int]:
    """Indices of the assistant messages of the latest turn: those since the last user message that is not a tool result."""
    found: list[int] = []
    for index in reversed(range(len(messages))):
        if messages[index]["role"] == "assistant":
            found.append(index)
        elif found and not any(block["type"] == "tool_result" for block in content_of(messages[index])):
            break
    return found[::-1]


def last_role_violation(body: Json, _rules: Rules) -> Violation | None:
    """The last message must be the user's, unless the model is to go on with its own work, or takes a beginning of its answer."""
    last = body["messages"][-1]
    blocks = content_of(last)
    works = any(block["type"] in ("server_tool_use", "mcp_tool_use") for block in blocks)
    if last["role"] != "assistant" or works or abilities_of(body["model"]).prefill:
        return None
    return Violation(7, "This model does not support assistant message prefill. The conversation must end with a user message.")


def _leading_results(blocks: list[Json]) -> list[str]:
    found: list[str] = []
    for block in blocks:
        if block["type"] != "tool_result":
            break
        found.append(block["tool_use_id"])
    return found


def _unanswered_violation(index: int, calls: list[str]) -> Violation:
    wording = f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(calls)}. "
    return Violation(1, f"{wording}Each `tool_use` block must have a corresponding `tool_result` block in the next message.")
