"""What a sign-in reads from strangers: challenges, URLs and redirects."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.mcp_client.oauth.challenges import Challenge, parse_challenges, read_challenge
from dragoman.mcp_client.oauth.clients import Client
from dragoman.mcp_client.oauth.discovery import _issuer_places, _resource_places
from dragoman.mcp_client.oauth.flow import challenge_of
from dragoman.mcp_client.oauth.tokens import Grant, TokenStore
from dragoman.mcp_client.oauth.urls import canonical, check_url, covers, is_inside, origin_of
from dragoman.values.errors import Unauthorized

NAMES = st.text("abcdefghijklmnopqrstuvwxyz_-", min_size=1, max_size=10)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
CHALLENGES = st.lists(st.tuples(NAMES, st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)), min_size=1, max_size=4)


def rendered(challenges: list[tuple[str, dict[str, str]]]) -> str:
    def quoted(value: str) -> str:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return ", ".join(f"{scheme} " + ", ".join(f"{name}={quoted(value)}" for name, value in each.items()) for scheme, each in challenges)


@given(CHALLENGES)
def test_challenges_are_read_as_they_were_written(challenges: list[tuple[str, dict[str, str]]]) -> None:
    assert parse_challenges(rendered(challenges)) == challenges


@given(st.text(max_size=300))
def test_no_header_breaks_the_reader(header: str) -> None:
    read_challenge(header)


@pytest.mark.parametrize(
    "header", ['a="' * 100_000, "Bearer " + "a=" * 100_000, "Bearer " + "\\" * 100_000, "," * 100_000, 'Bearer x="\\' * 50_000]
)
def test_a_hostile_header_takes_no_time(header: str) -> None:
    began = time.process_time()
    read_challenge(header)
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("", Challenge()),
        ("Bearer", Challenge()),
        ('Bearer scope="a b", resource_metadata="https://x/y"', Challenge("https://x/y", "a b")),
        ('bearer error=insufficient_scope,scope="a"', Challenge("", "a", "insufficient_scope")),
        ('Basic realm="x", Bearer realm="y", scope="z"', Challenge("", "z")),
        ('Negotiate abc==, Bearer scope="z"', Challenge("", "z")),
        ('Basic realm="Bearer scope=evil"', Challenge()),
        ('Bearer scope="first", scope="second"', Challenge("", "first")),
    ],
)
def test_the_bearer_challenge_is_found(header: str, read: Challenge) -> None:
    assert read_challenge(header) == read


@pytest.mark.parametrize(
    "url",
    [
        "https://x.example",
        "https://x.example:8443/a/b",
        "http://127.0.0.1:80/x",
        "http://localhost/x",
        "http://[::1]:8/x",
        "https://10.0.0.1/",
    ],
)
def test_a_url_that_may_be_used_stays_as_it_is(url: str) -> None:
    assert check_url(url, what="it") == url


WRONG = """|x|http://x.example|ftp://x|https://|https://u@x/|https://x/#f|https://x/#|https://x:99999/|https://x/ y|https://x\\y/|https://[x/\
|http://127.0.0.1.evil.example/|http://localhost.evil.example/"""


@pytest.mark.parametrize("url", [*WRONG.split("|"), "https://x/\n", "https://x/" + "y" * 9000])
def test_a_url_that_may_not_be_used_is_refused(url: str) -> None:
    with pytest.raises(Unauthorized):
        check_url(url, what="it")


@given(st.text(max_size=60))
def test_no_url_breaks_the_check(url: str) -> None:
    try:
        assert check_url(f"https://{url}", what="it") == f"https://{url}"
    except Unauthorized:
        return
    origin_of(f"https://{url}")
    is_inside(f"https://{url}")
    assert covers(canonical(f"https://{url}"), f"https://{url}")


def test_where_metadata_is_looked_for_and_in_which_order() -> None:
    root = "https://x.example/.well-known"
    assert _resource_places("https://x.example/public/mcp", "") == [
        f"{root}/oauth-protected-resource/public/mcp",
        f"{root}/oauth-protected-resource",
    ]
    assert _resource_places("https://x.example/", "") == [f"{root}/oauth-protected-resource"]
    assert _resource_places("https://x.example/mcp", "https://y.example/z") == ["https://y.example/z"]
    assert _issuer_places("https://x.example") == [f"{root}/oauth-authorization-server", f"{root}/openid-configuration"]
    assert _issuer_places("https://x.example/tenant1") == [
        f"{root}/oauth-authorization-server/tenant1",
        f"{root}/openid-configuration/tenant1",
        "https://x.example/tenant1/.well-known/openid-configuration",
    ]


def test_the_challenge_of_a_verifier_is_that_of_the_standard() -> None:
    # RFC 7636, appendix B.
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


URLS = st.sampled_from(["https://a.example/mcp", "https://a.example/mcp2", "https://a.example/", "https://b.example:8443/mcp"])
ISSUERS = st.sampled_from(["https://i.example", "https://j.example/t"])


@given(st.lists(st.tuples(URLS, ISSUERS, st.text("abc", min_size=1, max_size=5)), max_size=12))
def test_of_many_sign_ins_the_last_of_each_server_is_kept(sign_ins: list[tuple[str, str, str]]) -> None:
    store = TokenStore()
    last: dict[str, Grant] = {}
    for url, issuer, token in sign_ins:
        last[url] = Grant(issuer, url, token, f"{issuer}/token", "client", requested=(token,))
        store.keep_grant(url, last[url])
        store.keep_client(issuer, Client("client"))
    assert {url: store.grant(url) for url in last} == last
    assert store.signed_in() == {canonical(url): grant.issuer for url, grant in last.items()}
    for url in last:
        assert store.drop_grant(url)
        assert store.grant(url) is None
    assert store.signed_in() == {}


def test_a_token_of_another_release_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    file = tmp_path / "tokens.json"
    file.write_text('{"keys": {"token https://a.example https://i.example": {"stored_in": "file", "added_ms": 1, "key": "{}"}}}')
    file.chmod(0o600)
    assert TokenStore(str(file)).grant("https://a.example") is None


def test_one_holder_at_a_time_refreshes(tmp_path: Path) -> None:
    async def work() -> None:
        store, inside = TokenStore(str(tmp_path / "tokens.json")), list[int]()

        def refresh() -> None:
            with store.alone():
                inside.append(1)
                assert sum(inside) == 1
                time.sleep(0.02)
                inside.pop()

        await asyncio.gather(*(asyncio.to_thread(refresh) for _ in range(4)))

    asyncio.run(work())
