"""Which key does what. `[ui.keys]` of the configuration changes it: `"ctrl-e" = "editor"`, and `none` takes a key away."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.words import say

KEYS = {
    "enter": "send",
    "tab": "queue",
    "alt-enter": "queue",
    "esc": "stop",
    "ctrl-c": "interrupt",
    "ctrl-d": "leave",
    "ctrl-z": "suspend",
    "ctrl-o": "open",
    "ctrl-g": "editor",
    "ctrl-v": "image",
    "ctrl-l": "redraw",
    "shift-tab": "mode",
    "alt-p": "models",
    "f1": "keys",
}
"""Keys of the conversation. The composer has those of readline besides."""
AT_WORK = {"background": "b", "stop_one": "x", "next_one": "down", "other_model": "m", "retry_now": "enter"}
"""What is done about what is under way, and the key for it that is only one while nothing is written (work_keys.py)."""
ACTIONS = (*dict.fromkeys(KEYS.values()), "sessions", "context", "back", *AT_WORK, "none")


_FUNCTION_KEYS = (f"f{number}" for number in range(1, 13))
_NAMED = frozenset(
    (
        *("enter", "tab", "esc", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"),
        *("up", "down", "left", "right", *_FUNCTION_KEYS),
    )
)


def is_key(name: str) -> bool:
    """Whether a key may have this name: a character or one of those with a name, Ctrl, Alt and Shift before it, in this order."""
    rest = name
    for modifier in ("ctrl-", "alt-", "shift-"):
        rest = rest.removeprefix(modifier) if len(rest) > len(modifier) else rest
    return len(rest) == 1 or rest in _NAMED


def bind_keys(changes: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The table with the user's changes, and what is wrong with them, in words."""
    table = dict(KEYS)
    unknown: list[str] = []
    for key, action in changes.items():
        if action not in ACTIONS:
            unknown.append(say("conversation.unknown_action", key=key, action=action, known=", ".join(ACTIONS)))
        elif not is_key(key.lower()):
            unknown.append(say("conversation.unknown_key", key=key))
        elif action == "none":
            table.pop(key.lower(), None)
        else:
            table[key.lower()] = action
    return table, unknown
