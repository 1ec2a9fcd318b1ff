"""What a function that is a tool may know of its call: its dependencies, the run it works for, how to tell progress, and whether it was
cancelled.

    @tool
    def tides(context: ToolContext[Almanac], harbour: str) -> str:
        return context.deps.high_water(harbour)
"""

from __future__ import annotations

import threading
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Union, get_args, get_origin

from dragoman.tools.job import ShowMore, call_at_work
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.calls import RunAtWork, Show, run_at_work
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.events import ToolCallUpdated
from dragoman.values.messages import Blob, Media
from dragoman.values.usage import Usage
from dragoman.words import say

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", covariant=True, default=Any)
else:  # a default came with Python 3.13: type checkers know it before
    from typing import TypeVar

    D = TypeVar("D", covariant=True)


class ToolContext(Generic[D]):
    """A parameter annotated with it receives it; it is not part of the schema, and may have any name and place.

    In a test, make one: `tides(ToolContext(Almanac()), "Muscat")`. All of it may be used from any thread.
    """

    __slots__ = ("_cancelled", "_report", "_show", "call_id", "deps", "run", "tool")

    def __init__(
        self,
        deps: D = None,  # type: ignore[assignment]
        *,
        tool: str = "",
        call_id: str = "",
        run: RunAtWork | None = None,
        show: Show | None = None,
    ) -> None:
        self.deps = deps
        """What the agent, or this run, was given as `deps`."""
        self.tool = tool
        """The name the model calls it by."""
        self.call_id = call_id
        self.run: RunAtWork = run or _NoRun()
        """The run it works for: `run.prompt_id`, `run.turn`, `run.cancel()`. Outside a run, one in which nothing happens."""
        self._show = show
        self._report: ShowMore | None = None
        self._cancelled = threading.Event()

    @classmethod
    def of(cls, show: Show) -> ToolContext[Any]:
        """For a Tool that is not a function: the context of the call whose `run` was given this `show`. Outside a run, an empty one."""
        run, call = run_at_work.get()(), call_at_work.get()
        deps = None if run is None else run.deps
        if call is None:
            return ToolContext[Any](deps, run=run, show=show)
        context = ToolContext[Any](deps, tool=call[0].name, call_id=call[0].id, run=run, show=show)
        context._report = call[1] if call[1] is show else None
        return context

    # --- telling

    def progress(self, text: str = "", done: float | None = None, total: float | None = None) -> None:
        """Tell the user what is being done, and how far it is: `progress("page 3", 3, 10)`. The model does not see it."""
        if self._report is not None:
            self._report("", text, done, total)
        elif self._show is not None:  # somebody put a Show of their own in its place, which takes text
            self._show(ToolCallUpdated(self.call_id, "executing", "", text, done, total).progress_line + "\n")

    # --- ending

    @property
    def is_cancelled(self) -> bool:
        """Whether the call was cancelled, or took too long: then what the function returns is no longer needed, and it should end.

        A plain function must look, because its thread cannot be interrupted. In an async one CancelledError is raised.
        """
        return self._cancelled.is_set()

    def wait_cancelled(self, timeout_s: float) -> bool:
        """Wait, in a plain function, in the place of `time.sleep`. Returns early, and True, where the call was cancelled."""
        return self._cancelled.wait(timeout_s)

    def cancel(self) -> None:
        """Let the function see that it was cancelled, as the agent does. In a test it may be called before or while the function runs;
        to end the run from inside a tool, call `context.run.cancel()`."""
        self._cancelled.set()

    # --- the run

    @property
    def session(self) -> str:
        """The id of the session."""
        return self.run.session_id

    @property
    def usage(self) -> Usage:
        """What the run has used so far."""
        return self.run.usage

    def keep(self, data: bytes, mime: str = "") -> Blob:
        """Have the session keep bytes, for a `ToolOutput` that shows them to the model. A function may also just return them: `Media`.

        Raises InputError where no mime type is given and the bytes do not tell it.
        """
        return keep_media(self.run.blobs, Media(data, mime))


def keep_media(blobs: BlobStore, media: Media) -> Blob:
    from dragoman.values.media_types import HEAD_BYTES, any_media_type

    if not media.data:
        raise InputError(say("values.media_no_bytes"))
    mime = media.mime or any_media_type(media.data[:HEAD_BYTES])
    if not mime:
        raise InputError(say("values.media_unknown"))
    return blobs.put(mime, media.data)


def is_context(hint: object) -> bool:
    """Whether an annotation asks for the context: `ToolContext`, `ToolContext[X]`, also in a union or Annotated."""
    origin = get_origin(hint)
    if hint is ToolContext or origin is ToolContext:
        return True
    return origin in (Annotated, Union, UnionType) and any(is_context(each) for each in get_args(hint))


class _NoRun:
    """In the place of a run, for a tool that is called without one."""

    prompt_id = session_id = ""
    turn = 0
    deps: None = None
    usage = Usage()

    def __init__(self) -> None:
        self.blobs = MemoryBlobs()

    def cancel(self) -> None:
        return
