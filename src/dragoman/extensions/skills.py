"""Skills: folders with a SKILL.md, as agentskills.io has it. The model gets name and description; the rest is read when needed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.base.text import one_line
from dragoman.extensions.agent_limits import find_refusal
from dragoman.extensions.files import SearchFolder, SourceProblem, Unreadable, Walk, read_text
from dragoman.extensions.frontmatter import Frontmatter, read_frontmatter
from dragoman.extensions.plugins import Plugin, search_folders
from dragoman.extensions.skill_switches import Judge, NamedSkill, find_switches
from dragoman.extensions.sources import PROGRAMS, ProgramFolder
from dragoman.values.origin import Origin
from dragoman.words import say

FILE = "SKILL.md"
FOLDERS: dict[str, tuple[str, ...]] = {**dict.fromkeys(PROGRAMS, ("skills",)), "opencode": ("skills", "skill")}
MAX_SKILLS = 500
MAX_DESCRIPTION_CHARS = 1_024
MAX_SKILL_BYTES = 400_000
MAX_HEAD_BYTES = 32_000
MAX_CATALOGUE_CHARS = 24_000
"""Limit for the list that the model gets; beyond it descriptions are shortened."""
_SHORTER = (MAX_DESCRIPTION_CHARS, 500, 250, 120, 60)
_NAME = re.compile(r"[\w][\w.-]{0,63}")
MAX_LISTED_FILES = 50


class Skill(msgspec.Struct, frozen=True):
    """One skill, without its body."""

    name: str
    """With `plugin:` before it, if a plugin brings it."""
    description: str
    folder: str
    place: SearchFolder
    origin: Origin
    allowed_tools: tuple[str, ...] | None = None
    """None: it does not say which it needs. Empty: it needs none."""
    disallowed_tools: tuple[str, ...] = ()
    agent: str = ""
    """The subagent that it wants to be run by; what that may not do, it may not do either."""
    for_model: bool = True
    """Whether the model may activate it by itself."""
    for_user: bool = True
    """Whether it is among the commands."""
    argument_hint: str = ""
    argument_names: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return os.path.join(self.folder, FILE)


class FoundSkills(msgspec.Struct, frozen=True):
    """The skills that files define."""

    found: tuple[Skill, ...] = ()
    problems: tuple[SourceProblem, ...] = ()

    def named(self, name: str) -> Skill | None:
        return next((skill for skill in self.found if skill.name == name), None)


def find_skills(folders: Sequence[ProgramFolder], plugins: Sequence[Plugin] = ()) -> FoundSkills:
    """All skills that are defined. If several have the same name, the one in the nearest folder wins."""
    found: dict[str, Skill] = {}
    problems: list[SourceProblem] = []
    seen: set[str] = set()
    for place in search_folders(folders, plugins, "skills", FOLDERS):
        if not _take_folder(place, found, problems, seen):
            problems.append(SourceProblem(place.origin(place.path), say("skills.too_many", most=MAX_SKILLS)))
            break
    switch = find_switches(folders) if found else None
    kept = found.values() if switch is None else filter(None, (_switched(skill, switch) for skill in found.values()))
    return FoundSkills(tuple(kept), tuple(problems))


def _switched(skill: Skill, switch: Judge) -> Skill | None:
    bare = skill.name.removeprefix(f"{skill.place.plugin}:")
    said = switch(NamedSkill(skill.origin.program, bare, skill.place.plugin, skill.file))
    return None if said == "off" else msgspec.structs.replace(skill, for_model=False) if said == "user" else skill


def _take_folder(place: SearchFolder, found: dict[str, Skill], problems: list[SourceProblem], seen: set[str]) -> bool:
    """False once there are too many."""
    if not os.path.isdir(place.path):
        return True
    walk = Walk(place, FILE)  # what lies beside it are the skill's own files
    for path, _, files in walk:
        if FILE not in files:
            continue
        real = os.path.realpath(path)
        if real in seen:  # the same by a link
            continue
        seen.add(real)
        if len(found) >= MAX_SKILLS:
            return False
        skill = _read_skill(place, path, problems)
        if skill is not None:
            found.setdefault(skill.name, skill)
    problems += walk.problems
    return True


def _read_skill(place: SearchFolder, folder: str, problems: list[SourceProblem]) -> Skill | None:
    path = os.path.join(folder, FILE)
    try:
        text = read_text(place, path, MAX_HEAD_BYTES, head=True)
    except Unreadable as error:
        problems.append(SourceProblem(place.origin(path), str(error)))
        return None
    head = read_frontmatter(text)
    if (refusal := find_refusal(text, head)) is not None:
        problems.append(SourceProblem(place.origin(path, refusal.line), refusal.reason))
        return None
    if head.faults:  # one notice for a file; it is used nevertheless
        problems.append(SourceProblem(place.origin(path, head.faults[0].line), head.faults[0].reason))
    name = _name_of(head, folder)
    if not name:
        problems.append(SourceProblem(place.origin(path, head.lines.get("name", 1)), say("skills.no_name")))
        return None
    described = head.text("description") or _first_line(head.body)
    description = one_line(" ".join(filter(None, (described, head.text("when_to_use")))), MAX_DESCRIPTION_CHARS)
    if not description:
        problems.append(SourceProblem(place.origin(path, 1), say("skills.no_description")))
        return None
    return Skill(
        name=f"{place.plugin}:{name}" if place.plugin else name,
        description=description,
        folder=folder,
        place=place,
        origin=place.origin(path, head.lines.get("name", 0)),
        allowed_tools=tools_of(head, "allowed"),
        disallowed_tools=tools_of(head, "disallowed") or (),
        agent=head.text("agent"),
        for_model=head.flag("disable-model-invocation") is not True,
        for_user=head.flag("user-invocable") is not False,
        argument_hint=one_line(head.text("argument-hint"), 80),
        argument_names=tuple(head.words("arguments", ", ")),
    )


def tools_of(head: Frontmatter, which: Literal["allowed", "disallowed"]) -> tuple[str, ...] | None:
    """Parted by commas or blanks; a blank inside brackets parts nothing. None: the head says nothing of it."""
    key = next((key for key in (f"{which}-tools", f"{which}_tools", f"{which}Tools") if key in head.values), "")
    return tuple(head.words(key, ", ")) if key else None


def _name_of(head: Frontmatter, folder: str) -> str:
    names = (head.text("name"), os.path.basename(folder))
    # People write "PDF Tools"; a command needs one word.
    made = (re.sub(r"[^\w.-]+", "-", name.strip()).strip("-") for name in names)
    return next((name for name in (*names, *made) if _NAME.fullmatch(name)), "")


def _first_line(body: str) -> str:
    lines = (line.strip() for line in body.splitlines())
    return next((line.lstrip("# ") for line in lines if line.strip("#-* ")), "")


# --- the list for the model


def catalogue(skills: Sequence[Skill]) -> tuple[tuple[str, str], ...]:
    """Name and description of those that the model may activate; shortened where there are many, and the last left out where that is not
    enough."""
    offered = [skill for skill in skills if skill.for_model]
    rows: list[tuple[str, str]] = []
    for most in _SHORTER:
        rows = [(skill.name, one_line(skill.description, most)) for skill in offered]
        if _chars(rows) <= MAX_CATALOGUE_CHARS:
            break
    while _chars(rows) > MAX_CATALOGUE_CHARS:
        del rows[-max(1, len(rows) // 20) :]
    return tuple(rows)


def _chars(rows: Sequence[tuple[str, str]]) -> int:
    return sum(len(name) + len(text) + 5 for name, text in rows)


def load_skill(skill: Skill) -> str:
    """What the model gets when it is activated: the body, where its files are and which there are. Raises Unreadable."""
    body = read_frontmatter(read_text(skill.place, skill.file, MAX_SKILL_BYTES)).body.strip()
    body = body.replace("${CLAUDE_SKILL_DIR}", skill.folder).replace("${CLAUDE_PLUGIN_ROOT}", skill.place.within or skill.folder)
    body = body.replace("</skill>", "< /skill>")  # it must not fake its own end
    files = _list_files(skill)
    about = f"Its files are in {skill.folder}; paths in it are meant from there."
    listed = f"\nBeside {FILE} there are: {', '.join(files)}" if files else ""
    return f'<skill name="{skill.name}">\n{about}{listed}\n\n{body}\n</skill>'


def _list_files(skill: Skill) -> list[str]:
    place = SearchFolder(skill.place.program, skill.place.tier, skill.folder, skill.place.within)
    names: list[str] = []
    for _, below, files in Walk(place):
        names += ["/".join((*below, name)) for name in files if (below or name != FILE) and not name.startswith(".")]
        if len(names) > MAX_LISTED_FILES:
            return [*names[:MAX_LISTED_FILES], "…"]
    return [one_line(name, 200) for name in names]
