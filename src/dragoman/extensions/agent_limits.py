"""What the file of a subagent, a command or a skill lets it do: tools, permissions, modes, sandbox, limits of turns and time.

Every program's words for it are understood in every file. What cannot be honoured here makes the subagent narrower, which a notice says, or
unusable: `Unusable`, with the key that says so. Nothing in a file makes it wider.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from dragoman.base.text import one_line
from dragoman.extensions.agent_tools import NamedTools, read_names
from dragoman.extensions.frontmatter import MAX_FAULTS, Frontmatter, UnreadLine, part_outside_brackets
from dragoman.words import say

Permission = tuple[str, str, Literal["allow", "ask", "deny"]]
"""Of opencode: action, resource and effect."""
ModeNamed = Literal["plan", "default", "auto-edit"]
_MODES: Mapping[str, ModeNamed | None] = {
    "plan": "plan", "default": "default", "manual": "default", "acceptedits": "auto-edit", "dontask": "default",
    "bypasspermissions": None, "auto": None,
}  # fmt: skip
"""`permissionMode` of Claude Code. None: no less than its caller may do, and never more."""
_SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
_POLICIES: Mapping[str, ModeNamed | None] = {"untrusted": "default", "on-failure": None, "on-request": None, "never": None}
_EFFECTS: Mapping[str, Literal["allow", "ask", "deny"]] = {"allow": "allow", "ask": "ask", "deny": "deny"}
_YES, _NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off", "none", "null", "~", ""})
_LIMITING = re.compile(r"tools|permission|sandbox|approv|polic|allow|den(?:y|ied)|forbid|restrict|readonly|isolat|hook|turns|steps|timeout")
_HARMLESS = frozenset({"sandboxworkspacewrite", "approvalsreviewer", "allowloginshell", "allowimplicitinvocation", "mcpservers"})
"""Keys of Codex that only widen, or say who answers; and servers of its own, which it does not get."""
MAX_TURNS = 10_000


class Unusable(Exception):
    """Why it cannot be used; `key` is where the file says so."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key, self.reason = key, reason


class FileLimits(msgspec.Struct, frozen=True):
    """What a file says of what it may do."""

    tools: tuple[str, ...] | None = None
    """None: the file names none, so it has all."""
    without: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """As Claude Code writes them: `Bash(git log:*)`."""
    agents: tuple[str, ...] | None = None
    """The subagents it may call; None: all."""
    permissions: tuple[tuple[Permission, ...], ...] = ()
    reads_only: bool = False
    mode: ModeNamed | None = None
    asks: bool = True
    """False: what would be asked about is refused."""
    max_turns: int = 0
    """0: as many as its caller."""
    timeout_s: float = 0.0
    unknown: tuple[str, ...] = ()
    """Tools it names that do not exist here."""
    notices: tuple[tuple[str, str], ...] = ()
    """Key and sentence: what made it narrower than its file says."""


def is_limiting(text: str) -> bool:
    """Whether a key, or a line that could not be read, may be about what something is allowed to do."""
    return _LIMITING.search(re.sub(r"[-_]", "", text.lower())) is not None


def read_limits(values: Mapping[str, Any]) -> FileLimits:
    """Of a frontmatter, a table of opencode.json or a TOML of Codex. Raises Unusable."""
    keys: dict[str, str] = {}
    for key in values:
        plain = re.sub(r"[-_]", "", str(key).lower())
        if plain in keys and is_limiting(plain):
            raise Unusable(str(key), say("subagents.said_twice", key=one_line(str(key), 40), other=one_line(keys[plain], 40)))
        keys.setdefault(plain, str(key))
    found = FileLimits()
    for plain, key in keys.items():
        read = _READERS.get(plain)
        if read is not None:
            found = read(found, key, values[key])
        elif is_limiting(plain) and plain not in _HARMLESS and not _is_empty(values[key]):
            raise Unusable(key, say("subagents.limit_unknown", key=one_line(key, 60)))
    return found


