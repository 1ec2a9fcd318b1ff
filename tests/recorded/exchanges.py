"""Recorded exchanges with real services: a folder of `*.jsonl` or `*.jsonl.xz` files, one exchange on each line.

The recordings are not part of the project: they are read in place and never copied into it. `DRAGOMAN_RECORDINGS` names their folder.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from dragoman.values.profile import ProtocolName
from outside_folders import RECORDINGS

PROTOCOLS: tuple[ProtocolName, ...] = ("anthropic", "openai_chat", "openai_responses", "gemini")


class Exchange(msgspec.Struct, frozen=True):
    """A request as some program sent it, and what the service answered."""

    id: str
    source: str
    """Repository, path and number of the recording."""
    kind: Literal["recorded", "fixture"]
    """fixture: an answer alone, sometimes written by hand."""
    protocol: ProtocolName
    host: str
    status: int
    stream: bool
    body: str
    path: str = ""
    query: str | None = None
    model: str | None = None
    request: Any = None
    """The decoded body of the request; None for a fixture."""
    response_headers: dict[str, Any] = {}

    @property
    def asked(self) -> dict[str, Any]:
        """The request, empty where it is not known."""
        return self.request if isinstance(self.request, dict) else {}


def are_there(folder: Path = RECORDINGS) -> bool:
    return folder.is_dir() and any(_files(folder))


def read_exchanges(protocol: ProtocolName, folder: Path = RECORDINGS) -> Iterator[Exchange]:
    """Every exchange of a protocol, in the order of the files' names."""
    for path in _files(folder):
        # A file that is named for another protocol need not be unpacked.
        if any(path.name.startswith(other + ".") for other in PROTOCOLS if other != protocol):
            continue
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as lines:
            yield from (exchange for exchange in _decode(lines, path) if exchange.protocol == protocol)


def _decode(lines: Iterable[bytes], path: Path) -> Iterator[Exchange]:
    decode = msgspec.json.Decoder(Exchange).decode
    for number, line in enumerate(lines, 1):
        try:
            yield decode(line)
        except msgspec.MsgspecError as error:
            raise ValueError(f"{path}, line {number} is not a recorded exchange: {error}") from error


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.xz")))
