"""What importing costs, in fresh interpreters."""

from __future__ import annotations

from benchmarks import sample
from benchmarks.listener import listening
from benchmarks.recording import recorded
from benchmarks.sample import HERE, best, interleaved, median, python
from benchmarks.table import Table

EMPTY = "`python -c pass`"
FLOOR = "`import http.client, json`"
CASES = {
    EMPTY: python("-c", "pass"),
    "`import dragoman`": python("-c", "import dragoman"),
    "`python -m dragoman --version`": python("-m", "dragoman", "--version"),
    FLOOR: python("-c", "import http.client, json"),
    "`import asyncio, ssl, http.client, json`": python("-c", "import asyncio, ssl, http.client, json"),
    "`import openai`": python("-c", "import openai"),
    "`import anthropic`": python("-c", "import anthropic"),
    "`from google import genai`": python("-c", "from google import genai"),
}
# Runs our client and says what it loaded.
WATCHED = """
import sys
seen = set(sys.modules)
sys.argv.pop(0)
exec(open(sys.argv[0]).read())
print(*sys.modules.keys() - seen)
"""


def run(quick: bool) -> list[Table]:
    loaded = first_request_modules("openai_chat")
    ours = f"all that a first request of ours loads ({len(loaded)} modules)"
    cases = CASES | {ours: python("-c", f"import {', '.join(loaded)}")}
    samples = interleaved({name: lambda argv=argv: sample.run(argv) for name, argv in cases.items()}, 2 if quick else 11)
    cpu = {name: [each.cpu_ms for each in taken] for name, taken in samples.items()}
    wall = {name: [each.wall_ms for each in taken] for name, taken in samples.items()}
    columns = ["case", "CPU ms, best", "CPU median", "wall ms, best", "wall median", "CPU × floor", "CPU ms over an empty interpreter"]
    table = Table("Imports", columns)
    for name in cases:
        times = [best(cpu[name]), median(cpu[name]), best(wall[name]), median(wall[name])]
        table.rows.append([name, *times, best(cpu[name]) / best(cpu[FLOOR]), best(cpu[name]) - best(cpu[EMPTY])])
    table.notes = [
        f"The floor is {FLOOR}. Every case is a fresh interpreter with its bytecode cached; {len(cpu[EMPTY])} interleaved rounds.",
        "A first request: the modules in memory after one streamed answer (openai_chat, plain http), imported and nothing else done.",
    ]
    return [table]


def first_request_modules(protocol: str) -> list[str]:
    """What one streamed request loads, beyond what an interpreter starts with."""
    with listening(recorded(protocol, 1)) as listener:
        said = sample.run(python("-c", WATCHED, str(HERE / "ours.py"), protocol, listener.url, "Hello")).said
    names = said.splitlines()[-1].split()
    return sorted(name for name in names if all(part.isidentifier() for part in name.split(".")))
