"""Inspect runs the recipe of docs/operate/evaluations.md, in an environment of its own: `make test-inspect`."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai.agent", reason="Inspect is not installed here: make test-inspect")

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, includes, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import sandbox

# What its libraries warn of among themselves is not ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operate" / "evaluations.md"


def recipe() -> Any:
    """The code on the page, as a reader would copy it."""
    [block] = re.findall(r"<!-- recipe: .*? -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names["dragoman"]()


def tokenizers() -> Path:
    """The table by which Inspect counts tokens, which it would fetch from the web. The wheel of litellm has it."""
    found = importlib.util.find_spec("litellm")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "litellm_core_utils" / "tokenizers"


@scorer(metrics=[accuracy()])
def has_written() -> Scorer:
    """Whether the file that was asked for is in the sandbox."""

    async def score(state: TaskState, target: Target) -> Score:
        done = await sandbox().exec(["cat", "answer.txt"])
        return Score(value=CORRECT if done.stdout.strip() == target.text else INCORRECT)

    return score


def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outputs: list[ModelOutput], answers: list[str]) -> EvalLog:
    """One sample for each of the answers that are right."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "dragoman"))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tokenizers()))
    samples = [Sample(input="Write the capital of France to answer.txt, and say it.", target=answer) for answer in answers]
    task = Task(dataset=samples, solver=recipe(), scorer=[includes(), has_written()], sandbox="local")
    model = get_model("mockllm/model", custom_outputs=outputs)
    [log] = run_eval(task, model=model, log_dir=str(tmp_path / "logs"), display="none", max_samples=1, max_sandboxes=1)
    return log


def writes(word: str) -> list[ModelOutput]:
    call = ModelOutput.for_tool_call("mockllm/model", "write_file", {"file_path": "answer.txt", "content": f"{word}\n"})
    return [call, ModelOutput.from_content("mockllm/model", f"It is {word}.")]


def test_both_scorers_say_what_the_model_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = evaluate(tmp_path, monkeypatch, writes("Paris") + writes("Lyon"), ["Paris", "Paris"])
    assert log.status == "success", log.error
    assert log.samples is not None
    scores = [{name: score.value for name, score in (sample.scores or {}).items()} for sample in log.samples]
    assert scores == [{"includes": "C", "has_written": "C"}, {"includes": "I", "has_written": "I"}]


def test_the_log_has_the_conversation_with_its_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = evaluate(tmp_path, monkeypatch, writes("Paris"), ["Paris"])
    assert log.samples is not None
    messages = log.samples[0].messages
    assert [call.function for message in messages for call in getattr(message, "tool_calls", None) or ()] == ["write_file"]
    assert any(message.role == "tool" for message in messages)


def test_an_agent_that_fails_fails_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dragoman").mkdir()
    (tmp_path / "dragoman" / "config.toml").write_text("model = 7\n", encoding="utf-8")
    log = evaluate(tmp_path, monkeypatch, writes("Paris"), ["Paris"])
    assert log.status == "error"
    assert "exit code 52" in str(log.error)
