"""Server-sent events as MCP uses them: the data, the id to resume from after a disconnect, and how long to wait before that."""

from __future__ import annotations

from dragoman.http.sse import ServerEvent, SSEDecoder
from dragoman.mcp_client.messages import MOST_LINE_BYTES

MOST_RETRY_S = 60.0


class ResumableDecoder(SSEDecoder):
    """Sans-IO: feed bytes, get events. `last_id` and `retry_s` are those of the last complete event that had one."""

    max_event_bytes = MOST_LINE_BYTES

    def __init__(self) -> None:
        super().__init__()
        self.last_id = ""
        self.retry_s: float | None = None

    def restart(self) -> None:
        """A new stream begins: what was half read of the last one will be sent again."""
        last, retry = self.last_id, self.retry_s
        self.__init__()
        self.last_id, self.retry_s = last, retry

    def _parse(self, block: bytes) -> ServerEvent | None:
        if b"id" in block or b"retry" in block:
            for line in block.split(b"\n"):
                self._note(line)
        return super()._parse(block)

    def _note(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_s = min(int(value) / 1000, MOST_RETRY_S)
