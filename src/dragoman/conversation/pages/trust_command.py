"""`dragoman trust`: trust a folder without being asked, or take it back."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Literal

from dragoman.app.config import own_files
from dragoman.app.config_tables import FolderTrust
from dragoman.app.options import Options
from dragoman.app.setup import require_directory, set_up
from dragoman.app.trust import believe_files, folder_to_ask, home_of, read_or_nothing
from dragoman.base import jsontext
from dragoman.base.beneath import is_inside
from dragoman.base.places import Places
from dragoman.base.text import one_line
from dragoman.base.visible import escape_hidden
from dragoman.loop.surroundings import repository_root
from dragoman.policy.trust import forget_decisions, is_too_wide, judge_folder, save_decision
from dragoman.values.errors import InputError
from dragoman.words import say


def run_trust(options: Options) -> str:
    if len(options.words) > 1:
        raise InputError(say("too_many_words", command="trust", word=one_line(options.words[1], 60)))
    named = options.words[0] if options.words else ""
    if options.words and not named.strip():
        raise InputError(say("trust_no_name"))  # as from a variable that is not set: that is not a yes to this folder
    setup = set_up(options)
    real = os.path.realpath(require_directory(os.path.join(setup.workspace, os.path.expanduser(named)), "trust"))
    if options.revoke:
        return _report(options, "revoked", *_revoke(setup.places, real))
    folder = real if named else folder_to_ask(real, home_of(setup.env))
    if is_too_wide(folder, home_of(setup.env)):
        raise InputError(say("trust_refused_wide", folder=escape_hidden(folder, one_line=True)))
    _save(setup.places, folder)
    project = repository_root(real) or real
    root = folder if is_inside(folder, project) else project
    files = own_files(real, root, setup.places.config_file)
    believed, problem = believe_files(FolderTrust("trusted", folder, root, files), setup.env, setup.places, real)
    if problem:
        raise InputError(say("trust_file_unwritable", path=setup.places.commands_file, reason=problem))
    return _report(options, "trusted", folder, files, believed)


def _save(places: Places, folder: str) -> None:
    try:
        save_decision(places.trust_file, folder, trusted=True)
    except OSError as error:
        if error.errno == errno.EILSEQ:
            raise InputError(say("trust_name_unwritable", folder=escape_hidden(folder, one_line=True))) from error
        raise InputError(say("trust_file_unwritable", path=places.trust_file, reason=error.strerror or error)) from error


def _revoke(places: Places, folder: str) -> tuple[str, Sequence[str]]:
    """Take back the decision that holds for a folder: its own, or that of a folder above."""
    decisions = read_or_nothing(places)
    by = folder if folder in decisions else judge_folder(folder, decisions)[1]
    if not by:
        raise InputError(say("trust_nothing_to_revoke", folder=escape_hidden(folder, one_line=True)))
    try:
        forget_decisions(places.trust_file, {decisions[by].id})
    except OSError as error:
        raise InputError(say("trust_file_unwritable", path=places.trust_file, reason=error.strerror or error)) from error
    return by, ()


def _report(
    options: Options, done: Literal["trusted", "revoked"], folder: str, files: Sequence[str] = (), believed: Sequence[str] = ()
) -> str:
    if options.output_format == "json":
        more = {"believed": list(believed)} if believed else {}
        return jsontext.dumps({done: folder, "files": list(files), **more}) + "\n"
    said = say(f"trust_{done}", folder=escape_hidden(folder, one_line=True), names=_names(files) or say("trust_no_files"))
    return "\n".join([said, *([say("trust_believed", names=_names(believed))] if believed else [])]) + "\n"


def _names(files: Sequence[str]) -> str:
    return ", ".join(escape_hidden(name, one_line=True) for name in files)
