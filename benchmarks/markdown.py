"""Markdown on the screen while it comes: our own beside rich's Live and markdown-it-py, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.beside import Peer, make_environment
from benchmarks.table import Table

ROOT = Path(__file__).resolve().parent.parent
CHUNK = 20
CHUNKS_A_FRAME = 5
"""How many pieces come between two frames: 2,000 characters a second at 20 frames."""

# What each does with the text in `text`, and what it needs before that.
_OURS = """
from dragoman.tui.markdown import MarkdownStream
from dragoman.tui.theme import Theme
"""
_OURS_STREAM = """
stream, theme, bytes_written = MarkdownStream(79), Theme("dark"), 0
for number, at in enumerate(range(0, len(text), CHUNK)):
    rows = stream.feed(text[at : at + CHUNK])
    bytes_written += sum(len(theme.paint(row).encode()) for row in rows)
    if number % FRAME == 0:
        bytes_written += sum(len(theme.paint(row).encode()) for row in stream.tail()[-8:])
bytes_written += sum(len(theme.paint(row).encode()) for row in stream.finish())
"""
_RICH = """
from io import StringIO
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
"""
_RICH_STREAM = """
out = StringIO()
console = Console(file=out, force_terminal=True, width=79, height=24, color_system="256")
with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
    for number, at in enumerate(range(0, len(text), CHUNK)):
        if number % FRAME == 0:
            live.update(Markdown(text[: at + CHUNK]), refresh=True)
    live.update(Markdown(text), refresh=True)
bytes_written = len(out.getvalue().encode())
"""
_MARKDOWN_IT = """
from markdown_it import MarkdownIt
"""
_MARKDOWN_IT_STREAM = """
parser, bytes_written = MarkdownIt("commonmark").enable("table"), 0
for number, at in enumerate(range(0, len(text), CHUNK)):
    if number % FRAME == 0:
        parser.parse(text[: at + CHUNK])
"""
_SCRIPT = """
import sys, time
text = sys.stdin.read()
CHUNK, FRAME = {chunk}, {frame}
start = time.process_time()
{imports}
imported = time.process_time()
{work}
print(imported - start, time.process_time() - imported, bytes_written)
"""


def run(quick: bool) -> list[Table]:
    rich = make_environment("rich", Peer(("rich",), "", "from rich.markdown import Markdown"))
    ours = Path(sys.executable)
    sizes = (2_000,) if quick else (7_000, 30_000, 100_000)
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("docs/*.md")))
    cases = {
        "ours": (ours, _OURS, _OURS_STREAM),
        "rich Live(Markdown)": (rich, _RICH, _RICH_STREAM),
        "markdown-it-py, reading alone": (rich, _MARKDOWN_IT, _MARKDOWN_IT_STREAM),
    }
    columns = ["case", "import, CPU ms", *(f"{size // 1000} kB, CPU s" for size in sizes), "kB written, largest"]
    table = Table("Markdown while it comes, in pieces of 20 characters, a frame for every 5", columns)
    with tempfile.TemporaryDirectory() as compiled:
        for name, (python, imports, work) in cases.items():
            script = _SCRIPT.format(chunk=CHUNK, frame=CHUNKS_A_FRAME, imports=imports, work=work)
            _measure(python, script, "x", compiled)
            times = 1 if quick else 3
            loaded = min(_measure(python, script, "x", compiled)[0] for _ in range(times))
            taken = [
                min(_measure(python, script, text[:size], compiled)[1:] for _ in range(times if size < 50_000 else 1)) for size in sizes
            ]
            table.rows.append([name, loaded * 1000, *(spent for spent, _ in taken), taken[-1][1] / 1000 or None])
    table.notes = [
        "The text is this project's documentation. Ours lays each line out once and the unfinished part for each frame; rich reads and lays"
        " out the whole text so far for each frame, and shows of it what fits the window.",
        "markdown-it-py: reading the whole text so far for each frame, with no layout at all.",
    ]
    return [table]


def _measure(python: Path, script: str, text: str, compiled: str) -> tuple[float, float, float]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = compiled  # nobody is measured compiling
    done = subprocess.run([python, "-c", script], input=text, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    imported, worked, written = map(float, done.stdout.split())
    return imported, worked, written
