"""One session of the client: its conversation, told as updates, asked and answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from dragoman.acp.asking import ClientQuestions
from dragoman.acp.calls import fenced
from dragoman.acp.outgoing import (
    AgentChunk,
    AvailableCommand,
    CommandInput,
    CommandsUpdate,
    ConfigOption,
    ConfigUpdate,
    ModeUpdate,
    SelectOption,
    SessionUpdate,
    StopReason,
    TextBlock,
    Update,
)
from dragoman.acp.rpc import INTERNAL_ERROR, NEEDS_SIGN_IN, AcpError, ClientPeer
from dragoman.acp.settings import options_of
from dragoman.acp.stdio import Writer
from dragoman.acp.updates import SessionMeter, Shows, Updates
from dragoman.conversation.conversation import Conversation
from dragoman.conversation.sending import SentEnd, SentText
from dragoman.conversation.types import AskedQuestion, ViewEvent
from dragoman.values.messages import Blob, Text
from dragoman.values.record import paid_usage
from dragoman.words import say

OUTPUT_S = 0.1
"""How often a command's output is told: each update tells all of it."""
_NOT_HERE = {"new", "resume", "fork", "import"}
"""Commands that go on with another session: the client has its own for it."""
_STOPS: dict[str, StopReason] = {
    "TurnLimit": "max_turn_requests",
    "OutputLimit": "max_tokens",
    "AnswerTooLong": "max_tokens",
    "Refused": "refusal",
    "Cancelled": "cancelled",
}
_log = logging.getLogger("dragoman.acp")


