"""docs/reference/options.md has every option with its default, and docs/embed names every contract and public module."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
from checks.defaults import GROUPS, PAGE, filled

import dragoman as dm

EMBED = Path(__file__).resolve().parent.parent / "docs" / "embed"


def test_every_option_is_there_with_its_default() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text) == text, "python -m checks.defaults writes the tables anew"


def test_every_group_of_options_has_a_table() -> None:
    public = {value for value in vars(dm.options).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)}
    told_elsewhere = {dm.options.Connector, dm.options.Deployment, dm.options.Spending, dm.options.TextOptions}
    assert public - set(GROUPS) - told_elsewhere == set()
    assert [group.__name__ for group in GROUPS if group.__doc__ is None] == [], "help() would show the words of its base class"


def test_every_contract_is_named() -> None:
    text = (EMBED / "contracts.md").read_text(encoding="utf-8")
    table = text[: text.index("## Provider\n")]
    for name in vars(dm.contracts):
        if not name.startswith("_") and name not in ("Allow", "Deny", "Later", "WrappingProvider"):
            assert f"`{name}`" in table, name


def test_every_public_module_is_named() -> None:
    text = (EMBED / "promises.md").read_text(encoding="utf-8")
    names = text[text.index("## Which names are the API") : text.index("## Stability")]
    assert set(re.findall(r"`(\w+)`", names)) - {"dragoman"} == set(dm._MODULES)
