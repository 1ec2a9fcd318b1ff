"""A server on its standard input and output: one message a line, all answers on one stream."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from dragoman.mcp_client.channel import Hear, Lose
from dragoman.mcp_client.contracts import StdioServer
from dragoman.mcp_client.errors import McpError, ServerDied, ServerGarbled
from dragoman.mcp_client.messages import MOST_LINE_BYTES, Id, LineCutter, NotAMessage, RpcError, from_wire, to_wire
from dragoman.mcp_client.process import ServerProcess
from dragoman.values.commands import Launch
from dragoman.words import say

MOST_GARBAGE_LINES = 10_000
"""Limit of lines that are not messages, such as logs on the wrong stream. A server that writes nothing else is given up."""
_CHUNK = 256 * 1024
_SHOWN_STDERR = 400


class StdioChannel:
    """Lines on a program's standard input and output."""

    cancels_by_message = True

    def __init__(self, server: StdioServer, name: str, launch: Launch | None = None) -> None:
        self._name = name
        self._process = ServerProcess(server, launch)
        self._reading: asyncio.Task[None] | None = None
        self._is_open = False
        self.garbage = 0
        """How many lines were no messages."""

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stderr(self) -> str:
        return self._process.stderr.text

    async def open(self, hear: Hear, lose: Lose) -> None:
        try:
            await self._process.start()
        except BaseException:
            await self._process.end()
            raise
        self._is_open = True
        self._reading = asyncio.ensure_future(self._read(hear, lose))

    async def request(self, identity: Id, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        await self.tell(message, headers)

    async def tell(self, message: dict[str, Any], headers: Mapping[str, str]) -> None:
        try:
            await self._process.write(to_wire(message))
        except OSError:  # the reader learns how it ended, and says so
            if not self._is_open:
                await self._process.end()  # it may still be ending: before that, its exit code is not known
                raise self._death(self._process.returncode) from None

    def settle(self, version: str, is_modern: bool) -> None:
        """Nothing in this transport depends on it."""

    async def listen(self) -> None:
        """Everything comes by the one stream."""

    async def aclose(self) -> None:
        self._is_open = False
        if self._reading is not None:
            self._reading.cancel()
        await self._process.end()

    async def _read(self, hear: Hear, lose: Lose) -> None:
        cutter = LineCutter()
        try:
            while chunk := await self._process.stdout.read(_CHUNK):
                self._hear_lines(cutter.feed(chunk), hear)
                for identity in cutter.unread:
                    hear(RpcError(identity, 0, say("mcp.too_long", most=MOST_LINE_BYTES)))
                cutter.unread.clear()
                if self.garbage + cutter.dropped > MOST_GARBAGE_LINES:
                    raise ServerGarbled(say("mcp.only_garbage", server=self._name, count=MOST_GARBAGE_LINES))
                await asyncio.sleep(0)  # a server that floods us does not hold up the others
            self._hear_lines(cutter.close(), hear)
        except (OSError, McpError) as error:
            await self._lose(lose, error if isinstance(error, McpError) else None)
        else:
            await self._lose(lose, None)

    def _hear_lines(self, lines: list[bytes], hear: Hear) -> None:
        for line in lines:
            try:
                messages = from_wire(line)
            except NotAMessage:
                self.garbage += 1
                continue
            for message in messages:
                hear(message)

    async def _lose(self, lose: Lose, error: McpError | None) -> None:
        """The program has closed its output. What lives on of it is ended, so that its exit code is known."""
        self._is_open = False
        await self._process.end()
        lose(error or self._death(self._process.returncode))

    def _death(self, code: int | None) -> ServerDied:
        said = self.stderr
        tail = " ".join(said[-_SHOWN_STDERR:].split())
        key = "mcp.died_saying" if tail else "mcp.died"
        values = {"stderr": tail} if tail else {}
        return ServerDied(say(key, server=self._name, code="?" if code is None else code, **values), code, said)
