"""`make screens`: drives the real program in tmux with a service on loopback, and writes what stands on the screen into docs/images.

Look at the pictures after a change of the conversation: they are what a newcomer sees first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from checks.svg_screen import draw, draw_moving  # noqa: E402
from program import Place, calls, script, service  # noqa: E402
from terminals import Tmux, tmux  # noqa: E402

ROWS, COLUMNS = 24, 80
CALC = '''"""A small calculator."""


def add(a, b):
    return a + b


def div(a, b):
    return a / b
'''
TESTS = """from calc import add, div


def test_add():
    assert add(1, 2) == 3


def test_div():
    assert div(6, 3) == 2
"""
REVIEW = """## Findings

The calculator has two operations and **one bug**: `div` does not check for zero.

| file | lines | verdict |
| --- | --- | --- |
| calc.py | 9 | division by zero is not handled, and the user sees a traceback that says nothing about what to do |
| test_calc.py | 9 | no test for `div` by zero |

```python
def div(a, b):
    return a / b  # raises ZeroDivisionError
```

"""
EDIT = calls(
    (
        "edit",
        {
            "file_path": "calc.py",
            "old_string": "def div(a, b):\n    return a / b\n",
            "new_string": 'def div(a, b):\n    if b == 0:\n        raise SystemExit("cannot divide by zero")\n    return a / b\n',
        },
    )
)
READ = calls(("read_file", {"file_path": "calc.py"}), ("read_file", {"file_path": "test_calc.py"}), ("grep", {"pattern": "def "}))
TEST = calls(("run_shell", {"command": "python3 -m doctest -v calc.py | tail -3"}))
DONE = "text: Done: `div` refuses zero now, and both tests pass."
CLEAN = calls(("run_shell", {"command": "rm -rf build/ dist/", "description": "clean the build folders"}))


@contextmanager
def conversation(answers: str, *, size: tuple[int, int] = (ROWS, COLUMNS), env: Mapping[str, str] | None = None) -> Iterator[Tmux]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder))
        place.ui = ""
        place.work = place.home / "calc"
        place.work.mkdir()
        (place.work / "calc.py").write_text(CALC)
        (place.work / "test_calc.py").write_text(TESTS)
        for folder_made in ("build", "dist"):
            (place.work / folder_made).mkdir()
        for command in ("git init -q", "git add .", "git -c user.name=a -c user.email=a@example.org commit -qm first"):
            subprocess.run(command.split(), cwd=place.work, check=True)
        place.more_env = {"COLORTERM": "truecolor"} | dict(env or {})
        try:
            with service(answers) as place.service, tmux(place, size=size) as pane:
                pane.run("set", "-g", "status", "off")
                yield pane
        finally:
            place.close()


def capture(pane: Tmux) -> str:
    return pane.run("capture-pane", "-p", "-e").rstrip("\n") + "\n"


def say(pane: Tmux, prompt: str) -> None:
    pane.type(prompt)
    pane.keys("Enter")


def written(text: str, wait_s: float = 0.0) -> str:
    """An answer's text, line by line."""
    pause = f"wait: {wait_s}\n" if wait_s else ""
    return "\n".join(f"{pause}text: {json.dumps(line, ensure_ascii=False)}" for line in text.splitlines(keepends=True))


def start() -> Iterator[str]:
    with conversation(script("text: Hello.")) as pane:
        pane.expect("Ask, /")
        time.sleep(0.5)
        yield capture(pane)


def markdown() -> Iterator[str]:
    with conversation(script(written(REVIEW))) as pane:
        pane.expect("Ask, /")
        say(pane, "review calc.py")
        pane.expect("out · $")
        yield capture(pane)


def approval() -> Iterator[str]:
    with conversation(script(READ, f"text: `div` needs a guard.\n{EDIT}", DONE)) as pane:
        pane.expect("Ask, /")
        say(pane, "fix div")
        pane.expect("y yes")
        time.sleep(0.3)
        yield capture(pane)


