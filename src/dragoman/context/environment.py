"""The environment message at the start of a conversation, and later messages about what has changed. Pure: facts are gathered elsewhere.

The first message is stored with the session and never regenerated, so that the cached prefix stays valid. What the model already knows is
parsed back from the messages themselves; no separate record is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from dragoman.context.tree import Listing, Tree, apply_changes, diff_trees, read_tree, tree_lines
from dragoman.values.notes import CHANGED_BEGINS, GREETING, KNOWN_BEGINS

REMINDER = "Reminder: Do not return an empty response when a tool call is required."
READY = "My setup is complete. I will provide my first command in the next turn."

MAX_NAMES = 40
"""Up to this many new or removed names are listed one by one; beyond it, the folder is listed again."""

_DATE = "Today's date is ", " (formatted according to the user's locale)."
_SYSTEM = "My operating system is: "
_TEMPORARY = "The project's temporary directory is: "
_SHARED_TEMPORARY = "The system's temporary directory is: "
_DIRECTORY, _DIRECTORIES, _ITEM = "I'm working in the directory: ", "I'm working in these directories:", "  - "
_HOLDS = "What ", " holds:"
_EMPTY = "What ", " holds: nothing."
_NEW, _GONE = ("New in ", ":"), ("No longer in ", ":")
_SAYS, _SAID = ("--- What ", " says ---"), ("--- End of ", " ---")
_SKILLS = "Skills that you can activate with activate_skill, when what I ask for fits their description:"
_NEW_SKILLS, _GONE_SKILLS = "Skills that are new or have another description:", "Skills that are no longer there:"
_FORGET = "Set aside what ", " said: it is no longer part of my setup."
_BRANCH = "Git branch: "
STATUS, _OLD_STATUS = "Git status of ", "Git status now:"
UNDONE = "These changes of yours were undone, so the files are again as they were before them:"
REDONE = "These changes of yours that had been undone were redone, so the files are again as they were after them:"
CHANGED_FILES = "These files changed on disk since you last read or wrote them. Read them again before you rely on what you saw:"

MODE, COMMANDS, PERSON = "Approval mode: ", "Commands run ", "Questions: "
"""How the lines begin that tell of the conditions the model works under: see loop/conditions.py."""
_BEGINNINGS = (MODE, COMMANDS, PERSON)
Lines = Mapping[str, str]
"""Such lines, each by its beginning."""

_Around = tuple[str, str]
"""The text before and after the one variable part."""


class Surroundings(msgspec.Struct, frozen=True):
    """The facts when a session starts."""

    date: str
    system: str
    directories: tuple[str, ...]
    temporary: str = ""
    trees: Mapping[str, Tree] = msgspec.field(default_factory=dict)
    """By directory: its contents. A directory that cannot be read is missing."""
    memory: tuple[tuple[str, str], ...] = ()
    """Memory files: the path and text of each."""
    skills: tuple[tuple[str, str], ...] = ()
    """Those that can be activated: the name and description of each."""
    branch: str = ""
    """The branch that is checked out; empty: there is no repository, or it is not known."""
    conditions: Lines = msgspec.field(default_factory=dict)
    """What the model may do, in which boundary, and who can answer."""
    owns_temporary: bool = True
    """Whether that is the project's own temporary directory, and not the system's."""


def environment_text(facts: Surroundings) -> str:
    """Named fragments in a fixed order, joined by blank lines."""
    return _join(
        GREETING,
        _within(_DATE, facts.date),
        _SYSTEM + _line(facts.system),
        (_TEMPORARY if facts.owns_temporary else _SHARED_TEMPORARY) + _line(facts.temporary) if facts.temporary else "",
        _directories(facts.directories),
        _branch(facts.branch),
        *(_tree(directory, tree) for directory, tree in facts.trees.items()),
        *(_memory(path, text) for path, text in facts.memory if text.strip()),
        _skills(_SKILLS, facts.skills),
        "\n".join(facts.conditions.values()),
        REMINDER,
        READY,
    )


def added_text(directories: Sequence[str], trees: Mapping[str, Tree], conditions: Sequence[str] = (), *, branch: str = "") -> str:
    """The message when directories are added to a running conversation: all directories, the contents of the new ones, and the branch and
    the lines about conditions that have changed as well."""
    contents = (_tree(directory, tree) for directory, tree in trees.items())
    return _join(CHANGED_BEGINS, _directories(directories), _branch(branch), *contents, "\n".join(conditions))


def conditions_text(lines: Sequence[str], *, branch: str = "", status: str = "") -> str:
    """The message while a conversation goes on: the branch and the lines about conditions that have changed, and the status of git. Empty
    if there is nothing to tell."""
    changed = news_text("", [_branch(branch), "\n".join(lines)])
    return news_text(changed or KNOWN_BEGINS, [status]) if status else changed


def told_conditions(messages: Iterable[str]) -> Lines:
    """What these messages say of the conditions. Empty: they are of a version that said nothing."""
    return _Known(messages).conditions


def told_branch(messages: Iterable[str]) -> str:
    """The branch that these messages name; empty: none."""
    return _Known(messages).branch


def changed_lines(before: Lines, now: Lines) -> list[str]:
    """The lines that say something else than those that were told, or something new."""
    return [line for begins, line in now.items() if before.get(begins) != line]


def changed_text(messages: Iterable[str], facts: Surroundings) -> str:
    """The message about what has changed since `messages`: the first one and those of `changed_text`. Empty if nothing has changed."""
    before, now = _Known(messages), _Known([environment_text(facts)])
    fragments = [fragment for fragment in _changes(before, now) if fragment]
    return _join(CHANGED_BEGINS, *fragments) if fragments else ""


def news_text(text: str, fragments: Iterable[str]) -> str:
    """The message about what is new, with these fragments behind those it has; empty if there are none."""
    added = [fragment for fragment in fragments if fragment]
    return _join(text or CHANGED_BEGINS, *added) if added else text


# --- comparing -----------------------------------------------------------------------------------------------------------


def _changes(before: _Known, now: _Known) -> Iterator[str]:
    if now.date and now.date != before.date:
        yield _within(_DATE, now.date)
    if now.system and now.system != before.system:
        yield _SYSTEM + now.system
    if now.temporary and now.temporary != before.temporary:
        yield now.temporary_begins + now.temporary
    if now.directories and now.directories != before.directories:
        yield _directories(now.directories)
    for directory, tree in now.trees.items():
        yield from _tree_changes(directory, before.trees.get(directory), tree)
    for path, text in now.memory.items():
        if before.memory.get(path) != text:
            yield _memory(path, text)
    for path in before.memory:
        if path not in now.memory:
            yield _within(_FORGET, path)
    yield _skills(_NEW_SKILLS, [(name, text) for name, text in now.skills.items() if before.skills.get(name) != text])
    yield _skills(_GONE_SKILLS, [(name, "") for name in before.skills if name not in now.skills])
    if before.conditions:  # else the session began with a version that told nothing of them, and goes on as it did
        yield _BRANCH + now.branch if now.branch and now.branch != before.branch else ""
        yield "\n".join(changed_lines(before.conditions, now.conditions))


def _tree_changes(directory: str, before: Tree | None, now: Tree) -> Iterator[str]:
    if before is None:
        yield _tree(directory, now)
        return
    added, removed = diff_trees(before, now)
    if len(added) + len(removed) > MAX_NAMES:
        yield _tree(directory, now)
        return
    for around, paths in ((_NEW, added), (_GONE, removed)):
        if paths:
            yield "\n".join([_within(around, directory), *(f"  {path}" for path in paths)])


class _Known:
    """What a reader of these messages knows."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.date = self.system = self.temporary = self.branch = ""
        self.temporary_begins = _TEMPORARY
        self.directories: tuple[str, ...] = ()
        self.trees: dict[str, Tree] = {}
        self.memory: dict[str, str] = {}
        self.skills: dict[str, str] = {}
        self.conditions: dict[str, str] = {}
        for text in texts:
            self._read(text.split("\n"))

    def _read(self, lines: Sequence[str]) -> None:
        at = 0
        while at < len(lines):
            line, at = lines[at], at + 1
            if (path := _between(_SAYS, line)) is not None:
                end = _find(lines, _within(_SAID, path), at)
                self.memory[path] = "\n".join(lines[at:end])
                at = end + 1
                continue
            end = at
            while end < len(lines) and lines[end].startswith("  "):
                end += 1
            self._take(line, lines[at:end])
            at = end

    def _take(self, line: str, below: Sequence[str]) -> None:
        if (date := _between(_DATE, line)) is not None:
            self.date = date
        elif line.startswith(_SYSTEM):
            self.system = line.removeprefix(_SYSTEM)
        elif line.startswith((_TEMPORARY, _SHARED_TEMPORARY)):
            self.temporary_begins = _TEMPORARY if line.startswith(_TEMPORARY) else _SHARED_TEMPORARY
            self.temporary = line.removeprefix(self.temporary_begins)
        elif line.startswith(_BRANCH):
            self.branch = line.removeprefix(_BRANCH)
        elif begins := next(filter(line.startswith, _BEGINNINGS), ""):
            self.conditions[begins] = line
        elif line.startswith(_DIRECTORY):
            self._take_directories([line.removeprefix(_DIRECTORY)])
        elif line == _DIRECTORIES:
            self._take_directories([each.removeprefix(_ITEM) for each in below])
        elif (path := _between(_FORGET, line)) is not None:
            self.memory.pop(path, None)
        elif line in (_SKILLS, _NEW_SKILLS, _GONE_SKILLS):
            self._take_skills(line, below)
        else:
            self._take_tree(line, below)

    def _take_directories(self, directories: Sequence[str]) -> None:
        self.directories = tuple(directories)
        self.trees = {directory: tree for directory, tree in self.trees.items() if directory in directories}

    def _take_skills(self, line: str, below: Sequence[str]) -> None:
        for each in below:
            name, _, text = each.strip().partition(": ")
            if line == _GONE_SKILLS:
                self.skills.pop(name, None)
            else:
                self.skills[name] = text

    def _take_tree(self, line: str, below: Sequence[str]) -> None:
        if (directory := _between(_EMPTY, line)) is not None:
            self.trees[directory] = {"": Listing()}
        elif (directory := _between(_HOLDS, line)) is not None:
            self.trees[directory] = read_tree(below)
        elif (directory := _between(_NEW, line)) in self.trees:
            self.trees[directory] = apply_changes(self.trees[directory], [each[2:] for each in below], ())
        elif (directory := _between(_GONE, line)) in self.trees:
            self.trees[directory] = apply_changes(self.trees[directory], (), [each[2:] for each in below])


