"""Imports go downward only: ground ← rooms ← foreign ← loop ← app ← conversation ← front ends; annexes are opened where they are needed.

The rule is kept by reading the source, not by running it. Imports for type checkers (`if TYPE_CHECKING:`) and imports inside functions
count too: a reader has to follow them as well. Imports stand at the top of a module; what is loaded later is listed in `LATER` with the
reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

PACKAGE = "dragoman"
When = Literal["loading", "checking", "calling"]
SOURCE = Path(__file__).resolve().parent.parent / "src" / PACKAGE

# A room is a package directly under dragoman. A new one takes its place here, in checks/files.py and in docs/inside/architecture.md.
GROUND = ("words", "base", "values", "http")
"""Each stands on those before it."""
ROOMS = {"context", "extensions", "mcp_client", "policy", "providers", "sessions", "text_tools", "tools", "typed_output"}
"""Blind to each other: they meet through `values.contracts`, `values.calls` and `values.commands`."""
ABOVE = ("foreign", "loop", "app", "conversation")
"""Each stands on the ground, the rooms, and those before it."""
FRONT_ENDS = {"__main__", "acp", "cli", "fleet", "plain", "tui", "viewer"}
"""None imports another."""
STARTS = {
    ("__main__", "cli.main"),
    ("cli.main", "acp.door"),
    ("cli.main", "tui.first"),
    ("cli.program", "acp.door"),
    ("cli.program", "fleet.command"),
    ("cli.program", "fleet.worker"),
    ("cli.terminal", "tui.first"),
    ("cli.terminal", "tui.question_frame"),
    ("cli.terminal", "tui.opening"),
    ("cli.terminal", "plain.opening"),
    ("cli.program", "viewer.opening"),
}
"""Where one front end starts another: the program shows the first frame, asks what has to be asked before, and opens the conversation."""
PUBLIC = {
    "calls",
    "chat",
    "contracts",
    "errors",
    "events",
    "hooks",
    "mcp",
    "messages",
    "options",
    "record",
    "rules",
    "search",
    "stores",
    "traces",
}
"""Modules that only offer names of others, as the public namespace does. Nothing of ours imports them."""
ANNEXES = {"local", "testing"}
"""They stand on ground and rooms. Whoever opens one does it where it is needed, never while being loaded."""


DOORS = {
    "dragoman",
    "dragoman.testing",
    "dragoman.text_tools",
    "dragoman.context",
    "dragoman.words",
    "dragoman.cli.main",
    "dragoman.cli.program",
}
"""They offer what is behind them by name and load it when it is asked for: public names, tables of sentences, commands."""
LATER = {
    "acp.*": "only where an editor speaks to the program",
    "providers.pace": "only where what may be sent per minute is limited",
    "conversation.help_chinese": "only where help is read in Chinese",
    "loop.choosing": "only where a result is let go or kept by hand",
    "loop.unsupported": "only for a small model",
    "loop.budget": "only where there is a budget",
    "loop.gating": "only where a command may reach a host",
    "loop.hooking": "only where there are hooks",
    "loop.at_work": "only where there are hooks",
    "loop.prepare": "a run has loaded it: a hook is asked about a prompt before it is taken",
    "app.sandbox_state": "only where the sandbox is looked at in a conversation",
    "app.command_hooks": "only where a file defines hooks",
    "app.finding_hooks": "only where a file defines hooks",
    "app.hook_conditions": "only where a hook has a condition",
    "app.http_hooks": "only where a hook is an address",
    "app.outside_programs": "only where a command declares tools",
    "policy.agent_limits": "only where a subagent may not do everything",
    "policy.host_rules": "only where hosts are listed",
    "policy.unasked": "only where a command can run with the workspace read-only",
    "policy.sandbox.write_refusals": "only after a command with the workspace read-only",
    "values.hooks": "only where there are hooks",
    "loop.charging": "only where there is a budget",
    "app.prompt_media": "only where standard input holds something beside the prompt",
    "app.prompt_files": "only where a prompt names something with `@`",
    "app.prompts": "only where a prompt names something with `@`",
    "app.mcp*": "only where MCP servers are configured",
    "app.config_rules": "only where there are rules",
    "app.config_faults": "only where the configuration is wrong",
    "base.found_files": "the catalog: only where it is added to",
    "base.hidden_text": "only where a text is not ASCII",
    "base.toml_lines": "only where the configuration is wrong",
    "app.outside_hooks": "only where the configuration names hooks of a package",
    "app.plugins": "only where there are plugins",
    "app.notices": "only where there are several notices",
    "app.skills": "only where there are skills or plugins",
    "app.slash_commands": "only where a prompt begins with a slash",
    "app.searching": "only where it is asked who searches",
    "base.text_files": "only where there is a file to read",
    "app.debug_log": "only with --debug",
    "app.ways_in": "only where no model is named and no key is set",
    "base.installed": "only where a local model lacks its engine",
    "app.first_use": "only where no model is named and no key is set",
    "app.keys": "only where no variable has the key",
    "app.probe": "only where no model is named and no key is set",
    "app.pulling": "only where weights are missing",
    "foreign.gemini_settings": "only where gemini-cli has settings about tools",
    "foreign.opencode_rules": "only where opencode has rules",
    "foreign.memory": "only where other programs keep memory of their own",
    "foreign.rules": "only where other programs have rules",
    "foreign.wrong_files": "only where other programs have files",
    "app.extensions": "only where other programs have files",
    "extensions.commands": "only where there are folders of commands",
    "app.subagents": "only where subagents are defined",
    "app.worktrees": "only where the folder is a git worktree",
    "app.doubts": "only where a command ever ran",
    "app.trust": "only where a folder has files of its own that would be read",
    "base.places": "only where no variable has the key",
    "base.dates": "only for dates in another language",
    "base.plugins": "only where a deployment names a protocol that is not ours",
    "base.mounts": "only where a folder out of the reach of commands is looked for",
    "base.private": "only where the program names a temporary folder",
    "base.processes": "only where a key command hangs",
    "base.graphemes": "only where a line of a terminal is too long",
    "base.text": "only where a key or a name is missing",
    "base.wrapping": "only where a terminal shows a message",
    "cli.*": "a subcommand is loaded when it is asked for",
    "conversation.*": "a page, a slash command or an editor is loaded when it is asked for",
    "fleet.*": "an action of many tasks is loaded when it is asked for",
    "plain.*": "only where there is a conversation line by line",
    "context.cache_facts": "with the second answer of a session",
    "context.compress": "only where the request is too long",
    "context.economics": "only where something is outdated",
    "context.summarise": "only where the request is too long",
    "context.superseded": "only where a result was pruned, or files that were read again may be",
    "context.plan": "only where the plan is looked at",
    "context.plan_path": "only where what was rewound is left out of a transcript",
    "extensions.hooks.*": "only where a file defines hooks",
    "mcp_client.*": "only where an MCP server is spoken to",
    "http.faults": "only where a connection fails",
    "http.httpx_*": "the other HTTP client: an extra",
    "http.pinned": "only where a page is fetched",
    "http.sse": "only once an answer has come",
    "http.tls": "not for servers without TLS",
    "local.*": "an annex: models in this process",
    "loop.background": "only for code that is not async",
    "loop.answer_faults": "only once an answer has come",
    "tools.broken_json": "only where a model has written arguments that are not JSON",
    "loop.citing": "after the answer",
    "loop.closing": "at the end of a run",
    "loop.commands": "not before a command is run",
    "loop.compressing": "only where a compression is asked for",
    "loop.compression": "only where the request is too long",
    "loop.history_json": "only where a history is wanted as JSON",
    "loop.ending": "only where an agent is closed, or what waits for a run is cancelled",
    "loop.extracting": "only where no summary can be had and pruning is not enough",
    "loop.told_window": "only where a service finds a request too long",
    "loop.fallback": "only where a service keeps refusing",
    "loop.changed_files": "only where the model knows files",
    "loop.discarded_work": "only where a command may throw work away",
    "loop.kept_work": "not before a command is run",
    "loop.files_in_context": "only where something is pruned",
    "loop.gitignore": "only where a folder has such a file",
    "loop.going_back": "only where something is undone or rewound",
    "loop.left_out": "only where the user set temperature, top_p, top_k or thinking",
    "loop.meant": "only where a call does not fit its tool, or was read out of text",
    "loop.pending": "only where calls wait for a decision or a result",
    "loop.resuming": "only where a run goes on with such calls",
    "loop.own_keys": "not before a tool is called",
    "loop.merging": "only where a history from elsewhere is added",
    "loop.replacing": "only where the conversation is cleared or replaced",
    "loop.run_log": "only where the program logs runs",
    "loop.searching": "only where a search is asked for without a model that calls the tool",
    "loop.search_model": "only where the chat model cannot search",
    "loop.tracing": "an extra, and only where traces are on",
    "loop.trial": "only where the request may be too long",
    "loop.subagents": "only where an agent is a tool",
    "loop.handing_over": "only where a conversation is handed over",
    "loop.typed_answer": "only where a value of a type is asked for",
    "loop.upkeep": "not before a first answer",
    "policy.command_rules": "only where a command is judged",
    "app.git_status": "only in a trusted repository",
    "app.safe_git": "only where git is run",
    "app.approvals": "only where approvals of commands were saved",
    "policy.outside": "only where a command is to run outside the sandbox",
    "policy.git_remotes": "only where git is to run outside the sandbox",
    "policy.offers": "only where a command is judged, or approvals of commands were saved",
    "policy.git_folder": "only where something is written, or git is run",
    "policy.commands": "only where a command is judged",
    "policy.guarded_files": "only where something is to be written",
    "policy.discarding": "only where a command is judged",
    "policy.denied_commands": "only where a rule refuses reading",
    "policy.denied_reads": "only where a rule refuses reading, or a command is run in the sandbox",
    "policy.own_files": "only where a tool is called",
    "policy.secret_stores": "only where a tool is called",
    "policy.rules": "only where there are rules, or a host is judged",
    "policy.sandbox.*": "not before a command is run",
    "values.api_shapes": "only where a message is given as other APIs write it",
    "values.media": "only where bytes or a file are given",
    "values.bound_answer": "only where a model failed to write a call that can be read",
    "values.media_types": "only where an image or a file is given, or a file is read",
    "values.pattern_steps": "only where a pattern has repeated groups",
    "policy.tool_rules": "only where there are rules",
    "providers.anthropic_schema": "only where the answer must be JSON",
    "mcp_client.oauth.signing": "only where a server is signed in to with a private key",
    "providers.fetched_auth": "only where a command prints the key",
    "providers.google_auth": "only for Vertex AI",
    "providers.repeated_keys": "only where an answer comes from a service with a key",
    "providers.faults": "only where a service answers with an error",
    "providers.long_waits": "only where a service asks to wait longer than is allowed",
    "providers.persistent_429": "only where a service refuses for good",
    "providers.redact": "only where a service answers with an error",
    "providers.stored_keys": "only where no variable has the key",
    "providers.fault_body": "only where a service answers with an error",
    "providers.logged": "only with --debug",
    "providers.omitting": "only where a service has refused a setting",
    "providers.openai_schema": "only where an answer has to fit a schema",
    "providers.outside": "only where a model's service is not in the catalog",
    "foreign.*": "only where other programs have files",
    "sessions.*": "what is done with a session beside writing it: listing, copying, going back, exporting",
    "testing.cassette": "an annex: only where exchanges are recorded",
    "text_tools.*": "only for models whose calls are written as text",
    "loop.background_commands": "only where a command was left in the background, or the session is resumed",
    "values.plain_settings": "only where settings are given in a plain form",
    "tools.declared": "only where tools are declared as a service has them",
    "tools.given_schema": "only where a tool is given with its schema",
    "tools.ask_user": "only where there is somebody to ask",
    "tools.background": "only where a command is left in the background",
    "tools.listening": "only after a command went on in the background",
    "tools.left_running": "only where a command is run",
    "tools.background_results": "only where a command is left in the background",
    "tools.path_pattern": "not before files are searched",
    "tools.planned_change": "not before a file is changed",
    "tools.edit_list": "not before a file is edited",
    "tools.habits": "only for arguments that do not fit",
    "tools.process": "not before a command is run",
    "tools.command_results": "not before a command is run",
    "tools.command_text": "not before a command is run",
    "tools.refusals": "not before a command has ended",
    "tools.path_refusals": "only where a file cannot be used",
    "tools.printed_text": "not before a command is run",
    "tools.shell_screen": "not before a command is run",
    "tools.writing": "not before a command is run",
    "tools.streams": "not before a command is run",
    "tools.terminal_text": "only where a command is given a terminal",
    "tui.*": "the conversation with a live region, and what of it is asked for",
    "viewer.*": "only where sessions are shown in a browser",
    "tools.web.addresses": "only where a page is fetched",
    "tools.discovery": "only where a command declares tools",
    "tools.web.fetching": "only where a page is fetched",
    "tools.function": "not before a tool is called",
    "tools.web.grounding": "only where an answer has citations",
    "tools.web.links": "only where an address is shown",
    "tools.outside": "only where the configuration names tools of packages",
    "tools.web.pdf": "only where a page is a PDF",
    "tools.web.backends": "only where the web is searched",
    "tools.web.content": "only where a page is fetched",
    "values.typed": "only where a function has a parameter of pydantic's",
    "values.patterns": "only for schemas with a pattern",
    "values.schema": "not before a tool is called",
    "values.record_reading": "only where a log is read",
}
"""Modules that are imported inside functions, and why: the first request does not need them."""
OTHERS_LATER = {
    "fnmatch": "only where tools that are polled are named",
    "base64": "only where bytes are sent or kept as text",
    "certifi": "only where the system has no certificates",
    "ctypes": "only where commands are started",
    "cryptography.hazmat.primitives": "not installed with us; only where a private key signs",
    "cryptography.hazmat.primitives.asymmetric": "not installed with us; only where a private key signs",
    "difflib": "only where something is misspelt or compared",
    "email.utils": "only where a service names a date",
    "jsonschema_rs": "an extra, and only where a tool of an MCP server is called",
    "getpass": "only where a key is typed",
    "google.auth": "an extra",
    "google.auth.exceptions": "an extra",
    "google.auth.transport.requests": "an extra",
    "http.client": "only for weights",
    "httpcore2": "an extra",
    "importlib.metadata": "reads every installed package",
    "importlib.util": "only where an extra may be missing",
    "json": "slower to load than our own use of it",
    "ssl": "only where others may reach the page",
    "threading": "only where a browser is opened",
    "keyring": "an extra",
    "ray": "an extra",
    "ray.util.scheduling_strategies": "an extra",
    "locale": "only where the terminal's encoding is in doubt",
    "pathlib": "only for weights",
    "ipaddress": "only where a rule names an address of IPv6",
    "pydantic": "only for its own types",
    "pydantic.errors": "only for its own types",
    "random": "only where something is retried",
    "readline": "only in a conversation",
    "resource": "only where the limit of open files is asked for",
    "shlex": "only where an editor is started",
    "shutil": "only in the terminal, and for weights",
    "sqlite3": "only where sessions are listed or searched",
    "subprocess": "only inside tmux",
    "sysconfig": "only for weights",
    "tempfile": "only where a file is edited or set aside",
    "tomllib": "only where there is a configuration file",
    "fcntl": "not on Windows",
    "pwd": "not on Windows",
    "termios": "not on Windows",
    "truststore": "only on macOS and Windows",
    "unicodedata": "only where a path is not ASCII",
    "urllib.request": "only where the system has proxies of its own",
    "zipfile": "only for weights",
    "webbrowser": "only where somebody signs in to an MCP server",
    "tree_sitter": "only where a command is judged; without it every command asks",
    "tree_sitter_bash": "only where a command is judged",
}
"""The same for modules that are not ours."""


@dataclass(frozen=True)
class Import:
    """One import of something of ours, as written."""

    importer: str
    target: str
    line: int
    when: Literal["loading", "checking", "calling"] = "loading"
    """While the importer is loaded, for type checkers alone, or when one of its functions is called."""

    @property
    def at_top(self) -> bool:
        return self.when == "loading"

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


def test_every_room_has_a_layer() -> None:
    homeless = {room_of(module) for module in modules()} - {*GROUND} - ROOMS - {*ABOVE} - FRONT_ENDS - PUBLIC - ANNEXES - {""}
    assert not homeless, f"say in tests/test_imports.py which layer these belong to: {sorted(homeless)}"


def test_imports_go_downward() -> None:
    """No front end imports another either, but where it starts it."""
    assert [str(each) for each in upward_imports(modules())] == []


def test_where_a_front_end_starts_another_is_not_forgotten_here() -> None:
    found = {(each.importer, each.target) for module in modules() for each in imports_of(module, modules())}
    named = {(f"{PACKAGE}.{importer}", f"{PACKAGE}.{target}") for importer, target in STARTS}
    assert named - found == set()


def test_no_module_needs_itself() -> None:
    """Neither while it is loaded, nor for its types, nor when its functions are called."""
    assert cycles(modules()) == []


def test_what_is_loaded_later_is_listed_with_its_reason() -> None:
    tree = modules()
    later = [each for module in tree if module not in DOORS for each in imports_of(module, tree) if each.when == "calling"]
    assert [str(each) for each in later if reason_for(each.target) is None] == []
    unused = {pattern for pattern in LATER if not any(fnmatchcase(each.target.removeprefix("dragoman."), pattern) for each in later)}
    assert unused == set(), "nothing of this is loaded later any more"


def test_modules_of_others_are_loaded_later_only_with_a_reason() -> None:
    found = {(name, module) for module in modules() if module not in DOORS for name in others_loaded_by_calls(modules()[module])}
    assert sorted(f"{module}: {name}" for name, module in found if name not in OTHERS_LATER) == []
    assert set(OTHERS_LATER) - {name for name, _ in found} == set()


def test_the_public_namespace_loads_nothing_of_ours() -> None:
    assert [str(each) for each in imports_of(PACKAGE, modules()) if each.at_top] == []


# The checks themselves, on small planted trees: each rule is seen to fail.


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("base.jsontext", "from dragoman.values.errors import InputError"),
        ("values.messages", "from dragoman.providers import wire"),
        ("values.messages", "from dragoman.http import sse"),
        ("values.messages", "import dragoman.loop.agent"),
        ("values.messages", "from dragoman import Message"),
        ("http.sse", "from dragoman.providers.wire import Wire"),
        ("providers.wire", "from dragoman.tools.registry import Registry"),
        ("providers.wire", "from dragoman import tools"),
        ("providers.wire", "from ..tools import registry"),
        ("providers.wire", "def f():\n    import dragoman.tools.registry"),
        ("providers.wire", "try:\n    from dragoman.loop import agent\nexcept ImportError:\n    pass"),
        ("providers.wire", "from dragoman.local import engine"),
        ("tools", "from dragoman.loop.agent import Agent"),
        ("local.engine", "from dragoman.loop.agent import Agent"),
        ("local.engine", "from dragoman.testing import script"),
        ("loop.agent", "from dragoman.cli import main"),
        ("loop.agent", "from dragoman.app import setup"),
        ("app.setup", "from dragoman.cli import main"),
        ("", "from dragoman import app"),
        ("loop.agent", "if TYPE_CHECKING:\n    pass\nelse:\n    from dragoman.cli import main"),
        ("values.messages", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dragoman.loop.agent import Agent"),
        ("values.messages", "import typing\nif typing.TYPE_CHECKING:\n    from dragoman.loop.agent import Agent"),
        ("", "from dragoman import cli"),
    ],
)
def test_an_upward_import_is_found(importer: str, line: str) -> None:
    assert len(list(upward_imports(plant(importer, line)))) == 1


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("values.messages", "from dragoman.values.errors import InputError\nfrom dragoman.base import jsontext"),
        ("values.messages", "import json, msgspec"),
        ("values.messages", "import dragoman_plugin"),
        ("values.messages", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dragoman.values.errors import InputError"),
        ("http.sse", "from dragoman.values import errors"),
        ("providers.wire", "from dragoman.values import messages, errors\nfrom dragoman.http.sse import decode"),
        ("providers.wire", "from dragoman.providers.gemini import to_wire"),
        ("providers.wire", "from . import gemini"),
        ("providers.wire", "from dragoman import __version__"),
        ("providers.wire", "def f():\n    from dragoman.local.engine import Engine"),
        ("providers", "from .wire import Wire"),
        ("local.engine", "from dragoman.providers.wire import Wire"),
        ("loop.agent", "from dragoman.tools import registry\nfrom dragoman.loop import chat\nfrom dragoman.values import messages"),
        ("cli.main", "import dragoman\nfrom dragoman.loop.agent import Agent\nfrom dragoman.providers import wire"),
        ("__main__", "from dragoman.cli.main import main"),
    ],
)
def test_a_downward_import_is_free(importer: str, line: str) -> None:
    assert [str(each) for each in upward_imports(plant(importer, line))] == []


def test_a_circle_is_found_whenever_its_imports_happen() -> None:
    circle = {
        "dragoman.loop.chat": "import dragoman.loop.turn",
        "dragoman.loop.turn": "from dragoman.loop.agent import x",
        "dragoman.loop.agent": "from dragoman.loop import chat",
    }
    assert cycles(circle) == [["dragoman.loop.agent", "dragoman.loop.chat", "dragoman.loop.turn"]]
    found = [["dragoman.loop.agent", "dragoman.loop.chat", "dragoman.loop.turn"]]
    assert cycles(circle | {"dragoman.loop.agent": "def f():\n    from dragoman.loop import chat"}) == found
    assert cycles(circle | {"dragoman.loop.agent": "if TYPE_CHECKING:\n    from dragoman.loop import chat"}) == found
    assert cycles({"dragoman.loop.chat": "from dragoman.loop.chat import x"}) == [["dragoman.loop.chat"]]


PLANTED = (
    "base.jsontext values.messages values.errors http.sse providers.wire providers.gemini tools.registry loop.chat loop.agent "
    "local.engine testing.script app.setup cli.main"
)


def plant(importer: str, source: str) -> dict[str, str]:
    modules = {"", "__main__", *PLANTED.split(), *(name.partition(".")[0] for name in PLANTED.split())}
    tree = {".".join(filter(None, [PACKAGE, module])): "" for module in modules}
    return tree | {".".join(filter(None, [PACKAGE, importer])): source}


# Reading the imports.


@cache
def modules() -> dict[str, str]:
    """Every module of the package by dotted name, with its source."""
    return {module_name(path): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}


def module_name(path: Path) -> str:
    parts = [PACKAGE, *path.relative_to(SOURCE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_package(module: str, tree: Mapping[str, str]) -> bool:
    return module == PACKAGE or any(other.startswith(f"{module}.") for other in tree)


def room_of(module: str) -> str:
    """The room a module is in; empty for the public namespace itself."""
    return module.partition(".")[2].partition(".")[0]


def may_import(importer: str, each: Import) -> bool:
    here, there = room_of(importer), room_of(each.target)
    if here == there:
        return True
    if there in PUBLIC:
        return here == ""
    if there in ANNEXES:
        return here not in GROUND and (each.when != "loading")
    if here in GROUND:
        return there in GROUND[: GROUND.index(here)]
    if here in ROOMS:
        return there in GROUND
    if here in ANNEXES:
        return there in {*GROUND} | ROOMS
    if here in ABOVE:
        return there in {*GROUND} | ROOMS | {*ABOVE[: ABOVE.index(here)]}
    if here in FRONT_ENDS:
        return there not in FRONT_ENDS or (importer.removeprefix("dragoman."), each.target.removeprefix("dragoman.")) in STARTS
    return there not in FRONT_ENDS | {"app", "conversation"}  # the public namespace offers everything that is not the program's


def upward_imports(tree: Mapping[str, str]) -> Iterator[Import]:
    for importer in tree:
        for each in imports_of(importer, tree):
            if not may_import(importer, each):
                yield each


def imports_of(importer: str, tree: Mapping[str, str]) -> Iterator[Import]:
    for statement, when in statements_in(tree[importer]):
        for target in targets(statement, importer, tree):
            yield Import(importer, target, statement.lineno, when)


@cache
def statements_in(source: str) -> list[tuple[ast.Import | ast.ImportFrom, When]]:
    return list(statements(ast.parse(source)))


def statements(node: ast.AST, when: When = "loading") -> Iterator[tuple[ast.Import | ast.ImportFrom, When]]:
    """The import statements below a node."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node, when
        return
    for child in ast.iter_child_nodes(node):
        inside: When = when
        if is_type_checking_block(node) and isinstance(node, ast.If) and child in node.body:
            inside = "checking"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = "calling"
        yield from statements(child, inside)


