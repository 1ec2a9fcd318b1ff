"""The examples run as a newcomer runs them: no key, no server, a fresh process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("[0-9]*.py"))
SAYS = {
    "01_one_prompt.py": ["Hello! No key is set", "tokens in"],
    "02_switch_provider.py": ["gemini", "anthropic", "openai", "responses", "10 calls, 10 results, 5 answers, one conversation."],
    "03_own_provider.py": ["[attempt 1 failed: echo: busy]", "Is anybody there? [stop]", "1 retry"],
    "04_agent.py": ["the harbour of Muscat (log.txt:3)", "[3 turns, 3 calls,"],
    "05_own_tool.py": ["High water in Muscat", "[2 calls, 0 failures]"],
    "06_events.py": ["~ **Plan**", "+We reached the harbour.", "? $ git push --force", "no pushing today", "\nWe reached the harbour.\n"],
    "09_together.py": [
        "research: look_up",
        "research: High water is at 04:05.",
        "We sail at four.",
        "purser: A sail costs 12 crowns.",
        "tokens, ",
    ],
    "07_typed_output.py": ["Muscat, berth 3: 13.5 m", "[3 turns]"],
    "08_dependencies.py": ["2/3 berth 2", "the model is shown image/png", "13.5 m.", "2.0 m today", "2.0 m, measured for Hasan"],
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_says_what_it_promises(example: Path, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_BASE_URL", "_PROXY"))}
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for words in SAYS[example.name]:
        assert words in done.stdout + done.stderr


def test_every_example_is_known_here() -> None:
    assert {path.name for path in EXAMPLES} == set(SAYS)


@pytest.fixture
def double() -> Iterator[str]:
    """The loopback server as a user starts it; its URL."""
    command = [sys.executable, "-u", "-m", "dragoman.testing.mock", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = next(match for line in server.stdout if (match := re.search(r"http://127\.0\.0\.1:\d+", line)))
        yield found.group()
        server.terminate()


def test_what_the_readme_shows_in_python_works(double: str, tmp_path: Path) -> None:
    readme = (EXAMPLES[0].parent.parent / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    env = os.environ | {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": double}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\w+.*\nstop, \d+ tokens in, \d calls", done.stdout, re.DOTALL)


def test_what_the_pages_link_to_exists() -> None:
    root = EXAMPLES[0].parent.parent
    for page in [*root.glob("*.md"), *(root / "docs").rglob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link, heading in re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", text):
            named = page.parent / link if link else page
            assert named.exists(), f"{page.name}: {link}"
            assert not heading or heading in anchors(named.read_text(encoding="utf-8")), f"{page.name}: {link}#{heading}"


def anchors(page: str) -> set[str]:
    """Of its headings, as the services that show Markdown make them."""
    words = (re.sub(r"[^\w\s-]", "", heading).lower() for heading in re.findall(r"^#+ (.+?)$", page, re.MULTILINE))
    return {each.strip().replace(" ", "-") for each in words}
