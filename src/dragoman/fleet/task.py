"""Tasks: what an agent is asked to do in which workspace, and how it is found out whether it did. Read from lines of JSON."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta

from dragoman.base import jsontext
from dragoman.base.beneath import is_inside
from dragoman.base.places import find_places
from dragoman.base.text import did_you_mean, one_line
from dragoman.policy.host_rules import is_host
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".zip")
MOST_ID_BYTES = 120
MOST_TASK_BYTES = 16_000_000
DEFAULT_SECONDS = 3_600.0
DEFAULT_CHECK_SECONDS = 600.0
_FIELD = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

Seconds = Annotated[float, Meta(gt=0, le=604_800)]
Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]


class GitSource(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A revision of a git repository."""

    git: str
    rev: str = "HEAD"


class TaskLimits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How far one attempt may go. `seconds` are those of the agent's work: waiting for a worker or for the service's limits is none."""

    turns: Count | None = None
    seconds: Seconds = DEFAULT_SECONDS
    tokens: Count | None = None
    usd: Annotated[float, Meta(gt=0)] | None = None
    check_seconds: Seconds = DEFAULT_CHECK_SECONDS
    """Of the check, and of the setup."""


class Task(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One task. Everything in it is plain data: a worker on another machine gets it as JSON."""

    id: str
    prompt: str
    workspace: str | GitSource | None = None
    """A folder or an archive, as an absolute path, or a revision of a repository; None: an empty folder."""
    model: str = ""
    approval: Literal["", "plan", "default", "auto-edit", "auto"] = ""
    limits: TaskLimits = TaskLimits()
    env: dict[str, str] = {}
    """Variables for the commands. No place for keys: tasks are written to several files."""
    files: dict[str, str] = {}
    """Path in the workspace → text, written before the work begins."""
    setup: str = ""
    """A command that runs in the copy before the agent's work."""
    check: str = ""
    """A command that runs in the copy after it; exit code 0 is success."""
    check_files: dict[str, str] = {}
    """Like `files`, but written only before the check: the agent does not see them."""
    network: tuple[str, ...] = ()
    """Hosts that commands may reach."""
    tags: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """The same for equal tasks: half of an attempt's identity."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:32]

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return folder_of(self.id)


def folder_of(task_id: str) -> str:
    name = quote(task_id, safe="+=@:, ")
    return f"%2E{name[1:]}" if name.startswith(".") else name


def read_tasks(
    lines: Iterable[bytes], base: str, template: TaskTemplate | None = None, check: Callable[[Task], None] = lambda task: None
) -> Iterator[Task]:
    """The tasks of lines of JSON, one by one; empty lines count but are none. `base` is the folder that relative paths are meant from.

    Raises InputError that names the number of the first bad line, also where `check` raises an error of ours.
    """
    seen: dict[int, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if len(line) > MOST_TASK_BYTES:
                raise InputError(say("fleet.line_too_long", most=f"{MOST_TASK_BYTES:,}"))
            task = _read_line(line, base, template)
            check(task)
        except DragomanError as error:
            raise InputError(say("fleet.bad_line", number=number, reason=error)) from error
        mark = hash(task.folder)  # 64 bits: enough not to meet by chance, and flat in memory
        if mark in seen:
            raise InputError(say("fleet.bad_line", number=number, reason=say("fleet.same_id", id=task.id, first=seen[mark])))
        seen[mark] = number
        yield task
    if not seen:
        raise InputError(say("fleet.no_tasks"))


def _read_line(line: bytes, base: str, template: TaskTemplate | None) -> Task:
    try:
        data = jsontext.decode(line)
    except ValueError as error:
        raise InputError(say("fleet.not_json", reason=one_line(str(error), 200))) from error
    if not isinstance(data, dict):
        raise InputError(say("fleet.not_an_object"))
    return task_of(template.fill(data) if template is not None else data, base)


def task_of(data: Mapping[str, Any], base: str) -> Task:
    """A task of plain data. Raises InputError where it cannot be one, or where its workspace is not there."""
    for name in data:
        if name not in Task.__struct_fields__:
            raise InputError(say("fleet.unknown_field", name=one_line(name, 60), hint=did_you_mean(name, Task.__struct_fields__)))
    try:
        task = msgspec.convert(dict(data), Task)
    except msgspec.ValidationError as error:
        raise InputError(say("fleet.wrong_field", reason=one_line(str(error), 200))) from error
    require_task(task)
    return msgspec.structs.replace(task, workspace=_found_workspace(task.workspace, base))


def require_task(task: Task) -> None:
    """Raises InputError where a task cannot be carried out, whoever wrote it. Whether its workspace is there is not asked."""
    _require_id(task.id)
    if not task.prompt.strip():
        raise InputError(say("fleet.no_prompt"))
    for path in (*task.files, *task.check_files):
        if not is_plain_path(path):
            raise InputError(say("fleet.path_leads_out", path=one_line(path, 100)))
    for name in task.env:
        if not _VARIABLE.match(name):
            raise InputError(say("fleet.bad_variable", name=one_line(name, 60)))
    for host in task.network:
        if not is_host(host):
            raise InputError(say("not_a_host", key="network", text=repr(one_line(host, 100))))
    if isinstance(task.workspace, GitSource):
        _require_source(task.workspace)
    _require_text(task)


def _require_source(source: GitSource) -> None:
    if source.git.startswith("-") or "::" in source.git or not source.git or source.rev.startswith("-") or not source.rev:
        raise InputError(say("fleet.bad_repository", url=one_line(source.git, 100)))


def _require_text(task: Task) -> None:
    """A task is written to files, and its commands and variables are given to the system: not every text of JSON can be."""
    try:
        msgspec.json.encode(task)
    except UnicodeEncodeError as error:
        raise InputError(say("fleet.half_character", position=error.start)) from error
    paths = (task.workspace.git, task.workspace.rev) if isinstance(task.workspace, GitSource) else (task.workspace or "",)
    texts = (("setup", task.setup), ("check", task.check), ("model", task.model), *(("workspace", path) for path in paths))
    for name, text in (*texts, *((f"env.{name}", value) for name, value in task.env.items())):
        if "\0" in text:
            raise InputError(say("fleet.nul", name=name))


def _require_id(task_id: str) -> None:
    if not task_id.strip() or not task_id.isprintable() or len(folder_of(task_id).encode()) > MOST_ID_BYTES:
        raise InputError(say("fleet.bad_id", id=one_line(task_id, 60), most=MOST_ID_BYTES))


def is_plain_path(path: str) -> bool:
    """Whether a path stays in the folder it is meant from, by its words alone."""
    parts = path.split("/")
    return bool(path) and "\0" not in path and not any(part in ("", ".", "..") for part in parts) and parts[0] != ".git"


def _found_workspace(workspace: str | GitSource | None, base: str) -> str | GitSource | None:
    if isinstance(workspace, GitSource):
        url = workspace.git
        is_local = "://" not in url and not re.match(r"[^/\\]+@?[^/\\]*:", url)
        if not is_local:
            return workspace
        return GitSource(_existing(os.path.join(base, os.path.expanduser(url))), workspace.rev)
    if workspace is None:
        return None
    path = _existing(os.path.join(base, os.path.expanduser(workspace)))
    if not os.path.isdir(path) and not path.endswith(ARCHIVES):
        raise InputError(say("fleet.no_workspace_kind", path=path, archives=", ".join(ARCHIVES)))
    return path


def require_workspace(task: Task) -> None:
    """Raises InputError where the workspace of a task is gone, or may not be one: a store of secrets, or a file of ours."""
    path = task.workspace.git if isinstance(task.workspace, GitSource) else task.workspace
    if path is not None and os.path.isabs(path):
        _existing(path)
        if is_secret_store(os.path.realpath(path), secret_stores()):
            raise InputError(say("fleet.secret_workspace", path=path))


def secret_stores() -> tuple[str, ...]:
    """Real paths that no workspace may be, lie in or bring along: the user's stores of secrets, our own keys, approvals and sessions."""
    from dragoman.policy.secret_stores import find_homes, stores_in

    places = find_places()
    return tuple(dict.fromkeys(map(os.path.realpath, (*stores_in(find_homes("/")), places.data, *places.secret_files))))


