"""Skills that the user has switched off in another program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.extensions.skills import find_skills
from dragoman.extensions.sources import ProgramFolder


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


OFF: list[tuple[Any, str, str, list[str]]] = [
    ("gemini", "settings.json", '{"skills": {"disabled": ["Greet", 7]}}', ["gemini:other", "agents:other", "claude:greet", "claude:other"]),
    ("gemini", "settings.json", '{"skills": {"enabled": false}}', ["agents:greet", "agents:other", "claude:greet", "claude:other"]),
    ("claude", "settings.json", '{"skillOverrides": {"greet": "off", "other": "name-only"}}', ["gemini:*", "agents:*", "claude:other"]),
    (
        "claude",
        "settings.json",
        '{"skillOverrides": {"greet": "user-invocable-only"}}',
        ["gemini:*", "agents:*", "claude:-greet", "claude:other"],
    ),
    ("codex", "config.toml", '[[skills.config]]\nname = "greet"\nenabled = false', ["gemini:*", "agents:other", "claude:*"]),
    (
        "codex",
        "config.toml",
        '[[skills.config]]\npath = "HOME/.claude/skills/greet/SKILL.md"\nenabled = false',
        ["gemini:*", "agents:*", "claude:other"],
    ),
    ("gemini", "settings.json", '{"skills": {"disabled": "greet"', ["gemini:*", "agents:*", "claude:*"]),
    ("codex", "config.toml", "skills = 3", ["gemini:*", "agents:*", "claude:*"]),
]


@pytest.mark.parametrize(("program", "file", "text", "left"), OFF)
def test_what_is_switched_off_elsewhere_is_not_offered(tmp_path: Path, program: Any, file: str, text: str, left: list[str]) -> None:
    programs: tuple[Any, ...] = ("gemini", "agents", "claude", "codex")
    folders = {each: ProgramFolder(each, "user", str(tmp_path / f".{each}")) for each in programs}
    put(tmp_path / f".{program}" / file, text.replace("HOME", str(tmp_path)))
    found: list[str] = []
    for each in programs[:3]:  # apart: of one name the first would be used
        for name in ("greet", "other"):
            put(tmp_path / f".{each}" / "skills" / name / "SKILL.md", f"---\nname: {name}\ndescription: x\n---\nx")
        skills = find_skills([folders[each], *(folders[other] for other in (program,) if other != each)]).found
        found += [f"{each}:{'' if skill.for_model else '-'}{skill.name}" for skill in skills if skill.origin.program == each]
    whole = {each: [f"{each}:greet", f"{each}:other"] for each in programs}
    assert found == [name for each in left for name in (whole[each[:-2]] if each.endswith(":*") else [each])]
