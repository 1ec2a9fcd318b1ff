"""Scripts: a small language with one meaning, read and written, and helpful where it is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.testing.script import Playback, Script, pieces
from dragoman.testing.script_steps import (
    BlockStep,
    CallQuirk,
    CallStep,
    Cite,
    CutStep,
    Fail,
    Finish,
    Garbage,
    Ping,
    RawStep,
    ReportStep,
    Say,
    ScriptedAnswer,
    ScriptFraming,
    Stall,
    Step,
    Think,
    Wait,
    answer,
)
from dragoman.values.errors import InputError
from dragoman.values.usage import Usage

# --- reading ---------------------------------------------------------------------------------------------------------------


def test_a_script_reads_as_it_is_written() -> None:
    script = Script.parse("""
        # the model looks first
        thought: I should look at the file.
        text: Let me read it.
        call: read_file {"path": "a.txt"}
        usage: fresh=100 cache_read=50 output=20
        ---
        text: Done.
        ---
        error: 429 retry_after=7 "Slow down"
        ---
        text: half of
        cut
    """)
    assert script.answers == (
        ScriptedAnswer(
            (
                Think("I should look at the file."),
                Say("Let me read it."),
                CallStep("read_file", '{"path": "a.txt"}'),
                ReportStep(Usage(fresh_tokens=100, cache_read_tokens=50, output_tokens=20)),
            )
        ),
        ScriptedAnswer((Say("Done."),)),
        ScriptedAnswer((Fail(429, "Slow down", retry_after_s=7.0),)),
        ScriptedAnswer((Say("half of"), CutStep())),
    )


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ('text: "two\\nlines "', Say("two\nlines ")),
        ("text piece=4: a: b", Say("a: b", 4)),
        ('text: ""', Say("")),
        ("thought signature=c2ln:", Think("", "c2ln")),
        ('thought redacted signature=abc: ""', Think("", "abc", redacted=True)),
        ("call: list_files", CallStep("list_files")),
        ('call id="" piece=2: f {"a": 1}', CallStep("f", '{"a": 1}', "", 2)),
        ('call: "../rm \\u001b[31m" [1]', CallStep("../rm \x1b[31m", "[1]")),
        ('call: f "a string"', CallStep("f", '"a string"')),
        ('call: f {"path": "cut', CallStep("f", '{"path": "cut')),
        ('call args="": f', CallStep("f", "")),
        ('cite title="A page" text=x: https://example.org/a?b=c', Cite("https://example.org/a?b=c", "A page", "x")),
        ("wait: 0.5", Wait(0.5)),
        ("error: 529", Fail(529)),
        ("error: 429 retry_date=7 retry_info=45.837906927", Fail(429, retry_date_s=7.0, retry_info_s=45.837906927)),
        ("error: 429 code=insufficient_quota quota_id=PerDay", Fail(429, code="insufficient_quota", quota_id="PerDay")),
        ("cut: 120", CutStep(120)),
        ("stall", Stall()),
        ("stall: 3", Stall(3)),
        ("ping", Ping()),
        ("ping: forever every=0.1", Ping(None, 0.1)),
        ("garbage", Garbage()),
        ("garbage: <html>", Garbage("<html>")),
        ("finish: length", Finish("length")),
        ('finish: MALFORMED_FUNCTION_CALL "why not"', Finish("MALFORMED_FUNCTION_CALL", "why not")),
        ("finish: none", Finish("")),
        ("block: SAFETY", BlockStep("SAFETY")),
        ('raw: "data: {}\\n\\n"', RawStep(b"data: {}\n\n")),
        ("raw base64: //4=", RawStep(b"\xff\xfe")),
    ],
)
def test_every_step_has_a_line(line: str, step: Step) -> None:
    assert Script.parse(line).answers == (ScriptedAnswer((step,)),)
    assert Script.parse(f"\ufeff{line}\r\n---\r\n").answers == (ScriptedAnswer((step,)),)


def test_options_of_answers_and_scripts() -> None:
    script = Script.parse("""
        script: end=say text="Bye."
        answer: calls=interleaved+no_index framing=crlf+bom piece_bytes=1 piece_wait=0.5 times=2
        text: a
        ---
        nothing
    """)
    assert (script.at_end, script.end_text) == ("say", "Bye.")
    first, second = script.answers
    assert first.calls == (CallQuirk.INTERLEAVED, CallQuirk.NO_INDEX)
    assert first.framing == (ScriptFraming.CRLF, ScriptFraming.BOM)
    assert (first.piece_bytes, first.piece_wait_s, first.times) == (1, 0.5, 2)
    assert second == ScriptedAnswer()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("text: a\ntxet: b", "line 2: `txet` is not a step; steps are text, .*Did you mean `text`?"),
        ("hello there", "line 1: `hello` is not a step"),
        ("!", "line 1: `!` is not a step; write `text: ...`"),
        ("text:", 'line 1: `text` says nothing; write `text: words`, or `text: ""`'),
        ('text: "open', 'line 1: "open is not a JSON string'),
        ("text piec=3: a", "line 1: `text` has no option `piec`; it takes piece. Did you mean `piece`?"),
        ("text piece=x: a", "line 1: `x` cannot be the size of a piece; write a whole number of at least 0"),
        ("call:", 'line 1: the call names no tool; write `call: read_file {"path": "a.txt"}`'),
        ("call args=1: f 2", "line 1: the call has arguments twice"),
        ("usage: 100", "line 1: `100` is not a count; write `usage: fresh=100 output=20`"),
        ("usage: in=1", "line 1: `usage` has no option `in`; it takes fresh, cache_read, cache_write, output, thought, cache_write_1h"),
        ("wait: long", "line 1: `long` cannot be a wait in seconds; write a number of at least 0"),
        ("wait: nan", "line 1: `nan` cannot be"),
        ("error: slow", "line 1: `slow` cannot be an HTTP status"),
        ("error: 200", "line 1: `200` cannot be an HTTP status; write a whole number of at least 400"),
        ("error: 700", "line 1: `700` cannot be the status of an error; write 400 to 599"),
        ("error:", "line 1: the error needs an HTTP status"),
        ("finish:", "line 1: the finish needs one word"),
        ("cut: here", "line 1: `here` cannot be a number of bytes"),
        ("ping: 1 2", "line 1: unexpected `2`"),
        ("raw base64: =", "line 1: `=` is not base64"),
        ("answer: calls=interleavd\ntext: a", "line 1: `interleavd` is unknown; choose from .*Did you mean `interleaved`?"),
        ("answer: times=0\ntext: a", "line 1: `0` cannot be times; write a whole number of at least 1"),
        ("text: a\nanswer: times=2", "line 2: `answer` comes too late"),
        ("text: a\nnothing", "line 2: `nothing` comes too late"),
        ("nothing\ntext: a", "line 2: this answer says `nothing` and then something"),
        ("text: a\nscript: end=raise", "line 2: `script` comes too late"),
        ("script: end=never", "line 1: a script cannot end with `never`; write end=say, end=raise or end=repeat"),
        ("text: a\n---\n\n---\ntext: b", "line 4: there is no step since line 2; write `nothing`"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_its_remedy(text: str, complaint: str) -> None:
    import re

    with pytest.raises(InputError) as caught:
        Script.parse(text)
    head, _, tail = complaint.partition(".*")
    assert str(caught.value).startswith(head)
    assert tail in str(caught.value)
    assert re.match(r"line \d+: ", str(caught.value))


def test_a_file_is_named_in_the_complaint(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.script"
    wrong.write_text("txt: a", encoding="utf-8")
    with pytest.raises(InputError, match=r"wrong\.script, line 1: `txt` is not a step"):
        Script.load(wrong)
    with pytest.raises(InputError, match=r"missing\.script: No such file"):
        Script.load(tmp_path / "missing.script")
    wrong.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        Script.load(wrong)


# --- writing ---------------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    ["a", 'a "b"', "---", "# x", " a ", "\u2028", "\ud83d", "{}"]
)
COUNTS = st.integers(0, 10_000)
SECONDS = st.floats(0, 1e6)
STEPS = st.one_of(
    st.builds(Say, TEXTS, COUNTS),
    st.builds(Think, TEXTS, TEXTS, COUNTS, st.booleans()),
    st.builds(CallStep, TEXTS.filter(bool), TEXTS, st.none() | TEXTS, COUNTS, TEXTS),
    st.builds(Cite, TEXTS, TEXTS, TEXTS),
    st.builds(ReportStep, st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)),
    st.builds(Finish, TEXTS.filter(lambda text: text != "none"), TEXTS),
    st.builds(BlockStep, TEXTS),
    st.builds(Wait, SECONDS),
    st.builds(Fail, st.integers(400, 599), TEXTS, TEXTS, *([st.none() | SECONDS] * 3), TEXTS, TEXTS),
    st.builds(CutStep, st.none() | COUNTS),
    st.builds(Stall, st.none() | COUNTS),
    st.builds(Ping, st.none() | COUNTS, SECONDS),
    st.builds(Garbage, TEXTS),
    st.builds(RawStep, st.binary(max_size=20)),
)
ANSWERS = st.builds(
    ScriptedAnswer,
    st.lists(STEPS, max_size=5).map(tuple),
    st.lists(st.sampled_from(CallQuirk), max_size=2).map(tuple),
    st.lists(st.sampled_from(ScriptFraming), max_size=2).map(tuple),
    COUNTS,
    SECONDS,
    st.integers(1, 5),
)
SCRIPTS = st.builds(Script, st.lists(ANSWERS, max_size=4).map(tuple), st.sampled_from(["say", "raise", "repeat"]), TEXTS)


@given(SCRIPTS)
def test_what_is_written_reads_the_same(script: Script) -> None:
    assert Script.parse(script.render()) == script


def test_a_written_script_stays_readable() -> None:
    script = Script(
        (answer("Let me see.", CallStep("read_file", '{"path": "a.txt"}'), Fail(429, "Slow down", retry_after_s=7)), answer("多行\n文字"))
    )
    assert script.render() == (
        'text: Let me see.\ncall: read_file {"path": "a.txt"}\nerror: 429 retry_after=7 "Slow down"\n---\ntext: "多行\\n文字"\n'
    )


@given(TEXTS, st.integers(0, 8))
def test_pieces_add_up(text: str, piece_chars: int) -> None:
    cut = list(pieces(text, piece_chars))
    assert "".join(cut) == text
    assert all(len(piece) <= piece_chars for piece in cut) or not piece_chars


# --- handing out -----------------------------------------------------------------------------------------------------------


def said(playback: Playback, request: Any = None) -> str:
    step = playback.next(request).steps[0]
    assert isinstance(step, Say)
    return step.text


def test_answers_come_in_order_and_as_often_as_they_say() -> None:
    playback = Playback("answer: times=2\ntext: a\n---\ntext: b")
    assert [said(playback) for _ in range(4)] == ["a", "a", "b", "The script has ended."]
    assert playback.played == 4


def test_a_script_may_end_otherwise() -> None:
    assert [said(Playback(Script((answer("a"),), at_end="repeat"))) for _ in range(2)] == ["a", "a"]
    playback = Playback("script: end=raise\ntext: a")
    assert said(playback) == "a"
    with pytest.raises(InputError, match="1 answer was given, and the model was asked again"):
        playback.next(None)
    assert said(Playback('script: end=say text="Bye."')) == "Bye."


def test_anything_sensible_is_a_source() -> None:
    assert said(Playback([answer("a"), answer("b")])) == "a"
    always = Playback(answer("a"))
    assert [said(always), said(always), said(always)] == ["a", "a", "a"]
    assert said(Playback(lambda request: answer(f"You said {request}.")), "hello") == "You said hello."


def test_an_answer_knows_how_it_ends_and_what_it_used() -> None:
    assert answer("a").finish == Finish("stop")
    assert answer("a", CallStep("f")).finish == Finish("tool_calls")
    assert answer("a", Finish("length"), CallStep("f")).finish == Finish("length")
    assert answer("abcdefgh", Think("abcd")).usage_or(10) == Usage(fresh_tokens=10, output_tokens=3, thought_tokens=1)
    assert answer("a", ReportStep(Usage(1)), ReportStep(Usage(2))).usage_or(10) == Usage(2)
