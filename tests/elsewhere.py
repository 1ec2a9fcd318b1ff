"""Another system as far as this one can be made to look like it: what only Windows or macOS lacks is missing, for the program alone.

    python -X utf8 tests/elsewhere.py windows ARGUMENTS...     the program
    python -X utf8 tests/elsewhere.py windows --import-all     every module of the package

What the standard library needs is loaded before, so that only our code meets the gaps. It is no proof that the program works there. It
proves that nothing is imported or called, on the way of what is run, that these systems do not have.
"""

from __future__ import annotations

import asyncio
import asyncio.base_events
import asyncio.selector_events
import asyncio.unix_events
import ctypes
import ctypes.util
import email.message
import getpass
import glob
import http.client
import importlib
import json
import logging.handlers
import multiprocessing.pool
import os
import pathlib
import pkgutil
import platform
import select
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import traceback
import urllib.request
import webbrowser
import zipfile
from importlib.abc import MetaPathFinder
from typing import Any, NoReturn

LOADED = (ctypes.util, email.message, getpass, glob, http.client, json, logging.handlers, multiprocessing.pool, pathlib, platform)
LOADED_TOO = (shutil, sqlite3, ssl, subprocess, tempfile, urllib.request, webbrowser, zipfile, asyncio.unix_events)

NO_MODULES = {
    "windows": {"termios", "fcntl", "pwd", "resource", "grp", "tty", "pty", "readline", "curses", "syslog"},
    "macos": {"spwd"},
}
_NOT_IN_OS = {
    "windows": "getuid geteuid getgid getegid getgroups getgrouplist initgroups setuid setgid fork forkpty killpg getpgid setpgid setsid "
    "uname fchmod chown fchown lchown mkfifo mknod openpty ttyname tcgetpgrp fdatasync sched_getaffinity getloadavg listxattr getxattr "
    "setxattr memfd_create pidfd_open posix_spawn statvfs fstatvfs sysconf pread pwrite sync sendfile nice chroot fchdir "
    "set_blocking get_blocking "
    "O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_NOCTTY O_PATH O_SYNC O_DSYNC",
    "macos": "sched_getaffinity listxattr getxattr setxattr memfd_create pidfd_open fdatasync O_PATH getrandom splice eventfd "
    "posix_fadvise posix_fallocate setns unshare",
}
_NOT_IN_SIGNAL = {
    "windows": "SIGHUP SIGKILL SIGTSTP SIGWINCH SIGCONT SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 SIGSTOP SIGTTOU SIGTTIN SIGCHLD SIGALRM "
    "pthread_sigmask pthread_kill sigwait setitimer alarm pause siginterrupt",
    "macos": "SIGPWR SIGPOLL SIGSTKFLT sigwaitinfo sigtimedwait SIGRTMIN SIGRTMAX",
}
_NOT_IN_SELECT = {"windows": "poll epoll", "macos": "epoll"}
_NOT_IN_SOCKET = {"windows": "AF_UNIX SO_PEERCRED SO_REUSEPORT AF_NETLINK", "macos": "SO_PEERCRED AF_NETLINK AF_VSOCK SOCK_CLOEXEC"}


class _Missing(MetaPathFinder):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _unable(*given: Any, **named: Any) -> NoReturn:
    raise NotImplementedError


class _LoadedByName(ctypes.PyDLL):
    def __init__(self, name: str | None, *given: Any, **named: Any) -> None:
        if name is None:  # there is no handle to the program itself
            raise TypeError("argument of type 'NoneType' is not iterable")
        super().__init__(name, *given, **named)


def _select_sockets(*lists: Any) -> Any:
    if any(isinstance(each, int) or not hasattr(each, "recv") for names in lists[:3] for each in names):
        raise OSError(10038, "an operation was attempted on something that is not a socket")
    return _real_select(*lists)


_real_select = select.select


class _Seen:
    """A module as our code sees it: without some of its names. The standard library keeps the whole."""

    def __init__(self, module: Any, missing: set[str], **changed: Any) -> None:
        self.__dict__.update({name: each for name, each in vars(module).items() if name not in missing} | changed)
        self.__all__ = [name for name in getattr(module, "__all__", dir(module)) if name not in missing]


def pretend(system: str) -> None:
    """From here on the modules of ours that are loaded meet another system."""
    names = NO_MODULES[system]
    if system == "macos":
        import fcntl

        vars(fcntl)["F_FULLFSYNC"] = 51  # unknown here, as to a file system without it there
    for name in names:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Missing(names))
    changed: dict[str, Any] = {}
    if system == "windows":
        changed = {"name": "nt", "supports_dir_fd": set(), "supports_fd": {os.truncate}, "supports_follow_symlinks": {os.stat}}
        # As the loop there: it waits for sockets of its own, and watches nothing for others.
        for name in ("add_reader", "remove_reader", "add_writer", "remove_writer"):
            setattr(asyncio.selector_events.BaseSelectorEventLoop, name, _unable)
        for name in ("add_signal_handler", "remove_signal_handler", "create_unix_connection", "create_unix_server"):
            setattr(asyncio.unix_events._UnixSelectorEventLoop, name, _unable)
        ctypes.PyDLL = ctypes.CDLL = _LoadedByName  # type: ignore[misc]
    for module, gaps in ((os, _NOT_IN_OS), (signal, _NOT_IN_SIGNAL), (select, _NOT_IN_SELECT), (socket, _NOT_IN_SOCKET)):
        more = changed if module is os else {"select": _select_sockets} if module is select and system == "windows" else {}
        seen: Any = _Seen(module, set(gaps[system].split()), **more)
        sys.modules[module.__name__] = seen
    sys.modules["sys"] = _Seen(sys, set(), platform={"windows": "win32", "macos": "darwin"}[system])  # type: ignore[assignment]


def import_all() -> int:
    """Import every module of the package; print those that cannot be, and why."""
    import dragoman

    # `fleet.harbor` is loaded by Harbor, and not here.
    names = [each.name for each in pkgutil.walk_packages(dragoman.__path__, "dragoman.", onerror=lambda name: None)]
    failed = 0
    for name in (each for each in names if not each.endswith(("__main__", "fleet.harbor"))):
        try:
            importlib.import_module(name)
        except Exception:
            failed += 1
            print(f"{name}\n{traceback.format_exc(limit=-3)}")
    print(f"{len(names)} modules, {failed} failed", flush=True)
    return 1 if failed or len(names) < 500 else 0


if __name__ == "__main__":
    real = sys
    system, *arguments = real.argv[1:]
    pretend(system)
    if arguments == ["--import-all"]:
        os._exit(import_all())
    real.argv[1:] = arguments
    from dragoman.cli.main import main

    main()
