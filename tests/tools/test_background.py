"""Background commands and terminals: real bash, in the thread of their own, without a sandbox and in each of its levels."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.background import MAX_RUNNING, BackgroundCommands
from dragoman.tools.job import call_at_work
from dragoman.tools.output import Outputs
from dragoman.tools.shell import RunShell, ShellOutput
from dragoman.tools.workspace import Workspace
from dragoman.values.messages import ToolCall
from processes import alive, children, gone_within, marked_sleep, none_left, started_within
from told_commands import told_of

LONG = bool(os.environ.get("DRAGOMAN_LONG"))
"""Read here: the environment of a test holds nothing of ours."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


class Shells:
    """run_shell and shell_output over the same commands."""

    def __init__(self, folder: Path, *, max_chars: int = 40_000, launch: Any = None) -> None:
        (folder / "work").mkdir(exist_ok=True)
        self.sandbox = launch
        outputs = Outputs(folder / "kept", max_chars)
        self.commands = BackgroundCommands(outputs)
        self.run_shell = RunShell(Workspace(folder / "work"), outputs, background=lambda: self.commands, launch=launch)
        self.shell_output = ShellOutput(outputs, lambda: self.commands)

    async def run(self, command: str, **args: Any) -> dict[str, Any]:
        await self.run_shell.prepare_intent({})
        return told_of(await self.run_shell.run({"command": command, **args}, lambda text: None))

    async def start(self, command: str, **args: Any) -> dict[str, Any]:
        return await self.run(command, background=True, **args)

    async def read(self, id: str, **args: Any) -> dict[str, Any]:
        return told_of(await self.shell_output.run({"id": id, **args}, lambda text: None))


@asynccontextmanager
async def shells_in(folder: Path, **options: Any) -> AsyncIterator[Shells]:
    shells = Shells(folder, **options)
    try:
        yield shells
    finally:
        await shells.commands.close()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = set(children())
    yield
    assert none_left(before)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.tools.shell.GRACE_S", 0.5)


def test_a_command_goes_on_and_is_read_until_it_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            started = await shells.start("echo one; echo two >&2; while [ ! -e go ]; do sleep 0.01; done; echo three; exit 3")
            assert started == {"id": "bg1", "status": "running", "output": "one\ntwo\n"}, "it is not waited for"
            assert await shells.read("bg1") == {"id": "bg1", "status": "running", "output": ""}
            (tmp_path / "work" / "go").touch()
            said = await shells.read("bg1", wait_s=10)
            while said["status"] == "running":
                said = {**await shells.read("bg1", wait_s=10), "output": said["output"]}
            assert said == {"id": "bg1", "status": "ended", "output": "three\n", "exitCode": 3}
            assert shells.commands.take_ended() == []  # it was told

    asyncio.run(main())


def test_two_reads_lose_and_double_nothing(tmp_path: Path) -> None:
    async def main() -> str:
        async with shells_in(tmp_path) as shells:
            said = await shells.start("for i in $(seq 2000); do echo line $i; [ $((i % 400)) = 0 ] && sleep 0.2; done")
            whole = said["output"]
            while said["status"] == "running":
                said = await shells.read("bg1", wait_s=5)
                whole += said["output"]
            return whole

    assert asyncio.run(main()) == "".join(f"line {number}\n" for number in range(1, 2001))


def test_a_flood_is_bounded_in_memory_and_whole_on_disk(tmp_path: Path) -> None:
    """Head and tail for the model, the rest in a file, whose own limit holds as well."""

    size = 100_000_000 if LONG else 20_000_000

    async def main() -> tuple[dict[str, Any], int]:
        async with shells_in(tmp_path, max_chars=10_000) as shells:
            await shells.start(f"echo first; yes | head -c {size}; echo last")
            running = shells.commands.get("bg1")
            assert running is not None
            kept = 0
            while running.is_running:
                await asyncio.sleep(0.05)
                kept = max(kept, running._unread._unread._head_chars + running._unread._unread._tail_chars)
            return await shells.read("bg1"), kept

    said, kept = asyncio.run(main())
    assert kept <= 20_000
    assert (said["status"], said["exitCode"]) == ("ended", 0)
    assert said["output"].endswith("y\nlast\n")
    assert "lines left out here. " in said["output"]
    assert len(said["output"]) < 10_000
    (file,) = (tmp_path / "kept").iterdir()
    assert size <= file.stat().st_size + 1_000 <= size + 2_000
    assert file.read_bytes().startswith(b"first\ny\n")
    assert file.read_bytes().endswith(b"y\nlast\n")


