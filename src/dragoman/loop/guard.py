"""Detects when a model goes in circles: the same call repeated, a cycle of calls, a call that keeps failing, or repeating text."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from dragoman.base import jsontext
from dragoman.loop.options import LoopLimits
from dragoman.values.messages import ToolCall

if TYPE_CHECKING:
    from dragoman.tools.registry import Registry
    from dragoman.values.calls import ToolOutput


class LoopGuard:
    """Feed it what happens; it returns what is wrong, or nothing. After a hit it starts counting from zero."""

    def __init__(self, limits: LoopLimits | None = None) -> None:
        self.limits = limits or LoopLimits()
        longest = max(self.limits.same_call, self.limits.cycle_length * self.limits.cycle_repeats, 1)
        self._calls: deque[str] = deque(maxlen=longest)
        self._failures: Counter[str] = Counter()
        self._text = _RepeatingText(self.limits)
        self._known: set[str] = set()
        self._polls = 0
        self.successes = 0
        """How many calls succeeded."""
        self.has_repeated = False
        """Whether any call was made twice."""

    def check_call(self, call: ToolCall, *, failed: bool, polled: bool = False) -> str:
        """Count a call and its outcome. A call that polls is never a repetition, and what stands on both sides of it is not in a row."""
        self.successes += not failed
        if polled:
            self._polls += 1
            self._calls.append(f"poll {self._polls}")
            return ""
        key = _key(call)
        self.has_repeated = self.has_repeated or key in self._known
        self._known.add(key)
        self._calls.append(key)
        if failed:
            self._failures[key] += 1
        else:
            self._failures.pop(key, None)
        found = self._find_cycle(call.name) or self._find_failures(call.name, key)
        if found:
            self._calls.clear()
            self._failures.clear()
        return found

    def start_question(self) -> None:
        """The user has asked something else: what was called for the question before does not count for how soon to answer this one."""
        self.successes, self.has_repeated = 0, False
        self._known.clear()

    def start_answer(self) -> None:
        """Text of earlier answers does not count as repetition."""
        self._text.start()

    def check_text(self, text: str) -> str:
        return self._text.feed(text)

    def _find_cycle(self, name: str) -> str:
        limits, calls = self.limits, list(self._calls)
        if limits.same_call and len(calls) >= limits.same_call and len(set(calls[-limits.same_call :])) == 1:
            return f"{name} was called {limits.same_call} times in a row with the same arguments"
        if limits.cycle_repeats < 2:
            return ""
        for length in range(2, limits.cycle_length + 1):
            last = calls[-length * limits.cycle_repeats :]
            if len(last) == length * limits.cycle_repeats and len(set(last)) > 1 and last == last[:length] * limits.cycle_repeats:
                return f"the same {length} calls were repeated {limits.cycle_repeats} times"
        return ""

    def _find_failures(self, name: str, key: str) -> str:
        limit = self.limits.failing_call
        return f"{name} failed {limit} times with the same arguments" if limit and self._failures[key] >= limit else ""


def is_polling(call: ToolCall, registry: Registry, limits: LoopLimits, output: ToolOutput | None = None) -> bool:
    """Whether repeating the call is what its tool is for: by the tool's own word (`polled`), by name in the limits, or because it waits for
    a background command or found one still running. (Looks that find nothing new wait by themselves: see tools/background_results.py.)"""
    args = call.args or {}
    if call.name == "shell_output":
        is_running = output is not None and output.command is not None and output.command.status == "running"
        if is_running or args.get("wait_s"):
            return True
    tool = registry.get(call.name)
    stands_for = getattr(tool, "stands_for", None)
    if stands_for is not None:
        tool = stands_for(args)[0]
    if getattr(tool, "polled", False) is True or not limits.polled:
        return getattr(tool, "polled", False) is True
    from fnmatch import fnmatchcase

    name = call.name if tool is None else tool.spec.name
    return any(fnmatchcase(name, pattern) for pattern in limits.polled)


class _RepeatingText:
    """Checks the end of an answer each time it has grown by a window, so that the cost per character is small."""

    def __init__(self, limits: LoopLimits) -> None:
        self._window = limits.text_window
        self._repeats = limits.text_repeats
        self._span = self._window * self._repeats * 10
        self.start()

    def start(self) -> None:
        self._tail = ""
        self._new: list[str] = []
        self._new_chars = 0
        self._fenced = False

    def feed(self, text: str) -> str:
        self._new.append(text)
        self._new_chars += len(text)
        if not self._window or not self._repeats or self._new_chars < self._window:
            return ""
        added = "".join(self._new)
        self._new.clear()
        self._new_chars = 0
        self._fenced ^= added.count("```") % 2 == 1
        self._tail = (self._tail + added)[-self._span :]
        window = self._tail[-self._window :]
        if len(window) < self._window or not self._repeats_itself(window):
            return ""
        self.start()
        return f"the same {self._window} characters were written {self._repeats} times"

    def _repeats_itself(self, window: str) -> bool:
        """Whether the end of the answer is a loop: the same text again and again, not lines that only begin alike, as paths do."""
        count = self._tail.count(window)
        if count < self._repeats or count >= self._repeats * 4:
            return count >= self._repeats
        # Horizontal rules, tables and code repeat for good reason.
        if self._fenced or len(set(window)) < 8 or window.count("|") >= 4:
            return False
        between = self._tail.split(window)[1:-1]
        return len(set(between[1 - self._repeats :])) <= 1


def _key(call: ToolCall) -> str:
    """Name and canonical arguments: spacing and order of the JSON make no difference."""
    args = jsontext.decode_object(call.arguments)
    return f"{call.name} {call.arguments if args is None else jsontext.dumps(_sort_keys(args))}"


def _sort_keys(value: object) -> object:
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value
