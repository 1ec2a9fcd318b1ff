"""Pages that list things list what there is, and code on them passes the type checker."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import tomllib
import typing
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from checks import prose, twins

import dragoman as dm
import page_names
from agents import make_agent
from dragoman.app.config import FOR_PROJECTS
from dragoman.context.replay import PolicyName
from dragoman.context.settings import Schedule
from dragoman.values.events import TurnEvent

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = ("README.md", *(f"docs/embed/{each.name}" for each in sorted((ROOT / "docs" / "embed").glob("*.md"))))
POINTERS = {DOCS / "architecture.md"}
"""They only lead to where a page is now."""
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
    for language in ("en", "zh"):
        table = import_module(f"dragoman.words.{language}.tools").TEXTS
        assert {f"tools.about_{name}" for name in agent.tools.names} <= table.keys(), "what /tools says of it"


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


def test_every_schedule_of_pruning_is_on_the_page_and_can_be_simulated() -> None:
    schedules = set(typing.get_args(Schedule))
    for name in ("docs/use/pruning.md", "docs/use/pruning.zh-CN.md"):
        assert schedules <= set(re.findall(r"^\| `(\w+)`", page(name), re.MULTILINE)), name
    assert schedules - {"off"} <= set(typing.get_args(PolicyName)), "context/replay.py"


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


@pytest.mark.parametrize(("language", "never"), [("", "**never**"), (".zh-CN", "**从未**")])
def test_it_is_said_where_the_program_was_never_run(language: str, never: str) -> None:
    [row] = [row for row in page(f"README{language}.md").splitlines() if "Windows" in row and row.startswith("|")]
    assert "macOS" in row
    assert f"docs/start/install{language}.md" in row
    [run_there] = [row for row in page(f"docs/start/install{language}.md").splitlines() if never in row]
    assert run_there.count(never) == 2, "on macOS and on Windows"


def test_the_readme_counts_the_services_right() -> None:
    """Hosted ones, each once, whatever number of its addresses and protocols are in the catalog."""
    table = section(page("docs/reference/services.md"), "Services")
    rows = re.findall(r"^\| \S+ \| ([^|]+?) \| [^|]+ \| [^|]+ \| (.*) \|$", table, re.MULTILINE)
    hosted = {name.partition(" (")[0] for name, address in rows if "127.0.0.1" not in address and "in-process" not in address} - {"service"}
    assert f"{len(hosted)} hosted services" in page("README.md")
    assert f"{len(hosted)} 个云端服务" in page("README.zh-CN.md")


def test_the_pages_about_installing_name_every_extra() -> None:
    extras = set(tomllib.loads(page("pyproject.toml"))["project"]["optional-dependencies"])
    for name in ("docs/start/install.md", "docs/start/install.zh-CN.md"):
        assert {extra for extra in extras if f"`{extra}`" not in page(name)} == set(), name


# --- every page

FLAGS_OF_OTHERS = {
    *("--ak", "--ae", "--resume-trajectory", "--retry-include", "--receive-pack", "--upload-pack", "--to-command", "--require", "--mode"),
    *("--network", "--init", "--lenient", "--list", "--cases", "--ways", "--unseen", "--work"),
}
"""Of Harbor, git, tar, node, pi and docker; and of our own scripts and benchmarks."""
NAMES_OF_OTHERS = {"dragoman.Agnet", "dragoman.jsonl"}
"""A misspelt name that is an example of one, and a file."""


def test_every_page_is_short_and_so_are_its_lines() -> None:
    assert [fault for each in prose.pages() for fault in prose.faults(each)] == []


def test_a_page_is_as_long_in_chinese_as_in_english() -> None:
    assert prose.count("# Title\n\nDo not read this in a hurry.\n\n    make run\n").words == 7
    assert prose.count("# 标题\n\n读这一页，不要匆忙；用 `make run` 试试。\n").words == 9


@pytest.mark.parametrize("path", page_names.pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_page_names_exists(path: Path) -> None:
    """Commands of the shell with their options, flags by themselves, and names of the Python API."""
    text = path.read_text(encoding="utf-8")
    assert [f"dragoman {call}: {fault}" for call in page_names.commands(text) if (fault := page_names.fault_of_command(call))] == []
    assert {*page_names.flags(text)} - page_names.known_flags() - FLAGS_OF_OTHERS == set()
    told = {name for name in page_names.python_names(text) if not page_names.exists(name)} - NAMES_OF_OTHERS
    assert {name for name in told if f'"{name}"' not in source()} == set()


@cache
def source() -> str:
    """Names of traces and of entry points look like modules: they stand in it as text."""
    return "".join(each.read_text(encoding="utf-8") for each in (ROOT / "src").rglob("*.py"))


def test_what_does_not_exist_is_found() -> None:
    """Else the test above could not fail."""
    text = "`dragoman sesions list`, `dragoman sessions --port 1`, `dragoman -p x --yolo`, `dragoman sessions dig`\n\n    dragoman --no\n"
    faults = [page_names.fault_of_command(call) for call in page_names.commands(text)]
    assert faults == ["no command sesions", "sessions has no --port", "run has no --yolo", "sessions has no dig", "run has no --no"]
    assert page_names.flags("`--nonsense N` and `-m`") == ["--nonsense"]
    names = list(
        page_names.python_names("`dm.Agent.run`, `dragoman.options.Budgett`, `dm.Result.output`\n\n```python\nx = dm.nonsense(1)\n```\n")
    )
    assert [name for name in names if not page_names.exists(name)] == ["dragoman.options.Budgett", "dragoman.nonsense"]


def test_every_public_name_is_on_a_page() -> None:
    named: set[str] = set()
    for each in page_names.pages():
        text = each.read_text(encoding="utf-8")
        for code in [*page_names.spans(text), *(block for _, block in page_names.blocks(text))]:
            named.update(re.findall(r"\w+", code))
    assert {name for name in page_names.public_names() if name.rpartition(".")[2] not in named} == set()


def test_the_index_has_every_page() -> None:
    """Whoever looks for a page finds it there, and the first page leads there."""
    for language in ("", ".zh-CN"):
        index = DOCS / f"README{language}.md"
        linked = {(DOCS / link).resolve() for link in re.findall(r"\]\(([^)#:]+\.md)", index.read_text(encoding="utf-8"))}
        pages = {each for each in DOCS.rglob("*.md") if "decisions" not in each.parts and not each.name.endswith(".zh-CN.md")}
        missing = {
            each.relative_to(DOCS).as_posix()
            for each in pages - {DOCS / "README.md", *POINTERS}
            if not {each, twins.chinese_of(each)} & linked
        }
        assert missing == set(), index.name
        assert f"docs/README{language}.md" in page(f"README{language}.md")


def test_the_first_page_is_short() -> None:
    for name in ("README.md", "README.zh-CN.md"):
        assert len(page(name).splitlines()) <= 110, name


# --- in Chinese


def test_pages_that_are_read_first_are_there_in_chinese() -> None:
    english = [each for folder in twins.IN_CHINESE for each in (ROOT / folder).glob("*.md") if not each.name.endswith(twins.ENDING)]
    english += [ROOT / "docs" / "reference" / "documents.md", ROOT / "README.md"]
    missing = {each.relative_to(ROOT).as_posix() for each in english if not twins.chinese_of(each).is_file()}
    assert missing == set()


@pytest.mark.parametrize("chinese", twins.chinese_pages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_says_the_same_in_chinese(chinese: Path) -> None:
    """The same headings, rows, items, figures, code blocks, commands and flags."""
    texts = [each.read_text(encoding="utf-8") for each in (twins.english_of(chinese), chinese)]
    assert twins.faults(*texts) == []
    assert twins.with_links(chinese) == texts[1], "python -m checks.twins leads the links of Chinese pages to Chinese ones"


def test_what_a_chinese_page_lacks_is_found() -> None:
    """Else the test above could not fail."""
    block, printed = '# {}\n\n    dragoman -p "{}" --yes   # {}\n\n', "```\n$ dragoman models\n3 {}models\n```\n\n"
    english = block.format("Ask", "why?", "asks") + printed.format("") + "## More\n\n- Use `--lang zh`.\n- Wait 5 s.\n"
    chinese = block.format("提问", "为什么？", "提问") + printed.format("个") + "## 更多\n\n- 用 `--lang zh`。\n- 等 5 秒。\n"
    assert twins.faults(english, chinese) == []
    changes = {
        "## 更多": ["heading '更多' is of level 3, 'More' of level 2"],
        "\n## 更多\n": ["1 headings in place of 2: ['More']"],
        " --yes ": ["'dragoman -p \"为什么？\"  # 提问' in place of 'dragoman -p \"why?\" --yes   # asks'"],
        "$ dragoman models": ["commands ['$ dragoman auth'] in place of ['$ dragoman models']"],
        "3 个": ["figures of a block differ: ['3'], from '$ dragoman models' on"],
        "- 等 5 秒。\n": ["1 rows and items in place of 2: 更多", "figures that are not in Chinese: ['5']"],
        "等 5 秒": ["figures that are not in Chinese: ['5']"],
        "`--lang zh`": ["not in Chinese: ['--lang zh']"],
    }
    instead = {"## 更多": "### 更多", "$ dragoman models": "$ dragoman auth"}
    for part, found in changes.items():
        assert twins.faults(english, chinese.replace(part, instead.get(part, ""))) == found


@pytest.mark.parametrize(
    ("english", "chinese", "is_same"),
    [
        ('dragoman -p "What is here?" --yes', 'dragoman -p "这里有什么？" --yes', True),
        ('dragoman -p "What is here?" --yes', 'dragoman -p "这里有什么？"', False),
        ("dragoman view   # all of them", "dragoman view   # 全部", True),
        ("dragoman view --talk   # all of them", "dragoman view   # 全部", False),
        ("why does @src/a.py:10-40 fail?", "@src/a.py:10-40 为什么失败？", False),
        ("why does @src/a.py:10-40 fail?", "为什么 @src/a.py:10-40 会失败？", True),
        ("why does @src/a.py:10-40 fail?", "为什么 @src/a.py:10-50 会失败？", False),
        ('client = "httpx"', 'client = "httpx2"', False),
    ],
)
def test_only_words_of_a_line_of_code_are_translated(english: str, chinese: str, is_same: bool) -> None:
    assert twins.is_translated(english, chinese) is is_same


@pytest.mark.parametrize(
    ("word", "instead"),
    [("提示词", "提示"), ("审批", "批准"), ("钥匙串", "密钥环"), ("子智能体", "子代理"), ("可选组件", "附加组件"), ("任务批次", "任务组")],
)
def test_a_thing_has_one_name_in_chinese(word: str, instead: str) -> None:
    """On the pages as in what the program says."""
    words = ROOT / "src" / "dragoman" / "words" / "zh"
    said = [*twins.chinese_pages(), ROOT / "README.zh-CN.md", *words.glob("*.py"), words.parents[1] / "conversation" / "help_chinese.py"]
    assert [each.name for each in said if word in each.read_text(encoding="utf-8")] == [], instead


def test_chinese_pages_hold_no_sentence_in_english() -> None:
    found = [
        f"{each.name}: {line}"
        for each in [*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs").rglob("*.zh-CN.md")]
        for line in page_names.untranslated(each.read_text(encoding="utf-8"))
    ]
    assert found == []
    assert page_names.untranslated("你好。\nThis was left over.\n- `dragoman --help`\n[uv](https://x.y)、pip\n") == ["This was left over."]
