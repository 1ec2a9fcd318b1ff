"""Which key does what. `[ui.keys]` of the configuration changes it: `"ctrl-e" = "editor"`, and `none` takes a key away."""

from __future__ import annotations

from collections.abc import Mapping

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
    "ctrl-l": "redraw",
    "shift-tab": "mode",
    "f1": "keys",
}
"""Keys of the conversation. The composer has those of readline besides."""
AT_WORK = {"background": "b", "stop_one": "x", "next_one": "down", "other_model": "m", "retry_now": "enter"}
"""What is done about what is under way, and the key for it that is only one while nothing is written (work_keys.py)."""
ACTIONS = (*dict.fromkeys(KEYS.values()), "models", "sessions", "context", "back", *AT_WORK, "none")


def bind_keys(changes: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The table with the user's changes, and names of actions that there are not."""
    table = dict(KEYS)
    unknown: list[str] = []
    for key, action in changes.items():
        if action not in ACTIONS:
            unknown.append(action)
        elif action == "none":
            table.pop(key.lower(), None)
        else:
            table[key.lower()] = action
    return table, unknown
