"""In the mode auto, what reaches out from our own process keeps to the allowed hosts: another asks, and nobody to ask means no."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest

from agents import make_agent
from dragoman.loop.options import WebAccess
from dragoman.rules import allow, ask, deny
from dragoman.testing import ScriptedProvider
from dragoman.tools.web import HostRules
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.errors import SandboxError
from dragoman.values.messages import ToolCall, ToolResult
from loopback_http import Received, answer, serving

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the mode auto needs a sandbox")


class Asked(list[str]):
    """An `ask` that keeps what it was asked about, and answers the same each time."""

    def __init__(self, answer: Allow | Deny) -> None:
        self.answer = answer

    def __call__(self, call: ToolCall, intent: Intent) -> Allow | Deny:
        self.append(f"{call.name} {intent.scope}".strip())
        return self.answer


def run_calls(*calls: str, ask: Any = None, **options: Any) -> tuple[list[str], list[str]]:
    """What the model is told of each call, and what was asked of a server on this machine; PORT stands for its port, and `/away` there
    redirects to the same server by another name."""
    received: list[str] = []

    async def handler(request: Received, writer: asyncio.StreamWriter) -> None:
        received.append(request.target)
        port = writer.get_extra_info("sockname")[1]
        found = f"Location: http://localhost:{port}/elsewhere\r\n"
        writer.write(
            answer(b"", "302 Found", found) if request.target == "/away" else answer(b"the page", headers="Content-Type: text/plain\r\n")
        )

    async def main() -> list[str]:
        async with serving(handler) as server:
            script = "".join(f"call: {each}\n---\n" for each in calls).replace("PORT", str(server.port))
            provider = ScriptedProvider(f"{script}text: Good.")
            hosts = [host.replace("PORT", str(server.port)) for host in options.pop("hosts", ())]
            # For what is tested here it does not matter that these are on this machine.
            web = WebAccess(rules=HostRules(allowed=("127.0.0.1", "localhost")), searxng=f"http://127.0.0.1:{server.port}")
            given = {
                "builtin": ["run_shell"],
                "describe": False,
                "approval": "auto",
                "sandbox": True,
                "web": web,
                "hosts": hosts,
                **options,
            }
            try:
                agent = make_agent(provider, ask=ask, **given)
            except SandboxError:
                pytest.skip("no sandbox works here")
            async with agent:
                await agent.run("go")
        parts = [part for message in provider.requests[-1].messages for part in message.parts]
        return [part.text for part in parts if isinstance(part, ToolResult)]

    return asyncio.run(main()), received


def fetch(path: str) -> str:
    return f"web_fetch {json.dumps({'url': f'http://127.0.0.1:PORT{path}'})}"


SEARCH = 'google_web_search {"query": "dragons"}'


def test_a_host_of_the_list_is_fetched_unasked() -> None:
    results, received = run_calls(fetch("/x"), hosts=["127.0.0.1:PORT"])
    assert "the page" in results[0]
    assert received == ["/x"]


@pytest.mark.parametrize("hosts", [[], ["example.org"], ["127.0.0.1"]])
def test_another_is_refused_where_nobody_can_be_asked(hosts: list[str]) -> None:
    results, received = run_calls(fetch("/x"), hosts=hosts)
    assert "nobody can be asked" in results[0]
    assert "network.hosts" in results[0]
    assert received == []


def test_another_asks() -> None:
    asked = Asked(Deny("the user said no"))
    results, received = run_calls(fetch("/x"), ask=asked)
    assert asked[0].startswith("web_fetch 127.0.0.1:")
    assert ("the user said no" in results[0], received) == (True, [])
    asked = Asked(Allow(remember="session"))
    results, received = run_calls(fetch("/x"), fetch("/y"), ask=asked)
    assert (len(asked), received) == (1, ["/x", "/y"])


def test_a_redirect_leads_to_allowed_hosts_only() -> None:
    results, received = run_calls(fetch("/away"), hosts=["127.0.0.1:PORT"])
    assert "redirects to http://localhost:" in results[0]
    assert "not in network.hosts" in results[0]
    assert received == ["/away"]
    results, received = run_calls(fetch("/away"), hosts=["127.0.0.1:PORT", "localhost:PORT"])
    assert received == ["/away", "/elsewhere"]


def test_in_other_modes_a_redirect_is_followed_unless_a_rule_refuses_the_host() -> None:
    _, received = run_calls(fetch("/away"), approval="default", ask=Asked(Allow()))
    assert received == ["/away", "/elsewhere"]
    rule = deny("web_fetch *", reason="nothing of that")
    results, received = run_calls(fetch("/away"), approval="default", ask=Asked(Allow()), rules=[rule])
    assert ("nothing of that" in results[0], received) == (True, [])
    for rule in (ask("web_fetch localhost"), deny("web_fetch localhost")):  # whatever the port
        results, received = run_calls(fetch("/away"), approval="default", ask=Asked(Allow()), rules=[rule])
        assert ("redirects to http://localhost" in results[0], received) == (True, ["/away"]), rule


def test_a_search_asks_unless_a_rule_allows_it() -> None:
    results, received = run_calls(SEARCH, hosts=["127.0.0.1:PORT"])
    assert "nobody can be asked" in results[0]
    assert received == []
    asked = Asked(Deny("no"))
    run_calls(SEARCH, ask=asked)
    assert asked == ["google_web_search"]
    _, received = run_calls(SEARCH, rules=[allow("web_search")])
    assert len(received) == 1
