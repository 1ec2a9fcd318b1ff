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
_QUIET = {
    # What they would ask the network for unbidden.
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    # A store outside cannot be linked to from inside, and a link to one in the workspace would be read-only.
    "UV_LINK_MODE": "copy",
    "npm_config_package_import_method": "copy",
}


_NEVER_THROUGH_THE_GATE = "localhost,127.0.0.1,::1"


def rebuild(env: Mapping[str, str], *, temporary: str, home: str = "", keep: Collection[str] = (), gate_port: int = 0) -> dict[str, str]:
    """`keep`: names of further variables that the user lets through. `home`: where commands run as another user. `gate_port`: where the
    gate to the network is; 0: there is none."""
    kept = {name: value for name, value in env.items() if name in _KEPT or name in keep or name.startswith(_KEPT_BEGINNINGS)}
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary)
    # Go refuses to build without a cache it can write; the others do without.
    caches = {"GOCACHE": f"{temporary}/go-build"}
    return {**kept, **places, **caches, **_network(gate_port), **({"HOME": home} if home else {})}


def _network(gate_port: int) -> dict[str, str]:
    # Without a limit pip and npm try again for up to a minute before they say that there is no network, or that a host is refused.
    tries = dict.fromkeys(("PIP_RETRIES", "npm_config_fetch_retries"), "1" if gate_port else "0")
    if not gate_port:
        return {**_QUIET, **tries}
    gate = f"http://127.0.0.1:{gate_port}"
    # Programs differ in which case they read: curl only the small http_proxy, others only the large.
    proxies = dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"), gate)
    local = dict.fromkeys(("no_proxy", "NO_PROXY"), _NEVER_THROUGH_THE_GATE)
    return {**_QUIET, **tries, **proxies, **local, "NODE_USE_ENV_PROXY": "1"}
