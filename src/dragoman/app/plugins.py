"""The installed plugins, of the programs whose files may be read."""

from __future__ import annotations

import os

from dragoman.app.extensions import Surrounded, folders_of
from dragoman.extensions.plugins import FoundPlugins, find_plugins


def plugins_of(setup: Surrounded) -> FoundPlugins:
    return find_plugins(folders_of(setup), os.path.realpath(setup.workspace))
