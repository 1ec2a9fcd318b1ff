"""Every way in, with real commands and a real token endpoint, and no secret where it does not belong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.fetched_tokens import REMEMBERED
from dragoman.providers.auth import Auth, KeyAuth, NoAuth, with_env_headers
from dragoman.providers.catalog import builtin_catalog
from dragoman.providers.connect import auth_for, connect
from dragoman.providers.fetched_auth import CommandAuth, InjectedAuth
from dragoman.providers.google_auth import VertexAuth
from dragoman.testing.mock.server import MockServer
from dragoman.testing.script import Script
from dragoman.testing.script_steps import Fail
from dragoman.testing.script_steps import answer as say_it
from dragoman.values.errors import BadRequest, ConfigError, Unauthorized
from dragoman.values.messages import Request, user
from dragoman.values.profile import Deployment
from loopback_http import Received, answer, serving

SECRET = "sk-very-secret-0123456789"


def deployment(**changes: Any) -> Deployment:
    row: dict[str, Any] = {"name": "acme", "protocol": "openai_chat", "base_url": "https://api.acme.test", "title": "Acme"}
    return Deployment(**row | {"key_env": ("ACME_API_KEY", "ACME_TOKEN")} | changes)


def headers(auth: Auth) -> dict[str, str]:
    return asyncio.run(auth.headers())


# --- headers of the environment ---------------------------------------------------------------------------------------------------

ROW = {
    "token_env": ("ACME_AUTH_TOKEN",),
    "auth": "x-api-key",
    "env_headers": {"Acme-Organization": "ACME_ORG_ID", "Acme-Project": "ACME_PROJECT_ID"},
    "headers_env": "ACME_CUSTOM_HEADERS",
}


def test_headers_that_the_environment_has_go_with_the_key() -> None:
    env = {"ACME_API_KEY": SECRET, "ACME_ORG_ID": " org-1\n", "ACME_PROJECT_ID": "  "}
    found = auth_for(deployment(**ROW), env, None)
    assert headers(found) == {"x-api-key": SECRET, "Acme-Organization": "org-1"}
    assert found.secrets() == (SECRET,)
    assert SECRET not in repr(found)


def test_headers_that_the_user_wrote_are_sent_and_kept_secret() -> None:
    env = {"ACME_API_KEY": SECRET, "ACME_CUSTOM_HEADERS": "X-Gateway: hush-hush-hush\n\n  X-Other :a: b \r\n"}
    found = auth_for(deployment(**ROW), env, None)
    assert headers(found) == {"x-api-key": SECRET, "X-Gateway": "hush-hush-hush", "X-Other": "a: b"}
    assert set(found.secrets()) == {SECRET, "hush-hush-hush", "a: b"}
    assert "hush" not in repr(found)


def test_a_header_that_the_user_wrote_replaces_ours_whatever_its_case() -> None:
    env = {"ACME_API_KEY": SECRET, "ACME_CUSTOM_HEADERS": "X-API-KEY: another"}
    assert headers(auth_for(deployment(**ROW), env, None)) == {"X-API-KEY": "another"}


def test_a_token_is_a_bearer_token_and_a_key_is_used_first() -> None:
    both = {"ACME_API_KEY": SECRET, "ACME_AUTH_TOKEN": "a-token-0123"}
    assert headers(auth_for(deployment(**ROW), both, None)) == {"x-api-key": SECRET}
    assert headers(auth_for(deployment(**ROW), {"ACME_AUTH_TOKEN": "a-token-0123"}, None)) == {"Authorization": "Bearer a-token-0123"}
    with pytest.raises(Unauthorized, match="ACME_AUTH_TOKEN"):
        auth_for(deployment(**ROW), {}, None)


def test_a_token_source_of_ones_own_gets_them_too_and_is_renewed_as_before() -> None:
    tokens = iter(["first-token", "second-token", "third-token"])
    row = deployment(**ROW)
    found = with_env_headers(InjectedAuth(lambda: next(tokens)), row, {"ACME_ORG_ID": "org-1"})
    sent = headers(found)
    assert sent == {"Authorization": "Bearer first-token", "Acme-Organization": "org-1"}
    assert asyncio.run(found.refresh(sent)) is True
    assert with_env_headers(found, row, {"ACME_ORG_ID": "org-1"}) is found


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ACME_ORG_ID", "org-1\r\nX-Evil: 1", "ACME_ORG_ID has a line break (position 6 of 16), which a header cannot contain"),
        ("ACME_ORG_ID", "組織-1", "ACME_ORG_ID has a character that a header cannot contain (position 1 of 4)"),
        ("ACME_ORG_ID", "org\x00", "ACME_ORG_ID has a character that a header cannot contain (position 4 of 4)"),
        (
            "ACME_CUSTOM_HEADERS",
            "X-A: 1\nno header at all",
            "ACME_CUSTOM_HEADERS: line 2 is not a header that can be set; write Name: value on each line",
        ),
        ("ACME_CUSTOM_HEADERS", "X A: 1", "ACME_CUSTOM_HEADERS: line 1 is not a header that can be set; write Name: value on each line"),
        (
            "ACME_CUSTOM_HEADERS",
            "Content-Length: 1",
            "ACME_CUSTOM_HEADERS: line 1 is not a header that can be set; write Name: value on each line",
        ),
        ("ACME_CUSTOM_HEADERS", "X-A: 世", "ACME_CUSTOM_HEADERS has a character that a header cannot contain (position 1 of 1)"),
    ],
)
def test_a_header_that_cannot_be_sent_is_told_by_the_name_of_its_variable(variable: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        auth_for(deployment(**ROW), {"ACME_API_KEY": SECRET, variable: value}, None)
    assert str(caught.value) == words


def test_a_header_of_a_row_that_cannot_be_sent_is_told_too() -> None:
    catalog = builtin_catalog().with_rows({"openai": {"headers": {"X-Team": "組"}}})
    with pytest.raises(ConfigError, match="the header X-Team of openai has a character"):
        connect("openai/gpt-4.1", key=SECRET, env={}, catalog=catalog)


@given(st.text(max_size=30), st.text(max_size=60))
def test_whatever_the_environment_holds_is_sent_whole_or_refused(value: str, written: str) -> None:
    """Never half of it, never another header, never a crash."""
    try:
        sent = headers(auth_for(deployment(**ROW), {"ACME_API_KEY": SECRET, "ACME_ORG_ID": value, "ACME_CUSTOM_HEADERS": written}, None))
    except ConfigError:
        return
    for name, text in sent.items():
        name.encode("ascii")
        text.encode("latin-1")
        assert not set(text) & set("\r\n\0")
    if value.strip() and "acme-organization" not in written.lower():
        assert sent["Acme-Organization"] == value.strip()


@pytest.mark.parametrize(
    ("model", "env", "expected"),
    [
        (
            "openai/gpt-4.1",
            {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"},
            {"openai-organization": "org-1", "openai-project": "proj-1"},
        ),
        ("responses/gpt-6.1-sol", {"OPENAI_ORG_ID": "org-1"}, {"openai-organization": "org-1", "authorization": "Bearer a-key"}),
        ("anthropic/claude-opus-5", {"ANTHROPIC_WORKSPACE_ID": "wrk-1"}, {"anthropic-workspace-id": "wrk-1", "x-api-key": "a-key"}),
        (
            "anthropic/claude-fable-5-1",
            {"ANTHROPIC_CUSTOM_HEADERS": "Anthropic-Beta: mine"},
            {"anthropic-beta": "thinking-binding-controls-2026-08-01,mine"},
        ),
    ],
)
def test_the_services_own_variables_are_sent(model: str, env: dict[str, str], expected: dict[str, str]) -> None:
    async def ask() -> None:
        async with MockServer(Script((say_it("ok"),))) as server:
            connection = connect(model, key="a-key", base_url=server.url, env=env)
            await connection.generate(Request(connection.model, (user("hello"),)))
            sent = {name.lower(): value for name, value in server.requests[0].headers.items()}
            assert expected.items() <= sent.items()
            await connection.aclose()

    asyncio.run(ask())


def test_a_token_of_the_environment_reaches_anthropic_instead_of_a_key() -> None:
    async def ask() -> None:
        async with MockServer(Script((say_it("ok"),))) as server:
            env = {"ANTHROPIC_AUTH_TOKEN": "a-token", "ANTHROPIC_BASE_URL": server.url}
            connection = connect("anthropic/claude-opus-5", env=env)
            await connection.generate(Request(connection.model, (user("hello"),)))
            sent = {name.lower(): value for name, value in server.requests[0].headers.items()}
            assert sent["authorization"] == "Bearer a-token"
            assert "x-api-key" not in sent
            await connection.aclose()

    asyncio.run(ask())


def test_what_a_service_repeats_of_a_header_is_not_told() -> None:
    async def ask() -> None:
        async with MockServer(Script((say_it(Fail(400, "bad gateway token hush-hush-hush")),))) as server:
            env = {"OPENAI_CUSTOM_HEADERS": "X-Gateway: hush-hush-hush"}
            connection = connect("openai/gpt-4.1", key="a-key", base_url=server.url, env=env)
            with pytest.raises(BadRequest) as caught:
                await connection.generate(Request(connection.model, (user("hello"),)))
            assert "hush" not in str(caught.value)
            await connection.aclose()

    asyncio.run(ask())


# --- picking one ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ("bearer", {"Authorization": f"Bearer {SECRET}"}),
        ("x-api-key", {"x-api-key": SECRET}),
        ("x-goog-api-key", {"x-goog-api-key": SECRET}),
        ("api-key", {"api-key": SECRET}),
        ("vertex", {"Authorization": f"Bearer {SECRET}"}),
        ("none", {}),
    ],
)
def test_the_row_says_which_header_a_key_travels_in(auth: str, expected: dict[str, str]) -> None:
    found = auth_for(deployment(auth=auth), {"ACME_API_KEY": f"  {SECRET}\n"}, None)
    assert headers(found) == expected
    assert found.secrets() == ((SECRET,) if expected else ())
    assert SECRET not in f"{found!r} {found}"
    assert asyncio.run(found.refresh(expected)) is False


@pytest.mark.parametrize(
    ("env", "key", "expected"),
    [
        ({"ACME_API_KEY": "first-key", "ACME_TOKEN": "second-key"}, None, "first-key"),
        ({"ACME_API_KEY": " \n", "ACME_TOKEN": "second-key"}, None, "second-key"),
        ({"ACME_API_KEY": "first-key"}, "given-key", "given-key"),
        ({"ACME_API_KEY": "first-key"}, "  ", "first-key"),
    ],
)
def test_a_given_key_goes_before_the_environment_and_the_first_variable_before_the_second(
    env: Mapping[str, str], key: str | None, expected: str
) -> None:
    assert headers(auth_for(deployment(), env, key)) == {"Authorization": f"Bearer {expected}"}


@pytest.mark.parametrize(
    ("variables", "told"), [(("A_KEY",), "set A_KEY"), (("A_KEY", "B_KEY"), "set A_KEY or B_KEY"), (("A", "B", "C"), "set A, B or C")]
)
def test_a_missing_key_names_every_variable_that_would_do(variables: tuple[str, ...], told: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        auth_for(deployment(key_env=variables), {}, None)
    assert str(caught.value) == f'no key for Acme; {told}, or give one: connect("acme", key=…)'
    assert caught.value.exit_code == 41


@pytest.mark.parametrize("changes", [{"key_optional": True}, {"key_env": ()}, {"auth": "none"}])
def test_servers_that_need_no_key_get_none(changes: dict[str, Any]) -> None:
    assert isinstance(auth_for(deployment(**changes), {}, None), NoAuth)


def test_an_optional_key_is_sent_if_there_is_one() -> None:
    assert headers(auth_for(deployment(key_optional=True), {"ACME_TOKEN": SECRET}, None)) == {"Authorization": f"Bearer {SECRET}"}


def test_a_command_is_run_when_there_is_no_key() -> None:
    row = deployment(auth="x-api-key", key_command=("echo", SECRET))
    assert headers(auth_for(row, dict(os.environ), None)) == {"x-api-key": SECRET}
    assert headers(auth_for(row, {"ACME_TOKEN": "from-environment"}, None)) == {"x-api-key": "from-environment"}


# --- keys -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["\n", "\r\n", "\x00", "\x7f", "\u2028", "\u200b", "é€", "密"])
def test_a_key_that_cannot_travel_in_a_header_is_refused_and_not_shown(bad: str) -> None:
    with pytest.raises(Unauthorized, match=r"the key in ACME_API_KEY has .* \(position \d+ of \d+\); copy it again") as caught:
        auth_for(deployment(), {"ACME_API_KEY": f"sk-very{bad}secret"}, None)
    assert "very" not in str(caught.value)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40), st.sampled_from(["Authorization", "x-api-key"]))
def test_any_key_is_sent_as_it_is_or_refused(text: str, header: str) -> None:
    key = text.strip()
    if not key or not key.isprintable() or max(map(ord, key)) > 255:
        with pytest.raises(Unauthorized) as caught:
            KeyAuth(header, text)
        assert len(key) < 12 or key not in str(caught.value)
        return
    auth = KeyAuth(header, text)
    [(name, value)] = headers(auth).items()
    assert (name, value) == (header, f"Bearer {key}" if header == "Authorization" else key)
    assert value.encode("latin-1").decode("latin-1") == value
    assert "\n" not in value
    assert "\r" not in value


# --- commands --------------------------------------------------------------------------------------------------------------------


def script(tmp_path: Path, code: str) -> tuple[str, ...]:
    file = tmp_path / "token.py"
    file.write_text(code)
    return sys.executable, str(file)


COUNTING = """
import pathlib, sys
file = pathlib.Path(__file__).with_suffix(".count")
count = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(count))
print(f"token-number-{count}")
"""


def test_a_command_runs_once_and_again_when_its_token_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        auth = CommandAuth(script(tmp_path, COUNTING))
        assert auth.secrets() == ()
        many = await asyncio.gather(*(auth.headers() for _ in range(5)))
        assert many == [{"Authorization": "Bearer token-number-1"}] * 5
        assert await auth.refresh(many[0]) is True
        assert await auth.headers() == {"Authorization": "Bearer token-number-2"}
        assert auth.secrets() == ("token-number-1", "token-number-2")

    asyncio.run(run())


def test_many_refused_at_once_fetch_one_new_token(tmp_path: Path) -> None:
    async def run() -> None:
        auth = CommandAuth(script(tmp_path, COUNTING))
        refused = await auth.headers()
        assert await asyncio.gather(*(auth.refresh(refused) for _ in range(5))) == [True] * 5
        assert await auth.headers() == {"Authorization": "Bearer token-number-2"}

    asyncio.run(run())


def test_a_token_that_was_renewed_meanwhile_is_not_renewed_again(tmp_path: Path) -> None:
    """The request that was refused last would otherwise throw away what the first has fetched."""

    async def run() -> None:
        auth = CommandAuth(script(tmp_path, COUNTING), "x-api-key")
        refused = await auth.headers()
        for _ in range(3):
            assert await auth.refresh({"content-type": "application/json", **refused}) is True
        assert await auth.headers() == {"x-api-key": "token-number-2"}

    asyncio.run(run())


def test_the_same_token_again_is_no_reason_to_try_again(tmp_path: Path) -> None:
    async def run() -> None:
        auth = CommandAuth(script(tmp_path, COUNTING.replace("-{count}", "-x")))
        refused = await auth.headers()
        assert await asyncio.gather(*(auth.refresh(refused) for _ in range(5))) == [False] * 5
        assert times_run(tmp_path) == 2
        assert await auth.refresh(refused) is False
        assert times_run(tmp_path) == 3  # the user may have logged in again

    asyncio.run(run())


def test_a_command_that_fails_fails_once_for_all_who_wait(tmp_path: Path) -> None:
    async def run() -> None:
        auth = CommandAuth(script(tmp_path, f"{COUNTING}\nsys.exit('not logged in')"))
        for times in (1, 2):
            outcomes = await asyncio.gather(*(auth.headers() for _ in range(5)), return_exceptions=True)
            assert [str(each).rpartition(": ")[2] for each in outcomes] == ["not logged in"] * 5
            assert times_run(tmp_path) == times

    asyncio.run(run())


def test_when_the_one_who_runs_the_command_is_cancelled_the_next_runs_it(tmp_path: Path) -> None:
    async def run() -> None:
        auth = CommandAuth(script(tmp_path, COUNTING.replace("print", "import time; time.sleep(0.3); print")))
        tasks = [asyncio.create_task(auth.headers()) for _ in range(3)]
        while not times_run(tmp_path):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        tasks[0].cancel()
        assert await asyncio.gather(*tasks[1:]) == [{"Authorization": "Bearer token-number-2"}] * 2

    asyncio.run(run())


def test_a_command_serves_several_event_loops(tmp_path: Path) -> None:
    auth = CommandAuth(script(tmp_path, COUNTING))

    async def run() -> list[dict[str, str]]:
        return await asyncio.gather(*(auth.headers() for _ in range(3)))

    assert asyncio.run(run()) == asyncio.run(run())


def test_two_event_loops_in_two_threads_run_one_command_for_each_refused_token(tmp_path: Path) -> None:
    auth = CommandAuth(script(tmp_path, COUNTING))
    together = threading.Barrier(2, timeout=60)

    async def use() -> list[str]:
        seen = []
        for _ in range(3):
            together.wait()  # both ask in the same moment
            many = await asyncio.gather(*(auth.headers() for _ in range(3)))
            seen += [each["Authorization"] for each in many]
            together.wait()
            assert await asyncio.gather(*(auth.refresh(each) for each in many)) == [True] * 3
        return seen

    with ThreadPoolExecutor(2) as threads:
        first, second = (threads.submit(asyncio.run, use()) for _ in range(2))
        assert first.result(60) == second.result(60) == [f"Bearer token-number-{number}" for number in (1, 2, 3) for _ in range(3)]
    assert times_run(tmp_path) == 4


def times_run(tmp_path: Path) -> int:
    count = tmp_path / "token.count"
    return int(count.read_text() or 0) if count.exists() else 0


def test_a_command_is_no_shell(tmp_path: Path) -> None:
    auth = CommandAuth(("echo", f"$HOME;touch {tmp_path}/made"))
    assert headers(auth) == {"Authorization": f"Bearer $HOME;touch {tmp_path}/made"}
    assert not (tmp_path / "made").exists()


def test_a_failing_command_is_named_with_its_last_words(tmp_path: Path) -> None:
    code = "import sys; print('tok-partial-secret'); print('first\\nnot logged in: tok-partial-secret', file=sys.stderr); sys.exit(3)"
    with pytest.raises(Unauthorized) as caught:
        headers(CommandAuth(script(tmp_path, code)))
    assert str(caught.value) == f"the key command `{sys.executable} …` failed with status 3: not logged in: REDACTED"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (
            ("no-such-program-here", "auth", "print-token"),
            "the key command `no-such-program-here auth print-token` cannot be run: no",
        ),
        (("true",), "the key command `true` printed nothing"),
        (("sh", "-c", "echo secret-one; echo secret-two"), "what the key command `sh …` printed has a line break"),
        (("false", "--password", "hunter22"), "the key command `false …` failed with status 1"),
    ],
)
def test_a_command_that_gives_no_token_says_so(argv: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)  # a folder there that may not be entered makes it "permission denied"
    with pytest.raises(Unauthorized) as caught:
        headers(CommandAuth(argv))
    assert str(caught.value).startswith(told)
    assert "secret" not in str(caught.value)
    assert "hunter22" not in f"{caught.value} {CommandAuth(argv)!r}"


def test_an_empty_command_is_a_setting_to_correct() -> None:
    with pytest.raises(ConfigError, match="the key command is empty"):
        CommandAuth(())


@pytest.mark.parametrize("command", ["sleep 600", "sleep 600 & echo token-in-front"])
def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path, command: str) -> None:
    marker = f"{command} # {tmp_path}"
    with pytest.raises(Unauthorized, match=r"`sh …` printed no token within 0\.3 s"):
        headers(CommandAuth(("sh", "-c", marker.replace("sleep 600", f"env MARK={tmp_path} sleep 600")), timeout_s=0.3))
    assert not still_running(f"MARK={tmp_path}")


def test_cancelling_ends_the_command(tmp_path: Path) -> None:
    async def run() -> None:
        task = asyncio.create_task(CommandAuth(("sh", "-c", f"env MARK={tmp_path} sleep 600; true")).headers())
        await asyncio.sleep(0.3)
        assert still_running(f"MARK={tmp_path}")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not still_running(f"MARK={tmp_path}")

    asyncio.run(run())


def still_running(mark: str) -> bool:
    """Whether a process that is not just a zombie has this in its environment or on its command line."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found = mark.encode() in (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            if found and int(process.name) != os.getpid() and " Z " not in (process / "stat").read_text():
                return True
        except OSError:
            continue
    return False


