"""Where extensions are looked for: the folders of every program whose files may be read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Protocol

from dragoman.app.config_tables import Config, FolderTrust, OtherRulesTable, SourcesTable
from dragoman.base.places import Places
from dragoman.extensions.sources import ProgramFolder, all_folders
from dragoman.loop.memory import folders_between


class Surrounded(Protocol):
    """What decides which folders may be read. A Setup is one; setup.py itself asks before it is whole."""

    @property
    def env(self) -> Mapping[str, str]: ...

    @property
    def places(self) -> Places: ...

    @property
    def workspace(self) -> str: ...

    @property
    def trust(self) -> FolderTrust: ...

    @property
    def config(self) -> Config: ...


def folders_of(setup: Surrounded) -> tuple[ProgramFolder, ...]:
    """What lies nearest to the workspace comes first. A project's folders are among them only if it is trusted."""
    return folders_around(setup, switched_off(setup.config.sources))


def folders_around(setup: Surrounded, off: Collection[str]) -> tuple[ProgramFolder, ...]:
    """The same, without those of the programs in `off`."""
    real = os.path.realpath(setup.workspace)
    projects = folders_between(setup.trust.root or real, real) if setup.trust.is_trusted else []
    return all_folders(setup.env, setup.places.config, list(projects), off)


def switched_off(table: SourcesTable | OtherRulesTable) -> frozenset[str]:
    return frozenset(name for name in table.__struct_fields__ if not getattr(table, name))
