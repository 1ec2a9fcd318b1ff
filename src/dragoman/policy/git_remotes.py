"""Whether git, outside the sandbox, would reach a remote of the repository and run nothing that the model may have written.

Stricter than reading (git_folder.py): no hook may be there at all, the remote's address must be one of another machine after what the
user's own settings make of it, and nothing that git writes may be a link that leads elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found
from dragoman.policy.git_folder import MAX_CONFIG_BYTES, find_danger
from dragoman.policy.git_settings import Setting, read_settings
from dragoman.policy.running_programs import runs_anything
from dragoman.policy.sandbox.git_runs import has_hooks
from dragoman.policy.sandbox.toolchains import goes_through
from dragoman.words import say

_ADDRESS = re.compile(
    r"(?:https?|ssh|git)://[A-Za-z0-9][^\s\"'\\;#]*|(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9][A-Za-z0-9.-]+:(?!:)[^\s\"'\\;#:][^\s\"'\\;#]*"
)
"""On another machine: not a path, and none of a helper's own (`ext::`)."""
_LOGIN = re.compile(r"://[^/@]*@")
"""Perhaps with a password in it."""
_MAX_INCLUDES = 20
_MAX_ENTRIES = 20_000
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "maintenance.auto": "false",
    "gc.auto": "0",
}