# --- the embedder's own ------------------------------------------------------------------------------------------------------------


def test_a_token_source_may_be_plain_or_async() -> None:
    async def source() -> str:
        return f"{SECRET}\n"

    assert headers(InjectedAuth(lambda: SECRET)) == headers(InjectedAuth(source)) == {"Authorization": f"Bearer {SECRET}"}
    assert headers(InjectedAuth(lambda: SECRET, "x-api-key")) == {"x-api-key": SECRET}
    assert SECRET not in repr(InjectedAuth(lambda: SECRET))


def test_a_token_source_is_asked_again_and_says_whether_it_has_something_new() -> None:
    async def run() -> None:
        tokens = iter(["token-one", "token-one", "token-two"])
        auth = InjectedAuth(lambda: next(tokens))
        refused = await auth.headers()
        assert await auth.refresh(refused) is False
        assert await auth.refresh(refused) is True
        assert auth.secrets() == ("token-one", "token-two")

    asyncio.run(run())


def test_a_refused_token_is_compared_with_what_was_sent_and_not_with_the_latest() -> None:
    """Another request has asked the source since, and has the good token already."""

    async def run() -> None:
        tokens = iter(["token-old", "token-new", "token-new"])
        auth = InjectedAuth(lambda: next(tokens))
        refused, renewed = await auth.headers(), await auth.headers()
        assert refused != renewed
        assert await auth.refresh(refused) is True

    asyncio.run(run())


