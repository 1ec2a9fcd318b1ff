"""Draws the boundary of a workspace: what commands may write, what is fixed inside it, and which files they must not see."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence

from dragoman.base.beneath import is_inside, outermost
from dragoman.policy.sandbox.believed import believed_in, start_files
from dragoman.policy.sandbox.cache_layers import CacheLayer, CacheLayers
from dragoman.policy.sandbox.git_runs import is_folder
from dragoman.policy.sandbox.launcher.order import Boundary
from dragoman.policy.sandbox.repositories import Repository, find_repositories, read_by_git
from dragoman.policy.sandbox.survey import Seen, Survey
from dragoman.policy.sandbox.toolchains import find_named, find_toolchains
from dragoman.policy.sandbox.view import FileView, make_view
from dragoman.policy.secret_stores import stores_in

_SYSTEM_TEMPORARY = {"/tmp": "tmp", "/var/tmp": "var-tmp"}
NEVER_READABLE = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/sys/kernel/debug", "/sys/kernel/tracing")
"""With Landlock alone: other programs' temporary files and sockets, and devices."""


class Ground:
    """What a boundary is drawn from. It lasts as long as the sandbox; what exists is looked up for each command."""

    def __init__(
        self,
        writable: Sequence[str],
        *,
        homes: Sequence[str],
        private: str,
        own: Sequence[str] = (),
        secret: Sequence[str] = (),
        readable: Sequence[str] = (),
        user: int | None = None,
        caches: str = "",
        layers: CacheLayers | None = None,
        survey: Survey | None = None,
    ) -> None:
        """`private`: a folder of the session with `tmp`, `var-tmp` and `covers` in it. `own`: our configuration, approvals, logs and code.
        `user`: who commands run as, where that is not us. `caches`: where they keep caches, if not among temporary
        files; `layers`: over those, for commands that only read. `survey`: of what lies in these folders."""
        self.writable = outermost(os.path.realpath(path) for path in writable)
        self.believed = [path for root in self.writable for path in believed_in(root)]
        """What is read as configuration in these folders, whether it exists or not."""
        self.homes = [os.path.realpath(home) for home in homes if home]
        self.started = start_files(self.homes, self.writable)
        """What runs by itself in a home directory among these folders, whether it exists or not."""
        self._stores = stores_in(self.homes)
        self.private = private
        self._own = own
        self._secret = secret
        self._readable = readable
        self._user = user
        self.caches = (caches,) if caches else ()
        self.layers = layers
        self.survey = survey or Survey(self.writable)

    def repositories(self, seen: Seen | None = None) -> list[Repository]:
        return find_repositories(self.writable, (seen or self.survey.look()).repositories)

    def find_exposed(self, *, can_except: bool) -> list[str]:
        """What of ours, or of the user's home, commands could change or read all the same. `can_except`: the boundary makes exceptions in
        what is writable, but no link can be covered, nor a folder that is the workspace itself."""
        own = [*dict.fromkeys(map(os.path.realpath, self._own))]
        if not can_except:
            return [path for path in (*own, *self.homes) if _is_in_any(path, self.writable)]
        return [*(path for path in own if path in self.writable), *_links_to(self._own, self.writable)]

    def draw(
        self, repositories: Sequence[Repository] | None = None, *, shared: Sequence[str] = (), tools: FileView | None = None
    ) -> Boundary:
        """For namespaces: ours, or those of bubblewrap. `repositories`: those of now, where they are known. `shared`: files and folders
        that are read-only because what is written there would be written outside as well. `tools`: what stays visible."""
        writable = tuple(path for path in self.writable if os.path.lexists(path))
        repositories = self.repositories() if repositories is None else repositories
        folders = [path for each in repositories for path in each.pinned]
        fixed = [path for each in repositories for path in each.fixed]
        fixed += [path for path in (*self.believed, *self.started) if os.access(path, os.F_OK) and not os.path.islink(path)]
        fixed += [path for path in map(os.path.realpath, self._own) if _is_in_any(path, writable) and os.path.lexists(path)]
        fixed += shared
        nested = [each for each in repositories if each.root not in self.writable]
        hidden = [path for path in self._hidden() if not any(is_inside(root, path) for root in writable)]
        return Boundary(
            writable=outermost((*writable, *(each.shared for each in repositories if each.shared))),
            pinned=tuple(sorted({*folders, *self._around_own(writable)})),  # a folder before what lies in it
            read_only=tuple(dict.fromkeys(fixed)),
            hidden=tuple(each for path in hidden for each in (tools.places_of(path) if tools is not None else (path,))),
            shown=(*((path, path) for path in tools.shown if not _is_in_any(path, writable)), *tools.linked) if tools is not None else (),
            readable=tuple(path for path in self._readable_to_user() if _is_covered(path)),
            private=self._private(),
            covers=self._covers,
            caches=self.caches,
            may_be_gone=tuple(path for each in nested for path in (each.folder, *each.fixed)),
        )

    def draw_read_only(self, view: FileView, layer: CacheLayer | None = None) -> Boundary:
        """For namespaces: nothing can be written but temporary files, and no more is seen than the view shows. `layer`: what is written to
        the caches goes there."""
        return Boundary(
            hidden=tuple(place for path in self._hidden() for place in view.places_of(path)),
            shown=(*view.emptied, *((path, path) for path in view.shown), *view.linked),
            private=self._private(reads_only=True),
            covers=self._covers,
            caches=self._caches_for_reading(),
            layer=(layer.place, layer.upper, layer.work, layer.instead) if layer is not None else None,
        )

    def find_named_tools(self, env: Mapping[str, str]) -> list[str]:
        """What PATH and the like name, as far as commands get to it."""
        return self._without_hidden(path for path in find_named(env, self.homes, self.writable) if self._is_reached(os.path.realpath(path)))

    def make_view(self, env: Mapping[str, str], number: int) -> FileView:
        """What a command that only reads may see. `number`: a new one for each. Raises OSError."""
        around = [path for root in self.writable for path in read_by_git(root, self.homes)]
        tools = self._without_hidden(find_toolchains(env, self.homes, self.writable))
        named = (*self.writable, *around, *self._readable, *tools)
        show = [path for path in named if os.path.lexists(path) and self._is_reached(os.path.realpath(path))]
        return make_view(os.path.join(self.private, "views", str(number)), self._covers, show, self._caches_for_reading())

    def draw_for_landlock(self, repositories: Sequence[Repository] | None = None, *, tools: Sequence[str] = ()) -> Boundary:
        """For Landlock alone, which can allow and not except: everything readable is listed, around what is secret. `tools`: what stays
        readable, wherever it lies."""
        temporary = os.path.join(self.private, "tmp")
        secret = list(map(os.path.realpath, self._hidden()))
        shared = [each.shared for each in (self.repositories() if repositories is None else repositories) if each.shared]
        never = list(map(os.path.realpath, NEVER_READABLE))
        named = [path for path in outermost(map(os.path.realpath, tools)) if _is_in_any(path, never)]
        return Boundary(
            writable=(*self.writable, *shared, temporary),
            caches=self.caches,
            readable=(
                *_readable_around("/", [*secret, *never]),
                *(path for each in named for path in _readable_around(each, secret)),
                *self._readable_to_user(),
            ),
        )

    def draw_for_mending(self, repositories: Sequence[Repository]) -> Boundary:
        """What commands may write, and nothing else."""
        return Boundary(writable=(*self.writable, *(each.shared for each in repositories if each.shared)))

    def _without_hidden(self, paths: Iterable[str]) -> list[str]:
        """A variable that names a secret does not show it."""
        hidden = self._hidden()
        return [path for path in paths if not _is_in_any(os.path.realpath(path), hidden)]

    @property
    def _covers(self) -> str:
        return os.path.join(self.private, "covers")

    def _caches_for_reading(self) -> tuple[str, ...]:
        return (*self.caches, self.layers.kept) if self.layers is not None else self.caches

    def _private(self, *, reads_only: bool = False) -> tuple[tuple[str, str], ...]:
        """Temporary files are shared by all commands of the session. Not where they lie above the workspace: cargo, npm and others read
        settings from each folder above the one they work in, so what only reads must not write there."""
        found: list[tuple[str, str]] = []
        for place, name in _SYSTEM_TEMPORARY.items():
            is_above = reads_only and any(is_inside(root, place) for root in self.writable)
            if is_folder(place):
                found.append((place, os.path.join(self.private, f"reading-{name}" if is_above else name)))
        return tuple(found)

    def _readable_to_user(self) -> list[str]:
        """What is to stay readable, where commands get to it at all: our own code may lie in a folder that is closed to their user."""
        return [path for path in map(os.path.realpath, self._readable) if os.path.lexists(path) and self._is_reached(path)]

    def _is_reached(self, path: str) -> bool:
        return self._user is None or _can_reach(path, self._user)

    def _around_own(self, writable: Sequence[str]) -> list[str]:
        """The folders between the workspace and what is ours in it, or what runs by itself: with one of them it could be moved away, and
        another put there."""
        found: list[str] = []
        for path in (*map(os.path.realpath, self._own), *filter(os.path.lexists, self.started)):
            while _is_in_any(path := os.path.dirname(path), writable) and path not in writable:
                found.append(path)
        return [path for path in dict.fromkeys(found) if os.path.isdir(path) and not os.path.islink(path)]

    def _hidden(self) -> list[str]:
        # Not os.path.exists: few of these are there, and for each that is not it would make an exception, which takes longest.
        named = (path for path in (*self._stores, *self._secret, *self.survey.look().denied) if os.access(path, os.F_OK))
        found = dict.fromkeys(map(os.path.realpath, named))
        return [path for path in outermost(found) if os.path.lexists(path) and self._is_reached(path)]


