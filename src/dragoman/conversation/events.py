"""What happens in a conversation as ViewEvents: made alike of the events of a run and of the entries of its record.

One `Renderer` shows one conversation. `read` takes entries, whether they were just written or come from a log; `take` takes the events of a
run, between them, in the order in which both came: `follow` does that. Text and thoughts are shown as they stream. Once the entry is there,
it says what stands: the same blocks are left whether somebody watched or opens the session later. So a conversation under way, a resumed
one, a browser that reconnects and `sessions show` are one code.

The blocks, by their ids:

- `session` (status): what the session is, where and with which model. `usage`: what all of it took.
- `s3`: the third step, a prompt, a note of the program to the model, or a notice of what happened to the context.
- `a2` (status): the second answer as a whole, with its model, its usage, when it was sent and when its first words came. `a2.1`, `a2.2` …:
  its thoughts, its text, its calls. `a2.3.question` (question, then answered): whether that call may run, where the decision is kept.
- `plan`: the model's task list.

What the record does not say is told as `passing`, and is not there for who comes later: what a subagent does inside a call (its own session
has it), a call's progress and new output, how much of the prompt is read, retries and waits, a question to a person at the keyboard and its
answer, the notices of a run that are not about the context, the value of a typed answer so far, sources before their answer is whole, and
that a run is over. Of an attempt that left nothing on the record, what was shown is taken away again (`gone`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.conversation.blocks import change_of, join_events
from dragoman.conversation.step_blocks import (
    answer_blocks,
    call_block,
    note_block,
    plan_block,
    prompt_block,
    question_block,
    session_block,
    usage_block,
)
from dragoman.conversation.types import ViewEvent
from dragoman.sessions.transcript import Note, Prompt, Reply, ToolCallStep, TranscriptReader
from dragoman.values.events import (
    ErrorRaised,
    ModelSwitched,
    Retrying,
    StreamInvalid,
    SubagentEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallFinished,
    ToolCallRequested,
    ToolCallUpdated,
    TurnEvent,
    TurnFinished,
    TurnStarted,
    UserCancelled,
)
from dragoman.values.messages import ToolResult
from dragoman.values.record import Entry

if TYPE_CHECKING:
    from dragoman.conversation.passing import InnerView
    from dragoman.loop.run import Run
    from dragoman.sessions.last_run import LastRun


def read_events(entries: Iterable[Entry]) -> tuple[ViewEvent, ...]:
    """A session that is opened: one event for each block."""
    return join_events(Renderer().read(entries))


async def follow(run: Run, entries: Sequence[Entry], renderer: Renderer) -> AsyncGenerator[ViewEvent, None]:
    """The events of a run and what they leave on the record, `history.entries`, from where the renderer has read to. Close it to leave the
    run, as with any that iterates it."""
    watcher = aiter(run)
    try:
        async for event in watcher:
            # What was written later belongs to later events: a view that is slow would show an answer before its own text.
            for told in renderer.read(entries[renderer.entries_read : watcher.entries]):
                yield told
            for told in renderer.take(event):
                yield told
    finally:
        await watcher.aclose()
    for told in (*renderer.read(entries[renderer.entries_read :]), *renderer.end()):
        yield told


class Renderer:
    """One conversation. Entries and events in, ViewEvents out."""

    def __init__(self) -> None:
        self.entries_read = 0
        self._reader = TranscriptReader()
        self._seq = 0
        self._blocks: dict[str, ViewEvent] = {}
        """As they were told. Of text that streams: without what has come since."""
        self._ids: list[str] = []
        """Of the steps, in their order; a call's and an answer's too."""
        self._answers = 0
        self._parts = 0
        """How many blocks the last answer has."""
        self._stream: _Stream | None = None
        self._calls: dict[str, tuple[str, ToolCallStep]] = {}
        """Call ids → the block of the last call with that id, and the step behind it."""
        self._asked: dict[str, ViewEvent] = {}
        """Calls about which a person at the keyboard is asked → the question."""
        self._inner: dict[str, InnerView] = {}
        """Calls under way that are subagents."""
        self._turn_began = 0
        """How many answers there were when the model was asked."""
        self._repeated = ""
        """Text that is told again after a retry, and stands already."""
        self._has_ended = False
        self._told: list[ViewEvent] = []

    # --- the record

    def read(self, entries: Iterable[Entry]) -> list[ViewEvent]:
        """What the next entries of the record change."""
        for entry in entries:
            self.entries_read += 1
            usage = self._reader.facts.usage
            for index in self._reader.take(entry):
                self._show_step(index)
            self._close_stream()
            facts = self._reader.facts
            self._show(session_block(facts))
            if facts.usage != usage:
                self._show(usage_block(facts))
        return self._take_told()

    @property
    def run(self) -> LastRun:
        """How the last run stands, by what was read."""
        return self._reader.facts.run

    def _show_step(self, index: int) -> None:
        step = self._reader.steps[index]
        match step:
            case Prompt():
                self._show(prompt_block(self._id_of(index), step))
            case Note():
                self._show(note_block(self._id_of(index), step))
            case Reply():
                self._show_answer(index, step)
            case ToolCallStep():
                self._show_call(index, step)

    def _id_of(self, index: int) -> str:
        if index == len(self._ids):
            self._ids.append(f"s{index + 1}")
        return self._ids[index]

    def _show_answer(self, index: int, step: Reply) -> None:
        is_new = index == len(self._ids)
        if is_new:
            self._answers += 1
            self._ids.append(f"a{self._answers}")
        if is_new and self._stream is not None:
            self._blocks |= self._stream.blocks()
        whole, *parts = answer_blocks(self._ids[index], step)
        for block in (whole, *parts):
            self._show(block)
        if is_new:
            self._parts = len(parts)

    def _show_call(self, index: int, step: ToolCallStep) -> None:
        if index == len(self._ids):
            self._parts += 1
            self._ids.append(f"a{self._answers}.{self._parts}")
        block = self._show_call_as(self._ids[index], step)
        if (plan := plan_block(block, step)) is not None and not step.taken_back:
            self._show(plan)

    def _show_call_as(self, id: str, step: ToolCallStep, *, passing: bool = False) -> ViewEvent:
        block = msgspec.structs.replace(
            call_block(id, id.partition(".")[0], step, "".join(self._reader.facts.directories[:1])), passing=passing
        )
        self._calls[step.call.id] = (id, step)
        self._show(block)
        if (question := question_block(f"{id}.question", block, self._blocks.get(f"{id}.question"))) is not None:
            self._show(question)
        return block

    def _close_stream(self) -> None:
        """The answer that streamed is on the record: what was shown of it beyond that is taken away."""
        if self._stream is not None and self._stream.id == f"a{self._answers}":
            stream, self._stream = self._stream, None
            for block in list(stream.blocks().values())[self._parts + 1 :]:
                self._remove(block)

    def block_of(self, call_id: str) -> str:
        """The block of the last call with that id; empty where none is shown."""
        return self._calls[call_id][0] if call_id in self._calls else ""

    # --- the run

    def take(self, event: TurnEvent) -> list[ViewEvent]:
        """What an event of the run shows, beyond the entries that were written before it."""
        match event:
            case TextDelta(text=text):
                self._add_text("text", text)
            case ThoughtDelta(text=text):
                self._add_text("thought", text)
            case TurnStarted():
                self._discard()
                self._turn_began, self._has_ended = self._answers, False
            case TurnFinished():
                self._keep_stream()
            case Retrying() | StreamInvalid() | ModelSwitched():
                self._discard()
                self._repeated = self._text_of_turn() if isinstance(event, Retrying) else ""
            case ToolCallRequested(call=call) if call.id not in self._calls:
                self._parts += 1
                self._show_call_as(f"a{self._answers}.{self._parts}", ToolCallStep(0, 0, False, call, "not_run"), passing=True)
            case ToolCallUpdated(call_id=call_id, state=state) if state not in ("awaiting_approval", "pending") and call_id in self._asked:
                decided = "refused" if state == "refused" else "cancelled" if state == "cancelled" else "allowed"
                self._tell(msgspec.structs.replace(self._asked.pop(call_id), kind="answered", state=decided))
            case ToolCallFinished():
                self._finish_call(event)
            case SubagentEvent(call_id=call_id):
                self._show_inner(call_id, event)
            case ErrorRaised() | UserCancelled():
                self._discard()
                self._has_ended = True
            case _:
                pass
        self._tell_passing(event)
        return self._take_told()

    def end(self) -> list[ViewEvent]:
        """The run is over, and all it has written is read."""
        self._discard()
        if not self._has_ended:
            self._tell(ViewEvent(0, "ended", "ended", state="done", passing=True))
        self._has_ended = False
        return self._take_told()

    def _tell_passing(self, event: TurnEvent) -> None:
        if isinstance(event, TextDelta | ThoughtDelta):
            return
        from dragoman.conversation.passing import passing_event

        if (told := passing_event(event, self._calls)) is None:
            return
        self._tell(told)
        if told.kind == "question":
            self._asked[told.data["call_id"]] = told

    # --- an answer that streams

    def _add_text(self, kind: Literal["text", "thought"], text: str) -> None:
        repeated, self._repeated = self._repeated, ""
        if not text or (repeated == text and kind == "text"):
            return
        if self._stream is None:
            self._stream = _Stream(f"a{self._answers + 1}")
            self._tell(ViewEvent(0, "status", self._stream.id, state="running"))
        self._tell(self._stream.add(kind, text))

    def _discard(self) -> None:
        """The attempt has left nothing on the record."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            for block in stream.blocks().values():
                self._remove(block)

    def _keep_stream(self) -> None:
        """Where there is no record to read, as of a subagent, the answer stands as it came."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._blocks |= stream.blocks()
            self._answers, self._parts = self._answers + 1, len(stream.parts)
            self._show(ViewEvent(0, "status", stream.id, state="done"))

    def _text_of_turn(self) -> str:
        """What stands of an answer that its service has paused."""
        ids = {f"a{number}" for number in range(self._turn_began + 1, self._answers + 1)}
        whole = [block for block in self._blocks.values() if block.kind == "text" and block.data.get("answer") in ids]
        return "".join(block.text for block in whole if self._blocks[block.data["answer"]].state == "done")

    # --- calls that no record tells of, and subagents

    def _finish_call(self, event: ToolCallFinished) -> None:
        self._inner.pop(event.call_id, None)
        self._asked.pop(event.call_id, None)
        id, step = self._calls.get(event.call_id, ("", None))
        if step is None or step.has_result:
            return
        results = [part for part in event.parts if isinstance(part, ToolResult)]
        failed = event.outcome == "finished" and (bool(event.error) or any(result.is_error for result in results))
        ended = msgspec.structs.replace(
            step,
            outcome="failed" if failed else event.outcome,
            content=tuple(part for result in results for part in result.content),
            display=event.display or event.error,
            has_result=True,
            outside=event.outside,
            command=event.command,
            changed=event.changed,
        )
        self._show_call_as(id, ended, passing=True)

    def _show_inner(self, call_id: str, event: SubagentEvent) -> None:
        if call_id not in self._calls:
            return
        from dragoman.conversation.passing import InnerView

        inner = self._inner.setdefault(call_id, InnerView(self._calls[call_id][0], Renderer().take))
        for told in inner.take(event.event):
            self._tell(told)

    # --- telling

    def _show(self, block: ViewEvent) -> None:
        if (event := change_of(self._blocks.get(block.id), block)) is not None:
            self._tell(event)
            self._blocks[block.id] = block

    def _remove(self, block: ViewEvent) -> None:
        self._blocks.pop(block.id, None)
        self._tell(ViewEvent(0, block.kind, block.id, state="gone"))

    def _tell(self, event: ViewEvent) -> None:
        self._seq += 1
        data = {key: _plain(value) for key, value in event.data.items()} if event.data else event.data
        self._told.append(msgspec.structs.replace(event, seq=self._seq, text=_plain(event.text), data=data))

    def _take_told(self) -> list[ViewEvent]:
        told = self._told
        self._told = []
        return told


def _plain(value: Any) -> Any:
    """A sentence without the key and the values it was made of, which JSON would not take."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, str) and type(value) is not str else value


class _Stream:
    """An answer of which the record does not know yet."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.parts: list[tuple[Literal["text", "thought"], list[str]]] = []

    def add(self, kind: Literal["text", "thought"], text: str) -> ViewEvent:
        is_new = not self.parts or self.parts[-1][0] != kind
        if is_new:
            self.parts.append((kind, []))
        self.parts[-1][1].append(text)
        data = {"answer": self.id} if is_new else {}
        return ViewEvent(0, kind, f"{self.id}.{len(self.parts)}", text, append=True, data=data)

    def blocks(self) -> dict[str, ViewEvent]:
        """As they were told so far."""
        found = [ViewEvent(0, "status", self.id, state="running")]
        for number, (kind, pieces) in enumerate(self.parts, 1):
            found.append(ViewEvent(0, kind, f"{self.id}.{number}", "".join(pieces), data={"answer": self.id}))
        return {block.id: block for block in found}