def test_of_a_source_that_gives_a_new_token_each_time_the_last_are_remembered() -> None:
    async def run() -> None:
        count = iter(range(10_000))
        auth = InjectedAuth(lambda: f"token-number-{next(count)}")
        for _ in range(1_000):
            await auth.headers()
        assert auth.secrets() == tuple(f"token-number-{number}" for number in range(1_000 - REMEMBERED, 1_000))

    asyncio.run(run())


def test_tokens_are_remembered_from_several_threads_at_once() -> None:
    auth = InjectedAuth(lambda: f"token-of-{threading.get_ident()}")

    async def use() -> str:
        for _ in range(2_000):
            given = await auth.headers()
            assert given["Authorization"].removeprefix("Bearer ") in auth.secrets()
        return given["Authorization"]

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(asyncio.run, use()) for _ in range(4)]:
            future.result(60)


# --- many requests at once ----------------------------------------------------------------------------------------------------------


class Source:
    """An embedder's token source, which renews its token when it has heard that it expired."""

    def __init__(self) -> None:
        self.number = 1
        self.renewals = 0
        self.has_expired = False

    async def __call__(self) -> str:
        await asyncio.sleep(0)
        if self.has_expired:
            self.has_expired, self.number, self.renewals = False, self.number + 1, self.renewals + 1
        return f"token-number-{self.number}"


