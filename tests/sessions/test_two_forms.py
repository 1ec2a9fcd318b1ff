"""A session in both forms, one against the other: as a person saw it, and as the model sees it (SESSIONS-3)."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.sessions.transcript import Prompt, Reply, ToolCallStep, read_transcript
from dragoman.values.messages import Text
from dragoman.values.record import AnswerRejected, Compressed, Said
from property.test_fold import lived


@given(data=st.data())
def test_what_stands_in_the_transcript_is_what_the_model_is_told(data: st.DataObject) -> None:
    history = lived(data).history
    assume(not any(isinstance(entry, Compressed) for entry in history.entries))
    steps = read_transcript(history.entries).steps
    standing = [step for step in steps if not step.taken_back and not (isinstance(step, Reply) and step.rejected)]
    said = [(type(step) is Reply, step.text) for step in standing if isinstance(step, Prompt | Reply)]
    told = [(message.role == "assistant", message.text) for message in history.view.messages if not message.results]
    assert said == told
    seen = [step.call.id for step in standing if isinstance(step, ToolCallStep)]
    assert seen == [call.id for message in history.view.messages for call in message.calls]


@given(data=st.data())
def test_everything_that_was_said_is_shown_once(data: st.DataObject) -> None:
    """Rejected, rewound, pruned and compressed alike: the person saw it."""
    history = lived(data).history
    steps = read_transcript(history.entries).steps
    shown = [step.seq for step in steps if isinstance(step, Prompt | Reply)]
    assert shown == [entry.seq for entry in history.entries if isinstance(entry, Said)]
    rejected = {entry.said_seq for entry in history.entries if isinstance(entry, AnswerRejected)}
    assert {step.seq for step in steps if isinstance(step, Reply) and step.rejected} == rejected


@given(data=st.data())
def test_a_result_is_shown_as_it_came_though_the_model_no_longer_sees_it(data: st.DataObject) -> None:
    history = lived(data).history
    came = {entry.result.call_id: entry.result for entry in history.entries if hasattr(entry, "result")}
    for step in read_transcript(history.entries).steps:
        if isinstance(step, ToolCallStep) and step.call.id in came:
            assert step.output == "".join(part.text for part in came[step.call.id].content if isinstance(part, Text))
