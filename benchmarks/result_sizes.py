"""How much the model is given of usual commands: characters and estimated tokens of each result.

    .venv/bin/python -m benchmarks.result_sizes

Where npm or cargo are not installed, what they print is played back from here.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.context.tokens import text_tokens
from dragoman.tools.output import Outputs
from dragoman.tools.search import Grep
from dragoman.tools.shell import RunShell
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import Tool
from dragoman.values.messages import Text

SOURCE = Path(__file__).parents[1] / "src"
SPINNER = "⠙⠹⠸⠼⠴⠦⠧⠇⠏⠋"
FAILING = """
import pytest

def total(prices, discount):
    return sum(prices) * (1 - discount)

@pytest.mark.parametrize("discount", [0, 0.1, 0.5, 1.5])
def test_total_is_never_negative(discount):
    assert total([10, 20], discount) >= 0

def test_total_of_nothing():
    assert total([], None) == 0

def test_total():
    assert total([1, 2, 3], 0) == 6
"""
BLUE, RED, PLAIN = "\x1b[0m\x1b[0m\x1b[1m\x1b[38;5;12m", "\x1b[0m\x1b[0m\x1b[1m\x1b[38;5;9m", "\x1b[0m\x1b[0m"
CARGO = f"""\x1b[1m\x1b[92m   Compiling\x1b[0m voyage v0.1.0 (/srv/voyage)
{RED}error[E0382]{PLAIN}\x1b[1m: borrow of moved value: `ports`\x1b[0m
 {BLUE}--> {PLAIN}src/main.rs:4:20
  {BLUE}|{PLAIN}
{BLUE}2{PLAIN} {BLUE}|{PLAIN}     let ports = vec!["Basra", "Muscat"];
  {BLUE}|{PLAIN}         {BLUE}----- move occurs because `ports` has type `Vec<&str>`{PLAIN}
{BLUE}3{PLAIN} {BLUE}|{PLAIN}     let copy = ports;
  {BLUE}|{PLAIN}                {BLUE}----- value moved here{PLAIN}
{BLUE}4{PLAIN} {BLUE}|{PLAIN}     println!("{{:?}}", ports);
  {BLUE}|{PLAIN}                      {RED}^^^^^ value borrowed here after move{PLAIN}

\x1b[1mFor more information about this error, try `rustc --explain E0382`.{PLAIN}
{RED}error{PLAIN}\x1b[1m: could not compile `voyage` (bin "voyage") due to 1 previous error{PLAIN}
"""


def npm_output() -> str:
    drawn = "".join(f"\x1b[1G\x1b[0K{SPINNER[each % 10]}" for each in range(400))
    return f"{drawn}\x1b[1G\x1b[0K\nadded 97 packages, and audited 98 packages in 9s\n\n14 packages are looking for funding\n"


def prepare(folder: Path) -> None:
    (folder / "thirty").mkdir()
    for number in range(30):
        (folder / "thirty" / f"module_{number}.py").write_text("x = 1\n" * number)
    (folder / "test_total.py").write_text(FAILING)
    (folder / "npm.txt").write_text(npm_output())
    (folder / "cargo.txt").write_text(CARGO)
    git = ["git", "-C", str(folder / "thirty"), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *words], check=True)
    (folder / "thirty" / "module_3.py").write_text("y = 2\n")
    (folder / "thirty" / "new.py").touch()


def calls() -> dict[str, Mapping[str, Any]]:
    return {
        "ls -la, 30 files": {"command": "ls -la thirty"},
        "git status": {"command": "git -C thirty status"},
        "failing pytest": {"command": f"{sys.executable} -m pytest -p no:cacheprovider -q test_total.py --rootdir ."},
        "npm install": {"command": "cat npm.txt >&2"},
        "seq 1 200000": {"command": "seq 1 200000"},
        "one line of 300 KB": {"command": "head -c 300000 /dev/zero | tr '\\0' x"},
        "grep -rn def": {"command": f"cd {SOURCE}; grep -rn 'def ' --include=*.py ."},
        "cargo build error": {"command": "cat cargo.txt >&2; exit 101"},
        "empty": {"command": "true"},
        "exit code 3": {"command": "exit 3"},
        "time-out": {"command": "echo listening on 8000; sleep 1000", "timeout_s": 0.5},
    }


async def sizes(tool: Tool, named: Mapping[str, Mapping[str, Any]]) -> None:
    for name, args in named.items():
        output = await tool.run(args, lambda text: None)
        text = "".join(part.text for part in output.content if isinstance(part, Text))
        print(f"{name:24}{len(text):>10,}{round(text_tokens(text)):>10,}")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "work"
        folder.mkdir()
        prepare(folder)
        print(f"{'':24}{'characters':>10}{'tokens':>10}")
        asyncio.run(sizes(RunShell(Workspace(folder), Outputs(Path(directory) / "outputs")), calls()))
        asyncio.run(
            sizes(
                Grep(Workspace(SOURCE)),
                {"grep tool, 'def '": {"pattern": "def "}, "the same, one file": {"pattern": "def ", "path": "dragoman/tools/shell.py"}},
            )
        )


if __name__ == "__main__":
    main()
