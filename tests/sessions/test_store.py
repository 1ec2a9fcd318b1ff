"""The store: sessions are made, found, forked and deleted; names from users never become paths."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.lock import InUse
from dragoman.sessions.log import encode_line
from dragoman.sessions.projects import project_name
from dragoman.sessions.sqlite.store import SqliteStore
from dragoman.sessions.store import FileStore
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, Message, Text, user
from dragoman.values.record import Configured, Entry, FileChange, FilesChanged, Rewound, Said, Started, Unknown
from sessions.entries import sessions
from sessions.stores import NOW_MS, add, add_to, any_store, append, entries, kind, session_id, store, workspace

__all__ = ["any_store", "kind", "store", "workspace"]

HOSTILE = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "a/b",
    "20261115-120102-1a2b3c4d/../x",
    "20261115-120102-1a2b3c4d\n",
    "20261115-120102-1a2b3c4d\0",
    "20261115-120102-1A2B3C4D",
    "２０261115-120102-1a2b3c4d",
    "*",
    "x" * 10_000,
    "\x1b[31m",
    "-",
]


# Making and opening


def test_a_session_goes_on_where_it_ended(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    session = any_store.create(workspace, directories=(str(workspace), "/srv/more"), versions=("dragoman 0",))
    (head,) = session.loaded.entries
    session.journal.append(Said(2, 5, user("hello"), by="person"))
    asyncio.run(session.journal.sync())
    session.journal.close()
    again = any_store.open(session.path)
    assert isinstance(head, Started)
    assert (head.seq, head.session_id, head.directories) == (1, session.session_id, (str(workspace), "/srv/more"))
    assert again.loaded.entries == (head, Said(2, 5, user("hello"), by="person"))
    assert any_store.read(session.path) == again.loaded
    again.journal.close()


def test_files_are_for_the_user_alone(store: FileStore, workspace: Path) -> None:
    """SE02."""
    before = os.umask(0)
    try:
        session = store.create(workspace)
        session.blobs.put("text/plain", b"data")
        session.journal.close()
        store.fork(session.path)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in Path(store.root).parent.rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_the_session_lies_in_its_folders_project(store: FileStore, workspace: Path) -> None:
    session = store.create(workspace, "20261115-120102-1a2b3c4d")
    session.journal.close()
    path = Path(session.path)
    assert path.name == "20261115-120102-1a2b3c4d.jsonl"
    assert path.parent.name == project_name(workspace)
    assert path.parent.name.startswith("my-project-")
    assert path.parent.parent == Path(store.root)


def test_a_folder_reached_by_a_link_is_the_same_project(tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    assert project_name(tmp_path / "link") == project_name(workspace)
    assert project_name(tmp_path) != project_name(workspace)


@pytest.mark.parametrize("name", ["项目", "مشروع", "🚀", "a b", "..hidden", "-x", "ü" * 100, "a\nb", "con\udcff", "%s$(x)"])
def test_any_folder_name_makes_a_project_name(name: str, tmp_path: Path) -> None:
    made = project_name(tmp_path / name)
    assert len(made.encode()) <= 100
    assert made.replace("-", "").replace("_", "").replace(".", "").isalnum()
    assert not made.startswith((".", "-"))
    assert project_name("/").startswith("folder-")


def test_an_id_is_never_used_twice(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    any_store.create(workspace, "20261115-120102-1a2b3c4d").journal.close()
    with pytest.raises(InputError, match="exists already"):
        any_store.create(workspace, "20261115-120102-1a2b3c4d")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_is_no_id_is_refused_everywhere(any_store: FileStore | SqliteStore, workspace: Path, name: str) -> None:
    path = add_to(any_store, workspace, 1)
    for attempt in (
        lambda: any_store.create(workspace, name),
        lambda: any_store.path_of(name, workspace),
        lambda: any_store.fork(path, session_id=name),
        lambda: any_store.add(workspace, [Started(1, 1, name)]),
    ):
        with pytest.raises(InputError, match="not a session id") as refused:
            attempt()
        assert refused.value.exit_code == 42
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 300
    assert len(any_store.list()) == 1


def test_a_path_outside_the_store_is_refused_everywhere(store: FileStore, workspace: Path, tmp_path: Path) -> None:
    inside = add(store, workspace, 1)
    outside = tmp_path / inside.name
    outside.write_bytes(inside.read_bytes())
    (inside.parent / "notes.txt").write_text("x")
    (Path(store.root) / "linked").symlink_to(inside.parent)
    deep = inside.parent / "deep"
    deep.mkdir()
    (deep / inside.name).write_bytes(inside.read_bytes())
    for path in (
        outside,
        "/etc/passwd",
        inside.parent / "notes.txt",
        inside.parent / ".." / ".." / ".." / inside.name,
        deep / inside.name,
        Path(store.root) / "linked" / inside.name,
    ):
        for method in (store.open, store.read, store.fork, store.delete, store.blobs_beside):
            with pytest.raises(InputError, match="not a session"):
                method(path)
    assert outside.exists()


def test_a_log_that_is_a_link_is_refused(store: FileStore, workspace: Path, tmp_path: Path) -> None:
    """SE02: a link planted at the target path is not followed."""
    real = add(store, workspace, 1)
    moved = tmp_path / "moved"
    real.rename(moved)
    real.symlink_to(moved)
    for method in (store.open, store.read, store.fork, store.delete):
        with pytest.raises(InputError):
            method(real)
    assert moved.exists()


# Finding


def test_a_session_is_found_by_what_a_user_types(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    for number in (1, 2, 3):
        add_to(any_store, workspace, number)
    found = {
        which: any_store.find(which, workspace).session_id
        for which in ("latest", "", session_id(2), f" {session_id(2)} ", "20261115-000002", "00000002")
    }
    two, three = map(session_id, (2, 3))
    assert found == {
        "latest": three,
        "": three,
        session_id(2): two,
        f" {session_id(2)} ": two,
        "20261115-000002": two,
        "00000002": two,
    }


def test_an_id_of_another_folder_is_found_but_its_latest_is_not(
    any_store: FileStore | SqliteStore, workspace: Path, tmp_path: Path
) -> None:
    path = add_to(any_store, workspace, 1)
    assert any_store.find(session_id(1), tmp_path).path == path
    with pytest.raises(InputError, match="no session to resume"):
        any_store.find("latest", tmp_path)


@pytest.mark.parametrize(
    ("which", "told"),
    [
        ("20261115", r"fits 3 sessions: 00000003 \(Question 3\); .*; give more of the id"),
        ("2026", "fits 3 sessions"),
        ("0000", "fits 3 sessions"),
        ("ffff", "there is no session 'ffff'"),
        ("9", "there is no session '9': sessions have ids and no numbers"),
        ("1", "sessions have ids and no numbers"),
        ("123", "sessions have ids and no numbers"),
        ("1234", "there is no session '1234'"),
        ("hello", "'hello' is not a session"),
        ("../../etc/passwd", "'../../etc/passwd' is not a session"),
        ("１", "is not a session"),
        ("\x1b[31m\n", "is not a session"),
        ("9" * 5000, "is not a session"),
    ],
)
def test_what_is_not_found_says_what_to_do(any_store: FileStore | SqliteStore, workspace: Path, which: str, told: str) -> None:
    for number in (1, 2, 3):
        add_to(any_store, workspace, number)
    with pytest.raises(InputError, match=told) as refused:
        any_store.find(which, workspace)
    assert "Store.list" in str(refused.value) or "give more" in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("which", HOSTILE)
def test_a_hostile_name_finds_nothing(any_store: FileStore | SqliteStore, workspace: Path, which: str) -> None:
    with pytest.raises(InputError):
        any_store.find(which, workspace)


# Forking


def test_a_fork_has_a_head_of_its_own_and_the_same_entries(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1, "prompt", "answer")
    append(path, Unknown(7, 7, '{"seq":7,"timestamp_ms":7,"kind":"of_tomorrow","x":[1, 2.50]}'), Rewound(9, 9, 3))
    add(store, workspace, 2)
    before = path.read_bytes()
    fork = store.fork(path)
    source, copy = store.read(path), store.read(fork)
    head = copy.entries[0]
    assert isinstance(head, Started)
    assert (head.seq, head.forked_from, head.session_id) == (1, session_id(1), Path(fork).stem)
    assert copy.entries[1:] == source.entries[1:]
    assert Path(fork).read_bytes().split(b"\n", 1)[1] == before.split(b"\n", 1)[1]
    assert path.read_bytes() == before
    assert store.find("latest", workspace).path == fork
    assert store.find("latest", workspace).forked_from == session_id(1)


def test_a_fork_goes_as_far_as_it_is_told(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    path = add_to(any_store, workspace, 1, *"abcdef")
    assert [entry.seq for entry in any_store.read(any_store.fork(path, upto=4)).entries] == [1, 2, 3, 4]
    assert [entry.seq for entry in any_store.read(any_store.fork(path, upto=1)).entries] == [1]
    assert [entry.seq for entry in any_store.read(any_store.fork(path, upto=99)).entries] == list(range(1, 9))
    with pytest.raises(InputError, match="begins with entry 1"):
        any_store.fork(path, upto=0)


def test_a_fork_goes_on_by_itself(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    session = any_store.create(workspace)
    session.journal.append(Said(2, 2, user("together"), by="person"))
    asyncio.run(session.journal.sync())
    fork = any_store.open(any_store.fork(session.path))  # while the source is open
    fork.journal.append(Said(3, 3, user("here"), by="person"))
    session.journal.append(Said(3, 3, user("there"), by="person"))
    fork.journal.close()
    session.journal.close()
    assert _texts(any_store.read(fork.path).entries) == ["together", "here"]
    assert _texts(any_store.read(session.path).entries) == ["together", "there"]


def test_a_fork_shares_the_blobs(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    session = any_store.create(workspace)
    blob = session.blobs.put("image/png", b"picture")
    session.journal.append(Said(2, 2, Message("user", (blob,)), by="person"))
    session.journal.close()
    fork = any_store.fork(session.path)
    assert any_store.blobs_beside(fork).get(blob.sha256) == b"picture"
    any_store.delete(session.path)
    assert any_store.blobs_beside(fork).get(blob.sha256) == b"picture"
    any_store.delete(fork)
    assert any_store.blobs_beside(fork).get(blob.sha256) is None


def test_a_fork_leaves_damage_behind(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1, "one", "two", "three")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"garbage\n" + b"".join(lines[1:3]) + lines[3].replace(b"two", b"tow") + lines[4] + b'{"torn')
    loaded = store.read(store.fork(path))
    assert [entry.seq for entry in loaded.entries] == [1, 2, 3, 5]
    assert isinstance(loaded.entries[0], Started)
    assert (loaded.damage, loaded.torn) == ((), b"")


def test_nothing_to_fork_is_told(store: FileStore, workspace: Path) -> None:
    path = add(store, workspace, 1)
    path.write_bytes(b"garbage\n")
    with pytest.raises(InputError, match="nothing to fork"):
        store.fork(path)
    path.unlink()
    with pytest.raises(InputError, match="there is no session"):
        store.fork(path)
    assert os.listdir(path.parent) == []


def test_a_fork_that_cannot_be_written_leaves_nothing(store: FileStore, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = add(store, workspace, 1)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dragoman.base.atomic.sync_file", full)
    with pytest.raises(InputError, match="No space left"):
        store.fork(path)
    assert os.listdir(path.parent) == [path.name]


@given(made=sessions(max_size=12), upto=st.integers(1, 30))
def test_any_fork_is_a_prefix_of_its_source(made: tuple[Entry, ...], upto: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fork")
    store = FileStore(folder / "sessions")
    head = Started(1, 1, session_id(1))
    rest = tuple(entry for entry in made if entry.seq > 1)
    path = store.add(folder, (head, *rest))
    copied = store.read(store.fork(path, upto)).entries
    assert copied[1:] == tuple(entry for entry in store.read(path).entries[1:] if entry.seq <= upto)


# Keeping what was imported


def test_entries_from_elsewhere_are_kept_as_a_session(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    made = entries(1, workspace, "你好", "hello")
    path = any_store.add(workspace, made)
    head, *rest = any_store.read(path).entries
    assert head == replace(made[0], imported_through=4), "so that none of it is ever undone"
    assert rest == made[1:]
    assert any_store.find("latest", workspace).title == "你好"
    with pytest.raises(InputError, match="exists already"):
        any_store.add(workspace, made)
    with pytest.raises(InputError, match="begin with its head"):
        any_store.add(workspace, [Configured(1, 1, "m")])


# Deleting


def test_deleting_removes_everything_of_the_session_and_nothing_else(store: FileStore, workspace: Path) -> None:
    blobs = FileBlobs(Path(store.directory_of(workspace)) / "blobs")
    own, undo, shared, stranger = (blobs.put("text/plain", data) for data in (b"own", b"before", b"shared", b"stranger"))
    path = add(store, workspace, 1)
    append(path, _said(5, own, shared), FilesChanged(6, 6, "c", (FileChange("/f", before=undo.sha256),)))
    other = add(store, workspace, 2)
    append(other, _said(5, shared))
    path.with_name(f"{session_id(1)}.torn-1").write_bytes(b"tail")
    other.with_name(f"{session_id(2)}.torn-1").write_bytes(b"tail")
    removed = store.delete(path)
    assert (removed.session_ids, removed.blobs) == ((session_id(1),), 2)
    assert {name for name in os.listdir(path.parent) if name != "blobs"} == {other.name, f"{session_id(2)}.torn-1"}
    assert set(os.listdir(path.parent / "blobs")) == {shared.sha256, stranger.sha256}
    assert [each.session_id for each in store.list(workspace)] == [session_id(2)]


def test_a_blob_named_only_in_damage_or_in_a_side_file_stays(store: FileStore, workspace: Path) -> None:
    blobs = FileBlobs(Path(store.directory_of(workspace)) / "blobs")
    in_damage, in_tail, nowhere = (blobs.put("text/plain", data) for data in (b"1", b"2", b"3"))
    path = add(store, workspace, 1)
    append(path, _said(5, in_damage, in_tail, nowhere))
    other = add(store, workspace, 2)
    with other.open("ab") as file:
        file.write(encode_line(_said(5, in_damage)).replace(b"said", b"sa\xffd"))
    other.with_name(f"{session_id(2)}.torn-1").write_bytes(encode_line(_said(6, in_tail))[:-30])
    assert store.delete(path).blobs == 1
    assert set(os.listdir(path.parent / "blobs")) == {in_damage.sha256, in_tail.sha256}


def test_an_open_session_is_never_deleted(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    session = any_store.create(workspace)
    blob = session.blobs.put("text/plain", b"x")
    session.journal.append(_said(2, blob))
    asyncio.run(session.journal.sync())
    with pytest.raises(InUse, match="in use by"):
        any_store.delete(session.path)
    assert session.blobs.get(blob.sha256) == b"x"
    assert len(any_store.list(workspace)) == 1
    session.journal.close()
    any_store.delete(session.path)
    assert list(any_store.list(workspace)) == []


def test_blobs_stay_while_another_session_is_open(store: FileStore, workspace: Path) -> None:
    """It may have put the same bytes there, and not have named them yet."""
    blobs = FileBlobs(Path(store.directory_of(workspace)) / "blobs")
    blob = blobs.put("text/plain", b"the same file")
    path = add(store, workspace, 1)
    append(path, _said(5, blob))
    session = store.create(workspace)
    session.blobs.put("text/plain", b"the same file")
    assert store.delete(path).blobs == 0
    session.journal.append(_said(2, blob))
    session.journal.close()
    assert FileBlobs(blobs.directory).get(blob.sha256) == b"the same file"


def test_what_is_gone_cannot_be_deleted(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    path = add_to(any_store, workspace, 1)
    any_store.delete(path)
    with pytest.raises(InputError, match="there is no session"):
        any_store.delete(path)


def _said(seq: int, *blobs: Blob) -> Said:
    return Said(seq, NOW_MS + seq, Message("user", (Text("see"), *blobs)), by="person")


def _texts(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.message.text for entry in entries if isinstance(entry, Said)]


def test_a_number_never_means_an_id(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    """`sessions delete 9` must not take the one session whose id happens to go on with a 9."""
    any_store.create(workspace, "20261115-120102-9a2b3c4d").journal.close()
    with pytest.raises(InputError, match="there is no session '9'"):
        any_store.find("9", workspace)
    assert any_store.find("9a2b", workspace).session_id == "20261115-120102-9a2b3c4d"


def test_a_session_whose_random_part_is_all_digits_answers_to_its_beginning(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    any_store.create(workspace, "20261115-120102-12345678").journal.close()
    assert any_store.find("1234", workspace).session_id == "20261115-120102-12345678"


def test_the_random_part_comes_before_the_date(any_store: FileStore | SqliteStore, workspace: Path) -> None:
    """A list may show 2026 as the id of one session while all ids begin with that year."""
    named = "20261115-120102-2026abcd"
    for each in (named, "20261116-120102-1a2b3c4d"):
        any_store.create(workspace, each).journal.close()
    assert any_store.short_id(named) == "2026"
    assert any_store.find("2026", workspace).session_id == named


def test_a_session_keeps_its_short_id_while_others_come_and_go(any_store: FileStore | SqliteStore, workspace: Path, tmp_path: Path) -> None:
    """Numbers moved with every new session, so that the same command, given twice, changed two sessions."""
    first = any_store.create(workspace)
    first.journal.close()
    short = any_store.short_id(first.session_id)
    assert short == first.session_id[-8:-4]
    for number in range(100):
        any_store.create(workspace if number % 2 else tmp_path).journal.close()
    assert any_store.short_id(first.session_id) == short
    assert any_store.find(short, tmp_path).session_id == first.session_id
    forked = any_store.fork(first.path)
    assert any_store.find(short, workspace).session_id == first.session_id
    any_store.delete(forked)
    assert len(set(any_store.short_ids(any_store.ids()).values())) == 101


def test_a_file_without_a_single_entry_is_no_candidate(store: FileStore, workspace: Path) -> None:
    store.create(workspace, "20261115-120102-1a2b0000").journal.close()
    Path(store.path_of("20261115-120102-1a2bffff", workspace)).touch()
    assert store.find("1a2b", workspace).session_id == "20261115-120102-1a2b0000"
