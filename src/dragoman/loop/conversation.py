"""What can be done with an agent's conversation between two runs: shorten it, go back in it, change its model, see what it holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.base import late_types
from dragoman.loop.harness import Harness
from dragoman.loop.history import History
from dragoman.loop.option_checks import check_options
from dragoman.loop.options import Limits
from dragoman.loop.session import Session, Worker
from dragoman.loop.small_model import choose_tools
from dragoman.policy.approvals import Approvals
from dragoman.tools.registry import Registry
from dragoman.tools.workspace import Workspace
from dragoman.values.calls import PendingCall, TakesOver
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.errors import InputError, shown
from dragoman.values.messages import Message, Settings, ToolSpec
from dragoman.values.record import Entry
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.context.plan import Plan
    from dragoman.loop.at_work import AtWork
    from dragoman.loop.budget import Account
    from dragoman.loop.compression import Compression
    from dragoman.loop.searching import WebSearchResult
    from dragoman.values.commands import CommandState
else:
    (Plan,) = late_types("dragoman.context.plan", "Plan")
    (AtWork,) = late_types("dragoman.loop.at_work", "AtWork")
    (Account,) = late_types("dragoman.loop.budget", "Account")
    (Compression,) = late_types("dragoman.loop.compression", "Compression")
    (WebSearchResult,) = late_types("dragoman.loop.searching", "WebSearchResult")
    (CommandState,) = late_types("dragoman.values.commands", "CommandState")


class BetweenRuns(TakesOver):
    """The part of an Agent that runs nothing."""

    _harness: Harness
    _session: Session

    # --- its context

    async def compress(self, focus: str = "", *, force: bool = True) -> Compression:
        """Have the older part of the conversation summed up now, however short it is; `focus` says what matters. The record keeps it all.

        A single exchange is summed up as a whole, and the summary is used even where it is longer than what it stands for. With
        `force=False` only what the next request would have compressed anyway is (in the documents: `tryCompressChat(force)`).
        """
        from dragoman.loop.compressing import compress_now

        return await compress_now(self._harness, focus, force=force)

    async def search(self, query: str) -> WebSearchResult:
        """Search the web now, as the tool `google_web_search` does for the model, which reads with the next prompt what was found.

        Needs web access (`ToolOptions(web=WebAccess())`) and somebody who can search, else InputError. Raises ProviderError as the service
        refuses; then the conversation is as it was.
        """
        from dragoman.loop.searching import search_now

        return await search_now(self._harness, query)

    def prune(self) -> int:
        """Prune every result that is outdated by the rule now, whatever the schedule. Returns how many there were."""
        self._session.work.require_none()
        return self._harness.upkeep.prune()

    def drop(self, seq: int) -> int:
        """Put a placeholder in the place of one result: that of the entry with this number, as `plan` has it. Returns the tokens saved."""
        from dragoman.loop.choosing import drop

        self._session.work.require_none()
        return drop(self._harness.upkeep, self.history, seq)

    def keep(self, seq: int) -> int:
        """Keep one result whole, whatever the rules say. Returns how many tokens came back, where it had been pruned."""
        from dragoman.loop.choosing import keep

        self._session.work.require_none()
        return keep(self._harness.upkeep, self.history, seq)

    def undo_choice(self, seq: int) -> int:
        """Take back the last `drop`, `keep` or pruning of a result. Returns by how many tokens the next request grows."""
        from dragoman.loop.choosing import undo_choice

        self._session.work.require_none()
        return undo_choice(self._harness.upkeep, self.history, seq)

    def plan(self) -> Plan:
        """What the next request holds and what is left out of it, each with its size and the reason."""
        models = self._harness.models
        return self._harness.upkeep.plan(lambda deployment, model: models.profile_of(deployment, model).prices)

    # --- changing it

    def change_model(self, model: str | Provider) -> None:
        """The same conversation with another model, from the next answer on."""
        self._session.change_model(self._harness.models.use(model))

    def hand_over(self, agent: BetweenRuns) -> None:
        """Let another agent have this conversation from the next run on, as where a tool returns one; this agent itself: have it again.

        After a restart, this puts things back: `captain.hand_over(agents[captain.held_by])`.
        """
        self._session.work.require_none()
        if not isinstance(agent, BetweenRuns):
            raise InputError(say("loop.option_wrong", name="agent", expected=say("loop.option_agent"), given=shown(agent)))
        from dragoman.loop.handing_over import hand_over_now

        hand_over_now(self._harness, agent)

    @property
    def background_commands(self) -> tuple[CommandState, ...]:
        """Commands that the model has left running in the background, and those that have ended since, oldest first."""
        return self._session.background.describe() if self._session.background is not None else ()

    def stop_command(self, id: str) -> bool:
        """End a background command; the model is told with the next request. False where none of that name is running."""
        commands = self._session.background
        return commands is not None and commands.stop_from_here(id)

    def add_directory(self, path: str | os.PathLike[str]) -> str:
        """Let the model work in another directory as well, at once; what lies in it is told with the next prompt. Returns its real path.

        Raises InputError where there is no such directory.
        """
        real = os.path.realpath(os.path.expanduser(path))
        if not os.path.isdir(real):
            raise InputError(say("loop.not_a_directory", path=os.fspath(path)))
        self._harness.add_directory(real)
        return real

    def let_read(self, path: str | os.PathLike[str]) -> None:
        """Let the model's tools read in another directory, and not write there."""
        self._harness.workspace.add_readable(path)

    def offer_skills(self, skills: Iterable[tuple[str, str]]) -> None:
        """Name and description of skills that a tool of yours can activate: told with the first prompt; in a resumed conversation, what has
        changed of them."""
        if self._harness.orientation is not None:
            self._harness.orientation.skills = tuple(skills)

    def undo(self, runs: int = 1, *, force: bool = False) -> tuple[str, ...]:
        """Put files back as they were before the last run, or the last few. Returns the paths that were changed by it.

        Only of a conversation that is kept (`session=`): what tools wrote, and what commands changed in the workspace. Raises InputError,
        having touched nothing, where somebody else has changed one of the files since, or one is guarded, unless it is forced. Files
        outside the workspace are left alone in any case, and so is what was done before the session was imported.
        """
        from dragoman.loop.going_back import undo

        self._session.work.require_none()
        return undo(self._harness, runs, force=force)

    def redo(self, *, force: bool = False) -> tuple[str, ...]:
        """Take back the last undo, also of a rewind's files. Raises as `undo` does. Returns () where a call has changed files since."""
        from dragoman.loop.going_back import redo

        self._session.work.require_none()
        return redo(self._harness, force=force)

    def restore_files(self, seq: int, *, force: bool = False) -> tuple[str, ...]:
        """Put files back as they were after entry `seq`, as `undo` does; the conversation goes on. Returns the paths that were changed."""
        from dragoman.loop.going_back import restore_files

        self._session.work.require_none()
        return restore_files(self._harness, seq, force=force)

    def rewind(self, seq: int, *, files: bool = False, force: bool = False) -> tuple[str, ...]:
        """Go back to how things stood after entry `seq`; the record keeps everything. With `files`, what tools wrote since is undone first.

        Returns the paths of files that were put back. Raises InputError where there is no such entry, or as `undo` does.
        """
        from dragoman.loop.going_back import rewind

        self._session.work.require_none()
        changed = rewind(self._harness, seq, files=files, force=force)
        self._harness.look_again()
        return changed

    def clear(self) -> None:
        """Start afresh: the model sees nothing of what was said. The record keeps it, and `rewind` brings it back."""
        self._session.work.require_none()
        from dragoman.loop.replacing import clear

        clear(self._harness)

    def set_history(self, messages: Iterable[Message | Mapping[str, Any]]) -> None:
        """Put these messages in the place of the conversation so far; the record keeps that. Raises InputError where a role is unknown.

        Calls without a result get one that says so, and results without a call are left out. Messages may be dicts as the APIs of Gemini,
        OpenAI and Anthropic have them.
        """
        self._session.work.require_none()
        from dragoman.loop.replacing import set_history

        set_history(self._harness, messages)

    # --- what it holds

    @property
    def history(self) -> History:
        """The record so far, and what the model sees of it."""
        return self._session.history

    @property
    def name(self) -> str:
        return self._harness.name

    @property
    def held_by(self) -> str:
        """The name of the agent that has the conversation, as the record has it: this one's, unless it was handed over."""
        return self._session.history.view.agent

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """The calls that wait for a decision or for a result, read from the record: `Agent.resume` goes on with them."""
        if not self._session.history.view.postponed:
            return ()
        from dragoman.loop.pending import pending_calls

        return pending_calls(self._session.history.view)

    @property
    def at_work(self) -> Worker | None:
        """The run or compression that is under way."""
        return self._session.work.current

    @property
    def session_id(self) -> str:
        return self._session.id

    def describe(self) -> AtWork:
        """What a hook may know of the conversation, outside a run too."""
        from dragoman.loop.at_work import describe

        return describe(self._harness)

    @property
    def not_saved(self) -> str:
        """Why the session is not completely on disk; empty if it is, or is not kept at all. Final once the agent is closed."""
        return self._session.log.not_saved if self._session.log is not None else ""

    @property
    def provider(self) -> Provider:
        return self._session.model.provider

    @property
    def model(self) -> str:
        """The model's name, without who serves it."""
        return self._session.model.name

    @property
    def tools(self) -> Registry:
        return self._harness.registry

    @property
    def offered_tools(self) -> tuple[ToolSpec, ...]:
        """Those of `tools` that the model is told of: a small one cannot keep many apart."""
        return choose_tools(self._session.model, self._harness.registry.specs, self._harness.unchosen)

    @property
    def approvals(self) -> Approvals:
        return self._harness.approvals

    @property
    def workspace(self) -> Workspace:
        return self._harness.workspace

    @property
    def directories(self) -> tuple[str, ...]:
        """The directories the model may work in, the workspace first."""
        return self._harness.directories

    @property
    def blobs(self) -> BlobStore:
        return self._session.blobs

    @property
    def limits(self) -> Limits:
        return self._harness.limits

    @property
    def settings(self) -> Settings:
        """How answers are generated; may be set between two runs."""
        return self._harness.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        check_options(settings=settings)
        self._harness.settings = settings

    @property
    def account(self) -> Account | None:
        """What all its runs may spend, and what has been spent; None without `budget`."""
        return self._harness.account

    def cost_usd(self, entries: Iterable[Entry]) -> float | None:
        """What the answers and summaries among these cost, or None where the prices are not known."""
        return self._harness.bill.cost_usd(entries)
