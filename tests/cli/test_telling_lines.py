"""Which lines of a failed command's output are shown: real outputs of real tools, and what holds for any output."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.conversation.command_result import clean_output
from dragoman.conversation.telling_lines import MOST_LINES, choose_telling, last_telling

OUTPUTS = Path(__file__).parent / "failed_outputs"
TOLD = {
    "pytest": ["test_add_more - AssertionError: two and two", "test_div - ZeroDivisionError", "3 failed, 1 passed, 1 error in"],
    "pytest_q": ["FAILED test_calc.py::test_add_more", "ERROR test_calc.py::test_fixture", "3 failed, 1 passed, 1 error in"],
    "pytest_missing": ["file or directory not found: missing.py"],
    "python_traceback": ['tb.py", line 5, in inner', "RuntimeError: settings.json cannot be read", "JSONDecodeError: Expecting property"],
    "mypy": ["Incompatible return value", "Argument 1", "Found 3 errors"],
    "ruff": ["E402 Module level import", "F401", "Found 2 errors."],
    "tsc": ["error TS2322", "error TS2345", "error TS2307"],
    "tsc_pretty": ["error TS2322", "error TS2307", "Found 4 errors in the same file"],
    "cargo_build": ["error[E0308]: mismatched types", "src/main.rs:5:18", "could not compile"],
    "cargo_test": ["test adds ... FAILED", "panicked at src/main.rs:3:13", "failed: sum", "test result: FAILED"],
    "make_gcc": ["main.c:2:39: error: expected", "make: *** [Makefile:5: main.o] Error 1"],
    "make_ld": ["undefined reference to `foo'", "make: ***"],
    "npm_run": ["Error: no config found at ./app.json"],
    "npm_test": ["not ok 1 - adds", "# fail 1"],
    "npm_404": ["npm error code E404", "404 Not Found - GET"],
    "npm_read_only": ["npm error code ENOENT", "ENOENT: no such file or directory, mkdir '/home/u/site/node_modules'"],
    "npm_missing": ['Missing script: "nosuch"'],
    "go_build": ["cannot use 1", "undefined: y"],
    "go_panic": ["panic: runtime error", "main.go:2"],
    "go_test": ["--- FAIL: TestA", "got 1, want 2"],
    "git_push": ["'origin' does not appear to be a git repository"],
    "git_merge": ["CONFLICT (content)"],
    "bash": ["nosuchcommand: command not found"],
    "pip": ["No matching distribution found"],
}


def test_every_recorded_output_has_its_case() -> None:
    assert {path.stem for path in OUTPUTS.iterdir()} == set(TOLD)


@pytest.mark.parametrize("name", TOLD)
def test_what_went_wrong_is_among_the_lines(name: str) -> None:
    chosen = choose_telling(clean_output((OUTPUTS / f"{name}.txt").read_text()))
    assert [words for words in TOLD[name] if not any(words in line for line in chosen)] == [], chosen
    assert len(chosen) <= MOST_LINES


def test_a_trace_comes_with_its_message() -> None:
    deep = "".join(f'  File "/w/deep.py", line {n}, in f{n}\n    f{n + 1}()\n' for n in range(40))
    output = f"Traceback (most recent call last):\n{deep}KeyError: 'port'\n"
    assert choose_telling(output)[-1] == "KeyError: 'port'"
    assert 'File "/w/deep.py", line 39, in f39' in choose_telling(output)


def test_the_last_line_of_a_success_is_no_warning_in_passing() -> None:
    made = "Scaffolding project in /w...\n\nDone. Now run:\n\n  npm install\n"
    assert (
        last_telling(f"{made}npm warn exec The following package was not found and will be installed: create-vite@9.3.0\n") == "npm install"
    )
    assert last_telling("npm warn deprecated a@1\n====\n") == "===="
    assert last_telling(" \n\n") == ""


def test_without_a_known_word_it_is_the_end() -> None:
    assert choose_telling("\n".join(f"step {n}" for n in range(20)))[-1] == "step 19"


_WORDS = st.sampled_from(
    ["error: x", "FAILED a::b", "  at f (a.js:1)", "=== 1 failed in 2s ===", "plain", "", "   ", "^^^", "E  x", "Traceback (most"]
)
_OUTPUT = st.lists(_WORDS | st.text(max_size=30), max_size=60).map("\n".join)


@given(_OUTPUT, st.integers(1, 8))
def test_lines_are_few_in_order_and_all_of_the_output(output: str, most: int) -> None:
    chosen = choose_telling(output, most)
    assert len(chosen) <= most
    stripped = iter([line.strip() for line in output.split("\n")])
    assert all(line in stripped for line in chosen), "in the same order, and none is made up"
    assert all(chosen), "none is blank"
    assert bool(chosen) == bool(output.strip())


@given(_OUTPUT)
def test_choosing_again_changes_nothing(output: str) -> None:
    chosen = choose_telling(output)
    assert choose_telling("\n".join(chosen)) == chosen
