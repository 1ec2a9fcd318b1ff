"""What of a session can be set in the client: model, mode and effort, by the option of the protocol or by its older calls."""

from __future__ import annotations

from typing import get_args

from dragoman.acp.outgoing import ConfigOption, Mode, Modes, SelectOption
from dragoman.acp.rpc import INVALID_PARAMS, AcpError
from dragoman.app.setup import Setup
from dragoman.conversation.choosable import models_with_key
from dragoman.conversation.conversation import Conversation
from dragoman.policy.judge import Mode as ModeName
from dragoman.values.messages import Effort
from dragoman.words import say

MODEL, MODE, EFFORT = "model", "mode", "effort"
UNSET = "default"
"""Of the effort: what the model does by itself."""


def modes_of(conversation: Conversation) -> Modes:
    modes = tuple(Mode(mode, mode_name(mode), str(say(f"mode_{mode}"))) for mode in get_args(ModeName))
    return Modes(conversation.mode, modes)


def mode_name(mode: str) -> str:
    return str(say(f"tui.mode_{mode.replace('-', '_')}"))


def options_of(conversation: Conversation, models: tuple[SelectOption, ...]) -> tuple[ConfigOption, ...]:
    """`models`: those that can be chosen."""
    now = conversation.model
    if all(each.value != now for each in models):
        models = (SelectOption(now, now), *models)
    modes = tuple(SelectOption(each.id, each.name, each.description) for each in modes_of(conversation).available_modes)
    efforts = tuple(SelectOption(each, each, str(say(f"conversation.effort_{each}"))) for each in get_args(Effort))
    unset = SelectOption(UNSET, UNSET, str(say("acp.effort_unset")))
    return (
        ConfigOption(MODEL, str(say("acp.option_model")), "model", now, models),
        ConfigOption(MODE, str(say("acp.option_mode")), "mode", conversation.mode, modes),
        ConfigOption(EFFORT, str(say("acp.option_effort")), "thought_level", conversation.effort or UNSET, (unset, *efforts)),
    )


def choosable_models(setup: Setup) -> tuple[SelectOption, ...]:
    """The models of every service that has a key; no server is asked."""
    return tuple(SelectOption(each.name, each.model, each.service) for each in models_with_key(setup))


def set_option(conversation: Conversation, key: str, value: str) -> None:
    """Raises DragomanError or AcpError, and then all stays."""
    match key:
        case "model":
            conversation.change_model(value)
        case "mode":
            conversation.set_mode(value)
        case "effort":
            conversation.set_effort("" if value == UNSET else value)
        case _:
            raise AcpError(INVALID_PARAMS, say("acp.no_such_option", name=key[:60], known=f"{MODEL}, {MODE}, {EFFORT}"))