def both(one: FileLimits, other: FileLimits) -> FileLimits | None:
    """What two files say of one subagent, held together; None where each names its tools."""
    if one.tools is not None and other.tools is not None:
        return None
    counts = [(getattr(one, key), getattr(other, key)) for key in ("max_turns", "timeout_s")]
    turns, seconds = (min(filter(None, pair), default=0) for pair in counts)
    joined = {key: (*getattr(one, key), *getattr(other, key)) for key in ("without", "patterns", "refused", "permissions", "unknown")}
    naming = one if one.tools is not None else other
    limits = msgspec.structs.replace(one, tools=naming.tools, agents=naming.agents, max_turns=turns, timeout_s=seconds, **joined)
    return _in_mode(msgspec.structs.replace(limits, reads_only=one.reads_only or other.reads_only), other.mode, asks=other.asks)


def _is_empty(value: Any) -> bool:
    return value in (None, "", [], {}) or (isinstance(value, str) and value.strip().lower() in _NO) or value is False


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _flag(key: str, value: Any) -> bool:
    """Raises Unusable."""
    text = _text(value).lower()
    if text not in _YES and text not in _NO:
        raise Unusable(key, say("subagents.not_a_switch", key=key, value=one_line(str(value), 40)))
    return text in _YES


def _names_in(value: Any) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(each).strip() for each in value if str(each).strip()]
    return [part.strip() for part in part_outside_brackets(_text(value)) if part.strip()]


# --- tools


def _read_tools(found: FileLimits, key: str, value: Any) -> FileLimits:
    """An empty list names none. A mapping is opencode's: name and whether it is there."""
    if isinstance(value, Mapping):
        return _with_permissions(found, tuple(_switches(key, value)))
    named = read_names(_names_in(value))
    if named.is_all:
        return _noting(found, named)
    if found.tools is not None:
        raise Unusable(key, say("subagents.said_twice", key=key, other="tools"))
    limits = msgspec.structs.replace(found, tools=named.tools, patterns=(*found.patterns, *named.patterns), agents=named.agents)
    if not _names_in(value) and not isinstance(value, list):
        limits = _narrower(limits, key, say("subagents.tools_empty"))
    return _noting(limits, named)


def _read_refused(found: FileLimits, key: str, value: Any) -> FileLimits:
    if isinstance(value, Mapping):
        raise Unusable(key, say("subagents.limit_unknown", key=one_line(key, 60)))
    named = read_names(_names_in(value))
    if named.is_all:
        return msgspec.structs.replace(found, tools=())
    # Of tools that are named in part only that part is refused.
    parted = {tool for pattern in named.patterns for tool in read_names([pattern.partition("(")[0]]).tools}
    whole = tuple(tool for tool in named.tools if tool not in parted and not (tool == "task" and named.agents is not None))
    without = (*found.without, *whole)
    if named.agents is not None:
        found = _with_permissions(found, tuple(("task", agent, "deny") for agent in named.agents))
    return _noting(msgspec.structs.replace(found, without=without, refused=(*found.refused, *named.patterns)), named)


def _noting(found: FileLimits, named: NamedTools) -> FileLimits:
    return msgspec.structs.replace(found, unknown=(*found.unknown, *named.unknown))


def _switches(key: str, value: Mapping[Any, Any]) -> Iterator[Permission]:
    """Raises Unusable."""
    for name, is_on in value.items():
        if isinstance(is_on, Mapping):  # Codex has settings of a tool here
            continue
        yield str(name), "*", "allow" if _flag(f"{key}.{one_line(str(name), 40)}", is_on) else "deny"


# --- permissions


def _with_permissions(found: FileLimits, permissions: tuple[Permission, ...]) -> FileLimits:
    return msgspec.structs.replace(found, permissions=(*found.permissions, permissions)) if permissions else found


