"""A desk with file tools on it: a workspace in a temporary directory, and the tools as the scheduler would call them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from dragoman.tools.edit import Edit, WriteFile
from dragoman.tools.files import ListDirectory, ReadFile, ReadManyFiles
from dragoman.tools.seen import SeenFiles
from dragoman.tools.workspace import Workspace
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.calls import Intent, Tool, ToolOutput
from dragoman.values.messages import Text


class Desk:
    """`desk.run("read_file", file_path="a.txt")` → ToolOutput."""

    def __init__(self, root: Path, **options: Any) -> None:
        root.mkdir(exist_ok=True)
        self.root = Path(os.path.realpath(root))
        self.workspace = Workspace(root, **options)
        self.seen = SeenFiles()
        self.blobs = MemoryBlobs()
        reading = (self.workspace, self.seen, self.blobs)
        made: list[Tool] = [
            ReadFile(*reading),
            ReadManyFiles(*reading),
            ListDirectory(self.workspace),
            WriteFile(self.workspace, self.seen),
            Edit(self.workspace, self.seen),
        ]
        self.tools = {tool.spec.name: tool for tool in made}

    def run(self, tool: str, **args: Any) -> ToolOutput:
        return asyncio.run(self.tools[tool].run(args, lambda text: None))

    def intend(self, tool: str, **args: Any) -> Intent:
        return self.tools[tool].intend(args)

    def plant(self, name: str, data: bytes | str = b"") -> Path:
        """A file as somebody else left it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def read(self, name: str, **window: int) -> str:
        return text_of(self.run("read_file", file_path=name, **window))

    def leftovers(self) -> list[str]:
        """Temporary files that were not cleaned up."""
        return [path.name for path in self.root.rglob(".dragoman-*")]


def text_of(output: ToolOutput) -> str:
    text = "".join(part.text for part in output.content if isinstance(part, Text))
    text.encode()  # valid Unicode, whatever was read
    return text


def refused(output: ToolOutput, error_type: str) -> str:
    """The message of an output that must be an error of this type."""
    assert output.is_error, text_of(output)
    assert output.error_type == error_type, (output.error_type, text_of(output))
    assert not output.changed
    return text_of(output)


def done(output: ToolOutput) -> str:
    assert not output.is_error, text_of(output)
    assert not output.error_type
    return text_of(output)
