"""Files that were read again: which earlier readings are no longer true, and what the model is never deprived of."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.conversation import MINUTE, PRICED, SECOND, Conversation, Service
from context.test_decide import by
from dragoman.context.decide import Decider
from dragoman.context.economics import Rates
from dragoman.context.replay import Policy, replay
from dragoman.context.replay_run import Timeline
from dragoman.context.settings import ContextSettings, PruneRule, PruneSettings
from dragoman.context.superseded import FilesShown, PartRead, files_shown, find_superseded, no_longer_shown
from dragoman.context.trace import trace_calls
from dragoman.values.messages import FinishReason, Response, Text, ToolCall, ToolResult, assistant
from dragoman.values.record import Kept

A = "/work/src/a.py"
SUPERSEDED = PruneRule(superseded=True)


def lines(first: int, last: int, total: int) -> str:
    note = (
        "" if (first, last) == (1, total) else f"\n[lines {first}-{last} of {total}" + f": go on with offset={last + 1}]" * (last < total)
    )
    return "\n".join(f"{number} words of this line" for number in range(first, last + 1)) + note


def read(offset: int = 0, limit: int = 0, *, total: int = 100, path: str = "src/a.py", saw: str = A, is_error: bool = False) -> FilesShown:
    args: dict[str, Any] = {"file_path": path} | ({"offset": offset} if offset else {}) | ({"limit": limit} if limit else {})
    first = offset or 1
    text = lines(first, min(total, first + limit - 1 if limit else total), total)
    result = ToolResult("c", "read_file", (Text(text),), is_error=is_error)
    return files_shown(ToolCall("c", "read_file", json.dumps(args)), result, (saw,))


def edit(path: str = "src/a.py") -> FilesShown:
    return files_shown(
        ToolCall("c", "edit", json.dumps({"file_path": path, "old_string": "x", "new_string": "y"})), ToolResult("c", "edit")
    )


def write(path: str = A) -> FilesShown:
    return files_shown(
        ToolCall("c", "write_file", json.dumps({"file_path": path, "content": "z"})), ToolResult("c", "write_file"), (), (path,)
    )


@pytest.mark.parametrize(
    ("shown", "superseded"),
    [
        pytest.param([read(), read()], {0: 1}, id="the whole, again"),
        pytest.param([read(10, 20), read()], {0: 1}, id="a part, then the whole"),
        pytest.param([read(), read(10, 20)], {}, id="the whole, then a part: the rest is still true"),
        pytest.param([read(), edit(), read(10, 20)], {0: 2}, id="the whole, changed, and looked at again"),
        pytest.param([read(), edit()], {}, id="an edit alone: the latest reading stays"),
        pytest.param([read(), edit("src/b.py"), read(10, 20)], {}, id="another file was changed"),
        pytest.param([read(1, 20), edit(), read(50, 20)], {}, id="changed, but other lines were looked at"),
        pytest.param([read(10, 20), read(5, 40)], {0: 1}, id="more lines around"),
        pytest.param([read(10, 20), read(15, 40)], {}, id="not all of the lines"),
        pytest.param([read(10, 20), edit(), read(10, 20)], {0: 2}, id="the same lines, changed"),
        pytest.param([read(), write()], {0: 1}, id="written whole"),
        pytest.param([read(), read(is_error=True)], {}, id="a failed reading stands for nothing"),
        pytest.param([read(is_error=True), read()], {}, id="a failed reading stays"),
        pytest.param([read(), read(path="b.py", saw="/work/b.py")], {}, id="another file"),
        pytest.param([read(total=3_000, limit=2_000), read(total=3_000, limit=2_000)], {0: 1}, id="cut, again"),
        pytest.param([read(2_500, 100, total=3_000), read(limit=2_000, total=3_000)], {}, id="cut before the part"),
        pytest.param([read(), edit(), read(), edit(), read()], {0: 2, 2: 4}, id="again and again: the last stays"),
    ],
)
def test_what_is_no_longer_true(shown: list[FilesShown], superseded: dict[int, int]) -> None:
    assert find_superseded(shown) == superseded


def test_what_is_pruned_stands_for_nothing() -> None:
    assert find_superseded([read(), read()], hidden=[1]) == {}


def test_a_call_that_ran_with_other_arguments_shows_nobody_knows_what() -> None:
    text = "The arguments of this call were changed before it ran, to {}\n\n" + lines(1, 100, 100)
    assert files_shown(ToolCall("c", "read_file", "{}"), ToolResult("c", "read_file", (Text(text),)), (A,)) == FilesShown()


def test_other_programs_are_known_by_their_tools_names() -> None:
    call = ToolCall("c", "mcp__fs__read_text_file", '{"path": "./src/a.py"}')
    assert files_shown(call, ToolResult("c", call.name, (Text("x\ny"),))).read == (PartRead("src/a.py", 1, 0, 2, True),)
    hooked = ToolCall("c", "read_file", '{"file_path": "src/a.py"}')
    assert files_shown(hooked, ToolResult("c", "read_file", (Text("(not shown)"),))) == FilesShown(), "a hook replaced what was read"


def test_what_nobody_shows_any_more_is_named() -> None:
    assert no_longer_shown([read()], [read(10, 20)]) == {A}
    assert no_longer_shown([read(10, 20)], [read()]) == set()
    assert no_longer_shown([read(10, 20)], [read(1, 15), read(16, 30)]) == set()
    assert no_longer_shown([read(10, 20)], [write()]) == set()


steps = st.lists(
    st.one_of(
        st.builds(read, st.sampled_from([0, 1, 10, 40]), st.sampled_from([0, 20, 70]), is_error=st.sampled_from([False, False, True])),
        st.builds(edit),
        st.builds(write),
        st.just(FilesShown()),
    ),
    max_size=10,
)


@given(steps)
def test_the_latest_reading_of_a_file_stays_and_so_does_each_that_nothing_stands_for(shown: list[FilesShown]) -> None:
    found = find_superseded(shown)
    readings = [position for position, files in enumerate(shown) if files.read]
    wrote = [position for position, files in enumerate(shown) if files.wrote]
    if readings and (not wrote or wrote[-1] < readings[-1]):
        assert readings[-1] not in found
    for position, by_position in found.items():
        assert position < by_position
        assert shown[position].read, "only what was read goes"
        assert shown[by_position].read or shown[by_position].wrote
    if not any(files.changed or files.wrote for files in shown):
        gone, left = ([files for at, files in enumerate(shown) if (at in found) is is_gone] for is_gone in (True, False))
        assert no_longer_shown(gone, left) == set(), "where nothing was changed, every line stays in view"


# --- through the whole of it


def lively(settings: ContextSettings, *, again: int = 4, falls_back: bool = False) -> Conversation:
    """A file is read, edited, and read again, time after time."""
    held = Conversation(settings, PRICED, Service(falls_back=falls_back), cache_kind="breakpoints" if falls_back else "none")
    held.prompt("mend it")
    for number in range(again):
        for name, args, text in (
            ("read_file", {"file_path": "src/a.py"}, lines(1, 300, 300)),
            ("edit", {"file_path": "src/a.py", "old_string": "x", "new_string": str(number)}, "1 replacement"),
            ("run_shell", {"command": "make"}, "x" * 3_000),
            ("run_shell", {"command": "make"}, "y" * 3_000),
        ):
            call = ToolCall(f"c{len(held.history.entries)}", name, json.dumps(args))
            held.request()
            used = held.service.usage(held.view, held.now_ms)
            held.history.answer(Response(assistant("looking", call), FinishReason.TOOL_CALLS, usage=used))
            held.wait(40 * SECOND)
            result = ToolResult(call.id, name, (Text(text),))
            held.history.finish_tool(result, saw=(A,) if name == "read_file" else ())
    return held


def reads_shown(held: Conversation) -> list[bool]:
    return [outcome.result.call_id not in held.view.pruned for outcome in held.view.outcomes if outcome.result.name == "read_file"]


def test_it_is_off_unless_it_is_set() -> None:
    held = lively(by("request"))
    held.wait(60 * MINUTE)
    held.request()
    assert reads_shown(held) == [True] * 4


def test_what_was_read_again_goes_and_the_latest_reading_stays() -> None:
    held = lively(by("request", rule=SUPERSEDED))
    assert reads_shown(held) == [False, False, False, True]
    newest = lively(by("request", rule=PruneRule(superseded=True, keep=20)))
    assert reads_shown(newest) == [True] * 4, "they are among the newest results"


def test_a_reading_that_a_person_wants_kept_stays() -> None:
    held = lively(by("off"))
    first, second, *_ = (outcome.result.call_id for outcome in held.view.outcomes if outcome.result.name == "read_file")
    held.history.append(Kept(*held.history.stamp(), (first,)))
    held.decider = Decider(by("request", rule=SUPERSEDED))
    assert first not in held.decide().prune
    assert second in held.decide().prune


@pytest.mark.parametrize("falls_back", [False, True])
def test_a_replay_lets_the_same_readings_go(falls_back: bool) -> None:
    settings = ContextSettings(PruneSettings(rule=SUPERSEDED))
    live, unpruned = lively(settings, again=14, falls_back=falls_back), lively(by("off"), again=14, falls_back=falls_back)
    calls = trace_calls(unpruned.history.entries)
    replayed = replay(Timeline(calls, SUPERSEDED), Policy("auto", SUPERSEDED), Rates(0.1, 1.25, falls_back=falls_back))
    moments = [number for number, decision in enumerate(live.decisions) if decision.prune]
    assert list(replayed.moments) == moments
    assert moments
    assert replayed.pruned == sum(len(decision.prune) for decision in live.pruned)
    assert replayed.worst_percent <= 125
    assert replayed.tokens < 0.8 * replayed.unpruned_tokens


def test_a_resumed_session_decides_the_same() -> None:
    live = lively(msgspec.structs.replace(by("auto"), prune=PruneSettings(rule=SUPERSEDED)), again=6)
    resumed = Conversation(live.settings, entries=tuple(live.history.entries), start_ms=live.now_ms)
    assert resumed.decide() == live.decide()
    assert resumed.view.pruned == live.view.pruned
