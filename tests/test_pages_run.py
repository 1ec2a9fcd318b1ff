"""What stands in code blocks of the pages for extending and operating: commands parse, settings are valid, and so are JSON and YAML."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from dragoman.app.arguments import parse
from dragoman.app.config import load
from dragoman.app.options import Options
from dragoman.base.places import find_places

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = [*sorted((DOCS / "extend").glob("*.md")), *sorted((DOCS / "operate").glob("*.md")), DOCS / "use" / "worktrees.md"]
BLOCKS = [
    (kind, code, page)
    for page in PAGES
    for kind, code in re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
]


def blocks(kind: str) -> pytest.MarkDecorator:
    chosen = [(code, page) for each, code, page in BLOCKS if each == kind]
    assert chosen, kind
    return pytest.mark.parametrize(
        ("code", "page"), chosen, ids=[f"{page.stem} {code.strip().splitlines()[0][:30]}" for code, page in chosen]
    )


def commands_in(code: str) -> list[list[str]]:
    """The words behind `dragoman`, up to what belongs to the shell."""
    found: list[list[str]] = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while "dragoman" in words:
            words = words[words.index("dragoman") + 1 :]
            end = next((at for at, word in enumerate(words) if word in ("|", ">", "<", "&&", "&", "2>&1", "||")), len(words))
            found.append(words[:end])
    return found


@blocks("sh")
def test_every_command_has_words_that_exist(code: str, page: Path) -> None:
    for words in commands_in(code):
        parse(words)


@blocks("yaml")
def test_jobs_are_yaml_and_their_commands_parse(code: str, page: Path) -> None:
    yaml.safe_load(code)
    [words] = [
        words for line in code.splitlines() if "dragoman --config" in line for words in commands_in(line.lstrip(" -").removeprefix("run: "))
    ]
    parse(words)


@blocks("toml")
def test_settings_are_valid(code: str, page: Path, tmp_path: Path) -> None:
    if page.name == "slash-commands.md":
        assert set(tomllib.loads(code)) == {"description", "prompt"}  # a command's own file
        return
    (tmp_path / "config.toml").write_text(code, encoding="utf-8")
    places = find_places({"HOME": str(tmp_path), "DRAGOMAN_HOME": str(tmp_path)})
    loaded = load(Options(config=str(tmp_path / "config.toml")), {"HOME": str(tmp_path)}, places, str(tmp_path))
    assert loaded.config


@blocks("jsonl")
def test_lines_are_json(code: str, page: Path) -> None:
    assert [json.loads(line)["type"] for line in code.splitlines()]
