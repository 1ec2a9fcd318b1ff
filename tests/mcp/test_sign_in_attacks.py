"""What a hostile server, issuer, web page or network can try in a sign-in, and does not get."""

from __future__ import annotations

import asyncio
import logging
import socket
import traceback
from collections.abc import Coroutine
from typing import Any
from urllib.parse import urlencode

import pytest
from mcp_issuer import Guarded, Issuer, ask, guarding
from visitor import Visitor

from dragoman.mcp_client.contracts import HttpServer, OAuthSettings
from dragoman.mcp_client.oauth.authorizer import OAuth, SignInFailed
from dragoman.mcp_client.oauth.login import login
from dragoman.mcp_client.oauth.loopback import Browser
from dragoman.mcp_client.oauth.requests import Requests
from dragoman.mcp_client.oauth.tokens import TokenStore
from dragoman.values.contracts import Transport
from dragoman.values.errors import ConfigError, DragomanError, Unauthorized
from loopback_http import Received, answer, serving


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


async def fail_to_log_in(guarded: Guarded, visitor: Visitor | None = None, requests: Requests | None = None) -> str:
    store = TokenStore()
    opened = Browser(lambda line: None, (visitor or Visitor()).visit, wait_s=2)
    with pytest.raises(DragomanError) as failed:
        await login(HttpServer(guarded.url), store, opened, requests=requests)
    assert store.signed_in() == {}
    shown = "".join(traceback.format_exception(failed.value))
    for secret in [
        *guarded.issuer.codes,
        *guarded.issuer.tokens,
        *(each.get("code_verifier", "-" * 99) for each in guarded.issuer.token_requests),
    ]:
        assert secret not in shown
    return str(failed.value)


# --- who answers for whom


@pytest.mark.parametrize("claimed", ["https://honest.example", "{url}/", "{url}/tenant", "HTTP://127.0.0.1", ""])
def test_an_issuer_that_says_it_is_another_is_not_used(claimed: str) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.metadata = {"issuer": claimed.format(url=guarded.issuer.url)}
            assert "says in its metadata that it is" in await fail_to_log_in(guarded)
            assert guarded.issuer.asked == ["/.well-known/oauth-authorization-server"]

    run(work())


@pytest.mark.parametrize("given", ["https://evil.example", "{url}/", None, ""])
def test_a_redirect_of_another_issuer_gives_no_code_away(given: str | None) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.redirected = {"iss": given.format(url=guarded.issuer.url) if given is not None else None}
            assert "did not come from" in await fail_to_log_in(guarded)
            assert guarded.issuer.token_requests == []

    run(work())


def test_of_a_mixed_up_answer_not_even_the_error_is_shown() -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.redirected = {"iss": "https://evil.example", "code": None, "error": "visit", "error_description": "evil.example"}
            assert "visit" not in await fail_to_log_in(guarded)

    run(work())


def test_what_an_issuer_says_about_its_refusal_is_shown_without_control_characters() -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.redirected = {"code": None, "error": "access_denied", "error_description": "no\x1b[2J\x07" + "x" * 5000}
            message = await fail_to_log_in(guarded)
            assert "access_denied" in message
            assert "\x1b" not in message
            assert len(message) < 600

    run(work())


@pytest.mark.parametrize("resource", ["https://evil.example/mcp", "{root}/other", "{root}/mcp/deeper", "{root}/mc", "javascript:1", ""])
def test_metadata_for_another_server_is_not_used(resource: str) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.metadata = {"resource": resource.format(root=guarded.url.removesuffix("/mcp"))}
            assert "is for another server" in await fail_to_log_in(guarded)
            assert guarded.issuer.asked == []

    run(work())


def test_without_pkce_nobody_is_sent_to_sign_in() -> None:
    async def work() -> None:
        for methods in (None, [], ["plain"]):
            async with guarding() as guarded:
                guarded.issuer.metadata = {"code_challenge_methods_supported": methods}
                assert "PKCE" in await fail_to_log_in(guarded)
                assert guarded.issuer.authorizations == []

    run(work())


