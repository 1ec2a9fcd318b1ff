"""What a small window forces is seen by no larger one: each model is sent what it would have been sent, whoever went on in between."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from destinations import MAIN, connection
from dragoman.context.cache import Cache
from dragoman.context.plan import plan_of
from dragoman.context.shown import ByWindow, holds
from dragoman.context.view import View
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.record import (
    AnswerRejected,
    Compressed,
    Configured,
    Entry,
    Kept,
    ModelChanged,
    Pruned,
    Rewound,
    Said,
    ToolFinished,
    encode_entry,
)
from dragoman.values.record_reading import decode_entry
from dragoman.values.usage import Usage
from property.conversations import TOOLS
from property.test_requests import prompt_of

WINDOWS = {"small": 8_000, "middle": 30_000, "large": 200_000}
OUTPUTS = ["ok", "x" * 60, "世界" * 30]


class Session:
    """A history in which models of several windows take turns, and each forces what an agent would record for its window."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.history = History(now_ms=itertools.count(1_700_000_000_000, 1000).__next__)
        self.history.configure("large", "Be brief.", TOOLS, window=WINDOWS["large"])
        self.numbers = itertools.count(1)

    def live(self) -> History:
        for _ in range(self.data.draw(st.integers(1, 5))):
            self._step()
        return self.history

    def _step(self) -> None:
        history, draw = self.history, self.data.draw
        history.say(user(f"prompt {len(history.entries)}"))
        for _ in range(draw(st.integers(0, 2))):
            if draw(st.integers(0, 5)) == 0:
                history.reject(history.answer(Response(assistant("?"), FinishReason.MALFORMED_TOOL_CALL)), "malformed")
            made = [ToolCall(f"c{next(self.numbers)}", "run_shell", "{}") for _ in range(draw(st.integers(1, 3)))]
            usage = Usage(draw(st.integers(1, 500)))
            history.answer(Response(Message("assistant", (Text("looking"), *made)), FinishReason.TOOL_CALLS, usage=usage))
            for call in made:
                history.finish_tool(ToolResult(call.id, call.name, (Text(draw(st.sampled_from(OUTPUTS))),)))
            self._decide()
        history.answer(Response(assistant("done"), FinishReason.STOP, usage=Usage(draw(st.integers(1, 500)))))
        self._decide()
        if draw(st.integers(0, 6)) == 0:
            history.rewind(draw(st.sampled_from(history.entries)))

    def _decide(self) -> None:
        history, draw = self.history, self.data.draw
        limit = draw(st.sampled_from([0, history.view.window]))
        match draw(st.sampled_from(["nothing", "prune", "keep", "compress", "switch", "switch"])):
            case "prune":
                known = [outcome.result.call_id for outcome in history.view.outcomes]
                history.prune(draw(st.lists(st.sampled_from(known), unique=True)) if known else [], 7, window=limit)
            case "keep":
                known = [outcome.result.call_id for outcome in history.view.outcomes]
                chosen = draw(st.lists(st.sampled_from(known), unique=True)) if known else []
                history.append(Kept(*history.stamp(), tuple(chosen), draw(st.booleans())))
            case "compress":
                items = history.view.items
                through = draw(st.sampled_from([item for item in items if item.message.results] or items))
                kept = draw(st.lists(st.sampled_from([item.seq for item in items]), unique=True, max_size=3))
                summary = user(f"summary {len(history.entries)}")
                history.compress(through.seq, summary, window=limit, kept_seqs=tuple(seq for seq in kept if seq <= through.seq))
            case "switch":
                model = draw(st.sampled_from(list(WINDOWS)))
                history.change_model(model, "", WINDOWS[model])
            case _:
                pass


def folded(entries: list[Entry]) -> View:
    view = View()
    for entry in entries:
        view.feed(entry)
    return view


def without_what_is_hidden_from(window: int, entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if not isinstance(entry, Pruned | Compressed) or holds(entry.window, window)]


