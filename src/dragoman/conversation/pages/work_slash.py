"""Slash commands about the work of a conversation: what it can use, what runs beside it, what it has cost, beginning again and leaving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.base.text import one_line
from dragoman.values.errors import InputError
from dragoman.words import lookup, say

if TYPE_CHECKING:
    from dragoman.conversation.talk import Talk


def retry(talk: Talk, rest: str) -> None:
    if not talk.may_retry:
        raise InputError(say("nothing_to_retry"))
    talk.ask(None)


def clear(talk: Talk, rest: str) -> str:
    agent = talk.agent
    if not agent.history.view.messages:
        return say("nothing_to_clear")
    last = agent.history.entries[-1].seq
    agent.clear()
    talk.may_retry = False
    return say("cleared", seq=last, id=agent.session_id)


def leave(talk: Talk, rest: str) -> None:
    talk.leave(0)


def usage(talk: Talk, rest: str) -> str:
    from dragoman.conversation.spent_words import spent_words

    return say("usage_so_far", runs=talk.runs, spent=spent_words(talk.usage, talk.cost_usd, estimated=not talk.cost_is_whole))


def stats(talk: Talk, rest: str) -> None:
    """This session in numbers."""
    from dragoman.conversation.pages.session_stats import stats_text

    talk.screen.page(stats_text(talk.agent, talk.screen.columns).rstrip("\n"))


# --- what the model can use


def tools(talk: Talk, rest: str) -> None:
    specs = talk.agent.offered_tools
    width = max((len(spec.name) for spec in specs), default=0)
    for spec in specs:
        ours = f"tools.about_{spec.name}"
        summary = say(ours) if lookup(ours) is not None else one_line(spec.description).partition(". ")[0].rstrip(".")
        text = summary if spec.read_only else say("asking_tool", text=summary)
        talk.screen.page(f"  {spec.name:{width}}  {text}")
    if left_out := len(talk.agent.tools.specs) - len(specs):
        talk.screen.page(say("tools_not_offered", count=left_out, model=talk.agent.model))


def skills(talk: Talk, rest: str) -> None:
    from dragoman.conversation.pages.skills_command import skill_lines

    for line in skill_lines(talk.setup):
        talk.screen.line(line)


def hooks(talk: Talk, rest: str) -> None:
    from dragoman.conversation.pages.hooks_command import for_conversation

    for line in for_conversation(talk.setup, rest.split()).splitlines():
        talk.screen.line(line)


def agents(talk: Talk, rest: str) -> None:
    from dragoman.conversation.pages.agents_command import for_conversation

    for line in for_conversation(talk.agent):
        talk.screen.line(line)


# --- commands in the background


def ps(talk: Talk, rest: str) -> None:
    commands = talk.agent.background_commands
    if not commands:
        talk.screen.message(say("no_background_commands"))
    for each in commands:
        words = say(f"command_is_{each.state.replace(' ', '_')}")
        state = words if each.exit_code is None else f"{words} ({each.exit_code})"
        is_short = each.age_s < 600
        age = say("age_seconds", number=f"{each.age_s:.0f}") if is_short else say("age_minutes", number=f"{each.age_s / 60:.0f}")
        command = one_line(each.command)
        command = say("call_outside", title=command) if each.is_outside else command
        talk.screen.line(say("background_command", id=each.id, state=state, age=age, command=command))


def stop(talk: Talk, rest: str) -> str:
    if not rest:
        raise InputError(say("stop_usage"))
    if not talk.agent.stop_command(rest):
        raise InputError(say("no_such_command", id=rest[:60]))
    return say("command_stopped", id=rest)