# --- the browser's way back


def test_a_wrong_state_is_answered_and_forgotten_and_the_right_one_is_still_taken() -> None:
    async def work() -> None:
        attacker = Visitor()

        class Attacked(Visitor):
            async def visit(self, url: str) -> bool:
                asked = dict(pair.split("=", 1) for pair in url.partition("?")[2].split("&"))
                redirect = guarded.issuer.clients[asked["client_id"]]["redirect_uris"][0]
                root = redirect.removesuffix("/callback")
                for query in (
                    urlencode({"code": "evil", "state": "guessed"}),
                    urlencode({"code": "evil"}),
                    urlencode({"code": "evil", "state": ""}),
                    urlencode({"state": asked["state"]}),
                    urlencode([("code", "evil"), ("code", "other"), ("state", asked["state"])]),
                    urlencode({"error": "access_denied", "state": "x" * 40}),
                ):
                    await attacker.visit(f"{redirect}?{query}")
                await attacker.visit(f"{root}/other?code=evil&state={asked['state']}")
                await attacker.visit(f"{root}//evil.example/%2e%2e")
                return await super().visit(url)

        async with guarding() as guarded:
            store = TokenStore()
            await login(HttpServer(guarded.url), store, Browser(lambda line: None, Attacked().visit, wait_s=5))
            assert [each["code"] for each in guarded.issuer.token_requests] == ["code-secret-2"]
        assert [status for status, _, _ in attacker.pages] == [400] * 6 + [404] * 2, "and none is redirected anywhere"
        assert not any("evil" in page for _, _, page in attacker.pages)

    run(work())


def test_another_ones_code_is_not_redeemed() -> None:
    """Code injection: the right state, and a code that was issued for another sign-in. The verifier does not fit."""

    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.codes["stolen"] = {"client_id": "client-secret-1", "code_challenge": "of somebody else"}
            guarded.issuer.redirected = {"code": "stolen"}
            assert "invalid_grant" in await fail_to_log_in(guarded)

    run(work())