# --- the same on every machine -----------------------------------------------------------------------------------------------


def told_places(texts: Iterable[str]) -> tuple[tuple[str, ...], str]:
    """The directories and the temporary directory that these messages name."""
    known = _Known(texts)
    return known.directories, known.temporary


def skills_in(text: str) -> str:
    """The part of one of these messages that names skills; empty if none does."""
    lines = text.split("\n")
    at = next((at for at, line in enumerate(lines) if line in (_SKILLS, _NEW_SKILLS)), None)
    if at is None:
        return ""
    end = at + 1
    while end < len(lines) and lines[end].startswith("  "):
        end += 1
    return "\n".join(lines[at:end])


def generic_text(text: str) -> str:
    """One of these messages without what depends on the machine, the folder or the day: facts are replaced by their names, and listings
    are left out. What memory files say stays. Applied twice, it changes nothing more."""
    kept: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line, start = lines[at], at + 1
        if (path := _between(_SAYS, line)) is not None:
            at = _find(lines, _within(_SAID, path), start) + 1
            kept += lines[start - 1 : at]
            continue
        at = start
        while at < len(lines) and lines[at].startswith("  "):
            at += 1
        if _is_listing(line):
            del kept[len(kept) - (kept[-1:] == [""]) :]
        else:
            kept += _generic_fragment(line, lines[start:at])
    return "\n".join(kept)


