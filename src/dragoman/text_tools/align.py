"""Maps a call as the model wrote it to the tool and parameters it meant, where that is unambiguous.

Names are matched from the certain to the likely: exact, ignoring case and `-_.`, the user's own table, synonyms, and typos of at most two
letters. Each name maps to one parameter, and no argument is overwritten. Synonyms and typos are tried only if the arguments do not fit
otherwise. Every change is listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from dragoman.base.text import clip, closest
from dragoman.text_tools.coerce import Coercion, Shape, parse_structure
from dragoman.text_tools.synonyms import SYNONYMS, WRAPPERS
from dragoman.text_tools.toolset import Toolset
from dragoman.values.schema import problems, type_of

MAX_SLIP = 2
MAX_GUESSED = 32
"""With more unknown names than this, none is treated as a typo."""
MAX_NAME_CHARS = 64
PREFIXES = ("functions.", "function.", "tools.", "tool.", "default_api.", "functions/", "functions:")
_UNIT = re.compile(r"(?:[_.-]|(?<=[a-z])(?=[A-Z]))((?i:ms|s|sec|min|kb|mb|gb|chars|lines|tokens))$")
_PUNCTUATION = str.maketrans("", "", "-_. ")

NameMapping = Mapping[str, Mapping[str, str]]
"""The user's table for a model: tool → the name it writes → the parameter meant. `*` holds parameters of any tool, the empty name holds
other names for the tools themselves."""


class AlignedCall(msgspec.Struct, frozen=True):
    name: str
    args: dict[str, Any]
    repairs: tuple[str, ...] = ()
    """What was changed, one short line each: `file → file_path`, `limit: "3" → 3`."""
    problems: tuple[str, ...] = ()
    """Why the arguments still do not fit the schema, in words for the model. The call is readable nevertheless."""


class UnknownTool(msgspec.Struct, frozen=True):
    """No tool of that name."""

    reason: str
    suggestions: tuple[str, ...] = ()


def align(
    name: str, args: Mapping[str, Any], tools: Toolset | None, *, raw: bool = False, mapping: NameMapping | None = None
) -> AlignedCall | UnknownTool:
    """The tool and arguments meant by a call. If they fit as they are, `args` is returned as the same object.

    `raw`: the values are untyped text, and the schema types them; undeclared values stay text.
    Without tools every name is accepted, and nothing is changed.
    """
    mapping = mapping or {}
    given = args if isinstance(args, dict) else dict(args)
    if tools is None:
        return AlignedCall(name, given)
    tool, renamed = _find_tool(name, tools, mapping.get("", {}))
    if tool is None:
        return UnknownTool(f"there is no tool called {_clip_name(name)}", tuple(renamed or closest(_strip_template(name), tools.names, 3)))
    schema = tools.schema(tool)
    if schema is None:
        return AlignedCall(tool, given, tuple(renamed))
    aligning = _Aligner(tool, schema, {**mapping.get("*", {}), **mapping.get(tool, {})})
    aligned = aligning.run(given, raw=raw)
    return AlignedCall(tool, aligned, (*renamed, *aligning.repairs), tuple(aligning.problems))


def fold(name: str) -> str:
    """Equal for names that differ in case and punctuation alone."""
    return name.translate(_PUNCTUATION).casefold()


# --- the tool's name ------------------------------------------------------------------------------------------------------------------


def _find_tool(name: str, tools: Toolset, aliases: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """The tool and the repairs made to find it; or None and the tools it might be."""
    if name in tools:
        return name, []
    might: list[str] = []
    for candidate in dict.fromkeys((name, name.strip(), _strip_template(name))):
        same = [candidate] if candidate in tools else _same_folded(candidate, tools.names)
        if len(same) == 1:
            return same[0], [f"{_clip_name(name)} → {same[0]}"]
        might = might or same
    alias = aliases.get(name, aliases.get(_strip_template(name), ""))
    if alias in tools:
        return alias, [f"{_clip_name(name)} → {alias}"]
    return None, might[:3]


def _strip_template(name: str) -> str:
    """Remove what chat templates put around a name: `functions.read_file:0`."""
    bare = name.strip().strip("`\"'")
    for prefix in PREFIXES:
        bare = bare.removeprefix(prefix)
    stem, colon, number = bare.rpartition(":")
    return stem if colon and stem and number.isascii() and number.isdigit() else bare


def _same_folded(name: str, names: Iterable[str]) -> list[str]:
    if len(name) > MAX_NAME_CHARS:
        return []
    wanted = fold(name)
    return [known for known in names if wanted and fold(known) == wanted]


# --- the parameters -------------------------------------------------------------------------------------------------------------------


class _Aligner:
    """Aligns the arguments of one call."""

    def __init__(self, tool: str, schema: dict[str, Any], mapping: Mapping[str, str]) -> None:
        self._tool = tool
        self._schema = schema
        self._mapping = mapping
        self._coercion = Coercion(schema)
        self._shape: Shape = self._coercion.shape(schema)
        self._folds: dict[str, list[str]] = {}
        for name in self._shape.fields:
            self._folds.setdefault(fold(name), []).append(name)
        self._renames: list[str] = []
        self.problems: list[str] = []

    @property
    def repairs(self) -> list[str]:
        return [*self._renames, *self._coercion.repairs]

    def run(self, args: dict[str, Any], *, raw: bool) -> dict[str, Any]:
        named = self._coerce(self._rename(args, (self._mapped, self._same)), raw=raw)
        self.problems = problems(self._schema, named)
        if not self.problems and not self._is_wrapped(named):
            return named
        if self._renames and (plain := self._under_given_names(args, raw=raw)) is not None:
            return plain
        if (inner := self._unwrap(named)) is not None:
            return inner
        guessed = self._rename(named, (self._mapped, self._same, self._synonym, self._required_synonym, self._slip))
        if guessed is not named:
            named = self._coerce(guessed, raw=raw)
            self.problems = problems(self._schema, named)
        return named

    def _under_given_names(self, args: dict[str, Any], *, raw: bool) -> dict[str, Any] | None:
        """The arguments under their original names, if they fit: a schema may allow undeclared fields."""
        given = _Aligner(self._tool, self._schema, {})
        typed = given._coerce(args, raw=raw)
        if problems(self._schema, typed):
            return None
        self._renames, self._coercion, self.problems = given._renames, given._coercion, given.problems
        return typed

    def _coerce(self, args: dict[str, Any], *, raw: bool) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        for name, value in args.items():
            schema = self._shape.fields.get(name, self._shape.others)
            read = self._coercion.coerce(value, schema, name, raw=raw and isinstance(value, str)) if isinstance(schema, dict) else value
            if read is not value:
                changed[name] = read
        return {**args, **changed} if changed else args

    def _is_wrapped(self, args: dict[str, Any]) -> bool:
        """Whether one undeclared key holds an object of declared ones: a schema may allow undeclared fields, but that is not meant."""
        if len(args) != 1 or not self._shape.fields:
            return False
        ((key, value),) = args.items()
        is_whole = isinstance(value, dict) and bool(value) and all(name in self._shape.fields for name in value)
        return is_whole and key not in self._shape.fields and fold(key) in WRAPPERS

    def _unwrap(self, args: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments inside a key that wraps them all, if they then fit."""
        if len(args) != 1:
            return None
        ((key, value),) = args.items()
        if key in self._shape.fields or fold(key) not in WRAPPERS | {fold(self._tool)}:
            return None
        inner = parse_structure(value.strip()) if isinstance(value, str) else value
        if not isinstance(inner, dict) or not all(isinstance(name, str) for name in inner):
            return None
        within = _Aligner(self._tool, self._schema, self._mapping)
        unwrapped = within.run(inner, raw=False)
        if within.problems:
            return None
        self._renames += [f"{key}.* → *", *within.repairs]
        self.problems = []
        return unwrapped

    # --- renaming arguments

    def _rename(self, args: dict[str, Any], stages: Iterable[Callable[[str, Any, set[str]], list[str]]]) -> dict[str, Any]:
        """Rename arguments one for one, the surest first. Each rename may leave another with one choice, so repeat until none is left."""
        if all(name in self._shape.fields for name in args):
            return args
        stages = tuple(stages)
        while exchanged := self._exchange(args, stages):
            self._renames += [f"{_clip_name(name)} → {parameter}" for name, parameter in exchanged.items()]
            args = {exchanged.get(name, name): value for name, value in args.items()}
        return args

    def _exchange(self, args: dict[str, Any], stages: Iterable[Callable[[str, Any, set[str]], list[str]]]) -> dict[str, str]:
        unknown = [name for name in args if name not in self._shape.fields and len(name) <= MAX_NAME_CHARS]
        free = self._shape.fields.keys() - args.keys()
        if not unknown or not free or len(unknown) > MAX_GUESSED:
            return {}
        for stage in stages:
            choices = {name: stage(name, args[name], free) for name in unknown}
            chosen = {name: choice[0] for name, choice in choices.items() if len(choice) == 1}
            wanted = list(chosen.values())
            if exchanged := {name: parameter for name, parameter in chosen.items() if wanted.count(parameter) == 1}:
                return exchanged
        return {}

    def _mapped(self, name: str, value: Any, free: set[str]) -> list[str]:
        return [meant] if (meant := self._mapping.get(name, "")) in free else []

    def _same(self, name: str, value: Any, free: set[str]) -> list[str]:
        return [] if self._shape.others else [known for known in self._folds.get(fold(name), ()) if known in free]

    def _synonym(self, name: str, value: Any, free: set[str]) -> list[str]:
        meant = SYNONYMS.get(fold(name), frozenset())
        return sorted(known for other in meant for known in self._folds.get(other, ()) if known in free and self._could_be(value, known))

    def _required_synonym(self, name: str, value: Any, free: set[str]) -> list[str]:
        """If a name may mean several parameters, the required one."""
        required = self._schema.get("required")
        return [known for known in self._synonym(name, value, free) if isinstance(required, list) and known in required]

    def _slip(self, name: str, value: Any, free: set[str]) -> list[str]:
        letters, unit = fold(name), _unit(name)
        return sorted(known for known in free if _unit(known) == unit and _is_slip(letters, fold(known)) and self._could_be(value, known))

    def _could_be(self, value: Any, parameter: str) -> bool:
        types = self._coercion.shape(self._shape.fields[parameter]).types
        if types is None:
            return True
        read = Coercion(self._schema).coerce(value, self._shape.fields[parameter], parameter)
        kind = type_of(read)
        return kind in types or (kind == "integer" and "number" in types) or (kind == "number" and "integer" in types and read.is_integer())


def _unit(name: str) -> str:
    """The unit a name ends in. `timeout_ms` is not a typo of `timeout_s`: it means another number."""
    match = _UNIT.search(name)
    return match.group(1).casefold() if match else ""


def _is_slip(one: str, other: str) -> bool:
    """Whether two names of some length differ by at most two letters added, left out, exchanged or swapped."""
    longest = max(len(one), len(other))
    return longest <= MAX_NAME_CHARS and _distance(one, other) <= min(MAX_SLIP, longest // 3)


def _distance(one: str, other: str) -> int:
    """Letters to change, a swap of neighbours counting as one; stops counting beyond MAX_SLIP."""
    if abs(len(one) - len(other)) > MAX_SLIP:
        return MAX_SLIP + 1
    before, last = list[int](), list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, beside in enumerate(other, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != beside))
            if before and column > 1 and letter == other[column - 2] and one[row - 2] == beside:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        if min(line) > MAX_SLIP and min(last) > MAX_SLIP:
            return MAX_SLIP + 1
        before, last = last, line
    return last[-1]


def _clip_name(name: str) -> str:
    return clip(name, MAX_NAME_CHARS)