@pytest.mark.parametrize("kind", ["command", "injected"])
def test_five_requests_that_are_refused_at_once_all_succeed_after_one_renewal(kind: str, tmp_path: Path) -> None:
    source = Source()
    auth: Auth = InjectedAuth(source) if kind == "injected" else CommandAuth(script(tmp_path, COUNTING))
    valid, refusals = "Bearer token-number-2", 0

    async def request(delay_s: float) -> bool:
        nonlocal refusals
        for _ in range(2):
            sent = await auth.headers()
            await asyncio.sleep(delay_s)  # the answers come one after the other
            if sent["Authorization"] == valid:
                return True
            refusals += 1
            source.has_expired = source.renewals == 0
            if not await auth.refresh(sent):
                return False
        return False

    async def run() -> None:
        assert await asyncio.gather(*(request(0.05 * number) for number in range(5))) == [True] * 5
        assert refusals == 5
        assert (source.renewals if kind == "injected" else times_run(tmp_path) - 1) == 1

    asyncio.run(run())


def test_a_source_that_gives_a_bad_token_is_told_so() -> None:
    with pytest.raises(Unauthorized, match="the token given by the embedding program is empty"):
        headers(InjectedAuth(lambda: " "))


# --- Google ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def private_key() -> str:
    key = rsa.generate_private_key(65_537, 2_048)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()


