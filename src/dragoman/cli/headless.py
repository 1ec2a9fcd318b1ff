"""`dragoman -p …`: one prompt, one answer, and an exit code that says how it went."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.connecting import choose_first_model
from dragoman.app.opening import close_agent, open_agent, run_loop, tidy_sessions
from dragoman.app.options import SEARCH_NOW, Options
from dragoman.app.setup import Setup, set_up
from dragoman.app.signals import Interrupts
from dragoman.cli.outcome import EXIT_BROKEN, Failure, Outcome, failed_outcome, outcome_of
from dragoman.cli.prompt import read_prompt
from dragoman.cli.reports import Report, messages_for, output_for, report_for, report_unwritten
from dragoman.cli.startup import mark_result_written
from dragoman.policy.approvals import NO_ONE_TO_LET_OUT, Unattended
from dragoman.values.calls import Deny, Intent
from dragoman.values.errors import DragomanError, OutputLimit
from dragoman.words import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.cli.refusals import Refusals
    from dragoman.loop.agent import Agent
    from dragoman.loop.run import Run
    from dragoman.policy.approvals import Ruling
    from dragoman.values.messages import Blob, Content, ToolCall

EXIT_READER_GONE = 141
"""128 + SIGPIPE: the reader of the output is gone, so the run was ended."""


def run_headless(options: Options) -> int:
    """Run one prompt, print the answer, and return the exit code. Raises nothing."""
    headless = Headless(options)
    with headless.interrupts:
        return headless.run()


class Headless:
    """One answer without a conversation: `dragoman -p`."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.interrupts = Interrupts(self._end_early, raises=False)
        self._out = output_for(options)
        self._messages = messages_for(options)
        self._report: Report = report_for(options, self._out, self._messages)
        self._rulings: Refusals | None = None
        self._agent: Agent | None = None
        self._run: Run | None = None
        self._finishing = False
        self._told: set[str] = set()
        self._media: list[Blob] = []

    def run(self) -> int:
        try:
            outcome = self._run_prompt()
        except asyncio.CancelledError:
            outcome = self._cancelled_outcome(self.interrupts.code)
        except DragomanError as error:
            outcome = failed_outcome(error)
        except Exception as error:
            outcome = self._unexpected_failure(error)
        return self._finish(outcome)

    def _finish(self, outcome: Outcome) -> int:
        self._finishing = True
        mark_result_written()
        self._report.end(outcome)
        self._out.finish()
        if outcome.not_saved:
            self._messages.line(say("notice", text=outcome.not_saved))
        if report_unwritten(self._out, self._messages):
            return outcome.exit_code or EXIT_BROKEN
        return self.interrupts.code if self._out.is_cut_short else outcome.exit_code

    # --- the run

    def _run_prompt(self) -> Outcome:
        setup = set_up(self._options)
        self._messages.choose_color(setup.config.color)
        prompt = self._query() if self._searches else read_prompt(self._options.prompt, self._notice, media=self._media)
        setup = choose_first_model(setup, None)
        outcome = run_loop(lambda: self._answer(setup, prompt))
        for notice in tidy_sessions(setup):
            self._notice(notice)
        return outcome

    async def _answer(self, setup: Setup, prompt: str) -> Outcome:
        loop = asyncio.get_running_loop()
        self._out.attach(loop)
        try:
            agent = self._agent = await self._open(loop, setup)
            if self._searches:
                return await self._search(loop, agent, prompt)
            run = self._run = await self._begin(agent, setup, prompt)
            gc.freeze()
            gc.enable()
            self._out.on_gone = run.cancel
            self.interrupts.attach(loop, self._cancel)
            self._report.begin(agent, prompt)
            take = self._report.take
            async with run:
                async for event in run:
                    take(event)
            await close_agent(agent)
        finally:
            self.interrupts.detach()
            self._out.detach()
        await self._print_traceback(run)
        for line in self._rulings.lines(agent.approvals.mode) if self._rulings is not None else ():
            self._report.tell(line)
        return self._outcome_of(agent, run)

    @property
    def _searches(self) -> bool:
        return self._options.search == SEARCH_NOW

    def _query(self) -> str:
        """What to search for: as it was given, else from standard input."""
        return self._options.prompt or read_prompt(None, self._notice, empty="search_for_what")

    async def _search(self, loop: asyncio.AbstractEventLoop, agent: Agent, query: str) -> Outcome:
        """`--search`: one search, which no model asks for. The session keeps it."""
        from dragoman.cli.searching import search_headless

        try:
            with self.interrupts.cancelling(asyncio.current_task()):
                self._report.begin(agent, query)
                return await search_headless(agent, query, self._report, as_text=self._options.output_format == "text")
        finally:
            await close_agent(agent)

    async def _begin(self, agent: Agent, setup: Setup, prompt: str) -> Run:
        """The run. If the prompt is a command from a file or a skill, it is run with the prompt that stands for it."""
        given = self._options.prompt or ""
        if not given.startswith("/") or given.startswith("//"):
            return agent.run(await self._expand_prompt(agent, prompt))
        from dragoman.app.slash_commands import FileCommands

        commands = FileCommands(setup)
        for notice in commands.notices_about(given):
            self._notice(notice)
        invocation = commands.find(given)
        if invocation is None:
            return agent.run(await self._expand_prompt(agent, prompt))
        return await invocation.start(agent, self._notice, prompt[: len(prompt) - len(given)])

    async def _expand_prompt(self, agent: Agent, prompt: str) -> str | Sequence[Content]:
        """With what it names. Raises InputError: a half-sent prompt is no use."""
        if "@" not in prompt and not self._media and not prompt.startswith("/mcp__"):
            return prompt
        from dragoman.app.prompts import expand_prompt

        return await expand_prompt(agent, prompt, self._notice, given=self._options.prompt or "", must_all=True, media=self._media)

    async def _open(self, loop: asyncio.AbstractEventLoop, setup: Setup) -> Agent:
        """While the user's command that declares tools runs, Ctrl-C ends it."""
        task = asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            task.cancel()

        if setup.config.tools.discover:
            self.interrupts.attach(loop, cancel)
        opened = await open_agent(setup, ask=Unattended(self._refuse))
        opened.agent.approvals.on_ruling = self._take_ruling
        self.interrupts.detach()
        for notice in opened.notices:
            self._notice(notice)
        if setup.options.resume is not None:
            from dragoman.conversation.spent_words import words_on_resume

            if words := words_on_resume(opened.agent, may_retry=False):
                self._notice(words)
        if setup.config.sandbox.level == "external":
            self._notice(say("sandbox_is", words=opened.agent.approvals.sandbox))
        return opened.agent

    def _outcome_of(self, agent: Agent, run: Run) -> Outcome:
        result = run.result
        whole = not result.exit_code or result.exit_code == OutputLimit.exit_code
        gone = EXIT_READER_GONE if self._out.gone else 0
        return outcome_of(
            result,
            agent.session_id,
            self._report.response if whole else "",
            not_saved=agent.not_saved,
            refused=self._refused_calls,
            interrupted=self.interrupts.code or gone,
        )

    # --- refusing: there is no user to ask

    @property
    def _refusals(self) -> Refusals:
        """Loaded where there is something to tell: mostly nothing is refused."""
        if self._rulings is None:
            from dragoman.cli.refusals import Refusals

            self._rulings = Refusals()
        return self._rulings

    @property
    def _refused_calls(self) -> int:
        return self._rulings.count if self._rulings is not None else 0

    def _take_ruling(self, ruling: Ruling, call: ToolCall, intent: Intent, reason: str) -> None:
        self._refusals.take_ruling(ruling, call, intent, reason)

    async def _refuse(self, call: ToolCall, intent: Intent) -> Deny:
        self._refusals.take(call, intent)
        if intent.outside:
            return Deny(NO_ONE_TO_LET_OUT.format(name=call.name))
        name = self._agent.approvals.name_of(call) if self._agent is not None else call.name
        return Deny(say("refused_to_model", name=name, why=f" ({intent.why})" if intent.why else ""))

    # --- cancellation and failure

    def _cancelled_outcome(self, code: int) -> Outcome:
        failure = Failure(say("cancelled"), "Cancelled", code)
        if self._agent is None or self._run is None:
            return Outcome(failure=failure)
        agent = self._agent
        stopped = outcome_of(self._run.result, agent.session_id, "", not_saved=agent.not_saved, refused=self._refused_calls)
        return msgspec.structs.replace(stopped, failure=failure)

    def _cancel(self) -> None:
        self._out.drop_queued()
        if self._run is not None:
            self._run.cancel()

    def _end_early(self, code: int) -> bool:
        """Called before the process exits, from a signal handler or another thread. True: it is already finishing by itself."""
        if self._finishing:
            self._out.hurry = True  # it may be in the middle of a line: let the writer finish it
            return True
        self._finishing = True
        self._report.end(self._cancelled_outcome(code))
        self._out.abandon()
        return False

    def _unexpected_failure(self, error: Exception) -> Outcome:
        if self._options.debug:
            from dragoman.app.debug_log import print_traceback

            print_traceback(error)
        return failed_outcome(error)

    async def _print_traceback(self, run: Run) -> None:
        """With --debug: the traceback of the error that ended the run."""
        if not self._options.debug or not run.result.error_type:
            return
        from dragoman.app.debug_log import print_traceback

        try:
            await run
        except Exception as error:
            print_traceback(error)

    # --- notices

    def _notice(self, text: str) -> None:
        if text not in self._told:  # what is wrong with a command's file is found at the start, and when it is called
            self._told.add(text)
            self._messages.line(say("notice", text=text))
