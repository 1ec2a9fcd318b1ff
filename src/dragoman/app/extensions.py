"""Where what others bring is looked for: the folders of every program whose files may be read."""

from __future__ import annotations

import os

from dragoman.app.config_tables import SourcesTable
from dragoman.app.setup import Setup
from dragoman.extensions.sources import ProgramFolder, all_folders
from dragoman.loop.memory import folders_between


def folders_of(setup: Setup) -> tuple[ProgramFolder, ...]:
    """What lies nearest to the workspace comes first. A project's folders are among them only if it is trusted."""
    real = os.path.realpath(setup.workspace)
    projects = folders_between(setup.trust.root or real, real) if setup.trust.is_trusted else []
    return all_folders(setup.env, setup.places.config, list(projects), switched_off(setup.config.sources))


def switched_off(table: SourcesTable) -> frozenset[str]:
    return frozenset(name for name in SourcesTable.__struct_fields__ if not getattr(table, name))