def is_secret_store(path: str, stores: Iterable[str]) -> bool:
    """Whether a real path is one of these, or lies in one."""
    return any(is_inside(path, store) for store in stores)


def _existing(path: str) -> str:
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise InputError(say("fleet.no_workspace", path=path))
    return path


class TaskTemplate:
    """A prompt, or a whole task as JSON, with `{{field}}` where the fields of a line are filled in."""

    def __init__(self, text: str) -> None:
        """Raises InputError if the text has no field."""
        self._form: Any = text
        if text.lstrip().startswith("{") and not text.lstrip().startswith("{{"):
            try:
                self._form = jsontext.decode(text)
            except ValueError as error:
                raise InputError(say("fleet.not_json", reason=one_line(str(error), 200))) from error
        if not _FIELD.search(text):
            raise InputError(say("fleet.template_without_fields"))

    def fill(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The task of a line. Raises InputError for a field that the line lacks."""
        if isinstance(self._form, str):
            known = {name: value for name, value in fields.items() if name in Task.__struct_fields__}
            return {**known, "prompt": _filled(self._form, fields)}
        filled = _filled(self._form, fields)
        assert isinstance(filled, dict)
        return filled


def _filled(form: Any, fields: Mapping[str, Any]) -> Any:
    """Every text of a form with its fields filled in. A text that is nothing but one field becomes the field's value, whatever that is."""
    match form:
        case str():
            whole = _FIELD.fullmatch(form)
            return _field(fields, whole[1]) if whole else _FIELD.sub(lambda found: _as_text(_field(fields, found[1])), form)
        case dict():
            return {name: _filled(each, fields) for name, each in form.items()}
        case list():
            return [_filled(each, fields) for each in form]
        case _:
            return form


def _field(fields: Mapping[str, Any], name: str) -> Any:
    value: Any = fields
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise InputError(say("fleet.field_missing", name=name))
        value = value[part]
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else jsontext.dumps(value)
