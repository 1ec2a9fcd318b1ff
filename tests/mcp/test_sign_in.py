"""Signing in to an MCP server, with a real authorization server on loopback and a browser that follows its redirects."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from mcp_issuer import SCOPE, Guarded, Issuer, ask, guarding
from visitor import Visitor

from dragoman.base.clock import now_ms
from dragoman.http.clients import open_transport
from dragoman.mcp_client.contracts import HttpServer, OAuthSettings
from dragoman.mcp_client.oauth.authorizer import OAuth, SignInFailed
from dragoman.mcp_client.oauth.clients import client_document
from dragoman.mcp_client.oauth.login import login, logout
from dragoman.mcp_client.oauth.loopback import Browser
from dragoman.mcp_client.oauth.requests import Requests
from dragoman.mcp_client.oauth.tokens import Grant, TokenStore
from dragoman.values.errors import ConfigError, Unauthorized
from dragoman.words import choose_language
from program import heed_signals


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


def store_in(tmp_path: Path) -> TokenStore:
    return TokenStore(str(tmp_path / "data" / "mcp_tokens.json"))


def browser(visitor: Visitor, told: list[str] | None = None) -> Browser:
    return Browser((told if told is not None else []).append, visitor.visit, wait_s=5)


async def send(guarded: Guarded, oauth: OAuth, tries: int = 4) -> int:
    """A request as the client sends it: repeated while the authorizer has another token."""
    status = 0
    for _ in range(tries):
        signed = dict(await oauth.headers())
        status, challenges = await ask(guarded, signed)
        if status not in (401, 403) or not await oauth.refused(status, challenges, signed):
            return status
    return status


def kept(store: TokenStore) -> str:
    return Path(store.file).read_text()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_login_opens_the_browser_waits_for_it_and_stores_the_token_for_the_user_alone(tmp_path: Path) -> None:
    async def work() -> None:
        told: list[str] = []
        visitor, store = Visitor(), store_in(tmp_path)
        async with guarding() as guarded:
            server = HttpServer(guarded.url)
            signed = await login(server, store, browser(visitor, told))
            assert (signed.issuer, signed.scopes, signed.stored_in) == (guarded.issuer.url, (SCOPE,), "file")
            assert await send(guarded, OAuth("notes", server, store_in(tmp_path))) == 200
            assert guarded.authorized == ["", "Bearer token-secret-3"]
        status, headers, page = visitor.pages[-1]
        assert status == 200
        assert "You may close this page" in page
        assert "您可以关闭此页面" in page
        assert "secret" not in page
        assert headers["cache-control"] == "no-store"
        assert guarded.issuer.authorizations[0]["resource"] == guarded.url
        assert guarded.issuer.authorizations[0]["redirect_uri"].startswith("http://127.0.0.1:")
        file = tmp_path / "data" / "mcp_tokens.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert guarded.issuer.url in file.read_text()
        assert guarded.issuer.authorizations[0]["state"] in "".join(told), "the whole address is shown, to be opened elsewhere"

    run(work())


def test_a_second_login_uses_the_registration_of_the_first_and_its_port(tmp_path: Path) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            for _ in range(2):
                await login(HttpServer(guarded.url), store_in(tmp_path), browser(Visitor()))
            assert guarded.issuer.asked.count("/register") == 1
            first, second = (asked["redirect_uri"] for asked in guarded.issuer.authorizations)
            assert first == second
            port = int(first.split(":")[2].split("/")[0])
            taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", port)
            await login(HttpServer(guarded.url), store_in(tmp_path), browser(Visitor()))
            taken.close()
            assert guarded.issuer.asked.count("/register") == 2, "its port is taken: registered with another"

    run(work())


def test_logout_forgets_the_token_and_tells_the_issuer(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded:
            server = HttpServer(guarded.url)
            assert await logout(server, store) is None
            await login(server, store, browser(Visitor()))
            assert store.signed_in() == {guarded.url: guarded.issuer.url}
            out = await logout(server, store)
            assert out is not None
            assert (out.issuer, out.is_revoked) == (guarded.issuer.url, True)
            assert guarded.issuer.revoked == ["refresh-secret-4"]
            assert "secret" not in kept(store)
            with pytest.raises(SignInFailed) as failed:
                await send(guarded, OAuth("notes", server, store))
            assert "nobody is signed in to notes" in str(failed.value)

    run(work())


def test_logout_goes_on_where_the_issuer_is_gone(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded:
            await login(HttpServer(guarded.url), store, browser(Visitor()))
        out = await logout(HttpServer(guarded.url), store)
        assert out is not None
        assert not out.is_revoked
        assert store.signed_in() == {}

    run(work())


def test_many_requests_that_are_refused_at_once_refresh_once_and_the_token_rotates(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded:
            server = HttpServer(guarded.url)
            await login(server, store, browser(Visitor()))
            guarded.issuer.tokens.clear()
            guarded.issuer.pause_s = 0.05
            oauth = OAuth("notes", server, store)
            assert await asyncio.gather(*(send(guarded, oauth) for _ in range(8))) == [200] * 8
            assert [each["grant_type"] for each in guarded.issuer.token_requests] == ["authorization_code", "refresh_token"]
            assert guarded.issuer.token_requests[1]["resource"] == guarded.url
            guarded.issuer.tokens.clear()
            assert await send(guarded, OAuth("notes", server, store_in(tmp_path))) == 200, "the next refresh token was stored"
            assert len(oauth.secrets()) == 4

    run(work())


def test_two_that_share_a_store_do_not_spend_a_refresh_token_twice(tmp_path: Path) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            server = HttpServer(guarded.url)
            await login(server, store_in(tmp_path), browser(Visitor()))
            both = [OAuth("notes", server, store_in(tmp_path)) for _ in range(2)]
            assert [await send(guarded, oauth) for oauth in both] == [200, 200]
            guarded.issuer.tokens.clear()
            guarded.issuer.pause_s = 0.05
            assert await asyncio.gather(*(send(guarded, oauth) for oauth in both)) == [200, 200]
            assert len(guarded.issuer.token_requests) == 2

    run(work())


def test_a_token_that_is_about_to_end_is_refreshed_before_it_is_sent(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding(Issuer(lifetime_s=10)) as guarded:
            server = HttpServer(guarded.url)
            await login(server, store, browser(Visitor()))
            guarded.issuer.lifetime_s = 3600
            guarded.authorized.clear()
            oauth = OAuth("notes", server, store)
            assert await asyncio.gather(*(send(guarded, oauth) for _ in range(3))) == [200] * 3
            assert set(guarded.authorized) == {"Bearer token-secret-5"}
            assert len(guarded.issuer.token_requests) == 2

    run(work())


def test_an_issuer_that_is_gone_is_not_asked_before_each_request(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding(Issuer(lifetime_s=10)) as guarded:
            server = HttpServer(guarded.url)
            await login(server, store, browser(Visitor()))
            guarded.issuer.pause_s = 30
            oauth = OAuth("notes", server, store, requests=Requests(guarded.url, timeout_s=0.2))
            assert [await send(guarded, oauth) for _ in range(3)] == [200] * 3, "the token is still good"
            assert guarded.issuer.asked.count("/token") == 2

    run(work())


def test_a_refresh_token_that_is_spent_asks_for_a_sign_in(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded:
            server = HttpServer(guarded.url)
            await login(server, store, browser(Visitor()))
            guarded.issuer.tokens.clear()
            guarded.issuer.refreshers.clear()
            with pytest.raises(SignInFailed):
                await send(guarded, OAuth("notes", server, store))
            assert await send(guarded, OAuth("notes", server, store, redirects=browser(Visitor()))) == 200

    run(work())


def test_a_missing_scope_is_asked_for_once_with_those_that_were_given_before(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded:
            guarded.needs = "notes:write"
            oauth = OAuth("notes", HttpServer(guarded.url), store, redirects=browser(Visitor()))
            assert await send(guarded, oauth) == 200
            assert [asked["scope"] for asked in guarded.issuer.authorizations] == [SCOPE, f"notes:write {SCOPE}"]

    run(work())


def test_a_server_that_wants_ever_more_is_given_up_on(tmp_path: Path) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            oauth = OAuth("notes", HttpServer(guarded.url), TokenStore(), redirects=browser(Visitor()))
            assert await send(guarded, oauth) == 200

            async def want_more() -> None:
                for number in range(10):
                    guarded.needs = f"more:{number}"
                    await send(guarded, oauth)

            with pytest.raises(SignInFailed) as failed:
                await want_more()
            assert "asked for more permissions 3 times" in str(failed.value)
            assert len(guarded.issuer.authorizations) == 4

    run(work())


def test_a_scope_that_nobody_could_be_asked_for_is_asked_for_at_the_next_login(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded:
            server = HttpServer(guarded.url)
            await login(server, store, browser(Visitor()))
            guarded.needs = "notes:write"
            with pytest.raises(SignInFailed):
                await send(guarded, OAuth("notes", server, store))
            await login(server, store, browser(Visitor()))
            assert "notes:write" in guarded.issuer.authorizations[-1]["scope"].split()
            assert await send(guarded, OAuth("notes", server, store)) == 200

    run(work())


def test_where_there_is_no_browser_the_address_is_shown_and_a_pasted_one_taken() -> None:
    async def work() -> None:
        told: list[str] = []
        visitor, lines = Visitor(), asyncio.Queue[str]()

        asked = asyncio.Event()

        async def no_browser(url: str) -> bool:
            asked.set()
            return False

        async def elsewhere() -> None:
            await asked.wait()
            url = next(word for line in told for word in line.split() if "/authorize?" in word)
            # The browser on another machine gets the redirect, and cannot follow it.
            transport = open_transport()
            async with transport.send("GET", url, {}, b"") as response:
                redirect = response.headers["location"]
            await transport.aclose()
            for line in ("hello", redirect.replace("state=", "state=x"), f"  {redirect}\n"):
                lines.put_nowait(line)

        async with guarding() as guarded:
            store = TokenStore()
            asking = asyncio.create_task(elsewhere())
            await login(HttpServer(guarded.url), store, Browser(told.append, no_browser, lines.get, wait_s=5))
            await asking
            assert store.signed_in() == {guarded.url: guarded.issuer.url}
        assert sum("Paste the whole address" in line for line in told) == 2
        assert any("paste that page's address here" in line for line in told)
        assert not visitor.visited

    run(work())


def test_nobody_comes_and_the_waiting_ends() -> None:
    async def work() -> None:
        async def open_nothing(url: str) -> bool:
            return True

        async with guarding() as guarded:
            with pytest.raises(Unauthorized) as failed:
                await login(HttpServer(guarded.url), TokenStore(), Browser(lambda line: None, open_nothing, wait_s=0.1))
            assert "nobody signed in" in str(failed.value)

    run(work())


def test_ctrl_c_ends_the_waiting_at_once(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys
sys.path[:0] = {[str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]!r}
from mcp_issuer import guarding
from dragoman.mcp_client.contracts import HttpServer
from dragoman.mcp_client.oauth.login import login
from dragoman.mcp_client.oauth.loopback import Browser
from dragoman.mcp_client.oauth.tokens import TokenStore
async def open_nothing(url): return True
async def main():
    async with guarding() as guarded:
        await login(HttpServer(guarded.url), TokenStore(), Browser(lambda line: print(line, flush=True), open_nothing))
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("ended", flush=True)
"""
    argv = [sys.executable, "-c", code]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=tmp_path, preexec_fn=heed_signals) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "Waiting for the browser" in line:
                    break
            os.kill(process.pid, signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert rest == "ended\n"


def test_a_client_id_set_by_hand_is_used_with_its_secret_and_stays_with_its_issuer(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        settings = OAuthSettings(client_id="by hand:1", client_secret="a b&c")
        async with guarding() as guarded, guarding() as other:
            guarded.issuer.metadata = {"registration_endpoint": None}
            guarded.issuer.clients["by hand:1"] = _AnyRedirect()
            await login(HttpServer(guarded.url), store, browser(Visitor()), settings)
            assert "client_id" not in guarded.issuer.token_requests[0], "it came as Basic"
            guarded.metadata = {"authorization_servers": [other.issuer.url]}
            guarded.issuer.tokens.clear()
            for authorizer in (OAuth("notes", HttpServer(guarded.url), store, settings, browser(Visitor())),):
                with pytest.raises(SignInFailed) as failed:
                    await send(guarded, authorizer)
                assert "belongs to the authorization server" in str(failed.value)
            assert other.issuer.authorizations == other.issuer.token_requests == []

    run(work())


class _AnyRedirect(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        class Anything:
            def __contains__(self, item: object) -> bool:
                return True

        return Anything()


def test_an_issuer_that_takes_documents_gets_the_url_of_ours() -> None:
    async def work() -> None:
        url = "https://example.com/dragoman.json"
        async with guarding() as guarded:
            guarded.issuer.metadata = {"client_id_metadata_document_supported": True}
            guarded.issuer.clients[url] = _AnyRedirect()
            await login(HttpServer(guarded.url), TokenStore(), browser(Visitor()), OAuthSettings(client_metadata_url=url))
            assert guarded.issuer.authorizations[0]["client_id"] == url
            assert "/register" not in guarded.issuer.asked

    run(work())
    document = client_document(url="https://example.com/dragoman.json")
    assert {"client_id", "client_name", "redirect_uris"} <= set(document)


def test_an_issuer_that_registers_nobody_says_what_to_do() -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.metadata = {"registration_endpoint": None}
            with pytest.raises(Unauthorized) as failed:
                await login(HttpServer(guarded.url), TokenStore(), browser(Visitor()))
            assert "register one there and set its client id" in str(failed.value)

    run(work())


def test_another_issuer_gets_a_registration_of_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        store = store_in(tmp_path)
        async with guarding() as guarded, guarding(Issuer(number=100)) as other:
            server = HttpServer(guarded.url)
            await login(server, store, browser(Visitor()))
            old = store.grant(guarded.url)
            assert old is not None
            guarded.metadata = {"authorization_servers": [other.issuer.url]}
            guarded.issuer, before = other.issuer, guarded.issuer
            assert await send(guarded, OAuth("notes", server, store, redirects=browser(Visitor()))) == 200
            assert other.issuer.asked.count("/register") == 1
            assert len(before.token_requests) == 1, "the refresh token was not tried with an issuer that is not the server's any more"
            assert store.signed_in() == {guarded.url: other.issuer.url}
            assert old.access_token not in kept(store)

    run(work())


def test_the_token_is_in_the_keyring_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring

    from keyring_backend import FileKeyring

    monkeypatch.setenv("TEST_KEYRING", str(tmp_path / "keyring.json"))
    monkeypatch.setattr(keyring, "get_keyring", FileKeyring)
    store = store_in(tmp_path)
    grant = Grant("https://issuer.example", "https://mcp.example", "token-secret", "https://issuer.example/token", "client")
    assert store.keep_grant("https://mcp.example/", grant) == "keyring"
    assert "token-secret" not in Path(store.file).read_text()
    assert "token-secret" in (tmp_path / "keyring.json").read_text()
    assert store_in(tmp_path).grant("https://mcp.example") == grant
    assert store.drop_grant("https://mcp.example")
    assert "token-secret" not in (tmp_path / "keyring.json").read_text()


def test_a_damaged_file_is_named_and_nothing_of_it_shown(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    Path(store.file).parent.mkdir()
    Path(store.file).write_text('{"keys": {"token https://x.example y": "token-secret"')
    with pytest.raises(ConfigError) as failed:
        store.grant("https://x.example")
    assert store.file in str(failed.value)
    assert "token-secret" not in str(failed.value)


def test_a_port_that_is_taken_is_named_where_the_redirect_is_set_by_hand() -> None:
    async def work() -> None:
        taken = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        uri = f"http://127.0.0.1:{taken.sockets[0].getsockname()[1]}/callback"
        async with guarding() as guarded:
            settings = OAuthSettings(client_id="by-hand", redirect_uri=uri)
            with pytest.raises(ConfigError) as failed:
                await login(HttpServer(guarded.url), TokenStore(), browser(Visitor()), settings)
            assert uri in str(failed.value)
        taken.close()

    run(work())


def test_the_words_are_there_in_chinese_too() -> None:
    choose_language("zh")
    try:
        oauth = OAuth("notes", HttpServer("http://127.0.0.1:1/mcp"), TokenStore())

        async def work() -> None:
            with pytest.raises(SignInFailed) as failed:
                await oauth.refused(401, "", {})
            assert "登录 MCP 服务器 notes 失败" in str(failed.value)

        run(work())
    finally:
        choose_language("en")


def test_a_grant_that_ends_soon_is_stale_and_one_that_says_nothing_is_not() -> None:
    grant = Grant("i", "r", "t", "e", "c")
    assert not grant.is_stale
    assert Grant("i", "r", "t", "e", "c", expires_ms=now_ms() + 10_000).is_stale
    assert not Grant("i", "r", "t", "e", "c", expires_ms=now_ms() + 100_000).is_stale
    assert "'t'" not in repr(grant)
