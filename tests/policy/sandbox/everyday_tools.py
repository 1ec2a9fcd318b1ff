"""Everyday tools and what is done with them: the rows of the table in docs/operate/sandbox-tools.md. None needs a registry."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PORT = 8347
ORDER = ("inside", "yes", "undone", "host", "outside", "no", "silent")
"""What a command needed, the least first. undone: it worked, and was put back. no: the sandbox is named, and no way out. silent: it failed,
and nobody said why."""


class Step(NamedTuple):
    """A command, and what it says when it has worked."""

    command: str
    says: str = ""
    background: bool = False
    """A server: it goes on while the next steps run."""
    writes: bool = False
    """What the model knows beforehand, as of a server in the background, which is not run again."""
    from_outside: bool = False
    """It is the user's own program that asks at this port, after `/sandbox port`."""


class Row(NamedTuple):
    name: str
    group: str
    needs: tuple[str, ...]
    """Programs."""
    steps: tuple[Step, ...]
    files: Mapping[str, str | bytes] = MappingProxyType({})
    root_refuses: bool = False
    """The program does not run as root: then root works in a folder of another user."""
    is_more: bool = False
    """The tool has another row: this one is run at level 1 in the suite, and at all with DRAGOMAN_LONG."""
    works_outside: bool = True
    """False: what it needs out there is not on every machine, or it never ends."""


