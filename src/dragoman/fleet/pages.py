"""What can be looked at of a fleet: `status`, `show`, `diff` and `export`."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.options import Options
from dragoman.app.printing import print_out
from dragoman.app.setup import catalog_of, set_up
from dragoman.base import jsontext
from dragoman.base.private import write_whole
from dragoman.base.text import one_line, strip_controls
from dragoman.base.wrapping import columns_of, lay_out
from dragoman.fleet import files
from dragoman.fleet.figures import cost_text, duration, outcome_word
from dragoman.fleet.folder import FLEETS, LOCK_FILE, Fleet, fleet_folder, open_fleet
from dragoman.fleet.journal import has_supervisor, last_budget
from dragoman.fleet.limiter import is_used_up
from dragoman.fleet.ownership import owner_of, require_own
from dragoman.fleet.report import AttemptRow, rows, summary_lines, sums, write_results
from dragoman.fleet.task import folder_of
from dragoman.sessions.last_run import is_held, run_facts, trouble_words
from dragoman.sessions.store import FileStore
from dragoman.values.errors import DragomanError, InputError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.sessions.summary import Summary

PREDICTIONS_FILE = "preds.json"
_SHOWN_CHARS = 4_000


def folder_of_fleet(options: Options, place: int = 1) -> str:
    """The folder of the fleet that a word names. Raises InputError where none does."""
    if len(options.words) <= place:
        raise InputError(say("fleet.name_missing", action=options.words[0]))
    return fleet_folder(options.words[place], options.directory or ".")


def status(options: Options) -> int:
    """`fleet status [NAME]`: the sums, what runs and what did not pass; without a name, all fleets in a line each."""
    directory = os.path.abspath(options.directory or ".")
    if len(options.words) < 2:
        return print_out("".join(f"{line}\n" for line in _all_fleets(directory)))
    fleet = open_fleet(folder_of_fleet(options))
    is_under_way = has_supervisor(fleet.folder)
    total, budget_usd, owner = sums(fleet, is_under_way=is_under_way), last_budget(fleet.folder), owner_of(fleet)
    if options.output_format == "json":
        data = {"name": fleet.name, "attempts": total.attempts, "outcomes": dict(total.outcomes), "is_own": owner == "own"}
        data |= {"cost_usd": total.usd, "lost_usd": total.lost_usd, "estimated_usd": total.estimated_usd}
        data |= {"is_cost_least": total.is_cost_least, "budget_usd": budget_usd, "is_budget_spent": is_used_up(budget_usd, total.usd)}
        data |= {"requests": total.requests, "seconds": total.seconds}
        return print_out(jsontext.dumps(data) + "\n")
    found = rows(fleet, is_under_way=is_under_way)
    lines = [_row_line(fleet, row) for row in found if row.state not in ("passed", "cancelled", "waiting")]
    lines += summary_lines(fleet, total)
    if owner != "own":
        lines.append(say("fleet.figures_of_other"))
    if total.outcomes["cancelled"]:
        key = "fleet.stopped_by_budget" if is_used_up(budget_usd, total.usd) else "fleet.stopped"
        lines.append(say(key, name=fleet.name))
    return print_out(lay_out("\n".join(lines) + "\n", columns_of(sys.stdout)))


def _all_fleets(directory: str) -> list[str]:
    """A line for each fleet; of one that cannot be read, why."""
    folder, lines = os.path.join(os.path.realpath(directory), FLEETS), list[str]()
    for name in sorted(each.name for each in files.list_folder(folder) if each.is_folder):
        if not files.is_there(os.path.join(folder, name, LOCK_FILE)):
            continue
        try:
            fleet = open_fleet(fleet_folder(name, directory))
            lines.append(f"{fleet.name}: {summary_lines(fleet, sums(fleet, is_under_way=has_supervisor(fleet.folder)))[0]}")
        except DragomanError as error:
            lines.append(f"{one_line(name, 80)}: {one_line(str(error), 300)}")
    return lines or [say("fleet.no_fleets", path=one_line(folder))]


def _row_line(fleet: Fleet, row: AttemptRow) -> str:
    result = row.result
    name = one_line(result.task, 60) if fleet.lock.attempts == 1 else f"{one_line(result.task, 60)} #{result.attempt}"
    return f"{outcome_word(row.state)}  {name}  {_cost(row)}  {one_line(result.reason, 200)}".rstrip()


def _cost(row: AttemptRow) -> str:
    return cost_text(row.cost.usd, is_least=row.cost.is_least)


def show(options: Options) -> int:
    """`fleet show NAME ID`: one task, with all its attempts."""
    fleet = open_fleet(folder_of_fleet(options))
    if len(options.words) != 3:
        raise InputError(say("fleet.show_usage"))
    found = [row for row in rows(fleet, is_under_way=has_supervisor(fleet.folder)) if row.result.task == options.words[2]]
    if not found:
        raise InputError(say("fleet.no_such_task", id=one_line(options.words[2], 60)))
    runs = _SessionRuns(options)
    if options.output_format == "json":
        fields = [{"outcome": row.state, **row.as_json, "run": runs.facts(row.result.session_id)} for row in found]
        data = [msgspec.to_builtins(row.result, enc_hook=str) | more for row, more in zip(found, fields, strict=True)]
        return print_out(_visible_json(data) + "\n")
    return print_out("\n".join(line for row in found for line in _shown(fleet, row, runs)) + "\n")


class _SessionRuns:
    """How the last runs of sessions ended that are kept on this machine."""

    def __init__(self, options: Options) -> None:
        self._store = FileStore(set_up(Options(directory=options.directory, config=options.config, lang=options.lang)).places.sessions)

    def words(self, session_id: str | None) -> str:
        found = self._find(session_id)
        return trouble_words(found.run, is_held=is_held(found.path)) if found is not None else ""

    def facts(self, session_id: str | None) -> dict[str, Any] | None:
        found = self._find(session_id)
        return run_facts(found.run, is_held=is_held(found.path)) if found is not None else None

    def _find(self, session_id: str | None) -> Summary | None:
        """Only by the whole id, which a result of a fleet need not have."""
        return next((each for each in self._store.list() if each.session_id == session_id), None) if session_id else None


def _visible_json(data: object) -> str:
    """JSON in which whatever a terminal acts on, or does not show, is escaped."""
    text = jsontext.dumps(data)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _shown(fleet: Fleet, row: AttemptRow, runs: _SessionRuns) -> list[str]:
    result = row.result
    used = say(
        "fleet.show_used",
        time=duration(result.seconds),
        requests=result.requests,
        input=result.tokens.input,
        output=result.tokens.output,
        usd=_cost(row),
        starts=row.epochs,
    )
    lines = [
        f"{one_line(result.task, 200)} #{result.attempt}: {outcome_word(row.state)}",
        *([one_line(result.reason)] if result.reason else []),
        str(used),
    ]
    if result.session_id:
        lines.append(say("fleet.show_session", session=one_line(result.session_id, 80), model=one_line(result.model, 200)))
        lines += map(one_line, filter(None, [runs.words(result.session_id)]))
    lines.append(one_line(os.path.join(fleet.folder, "tasks", folder_of(result.task), str(result.attempt))))
    for title, text in (
        (say("fleet.show_answer"), result.answer),
        (say("fleet.show_check", code=result.check.exit_code), result.check.output) if result.check is not None else ("", ""),
        (say("fleet.show_diff"), result.diff),
    ):
        if text:
            cut = strip_controls(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "\n…")
            lines += ["", str(title), cut.rstrip()]
    return [*lines, ""]


def diff(options: Options) -> int:
    """`fleet diff A B`: what became otherwise, and the sums of both."""
    first, second = open_fleet(folder_of_fleet(options)), open_fleet(folder_of_fleet(options, 2))
    before = {(row.result.task, row.result.attempt): row.result.outcome for row in rows(first)}
    lines: list[str] = []
    for row in rows(second):
        was = before.pop((row.result.task, row.result.attempt), None)
        if was is None:
            lines.append(say("fleet.diff_only", name=_row_line(second, row), fleet=second.name))
        elif was != row.result.outcome:
            lines.append(f"{one_line(row.result.task, 60)} #{row.result.attempt}: {outcome_word(was)} → {outcome_word(row.result.outcome)}")
    lines += [say("fleet.diff_only", name=f"{one_line(task, 60)} #{attempt}", fleet=first.name) for task, attempt in before]
    lines += [f"{fleet.name}: {line}" for fleet in (first, second) for line in summary_lines(fleet, sums(fleet))]
    return print_out("\n".join(lines) + "\n")


def export(options: Options) -> int:
    """`fleet export NAME`: `results.jsonl` and `preds.json`; with `--atif` a trajectory for each session."""
    fleet = open_fleet(folder_of_fleet(options))
    write_results(fleet)
    count = _write_predictions(fleet)
    written = [say("fleet.exported", path=one_line(os.path.join(fleet.folder, PREDICTIONS_FILE)), count=count)]
    if options.form == "atif":
        require_own(fleet, options)  # it copies sessions of the user's into the folder
        written += _write_trajectories(fleet, options)
    return print_out("".join(f"{line}\n" for line in written))


def _write_predictions(fleet: Fleet) -> int:
    """In SWE-bench's form: what the first attempt at each task has changed."""
    count = 0
    with files.write_aside(os.path.join(fleet.folder, PREDICTIONS_FILE)) as descriptor:
        write_whole(descriptor, b"[")
        for task in fleet.tasks():
            result = fleet.result(task, 1)
            data = {
                "instance_id": task.id,
                "model_name_or_path": result.model if result is not None else fleet.lock.model,
                "model_patch": result.diff if result is not None else "",
            }
            write_whole(descriptor, (b",\n" if count else b"\n") + msgspec.json.encode(data))
            count += 1
        write_whole(descriptor, b"\n]\n")
    return count


