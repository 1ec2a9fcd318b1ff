"""What pages name: commands of the shell with their options, flags, and names of the Python API; and which of them there are not."""

from __future__ import annotations

import importlib
import re
import shlex
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from checks.prose import prose

import dragoman as dm
from dragoman.app.arguments import COMMANDS, ELSEWHERE, OPTIONS

ROOT = Path(__file__).resolve().parent.parent
SHELL = ("", "sh", "bash", "shell", "console", "text", "zsh", "fish", "yaml", "yml", "json")
"""The languages of blocks in which commands may stand."""
_BY_NAME = {name: option for option in OPTIONS for name in option.names}
_BEGIN = re.compile(r"(?:^|[|;&(`'\"]\s*|\$ |(?:^| )[A-Z_]+=\S* |\b(?:uv run|uvx|exec|timeout \d+|run: ))dragoman(?=[\s`]|$)")


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("README*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text: str) -> Iterator[tuple[str, str]]:
    """The language and text of each fenced block, and of each run of indented lines outside one."""
    fenced = re.compile(r"^([ ]*)(`{3,})(\w*)[^\n]*\n(.*?)^\1\2$", re.MULTILINE | re.DOTALL)
    for match in fenced.finditer(text):
        yield match[3], match[4]
    for match in re.finditer(r"(?:^ {4}\S.*\n)+", fenced.sub("", text), re.MULTILINE):
        yield "", match.group()


def spans(text: str) -> list[str]:
    """The code within its sentences and tables."""
    return [match[2].strip() for match in re.finditer(r"(`+)(.+?)\1(?!`)", without_blocks(text), re.DOTALL)]


def without_blocks(text: str) -> str:
    return re.sub(r"^([ ]*)(`{3,}).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL)


# --- commands


def commands(text: str) -> Iterator[str]:
    """Every call of the program, from behind its name to the end of the line or the next command."""
    lines = [span for span in spans(text) if span.startswith("dragoman") and "\n" not in span]
    for language, block in blocks(text):
        if language in SHELL:
            lines += re.sub(r"\\\n\s*", " ", block).splitlines()
    for line in map(str.strip, lines):
        for match in _BEGIN.finditer(line):
            quote = match.group()[0]
            yield (line[match.end() :].partition(quote)[0] if quote in "\"'`" else line[match.end() :]).strip()


def fault_of_command(call: str) -> str:
    """What of it does not exist; empty where all does. Values are not looked at."""
    words = _words(call)
    command = next((word for word in words if word in COMMANDS), "run") if words[:1] != ["-p"] else "run"
    rest = iter(words)
    plain: list[str] = []
    while word := next(rest, ""):
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
            continue
        name, equals, _ = word.partition("=")
        option = _BY_NAME.get(name)
        if option is None or (option.commands and command not in option.commands):
            return f"{command} has no {name}"
        if option.takes != "nothing" and not equals:
            skipped = next(rest, "")
            if option.takes == "maybe" and skipped.startswith("-"):
                rest = iter([skipped, *rest])
    if command == "run" and plain and re.fullmatch(r"[a-z][a-z-]+", plain[0]) and not _has_search(words):
        return f"no command {plain[0]}"
    actions = _actions(command)
    behind = plain[plain.index(command) + 1 :] if command in plain else []
    if (
        actions
        and behind
        and re.fullmatch(r"[a-z][a-z-]+", behind[0])
        and behind[0] not in actions
        and command not in MAY_BEGIN_WITH_A_NAME
    ):
        return f"{command} has no {behind[0]}"
    return ""


MAY_BEGIN_WITH_A_NAME = ("models", "context", "trust", "serve-local", "view")


def _has_search(words: list[str]) -> bool:
    return "--search" in words


def _words(call: str) -> list[str]:
    call = re.sub(r"\"[^\"]*\"|'[^']*'", "'a text'", call)
    call = re.split(r"\s[|&>;#]|\s\d?>|[;)`]| \)|\s{3,}|: \"|,\s|、|，| \| ", call)[0]
    try:
        return shlex.split(call.replace("…", "..."))
    except ValueError:
        return call.split()


def _actions(command: str) -> set[str]:
    if command == "fleet":
        return {"run", "resume", "retry", "status", "show", "diff", "export", "work"}
    from dragoman.cli.completion_table import _actions_of

    return {*_actions_of(command), "list", *(["resume"] if command == "sessions" else []), *(["logout"] if command == "mcp" else [])}


def flags(text: str) -> list[str]:
    """Flags that stand for themselves in a sentence."""
    return [match[1] for span in spans(text) if (match := re.match(r"(--[a-z][\w-]*)(?:[ =\[]|$)", span))]


def known_flags() -> set[str]:
    """Ours, and those of other programs that we name in their place."""
    return {*_BY_NAME, *ELSEWHERE}


# --- names


def python_names(text: str) -> Iterator[str]:
    """Dotted names that begin with `dm.` or `dragoman.`, in code."""
    for code in [*spans(text), *(block for language, block in blocks(text) if language in ("python", "", "pycon"))]:
        for match in re.finditer(r"(?<![\w./-])(?:dm|dragoman)(?:\.[A-Za-z_]\w*)+(?![\w/-])", code):
            yield re.sub(r"^dm\b", "dragoman", match.group())


def exists(name: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    found: Any = dm
    for part in name.split(".")[1:]:
        if (attribute := _attribute(found, part)) is None:
            return False
        found = attribute
    return True


def _attribute(owner: Any, name: str) -> Any:
    if hasattr(owner, name):
        return getattr(owner, name)
    if isinstance(owner, ModuleType):
        try:
            return importlib.import_module(f"{owner.__name__}.{name}")
        except ModuleNotFoundError as error:  # one that needs a package that is not here exists all the same
            return None if (error.name or "").startswith("dragoman") else typing.Any
    annotated = {key for kind in getattr(owner, "__mro__", ()) for key in vars(kind).get("__annotations__", {})}
    return typing.Any if name in annotated else None


def public_names() -> set[str]:
    """`dragoman.NAME` of all there is to import, modules left out."""
    found = {f"dragoman.{name}" for name in dm._EXPORTS}
    for name in dm._MODULES:
        module = importlib.import_module(f"dragoman.{name}")
        found |= {f"dragoman.{name}.{each}" for each in getattr(module, "__all__", ())}
    return found


# --- languages


def untranslated(text: str) -> list[str]:
    """Lines with three words and no Chinese character, code and addresses left out."""
    found: list[str] = []
    for line in prose(text):
        bare = re.sub(r"(`+).+?\1|(?:\[[\w./-]+)?\]\([^)]*\)|<[^>]+>|https?://\S+", " ", line)
        if not re.search(r"[\u4e00-\u9fff]", bare) and len(re.findall(r"[A-Za-z]{2,}", bare)) > 2:
            found.append(line)
    return found
