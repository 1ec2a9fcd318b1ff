"""Our reading of a repository's index and objects gives what git says of them, however they are packed."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

import pytest

from dragoman.policy.git_index import read_index
from dragoman.policy.git_objects import GitObjects

ENV = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def git(folder: Path, *words: str) -> bytes:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.fsync=none")
    return subprocess.run(["git", *who, *words], cwd=folder, env=ENV, check=True, capture_output=True, timeout=60).stdout


def repository(root: Path, seed: int, *, commits: int = 6) -> Path:
    chance = random.Random(seed)
    root = Path(os.path.realpath(root))
    root.mkdir(exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    lines = [f"line {number} {chance.random()}\n" for number in range(400)]
    for _ in range(commits):
        for name in ("a.txt", "src/b.txt", "src/deep/ü c.txt", "empty"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            lines[chance.randrange(400)] = f"{chance.random()}\n"
            (root / name).write_text("" if name == "empty" else "".join(lines))
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more", "--allow-empty")
    return root


@pytest.mark.parametrize("packing", ["loose", "packed", "ref-delta", "both"])
@pytest.mark.parametrize("version", [2, 4])
def test_every_object_and_every_name_is_read_as_git_reads_it(tmp_path: Path, packing: str, version: int) -> None:
    root = repository(tmp_path / "work", version)
    if packing in ("packed", "both"):
        git(root, "gc", "-q", "--aggressive")
    if packing == "ref-delta":
        git(root, "-c", "repack.useDeltaBaseOffset=false", "repack", "-qadf", "--depth=50")
    if packing == "both":
        (root / "later.txt").write_text("not packed\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "later")
    git(root, "update-index", "--index-version", str(version))
    objects = GitObjects(str(root / ".git"))
    assert objects.head() == git(root, "rev-parse", "HEAD").decode().strip()
    listed = [line.split(b"\t") for line in git(root, "ls-tree", "-r", "-z", "HEAD").split(b"\0") if line]
    names = {name: facts.split()[2].decode() for facts, name in listed}
    assert objects.files_at(objects.head()) == names
    assert {entry.name: entry.object_id for entry in read_index((root / ".git" / "index").read_bytes())} == names
    for line in git(root, "rev-list", "--objects", "--all").splitlines():
        object_id = line.split()[0].decode()
        kind = git(root, "cat-file", "-t", object_id).strip()
        found = objects.read(object_id)
        assert found is not None
        assert found == (kind, git(root, "cat-file", kind.decode(), object_id))


def test_what_is_damaged_or_not_there_is_not_taken_for_content(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", 1, commits=2)
    git(root, "gc", "-q")
    objects = GitObjects(str(root / ".git"))
    wanted = list(objects.files_at(objects.head()).values())
    [pack] = (root / ".git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    data = bytearray(pack.read_bytes())
    chance = random.Random(5)
    for _ in range(40):
        broken = bytearray(data)
        for _ in range(20):
            broken[chance.randrange(12, len(broken))] = chance.randrange(256)
        pack.write_bytes(broken)
        for object_id in wanted:
            found = objects.read(object_id)
            assert found is None or found.data == git_blob(root, object_id, pack, bytes(data))
        pack.write_bytes(data)
    assert objects.read("0" * 40) is None
    assert objects.read("../../../../etc/passwd") is None


def git_blob(root: Path, object_id: str, pack: Path, whole: bytes) -> bytes:
    now = pack.read_bytes()
    pack.write_bytes(whole)
    try:
        return git(root, "cat-file", "blob", object_id)
    finally:
        pack.write_bytes(now)


def test_a_damaged_index_is_refused_and_nothing_else(tmp_path: Path) -> None:
    root = repository(tmp_path / "work", 2, commits=1)
    data, chance = (root / ".git" / "index").read_bytes(), random.Random(3)
    for _ in range(300):
        broken = bytearray(data)
        broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            assert len(list(read_index(bytes(broken[: chance.randrange(len(broken))])))) >= 0
        except ValueError:
            continue