def test_a_page_that_comes_by_another_name_is_not_answered() -> None:
    async def work() -> None:
        statuses: list[str] = []

        class Rebound(Visitor):
            async def visit(self, url: str) -> bool:
                asked = dict(pair.split("=", 1) for pair in url.partition("?")[2].split("&"))
                port = int(guarded.issuer.clients[asked["client_id"]]["redirect_uris"][0].split(":")[2].split("/")[0])
                for host in ("evil.example", f"evil.example:{port}", ""):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(f"GET /callback?code=evil&state={asked['state']} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                    statuses.append((await reader.readline()).decode().split()[1])
                    writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /" + b"x" * 100_000)  # never ends
                done = await super().visit(url)
                writer.close()
                return done

        async with guarding() as guarded:
            await login(HttpServer(guarded.url), TokenStore(), Browser(lambda line: None, Rebound().visit, wait_s=5))
        assert statuses == ["404"] * 3

    run(work())


@pytest.mark.parametrize("uri", ["http://evil.example/callback", "https://127.0.0.1/x", "http://10.0.0.1:80/", "file:///etc", "http://[::"])
def test_a_redirect_to_elsewhere_cannot_be_configured(uri: str) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            opened = Browser(lambda line: None, Visitor().visit)
            with pytest.raises(ConfigError):
                await login(HttpServer(guarded.url), TokenStore(), opened, OAuthSettings(client_id="x", redirect_uri=uri))
            assert guarded.issuer.authorizations == []

    run(work())


# --- where requests go


@pytest.mark.parametrize(
    "endpoint",
    ["javascript:alert(1)", "file:///etc/passwd", "http://evil.example/token", "https://user:pw@evil.example/", "-x", "https://a b/"],
)
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
def test_an_endpoint_that_is_neither_https_nor_on_this_machine_is_not_used(name: str, endpoint: str) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.metadata = {name: endpoint}
            await fail_to_log_in(guarded)
            assert guarded.issuer.asked == ["/.well-known/oauth-authorization-server"]

    run(work())


class Outside(Transport):
    """Stands for the internet: everything that leaves is counted, and a server out there answers with a challenge of the test's."""

    def __init__(self, url: str, challenge: str, sent: list[str]) -> None:
        self._url, self._challenge, self._sent = url, challenge, sent

    def send(self, method: str, url: str, headers: Any, body: bytes) -> Any:
        self._sent.append(url)
        return _Response(401 if url == self._url else 404, {"www-authenticate": self._challenge})

    async def preconnect(self, url: str) -> None: ...

    async def aclose(self) -> None: ...


class _Response:
    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self.status, self.headers = status, headers

    async def __aenter__(self) -> _Response:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def chunks(self) -> Any:
        yield b""


@pytest.mark.parametrize(
    "place",
    [
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/",
        "https://192.168.1.1/admin",
        "https://[::1]/",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "http://127.0.0.1:8080/",
        "http://localhost:8080/",
        "https://localhost/",
        "https://router/",
        "https://printer.local/",
        "https://metadata.google.internal/",
        "https://rebound.example/",
        "https://0.0.0.0/",
        "https://100.64.0.1/",
    ],
)
def test_a_server_outside_cannot_make_us_ask_inside(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()

        async def resolve(host: str, port: int, **_: Any) -> list[Any]:
            address = "10.1.2.3" if host == "rebound.example" else "93.184.215.14"
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

        monkeypatch.setattr(loop, "getaddrinfo", resolve)
        url, sent = "https://mcp.example/mcp", list[str]()
        pinned: list[str] = []

        def pin(address: str) -> Transport:
            pinned.append(address)
            return Outside(url, f'Bearer resource_metadata="{place}"', sent)

        with pytest.raises(Unauthorized):
            await login(HttpServer(url), TokenStore(), Browser(lambda line: None, Visitor().visit), requests=Requests(url, pin))
        assert sent == [url]
        assert pinned == ["93.184.215.14"], "the address that was checked is the one that is connected to"

    run(work())


def test_a_token_endpoint_that_redirects_gets_no_second_request() -> None:
    async def work() -> None:
        caught: list[Received] = []

        async def catch(request: Received, writer: asyncio.StreamWriter) -> None:
            caught.append(request)
            writer.write(answer(b"{}"))
            await writer.drain()

        async with serving(catch) as elsewhere, guarding() as guarded:
            for status in ("301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"):
                guarded.issuer.token_answer = answer(b"", status, f"Location: {elsewhere.url}/token\r\n")
                assert "gave no token" in await fail_to_log_in(guarded)
        assert caught == []

    run(work())


def test_metadata_that_is_redirected_to_another_origin_is_not_read_there() -> None:
    async def work() -> None:
        async with guarding() as other, guarding() as guarded:
            place = f"{other.url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp"
            guarded.raw_metadata = answer(b"", "302 Found", f"Location: {place}\r\n")
            await fail_to_log_in(guarded)
            assert other.issuer.asked == []

    run(work())


def test_a_redirect_loop_ends() -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.raw_metadata = answer(b"", "302 Found", "Location: /.well-known/oauth-protected-resource/mcp\r\n")
            await fail_to_log_in(guarded)

    run(work())


# --- what comes back


def test_huge_metadata_is_not_read_to_its_end() -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.raw_metadata = answer(b'{"resource": "' + b"x" * 5_000_000 + b'"}')
            assert "is longer than 256 kB" in await fail_to_log_in(guarded)

    run(work())


@pytest.mark.parametrize("body", [b"[" * 100_000, b"\xff\xfe", b"[]", b"null", b'{"resource": 1, "authorization_servers": "x"}', b"{"])
def test_garbled_metadata_is_an_error_and_no_more(body: bytes) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.raw_metadata = answer(body)
            await fail_to_log_in(guarded)

    run(work())


def test_an_issuer_that_hangs_is_given_up_on() -> None:
    async def work() -> None:
        async with guarding(Issuer(pause_s=60)) as guarded:
            message = await fail_to_log_in(guarded, requests=Requests(guarded.url, timeout_s=0.2))
            assert "has not answered within" in message

    run(work())


def test_a_hanging_issuer_fails_a_request_and_not_the_next_one() -> None:
    async def work() -> None:
        async with guarding(Issuer(pause_s=60)) as guarded:
            oauth = OAuth(
                "notes",
                HttpServer(guarded.url),
                TokenStore(),
                None,
                Browser(lambda line: None, Visitor().visit),
                Requests(guarded.url, timeout_s=0.2),
            )
            status, challenges = await ask(guarded, {})
            with pytest.raises(SignInFailed):
                await oauth.refused(status, challenges, {})
            guarded.issuer.pause_s = 0
            assert await oauth.refused(status, challenges, {})

    run(work())


@pytest.mark.parametrize(
    "said",
    [
        b'{"access_token": "a\\r\\nX-Evil: 1", "token_type": "Bearer"}',
        b'{"access_token": "\\u00fc", "token_type": "Bearer"}',
        b'{"access_token": "", "token_type": "Bearer"}',
        b'{"access_token": 1, "token_type": "Bearer"}',
        b'{"access_token": "fine", "token_type": "mac"}',
        b'{"access_token": "fine"}',
        b"[]",
        b"",
    ],
)
def test_what_is_no_bearer_token_is_not_stored(said: bytes) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.token_answer = answer(said)
            assert "gave no token" in await fail_to_log_in(guarded)

    run(work())


@pytest.mark.parametrize("lifetime", [b"1e400", b"-5", b'"soon"', b"[]", b"99999999999999999999999"])
def test_an_odd_lifetime_does_no_harm(lifetime: bytes) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            guarded.issuer.token_answer = answer(b'{"access_token": "fine", "token_type": "bearer", "expires_in": ' + lifetime + b"}")
            try:
                await login(HttpServer(guarded.url), TokenStore(), Browser(lambda line: None, Visitor().visit, wait_s=2))
            except Unauthorized:
                pass

    run(work())


def test_neither_logs_nor_errors_have_a_token(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with guarding() as guarded:
            store = TokenStore()
            oauth = OAuth("notes", HttpServer(guarded.url), store, None, Browser(lambda line: None, Visitor().visit, wait_s=2))
            status, challenges = await ask(guarded, {})
            assert await oauth.refused(status, challenges, {})
            grant = store.grant(guarded.url)
            assert grant is not None
            shown = f"{oauth!r} {grant!r} {store.client(guarded.issuer.url)!r} {OAuthSettings(client_secret='client-secret')!r}"
            guarded.issuer.tokens.clear()
            guarded.issuer.token_answer = answer(
                f'{{"error": "invalid_grant", "error_description": "unknown: {grant.refresh_token}"}}'.encode(), "400 Bad Request"
            )
            again = OAuth("notes", HttpServer(guarded.url), store)
            signed = dict(await again.headers())
            with pytest.raises(SignInFailed) as failed:
                await again.refused(*(await ask(guarded, signed)), signed)
            shown += "".join(traceback.format_exception(failed.value)) + caplog.text
            assert set(again.secrets()) == {grant.access_token, grant.refresh_token}
            for secret in (grant.access_token, grant.refresh_token, "client-secret'"):
                assert secret not in shown

    with caplog.at_level(logging.DEBUG):
        run(work())


def test_a_refusal_that_is_not_about_scopes_asks_nobody() -> None:
    async def work() -> None:
        oauth = OAuth("notes", HttpServer("http://127.0.0.1:1/mcp"), TokenStore(), None, Browser(lambda line: None, Visitor().visit))
        assert not await oauth.refused(403, "", {})
        assert not await oauth.refused(403, 'Bearer error="invalid_token"', {})
        assert not await oauth.refused(500, "Bearer", {})
        with pytest.raises(SignInFailed):
            await oauth.refused(401, "", {})

    run(work())
