"""What may stand where the caret is: commands after a `/` that begins the text, files after an `@`. Pure but for the index of files."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from dragoman.base.graphemes import width as cells_of
from dragoman.conversation.command_pages import choices_after
from dragoman.tools import ripgrep
from dragoman.tools.ripgrep import find_ripgrep, limit_memory
from dragoman.tools.workspace import ToolRefusal
from dragoman.tui.composer import MEDIA_ENDINGS, Composer
from dragoman.tui.line import Line, Span, line, visible
from dragoman.tui.wrap import fit
from dragoman.words import say

MOST_FILES = 500_000
MOST_SHOWN = 50
SEARCH_S = 0.04
"""How long a search may take before loose matches are no longer looked for."""
_MOST_RANKED = 4_000
_OPEN_QUOTE = re.compile(r'(?<!\w)(@"([^"\n]*))\Z')
_BYTES_PER_TOKEN = 4
AGE_S = 30.0
"""After this time the files are listed again when somebody asks."""


class Suggestion(NamedTuple):
    """`text` takes the place of the word."""

    text: str
    detail: str = ""


class Menu:
    """The suggestions for a word of the text, one of them chosen."""

    def __init__(self, start: int, suggestions: Sequence[Suggestion], describe: Callable[[str], str] | None = None) -> None:
        """`describe`: the detail of a suggestion that has none, asked for when it is shown."""
        self._start = start
        self.suggestions = suggestions
        self._describe = describe
        self.chosen = 0

    def is_written(self, composer: Composer) -> bool:
        """Whether the chosen one stands there already; or nothing does, and nobody has chosen: it is sent as it is."""
        if composer.caret == self._start and not self.chosen:
            return True
        return composer.text[self._start : composer.caret] == self.suggestions[self.chosen].text

    def move(self, by: int) -> None:
        self.chosen = (self.chosen + by) % len(self.suggestions)

    def take(self, composer: Composer) -> None:
        """The chosen one in place of the word, with a blank behind it, but for a folder, where one writes on."""
        text = self.suggestions[self.chosen].text
        composer.replace(self._start, composer.caret, text if text.endswith("/") else f"{text} ")

    def lines(self, columns: int, most: int) -> list[Line]:
        """Where there are more than that, the last row says how many."""
        has_more = len(self.suggestions) > most > 1
        most -= has_more
        first = max(min(self.chosen - most // 2, len(self.suggestions) - most), 0)
        shown = self.suggestions[first : first + most]
        known = shown if self._describe is not None else self.suggestions  # paths differ more than commands
        width = min(max((cells_of(each.text) for each in known), default=0) + 2, max(columns // 2, 20))
        rows: list[Line] = []
        for number, each in enumerate(shown, first):
            style = "selected" if number == self.chosen else ""
            mark = "› " if number == self.chosen else "  "
            text = visible(each.text)
            gap = " " * max(width - cells_of(text), 2)
            detail = each.detail or (self._describe(each.text) if self._describe is not None else "")
            detail = gap + _first_clause(detail, columns - 2 - cells_of(text + gap)) if detail else ""
            rows.append(fit((Span(mark, "accent"), Span(text, style), Span(detail, "dim")), columns))
        if has_more:
            where = say("conversation.menu_place", number=self.chosen + 1, count=len(self.suggestions))
            rows.append(fit(line(f"  {where}", "dim"), columns))
        return rows


def menu_for(composer: Composer, commands: Mapping[str, str], files: FileIndex) -> Menu | None:
    """The menu for where the caret is; None where there is nothing to suggest."""
    start, word = composer.word_before_caret()
    if start == 0 and word.startswith("/") and "\n" not in composer.text:
        return _menu(start, [Suggestion(name, help) for name, help in matching_commands(commands, word)])
    if composer.text.startswith("/") and (rows := choices_after(composer.text[:start].strip(), "live")):
        return _menu(start, [Suggestion(choice, about) for choice, about in rows if choice.startswith(word)])
    if quoted := _OPEN_QUOTE.search(composer.text, 0, composer.caret):
        return _files_menu(quoted.start(1), quoted[2], files, is_quoted=True)
    at = word.rfind("@")
    if at >= 0 and (at == 0 or not word[at - 1].isalnum()):
        return _files_menu(start + at, word[at + 1 :], files)
    return None


def _files_menu(start: int, wanted: str, files: FileIndex, *, is_quoted: bool = False) -> Menu | None:
    found = [Suggestion(_file_word(path, is_quoted=is_quoted)) for path in files.find(wanted)]
    return Menu(start, found, files.describe) if found else None


def _file_word(path: str, *, is_quoted: bool) -> str:
    """With quotes where it has blanks. Those of a folder stay open: one writes on in it."""
    if not is_quoted and " " not in path:
        return f"@{path}"
    return f'@"{path}' if path.endswith("/") else f'@"{path}"'


def _first_clause(help: str, columns: int) -> str:
    """Of a help that does not fit: what stands before its first semicolon."""
    return help if cells_of(help) <= columns else help.replace("；", ";").partition(";")[0]


def _menu(start: int, suggestions: Sequence[Suggestion]) -> Menu | None:
    return Menu(start, suggestions) if suggestions else None


def matching_commands(commands: Mapping[str, str], word: str) -> Iterable[tuple[str, str]]:
    """The commands that begin with the text, then those that contain it."""
    wanted = word[1:].casefold()
    begin = [(name, help) for name, help in commands.items() if name[1:].startswith(wanted)]
    inside = [(name, help) for name, help in commands.items() if wanted in name[1:] and not name[1:].startswith(wanted)]
    return [*begin, *inside]


class FileIndex:
    """The files of the workspace, as git would list them. They are listed in the background; until then nothing is found."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._take(_Paths((), (), ()))
        self._listed_s = 0.0
        self._task: asyncio.Task[None] | None = None
        self.on_listed = lambda: None

    def list_when_old(self) -> None:
        """List the files if that was never done, or long ago."""
        if (self._task is None or self._task.done()) and (not self._listed_s or time.monotonic() - self._listed_s > AGE_S):
            self._task = asyncio.get_running_loop().create_task(self._list())

    def find(self, wanted: str) -> Sequence[str]:
        """Paths that match, the best first: the name begins so, holds it, the path holds it, the letters come in this order."""
        until = time.monotonic() + SEARCH_S
        word = wanted.casefold()
        if not word:
            return (
                sorted(self._paths, key=lambda path: (path.count("/"), path))[:MOST_SHOWN]
                if len(self._paths) < 20_000
                else self._paths[:MOST_SHOWN]
            )
        hits = [number for number, name in enumerate(self._names) if name.startswith(word)]
        if len(hits) < MOST_SHOWN:
            hits = [number for number, path in enumerate(self._folded) if word in path]
        if len(hits) < MOST_SHOWN:
            hits += self._loose(word, set(hits), until)
        del hits[_MOST_RANKED:]
        return [self._paths[number] for number in sorted(hits, key=lambda number: _rank(self._folded[number], word))[:MOST_SHOWN]]

    def describe(self, word: str) -> str:
        """How much of the context reading it would take."""
        path = word.lstrip("@").strip('"')
        if path.endswith("/") or path.lower().endswith(MEDIA_ENDINGS):
            return ""
        try:
            size = os.stat(os.path.join(self._root, path)).st_size
        except (OSError, ValueError):
            return ""
        return say("conversation.about_tokens", count=max(size // _BYTES_PER_TOKEN, 1))

    def _loose(self, word: str, found: set[int], until: float) -> list[int]:
        hits: list[int] = []
        for number, path in enumerate(self._folded):
            if number % 1_000 == 0 and time.monotonic() > until:
                break
            if number not in found and _holds_letters(path, word):
                hits.append(number)
                if len(hits) >= MOST_SHOWN * 4:
                    break
        return hits

    def set_paths(self, paths: Sequence[str]) -> None:
        self._take(_prepare(paths))

    def _take(self, paths: _Paths) -> None:
        self._paths, self._folded, self._names = paths
        self._listed_s = time.monotonic()

    async def _list(self) -> None:
        try:
            listed = await self._ask_ripgrep(find_ripgrep(self._root))
        except ToolRefusal:  # it is not installed
            listed = None
        self._take(await asyncio.to_thread(_read_list, listed, self._root))  # keys are heeded meanwhile
        self.on_listed()

    async def _ask_ripgrep(self, program: str) -> bytes | None:
        """The paths, each with a null character behind it; None if it cannot be run."""
        try:
            process = await asyncio.create_subprocess_exec(
                *limit_memory([program, "--files", "--hidden", "--glob", "!.git", "--null", "--no-messages"]),
                cwd=self._root, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:
            return None
        try:
            async with asyncio.timeout(ripgrep.TIMEOUT_S):
                out, _ = await process.communicate()
        except TimeoutError:  # it waits for an ignore file that is a pipe, or reads one without end
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        # It may also have used up the memory that it is given.
        return out if out or process.returncode in (0, 1) else None


class _Paths(NamedTuple):
    """The same files three times, in the same order: as they are, for comparing, and their names alone."""

    paths: Sequence[str]
    folded: Sequence[str]
    names: Sequence[str]


def _prepare(paths: Sequence[str]) -> _Paths:
    paths = paths[:MOST_FILES]
    folded = [path.casefold() for path in paths]
    return _Paths(paths, folded, [path.rstrip("/").rpartition("/")[2] for path in folded])


def _read_list(listed: bytes | None, root: str) -> _Paths:
    """Folders first. `listed`: what ripgrep said, if it could be asked."""
    paths = [os.fsdecode(path) for path in listed.split(b"\0") if path] if listed is not None else _walk(root)
    paths.sort()
    return _prepare([*_folders(paths), *paths])


def _folders(paths: Iterable[str]) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found[folder] = None
            folder = folder.rpartition("/")[0]
    return sorted(f"{folder}/" for folder in found)


def _walk(root: str) -> list[str]:
    """Without ripgrep: everything but hidden folders."""
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("node_modules", "__pycache__")]
        inside = os.path.relpath(folder, root)
        found += [name if inside == "." else f"{inside}/{name}" for name in files]
        if len(found) > MOST_FILES:
            break
    return found


def _holds_letters(path: str, word: str) -> bool:
    at = 0
    for char in word:
        at = path.find(char, at) + 1
        if not at:
            return False
    return True


def _rank(path: str, word: str) -> tuple[int, int, str]:
    name = path.rstrip("/").rpartition("/")[2]
    kind = 0 if name == word else 1 if name.startswith(word) else 2 if word in name else 3 if word in path else 4
    return kind, len(path), path
