"""Validates the turns of a Gemini conversation: roles, function calls and their responses, thought signatures."""

from __future__ import annotations

from typing import Any

from dragoman.testing.mock.gemini_schema import camel, list_of
from dragoman.testing.mock.violation import Json, Rules, Violation

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Replaces a signature that is not available because the call came from another model."""


def turns_violation(contents: list[Json], declared: bool, rules: Rules) -> Violation | None:
    """The first turn out of place. The contents' fields have been checked."""
    roles, turns = _merge_runs(contents)
    checks = (
        _order_violation(roles, turns),
        _responses_violation(roles, turns),
        _id_violation(turns),
        _signature_violation(roles, turns, rules),
    )
    if found := next((each for each in checks if each), None):
        return found
    called = any(_calls(turn) for turn in turns)
    if called and not declared:
        wording = "Please declare the functions that the function call turns of the conversation have called."
        return Violation(21, wording, paraphrase=True)
    return None


def _merge_runs(contents: list[Json]) -> tuple[list[str], list[list[Json]]]:
    """The turns with their roles. The service takes a run of one role for one turn."""
    roles: list[str] = []
    turns: list[list[Json]] = []
    for content in contents:
        parts: Any = list_of(content["parts"])
        role = content.get("role") or "user"
        if not roles or role != roles[-1]:
            roles.append(role)
            turns.append([])
        turns[-1] += map(_camel, parts)
    return roles, turns


def _order_violation(roles: list[str], turns: list[list[Json]]) -> Violation | None:
    if roles[0] == "model" and _calls(turns[0]):
        return _call_too_early()
    if roles[0] == "model":
        return Violation(18, "Please ensure that the conversation starts with a user turn.", paraphrase=True)
    for role, turn in zip(roles, turns, strict=True):
        if role == "user" and _calls(turn):
            return Violation(18, "Please ensure that function calls are in a model turn.", paraphrase=True)
        if role == "model" and _responses(turn):
            return Violation(18, "Please ensure that function responses are in a user turn.", paraphrase=True)
    if roles[-1] == "model":
        return Violation(18, "Please ensure that single turn requests end with a user role or the role field is empty.")
    return None


def _responses_violation(roles: list[str], turns: list[list[Json]]) -> Violation | None:
    for index, turn in enumerate(turns):
        if roles[index] != "user":
            continue
        calls = _calls(turns[index - 1]) if index else []
        responses = _responses(turn)
        if responses and not calls:
            return Violation(18, "Please ensure that function response turn comes immediately after a function call turn.")
        if len(responses) != len(calls):
            wording = "Please ensure that the number of function response parts is equal to the number of function call parts "
            return Violation(18, f"{wording}of the function call turn.")
        if any("functionResponse" not in part for part in turn[: len(responses)]):
            return Violation(18, "Please ensure that function response parts come before any other part of their turn.", paraphrase=True)
        if found := _match_violation(index, calls, responses):
            return found
    return None


def _match_violation(index: int, calls: list[Json], responses: list[Json]) -> Violation | None:
    for at, (call, response) in enumerate(zip(calls, responses, strict=True)):
        if response.get("id") == call.get("id") and response["name"] == call["name"]:
            continue
        path = f"contents[{index}].parts[{at}].function_response"
        keys = [(each.get("id"), each["name"]) for each in calls]
        if (response.get("id"), response["name"]) in keys:
            return Violation(18, f"{path}: function responses must be in the order of the function calls", paraphrase=True)
        wanted = f"id {call.get('id')!r} and name {call['name']!r}"
        return Violation(22, f"{path}: expected the function call's {wanted}", paraphrase=True)
    return None


def _id_violation(turns: list[list[Json]]) -> Violation | None:
    seen: set[str] = set()
    for index, turn in enumerate(turns):
        for call in _calls(turn):
            name = call.get("id")
            if name in seen or name == "":
                return Violation(23, f"contents[{index}]: the function call id {name!r} is not unique", paraphrase=True)
            if name is not None:
                seen.add(name)
    return None


def _signature_violation(roles: list[str], turns: list[list[Json]], rules: Rules) -> Violation | None:
    known = rules.known_signatures
    for turn in turns:
        for part in turn:
            signature = part.get("thoughtSignature")
            if known is not None and signature not in (None, SKIP_SIGNATURE) and signature not in known:
                return Violation(19, "Unable to submit request because Thought signature is not valid.")
    if not rules.thought_signatures:
        return None
    # Only the current turn is checked: the steps since the last user content that is not a function response.
    spoken = [index for index, turn in enumerate(turns) if roles[index] == "user" and not _responses(turn)]
    for index in range(spoken[-1] if spoken else 0, len(turns)):
        calls = [part for part in turns[index] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            wording = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, "
            wording += "and missing thought_signature may lead to degraded model performance. Additional data, function call "
            wording += f"`default_api:{calls[0]['functionCall']['name']}` , position {index + 1}. Please refer to "
            return Violation(19, f"{wording}https://ai.google.dev/gemini-api/docs/thought-signatures for more details.")
    return None


def _call_too_early() -> Violation:
    wording = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    return Violation(18, wording)


def _calls(turn: list[Json]) -> list[Json]:
    return [part["functionCall"] for part in turn if part.get("functionCall")]


def _responses(turn: list[Json]) -> list[Json]:
    return [part["functionResponse"] for part in turn if part.get("functionResponse")]


def _camel(part: dict[str, Any]) -> Json:
    return {camel(name): item for name, item in part.items() if item is not None}