def _read_permission(found: FileLimits, key: str, value: Any) -> FileLimits:
    """Of opencode: one word for everything, a mapping, or the list of its second version. Raises Unusable."""
    if isinstance(value, Mapping):
        return _with_permissions(found, tuple(_permissions_in(key, value)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _with_permissions(found, tuple(_listed_permission(key, row) for row in value))
    return _with_permissions(found, (("*", "*", _effect(key, value)),)) if not _is_empty(value) else found


def _permissions_in(key: str, value: Mapping[Any, Any]) -> Iterator[Permission]:
    for action, said in value.items():
        where = f"{key}.{one_line(str(action), 40)}"
        for resource, effect in said.items() if isinstance(said, Mapping) else [("*", said)]:
            yield str(action).lower(), str(resource), _effect(where, effect)


def _listed_permission(key: str, row: Any) -> Permission:
    action, resource = (row.get(name) if isinstance(row, Mapping) else None for name in ("action", "resource"))
    if not isinstance(action, str) or not isinstance(resource, str):
        raise Unusable(key, say("subagents.limit_unknown", key=one_line(key, 60)))
    return action.lower(), resource, _effect(key, row.get("effect"))


def _effect(key: str, value: Any) -> Literal["allow", "ask", "deny"]:
    effect = _EFFECTS.get(_text(value).lower())
    if effect is None:
        raise Unusable(key.partition(".")[0], say("subagents.no_effect", key=key, value=one_line(str(value), 40)))
    return effect


# --- modes and sandboxes


def _read_mode(found: FileLimits, key: str, value: Any) -> FileLimits:
    name = _text(value)
    if name.lower() not in _MODES:
        raise Unusable(key, say("subagents.value_unknown", key=key, value=one_line(str(value), 40), known=", ".join(_MODES)))
    return _in_mode(found, _MODES[name.lower()], asks=name.lower() != "dontask")


def _in_mode(found: FileLimits, mode: ModeNamed | None, *, asks: bool = True) -> FileLimits:
    order = ("plan", "default", "auto-edit")
    modes = [each for each in (found.mode, mode) if each is not None]
    return msgspec.structs.replace(found, mode=min(modes, key=order.index) if modes else None, asks=found.asks and asks)


def _read_sandbox(found: FileLimits, key: str, value: Any) -> FileLimits:
    if (name := _text(value)) not in _SANDBOXES:
        raise Unusable(key, say("subagents.value_unknown", key=key, value=one_line(str(value), 40), known=", ".join(_SANDBOXES)))
    return msgspec.structs.replace(found, reads_only=found.reads_only or name == "read-only")


def _read_policy(found: FileLimits, key: str, value: Any) -> FileLimits:
    if isinstance(value, Mapping):  # which kinds of questions may be asked at all
        return _narrower(_in_mode(found, "default", asks=False), key, say("subagents.asks_nobody"))
    if (name := _text(value)) not in _POLICIES:
        raise Unusable(key, say("subagents.value_unknown", key=key, value=one_line(str(value), 40), known=", ".join(_POLICIES)))
    return _in_mode(found, _POLICIES[name], asks=name != "never")


def _read_isolation(found: FileLimits, key: str, value: Any) -> FileLimits:
    if _is_empty(value):
        return found
    return _narrower(msgspec.structs.replace(found, reads_only=True), key, say("subagents.no_isolation", value=one_line(str(value), 40)))


def _read_readonly(found: FileLimits, key: str, value: Any) -> FileLimits:
    return msgspec.structs.replace(found, reads_only=found.reads_only or _flag(key, value))


def _read_web_search(found: FileLimits, key: str, value: Any) -> FileLimits:
    if value is False or _text(value).lower() in ("disabled", "false"):
        return msgspec.structs.replace(found, without=(*found.without, "google_web_search", "web_fetch"))
    return found


def _read_features(found: FileLimits, key: str, value: Any) -> FileLimits:
    """Of Codex, which can do without its shell."""
    has_shell = not isinstance(value, Mapping) or value.get("shell_tool") is not False
    return found if has_shell else msgspec.structs.replace(found, without=(*found.without, "run_shell", "shell_output"))


def _narrower(found: FileLimits, key: str, sentence: str) -> FileLimits:
    return msgspec.structs.replace(found, notices=(*found.notices, (key, sentence)))


# --- turns and time


def _read_turns(found: FileLimits, key: str, value: Any) -> FileLimits:
    turns = int(_amount(key, value))
    return msgspec.structs.replace(found, max_turns=min(turns, found.max_turns or MAX_TURNS)) if turns else found


def _read_minutes(found: FileLimits, key: str, value: Any) -> FileLimits:
    return msgspec.structs.replace(found, timeout_s=60.0 * _amount(key, value))


def _amount(key: str, value: Any) -> float:
    """A number greater than 0; 0 where there is none. Raises Unusable."""
    if _is_empty(value):
        return 0.0
    try:
        amount = float(_text(value)) if not isinstance(value, bool) else 0.0
    except ValueError:
        amount = 0.0
    if not 0 < amount < 1e9 or (amount < 1 and "min" not in key):
        raise Unusable(key, say("subagents.no_number", key=key, value=one_line(str(value), 40)))
    return amount


# --- what we cannot honour


def _refuse_hooks(found: FileLimits, key: str, value: Any) -> FileLimits:
    if _is_empty(value):
        return found
    raise Unusable(key, say("subagents.hooks_not_run"))


def _read_kind(found: FileLimits, key: str, value: Any) -> FileLimits:
    if _text(value).lower() not in ("", "local"):
        raise Unusable(key, say("subagents.other_kind", kind=one_line(str(value), 40)))
    return found


_READERS: Mapping[str, Callable[[FileLimits, str, Any], FileLimits]] = {
    "tools": _read_tools,
    "allowedtools": _read_tools,
    "disallowedtools": _read_refused,
    "deniedtools": _read_refused,
    "permission": _read_permission,
    "permissions": _read_permission,
    "permissionmode": _read_mode,
    "sandboxmode": _read_sandbox,
    "approvalpolicy": _read_policy,
    "isolation": _read_isolation,
    "readonly": _read_readonly,
    "websearch": _read_web_search,
    "features": _read_features,
    "maxturns": _read_turns,
    "steps": _read_turns,
    "maxsteps": _read_turns,
    "timeoutmins": _read_minutes,
    "hooks": _refuse_hooks,
    "kind": _read_kind,
}
"""By the key in lower case, without `-` and `_`."""


def doubtful_line(text: str, read: Frontmatter) -> UnreadLine | None:
    """A line of a head that could not be read and may be about what something is allowed to do, or a key that stands there twice."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    keys = sorted((line, key) for key, line in read.lines.items())
    for fault in read.faults:
        around = [key for line, key in keys if line <= fault.line][-1:]
        if any(map(is_limiting, (*around, *lines[fault.line - 1 : fault.line]))) or len(read.faults) >= MAX_FAULTS:
            return fault
    for key, last in read.lines.items():
        if is_limiting(key):
            again = [at for at, line in enumerate(lines[: last - 1], 1) if re.match(rf"[\"']?{re.escape(key)}[\"']?\s*:", line)]
            if again:
                return UnreadLine(last, say("subagents.said_twice", key=one_line(key, 40), other=f"{one_line(key, 40)}:{again[0]}"))
    return None


def find_refusal(text: str, head: Frontmatter) -> UnreadLine | None:
    """Why the head of a command or a skill cannot be honoured, if it says of what it may do more than `allowed-tools`."""
    if (doubt := doubtful_line(text, head)) is not None:
        return doubt
    for key, value in head.values.items():
        plain = re.sub(r"[-_]", "", key.lower())
        if plain in _NOT_OF_RUNS and not _is_empty(value):
            reason = say("subagents.hooks_not_run") if plain == "hooks" else say("subagents.limit_unknown", key=one_line(key, 60))
            return UnreadLine(head.lines.get(key, 0), reason)
    return None


_NOT_OF_RUNS = frozenset(
    {"hooks", "permission", "permissions", "permissionmode", "sandboxmode", "approvalpolicy", "isolation", "readonly", "maxturns", "policy"}
)
"""What is understood of subagents, and would be passed over in a command or a skill."""