def _links_to(paths: Iterable[str], roots: Sequence[str]) -> list[str]:
    """Links in the workspace by which a path leads where it leads: nothing can cover one, but for the folder that it lies in."""
    paths = tuple(paths)
    covered = [path for path in map(os.path.realpath, paths) if os.path.isdir(path)]
    found: list[str] = []
    for path in map(os.path.abspath, paths):
        while path != os.path.dirname(path):
            folder = os.path.realpath(os.path.dirname(path))
            if os.path.islink(path) and _is_in_any(folder, roots) and not _is_in_any(folder, covered):
                found.append(path)
            path = os.path.dirname(path)
    return list(dict.fromkeys(found))


def _can_reach(path: str, uid: int) -> bool:
    """Whether a user may go through all folders above a path. What they cannot reach needs no cover, and they cannot put one there."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    except KeyError:
        groups = None  # not known: then any group may be theirs
    while (path := os.path.dirname(path)) != "/":
        status = os.stat(path)
        if status.st_uid == uid:
            may = stat.S_IXUSR
        elif groups is None:
            may = stat.S_IXGRP | stat.S_IXOTH
        else:
            may = stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH
        if not status.st_mode & may:
            return False
    return True


def _is_in_any(path: str, folders: Iterable[str]) -> bool:
    return any(is_inside(path, folder) for folder in folders)


def _is_covered(path: str) -> bool:
    return _is_in_any(path, (*_SYSTEM_TEMPORARY, "/run", "/dev"))


def _readable_around(folder: str, secret: list[str]) -> list[str]:
    """A folder where nothing beneath it is secret; else those of its entries that are not. Links are left out: they may lead to secrets."""
    beneath = [path for path in secret if is_inside(path, folder)]
    if not beneath:
        return [folder]
    if folder in beneath:
        return []
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    found += _readable_around(entry.path, beneath)
    except OSError:
        pass
    return found
