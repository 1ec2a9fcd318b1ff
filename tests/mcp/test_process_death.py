"""A server ends with us, also when we are killed: by the launcher, or by the watcher where there is none."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.loop.commands import CommandStarter
from dragoman.mcp_client.client import McpClient
from dragoman.mcp_client.contracts import StdioServer
from dragoman.mcp_client.errors import ServerDied, ServerNotStarted
from processes import alive, gone_within, marked_sleep, started_within

HERE = Path(__file__).parent
ODD = str(HERE / "odd_server.py")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at in /proc")


@pytest.mark.parametrize(
    ("who", "way"),
    [("watcher", "{}"), ("launcher", "{}"), ("launcher", "env -i setsid {}"), ("launcher", "(setsid env -i setsid {} &)")],
)
def test_a_server_and_all_it_started_end_when_we_are_killed(who: str, way: str) -> None:
    mark = marked_sleep()
    command = way.format(mark)
    worker = subprocess.Popen([sys.executable, str(HERE / "death_worker.py"), who, command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
        assert started_within(60, mark, 2)
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.communicate()
    number = mark.split()[1]  # the server itself has it in its arguments
    assert gone_within(60, number), alive(number)


def test_a_server_that_a_launcher_started_is_spoken_to_and_ends() -> None:
    mark = marked_sleep()

    async def run() -> None:
        launch = CommandStarter(["/"], False)
        client = McpClient(StdioServer(sys.executable, ("-S", "-E", ODD, "starts-children", mark)), launch=launch)
        try:
            await client.call_tool("say", {"text": f"env -i {mark}"})
            assert started_within(60, mark, 2)
        finally:
            await client.aclose()
            launch.close()

    asyncio.run(run())
    number = mark.split()[1]
    assert gone_within(60, number), alive(number)


def test_death_and_a_missing_folder_are_told_with_a_launcher_too() -> None:
    async def run() -> None:
        launch = CommandStarter(["/"], False)
        dying = McpClient(StdioServer(sys.executable, ("-S", "-E", ODD, "dies")), launch=launch)
        nowhere = McpClient(StdioServer(sys.executable, ("-S", "-E", ODD, "well"), cwd="/no/such/folder"), launch=launch)
        try:
            with pytest.raises(ServerDied, match="out of rope") as caught:
                await dying.call_tool("say", {})
            assert caught.value.exit_code_of_server == 7
            with pytest.raises(ServerNotStarted):
                await nowhere.connect()
        finally:
            await dying.aclose()
            launch.close()

    asyncio.run(run())
