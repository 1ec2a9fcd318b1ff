"""`dragoman -p …`: one prompt, one answer, and an exit code that says how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.options import Options
from dragoman.app.setup import Setup, discover_tools, make_agent, set_up, settled, tidy_sessions
from dragoman.app.signals import Interrupts
from dragoman.base.words import say
from dragoman.cli.call_lines import title
from dragoman.cli.outcome import EXIT_BROKEN, Failure, Outcome, failed, outcome_of
from dragoman.cli.prompt import read_prompt
from dragoman.cli.reports import Report, messages_for, output_for, report_for
from dragoman.cli.startup import all_is_told
from dragoman.values.contracts import Deny, Intent
from dragoman.values.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent
    from dragoman.loop.run import Run
    from dragoman.values.messages import ToolCall

EXIT_READER_GONE = 141
"""128 + SIGPIPE: nobody reads the output any more, and so the run was ended."""
CLOSING_S = 1.0


def answer(options: Options) -> int:
    """Ask, tell the answer, and return the exit code. Raises nothing."""
    headless = Headless(options)
    with headless.interrupts:
        return headless.go()


class Headless:
    def __init__(self, options: Options) -> None:
        self._options = options
        self.interrupts = Interrupts(self._last_words, raises=False)
        self._out = output_for(options)
        self._messages = messages_for(options)
        self._report: Report = report_for(options, self._out, self._messages)
        self._refused: list[str] = []
        self._agent: Agent | None = None
        self._run: Run | None = None
        self._finishing = False

    def go(self) -> int:
        try:
            outcome = self._outcome()
        except asyncio.CancelledError:
            outcome = self._cancelled(self.interrupts.code)
        except DragomanError as error:
            outcome = failed(error)
        except Exception as error:
            outcome = self._broken(error)
        return self._finish(outcome)

    def _finish(self, outcome: Outcome) -> int:
        self._finishing = True
        all_is_told()
        self._report.end(outcome)
        self._out.finish()
        if self._out.problem is not None:
            self._messages.line(say("cannot_write", reason=self._out.problem.strerror or self._out.problem))
            return outcome.exit_code or EXIT_BROKEN
        return self.interrupts.code if self._out.is_cut_short else outcome.exit_code

    # --- the run

    def _outcome(self) -> Outcome:
        setup = set_up(self._options)
        self._messages.choose_color(setup.config.color)
        prompt = read_prompt(self._options.prompt, self._notice)
        setup = settled(setup, may_ask=False)
        agent, notices = make_agent(setup, ask=self._refuse)
        for notice in notices:
            self._notice(notice)
        self._agent = agent
        outcome = _driven(lambda: self._answered(setup, agent, prompt))
        tidy_sessions(setup)
        return outcome

    async def _answered(self, setup: Setup, agent: Agent, prompt: str) -> Outcome:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_only)
        self._out.attach(loop)
        try:
            await self._discover(loop, setup, agent)
            run = self._run = agent.run(prompt)
            self._out.on_gone = run.cancel
            self.interrupts.attach(loop, run.cancel)
            self._report.begin(agent, prompt)
            take = self._report.take
            async with run:
                async for event in run:
                    take(event)
            await _closed(agent)
        finally:
            self.interrupts.detach()
            self._out.detach()
        await self._trace(run)
        self._tell_refused()
        return self._ended(agent, run)

    async def _discover(self, loop: asyncio.AbstractEventLoop, setup: Setup, agent: Agent) -> None:
        task = asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            task.cancel()

        self.interrupts.attach(loop, cancel)
        await discover_tools(setup, agent)
        self.interrupts.detach()

    def _ended(self, agent: Agent, run: Run) -> Outcome:
        result = run.result
        whole = not result.exit_code or result.error_type == "OutputLimit"
        gone = EXIT_READER_GONE if self._out.gone else 0
        return outcome_of(
            result,
            agent.session_id,
            self._report.response if whole else "",
            refused=len(self._refused),
            interrupted=self.interrupts.code or gone,
        )

    # --- nobody can be asked

    async def _refuse(self, call: ToolCall, intent: Intent) -> Deny:
        self._refused.append(intent.title or title(call))
        return Deny(say("refused_to_model", name=call.name))

    def _tell_refused(self) -> None:
        if not self._refused:
            return
        names = list(dict.fromkeys(self._refused))
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        self._messages.line(say("refused", count=len(self._refused), names=shown))

    # --- ends nobody wanted

    def _cancelled(self, code: int) -> Outcome:
        failure = Failure(say("cancelled"), "Cancelled", code)
        if self._agent is None or self._run is None:
            return Outcome(failure=failure)
        stopped = outcome_of(self._run.result, self._agent.session_id, "", refused=len(self._refused))
        return msgspec.structs.replace(stopped, failure=failure)

    def _last_words(self, code: int) -> bool:
        """Called when the process is about to be ended, from a signal handler or from another thread. True: it is ending already."""
        if self._finishing:
            self._out.hurry = True  # it may be in the middle of a line: whoever writes it brings it to its end
            return True
        self._finishing = True
        self._report.end(self._cancelled(code))
        self._out.abandon()
        return False

    def _broken(self, error: Exception) -> Outcome:
        if self._options.debug:
            from dragoman.app.debug_log import print_traceback

            print_traceback(error)
        return failed(error)

    async def _trace(self, run: Run) -> None:
        """With --debug, where an error came from."""
        if not self._options.debug or not run.result.error_type:
            return
        from dragoman.app.debug_log import print_traceback

        try:
            await run
        except Exception as error:
            print_traceback(error)

    # --- telling

    def _notice(self, text: str) -> None:
        self._messages.line(say("notice", text=text))


def _driven(main: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
    """asyncio.run without its last step: waiting for threads, one of which may be looking up a name for a minute yet."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main())
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=CLOSING_S))
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


async def _closed(agent: Agent) -> None:
    try:
        async with asyncio.timeout(CLOSING_S):
            await agent.aclose()
    except TimeoutError:
        pass


def _log_only(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What asyncio would print on standard error is for --debug."""
    import logging

    error = context.get("exception")
    logging.getLogger("dragoman.cli").debug("%s", context.get("message"), exc_info=error)
