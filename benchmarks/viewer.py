"""A session of 10,000 entries in the browser: how long until it is there, and the longest frame while it scrolls.

    python -m benchmarks viewer

Frames are what `requestAnimationFrame` sees over 220 steps of a screen each, down and up again, in Debian's headless Chromium.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import Cell, Table
from dragoman.loop.history import History
from dragoman.sessions.store import FileStore
from dragoman.values.messages import Message, Response, Text, Thought, ToolCall, tool_result, user
from dragoman.values.usage import Usage

ENTRIES = 10_000
STEPS = 220
ROUNDS = 3
SCROLL = """async steps => {
  const frames = [];
  let last = performance.now();
  const next = () => new Promise(done => requestAnimationFrame(now => { frames.push(now - last); last = now; done(); }));
  await next(); frames.length = 0;
  for (const way of [1, -1])
    for (let step = 0; step < steps / 2; step++) { scrollBy(0, way * innerHeight * 0.9); await next(); await next(); }
  return frames;
}"""


def run(*, quick: bool = False) -> list[Table]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from program import Place
    from viewer.browsing import chromium, serving, watched

    entries, steps, rounds = (500, 40, 1) if quick else (ENTRIES, STEPS, ROUNDS)
    title = f"A session of {entries:,} entries in Chromium, scrolled by {steps} screens, down and up"
    table = Table(title, ["round", "there after, s", "frame, median ms", "p99 ms", "longest ms", "over 100 ms", "most CPU of a task, ms"])
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        session_id = write_session(place.home / "dragoman" / "data" / "sessions", str(place.work), entries)
        with chromium() as browser, serving(place) as server:
            for number in range(rounds):
                with watched(browser, server, viewport={"width": 1200, "height": 900}) as view:
                    began = time.perf_counter()
                    page = view.open(server.address(f"/s/{session_id}"))
                    page.locator(".row.prompt").first.wait_for()
                    ready_s = time.perf_counter() - began
                    browser.start_tracing(page=page, categories=["toplevel", "disabled-by-default-devtools.timeline", "devtools.timeline"])
                    frames = sorted(page.evaluate(SCROLL, steps))
                    busiest = most_processor_ms(browser.stop_tracing())
                    late = sum(frame > 100 for frame in frames)
                    longest = frames[-1]
                    row: list[Cell] = [
                        str(number + 1),
                        ready_s,
                        statistics.median(frames),
                        frames[int(len(frames) * 0.99)],
                        longest,
                        late,
                        busiest,
                    ]
                    table.rows.append(row)
        place.close()
    table.notes.append(f"load {os.getloadavg()[0]:.1f}; a frame takes 16.7 ms where nothing holds it up")
    return [table]


def most_processor_ms(trace: bytes) -> float:
    """Of the tasks of the page's main thread: what a busy machine does not lengthen."""
    events = json.loads(trace)["traceEvents"]
    mains = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain"}
    tasks = (
        e["tdur"]
        for e in events
        if e["name"] in ("RunTask", "ThreadControllerImpl::RunTask") and "tdur" in e and (e["pid"], e["tid"]) in mains
    )
    return max(tasks, default=0) / 1000


def write_session(sessions: Path, workspace: str, entries: int) -> str:
    stored = FileStore(str(sessions)).create(workspace)
    history = History(stored.journal, entries=stored.loaded.entries)
    history.configure("claude-opus-5", "You are an agent.", deployment="anthropic")
    number = 0
    while len(history.entries) < entries:
        number += 1
        if number % 20 == 1:
            history.say(user(f"Prompt {number}: " + "what happened to the ship? " * (number % 7 + 1)))
        call = ToolCall(f"c{number}", "read_file", json.dumps({"file_path": f"log-{number}.txt"}))
        text = f"Answer **{number}**.\n\n" + "- a line of some length that wraps sometimes\n" * (number % 9)
        said = Message("assistant", (Thought("I look. " * (number % 30)), Text(text), call))
        history.answer(Response(said, "tool_calls", usage=Usage(100, 1000 + number, 0, 50)))
        history.start_tool(call)
        history.finish_tool(tool_result(call, f"line of the log {number}\n" * (number % 40 + 1)), display=f"{number % 40 + 1} lines")
        if number % 20 == 0:
            history.answer(Response(Message("assistant", (Text(f"Done with {number}."),)), "stop", usage=Usage(10, 1000, 0, 20)))
    stored.journal.close()
    return stored.session_id
