"""Validates the items of a Responses conversation: calls and their outputs, reasoning items and what follows them."""

from __future__ import annotations

from dragoman.testing.mock.violation import Json, Rules, Violation


def results_violation(body: Json, _rules: Rules) -> Violation | None:
    elsewhere = any(body.get(each) for each in ("previous_response_id", "conversation"))
    calls: set[str] = set()
    answered: set[str] = set()
    for item in input_items(body):
        kind = type_of_item(item)
        if kind == "function_call":
            if item["call_id"] in calls:
                return Violation(23, f"Duplicate 'call_id': {item['call_id']}", paraphrase=True)
            calls.add(item["call_id"])
        elif kind == "function_call_output":
            call = item["call_id"]
            if call in answered:
                return Violation(15, f"Found more than one function call output with call_id {call}.", paraphrase=True)
            if call not in calls and not elsewhere:
                return Violation(15, f"No tool call found for function call output with call_id {call}.")
            answered.add(call)
    unanswered = [
        item["call_id"] for item in input_items(body) if type_of_item(item) == "function_call" and item["call_id"] not in answered
    ]
    return Violation(15, f"No tool output found for function call {unanswered[0]}.") if unanswered else None


def reasoning_violation(body: Json, rules: Rules) -> Violation | None:
    items = input_items(body)
    for index, item in enumerate(items):
        kind, name = type_of_item(item), item.get("id") or ""
        required = rules.reasoning_items.get(name)
        if required and required not in _reasoning_ids(items, index):
            return Violation(16, f"Item '{name}' of type '{kind}' was provided without its required 'reasoning' item: '{required}'.")
        if kind != "reasoning":
            continue
        secret = item.get("encrypted_content")
        if secret and rules.known_signatures is not None and secret not in rules.known_signatures:
            wording = f"The encrypted content {secret[:4]}...{secret[-4:]} could not be verified."
            return Violation(17, wording, code="invalid_encrypted_content")
        if index + 1 == len(items) or not _is_model_made(items[index + 1]) or (name and _is_plain(items[index + 1])):
            wording = f"Item '{name}' of type 'reasoning' was provided without its required following item."
            return Violation(16, wording, paraphrase=not name)
        if name and not secret and body.get("store") is False:
            wording = f"Item with id '{name}' not found. Items are not persisted when `store` is set to false. "
            wording += "Try again with `store` set to true, or remove this item from your input."
            return Violation(17, wording, status=404)
    return None


def _reasoning_ids(items: list[Json], index: int) -> set[str]:
    """Ids of the reasoning items in the run of model items that ends before an index."""
    found: set[str] = set()
    for item in reversed(items[:index]):
        if not _is_model_made(item):
            break
        if type_of_item(item) == "reasoning":
            found.add(str(item.get("id")))
    return found


def _is_plain(item: Json) -> bool:
    """An answer as plain text: not the item that a reasoning item's id names as the next one."""
    return type_of_item(item) == "message" and isinstance(item["content"], str)


def _is_model_made(item: Json) -> bool:
    kind = type_of_item(item)
    if kind == "message":
        return item["role"] == "assistant"
    return not kind.endswith(("_output", "_response")) and kind not in ("additional_tools", "compaction_trigger")


def input_items(body: Json) -> list[Json]:
    given = body.get("input")
    return given if isinstance(given, list) else []


def type_of_item(item: Json) -> str:
    if item.get("type") is not None:
        return str(item["type"])
    return "message" if "role" in item else "item_reference" if "id" in item else ""
