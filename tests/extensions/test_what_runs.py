"""Consent covers the file that really runs: forms in which servers and hooks are started, each run with its own program where this machine
has it. After a yes, the file that runs is edited, and the yes does not hold any more; edited data leaves it alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.named_files import code_of, hash_code
from dragoman.base.runs.search import MAX_ENTRIES
from dragoman.base.runs.shell_lines import commands_in
from dragoman.extensions.hooks.agreement import hash_of, to_agree
from dragoman.extensions.hooks.definitions import read_json_hooks
from dragoman.extensions.sources import ProgramFolder
from dragoman.mcp_client.configured import ConfiguredServer, read_claude, read_entry
from dragoman.mcp_client.consent import Consent
from dragoman.mcp_client.filling import FillFrom
from dragoman.values.origin import Origin

PY, JS, SH, PL = 'print("one")\n', 'console.log("one")\n', "echo one\n", 'print "one\\n";\n'


class Form(msgspec.Struct, frozen=True):
    """A way to start something, and the file of it that runs: it says `one`."""

    words: tuple[str, ...]
    runs: str
    files: dict[str, str]
    env: dict[str, str] = {}
    cwd: str = ""
    can_be_run: bool = True
    """Whether it runs without a network, a daemon or much building."""

    @property
    def id(self) -> str:
        return " ".join((*(f"{name}={value}" for name, value in self.env.items()), *self.words))


def form(line: str | tuple[str, ...], runs: str, text: str = "one\n", more: Mapping[str, str] | None = None, **options: object) -> Form:
    return Form(tuple(line.split()) if isinstance(line, str) else line, runs, {runs: text, **(more or {})}, **options)  # type: ignore[arg-type]


PACKAGE = '{"name": "p", "version": "1.0.0", "scripts": {"serve": "node tools/server.js", "py": "python3 tools/server.py --x"}}'
MAIN_JAVA = 'public class Main { public static void main(String[] a) { System.out.println("one"); } }\n'
MAIN_GO = 'package main\nimport "fmt"\nfunc main() { fmt.Println("one") }\n'
MODULE_GO = """package main
import ("fmt"; "runtime/debug")
func main() { info, _ := debug.ReadBuildInfo(); fmt.Println(info.Main.Path) }
"""
"""Says the name in go.mod."""
CARGO = '[package]\nname = "server"\nversion = "0.1.0"\nedition = "2021"\n'
PYPROJECT = (
    '[project]\nname = "p"\nversion = "1"\n[project.scripts]\nserver = "pkg.main:run"\n[tool.poetry.scripts]\nserver = "pkg.main:run"\n'
)
FORMS = [
    # Python
    form("python3 server.py", "server.py", PY),
    form("python3 tools/server", "tools/server", PY),
    form("python3 tools", "tools/__main__.py", PY),
    form("python3 -m server", "server.py", PY),
    form("python3 -mserver", "server.py", PY),
    form("python3 -um server", "server.py", PY),
    form("python3 -u -W ignore -X utf8 -m server", "server.py", PY),
    form("python3 -Bumpkg.mod", "pkg/mod.py", PY, {"pkg/__init__.py": ""}),
    form("python3 -m pkg.mod", "pkg/__init__.py", PY, {"pkg/mod.py": ""}),
    form("python3 -m pkg", "pkg/__main__.py", PY),
    form("python3 -m server", "lib/server.py", PY, env={"PYTHONPATH": "lib"}),
    form("python3 -c pass", "lib/sitecustomize.py", PY, env={"PYTHONPATH": "lib"}),
    form("python3 server.py", "tools/server.py", PY, cwd="tools"),
    form("env A=b python3 -m server", "server.py", PY),
    form("env -u A -C tools python3 -m server", "tools/server.py", PY),
    form("nohup python3 -um server", "server.py", PY),
    form("timeout -k 5 60 nice -n 5 python3 -m server", "server.py", PY),
    form("uv run x.py", "x.py", PY),
    form("uv run --script x", "x", PY),
    form("uv run --with mcp python -m server", "server.py", PY),
    form("uv run -m server", "server.py", PY),
    form("uv --directory tools run server.py", "tools/server.py", PY),
    form("uv run server", "pkg/main.py", PY, {"pyproject.toml": PYPROJECT}),
    form("poetry run server", "src/pkg/main.py", PY, {"pyproject.toml": PYPROJECT}),
    form("poetry run python -m server", "server.py", PY),
    form("pipenv run python server.py", "server.py", PY),
    form("pipenv run serve", "server.py", PY, {"Pipfile": '[scripts]\nserve = "python server.py"\n'}),
    form("hatch run serve", "server.py", PY, {"pyproject.toml": '[tool.hatch.envs.default.scripts]\nserve = "python server.py"\n'}),
    form("uvicorn app.main:app", "app/main.py", PY),
    # JavaScript
    form("node tools/server", "tools/server.js", JS),
    form("node tools/server.mjs", "tools/server.mjs", JS),
    form("node tools", "tools/index.js", JS),
    form("node tools", "tools/lib/main.js", JS, {"tools/package.json": '{"main": "lib/main"}'}),
    form("node --require ./pre tools/server.js", "pre.js", JS, {"tools/server.js": ""}),
    form("node tools/server.js", "pre.js", JS, {"tools/server.js": ""}, env={"NODE_OPTIONS": "--require ./pre.js"}),
    form("tsx server.ts", "server.ts", JS),
    form("tsx watch src/server", "src/server.ts", JS),
    form("ts-node --project tsconfig.json src/server.ts", "src/server.ts", JS),
    form("npx -y tsx src/server.ts", "src/server.ts", JS),
    form("npx tool", "node_modules/.bin/tool", "#!/usr/bin/env node\n" + JS),
    form("npm run serve", "tools/server.js", JS, {"package.json": PACKAGE}),
    form("npm --prefix web run --silent serve", "web/tools/server.js", JS, {"web/package.json": PACKAGE}),
    form("npm run py", "tools/server.py", PY, {"package.json": PACKAGE}),
    form("pnpm --dir web serve", "web/tools/server.js", JS, {"web/package.json": PACKAGE}),
    form("yarn serve", "tools/server.js", JS, {"package.json": PACKAGE}),
    form("bun run x", "x.ts", JS),
    form("bun run serve", "tools/server.js", JS, {"package.json": PACKAGE}),
    form("bun x.ts", "bunfig.toml", "preload = 'one'", {"x.ts": ""}),
    form("deno run -A server.ts", "server.ts", JS),
    form("deno task serve", "server.ts", JS, {"deno.json": '{"tasks": {"serve": "deno run -A server.ts"}}'}),
    # Programs that are given a folder
    form("go run ./cmd", "cmd/main.go", MAIN_GO, {"go.mod": "module p\n"}),
    form("go run ./cmd", "go.mod", "module one\n", {"cmd/main.go": MODULE_GO}),
    form("go -C tools run .", "tools/main.go", MAIN_GO, {"tools/go.mod": "module p\n"}),
    form("cargo run --offline -q", "src/main.rs", 'fn main() { println!("one"); }\n', {"Cargo.toml": CARGO}),
    form("cargo run --offline -q --manifest-path t/Cargo.toml", "t/build.rs", "// one", {"t/Cargo.toml": CARGO}, can_be_run=False),
    form("dotnet run --project tools", "tools/Program.cs", 'Console.WriteLine("one");'),
    form("dotnet out/server.dll", "out/server.dll"),
    form("docker compose up", "compose.yaml", "services: {one: {build: .}}", can_be_run=False),
    form("docker compose -f deploy/stack.yml run server", "deploy/stack.yml", "services: {one: {}}", can_be_run=False),
    form("docker compose up", "Dockerfile", "FROM one", {"compose.yaml": "services: {a: {build: .}}"}, can_be_run=False),
    form("docker compose up", "api/app.py", PY, {"compose.yaml": "services: {a: {build: ./api}}"}, can_be_run=False),
    form("docker run --rm -v ./tools:/t image python /t/server.py", "tools/server.py", PY, can_be_run=False),
    form("make serve", "server.py", PY, {"Makefile": "PY = python3\nserve:\n\t@$(PY) server.py\n"}),
    form("make -s -C tools serve", "tools/run.sh", SH, {"tools/Makefile": "serve: ; @sh run.sh\n"}),
    form("make serve", "GNUmakefile", "serve:\n\t@echo one\n"),
    form("just serve", "server.py", PY, {"justfile": "serve:\n    python3 server.py\n"}),
    form("task serve", "Taskfile.yml", "tasks: {serve: {cmds: [echo one]}}"),
    form("./gradlew run", "src/main/java/Main.java", MAIN_JAVA, {"gradlew": "#!/bin/sh\nexec gradle run\n"}, can_be_run=False),
    # Shells and other interpreters
    form(("bash", "-c", "cd tools && exec python3 -um server"), "tools/server.py", PY),
    form(("sh", "-lc", "A=1 python3 server.py; true"), "server.py", PY),
    form(("bash", "-c", "python3 < tools/server.py"), "tools/server.py", PY),
    form(("sh", "-c", "./run.sh"), "run.sh", f"#!/bin/sh\n{SH}"),
    form("bash run.sh", "server.py", PY, {"run.sh": 'cd "$(dirname "$0")"\npython3 server.py\n'}),
    form("./bin/server", "bin/server", f"#!/bin/sh\n{SH}"),
    form("./bin/server", "lib/server.py", PY, {"bin/server": '#!/bin/sh\nexec python3 "$(dirname "$0")/../lib/server.py"\n'}),
    form("perl server.pl", "server.pl", PL),
    form(("perl", "-Ilib", "-MServer", "-e", "1"), "lib/Server.pm", f"package Server;\n{PL}1;\n"),
    form("perl -w -I lib server", "server", PL),
    form("ruby -rfoo -Ilib server.rb", "lib/foo.rb", 'puts "one"', {"server.rb": ""}),
    form("ruby -r./foo server.rb", "foo.rb", 'puts "one"', {"server.rb": ""}),
    form("php -d x=1 server.php", "server.php", '<?php echo "one";'),
    form("php -S localhost:0 -t web", "web/index.php", '<?php echo "one";', can_be_run=False),
    form("java Main.java", "Main.java", MAIN_JAVA),
    form("java -Xmx1g -jar out/server.jar", "out/server.jar", can_be_run=False),
    form("java -cp out:lib Main", "out/Main.class", can_be_run=False),
    form("lua server", "server", 'print("one")'),
    form("source tools/env.sh", "tools/env.sh", can_be_run=False),
]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "notes.db").write_text("data")
    (made / "tools").mkdir()
    return made


def lay(work: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)


def server(each: Form) -> ConfiguredServer:
    entry = {"command": each.words[0], "args": list(each.words[1:]), "env": each.env, **({"cwd": each.cwd} if each.cwd else {})}
    made = read_entry("it", entry, Origin("claude", "project", "/x"), read_claude, FillFrom({}))
    assert isinstance(made, ConfiguredServer)
    return made


@cache
def works(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def can_be_run_here(each: Form, program: str) -> bool:
    if each.words[0] == "cargo":  # rustup puts a program of that name there without a toolchain
        return works(program, "--version")
    return "-C" not in each.words or each.words[0] != "go" or works(program, "-C", "/", "version")  # Go has it from 1.20 on


def output(each: Form, work: Path) -> str | None:
    """What it says, or None where this machine does not have the program."""
    programs = [os.path.join(work, word) if "/" in word else shutil.which(word) for word in each.words if word != "env"]
    if not each.can_be_run or programs[0] is None or not can_be_run_here(each, programs[0]):
        return None
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "CARGO_NET_OFFLINE": "true", **each.env}
    done = subprocess.run(
        [programs[0] if each.words[0] != "env" else "env", *each.words[1:]],
        cwd=work / each.cwd,
        env=env | {"PYTHONDONTWRITEBYTECODE": "1", "npm_config_update_notifier": "false"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("each", FORMS, ids=lambda each: each.id)
def test_a_yes_covers_the_file_that_really_runs_and_no_data(each: Form, work: Path, tmp_path: Path) -> None:
    lay(work, each.files)
    consent = Consent(str(tmp_path / "mcp.jsonl"), str(work))
    it = server(each)
    assert consent.verdict(it, None) == "unasked"
    consent.decide(it, yes=True)
    said = output(each, work)
    if said is not None:
        assert "one" in said
    assert consent.verdict(it, None) == "yes", "to run it changes nothing"
    (work / "notes.db").write_text("other data")
    (work / "tools" / "log.jsonl").write_text("{}")
    assert consent.verdict(it, None) == "yes", "data is not code"
    path = work / each.runs
    path.write_text(path.read_text().replace("one", "two"))
    if said is not None:
        assert "two" in (output(each, work) or ""), "it is the file that runs"
    assert Consent(str(tmp_path / "mcp.jsonl"), str(work)).verdict(it, None) == "changed"
    assert consent.is_changed(it)
    consent.decide(it, yes=True)
    assert not consent.is_changed(it)


@pytest.mark.parametrize("each", [each for each in FORMS if not each.cwd and not each.env], ids=lambda each: each.id)
def test_a_yes_to_a_hook_covers_the_file_that_really_runs(each: Form, work: Path) -> None:
    lay(work, each.files)
    line = subprocess.list2cmdline(each.words) if "'" not in each.id else each.id
    text = msgspec.json.encode({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": line}]}]}}).decode()
    folder = ProgramFolder("claude", "project", str(work / ".claude"), str(work), str(work))
    [hook] = read_json_hooks(text, str(work / ".claude" / "settings.json"), folder).hooks
    bound = to_agree(hook, str(work))
    assert bound is not None
    before = hash_of(bound)
    (work / "notes.db").write_text("other data")
    assert hash_of(bound) == before
    path = work / each.runs
    path.write_text(path.read_text().replace("one", "two"))
    assert hash_of(bound) != before


@pytest.mark.parametrize(
    "line",
    [
        "npx -y @modelcontextprotocol/server-filesystem .",
        "uvx mcp-server-git --repository .",
        "mcp-server-git --repository .",
        "docker run -i --rm -v ./data:/data mcp/sqlite --db /data/x.db",
        "github-mcp-server stdio",
    ],
)
def test_a_server_that_is_installed_elsewhere_is_not_bound_to_the_code_it_is_given(line: str, work: Path, tmp_path: Path) -> None:
    lay(work, {"app.py": PY, "src/main.js": JS, "data/x.db": "1", "package.json": PACKAGE})
    consent = Consent(str(tmp_path / "mcp.jsonl"), str(work))
    it = server(form(line, "app.py", PY))
    consent.decide(it, yes=True)
    for name in ("app.py", "src/main.js", "package.json"):
        (work / name).write_text("two")
    assert consent.verdict(it, None) == "yes"


def test_what_an_unknown_program_runs_of_a_folder_is_said_to_be_unknown_and_every_change_of_code_asks(work: Path) -> None:
    lay(work, {"tools/main.xyz": "one", "tools/deep/other.xyz": "one", "tools/part.py": PY, "tools/data.csv": "1", "else.py": PY})

    def now() -> str:
        return hash_code(code_of(("quux", "serve", "tools/main.xyz"), str(work), str(work)), str(work))

    assert code_of(("quux", "serve", "tools/main.xyz"), str(work), str(work)).unknown == (str(work / "tools" / "main.xyz"),)
    before = now()
    for data in ("tools/data.csv", "else.py"):
        (work / data).write_text("two")
        assert now() == before
    for code in ("tools/deep/other.xyz", "tools/part.py", "tools/new.sh"):
        (work / code).write_text("two")
        assert now() != before
        before = now()


@pytest.mark.parametrize("line", ["$RUNNER tools/x.py", 'eval "$(cat tools/x)"'])
def test_a_line_whose_program_is_in_a_variable_is_unknown(line: str, work: Path) -> None:
    assert code_of((line,), str(work), str(work), is_line=True).unknown == (str(work),)


def test_no_link_is_followed_out_of_the_project_and_where_it_leads_counts(work: Path, tmp_path: Path) -> None:
    for name in ("good", "evil"):
        (tmp_path / f"{name}.py").write_text(PY)
        (tmp_path / name).mkdir()
        (tmp_path / name / "server.py").write_text(PY)
    (work / "server.py").symlink_to(tmp_path / "good.py")
    (work / "lib").symlink_to(tmp_path / "good")

    def now(*words: str) -> str:
        return hash_code(code_of(words, str(work), str(work)), str(work))

    before, of_folder = now("python3", "-m", "server"), now("python3", "lib/server.py")
    (tmp_path / "good.py").write_text(PY + "# more")
    assert now("python3", "-m", "server") == before, "outside is not ours to look at"
    for name, target in (("server.py", "evil.py"), ("lib", "evil")):
        (work / name).unlink()
        (work / name).symlink_to(tmp_path / target)
    assert now("python3", "-m", "server") != before
    assert now("python3", "lib/server.py") != of_folder


def test_the_interpreter_of_the_projects_own_environment_counts(work: Path) -> None:
    packages = work / ".venv" / "lib" / "python3.11" / "site-packages"
    lay(
        work,
        {
            ".venv/pyvenv.cfg": "home = /usr/bin\n",
            f"{packages.relative_to(work)}/server/__main__.py": PY,
            f"{packages.relative_to(work)}/own.pth": str(work / "src"),
            ".venv/bin/serve": f"#!{work}/.venv/bin/python\nfrom mine.app import main\nmain()\n",
            "src/mine/app.py": PY,
        },
    )
    (work / ".venv" / "bin" / "python").symlink_to(sys.executable)

    def now(*words: str) -> str:
        return hash_code(code_of(words, str(work), str(work)), str(work))

    module, program = (".venv/bin/python", "-m", "server"), (".venv/bin/serve",)
    before = now(*module), now(*program)
    (packages / "server" / "__main__.py").write_text("two")
    assert (now(*module) != before[0], now(*program)) == (True, before[1])
    before = now(*module), now(*program)
    (work / "src" / "mine" / "app.py").write_text("two")
    assert (now(*module), now(*program) != before[1]) == (before[0], True)
    before = now(*module), now(*program)
    (packages / "evil.pth").write_text("import evil")
    assert now(*module) != before[0]
    before = now(*module), now(*program)
    (work / ".venv" / "bin" / "python").unlink()
    (work / ".venv" / "bin" / "python").symlink_to("/tmp/evil")
    assert now(*module) != before[0]


def test_pipes_and_endless_files_hold_nothing_up(work: Path) -> None:
    os.mkfifo(work / "server.py")
    os.mkfifo(work / "package.json")
    os.mkfifo(work / "Makefile")
    (work / "zero.sh").symlink_to("/dev/zero")
    for line in ("python3 -m server", "npm run serve", "make serve", "bash zero.sh", "quux ."):
        assert hash_code(code_of(tuple(line.split()), str(work), str(work)), str(work))


def test_a_folder_that_is_too_large_to_look_through_is_asked_about_each_time(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.base.runs.search.MAX_ENTRIES", 10)
    lay(work, {f"cmd/{number}.go": "x" for number in range(20)})
    code = code_of(("go", "run", "./cmd"), str(work), str(work))
    assert code.is_too_much
    assert hash_code(code, str(work)) != hash_code(code, str(work))
    assert MAX_ENTRIES > 1_000


def test_a_server_of_the_users_own_is_bound_to_what_it_runs_and_not_to_data(work: Path, tmp_path: Path) -> None:
    lay(work, {"server.py": PY, "memory.json": "{}"})
    consent = Consent(str(tmp_path / "mcp.jsonl"), str(work))

    def own(*words: str) -> ConfiguredServer:
        made = read_entry("it", {"command": words[0], "args": list(words[1:])}, Origin("claude", "user", "/x"), read_claude, FillFrom({}))
        assert isinstance(made, ConfiguredServer)
        return made

    assert consent.asks_about(own("python3", "-um", "server"))
    assert not consent.asks_about(own("memory-server", "--file", "memory.json"))
    assert not consent.asks_about(own("quux", "."))
    registry = own("npx", "-y", "@scope/memory-server", ".")
    assert not consent.asks_about(registry)
    (work / ".npmrc").write_text("registry=http://127.0.0.1:9/")
    assert consent.asks_about(registry), "the folder says where the program comes from"


@given(st.text(alphabet="ab $\"'`;&|()<>\\\n\t#=~{}./-", max_size=200))
@settings(max_examples=300)
def test_any_line_can_be_read(text: str) -> None:
    for command in commands_in(text, {"a": "1"}):
        assert command.words
    assert code_of((text,), "/nowhere", "/nowhere", is_line=True).files == ()


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8))
@settings(max_examples=300)
def test_any_words_can_be_read(words: list[str]) -> None:
    starts = ("python3", "node", "npm", "npx", "make", "go", "cargo", "uv", "docker", "bash", "java", "perl", "env", "just", "deno")
    for start in starts:
        assert code_of((start, *words), "/nowhere", "/nowhere").is_too_much is False
