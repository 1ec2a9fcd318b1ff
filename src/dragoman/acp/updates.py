"""What a conversation shows, as updates of the protocol. One `Updates` tells one session to one client, whether it is watched or loaded:
what comes of the same blocks is the same."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from dragoman.acp.calls import ShownCall, fenced
from dragoman.acp.outgoing import (
    AgentChunk,
    AudioBlock,
    Block,
    CompactionChunk,
    CompactionUpdate,
    Cost,
    ImageBlock,
    LinkBlock,
    NoticeUpdate,
    PlanEntry,
    PlanUpdate,
    SessionInfoUpdate,
    TextBlock,
    ThoughtChunk,
    Update,
    UsageUpdate,
    UserChunk,
)
from dragoman.base.text import one_line
from dragoman.conversation.types import ViewEvent

MOST_TITLE = 80
Severity = Literal["info", "warning", "error"]
_SEVERITY: dict[str, Severity] = {"quiet": "info", "info": "info", "warning": "warning", "bad": "error"}


class Shows(msgspec.Struct, frozen=True):
    """What a client says it can show, beyond what all must."""

    notices: bool = False
    compaction: bool = False
    elicitation: bool = False


class SessionMeter(msgspec.Struct, frozen=True):
    window: int
    cost_usd: float | None


class Updates:
    """`directory`: the workspace, absolute. `meter`: the model's window and what the session has cost, as they are now. `blob`: the bytes
    of an image or a sound by its hash, if they are there."""

    def __init__(self, shows: Shows, directory: str, meter: Callable[[], SessionMeter], blob: Callable[[str], bytes | None]) -> None:
        self._shows = shows
        self._directory = directory
        self._meter = meter
        self._blob = blob
        self._calls: dict[str, ShownCall] = {}
        self._texts: dict[str, _ShownText] = {}
        self._rejected: set[str] = set()
        self._title = ""
        self._used = 0
        self._notices = 0
        self._inner_titles: dict[str, str] = {}
        self.hides_prompts = False
        """While a client's own prompts are at work: it shows them itself."""

    def replay(self, blocks: Iterable[ViewEvent]) -> list[Update]:
        """A session that is loaded: what was taken back or does not count is not told."""
        told: list[Update] = []
        kept = list(blocks)
        self._rejected |= {block.id for block in kept if block.kind == "status" and block.state == "rejected"}
        for block in kept:
            if not block.passing and not block.data.get("taken_back") and block.data.get("answer") not in self._rejected:
                told += self.take(block)
        return told

    def take(self, event: ViewEvent) -> list[Update]:
        if event.inside:
            return self._take_inner(event)
        match event.kind:
            case "text" | "thought":
                return self._take_text(event)
            case "call":
                return self._take_call(event)
            case "prompt":
                return [*self._name_after(event), *([] if self.hides_prompts else self._take_prompt(event))]
            case "plan":
                return self._take_plan(event)
            case "status" if event.id == "session":
                return self._take_session(event)
            case "status" if (used := event.data.get("usage")) and event.id != "usage":
                self._used = (used.get("input_tokens") or 0) + (used.get("output_tokens") or 0) or self._used
                return []
            case "usage":
                return [self.usage()]
            case "notice":
                return self._take_notice(event)
            case _:
                return []

    def usage(self) -> UsageUpdate:
        meter = self._meter()
        cost = Cost(round(meter.cost_usd, 6), "USD") if meter.cost_usd is not None else None
        return UsageUpdate(self._used, meter.window, cost)

    # --- texts

    def _take_text(self, event: ViewEvent) -> list[Update]:
        shown = self._texts.setdefault(event.id, _ShownText(event.id))
        new = shown.take(event)
        if not new:
            return []
        chunk = AgentChunk if event.kind == "text" else ThoughtChunk
        return [chunk(TextBlock(new), shown.message_id)]

    def _take_prompt(self, event: ViewEvent) -> list[Update]:
        if event.append:
            return []
        attached = (self._attachment(each, event.text) for each in event.data.get("attachments") or ())
        said = TextBlock(event.text) if event.text else None
        return [UserChunk(block, event.id) for block in (said, *attached) if block is not None]

    def _attachment(self, told: Mapping[str, Any], prompt: str) -> Block | None:
        """None for a text that the prompt itself names: `@src/a.py`."""
        if "sha256" in told:
            return self._media(told["mime"], told["sha256"])
        if "uri" in told:
            return LinkBlock(told["uri"].rpartition("/")[2] or told["uri"], told["uri"], told["mime"])
        return TextBlock(told["text"].strip("\n")) if told["name"].removeprefix("@") not in prompt else None

    def _media(self, mime: str, sha256: str) -> Block:
        """The thing itself where a client can show it; else, and where it is lost, its name."""
        kind = mime.partition("/")[0]
        data = self._blob(sha256) if kind in ("image", "audio") else None
        if data is None:
            return LinkBlock(mime, f"urn:sha256:{sha256}", mime)
        return (ImageBlock if kind == "image" else AudioBlock)(base64.b64encode(data).decode(), mime)

    # --- calls

    def _take_call(self, event: ViewEvent) -> list[Update]:
        shown = self._calls.get(event.id)
        if shown is None:
            if event.append or event.state == "gone":
                return []
            shown = self._calls[event.id] = ShownCall(event.id, self._directory)
        if event.state == "gone":
            event = msgspec.structs.replace(event, append=True, state="not_run", text="")
        shown.change(event)
        return self.news_of(event.id)

    def note_output(self, event: ViewEvent) -> bool:
        """Whether all that an event says is new output of a call: `news_of` tells it with what comes soon after."""
        shown = self._calls.get(event.id)
        is_output = event.kind == "call" and event.append and event.passing and not event.inside and not event.state
        if shown is None or not is_output or not event.data.keys() <= {"output", "progress", "inner", "now"}:
            return False
        shown.change(event)
        return True

    def news_of(self, id: str) -> list[Update]:
        """What is new of a call."""
        shown = self._calls.get(id)
        update = shown.news() if shown is not None else None
        return [update] if update is not None else []

    def _take_inner(self, event: ViewEvent) -> list[Update]:
        """What a subagent does is a line of the call it works in; so is what its own subagents do."""
        if event.kind != "call":
            return []
        if event.text and not event.append:
            self._inner_titles[event.id] = event.text
        if event.state in ("", "waiting", "running") or (shown := self._calls.get(event.inside.partition("/")[0])) is None:
            return []
        if (title := self._inner_titles.pop(event.id, "")) and not shown.has_ended:
            mark = "✓" if event.state == "done" else "✗"
            shown.add_inner(f"{mark} {title}")
        return []  # told with what the call says of it next

    # --- what else there is

    def _take_plan(self, event: ViewEvent) -> list[Update]:
        entries = []
        for item in event.data.get("items") or ():
            status = item.get("status") if isinstance(item, dict) else None
            if status in ("pending", "in_progress", "completed"):
                entries.append(PlanEntry(str(item.get("content", "")), status, "medium"))
        return [PlanUpdate(tuple(entries))]

    def _take_session(self, event: ViewEvent) -> list[Update]:
        title = event.data.get("title")
        if not title or title == self._title:
            return []
        self._title = title
        return [SessionInfoUpdate(title)]

    def _name_after(self, prompt: ViewEvent) -> list[Update]:
        """A session without a title is called what was said first."""
        if self._title or not prompt.text.strip():
            return []
        self._title = one_line(prompt.text, MOST_TITLE)
        return [SessionInfoUpdate(self._title)]

    def _take_notice(self, event: ViewEvent) -> list[Update]:
        about = event.data.get("about", "")
        if about in ("setup", "told") or (about == "run_ended" and self.hides_prompts):  # a client is answered how its own prompt ended
            return []
        if about == "command":
            return [AgentChunk(TextBlock(fenced(event.text)), event.id)] if event.text.strip() else []
        if about == "compressed" and self._shows.compaction:
            detail = event.data.get("detail") or ""
            said: list[Update] = [CompactionChunk(event.id, TextBlock(detail))] if detail else []
            return [CompactionUpdate(event.id, "in_progress"), *said, CompactionUpdate(event.id, "completed")]
        return self.notice(event.text, _SEVERITY.get(event.data.get("weight", "info"), "info")) if event.text else []

    def notice(self, text: str, severity: Severity) -> list[Update]:
        """To a client without notices, what is more than information is told as a thought: it is no part of an answer."""
        if self._shows.notices:
            return [NoticeUpdate(severity, text)]
        if severity == "info":
            return []
        self._notices += 1
        return [ThoughtChunk(TextBlock(f"{text}\n"), f"notice-{self._notices}")]


class _ShownText:
    """A text or a thought, as far as the client has it. What was sent cannot be taken back: a text that has become another is a new
    message."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._sent: list[str] = []
        self._text: list[str] = []
        self._version = 1
        self._is_gone = False

    @property
    def message_id(self) -> str:
        return self._id if self._version == 1 else f"{self._id}-{self._version}"

    def take(self, event: ViewEvent) -> str:
        """What is new in it."""
        if event.state == "gone":
            self._text.clear()
            self._is_gone = True
            return ""
        if event.append and not self._is_gone:
            self._sent.append(event.text)
            return event.text
        self._text = [*(self._text if event.append else []), event.text]
        text, sent = "".join(self._text), "".join(self._sent)
        if sent.startswith(text):  # it is written again, and not further than before
            if not event.append:
                self._is_gone = len(text) < len(sent)
            return ""
        self._is_gone = False
        if not text.startswith(sent):
            self._version += 1
            self._sent = [text]
            return text
        self._sent = [text]
        return text[len(sent) :]


def iso_time(ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000)) + f".{ms % 1000:03d}Z"
