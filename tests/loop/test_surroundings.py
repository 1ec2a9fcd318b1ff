"""Looking around: folders without walking them all, the date as the user writes it, and what a conversation is told when."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import make_agent
from dragoman.base.dates import _LANGUAGES, write_date
from dragoman.context.compress import find_cut
from dragoman.context.environment import changed_text, environment_text
from dragoman.context.tree import Listing, tree_lines
from dragoman.loop import gitignore, surroundings
from dragoman.loop.agent import Agent
from dragoman.loop.coding import coding_agent
from dragoman.loop.history import History
from dragoman.loop.options import WorkspaceOptions
from dragoman.loop.surroundings import MAX_ENTRIES, MAX_INNER, MAX_SCANNED, folder_tree, folder_trees, gather_surroundings, today
from dragoman.sessions.store import FileStore
from dragoman.testing.scripted import ScriptedProvider
from dragoman.values.errors import InputError, ServerError
from dragoman.values.messages import FinishReason, Response, assistant, user
from dragoman.values.notes import CHANGED_BEGINS, GREETING
from dragoman.values.record import Configured
from dragoman.values.usage import Usage
from scenarios.workshop import QUICK, play


def plant(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (root / path).mkdir(exist_ok=True)
        else:
            (root / path).write_text("")
    return root


def shown(root: Path, limit: int = MAX_ENTRIES) -> list[str]:
    return list(tree_lines(folder_tree(str(root), limit)))


def size(tree: Iterable[Listing]) -> int:
    return sum(len(listing.names) for listing in tree)


# --- folders -------------------------------------------------------------------------------------------------------------


def test_folders_come_first_and_hold_what_is_in_them(tmp_path: Path) -> None:
    plant(tmp_path, "b.txt", "src/deep/x.py", "src/a.py", "empty/")
    assert shown(tmp_path) == ["  empty/", "  src/", "    deep/", "      x.py", "    a.py", "  b.txt"]


def test_what_others_wrote_is_named_and_not_opened(tmp_path: Path) -> None:
    """Vendor folders, virtual environments by whatever name, caches, and what is hidden."""
    plant(tmp_path, "node_modules/a/b.js", "my-env/pyvenv.cfg", "my-env/lib/x.py", "cache/CACHEDIR.TAG", "__pycache__/a.pyc", "target/x")
    plant(tmp_path, ".git/config", ".secret", ".env", ".github/workflows/ci.yml", ".editorconfig")
    assert shown(tmp_path) == [
        *("  .github/", "    workflows/", "      ci.yml", "  cache/ …", "  my-env/ …", "  node_modules/ …", "  target/ …"),
        "  .editorconfig",
    ]


def test_what_git_ignores_is_left_out_and_ignored_folders_are_closed(tmp_path: Path) -> None:
    plant(tmp_path, "a.log", "keep.log", "out/x", "src/out/y", "src/gen/z.py", "src/gen/keep.py", "src/a.py")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/out/\n")
    (tmp_path / "src" / ".gitignore").write_text("gen/*\n!gen/keep.py\n")
    assert shown(tmp_path) == [
        *("  out/ …", "  src/", "    gen/", "      keep.py", "    out/", "      y", "    .gitignore", "    a.py"),
        *("  .gitignore", "  keep.log"),
    ]


def test_a_folder_within_a_repository_heeds_the_files_above_it(tmp_path: Path) -> None:
    plant(tmp_path, ".git/HEAD", "a/b/x.log", "a/b/x.py", "a/b/out/y", "a/c/out/z")
    (tmp_path / ".gitignore").write_text("*.log\n/a/b/out\n")
    assert shown(tmp_path / "a" / "b") == ["  out/ …", "  x.py"]
    (tmp_path / ".gitignore").write_text("a/\n*.log\n")
    assert "  x.log" in shown(tmp_path / "a" / "b"), "whoever works in an ignored folder wants to see it"
    plant(tmp_path, "a/b/.git/HEAD")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert "  x.log" in shown(tmp_path / "a" / "b"), "another repository's files do not count"


def test_a_gitignore_that_is_no_file_is_none(tmp_path: Path) -> None:
    plant(tmp_path, "a", "patterns", "sub/b", "sub/.gitignore/")
    (tmp_path / "patterns").write_text("a\n")
    (tmp_path / ".gitignore").symlink_to("patterns")
    os.mkfifo(tmp_path / "pipe")
    assert "  a" in shown(tmp_path), "git does not follow it either"


def test_links_are_not_followed(tmp_path: Path) -> None:
    plant(tmp_path, "real/x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to(".")
    assert shown(tmp_path) == ["  real/", "    x", "  link", "  loop"]


def test_names_are_shown_on_one_line_each_and_can_be_read_back(tmp_path: Path) -> None:
    odd = ["new\nline", "tab\t", "bidi\u202e", os.fsdecode(b"bad\xff"), "… 3 more", " space ", "back\\slash"]
    for name in odd:
        (tmp_path / name).mkdir()
        (tmp_path / name / "in").touch()
    lines = shown(tmp_path)
    assert len(lines) == 2 * len(odd)
    assert all(line.isprintable() for line in lines)
    workspace = make_agent(ScriptedProvider(""), workspace=tmp_path).workspace
    assert {workspace.resolve(line.strip()) for line in lines[::2]} == {os.path.join(os.path.realpath(tmp_path), name) for name in odd}


def test_a_folder_that_cannot_be_read_stays_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, "locked/x", "open/y")
    scandir = os.scandir

    def guarded(path: str) -> Any:
        if "locked" in path:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert shown(tmp_path) == ["  locked/ …", "  open/", "    y"]
    assert folder_tree(str(tmp_path / "locked")) == {}
    assert folder_tree(str(tmp_path / "gone")) == {}


# --- bounds --------------------------------------------------------------------------------------------------------------


def test_at_most_200_names_and_the_nearest_first(tmp_path: Path) -> None:
    plant(tmp_path, *(f"d{number:02}/f{inner:03}" for number in range(20) for inner in range(100)))
    tree = folder_tree(str(tmp_path))
    assert size(tree.values()) == MAX_ENTRIES
    assert tree[""] == Listing(tuple(f"d{number:02}/" for number in range(20)))
    assert tree["d00/"] == Listing(tuple(f"f{number:03}" for number in range(MAX_INNER)), 100 - MAX_INNER)
    assert "    … 60 more" in shown(tmp_path)
    assert shown(tmp_path)[-1] == "  d19/ …"


def test_what_is_not_needed_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, *(f"d{number:03}/f{inner}" for number in range(500) for inner in range(5)))
    scanned: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (scanned.append(path), scandir(path))[1])
    tree = folder_tree(str(tmp_path))
    assert size(tree.values()) == MAX_ENTRIES
    assert len(scanned) <= 1 + (MAX_ENTRIES - len(tree[""].names)) // 5
    assert tree[""].more == 500 - len(tree[""].names)


class Endless:
    """A folder that never comes to an end."""

    def __init__(self) -> None:
        self.taken = 0

    def __enter__(self) -> Endless:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        while True:
            self.taken += 1
            yield SimpleNamespace(name=f"f{self.taken:07}", is_dir=lambda follow_symlinks: False)


def test_a_monstrous_folder_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = Endless()
    monkeypatch.setattr(os, "scandir", lambda path: endless)
    tree = folder_tree(str(tmp_path))
    assert endless.taken == MAX_SCANNED
    assert tree[""].more == -1
    assert list(tree_lines(tree))[-1] == "  … many more"


def test_a_flat_folder_says_how_much_is_left_out(tmp_path: Path) -> None:
    plant(tmp_path, *(f"f{number:04}" for number in range(1_360)))
    lines = shown(tmp_path)
    assert lines[0] == "  f0000"
    assert lines[-1] == f"  … {1_360 - len(lines) + 1:,} more"


def test_several_directories_are_read_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """START-3: nobody gets past the barrier alone."""
    together = threading.Barrier(3, timeout=60)

    def read(directory: str, limit: int) -> dict[str, Listing]:
        together.wait()
        return folder_tree(directory, limit)

    monkeypatch.setattr(surroundings, "folder_tree", read)
    directories = [str(plant(tmp_path / name, "x")) for name in "abc"]
    assert list(folder_trees(directories)) == directories


def test_several_directories_share_the_names(tmp_path: Path) -> None:
    for name in "abc":
        plant(tmp_path / name, *(f"f{number:03}" for number in range(300)))
    plant(tmp_path / "small", "x")
    directories = [str(tmp_path / name) for name in ("a", "b", "c", "small")]
    trees = folder_trees(directories)
    assert list(trees) == directories, "in the order they were named, whichever was gathered first"
    assert sum(size(tree.values()) for tree in trees.values()) <= MAX_ENTRIES
    assert size(trees[directories[3]].values()) == 1
    assert len({size(trees[each].values()) for each in directories[:3]}) == 1
    alone = size(folder_trees([directories[0], directories[3]])[directories[0]].values())
    assert alone > size(trees[directories[0]].values()), "what one does not need, others get"


@given(layout=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=6), limit=st.integers(1, 40))
def test_never_more_than_allowed(layout: list[tuple[int, int]], limit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("tree")
    for at, (folders, files) in enumerate(layout):
        plant(root / str(at), *(f"d{number}/x" for number in range(folders)), *(f"f{number}" for number in range(files)), "last")
    trees = folder_trees([str(root / str(at)) for at in range(len(layout))], limit)
    assert sum(size(tree.values()) for tree in trees.values()) <= limit


def test_no_program_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder's git configuration can name programs to run: git is never asked."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program was started")

    for module, name in ((subprocess, "Popen"), (os, "posix_spawn"), (os, "fork"), (os, "system")):
        monkeypatch.setattr(module, name, refuse)
    plant(tmp_path, ".git/config", ".gitignore", "a")
    assert "  a" in environment_text(gather_surroundings([str(tmp_path), str(tmp_path / ".git")]))


# --- the date ------------------------------------------------------------------------------------------------------------

DAY = time.struct_time((2026, 1, 7, 12, 0, 0, 2, 7, 0))


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, "Wednesday, January 7, 2026"),
        ({"LANG": "C.UTF-8"}, "Wednesday, January 7, 2026"),
        ({"LANG": "en_US.UTF-8"}, "Wednesday, January 7, 2026"),
        ({"LANG": "en_GB.UTF-8"}, "Wednesday, 7 January 2026"),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "C"}, "Wednesday, January 7, 2026"),
        ({"LANG": "tlh_XX.KOI8"}, "Wednesday, January 7, 2026"),
        ({"LC_TIME": "\udcff\0_x"}, "Wednesday, January 7, 2026"),
    ],
)
def test_the_date_is_written_as_the_user_would(env: dict[str, str], told: str) -> None:
    assert today(env, DAY) == told


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("zh_CN.UTF-8", "2026年1月7日星期三"),
        ("zh_TW.UTF-8", "2026年1月7日 星期三"),
        ("ja_JP.UTF-8", "2026年1月7日水曜日"),
        ("ko_KR.UTF-8", "2026년 1월 7일 수요일"),
        ("de_DE.UTF-8", "Mittwoch, 7. Januar 2026"),
        ("de", "Mittwoch, 7. Januar 2026"),
        ("fr_FR@euro", "mercredi 7 janvier 2026"),
        ("es_MX", "miércoles, 7 de enero de 2026"),
        ("pt_BR.UTF-8", "quarta-feira, 7 de janeiro de 2026"),
        ("ru_RU.UTF-8", "среда, 7 января 2026 г."),
        ("nn_NO.UTF-8", "onsdag 7. januar 2026"),
        ("tr_TR.UTF-8", "7 Ocak 2026 Çarşamba"),
    ],
)
def test_the_date_needs_no_locale_of_the_system(lang: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came out in English wherever the system had not installed the user's language, as most have not."""
    monkeypatch.setitem(sys.modules, "_locale", None)
    assert today({"LANG": lang}, DAY) == told


