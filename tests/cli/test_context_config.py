"""`[context]` in the configuration reaches the agent, key by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.app.config import load
from dragoman.app.config_tables import CompressTable, Config, PruneTable
from dragoman.app.options import Options
from dragoman.app.settings import context_of
from dragoman.base.places import find_places
from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings
from dragoman.values.errors import ConfigError

TEXT = """
[context.prune]
schedule = "turn"
tools = ["*"]
age_minutes = 0.5
keep = 0
strict_stderr = false
by_content = true
superseded = true
placeholder = "(gone)"
pressure = 0.25
overhead = 0.1
share = 0.4
overdraft = 0.3
[context.compress]
enabled = false
threshold = 0.5
threshold_tokens = 9000
keep = 0.2
"""


def configured(folder: Path, text: str) -> Config:
    (folder / "config.toml").write_text(text, encoding="utf-8")
    env = {"DRAGOMAN_HOME": str(folder)}
    return load(Options(), env, find_places(env), str(folder)).config


def test_the_defaults_are_those_of_the_room() -> None:
    rule, prune, compress = PruneRule(), PruneSettings(), CompressSettings()
    assert PruneTable() == PruneTable(
        prune.schedule,
        rule.tools,
        rule.age_ms / 60_000,
        rule.keep,
        rule.strict_stderr,
        rule.by_content,
        rule.superseded,
        "",
        prune.pressure,
        prune.overhead,
        prune.share,
        prune.overdraft,
    )
    assert CompressTable() == CompressTable(compress.enabled, compress.threshold, compress.threshold_tokens, compress.keep)
    assert context_of(Config()) == ContextSettings()


def test_every_key_reaches_the_agent(tmp_path: Path) -> None:
    assert context_of(configured(tmp_path, TEXT)) == ContextSettings(
        PruneSettings("turn", PruneRule(("*",), 30_000, 0, False, True, True), "(gone)", 0.25, overhead=0.1, share=0.4, overdraft=0.3),
        CompressSettings(False, 0.5, 9_000, 0.2),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[context.prune]\nschedule = "always"',
            ["config.toml:2", "context.prune.schedule must be one of auto, request, turn, economic, off"],
        ),
        ("[context.compress]\nthreshold = 70", ["config.toml:2", "context.compress.threshold", "<= 1"]),
        ("[context]\nschedule = 'off'", ["config.toml:2", "context.schedule", "did you mean context.prune.schedule?"]),
        ("[context.prune]\nage = 3", ["config.toml:2", "unknown key context.prune.age"]),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(tmp_path, text)
    assert all(word in str(caught.value) for word in words), caught.value
