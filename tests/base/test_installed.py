"""The command that adds an extra is the one for how the program was installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dragoman.base import installed

ENGINE = "xllamacpp=="


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "dragoman"
    folder.mkdir()
    monkeypatch.setattr(sys, "prefix", str(folder))
    return folder


def test_pipx(prefix: Path) -> None:
    (prefix / "pipx_metadata.json").write_text("{}")
    assert installed.command_to_add("local").startswith(f"pipx inject dragoman {ENGINE}")


@pytest.mark.parametrize(
    ("receipt", "ends"),
    [
        ('[tool]\nrequirements = [{ name = "dragoman", directory = "/src/my clone" }]', "'/src/my clone'"),
        ('[tool]\nrequirements = [{ name = "dragoman", path = "/x/d.whl" }]\npython = "3.12"', "/x/d.whl"),
        ('[tool]\nrequirements = [{ name = "dragoman", specifier = "==0.1" }]', "dragoman==0.1"),
        ('[tool]\nrequirements = [{ name = "dragoman", git = "https://example.org/d?rev=1" }]', "git+https://example.org/d"),
        ("not toml [", "dragoman"),
    ],
)
def test_a_uv_tool_is_made_anew_from_where_it_came(prefix: Path, receipt: str, ends: str) -> None:
    """What is put into its environment by hand is gone with the next change."""
    (prefix / "uv-receipt.toml").write_text(receipt)
    command = installed.command_to_add("local")
    assert command.startswith("uv tool install --force ")
    assert f" --with {ENGINE}" in command
    assert command.endswith(f" {ends}")
    assert ("--python 3.12" in command) == ("python =" in receipt)


def test_a_virtual_environment_with_and_without_pip(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/e/bin/python")
    monkeypatch.setattr(installed, "find_spec", lambda name: object())
    assert installed.command_to_add("local").startswith(f"/e/bin/python -m pip install {ENGINE}")
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    assert installed.command_to_add("local").startswith(f"uv pip install --python /e/bin/python {ENGINE}")


def test_the_system_s_own_python(prefix: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    monkeypatch.setattr(installed, "find_spec", lambda name: object())
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    assert " -m pip install --user xllamacpp" in installed.command_to_add("local")
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    assert " -m pip install --user --break-system-packages xllamacpp" in installed.command_to_add("local")
