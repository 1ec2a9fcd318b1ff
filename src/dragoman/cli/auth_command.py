"""`dragoman auth`: which services have a key, storing one, and deleting it. Keys are read from a hidden prompt or from standard input."""

from __future__ import annotations

import sys

import msgspec

from dragoman.app.keys import ServiceKey, services_with_keys, stored_keys
from dragoman.app.options import Options
from dragoman.app.setup import Setup, catalog_of, set_up
from dragoman.base import jsontext
from dragoman.base.text import did_you_mean, one_line, strip_controls
from dragoman.conversation.actions import Action, Output, find_action, refuse_options
from dragoman.providers.auth import checked_key
from dragoman.providers.catalog import key_variable, needs_only_a_key
from dragoman.values.errors import InputError
from dragoman.values.profile import Deployment
from dragoman.words import say

MAX_KEY_CHARS = 100_000


def run_auth(options: Options) -> Output:
    name, action = find_action(options, ACTIONS)
    _check_operands(name, action, options.words[1:])
    refuse_options(options, action, f"auth {name}")
    return action.run(options)


def _check_operands(name: str, action: Action[Options], operands: tuple[str, ...]) -> None:
    if action.operand and not operands:
        raise InputError(say("auth_needs_service", action=name))
    if len(operands) > (1 if action.operand else 0):
        # Not repeated: it may be the key.
        raise InputError(say("auth_key_on_command_line") if name == "add" else say("auth_too_many_words", action=name))


def _list(options: Options) -> str:
    setup = set_up(options)
    keys = services_with_keys(setup)
    if options.output_format == "json":
        return jsontext.dumps({"keys": [_key_json(key) for key in keys], "file": setup.places.keys_file}) + "\n"
    if not keys:
        return say("auth_none") + "\n"
    width = max(len(key.service) for key in keys)
    lines = [f"{key.service:<{width}}  {_key_words(key)}" for key in keys]
    return "\n".join([*lines, "", say("auth_legend")]) + "\n"


def _add(options: Options) -> str:
    setup = set_up(options)
    deployment = _service(setup, options.words[1])
    if deployment.auth == "none" or deployment.in_process:
        raise InputError(say("auth_no_key_needed", service=deployment.name))
    key = checked_key(_read_key(deployment), lambda: say("auth_this_key"))
    keys = stored_keys(setup)
    try:
        stored = keys.add(deployment.name, key)
    except OSError as error:
        raise InputError(say("auth_not_stored", path=keys.file, reason=error.strerror or error)) from error
    variable = key_variable(deployment, setup.env)
    if options.output_format == "json":
        row = {"service": deployment.name, "stored": stored.stored_in, "reason": stored.reason or None, "overridden_by": variable or None}
        return jsontext.dumps(row | {"file": keys.file}) + "\n"
    lines = [say(f"auth_added_{stored.stored_in}", service=deployment.name, path=strip_controls(keys.file), reason=stored.reason)]
    if variable:
        lines.append(say("auth_overridden", variable=variable))
    return "\n".join(lines) + "\n"


def sign_in(options: Options) -> str:
    """Ask for a service and its key, as an editor has it done in a terminal."""
    if not sys.stdin or not sys.stdin.isatty():
        raise InputError(say("auth_no_input"))
    known = [row.name for row in catalog_of(set_up(options)).deployments.values() if needs_only_a_key(row)]
    try:
        service = input(say("acp.sign_in_service", some=", ".join(known[:6]))).strip()
    except EOFError as error:
        raise InputError(say("auth_no_input")) from error
    return _add(msgspec.structs.replace(options, command="auth", words=("add", service)))


def _remove(options: Options) -> str:
    setup = set_up(options)
    keys = stored_keys(setup)
    service = options.words[1]
    known = keys.services
    if service not in known:
        raise InputError(say("auth_nothing_stored", service=one_line(service, 60), hint=did_you_mean(service, known)))
    try:
        removed = keys.remove(service)
    except OSError as error:
        raise InputError(say("auth_not_removed", service=service, path=keys.file, reason=error.strerror or error)) from error
    if options.output_format == "json":
        return jsontext.dumps({"service": service, "removed": removed, "file": keys.file}) + "\n"
    return say(f"auth_removed_{removed or 'file'}", service=service, path=strip_controls(keys.file)) + "\n"


ACTIONS: dict[str, Action[Options]] = {
    "list": Action(_list),
    "add": Action(_add, "SERVICE"),
    "remove": Action(_remove, "SERVICE"),
}


def _service(setup: Setup, name: str) -> Deployment:
    """Raises InputError, with the nearest name."""
    deployments = catalog_of(setup).deployments
    if name in deployments:
        return deployments[name]
    raise InputError(say("auth_unknown_service", name=one_line(name, 60), hint=did_you_mean(name, deployments)))


def _read_key(deployment: Deployment) -> str:
    if sys.stdin is None:
        raise InputError(say("auth_no_input"))
    if not sys.stdin.isatty():
        return sys.stdin.read(MAX_KEY_CHARS)
    from getpass import getpass

    try:
        return getpass(say("auth_prompt", title=deployment.title or deployment.name))
    except EOFError as error:
        raise InputError(say("auth_no_input")) from error


def _key_words(key: ServiceKey) -> str:
    if key.source is None:
        return say("auth_orphan", where=say(f"key_from_{key.stored_in}"))
    if key.source.kind == "variable" and key.stored_in:
        return say("auth_variable_wins", where=key.source.words, stored=say(f"key_from_{key.stored_in}"))
    return key.source.words


def _key_json(key: ServiceKey) -> dict[str, object]:
    source = msgspec.to_builtins(key.source) if key.source is not None else None
    return {
        "service": key.service,
        "source": source and {"kind": source["kind"], "variable": source["variable"] or None},
        "stored": key.stored_in,
    }
