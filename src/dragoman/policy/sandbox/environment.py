"""The environment of a command in the sandbox: rebuilt from a short list, because a long one always holds something secret."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_KEPT = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "PAGER", "GIT_PAGER", "NO_COLOR", "COLUMNS", "LINES",
    "EDITOR", "VISUAL", "CI", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "NVM_DIR", "NVM_BIN", "NODE_PATH", "NODE_ENV", "VOLTA_HOME",
    "GOPATH", "GOROOT", "GOFLAGS", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "ANDROID_HOME", "GEM_HOME", "RBENV_ROOT",
    "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "NIX_PATH", "NIX_PROFILES",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_DATA_DIRS", "DRAGOMAN_CALL", "SOURCE_DATE_EPOCH",
})  # fmt: skip
_KEPT_BEGINNINGS = ("LC_",)
_WITHOUT_NETWORK = {
    # Without them pip and npm try again for a minute before they say that there is no network.
    "PIP_RETRIES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_fetch_retries": "0",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
}


def rebuild(env: Mapping[str, str], *, temporary: str, home: str = "", keep: Collection[str] = ()) -> dict[str, str]:
    """`keep`: names of further variables that the user lets through. `home`: where commands run as another user."""
    kept = {name: value for name, value in env.items() if name in _KEPT or name in keep or name.startswith(_KEPT_BEGINNINGS)}
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary)
    # Go refuses to build without a cache it can write; the others do without.
    caches = {"GOCACHE": f"{temporary}/go-build"}
    return {**kept, **places, **caches, **_WITHOUT_NETWORK, **({"HOME": home} if home else {})}
