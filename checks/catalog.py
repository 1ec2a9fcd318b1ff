"""`make catalog-check`: the catalog's prices, windows and limits beside the newest table that a registry package holds (litellm).

A difference needs a reason in catalog_reasons.toml; a reason without its difference is out of date. Either ends the command with 1.
"""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.providers.catalog import builtin_catalog
from dragoman.values.profile import Deployment, Profile

PACKAGE = "litellm"
TABLE = "litellm/model_prices_and_context_window_backup.json"
REASONS = Path(__file__).with_name("catalog_reasons.toml")
NO_REASON = "** no reason given **"
SOON = timedelta(days=14)
PREFIXES = {
    "gemini": ("gemini/",),
    "vertex": ("vertex_ai/", ""),
    "vertex_region": ("vertex_ai/", ""),
    "anthropic": ("", "anthropic/"),
    "openai": ("", "openai/"),
    "responses": ("", "openai/"),
    "azure": ("azure/",),
    "xai": ("xai/",),
    "qwen": ("dashscope/",),
    "deepseek": ("deepseek/",),
    "kimi": ("moonshot/",),
    "glm": ("zai/",),
    "mistral": ("mistral/",),
    "groq": ("groq/",),
    "together": ("together_ai/",),
    "openrouter": ("openrouter/",),
}
"""How the other table begins the names of a deployment's models. Deployments on the user's own machine have no prices."""


class Difference(NamedTuple):
    model: str
    """`deployment/model`."""
    field: str
    ours: object
    theirs: object

    @property
    def key(self) -> str:
        return f"{self.model} {self.field}"


def main() -> int:
    version, table = newest_table()
    reasons: dict[str, str] = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    found = list(differences(table, date.today()))
    rows = sum(len(deployment.models) for deployment in builtin_catalog().deployments.values() if deployment.name in PREFIXES)
    print(f"{rows} models of the catalog beside {PACKAGE} {version}: {len(found)} differences\n")
    unexplained = 0
    used: set[str] = set()
    for each in found:
        pattern = next((pattern for pattern in reasons if fnmatch.fnmatchcase(each.key, pattern)), "")
        used.add(pattern)
        unexplained += not pattern
        print(f"{each.model:<44} {each.field:<14} {each.ours!s:>12} here {each.theirs!s:>12} there  {reasons.get(pattern, NO_REASON)}")
    stale = [pattern for pattern in reasons if pattern not in used]
    for pattern in stale:
        print(f"\nOut of date in {REASONS.name}: {pattern}")
    print(f"\n{unexplained} without a reason, {len(stale)} reasons out of date.")
    return 1 if unexplained or stale else 0


def newest_table() -> tuple[str, dict[str, Any]]:
    """The package's version, and the table in its wheel: nothing of it is installed or run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, PACKAGE]
        subprocess.run(command, check=True)
        wheel = next(Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            return wheel.name.split("-")[1], json.loads(archive.read(TABLE))


def differences(table: Mapping[str, Any], today: date) -> Iterator[Difference]:
    for name, prefixes in PREFIXES.items():
        deployment = builtin_catalog()[name]
        for model, profile in deployment.models.items():
            row = next((table[prefix + model] for prefix in prefixes if prefix + model in table), None)
            if row is None:
                yield Difference(f"{name}/{model}", "row", "a row", "none")
            else:
                yield from _between(deployment, model, profile, row, today)


def _between(deployment: Deployment, model: str, profile: Profile, row: Mapping[str, Any], today: date) -> Iterator[Difference]:
    theirs = dict(_theirs(row))
    for field, value in _ours(profile):
        if field in theirs and theirs[field] != value:
            yield Difference(f"{deployment.name}/{model}", field, value, theirs[field])
    ends = row.get("deprecation_date")
    if ends and date.fromisoformat(ends) <= today + SOON:
        yield Difference(f"{deployment.name}/{model}", "retired", "a row", ends)


def _ours(profile: Profile) -> Iterator[tuple[str, object]]:
    yield "input window", profile.prompt_window
    yield "output limit", profile.max_output_tokens
    if profile.cache_min_tokens:
        yield "cache from", profile.cache_min_tokens
    if profile.thinking == "effort":
        yield "efforts", " ".join(sorted(profile.efforts))
    if profile.prices is not None:
        yield "input", float(profile.prices.input)
        yield "output", float(profile.prices.output)
        yield "cache read", float(profile.prices.cache_read or 0)
        yield "cache write", float(profile.prices.cache_write or 0)


def _theirs(row: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    prices = {
        "input": "input_cost_per_token",
        "output": "output_cost_per_token",
        "cache read": "cache_read_input_token_cost",
        "cache write": "cache_creation_input_token_cost",
    }
    for field, key in prices.items():
        if key in row:
            yield field, round(float(row[key]) * 1e6, 6)
    for field, key in (
        ("input window", "max_input_tokens"),
        ("output limit", "max_output_tokens"),
        ("cache from", "prompt_cache_min_tokens"),
    ):
        if key in row:
            yield field, int(row[key])
    if levels := row.get("reasoning_effort_levels"):
        yield "efforts", " ".join(sorted(levels))


if __name__ == "__main__":
    sys.exit(main())
