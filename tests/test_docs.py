"""Pages that list things list what there is, and code on them passes the type checker."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
import typing
from pathlib import Path

import dragoman as dm
from agents import make_agent
from dragoman.app.config import FOR_PROJECTS
from dragoman.values.events import TurnEvent

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", *(f"docs/embed/{each.name}" for each in sorted((ROOT / "docs" / "embed").glob("*.md"))))
CHECKED_ELSEWHERE = ("docs/embed/contracts.md", "docs/embed/testing.md")
"""The first is one program (tests/test_contracts.py); the functions of the second are annotated as fixtures are, not at all."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    return text[text.index(f"## {title}\n") :].partition("\n## ")[0]


def test_every_event_of_a_run_is_on_the_page() -> None:
    rows = re.findall(r"^\| (`[A-Z].*?) \|", section(page("docs/embed/events.md"), "Every event"), re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(named) == sorted(kind.__name__ for kind in typing.get_args(TurnEvent))


def test_every_tool_is_on_the_page(tmp_path: Path) -> None:
    async def answer(question: str, choices: typing.Sequence[str]) -> str:
        return ""

    web, provider = dm.WebAccess(searxng="http://127.0.0.1:1"), dm.testing.ScriptedProvider("")
    agent = make_agent(provider, workspace=tmp_path, ask_user=answer, memory_file=tmp_path / "memory.md", web=web)
    first = section(page("docs/embed/built-in-tools.md"), "The tools").partition("\n\nA coding agent")[0]
    named = {word for word in re.findall(r"`(\w+)`", first) if "_" in word or word in ("glob", "grep", "edit", "todo")}
    assert named == set(agent.tools.names)


def test_every_parameter_of_an_agent_is_on_the_page() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section(page("docs/embed/agents.md"), "Options"), re.MULTILINE)
    code = dm.Agent.__init__.__code__
    assert rows == list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    assert len(rows) <= 15


def test_every_name_of_the_message_helpers_is_on_the_page() -> None:
    rows = re.findall(r"^\| (`.*?) \|", page("docs/embed/messages.md"), re.MULTILINE)
    named = {name for name in re.findall(r"`(\w+)", " ".join(rows)) if hasattr(dm.messages, name)}
    public = {name for name in vars(dm.messages) if not name.startswith("_")}
    assert named | {"Repaired"} == public


def test_what_a_project_may_set_is_on_the_page() -> None:
    told = section(page("docs/configure/configuration.md"), "What a project may set").partition("Everything else")[0]
    assert set(re.findall(r"`([\w.]+)`", told)) == set(FOR_PROJECTS)


def test_code_on_the_pages_passes_the_type_checker(tmp_path: Path) -> None:
    """The blocks of a page are one function, because later ones use what earlier ones define; a page of programs has a file for each."""
    for name in (each for each in PAGES if each not in CHECKED_ELSEWHERE):
        blocks = blocks_of(name)
        if not blocks:
            continue
        function = re.sub(r"\W", "_", Path(name).stem.lower())
        code = "".join(blocks).replace("import dragoman as dm\n", "")
        written = f"import dragoman as dm\n\n\nasync def {function}() -> None:\n{textwrap.indent(code, '    ')}"
        (tmp_path / f"{function}_page.py").write_text(written, encoding="utf-8")
    *steps, shop, test = blocks_of("docs/start/first-agent.md")
    (tmp_path / "shop.py").write_text(shop, encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(test, encoding="utf-8")
    for number, step in enumerate(steps):
        (tmp_path / f"step_{number}.py").write_text(step, encoding="utf-8")
    assert len(list(tmp_path.iterdir())) > 20
    checker = Path(sys.executable).with_name("pyrefly")
    paths = ["--search-path", ROOT / "src", "--search-path", tmp_path]
    command = [checker, "check", "--preset", "default", *paths, *sorted(tmp_path.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def blocks_of(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page(name), re.DOTALL)


def test_nobody_is_told_to_install_a_package_that_is_not_ours() -> None:
    """The package is on no index: an installer that is given its name takes somebody else's."""
    told = re.compile(r"""(?<!un)install(?: -[-\w]+)* ['"]?dragoman\b""")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.toml")]
    assert [each.name for each in pages if told.search(each.read_text(encoding="utf-8"))] == []


def test_what_the_readme_shows_can_be_pasted() -> None:
    """Into any shell: zsh has no comments at its prompt, and nothing is called `…`."""
    lines = re.findall(r"^    (\S.*)$", re.sub(r"```.*?```", "", page("README.md"), flags=re.DOTALL), re.MULTILINE)
    assert len(lines) > 8
    assert [line for line in lines if "…" in line or "#" in line] == []


def test_the_readmes_name_every_extra() -> None:
    extras = set(tomllib.loads(page("pyproject.toml"))["project"]["optional-dependencies"])
    for name in ("README.md", "README.zh-CN.md"):
        assert {extra for extra in extras if f"`{extra}`" not in page(name)} == set(), name
