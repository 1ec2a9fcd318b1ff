"""Harbor's task folders as tasks: `task.toml`, `instruction.md`, `environment/` and `tests/test.sh`.

There is no container: the workspace is a copy of `environment/`, and `/app`, `/tests` and `/logs` in a task's texts mean folders of that
copy. A task whose Dockerfile installs something needs Harbor itself.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from dragoman.base.found_files import read_found
from dragoman.fleet.task import Task, TaskLimits
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

MOST_FILE_BYTES = 4_000_000
TASK_TOML = "task.toml"
OUTSIDE = ".harbor"
"""The folder in the copy that stands for what is outside of the workspace in a container."""
_COPY = "@COPY@"
"""Stands for the path of the copy until the check begins."""
_CHECK = (
    f'grep -rl {_COPY} .harbor/tests | xargs sed -i "s|{_COPY}|$PWD|g"; '
    "mkdir -p .harbor/logs/verifier && bash .harbor/tests/test.sh; code=$?; "
    "if [ -f .harbor/logs/verifier/reward.txt ]; then grep -qxE '1(\\.0*)?' .harbor/logs/verifier/reward.txt; else exit $code; fi"
)
_ABSOLUTE = re.compile(r"(?<![\w./-])/(app|tests|logs)(?=[/\s\"'`);:,.]|$)")
_INSTALLS = re.compile(r"^\s*(RUN|ADD)\b", re.MULTILINE | re.IGNORECASE)


def is_harbor_folder(path: str) -> bool:
    """Whether a folder is a task, or holds some."""
    return os.path.isdir(path) and bool(_task_folders(path))


def read_harbor_tasks(path: str, check: Callable[[Task], None]) -> Iterator[Task]:
    """The task of a folder, or the tasks of the folders in it, by name. Raises InputError that names the folder of the first bad one."""
    for folder in _task_folders(path):
        try:
            task = _read_task(folder)
            check(task)
        except (DragomanError, OSError) as error:
            reason = error if isinstance(error, DragomanError) else f"{error.filename}: {error.strerror}"
            raise InputError(say("fleet.bad_folder", path=folder, reason=reason)) from error
        yield task


def _task_folders(path: str) -> list[str]:
    if os.path.isfile(os.path.join(path, TASK_TOML)):
        return [path]
    inner = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    return [folder for folder in inner if os.path.isfile(os.path.join(folder, TASK_TOML))]


def _read_task(folder: str) -> Task:
    settings, environment = _settings(folder), os.path.join(folder, "environment")
    dockerfile = os.path.join(environment, "Dockerfile")
    if os.path.isfile(dockerfile) and (found := _INSTALLS.search(_text(dockerfile))):
        raise InputError(say("fleet.needs_container", command=found[1].upper()))
    tests = {f"{OUTSIDE}/tests/{name}": _adapted(text) for name, text in _texts_in(os.path.join(folder, "tests"))}
    if f"{OUTSIDE}/tests/test.sh" not in tests:
        raise InputError(say("fleet.no_test_script"))
    limits = TaskLimits(seconds=_seconds(settings, "agent", 3_600.0), check_seconds=_seconds(settings, "verifier", 600.0))
    return Task(
        os.path.basename(folder),
        _ABSOLUTE.sub(lambda path: "." if path[1] == "app" else f"./{OUTSIDE}/{path[1]}", _text(os.path.join(folder, "instruction.md"))),
        environment if os.path.isdir(environment) else None,
        limits=limits,
        check=_CHECK,
        check_files=tests,
        tags=tuple(map(str, settings.get("metadata", {}).get("tags", ()))),
    )


def _settings(folder: str) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(os.path.join(folder, TASK_TOML)))
    except tomllib.TOMLDecodeError as error:
        raise InputError(str(error)) from error


def _seconds(settings: dict[str, Any], table: str, otherwise: float) -> float:
    try:
        return msgspec.convert(settings.get(table, {}).get("timeout_sec", otherwise), float)
    except (msgspec.ValidationError, AttributeError) as error:
        raise InputError(say("fleet.wrong_field", reason=f"[{table}] timeout_sec")) from error


def _adapted(text: str) -> str:
    """A test that runs in the copy, with the paths of the container."""
    return _ABSOLUTE.sub(lambda path: _COPY if path[1] == "app" else f"{_COPY}/{OUTSIDE}/{path[1]}", text)


def _texts_in(folder: str, inside: str = "") -> Iterator[tuple[str, str]]:
    if not os.path.isdir(os.path.join(folder, inside)):
        return
    for entry in sorted(os.scandir(os.path.join(folder, inside)), key=lambda each: each.name):
        name = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _texts_in(folder, name)
        else:
            yield name, _text(entry.path)


def _text(path: str) -> str:
    try:
        return read_found(path, MOST_FILE_BYTES, follow=False).decode()
    except UnicodeDecodeError as error:
        raise InputError(say("fleet.not_text", path=path)) from error