def git_environment() -> dict[str, str]:
    """Variables with which git runs no hook and no helper for addresses, and enters no submodule: what appears in the repository between
    judging and running changes nothing about that."""
    if "GIT_CONFIG_COUNT" in os.environ:
        return {}
    numbered = {
        f"GIT_CONFIG_{part}_{at}": text
        for at, pair in enumerate(_SETTINGS.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    ssh = {} if "GIT_SSH" in os.environ or "GIT_SSH_COMMAND" in os.environ or _names_ssh() else {"GIT_SSH_COMMAND": "ssh"}
    return {
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        **numbered,
        "GIT_ALLOW_PROTOCOL": "http:https:ssh:git",
        "GIT_TERMINAL_PROMPT": "0",
        **ssh,
    }


def doubt_of_git(
    directory: str, folders: Sequence[str], untrusted: Sequence[str], remote: str, does: Literal["reads", "push", "fetch"]
) -> str:
    """Why it may run something of these folders, or reach no remote; empty: it does not. `remote`: its name; empty: any of them."""
    if any(name in os.environ for name in ("GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH")):
        return say("policy.git_elsewhere")
    if danger := find_danger(directory, folders):
        return danger
    folder = _folder_around(directory)
    if has_hooks(os.path.join(folder, "hooks")):
        return say("policy.outside_hooks", path=os.path.join(folder, "hooks"))
    if path := _find_led_away(folder) or _find_old_remote(folder):
        return say("policy.git_borrowed", path=path)
    try:
        own = [*_own_settings(untrusted)]
        here = _settings_of(folder)
    except (OSError, ValueError) as error:
        return say("policy.git_unreadable", reason=error)
    if key := _find_running(own, os.path.dirname(folder), untrusted):
        return say("policy.outside_setting", key=key)
    return "" if does == "reads" else _doubt_of_remotes(here, own, remote)


def find_addresses(directory: str, remote: str) -> tuple[str, ...]:
    """The addresses of a remote, or of all, as they are configured. Raises OSError or ValueError."""
    found = _addresses_in((*_own_settings(), *_settings_of(_folder_around(directory))))
    chosen = found.get(remote, []) if remote else [each for named in found.values() for each in named]
    return tuple(sorted({_LOGIN.sub("://", each) for each in chosen}))


def _settings_of(folder: str) -> list[Setting]:
    return [*read_settings(read_found(os.path.join(folder, "config"), MAX_CONFIG_BYTES).decode("utf-8", "replace"))]


def _find_old_remote(folder: str) -> str:
    """A file that git of any age takes for a remote which is not configured. Commands can write it."""
    for name in ("remotes", "branches"):
        path = os.path.join(folder, name)
        if os.path.lexists(path) and (not os.path.isdir(path) or os.listdir(path)):
            return path
    return ""


def _folder_around(directory: str) -> str:
    """The git directory, which `find_danger` has found to be a folder."""
    while not os.path.lexists(os.path.join(directory, ".git")):
        directory = os.path.dirname(directory)
    return os.path.join(directory, ".git")


def _find_led_away(folder: str) -> str:
    """Something that git writes in, and that is another file too: a link, or another name of one. Of many names, the folder itself."""
    count = 0
    places = [folder, os.path.join(folder, "refs"), os.path.join(folder, "logs")]
    while places:
        place = places.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_symlink() or (entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_nlink > 1):
                        return entry.path
                    if place != folder and entry.is_dir(follow_symlinks=False):
                        places.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return place
        if count > _MAX_ENTRIES:
            return folder
    return ""


def _own_settings(untrusted: Sequence[str] = ()) -> Iterator[Setting]:
    """Of the system and of the user, with the files they include, whatever the condition. Raises OSError or ValueError, also where one of
    them lies in an untrusted folder: then it is not the user's own."""
    shared = list(map(os.path.realpath, untrusted))
    home = os.path.expanduser("~")
    further = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    files = ["/etc/gitconfig", os.path.join(further, "git", "config"), os.path.join(home, ".gitconfig")]
    seen: set[str] = set()
    while files:
        file = files.pop(0)
        if file in seen or not os.path.lexists(file):
            continue
        seen.add(file)
        if len(seen) > _MAX_INCLUDES or goes_through(file, shared):
            raise ValueError(file)
        for setting in read_settings(read_found(file, MAX_CONFIG_BYTES).decode("utf-8", "replace")):
            if setting.section in ("include", "includeif"):
                files.append(os.path.join(os.path.dirname(file), os.path.expanduser(setting.value.strip('"'))))
            else:
                yield setting


def _names_ssh() -> bool:
    try:
        return any((each.section, each.key) == ("core", "sshcommand") for each in _own_settings())
    except (OSError, ValueError):
        return True


def _find_running(settings: Sequence[Setting], tree: str, untrusted: Sequence[str]) -> str:
    """A setting of the user's own by which git runs something of these folders: hooks wherever they are, for they act on what lies here,
    and programs that lie here themselves."""
    for section, inner, key, value in settings:
        name = ".".join(filter(None, (section, inner, key)))
        if section == "hook" or (section, key) == ("core", "hookspath"):
            return name
        if section == "remote" and key in ("receivepack", "uploadpack", "vcs"):
            return name
        if value.strip("\"' ").startswith("!") and _runs_project(value.strip("\"' !").split()):
            return name
        for word in re.split(r"[\s\"'!;=]+", value):
            path = os.path.join(tree, os.path.expanduser(word))
            if "/" not in word or not os.path.lexists(path):
                continue
            if any(is_inside(os.path.realpath(path), os.path.realpath(each)) for each in untrusted):
                return name
    return ""


def _runs_project(words: Sequence[str]) -> bool:
    """Whether a line begins with a program that looks into the folder it is started in for what it runs: `make`, `python -m`."""
    return bool(words) and (runs_anything(words[:1]) or runs_anything(words))


def _addresses_in(settings: Sequence[Setting]) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {}
    for section, inner, key, value in settings:
        if section == "remote" and key in ("url", "pushurl"):
            addresses.setdefault(inner, []).append(value)
    return addresses


def _doubt_of_remotes(here: Sequence[Setting], own: Sequence[Setting], remote: str) -> str:
    addresses = _addresses_in((*own, *here))
    if remote and remote not in addresses:
        return say("policy.outside_remote_unknown", name=remote)
    meant = [each.value.strip('"') for each in (*own, *here) if (each.section, each.key) in _CHOOSING] if not remote else []
    if stray := next((name for name in meant if name not in addresses), ""):
        return say("policy.outside_remote_unknown", name=stray)
    if not addresses:
        return say("policy.outside_remote_unknown", name=remote or "origin")
    for name in [remote] if remote else addresses:
        for address in addresses[name]:
            if odd := next((each for each in _led_to(address, own) if not _ADDRESS.fullmatch(each)), ""):
                return say("policy.outside_remote_local", name=name, address=odd)
    return ""


_CHOOSING = frozenset({("branch", "remote"), ("branch", "pushremote"), ("remote", "pushdefault")})
"""Settings that name the remote where a command does not."""


def _led_to(address: str, own: Sequence[Setting]) -> list[str]:
    """An address, and whatever the user's settings may make of it."""
    replaced = [(each.inner, each.value.strip('"')) for each in own if each.section == "url" and each.key in ("insteadof", "pushinsteadof")]
    return [address, *(base + address.removeprefix(begin) for base, begin in replaced if begin and address.startswith(begin))]