class EditorSession:
    """`models`: those that the client may choose from."""

    def __init__(
        self, conversation: Conversation, peer: ClientPeer, writer: Writer, shows: Shows, models: Callable[[], tuple[SelectOption, ...]]
    ) -> None:
        self.conversation = conversation
        self.id = conversation.session_id
        self._peer = peer
        self._writer = writer
        self._models = models
        self._asking = ClientQuestions(peer, shows, self.id, conversation)
        self._updates = Updates(shows, conversation.setup.workspace, self._meter, lambda sha256: conversation.agent.blobs.get(sha256))
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._outputs: dict[str, asyncio.TimerHandle] = {}
        self._first: asyncio.Task[None] | None = None
        self._waiting_first = 0
        """Prompts that wait for it."""
        self._prompts: list[SentText] = []
        self._begun: set[asyncio.Task[StopReason]] = set()
        self._told_options: tuple[ConfigOption, ...] = ()
        self._told_commands: tuple[AvailableCommand, ...] = ()
        self._told_mode = conversation.mode
        self._cost_usd: float | None = None
        self._priced = 0
        self._seen = 0
        self._moved = asyncio.Condition()
        self._watching: asyncio.Task[None] | None = None

    # --- beginning and end

    def replay(self) -> None:
        """All that stands, for a client that loads the session."""
        for update in self._updates.replay(self.conversation.blocks):
            self._tell(update)
        if words := self.conversation.last_run:
            for update in self._updates.notice(words, "warning"):
                self._tell(update)
        self._tell(self._updates.usage())

    def start(self) -> None:
        """Once the client knows the session."""
        self._updates.hides_prompts = True
        self._tell_commands()
        self._seen = self.conversation.log.seq
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        for handle in self._outputs.values():
            handle.cancel()
        for task in (self._watching, self._first, *self._questions.values()):
            if task is not None:
                task.cancel()
        await self.conversation.close()

    # --- what the client sends

    async def prompt(self, text: str, along: Sequence[Text | Blob]) -> StopReason:
        """Until it is done; it waits its turn. `along`: files and media. Raises AcpError if the run fails."""
        if not await self._ask_first():
            return "cancelled"
        sent = self.conversation.send(text, media=along)
        self._prompts.append(sent)
        try:
            done = await asyncio.shield(sent.ended)
        except asyncio.CancelledError:
            self._stop(sent)
            raise
        finally:
            self._prompts.remove(sent)
        await self._caught_up(self.conversation.log.seq)
        self.tell_settings()
        return self._stop_reason(done)

    def steer(self, text: str) -> bool:
        """Have the model read a text within the run under way. False where none is."""
        if not self.conversation.can_steer:
            return False
        self.conversation.send(text, when="steer")
        return True

    def begin_prompt(self, text: str, media: Sequence[Blob]) -> None:
        """Send it, for nobody who waits for its end."""
        task = asyncio.get_running_loop().create_task(self.prompt(text, media))
        self._begun.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[StopReason]) -> None:
        self._begun.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(AgentChunk(TextBlock(str(error)), f"failed-{id(task)}"))

    def cancel(self) -> None:
        """End what is under way, and what waits: also a prompt that nobody waits for, and what a run was steered with too late."""
        for sent in self.conversation.waiting:
            self.conversation.take_back(sent.id)
        self.conversation.cancel(forgets_steering=True)
        self._leave_first()

    def _stop(self, sent: SentText) -> None:
        if any(each is sent for each in self.conversation.waiting):
            self.conversation.take_back(sent.id)
        else:
            self.conversation.cancel(forgets_steering=True)

    def _leave_first(self) -> None:
        """What is asked before the first prompt is left unanswered, and asked again with the next one."""
        if self._first is not None and not self._first.done():
            for question in self.conversation.open_questions:
                self.conversation.questions.dismiss(question.id)
            self._first.cancel()
            self._first = None

    async def _ask_first(self) -> bool:
        """Ask what is asked before the first prompt. False: it was cancelled."""
        if self._first is None:
            self._first = asyncio.get_running_loop().create_task(self._open_first())
        first = self._first
        if self._waiting_first or not first.done():  # else nothing is awaited: a cancel that comes with the prompt must find it sent
            self._waiting_first += 1
            try:
                await asyncio.wait([first])
            except asyncio.CancelledError:
                if self._waiting_first == 1:
                    self._leave_first()
                raise
            finally:
                self._waiting_first -= 1
        if first.cancelled():
            return False
        if first.exception() is not None and self._first is first:
            self._first = None  # it may be mended by the next prompt
        first.result()
        return True

    async def _open_first(self) -> None:
        await self.conversation.ask_first()
        if notices := [str(notice) for notice in self.conversation.notices]:
            for update in self._updates.notice("\n".join(notices), "warning"):
                self._tell(update)
        self.tell_settings()
        self._tell_commands()  # those of a folder that is trusted now

    def _stop_reason(self, done: SentEnd) -> StopReason:
        if done.how in ("cancelled", "taken_back"):
            return "cancelled"
        kind = done.result.error_type if done.result is not None else ""
        if kind in _STOPS:
            if kind != "Cancelled" and (ended := self.conversation.log.find("ended")) is not None:
                self._tell(AgentChunk(TextBlock(f"\n\n{ended.text}"), f"ended-{ended.seq}"))
            return _STOPS[kind]
        if done.how == "failed":
            ended = self.conversation.log.find("ended")
            words = done.error or (ended.text if ended is not None else "")
            raise AcpError(NEEDS_SIGN_IN if kind == "Unauthorized" else INTERNAL_ERROR, words, {"type": kind} if kind else None)
        return "end_turn"

    # --- what the client is told

    def _tell(self, update: Update) -> None:
        self._peer.notify("session/update", SessionUpdate(self.id, update))

    def options(self) -> tuple[ConfigOption, ...]:
        """As they are now; the client is being told them."""
        self._told_options = options_of(self.conversation, self._models())
        return self._told_options

    def tell_settings(self, *, has_options: bool = False) -> None:
        """If they have changed since they were told. `has_options`: the client has just been answered with them."""
        before = self._told_options
        if self.options() != before and not has_options:
            self._tell(ConfigUpdate(self._told_options))
        if self.conversation.mode != self._told_mode:
            self._told_mode = self.conversation.mode
            self._tell(ModeUpdate(self._told_mode))

    def _tell_commands(self) -> None:
        if (commands := self._commands()) != self._told_commands:
            self._told_commands = commands
            self._tell(CommandsUpdate(commands))

    def _commands(self) -> tuple[AvailableCommand, ...]:
        found = [
            AvailableCommand(row.name, str(say(f"commands.help_{row.name.replace('-', '_')}")), _hint(row.usage))
            for row in self.conversation.commands()
            if row.name not in _NOT_HERE
        ]
        files = self.conversation.file_commands()
        return (*found, *(AvailableCommand(name.lstrip("/"), about or name, CommandInput("…")) for name, about in files.items()))

    def _meter(self) -> SessionMeter:
        agent = self.conversation.agent
        entries = agent.history.entries
        for entry in entries[self._priced :]:
            if any(paid_usage([entry])) and (cost := agent.cost_usd([entry])) is not None:
                self._cost_usd = (self._cost_usd or 0.0) + cost
        self._priced = len(entries)
        return SessionMeter(agent.provider.profile(agent.model).context_window, self._cost_usd)

    async def _watch(self) -> None:
        async for event in self.conversation.watch(self._seen):
            try:
                self._show(event)
            except Exception:  # one event that cannot be told must not silence those that follow
                _log.exception("an event was not told: %s", event.kind)
            self._seen = max(self._seen, event.seq)
            async with self._moved:
                self._moved.notify_all()
            await self._writer.until_room()

    async def _caught_up(self, seq: int) -> None:
        """Wait until the client has been told everything up to this event."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._seen >= seq or self._watching is None or self._watching.done())

    def _show(self, event: ViewEvent) -> None:
        if event.kind == "question" and event.passing:
            self._begin_question(event)
        elif event.kind == "answered" and event.passing:
            self._end_question(event)
        elif self._updates.note_output(event):
            if event.id not in self._outputs:
                self._outputs[event.id] = asyncio.get_running_loop().call_later(OUTPUT_S, self._tell_output, event.id)
        else:
            for update in self._updates.take(event):
                self._tell(update)

    def _tell_output(self, id: str) -> None:
        del self._outputs[id]
        for update in self._updates.news_of(id):
            self._tell(update)

    # --- questions

    def _begin_question(self, event: ViewEvent) -> None:
        told = event.data.get("question")
        id = told.get("id") if isinstance(told, dict) else told
        question = next((each for each in self.conversation.open_questions if each.id == id), None)
        if question is not None and question.id not in self._questions:
            task = asyncio.get_running_loop().create_task(self._put(question))
            self._questions[question.id] = task
            task.add_done_callback(lambda _: self._questions.pop(question.id, None))

    def _end_question(self, event: ViewEvent) -> None:
        """Decided, or nobody waits for it any more."""
        open_now = {each.id for each in self.conversation.open_questions}
        for id, task in list(self._questions.items()):
            if id not in open_now:
                task.cancel()

    async def _put(self, question: AskedQuestion) -> None:
        try:
            answer = await self._asking.put(question)
        except AcpError as error:
            _log.debug("a question was not shown: %s", error.message)
            answer = self._refuse(question)
        if all(each.id != question.id for each in self.conversation.open_questions):
            return
        if answer is None:
            self.conversation.questions.dismiss(question.id)
        else:
            self.conversation.answer(answer)

    def _refuse(self, question: AskedQuestion) -> None:
        """The client cannot show it: the person is told in words what they would have been asked."""
        title = question.title.partition("   ")[0]
        detail = fenced(question.detail) if question.kind == "approval" else question.detail
        words = "\n\n".join(filter(None, (detail, say("acp.cannot_ask", question=title))))
        self._tell(AgentChunk(TextBlock(words), f"question-{question.id}"))


def _hint(usage: str) -> CommandInput | None:
    rest = usage.partition(" ")[2]
    return CommandInput(rest) if rest else None