def reason_for(target: str) -> str | None:
    name = target.removeprefix("dragoman.")
    return next((reason for pattern, reason in LATER.items() if fnmatchcase(name, pattern)), None)


def others_loaded_by_calls(source: str) -> Iterator[str]:
    for statement, when in statements_in(source):
        names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
        yield from (name for name in names if when == "calling" and not is_ours(name))


def is_type_checking_block(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def targets(statement: ast.Import | ast.ImportFrom, importer: str, tree: Mapping[str, str]) -> Iterator[str]:
    """The modules of ours that a statement names: `from a import b` means `a.b` where that is a module, else `a`."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names if is_ours(alias.name))
        return
    source = source_of(statement, importer, tree)
    if not is_ours(source):
        return
    for alias in statement.names:
        if source == PACKAGE and alias.name == "__version__":
            continue  # the one fact about the project that every room may tell
        full = f"{source}.{alias.name}"
        yield full if full in tree else source


def source_of(statement: ast.ImportFrom, importer: str, tree: Mapping[str, str]) -> str:
    if statement.level == 0:
        return statement.module or ""
    climb = statement.level - (1 if is_package(importer, tree) else 0)
    base = importer.split(".")[: len(importer.split(".")) - climb]
    return ".".join([*base, *filter(None, [statement.module])])


def is_ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def cycles(tree: Mapping[str, str]) -> list[list[str]]:
    """Groups of modules that need each other, each sorted by name. The public namespace, which offers everything, is left out."""
    direct = {
        module: {each.target for each in imports_of(module, tree) if each.target in tree and PACKAGE not in (module, each.target)}
        for module in tree
    }
    reach = {module: reachable(module, direct) for module in tree}
    groups = {frozenset(other for other in reach[module] if module in reach[other]) for module in tree if module in reach[module]}
    return sorted(sorted(group) for group in groups)


def reachable(start: str, direct: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(direct[start])
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting.extend(direct[module])
    return found
