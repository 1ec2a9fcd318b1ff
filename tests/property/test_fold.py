"""The request is a fold over the record: the same after resume, in call order, a prefix of the next unless an entry says otherwise."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from destinations import MAIN, connection, violation_in
from dragoman.context.tokens import message_tokens
from dragoman.context.view import PLACEHOLDER, View
from dragoman.loop.history import History
from dragoman.testing.journal import MemoryJournal
from dragoman.values.events import FieldOmitted
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.record import Entry, Rewound, Said, ToolFinished, encode_entry
from dragoman.values.record_reading import decode_entry
from dragoman.values.usage import Usage
from property.conversations import TOOLS
from property.test_requests import prompt_of

OUTPUTS = ["", "ok", "x" * 60, "世界" * 30]


class Session:
    """A history driven by random choices, as an agent would drive it."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.journal = MemoryJournal()
        self.history = History(self.journal, now_ms=lambda: 1_700_000_000_000 + 1000 * len(self.journal.entries))
        self.history.configure("model", "Be brief.", TOOLS)
        self.numbers = itertools.count(1)

    def step(self) -> None:
        self.history.say(user(f"prompt {len(self.history.entries)}"))
        for _ in range(self.data.draw(st.integers(0, 2))):
            self._maybe_rejected()
            self._tool_round()
            self._decisions()
        if self.data.draw(st.booleans()):
            self.history.answer(Response(assistant("done"), FinishReason.STOP, usage=Usage(10, output_tokens=2)))
        else:
            self.history.say(assistant("partial"))
        if self.data.draw(st.integers(0, 5)) == 0:
            target = self.data.draw(st.sampled_from([e for e in self.history.entries if isinstance(e, Said) and e.message.role == "user"]))
            self.history.rewind(target)

    def _maybe_rejected(self) -> None:
        if self.data.draw(st.integers(0, 3)) == 0:
            said = self.history.answer(Response(assistant(), FinishReason.MALFORMED_TOOL_CALL))
            self.history.reject(said, "malformed")

    def _tool_round(self) -> None:
        names = self.data.draw(st.lists(st.sampled_from(["read_file", "run_shell"]), min_size=1, max_size=4))
        made = [ToolCall(f"c{next(self.numbers)}", name, "{}") for name in names]
        self.history.answer(Response(Message("assistant", (Text("looking"), *made)), FinishReason.TOOL_CALLS, usage=Usage(5)))
        for call in self.data.draw(st.permutations(made)):
            if self.data.draw(st.integers(0, 6)) == 0:
                continue  # never finished: a crash
            self.history.start_tool(call)
            text = self.data.draw(st.sampled_from(OUTPUTS))
            outcome = self.data.draw(st.sampled_from(["finished", "failed", "cancelled"]))
            self.history.finish_tool(ToolResult(call.id, call.name, (Text(text),) if text else (), outcome == "failed"), outcome)
        if self.history.view.open_calls:
            self.history.say(user("go on"))

    def _decisions(self) -> None:
        match self.data.draw(st.sampled_from(["none", "none", "prune", "compress", "switch", "refuse"])):
            case "prune":
                known = [e.result.call_id for e in self.history.entries if isinstance(e, ToolFinished)]
                self.history.prune(self.data.draw(st.lists(st.sampled_from(known), unique=True)) if known else [])
            case "compress":
                first = self.history.view.items[0].seq if self.data.draw(st.booleans()) else 0
                self.history.compress(self.history.entries[-1], user("summary of all before"), after=first)
            case "switch":
                self.history.change_model(self.data.draw(st.sampled_from(["model", "other"])))
            case "refuse":
                field = self.data.draw(st.sampled_from(["temperature", "reasoning.summary"]))
                self.history.refuse_field(FieldOmitted("", self.history.view.model, field, "not supported"))
            case _:
                pass


sessions = st.data()


def lived(data: st.DataObject) -> Session:
    session = Session(data)
    for _ in range(data.draw(st.integers(1, 4))):
        session.step()
    return session


def folded(entries: list[Entry]) -> View:
    view = View()
    for entry in entries:
        view.feed(entry)
    return view


@given(data=sessions)
def test_a_resumed_session_sends_what_the_live_one_would(data: st.DataObject) -> None:
    live = lived(data).history
    log = [encode_entry(entry) for entry in live.entries]
    resumed = History(entries=map(decode_entry, log))
    assert resumed.request == live.request
    assert resumed.transcript() == live.transcript()
    assert resumed.usage == live.usage
    live.say(user("next"))
    resumed.say(user("next"))
    assert live.request == resumed.request