def service_account(folder: Path, private_key: str, token_uri: str) -> str:
    file = folder / "account.json"
    account = {"type": "service_account", "project_id": "p", "private_key_id": "1", "private_key": private_key, "token_uri": token_uri}
    file.write_text(json.dumps(account | {"client_email": "robot@p.iam.gserviceaccount.com", "client_id": "1"}))
    return str(file)


VERTEX = deployment(auth="vertex", key_env=("GOOGLE_ACCESS_TOKEN",), key_command=("gcloud", "auth", "print-access-token"))


def test_a_service_account_gets_a_token_from_the_endpoint_its_file_names(tmp_path: Path, private_key: str) -> None:
    count = 0

    async def endpoint(request: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        assert request.target == "/token"
        assert b"assertion=" in request.body
        body = json.dumps({"access_token": f"ya29.token-number-{count}", "expires_in": 3_600, "token_type": "Bearer"})
        writer.write(answer(body.encode(), headers="Content-Type: application/json\r\n"))

    async def run() -> None:
        async with serving(endpoint) as server:
            file = service_account(tmp_path, private_key, f"{server.url}/token")
            auth = auth_for(VERTEX, {"GOOGLE_APPLICATION_CREDENTIALS": file}, None)
            assert isinstance(auth, VertexAuth)
            many = await asyncio.gather(*(auth.headers() for _ in range(5)))
            assert {each["authorization"] for each in many} == {"Bearer ya29.token-number-1"}
            refused = many[0] | {"x-goog-user-project": "another"}
            assert await asyncio.gather(*(auth.refresh(refused) for _ in range(5))) == [True] * 5
            assert await auth.refresh(refused) is True
            assert (await auth.headers())["authorization"] == "Bearer ya29.token-number-2"
            assert auth.secrets() == ("ya29.token-number-1", "ya29.token-number-2")
            assert "ya29" not in repr(auth)

    asyncio.run(run())


def test_a_service_account_that_is_refused_says_what_google_said(tmp_path: Path, private_key: str) -> None:
    async def endpoint(request: Received, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}).encode()
        writer.write(answer(body, "400 Bad Request", "Content-Type: application/json\r\n"))

    async def run() -> None:
        async with serving(endpoint) as server:
            auth = VertexAuth(service_account(tmp_path, private_key, f"{server.url}/token"))
            with pytest.raises(Unauthorized, match=r"Google gave no access token: .*Invalid JWT Signature.*; check the file that GOOGLE"):
                await auth.headers()

    asyncio.run(run())


