"""How one body differs from another, as lines that a person reads and `apply` applies.

model: "gpt-5.4" → "local"               another value
- reasoning_effort: "none"               a field or an item that goes, with the beginning of its value
+ max_tokens (after messages): 1000      a field that comes: after another, (first), or at the end; in its old place if it went
+ messages[2]: {"role": "user"}          an item that comes, at this index of the new list; all other indexes are of the old body
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple

from wire.layout import BARE, KEY, STRING, WIDTH, Json, one_line, read_key, wrap, write_key

Path = tuple[str | int, ...]

_ROOT = "$"
_GONE_CHARS = 60
"""How much is shown of a value that goes: all of it stands in the body above."""

_STEP = re.compile(rf"\.?({BARE})|\[(\d+)\]|\[({STRING})\]")
_PATH = rf"(?:\.?{BARE}|\[\d+\]|\[{STRING}\])+|\$"
_LINE = re.compile(rf"([-+] )?({_PATH})(?: \((first|after (?:{KEY}))\))?: (.*)", re.DOTALL)
_DECODER = json.JSONDecoder()


# --- writing ----------------------------------------------------------------------------------------------------------------


def compare(old: object, new: object) -> list[str]:
    """What `apply` makes the new value of the old one with. Empty where they are the same, the order of fields included."""
    return _compare((), (), old, new) if one_line(old) != one_line(new) else []


def _compare(path: Path, new_path: Path, old: object, new: object) -> list[str]:
    """The shorter of two ways: what differs within, or one value for the other."""
    match old, new:
        case (dict(), dict()):
            within = list(_compare_objects(path, old, new))
        case (list(), list()):
            within = list(_compare_lists(path, old, new))
        case _:
            return _replace(path, new_path, old, new)
    return min(within, _replace(path, new_path, old, new), key=lambda lines: sum(map(len, lines)))


def _replace(path: Path, new_path: Path, old: object, new: object) -> list[str]:
    line = f"{_write_path(path)}: {one_line(old)} → {one_line(new)}"
    is_short = len(line) <= WIDTH or (not isinstance(old, dict | list) and not isinstance(new, dict | list))
    return [line] if is_short else [_remove(path, old), _add(new_path, new)]


def _remove(path: Path, old: object) -> str:
    text = one_line(old)
    return f"- {_write_path(path)}: {text if len(text) <= _GONE_CHARS else text[:_GONE_CHARS] + '…'}"


def _add(path: Path, new: object, place: str = "") -> str:
    start = f"+ {_write_path(path)}{place}: "
    return start + wrap(new, len(start), 2)


def _compare_objects(path: Path, old: Json, new: Json) -> Iterator[str]:
    keys = list(old)
    kept = [keys[index] for index, _ in _same(keys, list(new))]
    for key, item in old.items():
        if key not in kept:
            yield _remove((*path, key), item)
        elif one_line(item) != one_line(new[key]):
            yield from _compare((*path, key), (*path, key), item, new[key])
    last = kept[-1] if kept else None
    for before, key in pairwise([None, *new]):
        assert key is not None
        if key in kept:
            continue
        is_at_the_end = before == last and key not in old
        place = "" if is_at_the_end else f" (after {write_key(before)})" if before is not None else " (first)"
        last = key if before == last else last
        yield _add((*path, key), new[key], place)


def _compare_lists(path: Path, old: list[Any], new: list[Any]) -> Iterator[str]:
    """Between items that are the same, each new item is compared with the next old one that it is like, or takes the place of one."""
    start, new_start = 0, 0
    same = _same([one_line(item) for item in old], [one_line(item) for item in new])
    for end, new_end in [*same, (len(old), len(new))]:
        at = start
        for index in range(new_start, new_end):
            alike = next((place for place in range(at, end) if _are_alike(old[place], new[index])), None)
            if alike is not None:
                yield from (_remove((*path, place), old[place]) for place in range(at, alike))
                yield from _compare((*path, alike), (*path, index), old[alike], new[index])
                at = alike + 1
            elif at < end and not any(_are_alike(old[at], later) for later in new[index + 1 : new_end]):
                yield from _replace((*path, at), (*path, index), old[at], new[index])
                at += 1
            else:
                yield _add((*path, index), new[index])
        yield from (_remove((*path, place), old[place]) for place in range(at, end))
        start, new_start = end + 1, new_end + 1


def _same(old: list[str], new: list[str]) -> Iterator[tuple[int, int]]:
    """Which places of two sequences hold the same, in the same order."""
    for mine, theirs, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        yield from ((mine + offset, theirs + offset) for offset in range(size))


def _are_alike(old: object, new: object) -> bool:
    """Whether one is better read as a change of the other than as something else in its place."""
    if isinstance(old, dict) and isinstance(new, dict):
        return bool(old.keys() & new.keys()) and all(old.get(key) == new.get(key) for key in ("role", "type"))
    return isinstance(old, dict) == isinstance(new, dict) and isinstance(old, list) == isinstance(new, list)


def _write_path(path: Path) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" if write_key(step) == step else f"[{one_line(step)}]" for step in path)
    return "".join(steps).removeprefix(".") or _ROOT


# --- applying ---------------------------------------------------------------------------------------------------------------


class _Difference(NamedTuple):
    sign: str
    """`-`, `+`, or nothing where a value becomes another."""
    path: Path
    place: str
    """Where a field comes: `first`, `after KEY`, or nothing."""
    value: Any

    def below(self) -> _Difference:
        return self._replace(path=self.path[1:])


def apply(old: Any, lines: Sequence[str]) -> Any:
    """The new value: what was compared with the old one."""
    return _apply(old, list(map(_read, lines)))


def _read(line: str) -> _Difference:
    found = _LINE.fullmatch(line)
    assert found, f"not a difference: {line}"
    sign, path, place, rest = (each or "" for each in found.groups())
    match sign.strip():
        case "-":
            value = None
        case "+":
            value = json.loads(rest)
        case _:
            _, end = _DECODER.raw_decode(rest)
            assert rest[end : end + 3] == " → ", f"not a change: {line}"
            value = json.loads(rest[end + 3 :])
    return _Difference(sign.strip(), _read_path(path), place, value)


def _read_path(text: str) -> Path:
    steps = _STEP.findall(text) if text != _ROOT else ()
    return tuple(key or (int(index) if index else json.loads(odd)) for key, index, odd in steps)


def _apply(old: Any, differences: Sequence[_Difference]) -> Any:
    if not differences:
        return old
    if whole := [each for each in differences if not each.path]:
        return whole[-1].value
    return _apply_to_object(old, differences) if isinstance(old, dict) else _apply_to_list(old, differences)


def _apply_to_object(old: Json, differences: Sequence[_Difference]) -> Json:
    new, added = {}, [each for each in differences if each.sign == "+" and len(each.path) == 1]
    in_place = {each.path[0]: each.value for each in added if each.path[0] in old and not each.place}
    for key, item in old.items():
        own = [each for each in differences if each.path[0] == key]
        if key in in_place:
            new[key] = in_place[key]
        elif ("-", 1) not in {(each.sign, len(each.path)) for each in own}:
            new[key] = _apply(item, [each.below() for each in own])
    order = list(new)
    for each in added:
        key = str(each.path[0])
        if key in in_place:
            continue
        order.insert(_index(order, each.place), key)
        new[key] = each.value
    return {key: new[key] for key in order}


def _index(keys: list[str], place: str) -> int:
    if not place:
        return len(keys)
    return 0 if place == "first" else keys.index(read_key(place.removeprefix("after "))) + 1


def _apply_to_list(old: list[Any], differences: Sequence[_Difference]) -> list[Any]:
    added = {each.path[0]: each.value for each in differences if each.sign == "+" and len(each.path) == 1}
    gone = {each.path[0] for each in differences if each.sign == "-" and len(each.path) == 1}
    within = [each for each in differences if each.sign != "+" or len(each.path) > 1]
    new = [_apply(item, [each.below() for each in within if each.path[0] == index]) for index, item in enumerate(old) if index not in gone]
    for index in sorted(added):
        new.insert(int(index), added[index])
    return new
