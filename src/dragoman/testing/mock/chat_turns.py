"""Validates the turns of a Chat Completions conversation: calls and their results, reasoning that is sent back, the order of roles."""

from __future__ import annotations

from dragoman.testing.mock.violation import Json, Rules, Violation


def results_violation(body: Json, _rules: Rules) -> Violation | None:
    known: dict[str, int] = {}
    group: list[str] = []
    pending: list[str] = []
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if found := _answer(message["tool_call_id"], index, group, pending, known):
                return found
            pending.remove(message["tool_call_id"])
            known[message["tool_call_id"]] = index
            continue
        if pending:
            break
        group = [call["id"] for call in message.get("tool_calls") or []]
        for call in group:
            if call in known or group.count(call) > 1:
                return Violation(23, f"Invalid 'messages[{index}].tool_calls': the id '{call}' is not unique.", paraphrase=True)
        known |= dict.fromkeys(group, index)
        pending = list(group)
    if not pending:
        return None
    wording = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    return Violation(10, f"{wording}The following tool_call_ids did not have response messages: {', '.join(pending)}")


def _answer(call: str, index: int, group: list[str], pending: list[str], known: dict[str, int]) -> Violation | None:
    if not group:
        wording = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
        return Violation(10, f"Invalid parameter: {wording}")
    if call not in group:
        return Violation(10, f"Invalid parameter: 'tool_call_id' of '{call}' not found in 'tool_calls' of previous message.")
    if call not in pending:
        wording = f"Duplicate value for 'tool_call_id' of '{call}', in messages[{known[call]}] and messages[{index}]."
        return Violation(10, f"Invalid parameter: {wording}")
    return None


def reasoning_violation(body: Json, rules: Rules) -> Violation | None:
    switched_off = isinstance(body.get("thinking"), dict) and body["thinking"].get("type") == "disabled"
    if rules.service not in ("deepseek", "kimi") or rules.reasoning_back == "never" or switched_off:
        return None  # all others take what they are given
    for index, message in enumerate(body["messages"]):
        if message["role"] != "assistant" or (rules.reasoning_back == "calls" and not message.get("tool_calls")):
            continue
        given = message.get(rules.reasoning_field)
        # Kimi accepts an empty string as missing; DeepSeek does not.
        if given or (given == "" and rules.service != "kimi"):
            continue
        if rules.service == "deepseek":
            return Violation(12, f"The `{rules.reasoning_field}` in the thinking mode must be passed back to the API.")
        where = f"in assistant tool call message at index {index}"
        return Violation(12, f"thinking is enabled but {rules.reasoning_field} is missing {where}")
    return None


def template_violation(body: Json, rules: Rules) -> Violation | None:
    messages = body["messages"]
    if rules.call_id == "mistral" and messages[-1]["role"] == "assistant" and not messages[-1].get("prefix"):
        return Violation(13, "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant")
    if not rules.strict_template:
        return None
    expected = "user"
    for index, message in enumerate(messages):
        role = message["role"]
        if role in ("system", "developer") and index > 0:
            return Violation(13, "System message must be at the beginning.")
        # As the templates count: calls and their results do not take part in the alternation.
        if role not in ("user", "assistant") or message.get("tool_calls"):
            continue
        if role != expected:
            wording = "After the optional system message, conversation roles must alternate user and assistant roles "
            return Violation(13, f"{wording}except for tool calls and results")
        expected = "assistant" if role == "user" else "user"
    return None
