"""activate_skill: gives the model what a skill says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.base.text import closest, one_line
from dragoman.extensions.files import Unreadable
from dragoman.extensions.skills import Skill, load_skill
from dragoman.values.calls import Intent, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec
from dragoman.values.notes import ACTIVATE_SKILL

_DESCRIPTION = (
    "Gives you the instructions of a skill. Call it before you begin, when a task fits the description of a skill that you were told of. "
    "Its files can be read afterwards."
)


class ActivateSkill:
    """`find` looks a skill up by its name; `activate` is called before the model gets it, and returns why it cannot be used, if so."""

    def __init__(self, find: Callable[[], Mapping[str, Skill]], activate: Callable[[Skill], str]) -> None:
        self._find = find
        self._activate = activate
        properties = {"name": {"type": "string", "description": "The skill's name."}}
        parameters = {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False}
        self.spec = ToolSpec.of(ACTIVATE_SKILL, _DESCRIPTION, parameters, display_name="Skill", read_only=True)

    def intend(self, args: Mapping[str, Any]) -> Intent:
        name = _name(args)
        skill = self._find().get(name)
        return Intent(title=f"skill {one_line(name, 80)}", reads=(skill.file,) if skill is not None else ())

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        name = _name(args)
        known = {each: skill for each, skill in self._find().items() if skill.for_model}
        skill = known.get(name)
        if skill is None:
            near = ", ".join(closest(name, known, 3) or list(known)[:20])
            return _failed(f"there is no skill called {one_line(name, 80)}. There are: {near}", "not_found")
        try:
            text = load_skill(skill)
        except Unreadable as error:
            return _failed(f"the skill {name} cannot be read: {error}", "io")
        if problem := self._activate(skill):
            return _failed(f"the skill {name} cannot be used: {problem}", "impossible")
        return ToolOutput((Text(text),), display=skill.description)


def _name(args: Mapping[str, Any]) -> str:
    return str(args.get("name", "")).strip().removeprefix("/")


def _failed(words: str, error_type: str) -> ToolOutput:
    return ToolOutput((Text(words),), display=words, is_error=True, error_type=error_type)
