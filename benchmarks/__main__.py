"""`python -m benchmarks [name ...]`: run all benchmarks, or those named, and print their tables."""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.table import Table, machine

SUBJECTS = {
    "beside": "the same 200 tool turns beside pydantic-ai and openai-agents, each in an environment of its own",
    "imports": "what importing costs, and `dragoman --version`",
    "first_byte": "from the start of a process to the first byte of its request",
    "editors": "agents as an editor starts them: ours beside others, where DRAGOMAN_PEERS names their folder",
    "decode": "reading a long stream: without a network, and over loopback HTTP",
    "five_tasks": "keys and seconds of five tasks in the terminal: ours beside others, where DRAGOMAN_PEERS names their folder",
    "lists": "`@` in a tree of 200,000 files, and `/resume` among 10,000 sessions",
    "fleet": "the supervisor of many tasks: CPU for each beside a bare asyncio loop of subprocesses, memory by their number",
    "load": "1 to 1,000 agents in one process, beside httpx2 and a bare asyncio client",
    "render": "making a request of a long history: cold, warm, and with two new messages",
    "citations": "markers in a long grounded answer: a megabyte of text, ten thousand supports",
    "kept_work": "what keeping uncommitted work adds to a command in a tree of 5,000 files",
    "commands": "what the sandbox adds to a command, at each level, beside plain execution",
    "context_build": "one round of a long session: new entries, a decision, the request and its bytes",
    "context_cost": "what pruning costs and saves on real sessions, and how well tokens are estimated (checks: make bench-context)",
    "mcp_servers": "the first call of an MCP server's tool, beside the official SDK",
    "questions": "how often a user is asked about the shell commands of real sessions",
    "markdown": "Markdown on the screen while it comes, beside rich and markdown-it-py",
    "sessions": "sessions on disk: list of 1,000, append, resume of 20,000 messages",
    "stores": "the store in files beside the one in SQLite: turns, opening, listing",
    "ten_servers": "ten MCP servers that are not called: ours beside other programs, where DRAGOMAN_PEERS names their folder",
    "terminals": "terminal programs in tmux: ours beside others, where DRAGOMAN_PEERS names their folder",
    "text_tools": "calls read out of text: what is right, by format, and how fast (checks: make bench-text-tools)",
    "traces": "CPU for each turn of an agent with traces off, on, and with what was said",
    "viewer": "a session of 10,000 entries in the browser: until it is there, and frames while it scrolls",
    "tree": "the folder tree of a first message, beside git and ripgrep listing all files",
}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.list:
        print("\n".join(f"{name:12} {about}" for name, about in SUBJECTS.items()))
        return 0
    about = machine()
    print(f"{about}\n")
    tables: list[Table] = []
    for name in options.names or SUBJECTS:
        for table in import_module(f"benchmarks.{name}").run(quick=options.quick):
            print(table.markdown(), flush=True)
            tables.append(table)
    if options.json:
        told = {"machine": about, "quick": options.quick, "tables": [table.data() for table in tables]}
        options.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Tables of ratios. Nothing here passes or fails by a clock.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(SUBJECTS)}; without one: all")
    parser.add_argument("--quick", action="store_true", help="small counts and few repetitions: to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    parser.add_argument("--list", action="store_true", help="name the benchmarks and exit")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in SUBJECTS]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(SUBJECTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