@pytest.mark.parametrize("language", _LANGUAGES)
def test_every_language_has_seven_days_and_twelve_months(language: str) -> None:
    days = [time.struct_time((2026, month, day, 0, 0, 0, (day + 3) % 7, day, 0)) for month in range(1, 13) for day in range(1, 8)]
    written = {write_date(day, language) for day in days}
    assert len(written) == 84
    assert all(text.isprintable() and "2026" in text for text in written)


# --- the temporary folder ------------------------------------------------------------------------------------------------


def test_the_projects_own_temporary_folder_is_made_and_told(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "tmp" / "project"
    facts = gather_surroundings([str(tmp_path)], temporary=str(folder))
    assert facts.temporary == str(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert f"The project's temporary directory is: {folder}" in environment_text(facts)


def test_where_it_cannot_be_made_the_systems_is_told(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    assert gather_surroundings([str(tmp_path)], temporary=str(tmp_path / "data" / "tmp")).temporary == surroundings.temporary_directory()


def test_the_model_may_write_in_the_temporary_folder(tmp_path: Path) -> None:
    folder, work = tmp_path / "tmp", tmp_path / "work"
    work.mkdir()
    call = json.dumps({"file_path": str(folder / "notes.txt"), "content": "kept"})

    async def go() -> None:
        options = WorkspaceOptions(work, temporary=folder)
        agent = coding_agent(ScriptedProvider(f"call: write_file {call}\n---\ntext: Done."), workspace=options, approval="auto-edit")
        await agent.run("Write a note.")
        assert (folder / "notes.txt").read_text() == "kept"

    asyncio.run(go())


# --- a conversation ------------------------------------------------------------------------------------------------------


def agent_in(folder: Path, script: str = "text: Yes.", **options: Any) -> Agent:
    return make_agent(ScriptedProvider(script), workspace=folder, builtin=False, system="", limits=QUICK, **options)


def user_texts(agent: Agent) -> list[str]:
    return [message.text for message in agent.history.view.messages if message.role == "user"]


def resumed(agent: Agent, folder: Path, **options: Any) -> Agent:
    return agent_in(folder, history=History(entries=agent.history.entries), **options)


def test_a_resumed_conversation_hears_what_changed_once_and_before_the_prompt(tmp_path: Path) -> None:
    async def go() -> None:
        plant(tmp_path, "a.txt", "b.txt")
        first = agent_in(tmp_path, memory=[("AGENTS.md", "Be kind.")])
        await first.run("one")
        (tmp_path / "a.txt").unlink()
        plant(tmp_path, "c.txt")
        second = resumed(first, tmp_path, memory=[("AGENTS.md", "Be brief.")])
        await second.run("two")
        await second.run("three")
        texts = user_texts(second)
        assert [text.startswith((GREETING, CHANGED_BEGINS)) for text in texts] == [True, False, True, False, False]
        assert texts[0] == user_texts(first)[0], "the first message stays: the cached prefix holds"
        assert texts[2].split("\n\n")[1:] == [
            f"New in {tmp_path}:\n  c.txt",
            f"No longer in {tmp_path}:\n  a.txt",
            "--- What AGENTS.md says ---\nBe brief.\n--- End of AGENTS.md ---",
        ]
        third = resumed(second, tmp_path, memory=[("AGENTS.md", "Be brief.")])
        await third.run("four")
        assert user_texts(third) == [*texts, "four"], "nothing changed, nothing told"

    play(go)


def test_what_the_program_told_counts_as_no_message_of_a_session(tmp_path: Path) -> None:
    async def go() -> None:
        work = plant(tmp_path / "work", "a")
        async with agent_in(work, sessions=tmp_path / "kept") as first:
            await first.run("one")
        plant(work, "b")
        async with agent_in(work, sessions=tmp_path / "kept", resume="latest") as second:
            await second.run("two")
            assert user_texts(second)[2].startswith(CHANGED_BEGINS)

    play(go)
    (listed,) = FileStore(tmp_path / "kept").list()
    assert (listed.messages, listed.title) == (4, "one")


def test_a_prompt_that_is_asked_again_stays_the_last_word(tmp_path: Path) -> None:
    async def go() -> None:
        first = agent_in(tmp_path, "error: 500")
        with pytest.raises(ServerError):
            await first.run("one")
        plant(tmp_path, "new")
        second = resumed(first, tmp_path)
        await second.run("one")
        assert user_texts(second)[1:] == ["one"]
        await second.run("two")
        assert user_texts(second)[2].startswith(CHANGED_BEGINS), "it is told with the next prompt"

    play(go)


def test_what_was_summed_up_is_not_told_again(tmp_path: Path) -> None:
    async def go() -> None:
        first = agent_in(tmp_path)
        await first.run("one")
        first.history.compress(first.history.entries[-1], user("In short: nothing."))
        second = resumed(first, tmp_path)
        await second.run("two")
        assert user_texts(second) == ["In short: nothing.", "two"]
        plant(tmp_path, "new")
        third = resumed(second, tmp_path)
        await third.run("three")
        assert user_texts(third)[2:] == [f"{CHANGED_BEGINS}\n\nNew in {tmp_path}:\n  new", "three"]

    play(go)


def test_a_conversation_that_began_elsewhere_is_told_everything_once_and_first(tmp_path: Path) -> None:
    """History from elsewhere follows the environment: it was never told at all."""

    async def go() -> None:
        plant(tmp_path, "a.txt")
        history = History()
        history.say(user("Hello"))
        history.answer(Response(assistant("Hi there!"), FinishReason.STOP))
        agent = agent_in(tmp_path, history=history, memory=[("AGENTS.md", "Be kind.")])
        await agent.run("two")
        await agent.run("three")
        texts = user_texts(agent)
        assert texts[0].startswith(GREETING)
        for words in (f"What {tmp_path} holds:\n  a.txt", "Be kind."):
            assert words in texts[0]
        assert texts[1:] == ["Hello", "two", "three"]
        assert agent.provider.requests[0].messages[0].text == texts[0]
        again = resumed(agent, tmp_path, memory=[("AGENTS.md", "Be kind.")])
        await again.run("four")
        assert user_texts(again) == [*texts, "four"], "once, and as it was told"
        assert again.provider.requests[0].messages[: len(agent.history.view.messages)] == agent.history.view.messages

    play(go)


def test_a_conversation_that_nobody_described_is_described_when_it_is_resumed(tmp_path: Path) -> None:
    async def go() -> None:
        first = agent_in(tmp_path, describe=False)
        await first.run("one")
        second = resumed(first, tmp_path)
        await second.run("two")
        told, *rest = user_texts(second)
        assert told.startswith(GREETING)
        assert rest == ["one", "two"]
        undescribed = resumed(first, tmp_path, describe=False)
        await undescribed.run("two")
        assert user_texts(undescribed) == ["one", "two"]

    play(go)


def test_the_environment_told_late_stays_first_when_the_rest_is_summed_up(tmp_path: Path) -> None:
    async def go() -> None:
        history = History()
        history.say(user("Hello"))
        said = history.answer(Response(assistant("Hi there!"), FinishReason.STOP, usage=Usage(900)))
        agent = agent_in(tmp_path, history=history)
        await agent.run("two")
        plan = agent.plan()
        assert sum(item.tokens for item in plan.items) == plan.tokens
        [told] = [item for item in plan.items if item.kind == "environment"]
        assert (told.state, told.seq > said.seq) == ("kept", True)
        cut = find_cut(history.view, 0.0)
        assert cut is not None
        history.compress(cut.through_seq, user("In short: nothing."), after=cut.after_seq)
        assert [text.startswith(GREETING) for text in user_texts(agent)] == [True, False, False]
        assert user_texts(agent)[1:] == ["In short: nothing.", "two"]

    play(go)


def test_a_directory_is_added_at_once_and_told_with_the_next_prompt(tmp_path: Path) -> None:
    async def go() -> None:
        work, other = plant(tmp_path / "work", "a"), plant(tmp_path / "other", "b")
        agent = agent_in(work)
        await agent.run("one")
        real = agent.add_directory(other)
        assert agent.workspace.resolve(f"{other}/b", writing=True) == f"{real}/b"
        assert agent.add_directory(other) == real
        await agent.run("two")
        await agent.run("three")
        told = user_texts(agent)[2]
        assert told.startswith(CHANGED_BEGINS)
        assert told.split("\n\n")[1:] == [f"I'm working in these directories:\n  - {work}\n  - {real}", f"What {real} holds:\n  b"]
        assert [text.startswith(CHANGED_BEGINS) for text in user_texts(agent)].count(True) == 1
        configured = [entry.directories for entry in agent.history.entries if isinstance(entry, Configured)]
        assert configured == [(str(work),), (str(work), real)]

    play(go)


def test_a_directory_added_before_the_first_prompt_is_in_the_first_message(tmp_path: Path) -> None:
    async def go() -> None:
        work, other = plant(tmp_path / "work", "a"), plant(tmp_path / "other", "b")
        agent = agent_in(work)
        agent.add_directory(other)
        await agent.run("one")
        assert f"What {other} holds:\n  b" in user_texts(agent)[0]
        await agent.run("two")
        assert len(user_texts(agent)) == 3

    play(go)


def test_what_is_no_directory_is_not_added(tmp_path: Path) -> None:
    agent = agent_in(plant(tmp_path, "a"))
    for path in ("a", "missing"):
        with pytest.raises(InputError, match="is not a directory"):
            agent.add_directory(tmp_path / path)


def test_without_a_prompt_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    async def go() -> None:
        with pytest.raises(InputError):
            await agent_in(tmp_path).run()

    play(go)


def test_reading_many_ignore_files_is_bounded_and_the_folders_left_out_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may have written them: a hundred large ones delayed the start by seconds."""
    read = 0
    real = gitignore._rule

    def counted(line: str) -> object:
        nonlocal read
        read += 1
        return real(line)

    monkeypatch.setattr(gitignore, "_rule", counted)
    for number in range(100):
        folder = tmp_path / f"f{number:03}"
        folder.mkdir()
        (folder / ".gitignore").write_text("[a-z]x\n" * 1_000)
        (folder / "a.txt").touch()
    tree = folder_tree(str(tmp_path))
    assert read <= gitignore.MAX_READ / 80
    assert "f000/" in tree
    lines = list(tree_lines(tree))
    assert "  f099/ …" in lines, "named, and said that it was not opened"


def test_usual_ignore_files_are_all_read(tmp_path: Path) -> None:
    rules = "__pycache__/\n*.py[cod]\n*.so\nbuild/\ndist/\n.env\n*.log\n[Bb]in/\n[Oo]bj/\nsecret.txt\n"
    for number in range(60):
        folder = tmp_path / f"f{number:03}"
        folder.mkdir()
        (folder / ".gitignore").write_text(rules * 3)
        (folder / "secret.txt").touch()
        (folder / "a.txt").touch()
    tree = folder_tree(str(tmp_path))
    opened = [listing.names for name, listing in tree.items() if name]
    assert len(opened) == 60
    assert all(names[-1] == "a.txt" and "secret.txt" not in names for names in opened)


def test_the_systems_temporary_folder_is_not_called_the_projects(tmp_path: Path) -> None:
    shared, own = gather_surroundings([str(tmp_path)]), gather_surroundings([str(tmp_path)], temporary=str(tmp_path / "own"))
    assert f"The system's temporary directory is: {shared.temporary}" in environment_text(shared)
    assert "project's temporary" not in environment_text(shared)
    assert f"The project's temporary directory is: {own.temporary}" in environment_text(own)
    assert f"The project's temporary directory is: {own.temporary}" in changed_text([environment_text(shared)], own)
    assert f"The system's temporary directory is: {shared.temporary}" in changed_text([environment_text(own)], shared)
    older = environment_text(shared).replace("The system's temporary", "The project's temporary")
    assert changed_text([older], shared) == "", "a session begun by an earlier version is told nothing new"


def test_the_first_message_of_a_coding_agent_is_true_of_its_temporary_folder(tmp_path: Path) -> None:
    import dragoman as dm
    from dragoman.testing.scripted import ScriptedProvider

    provider = ScriptedProvider("text: Hi.")
    with dm.coding_agent(provider, workspace=tmp_path) as agent:
        agent.run_sync("Hello.")
    assert "The system's temporary directory is: " in provider.requests[0].messages[0].text
