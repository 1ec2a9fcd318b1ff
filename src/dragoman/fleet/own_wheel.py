"""A wheel of the Dragoman that runs here: what other machines install, so that they have the very same. The package is on no index."""

from __future__ import annotations

import base64
import hashlib
import os
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import dragoman

_LEFT_OUT = "__pycache__"
_WHEEL = "Wheel-Version: 1.0\nGenerator: dragoman\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_own_wheel(folder: str | os.PathLike[str]) -> str:
    """Write it into a folder, and return its path. Equal programs give equal bytes."""
    about = distribution("dragoman")
    root = Path(dragoman.__file__).parent
    files = {f"dragoman/{path.relative_to(root).as_posix()}": path.read_bytes() for path in sorted(root.rglob("*")) if _belongs(path)}
    facts = f"dragoman-{about.version}.dist-info"
    files |= {
        f"{facts}/METADATA": (about.read_text("METADATA") or "").encode(),
        f"{facts}/entry_points.txt": (about.read_text("entry_points.txt") or "").encode(),
        f"{facts}/WHEEL": _WHEEL.encode(),
    }
    files[f"{facts}/RECORD"] = "".join(map(_recorded, files.items())).encode() + f"{facts}/RECORD,,\n".encode()
    made = os.path.join(folder, f"dragoman-{about.version}-py3-none-any.whl")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return made


def _belongs(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _LEFT_OUT not in path.parts


def _recorded(file: tuple[str, bytes]) -> str:
    name, data = file
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"