@pytest.mark.parametrize("model", WINDOWS)
@given(data=st.data())
def test_a_model_is_sent_what_it_would_have_been_sent_without_smaller_ones(model: str, data: st.DataObject) -> None:
    history = Session(data).live()
    history.change_model(model, "", WINDOWS[model])
    alone = folded(without_what_is_hidden_from(WINDOWS[model], history.entries))
    assert history.request == alone.request
    assert history.view.raw_tokens == alone.raw_tokens
    assert history.view.pruned == alone.pruned
    assert history.view.outcomes == alone.outcomes
    if model == "large":
        assert history.view.tokens() == alone.tokens(), "nor do estimates depend on what others were shown"


@given(data=st.data())
def test_a_resumed_session_sends_every_model_the_same(data: st.DataObject) -> None:
    live = Session(data).live()
    resumed = History(entries=[decode_entry(encode_entry(entry)) for entry in live.entries])
    assert resumed.request == live.request
    for window in (0, *WINDOWS.values()):
        assert resumed.view.messages_for(window) == live.view.messages_for(window)
    for model, window in WINDOWS.items():
        for history in (live, resumed):
            history.change_model(model, "", window)
        assert resumed.request == live.request
        assert live.view.messages == live.view.messages_for(window)


@pytest.mark.parametrize("where", MAIN)
@given(data=st.data())
def test_the_prefix_of_each_model_survives_what_others_do(where: str, data: st.DataObject) -> None:
    entries = Session(data).live().entries
    provider = connection(where)
    view, sent = View(), dict[str, bytes]()
    for entry in entries:
        view.feed(entry)
        if isinstance(entry, Pruned | Compressed):
            sent = {model: body for model, body in sent.items() if not holds(entry.window, WINDOWS[model])}
        elif isinstance(entry, Rewound | AnswerRejected | Kept):
            sent.clear()
        elif isinstance(entry, Said | ToolFinished | ModelChanged) and view.messages and view.messages[-1].role == "user":
            if view.open_calls:
                continue
            body = provider.prepare(replace(view.request, model=provider.model)).body
            assert prompt_of(body, closed=True).startswith(sent.get(view.model, b""))
            sent[view.model] = prompt_of(body)


@given(data=st.data())
def test_the_plan_of_each_model_adds_up(data: st.DataObject) -> None:
    history = Session(data).live()
    for model, window in WINDOWS.items():
        history.change_model(model, "", window)
        plan = plan_of(history.view, history.entries, history.cache)
        assert sum(item.tokens for item in plan.items) == plan.tokens
        assert {item.call_id for item in plan.items if item.state == "pruned"} <= history.view.pruned
        assert all(holds(item.window, window) for item in plan.items if item.state in ("pruned", "summarised"))
        assert all(not holds(item.window, window) for item in plan.items if item.reason == "window")


@given(data=st.data())
def test_what_the_cache_counts_as_pruned_is_what_the_current_model_misses(data: st.DataObject) -> None:
    """With prunings alone: the books of a model do not count what another was spared."""
    cache, window, prunings = Cache(), 0, list[Pruned]()
    for entry in Session(data).live().entries:
        if isinstance(entry, Compressed | Rewound):
            continue
        cache.feed(entry)
        if isinstance(entry, Configured | ModelChanged):
            window = entry.window
        elif isinstance(entry, Pruned) and entry.call_ids:
            prunings.append(entry)
        assert cache._state.pruned_tokens == sum(each.saved_tokens for each in prunings if holds(each.window, window))


@given(st.lists(st.tuples(st.sampled_from([0, 1, 5, 9, 20]), st.integers(1, 9)), max_size=12), st.integers(0, 25))
def test_a_value_by_window_is_the_fold_of_the_changes_that_hold(changes: list[tuple[int, int]], window: int) -> None:
    found = ByWindow.of(())
    for limit, number in changes:
        found = found.change(limit, lambda numbers, number=number: (*numbers, number))
    assert found.at(window) == tuple(number for limit, number in changes if holds(limit, window))