@pytest.mark.parametrize("how", ["plain", "trap '' TERM", "setsid"])
def test_stopping_ends_all_it_has_started(tmp_path: Path, how: str) -> None:
    sleep = marked_sleep()
    command = {"plain": sleep, "setsid": f"setsid {sleep} & {sleep}"}.get(how, f"{how}; {sleep}; {sleep}")

    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            await shells.start(command)
            assert alive(sleep)
            assert (await asyncio.wait_for(shells.read("bg1", stop=True), 60))["status"] == "stopped"
            assert gone_within(60, sleep)
            assert (await shells.read("bg1", stop=True))["status"] == "stopped"

    asyncio.run(main())


def test_closing_ends_all_of_them_and_eight_are_enough(tmp_path: Path) -> None:
    sleep = marked_sleep()

    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            started = await asyncio.gather(*(shells.start(sleep) for _ in range(MAX_RUNNING)))
            assert {each["status"] for each in started} == {"running"}
            assert len({each["id"] for each in started}) == MAX_RUNNING
            assert "8 commands are running" in (await shells.start("true"))["error"]
            assert (await shells.read("bg3", stop=True))["status"] == "stopped"
            assert (await shells.start("true"))["status"] == "ended"
            assert started_within(60, sleep, MAX_RUNNING - 1)
        assert gone_within(60, sleep)

    asyncio.run(main())


def test_a_loop_that_has_ended_does_not_end_them(tmp_path: Path) -> None:
    """A person types meanwhile, or each run of an embedder has its own loop."""
    shells = Shells(tmp_path)
    assert asyncio.run(shells.start("while [ ! -e go ]; do sleep 0.01; done; echo done"))["status"] == "running"
    (tmp_path / "work" / "go").touch()
    deadline, said = time.monotonic() + 60, ""
    while (found := asyncio.run(shells.read("bg1")))["status"] == "running":
        assert time.monotonic() < deadline
        said += found["output"]
        time.sleep(0.02)
    assert found | {"output": said + found["output"]} == {"id": "bg1", "status": "ended", "output": "done\n", "exitCode": 0}
    asyncio.run(shells.commands.close())


def test_cancelling_the_call_ends_the_command(tmp_path: Path) -> None:
    sleep = marked_sleep()

    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            call = asyncio.ensure_future(shells.start(sleep))
            assert await asyncio.to_thread(started_within, 60, sleep)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert gone_within(60, sleep)
            assert shells.commands.describe() == ()

    asyncio.run(main())


def test_a_timeout_holds_in_the_background_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            for timeout_s in (0.3, 3, 30):  # on a busy machine it may end before it has printed anything
                said = await shells.start("echo hi; sleep 100", timeout_s=timeout_s)
                printed = said["output"]
                while said["status"] == "running":
                    said = await shells.read(said["id"], wait_s=60)
                    printed += said["output"]
                assert said["status"] == "timed out"
                if printed:
                    break
            assert printed == "hi\n"

    asyncio.run(main())


