"""How this program was installed, and the command that adds one of its extras there."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from typing import Any

from dragoman.base.found_files import read_found

PACKAGE = "dragoman"
_RECEIPT = "uv-receipt.toml"
_MOST_BYTES = 1_000_000


def command_to_add(extra: str) -> str:
    """What a person types into a shell so that this very installation has the packages of an extra."""
    packages = _packages_of(extra)
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return shlex.join(["pipx", "inject", os.path.basename(sys.prefix), *packages])
    if os.path.exists(os.path.join(sys.prefix, _RECEIPT)):
        return _uv_tool_command(packages)
    if find_spec("pip") is None:
        return shlex.join(["uv", "pip", "install", "--python", sys.executable, *packages])
    return shlex.join([sys.executable, "-m", "pip", "install", *_pip_options(), *packages])


def _packages_of(extra: str) -> list[str]:
    """As the package declares them."""
    try:
        declared = requires(PACKAGE) or []
    except PackageNotFoundError:  # it runs from its source, uninstalled
        return []
    parts = [each.partition(";") for each in declared]
    return [name.strip().replace(" ", "") for name, _, marker in parts if extra in marker.replace("'", '"').split('"')]


def _uv_tool_command(packages: list[str]) -> str:
    """uv makes a tool's environment anew with each change: what is put into it by hand is lost with the next."""
    receipt = _read_receipt()
    python = ["--python", python] if isinstance(python := receipt.get("python"), str) else []
    again = [argument for package in packages for argument in ("--with", package)]
    return shlex.join(["uv", "tool", "install", "--force", *python, *again, _source_of(receipt)])


def _read_receipt() -> dict[str, Any]:
    try:
        receipt = read_found(os.path.join(sys.prefix, _RECEIPT), _MOST_BYTES)
        tool = tomllib.loads(receipt.decode()).get("tool")
    except (OSError, ValueError):
        return {}
    return tool if isinstance(tool, dict) else {}


def _source_of(receipt: dict[str, Any]) -> str:
    """What `uv tool install` was given: a folder, an archive, an address, or the package's name."""
    listed = receipt.get("requirements")
    rows = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    found: dict[str, Any] = next((each for each in rows if each.get("name") == PACKAGE), {})
    for key in ("directory", "editable", "path", "url"):
        if isinstance(source := found.get(key), str):
            return source
    if isinstance(git := found.get("git"), str):
        return f"git+{git.partition('?')[0]}"
    return f"{PACKAGE}{found.get('specifier') or ''}"


def _pip_options() -> list[str]:
    """Outside a virtual environment packages go where the user's own are, also where the system keeps its Python to itself."""
    if sys.prefix != sys.base_prefix:
        return []
    import sysconfig

    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return ["--user", *(["--break-system-packages"] if os.path.exists(marker) else [])]
