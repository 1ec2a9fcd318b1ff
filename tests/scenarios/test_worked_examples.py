"""The nine worked examples of the document on outdated command results, through the real program at the times they name.

Each step is a process of its own that goes on with the saved session, its clock shifted to the example's millisecond. Looked at is what
the service was sent, and what stands in the session's file. Calls are among them whose arguments were repaired (another name, a number
as text, broken JSON) or edited (by a hook, by a person who was asked): with a note in front, a success and a failure still count as what
they are.
"""

from __future__ import annotations

import json
import os

import pytest

from program import PROTOCOLS, Place
from scenarios.worked_session import PLACEHOLDERS, Session, Step, broken, failed, hooked, read, refused, repaired, shell, supposed, warned

TO_THE_LETTER = '[context.prune]\nschedule = "request"\n'
OUT_OF_THE_BOX = ""
EVERY = [(protocol, language) for language in PLACEHOLDERS for protocol in PROTOCOLS]
ONE_OF_EACH = [("gemini", "zh"), ("openai_chat", "en"), ("openai_responses", "zh"), ("anthropic", "en")]
TWO = ONE_OF_EACH[::3]


EVERY_EXAMPLE = "DRAGOMAN_EVERY_EXAMPLE" in os.environ
"""Read here: tests run without variables of ours."""


def on(chosen: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """The protocols and languages of a test."""
    chosen = EVERY if EVERY_EXAMPLE else chosen
    return pytest.mark.parametrize("spoken", chosen, ids=["-".join(each) for each in chosen])


def the_night(protocol: str) -> list[Step]:
    """Example 5: ten results of an hour and a half."""
    return [
        Step("00:30:00", [failed("0030")]),
        Step("00:40:00", [read("0040")]),
        Step("00:50:00", [broken("0050", protocol)]),
        Step("01:20:00", [hooked("0120")]),
        Step("01:30:00", [shell("0130")]),
        Step("01:35:00", [repaired("0135")]),
        Step("01:40:00", [warned("0140")]),
        Step("01:45:00", [shell("0145")]),
        Step("01:50:00", [shell("0150")], then_gone=frozenset({"0050"})),
        Step("01:55:00", [read("0155")], gone=frozenset({"0050"}), then_gone=frozenset({"0120"})),
    ]


SEVENTH_AND_EIGHTH = frozenset({"0050", "0120"})


def expected(steps: list[Step]) -> list[list[frozenset[str]]]:
    return [[step.gone, *([step.gone | step.then_gone] if step.calls else [])] for step in steps]


@on(EVERY)
def test_of_a_mixed_night_the_seventh_and_eighth_result_go(place: Place, spoken: tuple[str, str]) -> None:
    """Example 5, to the letter: before each request, everything that is outdated."""
    session = Session(place, *spoken, TO_THE_LETTER)
    steps = [*the_night(spoken[0]), Step("02:00:00", gone=SEVENTH_AND_EIGHTH)]
    assert session.hold(steps) == expected(steps)
    assert_kept_whole(session)


def assert_kept_whole(session: Session) -> None:
    """Example 9: the file holds every result as the model was told it first."""
    for name, entry in session.saved().items():
        text = "".join(part.get("text", "") for part in entry["result"]["content"])
        prefix = "Error: " if entry["result"].get("is_error") and "openai" in session.protocol else ""  # it has no flag for it
        assert prefix + text == session.fresh[name]
    assert session.placeholder not in "".join(json.dumps(entry, ensure_ascii=False) for entry in session.saved().values())


@on(TWO)
def test_out_of_the_box_the_same_two_are_gone_the_next_time_one_comes_back(place: Place, spoken: tuple[str, str]) -> None:
    """Example 5 with the schedule that nobody set: nothing goes before its time, and what is outdated goes with a cache that is cold."""
    session = Session(place, *spoken, OUT_OF_THE_BOX)
    night = the_night(spoken[0])
    found = session.hold([*night, Step("08:00:00")])
    for now, letter in zip(found, expected(night), strict=False):
        assert all(here <= there for here, there in zip(now, letter, strict=True))
    assert found[-1] == [SEVENTH_AND_EIGHTH]
    assert_kept_whole(session)


@on(ONE_OF_EACH)
def test_each_result_alone_and_at_the_boundary(place: Place, spoken: tuple[str, str]) -> None:
    """Examples 1 to 4 and 6 to 9, to the letter."""
    boundary, batch = frozenset({"0044"}), frozenset({"0050b", "0050d"})
    steps = [
        Step("00:30:00", [read("0030")]),
        Step("00:44:59.999", [supposed("0044")], edits={"cp .*": "cat 0044.log"}),
        Step("00:45:00.000", [repaired("0045")]),
        # An error takes none of the five places.
        Step("00:50:00", [read("0050a"), shell("0050b"), read("0050c"), shell("0050d"), read("0050e"), refused("0050x")]),
        # Example 7: 15 minutes and a millisecond. Example 8: 15 minutes. Example 6: a file that was read.
        Step("01:00:00.000", [shell("0100"), failed("0100x")], gone=boundary),
        Step("01:00:00.001", gone=(both := boundary | {"0045"})),
        Step("01:10:00", [read(f"0110{each}") for each in "abcd"], gone=both, then_gone=batch),
        # Example 2: 20 minutes old, and the fifth of the newest. Example 1: then the sixth. Example 3: the error beside it stays.
        Step("01:20:00", [read("0120")], gone=both | batch, then_gone=frozenset({"0100"})),
        Step("01:30:00", [shell("0130"), *(read(f"0130{each}") for each in "abcde")], gone=(late := both | batch | {"0100"})),
        # Example 4: five minutes old, whatever came after it.
        Step("01:35:00", gone=late),
    ]
    session = Session(place, *spoken, TO_THE_LETTER)
    assert session.hold(steps) == expected(steps)
    assert_kept_whole(session)
