"""Recognises in a command's output that it was refused to write because the workspace was read-only for it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.base.beneath import is_inside
from dragoman.base.text import clip
from dragoman.policy.real_paths import real_path

_READ_ONLY = re.compile(
    r"read-only file ?system|\bEROFS\b|os error 30\b|Errno (?:-)?30\b|readonly database|curl: \(23\)"
    r"|只读文件系统|唯讀檔案系統|読み込み専用ファイルシステム|읽기전용 파일 시스템|Dateisystem ist (?:nur lesbar|schreibgeschützt)"
    r"|Système de fichiers accessible en lecture seulement|[Ss]istema de (?:archivos|ficheros) de sólo lectura|Sistema de arquivos somente"
    r"|File system in sola lettura|Файловая система доступна только для чтения"
    r"|\bENOENT\b.*\bmkdir '",
    re.IGNORECASE,
)
"""In the words of the C library, of Go, Java, Rust, Python, Node, SQLite and curl. Node, and so npm, tells of a folder that it cannot make
in a read-only place that it does not exist."""
_HARMLESS = re.compile(r"PytestCacheWarning|could not create cache path|cache could not write path")
"""What a program says that goes on without its cache."""
_PROGRAM = re.compile(r"^\s*/[^\s:]+:(?: line \d+:)? ")
_PATH = re.compile(r"(?<![\w./~-])/[^\s'\"`’:,()]+")
_NAMES = re.compile(r"['\"‘`]|:.*:")
"""A file, in quotes or between colons."""
_TEMPORARY = ("/tmp", "/var/tmp", "/dev", "/proc")
_LINE_CHARS = 200


def find_refused_write(output: str, folders: Sequence[str]) -> str:
    """The line that says so; empty if none does, or if all that do are about places outside these folders, which no command may write."""
    unnamed, is_outside = "", False
    for line in output.splitlines():
        if not _READ_ONLY.search(line) or _HARMLESS.search(line):
            continue
        line = line.replace("'EROFS'", "EROFS")  # Node names the error so, and not a file
        paths = [path for path in _PATH.findall(_PROGRAM.sub("", line)) if _is_in(path, folders) or not _is_in(path, _TEMPORARY)]
        if paths and not any(_is_in(path, folders) for path in paths):
            is_outside = True
        elif paths or _NAMES.search(line):
            return clip(line.strip(), _LINE_CHARS)
        else:
            unnamed = unnamed or clip(line.strip(), _LINE_CHARS)
    return "" if is_outside else unnamed


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(is_inside(path, folder) or is_inside(real_path(path), folder) for folder in folders)