def _is_listing(line: str) -> bool:
    """Or another line that is not the same everywhere: about git, or about the conditions."""
    if line.startswith((_BRANCH, STATUS, _OLD_STATUS, UNDONE, REDONE, CHANGED_FILES, *_BEGINNINGS)):
        return True
    return any(_between(around, line) is not None for around in (_EMPTY, _HOLDS, _NEW, _GONE))


def _generic_fragment(line: str, below: Sequence[str]) -> list[str]:
    if _between(_DATE, line) is not None:
        return [_within(_DATE, "(date)"), *below]
    if line == KNOWN_BEGINS:
        return [CHANGED_BEGINS, *below]  # as earlier versions said it, so that their recordings are found
    if line == _DIRECTORIES:
        return [line, *(f"{_ITEM}(directory {number})" for number in range(1, len(below) + 1))]
    named = (
        (_SYSTEM, "(system)"),
        (_TEMPORARY, "(temporary directory)"),
        (_SHARED_TEMPORARY, "(temporary directory)"),
        (_DIRECTORY, "(directory 1)"),
    )
    return [next((begins + name for begins, name in named if line.startswith(begins)), line), *below]


# --- the fragments -------------------------------------------------------------------------------------------------------


def _directories(directories: Sequence[str]) -> str:
    if len(directories) == 1:
        return _DIRECTORY + _line(directories[0])
    return "\n".join([_DIRECTORIES, *(_ITEM + _line(directory) for directory in directories)]) if directories else ""


def _branch(branch: str) -> str:
    return _BRANCH + _line(branch) if branch else ""


def _tree(directory: str, tree: Tree) -> str:
    lines = list(tree_lines(tree))
    return "\n".join([_within(_HOLDS if lines else _EMPTY, directory), *lines])


def _memory(path: str, text: str) -> str:
    # A file must not be able to fake its own end, or the beginning of another.
    lines = (f" {line}" if line.startswith((_SAYS[0], _SAID[0])) else line for line in text.strip().split("\n"))
    return "\n".join([_within(_SAYS, path), *lines, _within(_SAID, path)])


def _skills(heading: str, skills: Sequence[tuple[str, str]]) -> str:
    if not skills:
        return ""
    return "\n".join([heading, *(f"  {_line(name)}: {_line(text)}" if text else f"  {_line(name)}" for name, text in skills)])


def _join(*fragments: str) -> str:
    return "\n\n".join(fragment.strip() for fragment in fragments if fragment.strip())


def _within(around: _Around, text: str) -> str:
    return around[0] + _line(text) + around[1]


def _between(around: _Around, line: str) -> str | None:
    before, after = around
    is_long = len(line) > len(before) + len(after)
    return line[len(before) : len(line) - len(after)] if is_long and line.startswith(before) and line.endswith(after) else None


def _line(text: str) -> str:
    """One line, whatever was given: a name cannot start another fragment."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def _find(lines: Sequence[str], wanted: str, start: int) -> int:
    """The index of a line, or the end."""
    return next((at for at in range(start, len(lines)) if lines[at] == wanted), len(lines))