def harm() -> Iterator[str]:
    with conversation(script(CLEAN, DONE)) as pane:
        pane.expect("Ask, /")
        say(pane, "clean up")
        pane.expect("y yes")
        time.sleep(0.3)
        yield capture(pane)


def done() -> Iterator[str]:
    with conversation(script(READ, f"text: `div` needs a guard.\n{EDIT}", TEST, DONE)) as pane:
        pane.expect("Ask, /")
        say(pane, "fix div")
        pane.expect("y yes")
        pane.expect("a key answers")
        pane.keys("y", "Enter")
        pane.expect("exit 0")
        pane.expect("out · $")
        yield capture(pane)


def context() -> Iterator[str]:
    with conversation(script(READ, DONE)) as pane:
        pane.expect("Ask, /")
        say(pane, "look around")
        pane.expect("out · $")
        say(pane, "/context")
        pane.expect("Next request")
        time.sleep(0.3)
        yield capture(pane)


def menu() -> Iterator[str]:
    with conversation(script(DONE)) as pane:
        pane.expect("Ask, /")
        pane.type("/co")
        pane.expect("/compress")
        time.sleep(0.3)
        yield capture(pane)


def chinese() -> Iterator[str]:
    answer = "text: 计算器有一个错误：`div` 没有检查除数是否为零。"
    with conversation(script(READ, f"{answer}\n{EDIT}", DONE), env={"DRAGOMAN_LANG": "zh"}) as pane:
        time.sleep(1.0)
        say(pane, "检查并修复 div")
        pane.expect("calc.py")
        time.sleep(0.7)
        time.sleep(0.3)
        yield capture(pane)


def recording() -> Iterator[str]:
    """A whole small task, looked at ten times a second."""
    with conversation(script(READ, f"{written(REVIEW, 0.12)}\n{EDIT}", TEST, DONE)) as pane:
        pane.expect("Ask, /")
        steps: list[tuple[float, Callable[[], None]]] = [(1.0 + 0.09 * at, _typing(pane, char)) for at, char in enumerate("fix div")]
        steps += [(2.2, lambda: pane.keys("Enter")), (8.0, lambda: pane.keys("y"))]
        began = time.monotonic()
        while (now := time.monotonic() - began) < 13:
            if steps and now >= steps[0][0]:
                steps.pop(0)[1]()
            yield capture(pane)
            time.sleep(0.07)


def _typing(pane: Tmux, char: str) -> Callable[[], None]:
    return lambda: pane.type(char)


SCENES: dict[str, tuple[str, Callable[[], Iterator[str]]]] = {
    "start": ("The prompt, a moment after the start", start),
    "markdown": ("An answer with a table and code", markdown),
    "approval": ("An edit is asked about beside its diff", approval),
    "harm": ("A command that deletes: always is not offered", harm),
    "done": ("A task that is done, each step folded to what matters", done),
    "context": ("What the next request holds, and what it costs", context),
    "menu": ("Commands, completed while they are typed", menu),
    "chinese": ("The same in Chinese", chinese),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m checks.screens", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join([*SCENES, 'recording'])}; without one: all")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "images", metavar="FOLDER")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    for name in options.names or [*SCENES, "recording"]:
        path = options.to / f"screen-{name}.svg"
        if name == "recording":
            path.write_text(draw_moving(_frames(recording()), ROWS, COLUMNS, "A bug is found and mended"), encoding="utf-8")
        else:
            title, scene = SCENES[name]
            screen = next(scene())
            path.write_text(draw(screen, screen.count("\n"), COLUMNS, title), encoding="utf-8")
        print(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)
    return 0


def _frames(screens: Iterator[str]) -> list[tuple[float, str]]:
    """Those that differ from the one before."""
    began, found = time.monotonic(), list[tuple[float, str]]()
    for screen in screens:
        if not found or found[-1][1] != screen:
            found.append((time.monotonic() - began, screen))
    return found


if __name__ == "__main__":
    sys.exit(main())