@pytest.mark.parametrize("where", MAIN)
@given(data=sessions)
def test_every_request_of_a_session_is_valid_everywhere(where: str, data: st.DataObject) -> None:
    session = lived(data)
    session.history.say(user("next"))
    provider = connection(where)
    found = violation_in(provider, provider.prepare(session.history.request).body)
    assert found is None, found


@given(data=sessions)
def test_each_call_has_one_result_in_call_order(data: st.DataObject) -> None:
    session = lived(data)
    session.history.say(user("next"))
    messages = session.history.curated()
    for message, following in zip(messages, (*messages[1:], None), strict=True):
        if message.calls:
            assert following is not None
            assert [result.call_id for result in following.results] == [call.id for call in message.calls]
    answered = [result.call_id for message in messages for result in message.results]
    assert len(answered) == len(set(answered))


@pytest.mark.parametrize("where", MAIN)
@given(data=sessions)
def test_the_prefix_holds_until_an_entry_says_otherwise(where: str, data: st.DataObject) -> None:
    entries = lived(data).history.entries
    provider = connection(where)
    view, before = View(), b""
    for entry in entries:
        view.feed(entry)
        if not isinstance(entry, Said | ToolFinished):
            before = b""  # an entry that says otherwise
            continue
        if not view.open_calls and view.messages and view.messages[-1].role == "user":
            body = provider.prepare(view.request).body
            assert prompt_of(body, closed=True).startswith(before)
            before = prompt_of(body)


@given(data=sessions)
def test_the_record_is_never_touched(data: st.DataObject) -> None:
    session = Session(data)
    before: list[bytes] = []
    for _ in range(3):
        session.step()
        now = [encode_entry(entry) for entry in session.history.entries]
        assert now[: len(before)] == before
        before = now
    assert [encode_entry(entry) for entry in session.journal.entries] == before


@given(data=sessions)
def test_a_rewind_is_the_fold_of_what_had_happened_by_then(data: st.DataObject) -> None:
    history = lived(data).history
    target = data.draw(st.sampled_from(history.entries))
    history.rewind(target)
    straight = [entry for entry in history.entries if entry.seq <= target.seq]
    assert history.view.messages == folded(straight).messages
    assert history.view.model == folded(straight).model


@given(data=sessions)
def test_pruning_is_idempotent_and_never_makes_a_result_longer(data: st.DataObject) -> None:
    history = lived(data).history
    ids = tuple(result.call_id for message in history.curated() for result in message.results)
    before = {result.call_id: result for message in history.curated() for result in message.results}
    history.prune(ids)
    once = history.curated()
    history.prune(ids)
    assert history.curated() == once
    for message in once:
        for result in message.results:
            was = "".join(part.text for part in before[result.call_id].content if isinstance(part, Text))
            now = "".join(part.text for part in result.content if isinstance(part, Text))
            assert len(now) <= len(was)
            assert now in (was, PLACEHOLDER)
            assert (result.name, result.is_error) == (before[result.call_id].name, before[result.call_id].is_error)


@pytest.mark.parametrize(("placeholder", "shown"), [("", "此命令返回内容已过时"), ("(outdated)", "(outdated)")])
def test_a_session_may_have_its_own_placeholder(placeholder: str, shown: str) -> None:
    history = History()
    history.configure("m", session_id="s1", placeholder=placeholder)
    history.configure("other")
    history.say(user("go"))
    history.say(Message("assistant", (ToolCall("c1", "run_shell"),)))
    history.finish_tool(ToolResult("c1", "run_shell", (Text("x" * 100),)))
    history.prune(["c1"])
    assert history.curated()[-1].results[0].content == (Text(shown),)
    assert (history.request.model, history.request.cache_key) == ("other", "s1")


def test_a_damaged_log_still_folds() -> None:
    """A lost entry, and a rewind that points at itself: what is left is folded, and nothing hangs."""
    said = [Said(seq, 0, user(str(seq))) for seq in (1, 2, 4)]
    assert folded([*said, Rewound(5, 0, 3)]).messages == (user("1"), user("2"))
    assert folded([*said, Rewound(5, 0, 5)]).messages == (user("1"), user("2"), user("4"))
    assert folded([*said, Rewound(5, 0, 99)]).messages == (user("1"), user("2"), user("4"))


@given(data=sessions)
def test_what_the_view_counts_is_what_it_shows(data: st.DataObject) -> None:
    """The running total equals a count of everything, whatever was rejected, pruned, compressed or rewound on the way."""
    view = lived(data).history.view
    assert view.raw_tokens == view.raw_static + sum(map(message_tokens, view.messages))
    shown = [result.call_id for message in view.messages for result in message.results]
    assert [outcome.result.call_id for outcome in view.outcomes] == shown
