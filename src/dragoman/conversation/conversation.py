"""One conversation that any number of front ends watch, send to and answer: an editor, a page in a browser, or both at once.

It holds the agent, what is under way and what waits, and tells everything as ViewEvents. It knows no screen. From one event loop; several
conversations may stand in one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from dragoman.app.connecting import choose_first_model, connect_model
from dragoman.app.opening import close_agent, open_agent
from dragoman.app.options import Options
from dragoman.app.prompts import expand_prompt
from dragoman.app.setup import Setup, has_server_files, set_up
from dragoman.conversation.commands import Command, commands_of, find_command, listed
from dragoman.conversation.events import Renderer, follow
from dragoman.conversation.open_questions import OpenQuestions
from dragoman.conversation.sending import SentEnd, SentText, TextAtWork
from dragoman.conversation.spent_words import WithAgent, was_broken_off, words_on_resume
from dragoman.conversation.talk import close_in_time
from dragoman.conversation.types import AskedQuestion, CommandPage, QuestionAnswer, ViewEvent
from dragoman.conversation.view_log import ViewLog
from dragoman.loop.agent import Agent
from dragoman.loop.run import Run
from dragoman.policy.judge import Mode
from dragoman.sessions.store import FileStore
from dragoman.values.calls import Tool
from dragoman.values.errors import DragomanError, InputError
from dragoman.values.messages import Blob, Content, Effort, FileRef, Text, Thinking
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.asking import FirstQuestion
    from dragoman.app.slash_commands import Invocation
    from dragoman.loop.result import Result

_log = logging.getLogger("dragoman.conversation")
ENDING_S = 1.5


class Conversation(WithAgent):
    """Made by `open`, ended by `close`. What it does is told by `watch`; nothing is shown anywhere else."""

    agent: Agent
    setup: Setup

    def __init__(self, *, holds_session: bool) -> None:
        self.log = ViewLog()
        self.questions = OpenQuestions(self.log.tell, self._block_of, self._find_tool, self._intend, self.cancel)
        self.notices: tuple[str, ...] = ()
        """What a person should know before the first prompt."""
        self.runs = 0
        self.may_retry = False
        self.holds_session = holds_session
        """Whether it stays with its session: commands that go on with another one are refused."""
        self.result: Result | None = None
        """Of the last run."""
        self._renderer = Renderer()
        self._run: Run | None = None
        self._work: TextAtWork | None = None
        self._queue: list[TextAtWork] = []
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._is_closed = False
        self._sent = 0
        self._beside: set[asyncio.Task[Any]] = set()
        """Work of a moment that goes on beside a run."""
        self._prepare: Callable[[Agent], None] | None = None

    # --- opening and closing

    @classmethod
    async def open(
        cls,
        options: Options,
        env: Mapping[str, str] | None = None,
        *,
        session_id: str = "",
        holds_session: bool = False,
        setup: Setup | None = None,
        prepare: Callable[[Agent], None] | None = None,
        waits: bool = True,
    ) -> Conversation:
        """Open what the options name: a folder, a session to go on with, a model. Nobody is asked: a folder that the user has not trusted
        stays so until `ask_first`. Raises DragomanError.

        `session_id`: of a new session, made by the store. `setup`: what was read already. `prepare`: what the front end does with each
        agent that is opened. `waits`: for MCP servers whose tools are not known yet; otherwise they join at a later prompt."""
        conversation = cls(holds_session=holds_session)
        conversation._prepare = prepare
        await conversation._open_agent(choose_first_model(setup or set_up(options, env), None), session_id, waits=waits)
        return conversation

    async def ask_first(self) -> None:
        """Ask what is asked before anything is said: whether the folder is trusted, and whether its servers and hooks may run. With an
        answer the agent is opened anew, in the same session. To be awaited before the first prompt is sent."""
        from dragoman.conversation.first_questions import ask_again

        setup, loop = self.setup, asyncio.get_running_loop()
        trust = setup.trust
        if not (trust.files and (trust.is_trusted or trust.state in ("unasked", "doubted"))) and not has_server_files(setup):
            return

        def ask(question: FirstQuestion) -> str:
            if not (answer := asyncio.run_coroutine_threadsafe(self.questions.ask_first(question), loop).result()):
                raise EOFError  # nobody answered: nothing is remembered
            return answer

        before = self.questions.asked
        changed = await asyncio.to_thread(ask_again, setup, ask)
        # The question may have been answered elsewhere meanwhile: in another conversation, or before an error in the folder was mended.
        if changed is not None and not self._is_closed and (self.questions.asked != before or changed.trust.state != trust.state):
            await self._open_again(changed)

    async def close(self) -> None:
        """End what is under way and leave the session. Whoever waits for an answer or an end gets it."""
        if self._is_closed:
            return
        self._is_closed = True
        self.questions.close()
        for work in self._take_queue():
            work.end(SentEnd("taken_back"))
        self.cancel()
        if under_way := {*self._beside, *([self._task] if self._task is not None else [])}:
            with suppress(asyncio.CancelledError):
                await asyncio.wait(under_way, timeout=ENDING_S)
        for task in self._beside:
            task.cancel()
        await close_agent(self.agent)
        self.log.close()

    async def _open_agent(self, setup: Setup, session_id: str = "", *, waits: bool = True) -> None:
        ask, ask_user = self.questions.ask, self.questions.ask_user
        opened = await open_agent(setup, ask=ask, ask_user=ask_user, waits=waits, session_id=session_id, takes_another=True)
        self.agent, self.notices, self.setup = opened.agent, opened.notices, setup
        self.store = FileStore(setup.places.sessions)
        self.may_retry = was_broken_off(self.agent)
        if self._prepare is not None:
            self._prepare(opened.agent)
        self.log.tell_all(self._renderer.read(self.agent.history.entries))
        self._tell_last_run()

    async def _open_again(self, setup: Setup) -> None:
        """The same session, whether or not it has begun."""
        session_id, entries = self.agent.session_id, self.agent.history.entries
        await close_agent(self.agent)
        if entries:
            setup = msgspec.structs.replace(setup, options=msgspec.structs.replace(setup.options, resume=session_id))
        self._renderer = Renderer()
        self.log.begin_anew()
        await self._open_agent(setup, "" if entries else session_id)

    async def open_session(self, setup: Setup) -> None:
        """Go on with another session, or a new one. Raises DragomanError, and then this one goes on."""
        if self.holds_session:
            raise InputError(say("conversation.session_held"))
        before, renderer = self.agent, self._renderer
        self._renderer = Renderer()
        try:
            opened = await open_agent(setup, ask=self.questions.ask, ask_user=self.questions.ask_user, takes_another=True)
        except BaseException:
            self._renderer = renderer
            raise
        await close_agent(before)
        self.agent, self.notices, self.setup = opened.agent, opened.notices, setup
        if self._prepare is not None:
            self._prepare(opened.agent)
        self.runs, self.may_retry = 0, was_broken_off(self.agent)
        self.log.begin_anew()
        self.show_record()
        self._tell_last_run()

    # --- what is seen

    @property
    def last_run(self) -> str:
        """How the last run of the session ended and what goes on with it, in words; empty where it ended with its answer."""
        return words_on_resume(self.agent, may_retry=self.may_retry) if self.agent.history.entries else ""

    @property
    def session_id(self) -> str:
        return self.agent.session_id

    @property
    def mode(self) -> Mode:
        return self.agent.approvals.mode

    @property
    def effort(self) -> str:
        thinking = self.agent.settings.thinking
        return (thinking.effort or "") if thinking is not None else ""

    @property
    def blocks(self) -> tuple[ViewEvent, ...]:
        """What stands now, one event for each block."""
        return self.log.blocks

    def watch(self, after: int = 0) -> AsyncGenerator[ViewEvent, None]:
        """Events after that number, until the conversation is closed; with 0, first a block each of what stands (view_log.py)."""
        return self.log.watch(after)

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def can_steer(self) -> bool:
        return self._run is not None and not self._is_stopping

    @property
    def waiting(self) -> tuple[SentText, ...]:
        """What is sent when the run is over, in its order."""
        return tuple(work.sent for work in self._queue)

    def show_record(self) -> None:
        """Tell what was written since, beside a run: a title, a rewind, what was cleared."""
        self.log.tell_all(self._renderer.read(self.agent.history.entries[self._renderer.entries_read :]))

    # --- what is sent

    def send(self, text: str, *, media: Sequence[Text | Blob | FileRef] = (), when: Literal["next", "steer"] = "next") -> SentText:
        """Send what a person wrote: a prompt, or a slash command. During a run it waits for its end; with `steer`, a prompt is read by the
        model with its next request. `media`: what goes along; a text among it names no files. Returns at once. Raises InputError where
        there is nothing to send."""
        if self._is_closed:
            raise InputError(say("conversation.closed"))
        if not text.strip() and not media:
            raise InputError(say("conversation.nothing_to_send"))
        self._sent += 1
        work = TextAtWork(SentText(f"w{self._sent}", text, tuple(media)))
        is_command = text.startswith("/") and not text.startswith("//") and not media and not self._begins_with_path(text)
        if when == "steer" and self.can_steer and not is_command and not media and self._run is not None:
            self._run.steer(text.removeprefix("/") if text.startswith("//") else text, self._expand_steer)
            work.end(SentEnd("steered"))
        elif is_command and self.is_busy and self._may_run_now(text):
            self._start_beside(self._carry_out_beside(work))
        else:
            self._queue.append(work)
            self._go_on()
        return work.sent

    def take_back(self, id: str) -> SentText:
        """What waits under that id does not wait any more. Raises InputError where nothing does."""
        found = next((work for work in self._queue if work.sent.id == id), None)
        if found is None:
            raise InputError(say("conversation.no_such_prompt"))
        self._queue.remove(found)
        found.end(SentEnd("taken_back"))
        self._tell_waiting()
        return found.sent

    def answer(self, answer: QuestionAnswer) -> None:
        """Raises InputError for what is no answer to an open question; then it stays open."""
        self.questions.answer(answer)

    @property
    def open_questions(self) -> tuple[AskedQuestion, ...]:
        return self.questions.open

    def cancel(self, *, forgets_steering: bool = False) -> bool:
        """Stop what is under way; what waits is sent afterwards all the same, and so is what a run was steered with and has not read,
        unless that is forgotten. False where nothing is under way."""
        if forgets_steering and self._run is not None:
            self._run.take_back()
        if not self.is_busy or self._is_stopping:
            return False
        self._is_stopping = True
        if self._run is not None:
            self._run.cancel()
        elif self._task is not None:
            self._task.cancel()
        return True

    def cancel_call(self, call_id: str) -> bool:
        """End one call of the run; the others go on."""
        return self._run is not None and self._run.cancel_call(call_id)

    # --- commands and settings

    @staticmethod
    def commands() -> list[Command]:
        """Those that a conversation without a screen of its own has."""
        return [each for each in listed("plain") if each.name not in _OF_A_TERMINAL]

    def file_commands(self) -> Mapping[str, str]:
        """Commands in files and skills: names with their slash → descriptions."""
        from dragoman.app.slash_commands import FileCommands

        names = [each.slash for each in commands_of("plain")]
        return {name: row.description for name, row in FileCommands(self.setup, names).rows.items()}

    async def run_command(self, line: str) -> CommandPage:
        """Carry out a slash command, now if it may run beside a run, else when that is over. What it begins (a prompt, work) goes on."""
        sent = self.send(line)
        done = await sent.ended
        return done.page or CommandPage(line)

    def set_mode(self, mode: str) -> None:
        """From the next question on. Raises InputError."""
        found = next((each for each in get_args(Mode) if each == mode), None)
        if found is None:
            raise InputError(say("no_such_mode", name=mode[:60], known=", ".join(get_args(Mode))))
        self.agent.approvals.mode = found

    def set_effort(self, effort: str) -> None:
        """From the next answer on; empty: as much as the model does by itself. Raises InputError."""
        if not effort:
            self.agent.settings = msgspec.structs.replace(self.agent.settings, thinking=None)
            return
        found = next((each for each in get_args(Effort) if each == effort), None)
        if found is None:
            raise InputError(say("conversation.efforts", now=self.effort or "-", known=", ".join(get_args(Effort))))
        self.agent.settings = msgspec.structs.replace(self.agent.settings, thinking=Thinking(found))

    def change_model(self, name: str) -> None:
        """From the next answer on. Raises DragomanError, and then the model stays."""
        from dragoman.app.first_use import require_weights

        require_weights(self.setup, name, None)
        before = self.agent.provider
        self.agent.change_model(connect_model(self.setup, self.agent.blobs, name))
        if not self.is_busy:
            self._start_beside(close_in_time(before.aclose()))
        self.show_record()

    def set_title(self, title: str) -> None:
        if title.strip():
            self.agent.history.title(" ".join(title.split())[:200])
            self.show_record()

    # --- at work

    def _go_on(self) -> None:
        """Begin the next that waits."""
        if self.is_busy or self._is_closed or not self._queue:
            return self._tell_waiting()
        self._work = work = self._queue.pop(0)
        self._is_stopping = False
        self._tell_waiting()
        self._task = asyncio.get_running_loop().create_task(self._carry_out(work))
        self._task.add_done_callback(lambda _: asyncio.get_running_loop().call_soon(self._go_on))
        return None

    async def _carry_out(self, work: TextAtWork) -> None:
        text = work.sent.text
        try:
            if text.startswith("/") and not work.sent.media and not text.startswith("//") and await self._run_command(work):
                return
            await self._run_prompt(text[1:] if text.startswith("//") else text, work)
        except asyncio.CancelledError:
            work.end(SentEnd("cancelled"))
        except DragomanError as error:
            self._tell_failure(error, work)
        except Exception as error:  # a fault of our own must not end the conversation in silence
            self._tell_failure(InputError(_fault_words(error)), work)
        finally:
            self._run = self._work = None
            work.end(SentEnd("cancelled"))

    async def _carry_out_beside(self, work: TextAtWork) -> None:
        """A command during a run, which goes on whatever becomes of it."""
        try:
            await self._run_command(work)
        except Exception as error:  # whoever waits for its page gets one
            page = CommandPage(work.sent.text, str(_fault_words(error)), failed=True)
            self._tell_page(page, work)
            work.end(SentEnd("failed", page=page, error=page.text))
        finally:
            work.end(SentEnd("cancelled"))

    async def _run_command(self, work: TextAtWork) -> bool:
        """False if it is not a command but begins with a path: then it is a prompt."""
        from dragoman.conversation.held_commands import HeldCommands, HeldTalk

        talk = HeldTalk(self, work.sent.text)
        commands = HeldCommands(talk)
        if not commands.knows(work.sent.text):
            if (invocation := commands.find_in_files(work.sent.text)) is not None:
                await self._run_prompt(None, work, invocation)
                return True
            if self._begins_with_path(work.sent.text):
                return False
        page = await talk.carry_out(commands)
        self.show_record()
        self._tell_page(page, work)
        if talk.begins:
            await self._run_prompt(talk.prompt, work, talk.invocation)
        work.end(SentEnd("answered", page=page))
        return True

    async def _run_prompt(self, prompt: str | None, work: TextAtWork, invocation: Invocation | None = None) -> None:
        """One run. Without a prompt: from where the last one failed. With an invocation: what that stands for."""
        if invocation is not None:
            run = await invocation.start(self.agent, self._tell_notice)
        else:
            run = self.agent.run(None if prompt is None else await self._expand(prompt, work.sent.media))
        self._run = run
        if self._is_stopping:
            run.cancel()
        self.log.drop_passing()
        try:
            async with run:
                async for event in follow(run, self.agent.history.entries, self._renderer):
                    if not (event.kind == "question" and event.passing):  # told with its choices by who asks
                        self.log.tell(event)
        finally:
            if invocation is not None:
                invocation.finish(self.agent)
        result = self.result = run.result
        self.runs += 1
        self.may_retry = result.exit_code != 0
        self._keep_unsaid(run)
        ended = self.log.find("ended")
        work.end(SentEnd(ended.state if ended is not None and ended.state in ("failed", "cancelled") else "done", result))

    async def _expand(self, prompt: str, media: Sequence[Text | Blob | FileRef]) -> str | Sequence[str | Content]:
        """With what it names: images and files, resources and prompts of MCP servers."""
        told = await expand_prompt(self.agent, prompt, self._tell_problem)
        if not media:
            return told
        parts: list[str | Content] = [told] if isinstance(told, str) else [*told]
        return [*(part for part in parts if part != ""), *media]

    async def _expand_steer(self, text: str) -> str | Sequence[Content]:
        try:
            return await expand_prompt(self.agent, text, self._tell_problem)
        except DragomanError as error:
            self._tell_problem(str(error))
            return text

    def _keep_unsaid(self, run: Run) -> None:
        """What came too late for the run is the next prompt."""
        for text in reversed(run.take_back()):
            self._sent += 1
            self._queue.insert(0, TextAtWork(SentText(f"w{self._sent}", f"/{text}" if text.startswith("/") else text)))

    # --- what is told

    def _tell_waiting(self) -> None:
        items = [{"id": work.sent.id, "text": work.sent.text} for work in self._queue]
        before = self.log.find("waiting")
        if items or (before is not None and before.data["items"]):
            self.log.tell(ViewEvent(0, "status", "waiting", data={"items": items}))

    def _tell_page(self, page: CommandPage, work: TextAtWork) -> None:
        self.log.tell(ViewEvent(0, "notice", f"page-{work.sent.id}", page.text, data=page.data, passing=True))

    def _tell_notice(self, text: str) -> None:
        self._tell_beside(text, "info")

    def _tell_problem(self, text: str) -> None:
        """What a prompt names is not sent along as the person meant it."""
        self._tell_beside(text, "warning")

    def _tell_beside(self, text: str, weight: str) -> None:
        self.log.tell(ViewEvent(0, "notice", "notice", text, data={"weight": weight}, passing=True))

    def _tell_last_run(self) -> None:
        if words := self.last_run:
            self._tell_problem(words)

    def _tell_failure(self, error: DragomanError, work: TextAtWork) -> None:
        words = say("run_failed", message=error)
        data = {"error_type": type(error).__name__, "retryable": False, "exit_code": error.exit_code}
        self.log.tell(ViewEvent(0, "ended", "ended", str(words), state="failed", data=data, passing=True))
        work.end(SentEnd("failed", error=str(words)))

    # --- what it knows

    def _take_queue(self) -> list[TextAtWork]:
        queue = list(self._queue)
        self._queue.clear()
        return queue

    def _begins_with_path(self, text: str) -> bool:
        from dragoman.conversation.slash import begins_with_path

        return text.startswith("/") and bool(text.strip("/ ")) and begins_with_path(text)

    @staticmethod
    def _may_run_now(text: str) -> bool:
        words = text.split()
        command = find_command(words[0], "plain")
        return command is not None and command.slash == words[0] and not command.waits(words)

    def _block_of(self, call_id: str) -> str:
        return self._renderer.block_of(call_id)

    def _find_tool(self, name: str) -> Tool | None:
        return self.agent.tools.get(name)

    def _intend(self, tool: Tool, args: Mapping[str, Any]) -> Any:
        return self.agent.approvals.view(tool, args)

    def _start_beside(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)


_OF_A_TERMINAL = {"quit"}


def _fault_words(error: Exception) -> str:
    _log.error("a prompt or command could not be carried out", exc_info=error)
    return say("conversation.fault", reason=f"{type(error).__name__}: {error}")
