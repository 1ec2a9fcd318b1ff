"""Runs the hooks of an event in parallel, each with a timeout and an output limit."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from dragoman.base.text import one_line
from dragoman.extensions.hooks.answers import Answer, HookEnd, join_answers, read_answer
from dragoman.extensions.hooks.definitions import Hook
from dragoman.extensions.hooks.inputs import Occasion, encode_input, input_of, merge_arguments
from dragoman.extensions.hooks.matching import hooks_for
from dragoman.extensions.sources import ROOT_VARIABLES, fill_root
from dragoman.words import say

MAX_OUTPUT_BYTES = 1_000_000
"""What is kept of each stream; the rest is read and dropped, so that a hook that prints without end is not held up by a full pipe."""
MAX_AT_ONCE = 32
MAX_BACKGROUND = 32
ENDING_S = 0.5
_PLAIN_PATH = re.compile(r"[\w@%+=:,./-]*")


class Exited(Protocol):
    """How a command ended."""

    @property
    def code(self) -> int: ...

    @property
    def timed_out(self) -> bool: ...


class StartsCommands(Protocol):
    """Runs a command whose processes all end with it: tools/process.py does. Raises OSError where it cannot be started."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        env: Mapping[str, str],
        take_stdout: Callable[[bytes], object],
        take_stderr: Callable[[bytes], object],
        timeout_s: float | None,
        stdin: bytes,
    ) -> Awaitable[Exited]: ...


class HookDone(msgspec.Struct, frozen=True):
    """What one hook did."""

    hook: Hook
    answer: Answer
    ended: HookEnd | None = None
    """None where it could not be started, or was not."""


Posted = tuple[HookEnd | None, str]
"""What a URL answered, or why there is no answer."""


async def _post_nothing(hook: Hook, body: bytes) -> Posted:
    return None, say("hooks.not_started", reason=say("hooks.no_network"))


class HookRunner:
    """Runs hooks. `environment` is what commands get of ours; `refuse` gives None for a hook that may run, else what the user is told,
    which may be nothing. `holds` says whether a hook's condition fits; `post` sends the input of those that have an address."""

    def __init__(
        self,
        hooks: Sequence[Hook],
        start: StartsCommands,
        environment: Callable[[], Mapping[str, str]],
        refuse: Callable[[Hook], str | None] = lambda hook: None,
        holds: Callable[[Hook, Occasion], bool] = lambda hook, occasion: True,
        post: Callable[[Hook, bytes], Awaitable[Posted]] = _post_nothing,
    ) -> None:
        self.hooks = tuple(hooks)
        self._holds = holds
        self._post = post
        self._start = start
        self._environment = environment
        self._refuse = refuse
        self._gate = asyncio.Semaphore(MAX_AT_ONCE)
        self._background: set[asyncio.Task[HookDone]] = set()

    def has(self, *events: str) -> bool:
        return any(hook.event in events for hook in self.hooks)

    async def run(self, occasion: Occasion) -> Answer:
        """What the hooks that fit it want together."""
        return join_answers([done.answer for done in await self.run_each(occasion)])

    async def run_each(self, occasion: Occasion) -> list[HookDone]:
        """Side by side; in the order in which they were read. Those in the background are not waited for, and answer nothing."""
        fitting = hooks_for(self.hooks, occasion.event, occasion.subject, lambda hook: self._holds(hook, occasion))
        for hook in fitting:
            if hook.is_async:
                self._run_behind(hook, occasion)
        return list(await asyncio.gather(*(self._run(hook, occasion) for hook in fitting if not hook.is_async)))

    async def close(self) -> None:
        """End those in the background."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=ENDING_S)

    def _run_behind(self, hook: Hook, occasion: Occasion) -> None:
        if len(self._background) >= MAX_BACKGROUND:
            return
        task = asyncio.ensure_future(self._run(hook, occasion))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _run(self, hook: Hook, occasion: Occasion) -> HookDone:
        refused = self._refuse(hook)
        if refused is not None:
            return HookDone(hook, Answer(warnings=(refused,) if refused else ()))
        ended, problem = await self._execute(hook, occasion)
        if ended is None:
            return HookDone(hook, _named(hook, Answer(warnings=(problem,))))
        answer = read_answer(occasion.event, hook.program, ended)
        if answer.arguments is not None:
            answer = msgspec.structs.replace(answer, arguments=_arguments(hook, occasion, answer.arguments))
        return HookDone(hook, _named(hook, answer), ended)

    async def _execute(self, hook: Hook, occasion: Occasion) -> Posted:
        if hook.url:
            async with self._gate:
                return await self._post(hook, encode_input(hook, occasion))
        stdout, stderr = _Kept(), _Kept()
        try:
            async with self._gate:
                ended = await self._start(
                    _argv(hook),
                    directory=hook.project or occasion.directory,
                    env={**self._environment(), **_variables(hook, occasion)},
                    take_stdout=stdout.take,
                    take_stderr=stderr.take,
                    timeout_s=hook.timeout_s,
                    stdin=encode_input(hook, occasion),
                )
        except (OSError, ValueError) as error:
            return None, say("hooks.not_started", reason=getattr(error, "strerror", None) or error)
        return HookEnd(ended.code, stdout.data, stderr.data, ended.timed_out, stdout.is_cut), ""


def _argv(hook: Hook) -> list[str]:
    if hook.args is not None:
        return [fill_root(word, hook.root) for word in (hook.command, *hook.args)]
    # A folder whose name the shell would take apart is left to the shell, which has it as a variable too.
    root = hook.root if _PLAIN_PATH.fullmatch(hook.root) else ""
    return ["/bin/sh", "-c", fill_root(hook.command, root).replace("${/}", os.sep)]


def _variables(hook: Hook, occasion: Occasion) -> dict[str, str]:
    project = hook.project or occasion.directory
    variables = {"DRAGOMAN_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project}
    if hook.root:
        variables |= {**dict.fromkeys(ROOT_VARIABLES, hook.root), "workspacePath": occasion.directory}
    if hook.program == "gemini":
        variables |= {"GEMINI_PROJECT_DIR": project, "GEMINI_CWD": occasion.directory, "GEMINI_SESSION_ID": occasion.session_id}
    if hook.program == "claude" and occasion.event == "SessionStart":
        variables["CLAUDE_ENV_FILE"] = os.devnull  # what is written there is for commands of Claude Code
    return variables


def _arguments(hook: Hook, occasion: Occasion, changed: dict[str, Any]) -> dict[str, Any]:
    """gemini-cli's hooks name what differs, the others all."""
    told = input_of(hook, occasion)["tool_input"]
    merged = {**told, **changed} if hook.program == "gemini" else changed
    return merge_arguments(told, merged, occasion.tool_input)


def _named(hook: Hook, answer: Answer) -> Answer:
    """Warnings say which hook it is."""
    if not answer.warnings:
        return answer
    name = one_line(hook.name or hook.line, 80)
    warnings = tuple(say("hooks.warning", name=name, place=str(hook.origin), event=hook.named, what=each) for each in answer.warnings)
    return msgspec.structs.replace(answer, warnings=warnings)


class _Kept:
    """The beginning of what a stream brings."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_cut = False

    def take(self, piece: bytes) -> None:
        room = MAX_OUTPUT_BYTES - self._size
        if len(piece) > room:
            self.is_cut = True
            piece = piece[:room]
        if piece:
            self._pieces.append(bytes(piece))
            self._size += len(piece)

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)