def test_what_cannot_be_started_or_found_is_said(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            assert "no background command 'bg9': there are none" in (await shells.read("bg9"))["error"]
            assert "does not exist" in (await shells.start("true", directory="none"))["error"]
            assert shells.commands.describe() == ()

    asyncio.run(main())


# A terminal


def test_a_terminal_is_given_and_its_drawing_becomes_text(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            assert (await shells.run("test -t 0 && test -t 1 && test -t 2 && stty size", tty=True))["stdout"] == "24 120\n"
            bar = r"for i in $(seq 300); do printf '\r\033[2K\033[32m%d%%\033[0m' $i; done; echo; echo done"
            assert (await shells.run(bar, tty=True))["stdout"] == "300%\ndone\n"
            many = await shells.run("seq 1000", tty=True)
            assert many["stdout"] == "".join(f"{number}\n" for number in range(1, 1001))
            long = await shells.run("printf 'x%.0s' $(seq 500); echo; exit 4", tty=True)
            assert (long["stdout"], long["exitCode"]) == ("x" * 500 + "\n", 4)
            full = await shells.run(r"echo before; printf '\033[?1049h\033[Hdrawn\033[?1049l'; echo after", tty=True)
            assert full["stdout"] == "before\nafter\n"

    asyncio.run(main())


def test_a_terminal_in_the_background_tells_what_changed(tmp_path: Path) -> None:
    async def main() -> None:
        async with shells_in(tmp_path) as shells:
            said = await shells.start(r"echo start; printf '10%%'; while [ ! -e go ]; do sleep 0.01; done; printf '\r99%%\n'", tty=True)
            assert said["output"] == "start\n10%\n"
            (tmp_path / "work" / "go").touch()
            said = await shells.read("bg1", wait_s=10)
            assert said["output"] == "99%\n"

    asyncio.run(main())


def _appears(path: Path) -> None:
    _comes_true(path.exists)


def _comes_true(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize("tty", [False, True])
def test_a_command_that_a_call_waits_for_is_left_running(tmp_path: Path, tty: bool) -> None:
    async def scenario() -> None:
        async with shells_in(tmp_path) as shells:
            os.mkfifo(tmp_path / "work" / "pipe")
            call_at_work.set((ToolCall("c1", "run_shell", "{}"), lambda *_: None))
            command = "echo first; echo bad >&2; touch here; cat pipe; echo last; exit 3"
            args = {"command": command, "tty": tty, "timeout_s": 60}
            calling = asyncio.ensure_future(shells.run_shell.run(args, lambda text: None))
            await asyncio.to_thread(_appears, tmp_path / "work" / "here")
            assert not shells.run_shell.leave_running("c2")
            control = shells.run_shell._leavable["c1"].control
            await asyncio.to_thread(_comes_true, lambda: control.has_limit)  # the command is there before its call knows of it
            assert shells.run_shell.leave_running("c1")
            assert not control.has_limit, "its time is lifted"
            assert not shells.run_shell.leave_running("c1"), "it is left already"
            left = await calling
            assert "The user let it go on in the background" in left.content[0].text  # type: ignore[union-attr]
            told = told_of(left)
            assert told["id"] == "bg1"
            assert told["status"] == "running"
            assert not shells.run_shell.leave_running("c1"), "the call is over"
            (tmp_path / "work" / "pipe").write_text("middle\n")
            output = told["output"]
            while (told := await shells.read("bg1", wait_s=20))["status"] == "running":
                output += told["output"]
            output += told["output"]
            assert told["exitCode"] == 3
            assert [word for word in output.split() if word != "bad"] == ["first", "middle", "last"], output
            assert [each.id for each in shells.commands.take_ended()] == []

    asyncio.run(scenario())


def test_a_command_that_was_left_is_stopped_as_others_are(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with shells_in(tmp_path) as shells:
            for number, how in enumerate(("tool", "user", "close"), 1):
                shown = asyncio.Event()
                mark = marked_sleep()
                call_at_work.set((ToolCall("c1", "run_shell", "{}"), lambda *_: None))
                calling = asyncio.ensure_future(
                    shells.run_shell.run({"command": f"echo here; {mark}"}, lambda text, shown=shown: shown.set())
                )
                await shown.wait()
                assert await asyncio.to_thread(started_within, 60, mark)
                assert shells.run_shell.leave_running("c1")
                id = told_of(await calling)["id"]
                assert id == f"bg{number}"
                if how == "tool":
                    assert (await shells.read(id, stop=True))["status"] == "stopped"
                elif how == "user":
                    assert await asyncio.to_thread(shells.commands.stop_from_here, id)
                else:
                    await shells.commands.close()
                assert await asyncio.to_thread(gone_within, 60, mark)

    asyncio.run(scenario())