@pytest.mark.parametrize("content", [None, "not json", "{}", '{"type": "service_account"}'])
def test_a_credentials_file_that_is_no_good_is_told_so(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "account.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Unauthorized, match=r"no Google credentials: .*; check the file that GOOGLE_APPLICATION_CREDENTIALS names"):
        headers(auth_for(VERTEX, {"GOOGLE_APPLICATION_CREDENTIALS": str(file), "PATH": os.environ["PATH"]}, None))


def test_without_credentials_one_is_told_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with pytest.raises(Unauthorized, match=r"no Google credentials: .*; run `gcloud auth application-default login`, or set GOOGLE_APP"):
        headers(auth_for(VERTEX, {"CLOUDSDK_CONFIG": str(tmp_path), "PATH": ""}, None))


def test_application_default_credentials_go_before_the_command_and_the_command_before_a_search(tmp_path: Path) -> None:
    gcloud = tmp_path / "bin" / "gcloud"
    gcloud.parent.mkdir()
    gcloud.write_text("#!/bin/sh\necho ya29.from-gcloud")
    gcloud.chmod(0o755)
    env = {"CLOUDSDK_CONFIG": str(tmp_path), "PATH": f"{gcloud.parent}:{os.environ['PATH']}"}
    found = auth_for(VERTEX, env, None)
    assert isinstance(found, CommandAuth)
    assert headers(found) == {"Authorization": "Bearer ya29.from-gcloud"}
    (tmp_path / "application_default_credentials.json").write_text("{}")
    assert isinstance(auth_for(VERTEX, env, None), VertexAuth)


def test_without_google_auth_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(ConfigError, match=r"pip install '.\[vertex\]'"):
        headers(VertexAuth())


def test_importing_it_loads_nothing_of_google() -> None:
    code = "import sys; import dragoman.providers.google_auth; print({'google.auth', 'requests', 'urllib.request'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": ":".join(sys.path)}
    )
    assert (done.stdout.strip(), done.stderr) == ("set()", "")
