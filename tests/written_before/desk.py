"""The fixtures, and a home with them in it in which the program runs."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import zlib
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dragoman.cli.main import main
from program import Done, Place

HERE = Path(__file__).parent
NAMES: dict[str, str] = json.loads((HERE / "sessions.json").read_text())
"""What a session is about → its id."""
VOYAGE = "/home/user/voyage"
"""The workspace in which the sessions were held."""
SETTINGS = {"text-seed": '[text_tools]\nmode = "text"\ndialect = "seed"\n'}
"""What a session needs in the configuration beside the services."""
LOG = {"log.txt": "3 May: left Basra.\n19 May: reached Muscat.\n", "notes/crew.txt": "Zarif, pilot\nYusuf, cook\n"}
DAYS = {"days.txt": "Basra 3 May\nMuscat 19 May\n"}
LEFT_BEHIND = {
    "program-native": LOG | DAYS,
    "going-back": LOG | DAYS | {"log.txt": LOG["log.txt"].replace("19 May", "20 May")},
    "interrupted": LOG | {"days.txt": "Basra\n"},
    "notes-between-writes": LOG | {f"{number}.txt": f"{number}\n" for number in ("one", "two", "three", "four", "five")},
}
"""The files a session left in its workspace; the others changed none."""


class Desk:
    """A home with the fixtures in it, and the program to open them with."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.place = Place(folder)
        self.home = self.place.home / "dragoman"
        self.work = self.place.work
        self.env = self.place.env | {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TMPDIR": "/tmp"}
        self.home.mkdir()
        self.configure("")

    def configure(self, settings: str) -> None:
        (self.home / "config.toml").write_text((HERE / "services.toml").read_text() + settings)

    def take_all(self) -> None:
        """Every session, to the byte."""
        shutil.copytree(HERE / "sessions", self.home / "data" / "sessions")

    def take(self, name: str) -> Path:
        """One session, moved to this workspace with the files that it left there. Returns its log."""
        source = log_of(name, HERE / "sessions")
        log = self.home / "data" / "sessions" / source.parent.name / source.name
        shutil.copytree(source.parent / "blobs", log.parent / "blobs")
        log.write_bytes(b"".join(map(self._moved, source.read_bytes().splitlines(keepends=True))))
        self.configure(SETTINGS.get(name, ""))
        for path, text in LEFT_BEHIND.get(name, LOG).items():
            (self.work / path).parent.mkdir(exist_ok=True)
            (self.work / path).write_text(text)
        return log

    def _moved(self, line: bytes) -> bytes:
        """A line of a log, with its checksum made anew; what is no whole line stays as it is."""
        checked, crc, _ = line.rpartition(b',"crc":"')
        if not crc:
            return line
        moved = checked.replace(VOYAGE.encode(), os.fsencode(self.work))
        return b'%b,"crc":"%08x"}\n' % (moved, zlib.crc32(moved))

    def dragoman(self, *arguments: str) -> str:
        """What a command prints. In this process: hundreds of processes would take a minute."""
        done = self.run(*arguments)
        assert done.code == 0, done
        return done.out

    def run(self, *arguments: str) -> Done:
        out, err = io.BytesIO(), io.BytesIO()
        with (
            patch.dict(os.environ, self.env, clear=True),
            chdir(self.work),
            redirect_stdout(io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)),
            redirect_stderr(io.TextIOWrapper(err, encoding="utf-8", newline="", write_through=True)),
        ):
            code = main(list(arguments))
            return Done(code, out.getvalue(), err.getvalue())

    def run_apart(self, url: str, *arguments: str) -> Done:
        """In a process of its own, with a service to talk to."""
        return self.place.run(*arguments, env=self.env | {"SERVICE_URL": url, "CORP_KEY": "secret"})

    def at_voyage(self, value: Any) -> Any:
        """The value without what differs from day to day and from machine to machine."""
        if isinstance(value, dict):
            return {key: self.at_voyage(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.at_voyage(each) for each in value]
        if not isinstance(value, str):
            return value
        text = (
            value.replace(os.path.realpath(self.work), VOYAGE)
            .replace(str(self.work), VOYAGE)
            .replace(str(self.home), "/home/user/.dragoman")
        )
        text = re.sub(r"(Today's date is ).*?( \(formatted)", r"\1…\2", text)
        text = re.sub(r"(temporary directory is: .*/)[^/]+-[0-9a-f]{12}\b", r"\1voyage", text)  # named by its path
        return re.sub(r"My operating system is: [^\n]*\n\n", "", text)


def log_of(name: str, sessions: Path) -> Path:
    (log,) = sessions.glob(f"*/{NAMES[name]}.jsonl")
    return log
