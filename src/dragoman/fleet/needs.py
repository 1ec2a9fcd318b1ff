"""What the tasks of a fleet need. It is looked for before anything starts, once each: a thousand tasks must not find one by one that a key
is missing."""

from __future__ import annotations

import os

from dragoman.app.connecting import authenticate, choose_first_model
from dragoman.app.opening import is_local
from dragoman.app.options import Options
from dragoman.app.settings import sandboxing_of
from dragoman.app.setup import Setup, catalog_of, is_from_package, set_up
from dragoman.app.trust import find_trust
from dragoman.base.text import closest
from dragoman.fleet.ownership import AskedFor
from dragoman.fleet.task import GitSource, Task, require_workspace
from dragoman.fleet.workspace import find_repository
from dragoman.loop.commands import CommandStarter
from dragoman.policy.approvals import require_sandbox
from dragoman.policy.sandbox.caches import forget_caches
from dragoman.providers.catalog import profile_for
from dragoman.values.errors import InputError, UntrustedFolder
from dragoman.words import say

LEAST_FREE_BYTES = 64_000_000


class Needs:
    """The models, repositories and the sandbox that tasks ask for."""

    def __init__(self, options: Options, directory: str) -> None:
        """Raises InputError or ConfigError where the settings of the fleet are wrong."""
        self._options = options
        self._setup = set_up(
            Options(model=options.model, sandbox=options.sandbox, directory=directory, config=options.config, lang=options.lang)
        )
        self._catalog = catalog_of(self._setup)
        self._default = ""
        self._found = set[str]()
        self._modes = set[str]()
        self.asked = AskedFor()

    def check(self, task: Task) -> None:
        """Raises DragomanError where something that this task needs is not there."""
        require_workspace(task)
        self.asked.add(task)
        self._modes.add(task.approval or self._options.approval or "auto")
        model = task.model or self._default_model()
        if model not in self._found:
            self._require_model(model)
        if isinstance(task.workspace, GitSource) and task.workspace.git not in self._found:
            find_repository(task.workspace.git)
            self._found.add(task.workspace.git)
        self._found.add(model)

    def check_machine(self, scratch: str, folder: str) -> None:
        """What all of them need: room, a folder for copies that nobody trusts, and a sandbox where the mode wants one."""
        for path in (scratch, folder):
            status = os.statvfs(path)
            if status.f_bavail * status.f_frsize < LEAST_FREE_BYTES:
                raise InputError(say("fleet.no_room", path=path))
        setup = self._setup
        if not self._options.trust and find_trust(Options(), setup.env, setup.places, scratch).is_trusted:
            raise UntrustedFolder(say("fleet.scratch_is_trusted", path=scratch))
        if "auto" in self._modes:
            _require_sandbox(setup, scratch)

    def _default_model(self) -> str:
        if not self._default:
            chosen = choose_first_model(self._setup, None).choice
            assert chosen is not None
            self._default = chosen.model
        return self._default

    def _require_model(self, model: str) -> None:
        if is_from_package(model, self._catalog):
            return
        deployment, name = self._catalog.find(model)
        authenticate(self._setup, deployment)
        profile = profile_for(deployment, name)
        if not profile.known and not is_local(self._setup, deployment.name) and not self._options.force:
            nearest = closest(name, deployment.models)
            hint = say("unknown_model_nearest", names=nearest[0]) if nearest else ""
            raise InputError(say("fleet.unknown_model", name=f"{deployment.name}/{name}", nearest=hint))
        if self._options.budget_usd is not None and profile.prices is None and not is_local(self._setup, deployment.name):
            raise InputError(say("fleet.no_price", name=f"{deployment.name}/{name}"))


def _require_sandbox(setup: Setup, scratch: str) -> None:
    """Raises SandboxError where commands cannot be confined here."""
    starter = CommandStarter([scratch], sandboxing_of(setup.config))
    try:
        require_sandbox("auto", lambda: starter.is_sandbox, lambda: starter.known_sandbox)
    finally:
        starter.close()
        forget_caches(setup.places.command_caches, scratch)