def _write_trajectories(fleet: Fleet, options: Options) -> list[str]:
    """A file for each session that is kept on this machine."""
    from dragoman.conversation.pages.context_command import find_model
    from dragoman.sessions.atif import to_atif

    setup = set_up(Options(directory=options.directory, config=options.config, lang=options.lang))
    store, catalog, folder = FileStore(setup.places.sessions), catalog_of(setup), os.path.join(fleet.folder, "atif")
    listed = store.list()
    paths = {each.session_id: each.path for each in listed}
    files.make_folder(folder)
    count, problems = 0, list[str]()
    for row in rows(fleet):
        result = row.result
        if not result.session_id:
            continue
        try:
            if result.session_id not in paths:
                raise InputError(say("fleet.no_session", session=result.session_id))
            data = to_atif(
                store.read(paths[result.session_id]).entries,
                prices_of=lambda deployment, model: find_model(catalog, deployment, model)[1].prices,
                called=lambda caller: [store.read(each.path).entries for each in reversed(listed) if each.parent == caller],
            )
        except (DragomanError, OSError) as error:
            problems.append(f"{one_line(result.task, 60)} #{result.attempt}: {one_line(str(error), 300)}")
            continue
        with files.write_aside(os.path.join(folder, f"{folder_of(result.task)}-{result.attempt}.json")) as descriptor:
            write_whole(descriptor, jsontext.dumps(data).encode() + b"\n")
        count += 1
    return [*problems, say("fleet.exported", path=one_line(folder), count=count)]
