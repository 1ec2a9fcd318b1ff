"""Certificates, and what is trusted, for the tests of transports."""

from __future__ import annotations

import pytest

from certificates import Authority
from dragoman.http import tls
from dragoman.http.httpx_transport import HttpxTransport
from dragoman.http.transport import HttpTransport
from loopback_http import Client


@pytest.fixture(params=[HttpTransport, HttpxTransport], ids=["own", "httpx"])
def client(request: pytest.FixtureRequest) -> Client:
    """Each HTTP client there is. They keep the same promises."""
    return request.param


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def fresh_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: no TLS context yet, and no certificates named."""
    monkeypatch.setattr(tls, "_tls", None)
    monkeypatch.setattr(tls, "_tls_http2", None)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)


@pytest.fixture
def trusted(fresh_trust: None, monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
