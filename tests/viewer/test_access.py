"""Who is let in: the address once, its key as a header, and nobody else, whatever they send."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman.viewer import socket_owners
from dragoman.viewer.server import CONNECTIONS
from dragoman.viewer.socket_owners import find_user, is_own_connection, read_user
from program import Place
from viewer.browsing import Serving, serving

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    found = Place(tmp_path_factory.mktemp("access"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Serving]:
    with serving(place) as found:
        yield found


def ask(server: Serving, method: str, path: str, headers: dict[str, str] | None = None, body: str = "") -> tuple[int, dict[str, str], Any]:
    host = server.url.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request(method, path, body or None, headers or {})
        answer = connection.getresponse()
        data = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, found, json.loads(data) if data and found.get("content-type", "").startswith("application/json") else data
    finally:
        connection.close()


def token_of(address: str) -> str:
    found = re.search(r"token=(\S+)", address)
    assert found is not None
    return found.group(1)


def key_of(server: Serving) -> str:
    body = json.dumps({"token": token_of(server.address())})
    return ask(server, "POST", "/api/key", JSON, body)[2]["key"]


def test_an_address_lets_one_page_in_and_its_key_is_asked_for_everywhere(server: Serving) -> None:
    body = json.dumps({"token": token_of(server.address())})
    status, headers, answer = ask(server, "POST", "/api/key", JSON, body)
    assert (status, set(answer)) == (200, {"key"})
    assert "set-cookie" not in headers
    assert ask(server, "POST", "/api/key", JSON, body)[0] == 401  # used

    for path in ("/api/about", "/api/sessions", "/api/sessions/x", "/api/sessions/x/request", "/api/token", "/api/nothing"):
        assert ask(server, "GET", path)[0] == 401
        assert ask(server, "GET", path, {"x-dragoman-key": "wrong"})[0] == 401
        assert ask(server, "GET", f"{path}?key={answer['key']}", {"cookie": f"key={answer['key']}"})[0] == 401
    assert ask(server, "GET", "/api/sessions", {"x-dragoman-key": answer["key"]})[0] == 200


def test_a_page_that_has_a_key_gets_addresses_for_more_pages(server: Serving) -> None:
    key = key_of(server)
    status, _, answer = ask(server, "POST", "/api/token", JSON | {"x-dragoman-key": key}, "{}")
    assert (status, answer["url"].partition("#")[0]) == (200, server.url)


def test_every_answer_forbids_what_a_page_does_not_need(server: Serving) -> None:
    for path in ("/", "/main.js", "/words.json", "/api/sessions", "/none"):
        _, headers, _ = ask(server, "GET", path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none';")
        assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert not [name for name in headers if name.startswith("access-control") or name == "set-cookie"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", "[::1]:{port}", ""])
def test_a_name_that_was_pointed_at_this_machine_is_refused(server: Serving, host: str) -> None:
    port = server.url.rstrip("/").rpartition(":")[2]
    for path in ("/", "/api/sessions", "/api/key"):
        assert ask(server, "GET", path, {"host": host.format(port=port), "x-dragoman-key": key_of(server)})[0] == 421
    assert ask(server, "GET", "/", {"host": f"localhost:{port}"})[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", "file://"])
def test_another_page_is_refused_even_with_the_key(server: Serving, origin: str) -> None:
    key = {"x-dragoman-key": key_of(server)}
    assert ask(server, "GET", "/api/sessions", key | {"origin": origin})[0] == 403
    assert ask(server, "POST", "/api/token", JSON | key | {"origin": origin}, "{}")[0] == 403
    status, headers, _ = ask(server, "OPTIONS", "/api/sessions", {"origin": origin, "access-control-request-headers": "x-dragoman-key"})
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


def test_what_the_browser_says_of_the_asking_page_counts(server: Serving) -> None:
    key = {"x-dragoman-key": key_of(server)}
    for site in ("cross-site", "same-site"):
        assert ask(server, "GET", "/api/sessions", key | {"sec-fetch-site": site, "sec-fetch-mode": "cors"})[0] == 403
        assert ask(server, "GET", "/main.js", {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"})[0] == 403
        assert ask(server, "GET", "/", {"sec-fetch-site": site, "sec-fetch-mode": "navigate"})[0] == 200  # a link in a mail
    assert ask(server, "GET", "/api/sessions", key | {"sec-fetch-site": "same-origin"})[0] == 200


def test_what_a_form_can_send_is_refused(server: Serving) -> None:
    key = {"x-dragoman-key": key_of(server)}
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert ask(server, "POST", "/api/token", key | {"content-type": kind}, "{}")[0] == 415
    for method in ("PUT", "DELETE", "PATCH", "HEAD", "TRACE"):
        assert ask(server, method, "/api/sessions", key)[0] == 405
    for body in ("[]", "1", "{", '"x"'):
        assert ask(server, "POST", "/api/key", JSON, body)[0] in (400, 401)


def raw(server: Serving, data: bytes) -> bytes:
    host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has hung up already
        received = b""
        try:
            while piece := connection.recv(65536):
                received += piece
        except OSError:
            pass
        return received


def test_what_is_not_http_or_too_much_of_it_ends_the_connection_and_no_more(server: Serving) -> None:
    host = server.url.removeprefix("http://").rstrip("/").encode()
    head = b"POST /api/key HTTP/1.1\r\nHost: " + host + b"\r\nContent-Type: application/json\r\n"
    assert raw(server, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(server, head + b"Content-Length: 99999999\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert raw(server, head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}").startswith(b"HTTP/1.1 400")
    assert raw(server, b"GET / HTTP/1.1\r\nHost: evil.example\r\nHost: " + host + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert b" 200 " not in raw(server, b"GET / HTTP/1.1\r\nX: " + b"x" * 5_000_000 + b"\r\n\r\n")[:100]
    assert b" 200 " not in raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n" + b"400000\r\n" + b"x" * 9_000_000)[:100]
    assert raw(server, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 60_000).startswith(b"HTTP/1.1 400")
    assert ask(server, "GET", "/")[0] == 200


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 1_0",
        b"Content-Length: +2",
        b"Content-Length: -1",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked\r\n\r\n0x2",
        b"Transfer-Encoding: chunked\r\n\r\n-2",
        b"Content-Length : 2",
        b"X: y\r\n Content-Length: 2",
        b"X: y\rContent-Length: 2",
        b"Content-Length\0: 2",
        b"Transfer-Encoding: \x0bchunked",
        b"Transfer-Encoding: chunked\r\n\r\n 2",
        b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX",
    ],
)
def test_a_body_whose_length_two_readers_could_take_differently_is_refused(server: Serving, framing: bytes) -> None:
    host = server.url.removeprefix("http://").rstrip("/").encode()
    head = b"POST /api/key HTTP/1.1\r\nHost: " + host + b"\r\nContent-Type: application/json\r\n"
    assert raw(server, head + framing + b"\r\n\r\n{}\r\n0\r\n\r\n").startswith(b"HTTP/1.1 400")


def test_what_is_asked_for_need_not_be_a_path(server: Serving) -> None:
    host = server.url.removeprefix("http://").rstrip("/").encode()
    for target in (b"*", b"http://evil.example/api/sessions", b"//evil.example/", b"%", b"/%ff%00"):
        assert raw(server, b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n").startswith(b"HTTP/1.1 404")
    many = "&".join(["a=1"] * 1000)
    assert ask(server, "GET", f"/api/sessions?{many}", {"x-dragoman-key": key_of(server)})[0] == 200


def test_connections_that_ask_for_nothing_hold_up_nobody(server: Serving) -> None:
    host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
    held: list[socket.socket] = []
    try:
        for _ in range(CONNECTIONS + 20):
            held.append(socket.create_connection((host, int(port)), timeout=60))
            held[-1].sendall(b"GET / HTTP/1.1\r\nHo")
        for _ in range(3):
            assert ask(server, "GET", "/")[0] == 200
    finally:
        for connection in held:
            connection.close()


def test_connections_that_take_no_answer_hold_up_nobody(server: Serving) -> None:
    host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
    asks = f"GET /vendor/uplot.js HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode() * 400
    held: list[socket.socket] = []
    try:
        for _ in range(CONNECTIONS + 20):
            held.append(socket.create_connection((host, int(port)), timeout=60))
            held[-1].setblocking(False)
            with suppress(BlockingIOError):
                held[-1].sendall(asks)
        for _ in range(3):
            assert ask(server, "GET", "/")[0] == 200
    finally:
        for connection in held:
            connection.close()


def test_the_kernel_says_whose_connection_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        with socket.create_connection(listening.getsockname()) as client, listening.accept()[0]:
            assert find_user(client.getsockname(), listening.getsockname()) == os.getuid()
            assert is_own_connection(client.getsockname(), listening.getsockname())
            monkeypatch.setattr(os, "getuid", lambda: 54321)
            assert not is_own_connection(client.getsockname(), listening.getsockname())


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_is_asked_about_one_socket_and_says_what_its_list_says(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, 0), family=family)
        socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 4).close()
    except OSError as error:
        pytest.skip(f"this machine lacks it: {error}")
    listed, own = read_user, listening.getsockname()[:2]
    monkeypatch.setattr(socket_owners, "read_user", lambda *_: pytest.fail("the whole list was read"))
    with listening:
        for _ in range(20):
            with socket.create_connection(own) as client:
                peer = client.getsockname()[:2]
                accepted = listening.accept()[0]
                with accepted:
                    assert find_user(peer, own) == listed(peer, own) == os.getuid()
                    client.close()
                    assert find_user(peer, own) == listed(peer, own) == -1, "nobody holds it any more"


def test_who_listens_at_the_port_of_a_client_is_not_taken_for_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as listening:
        assert find_user(other.getsockname(), listening.getsockname()) == -1


def test_where_the_kernel_cannot_be_asked_its_list_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as client:
        addresses = client.getsockname(), listening.getsockname()
        monkeypatch.setattr(socket_owners, "_SOCK_DIAG", 31)  # nobody answers there
        assert find_user(*addresses) == os.getuid()


def test_the_port_of_ours_at_another_address_is_not_ours() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        own = listening.getsockname()
        with socket.create_connection(own) as client, listening.accept()[0]:
            port = client.getsockname()[1]
            assert not any(is_own_connection((f"127.0.0.{last}", port), own) for last in (2, 3, 4))
            assert not is_own_connection(client.getsockname(), ("127.0.0.2", own[1]))


def test_the_kernel_says_whose_connection_over_ipv6_it_is() -> None:
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with listening, socket.create_connection(listening.getsockname()[:2]) as client, listening.accept()[0]:
        assert find_user(client.getsockname()[:2], listening.getsockname()[:2]) == os.getuid()
        assert find_user(("::2", client.getsockname()[1]), listening.getsockname()[:2]) == -1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_of_this_machine_reads_nothing(server: Serving) -> None:
    host, _, port = server.url.removeprefix("http://").rstrip("/").partition(":")
    ours, theirs = socket.socketpair()
    child = os.fork()
    if not child:
        try:
            os.setgid(65534)
            os.setuid(65534)
            with socket.create_connection((host, int(port)), timeout=60) as connection:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: " + f"{host}:{port}".encode() + b"\r\nConnection: close\r\n\r\n")
                theirs.sendall(b"read:" + connection.recv(100))
        except OSError:
            theirs.sendall(b"read:")
        finally:
            os._exit(0)
    with ours, theirs:
        assert ours.recv(1000) == b"read:"
    os.waitpid(child, 0)
    assert ask(server, "GET", "/")[0] == 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "0.0.0.0"), "--origin"),
        (("--host", "192.0.2.1"), "password"),
        (("--host", "192.0.2.1", "--tls-cert", "c.pem", "--tls-key", "k.pem"), "password"),
        (("--host", "0.0.0.0", "--origin", "https://x.example", "--port", "0"), "--port"),
        (("--origin", "x.example"), "--origin"),
        (("--origin", "https://user@x.example"), "--origin"),
        (("--origin", "javascript:alert(1)"), "--origin"),
        (("--origin", "https://[::1"), "--origin"),
        (("--origin", "https://x.example:port"), "--origin"),
        (("--origin", "https://x.example:99999"), "--origin"),
        (("--origin", "https://*.example"), "--origin"),
        (("nothing-like-that",), "nothing-like-that"),
    ],
)
def test_it_listens_nowhere_else_without_a_password_and_tls(place: Place, arguments: tuple[str, ...], words: str) -> None:
    done = place.run("view", "--no-open", *arguments)
    assert done.code != 0
    assert words in done.err
    assert "http" not in done.out


def test_an_origin_that_was_named_is_let_in(place: Place) -> None:
    with serving(place, "--origin", "https://VIEW.example:443/") as server:
        assert server.first.startswith("https://view.example/#/?token=")
        server.url = server.read_address() + "/"
        body = json.dumps({"token": token_of(server.first)})
        theirs = {"host": "view.example", "origin": "https://view.example"}
        status, _, answer = ask(server, "POST", "/api/key", JSON | theirs, body)
        assert status == 200
        assert ask(server, "GET", "/api/sessions", theirs | {"x-dragoman-key": answer["key"]})[0] == 200
        assert ask(server, "GET", "/api/sessions", {"origin": "https://other.example", "x-dragoman-key": answer["key"]})[0] == 403


def test_the_key_is_nowhere_on_disk(place: Place, server: Serving) -> None:
    key = key_of(server)
    assert not [path for path in Path(place.home).rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
