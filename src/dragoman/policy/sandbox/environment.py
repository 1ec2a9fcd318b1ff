"""The environment of a command in the sandbox: rebuilt from a short list, because a long one always holds something secret."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from dragoman.policy.sandbox.caches import cache_variables
from dragoman.policy.sandbox.launcher.namespaces import GATE_ADDRESS

_KEPT = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "PAGER", "GIT_PAGER", "NO_COLOR", "COLUMNS", "LINES",
    "EDITOR", "VISUAL", "CI", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION", "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "NVM_DIR", "NVM_BIN", "NODE_PATH", "NODE_ENV", "VOLTA_HOME",
    "PNPM_HOME", "BUN_INSTALL", "DENO_INSTALL", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "GEM_PATH", "MAVEN_HOME",
    "M2_HOME", "GRADLE_HOME", "DOTNET_ROOT", "GOPATH", "GOROOT", "GOFLAGS", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME",
    "ANDROID_HOME", "GEM_HOME", "RBENV_ROOT", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "PIP_CERT", "CARGO_HTTP_CAINFO", "DENO_CERT", "npm_config_cafile", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
    "MAKEFLAGS", "NIX_PATH", "NIX_PROFILES", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "DRAGOMAN_CALL", "SOURCE_DATE_EPOCH",
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
    "pnpm_config_package_import_method": "copy",
}


_NEVER_THROUGH_THE_GATE = "localhost,127.0.0.1,::1"
GATE_USER = "dragoman"
"""By this name whoever knows the secret of a gate is served."""


def rebuild(
    env: Mapping[str, str],
    *,
    temporary: str,
    home: str = "",
    keep: Collection[str] = (),
    has_gate: bool = False,
    reads_only: bool = False,
    caches: str = "",
    kept: str = "",
    writable: Sequence[str] = (),
) -> dict[str, str]:
    """`keep`: names of further variables that the user lets through. `home`: where commands run as another user. `has_gate`: there is
    a way to the network, which `lead_to_gate` names. `reads_only`: the workspace cannot be written. `caches`: where tools keep
    caches; empty: among temporary files. `kept`: where tools keep what only those that read use. `writable`: where commands write."""
    listed = _keep_listed(env, keep)
    places = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary)
    at_home = {"HOME": home} if home else {}
    kept_in = caches or f"{temporary}/caches"
    named = {name: value for name, value in env.items() if name != "MAVEN_OPTS" or name in keep}  # it may hold a password
    reading = _for_reading(listed, kept or kept_in) if reads_only else {}
    return {**listed, **places, **cache_variables(kept_in, {**named, **at_home}, writable), **_network(has_gate), **at_home, **reading}


def _for_reading(kept: Mapping[str, str], caches: str) -> dict[str, str]:
    """So that tools which only keep something for the next time beside the sources do not fail for that."""
    return {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": f"{kept.get('PYTEST_ADDOPTS', '')} -p no:cacheprovider".strip(),
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{caches}/hypothesis",
        "RUFF_CACHE_DIR": f"{caches}/ruff",
        "MYPY_CACHE_DIR": f"{caches}/mypy",
        "COVERAGE_FILE": f"{caches}/coverage",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def lead_to_gate(secret: str) -> dict[str, str]:
    """The variables by which programs find the gate, without its port. It serves whoever knows the secret: other commands of the session
    see its port, and must not use a host that was allowed to this one."""
    # Programs differ in which case they read: curl only the small http_proxy, others only the large.
    return dict.fromkeys(("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"), f"http://{GATE_USER}:{secret}@{GATE_ADDRESS}")


def _network(has_gate: bool) -> dict[str, str]:
    # Without a limit pip and npm try again for up to a minute before they say that there is no network, or that a host is refused.
    tries = dict.fromkeys(("PIP_RETRIES", "npm_config_fetch_retries"), "1" if has_gate else "0")
    if not has_gate:
        return {**_QUIET, **tries}
    local = dict.fromkeys(("no_proxy", "NO_PROXY"), _NEVER_THROUGH_THE_GATE)
    return {**_QUIET, **tries, **local, "NODE_USE_ENV_PROXY": "1"}


def keep_for_external(env: Mapping[str, str], keep: Collection[str] = ()) -> dict[str, str]:
    """The environment where a container or a virtual machine is the boundary: the same short list, and the places of temporary files and
    caches as they are named, because those are its own."""
    caches = cache_variables("", env, (os.sep,)).keys() - {"MAVEN_OPTS"}  # it may hold a password
    return _keep_listed(env, {*keep, *caches, "TMPDIR", "TMP", "TEMP"})


def _keep_listed(env: Mapping[str, str], keep: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name in _KEPT or name in keep or name.startswith(_KEPT_BEGINNINGS)}