def zipped(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def make_wheel(name: str) -> bytes:
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
    return zipped({f"{name}.py": "WORD = 'installed'\n", f"{info}/METADATA": metadata, f"{info}/WHEEL": tags, f"{info}/RECORD": record})


def make_tarball(files: Mapping[str, str | bytes]) -> bytes:
    """As `npm pack` does."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            data = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return made.getvalue()


def package_json(name: str, **more: object) -> str:
    return json.dumps({"name": name, "version": "1.0.0", "license": "MIT", **more})


WHEEL = {"wheels/demo-1.0-py3-none-any.whl": make_wheel("demo")}
GREETER = {
    "package.json": package_json("greeter", bin={"greeter": "cli.js"}),
    "cli.js": "#!/usr/bin/env node\nconsole.log('greeted')\n",
}
PACKAGES = {
    "package.json": package_json("app", scripts={"test": "node test.js", "build": "mkdir -p dist && cp test.js dist/"}),
    "test.js": "console.log('tested ' + (1 + 1))\n",
    **{f"greeter/{name}": text for name, text in GREETER.items()},
    "packed.tgz": make_tarball(GREETER),
}
CRATE = {
    "Cargo.toml": '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/main.rs": 'fn main() { println!("{}", 1 + 1); }\n#[test]\nfn adds() { assert_eq!(1 + 1, 2); }\n',
}
MODULE = {
    "go.mod": "module demo\n\ngo 1.19\n",
    "main.go": 'package main\n\nimport "os"\n\nfunc main() { os.Stdout.WriteString("built\\n") }\n',
    "main_test.go": 'package main\n\nimport "testing"\n\nfunc TestNothing(t *testing.T) {}\n',
}
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{more}</project>
"""


def maven_artifact(group: str, name: str, version: str) -> dict[str, str | bytes]:
    """As a repository holds it."""
    path = f"repo/{group.replace('.', '/')}/{name}/{version}/{name}-{version}"
    pom = POM.format(group=group, name=name, version=version, more="")
    return {f"{path}.pom": pom, f"{path}.jar": zipped({"META-INF/MANIFEST.MF": "Manifest-Version: 1.0\n"})}


MAVEN = {
    "pom.xml": POM.format(
        group="demo",
        name="app",
        version="1",
        more="<pluginRepositories><pluginRepository><id>central</id><url>file://${project.basedir}/repo</url></pluginRepository>"
        "</pluginRepositories><build><extensions><extension><groupId>demo</groupId><artifactId>extension</artifactId>"
        "<version>1</version></extension></extensions></build>",
    ),
    **maven_artifact("demo", "extension", "1"),
    **maven_artifact("org.codehaus.plexus", "plexus-utils", "1.1"),  # Maven adds it to each extension
}
"""It brings its repository: what is found there is kept in the cache."""
SERVER = {
    "server.js": f"require('http').createServer((asked, answer) => answer.end('served\\n'))"
    f".listen({PORT}, '127.0.0.1', () => console.log('listening'))\n"
}
GIT = "git -c user.name=n -c user.email=e"
ASK = f"curl -sS --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:{PORT}/"
SQL = f"psql -h 127.0.0.1 -p {PORT} -U me -d postgres -tAc"
CHROMIUM = "chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --dump-dom"
PAGE = {"page.html": "<p>a page</p>\n"}

WHEELS = "--offline --no-index --find-links wheels"
SAY = "python -c 'import demo; print(demo.WORD)'"
INITDB = "initdb -D db -U me --no-sync -A trust"

ROWS = (
    Row("`pytest`", "pytest", ("python3",), (Step("python3 -m pytest -q", "1 passed"),), {"test_a.py": "def test_a() -> None: ...\n"}),
    Row("`pip list`", "python", ("python3",), (Step("python3 -m pip list", "pip"),), is_more=True),
    Row(
        "`pip install` of a wheel into a virtual environment",
        "python",
        ("python3",),
        (
            Step("python3 -m venv --without-pip .venv"),
            Step("python3 -m pip --python .venv/bin/python install --no-index --find-links wheels demo", "Successfully installed"),
            Step(f".venv/bin/{SAY}", "installed"),
        ),
        WHEEL,
    ),
    Row(
        "`pip install` from the index",
        "python",
        ("python3",),
        (Step("python3 -m pip install --target t requests"),),
        is_more=True,
        works_outside=False,
    ),
    Row(
        "`uv venv`, `uv pip install`",
        "uv",
        ("uv", "python3"),
        (
            Step("uv venv -q --offline --no-python-downloads .venv"),
            Step(f"uv pip install {WHEELS} demo && .venv/bin/{SAY}", "installed"),
        ),
        WHEEL,
        is_more=True,
    ),
    Row(
        "`uv run` with a package",
        "uv",
        ("uv", "python3"),
        (Step(f"uv run -q --no-project {WHEELS} --with demo {SAY}", "installed"),),
        WHEEL,
    ),
    Row("`node` with a script, `npm test`", "node", ("npm",), (Step("node test.js && npm test", "tested 2"),), PACKAGES),
    Row("`npm run build`", "node", ("npm",), (Step("npm run build && cat dist/test.js", "tested"),), PACKAGES, is_more=True),
    Row(
        "`npm pack`, `npm install` of what it packed, `npm ci`",
        "node",
        ("npm",),
        (
            Step("npm pack ./greeter && npm install --offline ./greeter-1.0.0.tgz", "added 1 package"),
            Step("npm ci --offline && node_modules/.bin/greeter", "greeted"),
        ),
        PACKAGES,
    ),
    Row("`npm install` from the registry", "node", ("npm",), (Step("npm install left-pad"),), PACKAGES, is_more=True, works_outside=False),
    Row(
        "`npx` of a package that is not installed",
        "node",
        ("npx",),
        (Step("npx --offline --yes --package=./packed.tgz greeter", "greeted"),),
        PACKAGES,
    ),
    Row("`cargo test`, `cargo run`", "cargo", ("cargo",), (Step("cargo test --offline -q && cargo run --offline -q", "2"),), CRATE),
    Row("`go test`", "go", ("go",), (Step("go test ./...", "ok"),), MODULE),
    Row("`go build`", "go", ("go",), (Step("go build -o out . && ./out", "built"),), MODULE, is_more=True),
    Row(
        "`make` with a C compiler",
        "make",
        ("make", "cc"),
        (Step("make && ./hello", "compiled"),),
        {"Makefile": "hello: hello.c\n\tcc -o hello hello.c\n", "hello.c": '#include <stdio.h>\nint main(void) { puts("compiled"); }\n'},
    ),
    Row("`make -n`", "make", ("make",), (Step("make -n", "echo x"),), {"Makefile": "all:\n\techo x > out\n"}, is_more=True),
    Row(
        "`mvn validate`",
        "maven",
        ("mvn",),
        (Step("mvn -q validate && find $(echo $MAVEN_OPTS | grep -o '/[^ ]*maven')", "extension-1.jar"),),
        MAVEN,
    ),
    Row(
        "`git status`, `log`, `diff`, `blame`",
        "git",
        ("git",),
        (Step("git status && git log --oneline && git diff HEAD && git blame a", "first"),),
        is_more=True,
    ),
    Row(
        "`git add`, `git commit`",
        "git",
        ("git",),
        (Step(f"echo two > b && git add b && {GIT} commit -qm second && git log --oneline", "second"),),
    ),
    Row("`git stash`, `git stash pop`", "git", ("git",), (Step(f"echo more >> a && {GIT} stash -q && {GIT} stash pop", "Dropped"),)),
    Row(
        "`git rebase`",
        "git",
        ("git",),
        (
            Step(f"git checkout -q -b topic && echo t > t && git add t && {GIT} commit -qm topic"),
            Step(f"git checkout -q main && echo m > m && git add m && {GIT} commit -qm other"),
            Step(f"{GIT} rebase main topic && git log --oneline", "topic"),
        ),
    ),
    Row("`git worktree add`", "git", ("git",), (Step("git worktree add -q one && git -C one log --oneline", "first"),)),
    Row(
        "a second `git worktree add`, `git worktree remove`",
        "git",
        ("git",),
        (
            Step("git worktree add -q one", writes=True),
            Step("git worktree add -q two && git worktree remove one && git worktree list", "two"),
        ),
    ),
    Row("`git config`", "git", ("git",), (Step("git config user.name me"),)),
    Row("`git push` over ssh", "git", ("git", "ssh"), (Step("git push ssh://git@example.org/x.git HEAD"),), works_outside=False),
    Row(
        "a dev server in the background, `curl` from the next command",
        "servers",
        ("node", "curl"),
        (Step("node server.js", "listening", background=True), Step(ASK, "served")),
        SERVER,
        works_outside=False,
    ),
    Row(
        "the same server from your own browser",
        "servers",
        ("node",),
        (Step("node server.js", "listening", background=True), Step(str(PORT), "served", from_outside=True)),
        SERVER,
        works_outside=False,
    ),
    Row(
        "`curl` to a server of your own on this machine",
        "servers",
        ("curl",),
        (Step("curl -sS http://127.0.0.1:{your_port}/", "yours"),),
        is_more=True,
    ),
    Row(
        "PostgreSQL at 127.0.0.1",
        "postgres",
        ("initdb", "postgres", "psql"),
        (
            Step(INITDB, "Success", writes=True),
            Step(f"postgres -D db -k '' -h 127.0.0.1 -p {PORT} -F", background=True, writes=True),
            Step(f"for i in $(seq 100); do {SQL} 'select 40 + 2' 2>said && exit; sleep 0.1; done; cat said; exit 1", "42", writes=True),
        ),
        root_refuses=True,
        works_outside=False,
    ),
    Row(
        "PostgreSQL with its UNIX socket",
        "postgres",
        ("initdb", "postgres"),
        (Step(f"{INITDB} && postgres -D db -k $TMPDIR -h '' -p {PORT}", writes=True),),
        root_refuses=True,
        is_more=True,
        works_outside=False,
    ),
    Row("`docker ps`", "docker", ("docker",), (Step("docker ps"),), works_outside=False),
    Row("Chromium, headless", "chromium", ("chromium",), (Step(f"{CHROMIUM} file://$PWD/page.html", "a page"),), PAGE),
    Row(
        "the same with a profile in the workspace",
        "chromium",
        ("chromium",),
        (Step(f"{CHROMIUM} --user-data-dir=$PWD/profile file://$PWD/page.html", "a page", writes=True),),
        PAGE,
        is_more=True,
    ),
)
