"""Where a conversation is cut, and what stands in place of what is left out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.context.compress import (
    MAX_PROMPT_TOKENS,
    SHORT_PROMPT_CHARS,
    SUMMARY_BEGINS,
    Cut,
    Verbatim,
    clip,
    current_entries,
    find_cut,
    fit_texts,
    is_gain,
    raw_tokens_with,
    shrink,
    summary_message,
    threshold_tokens,
    verbatim_through,
)
from dragoman.context.plan import plan_of
from dragoman.context.settings import CompressSettings
from dragoman.context.tokens import text_tokens
from dragoman.context.view import View
from dragoman.loop.history import History
from dragoman.values.messages import Blob, FinishReason, Message, Response, Text, ToolCall, ToolResult, assistant, user
from dragoman.values.notes import CHANGED_BEGINS, GREETING, LOOP_NOTE
from dragoman.values.record import Compressed, Kept, encode_entry
from dragoman.values.record_reading import decode_entry

# --- conversations ---------------------------------------------------------------------------------------------------------------------

sizes = st.sampled_from([1, 30, 400, 3_000])
rounds = st.lists(st.tuples(sizes, st.integers(1, 3)), max_size=4)
"""The size of each result of a tool round, and how many there are."""
turns = st.tuples(sizes, rounds, st.booleans(), st.booleans())
"""A prompt's size, the rounds it took, whether it was answered, whether a note of ours came in between."""
conversations = st.tuples(st.booleans(), st.lists(turns, min_size=1, max_size=7))


def lived(conversation: tuple[bool, Sequence[tuple[int, Sequence[tuple[int, int]], bool, bool]]]) -> History:
    environment, lived_turns = conversation
    history = History(now_ms=lambda: 1_700_000_000_000)
    history.configure("model", "Be brief.")
    if environment:
        history.say(user(f"{GREETING} And so on."), "environment")
    numbers = itertools.count(1)
    for size, made, answered, noted in lived_turns:
        history.say(user(f"prompt {next(numbers)} " + "p" * size))
        if noted:
            history.say(user(LOOP_NOTE.format(what="again")), "loop")
        for result_size, count in made:
            calls = [ToolCall(f"c{next(numbers)}", "look") for _ in range(count)]
            history.answer(Response(Message("assistant", (Text("looking"), *calls)), FinishReason.TOOL_CALLS))
            for call in calls:
                history.finish_tool(ToolResult(call.id, call.name, (Text("r" * result_size),)))
        if answered:
            history.answer(Response(assistant("done"), FinishReason.STOP))
    return history


def summed_up(history: History, cut: Cut, text: str = "summary") -> Compressed:
    return history.compress(cut.through_seq, user(text), after=cut.after_seq, kept_seqs=cut.kept_seqs)


def pairs_hold(messages: Sequence[Message]) -> None:
    waiting: list[str] = []
    for message in messages:
        assert [result.call_id for result in message.results] == waiting
        waiting = [call.id for call in message.calls]
    assert waiting == []


# --- where to cut ----------------------------------------------------------------------------------------------------------------------


@given(conversation=conversations, keep=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9]))
def test_a_cut_parts_nothing_that_belongs_together(
    conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]], keep: float
) -> None:
    history = lived(conversation)
    view = history.view
    cut = find_cut(view, keep)
    if cut is None:
        return
    before, kept = view.items[: cut.end], view.items[cut.end :]
    assert kept, "something always stays"
    assert cut.start == int(conversation[0])
    assert cut.start < cut.end
    pairs_hold([item.message for item in before])
    pairs_hold([item.message for item in kept])
    last = before[-1].message
    assert last.role == "assistant" or last.results, "no prompt is parted from what answers it"
    if last.role == "assistant":
        assert kept[0].message.role == "user"
    summed_up(history, cut)
    first = [items.message for items in before[: cut.start]]
    assert history.view.messages == (*first, user("summary"), *(item.message for item in kept)), "the entry does what the cut says"


@given(conversation=conversations, keep=st.floats(0, 1))
def test_no_other_cut_comes_nearer_to_the_share_that_is_kept(
    conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]], keep: float
) -> None:
    view = lived(conversation).view
    cut = find_cut(view, keep)
    start = int(conversation[0])
    whole = sum(item.raw_tokens for item in view.items[start:])

    def distance(end: int) -> float:
        return abs(sum(item.raw_tokens for item in view.items[end:]) - whole * keep)

    possible = [end for end in range(start + 1, len(view.items)) if _parts_nothing(view, end)]
    if cut is None:
        assert not possible
    else:
        assert distance(cut.end) <= min(map(distance, possible)) + 1e-6


def _parts_nothing(view: View, end: int) -> bool:
    """The rule in other words: everything asked before is answered, everything called is finished."""
    before, behind = view.items[end - 1].message, view.items[end].message
    is_open = bool(before.calls) or (before.role == "user" and not before.results)
    return not is_open and not (before.role == "assistant" and behind.role == "assistant")


@given(conversation=conversations)
def test_cutting_again_and_again_comes_to_an_end(conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]]) -> None:
    """A summary alone is never summed up, so each time something else gives way."""
    history = lived(conversation)
    before = len(history.view.items)
    while (cut := find_cut(history.view, 0.3)) is not None:
        summed_up(history, cut)
        assert len(history.view.items) < before
        before = len(history.view.items)


@given(conversation=conversations)
def test_the_same_compression_twice_is_one(conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]]) -> None:
    history = lived(conversation)
    cut = find_cut(history.view)
    if cut is None:
        return
    entry = summed_up(history, cut)
    once = history.view.messages
    history.view.feed(entry)
    assert history.view.messages == once


@given(conversation=conversations, keep=st.sampled_from([0.0, 0.3]), data=st.data())
def test_what_a_person_keeps_stays_whole_however_often_it_is_summed_up(
    conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]], keep: float, data: st.DataObject
) -> None:
    history = lived(conversation)
    known = [outcome.result.call_id for outcome in history.view.outcomes]
    held = data.draw(st.lists(st.sampled_from(known), unique=True, min_size=1)) if known else []
    history.append(Kept(*history.stamp(), tuple(held)))
    rounds = [item.message for item in history.view.items if {result.call_id for result in item.message.results} & {*held}]
    before = len(history.view.items) + 1
    while (cut := find_cut(history.view, keep)) is not None:
        expected = raw_tokens_with(history.view, cut, user("summary"))
        summed_up(history, cut)
        assert history.view.raw_tokens == expected
        messages = history.view.messages
        assert messages[0].role == "user", "no service takes a conversation that begins with an answer"
        pairs_hold(messages)
        assert [message for message in messages if any(message is each for each in rounds)] == rounds, "the same, in their order"
        assert len(messages) < before, "each time something else gives way"
        before = len(messages)
        again = History(entries=[decode_entry(encode_entry(entry)) for entry in history.entries])
        assert again.request == history.request
        plan = plan_of(history.view, history.entries, history.cache)
        assert {item.call_id for item in plan.items if item.held and item.state == "kept"} == {*held}
        assert sum(item.tokens for item in plan.items) == plan.tokens


def test_what_is_no_longer_kept_goes_into_the_next_summary() -> None:
    history = lived((True, [(400, [(400, 2)], True, False)] * 6))
    history.append(Kept(*history.stamp(), ("c2",)))
    for _ in range(2):
        cut = find_cut(history.view, 0.6)
        assert cut is not None
        summed_up(history, cut)
    assert "c2" in {outcome.result.call_id for outcome in history.view.outcomes}
    history.append(Kept(*history.stamp(), ("c2",), held=False))
    cut = find_cut(history.view)
    assert cut is not None
    assert cut.kept_seqs == ()
    summed_up(history, cut)
    assert "c2" not in {outcome.result.call_id for outcome in history.view.outcomes}


def test_nothing_can_go_of_a_conversation_that_has_just_begun() -> None:
    history = History()
    assert find_cut(history.view) is None
    history.say(user(GREETING), "environment")
    assert find_cut(history.view) is None
    history.say(user("a long prompt " * 500))
    assert find_cut(history.view) is None
    history.answer(Response(assistant("An answer."), FinishReason.STOP))
    assert find_cut(history.view) is None


def test_a_prompt_that_closed_an_open_batch_is_not_parted_from_it() -> None:
    """Both come with one entry: no seq lies between them."""
    history = lived((False, [(30, [(30, 1)], True, False)]))
    history.say(user("next"))
    history.answer(Response(Message("assistant", (ToolCall("open", "look"),)), FinishReason.TOOL_CALLS))
    history.say(user("never mind"))
    for keep in (0.0, 0.01, 0.1, 0.5):
        cut = find_cut(history.view, keep)
        assert cut is not None
        kept = history.view.items[cut.end :]
        assert all(item.seq > cut.through_seq for item in kept)
        pairs_hold([item.message for item in kept])


def test_the_environment_stays_in_front() -> None:
    history = lived((True, [(400, [(400, 2)], True, False)] * 6))
    cut = find_cut(history.view)
    assert cut is not None
    summed_up(history, cut)
    assert history.view.messages[0].text.startswith(GREETING)
    assert history.view.messages[1].text == "summary"


def test_of_a_conversation_far_too_long_only_a_share_of_what_there_is_room_for_stays() -> None:
    history = lived((False, [(400, [(400, 2)], True, False)] * 60))
    whole = sum(item.raw_tokens for item in history.view.items)
    cut = find_cut(history.view, 0.3, at_most=whole / 10)
    assert cut is not None
    assert sum(item.raw_tokens for item in history.view.items[cut.end :]) < whole / 10


def test_an_id_that_is_out_of_view_may_come_again() -> None:
    """A service without ids of its own counts the calls it sees: after a compression the numbers start anew."""
    history = lived((False, [(30, [(400, 1)], True, False)] * 4))
    history.prune(["c2"])
    cut = find_cut(history.view, 0.1)
    assert cut is not None
    summed_up(history, cut)
    assert history.view.pruned == set()
    call = ToolCall("c2", "look")
    history.answer(Response(Message("assistant", (call,)), FinishReason.TOOL_CALLS))
    history.finish_tool(ToolResult("c2", "look", (Text("r" * 400),)))
    assert history.view.pruned == set()


# --- what outlives it ----------------------------------------------------------------------------------------------------------------


def spoken(history: History, through: int | None = None) -> Verbatim:
    return verbatim_through(history.entries, history.entries[-1].seq if through is None else through)


def test_what_a_person_said_is_told_from_what_the_program_said() -> None:
    history = History()
    history.say(user(f"{GREETING} Today is a day."), "environment")
    history.say(user("first, with a picture", Blob("image/png", "0" * 64, 12)))
    history.say(user(LOOP_NOTE.format(what="x")), "loop")
    history.say(user(f"{CHANGED_BEGINS}\n\nToday is another day."), "changed")
    history.say(user("second"))
    history.say(assistant("an answer"))
    assert spoken(history) == Verbatim(
        ("first, with a picture\n[image/png, 12 bytes]", "second"), (f"{CHANGED_BEGINS}\n\nToday is another day.",)
    )


def test_only_what_gives_way_is_repeated() -> None:
    history = History()
    first = history.say(user("first"))
    history.say(user("second"))
    assert spoken(history, first.seq).prompts == ("first",)


def test_prompts_are_taken_from_the_record_however_often_it_was_summed_up() -> None:
    history = lived((True, [(10, [(400, 1)], True, False)] * 8))
    prompts = spoken(history).prompts
    assert len(prompts) == 8
    for _ in range(3):
        cut = find_cut(history.view)
        if cut is not None:
            summed_up(history, cut, "a summary that says nothing of them")
    assert spoken(history).prompts == prompts


def test_what_was_taken_back_is_not_repeated() -> None:
    history = History()
    history.say(user("keep this"))
    mark = history.say(assistant("yes"))
    history.say(user("a mistake"))
    history.rewind(mark)
    history.say(user("better"))
    assert spoken(history).prompts == ("keep this", "better")


@given(data=st.data())
def test_what_stands_is_what_the_view_went_through(data: st.DataObject) -> None:
    """However it was rewound: folding the entries that stand, without the rewinds, gives the same view; also after entries were lost."""
    history = History(now_ms=lambda: 1)
    for number in range(data.draw(st.integers(1, 12))):
        if number and data.draw(st.integers(0, 2)) == 0:
            history.rewind(data.draw(st.sampled_from(history.entries)))
        else:
            history.say(user(str(number)) if data.draw(st.booleans()) else assistant(str(number)))
    lost = data.draw(st.sets(st.integers(0, len(history.entries) - 1), max_size=2))
    entries = [decode_entry(encode_entry(entry)) for place, entry in enumerate(history.entries) if place not in lost]
    live, again = View(), View()
    for entry in entries:
        live.feed(entry)
    for entry in current_entries(entries):
        if entry.__class__.__name__ != "Rewound":
            again.feed(entry)
    assert again.messages == live.messages


# --- the message -----------------------------------------------------------------------------------------------------------------------


def test_the_summary_says_what_it_is_and_holds_every_word_of_the_person() -> None:
    prompts = ("Never touch main.py.", 'Use "spaces",\n  not tabs\t\u2028 please', "按我说的做")
    text = summary_message("<goal>ship</goal>", Verbatim(prompts, ("changed: the date",))).text
    assert text.startswith(SUMMARY_BEGINS)
    assert "<snapshot>\n<goal>ship</goal>\n</snapshot>" in text
    assert all(f"<said>\n{prompt}\n</said>" in text for prompt in prompts)
    assert text.index(prompts[0]) < text.index(prompts[1]) < text.index(prompts[2])
    assert "changed: the date" in text
    assert "left out" not in text


@given(texts=st.lists(st.text("ab漢 ", max_size=60).map(lambda text: text * 40), min_size=1, max_size=40), room=st.integers(50, 2_000))
@example(texts=["a" * 100_000], room=300)
@example(texts=["first " * 3_000, "x" * 10, "newest " * 3_000], room=500)
def test_where_there_is_no_room_the_first_and_the_newest_stay(texts: list[str], room: int) -> None:
    shown = fit_texts(texts, room)
    said = [text for is_said, text in shown if is_said]
    notes = [text for is_said, text in shown if not is_said]
    if sum(map(text_tokens, texts)) <= room:
        assert said == texts
        assert not notes
        return
    assert said[0][: SHORT_PROMPT_CHARS // 2] == texts[0][: SHORT_PROMPT_CHARS // 2]
    assert said[-1][: SHORT_PROMPT_CHARS // 2] == texts[-1][: SHORT_PROMPT_CHARS // 2]
    left_out = len(texts) - len(said)
    assert notes == ([f"({left_out} more of the person's messages left out here)"] if left_out else [])
    assert sum(map(text_tokens, said)) <= room + 2 * (SHORT_PROMPT_CHARS + 60), "the two that always stay aside, it fits"


def test_a_long_first_prompt_is_not_clipped_for_the_sake_of_many_small_ones() -> None:
    rules = "Rule: never push.\n" * 300
    shown = fit_texts([rules, *["go on, and do the next thing on the list"] * 2_500], MAX_PROMPT_TOKENS)
    assert shown[0] == (True, rules)
    assert not shown[1][0]


@given(text=st.text(max_size=200), room=st.integers(3, 100))
def test_clipping_keeps_the_beginning_and_the_end(text: str, room: int) -> None:
    short = clip(text, room)
    if len(text) <= room:
        assert short == text
    else:
        assert short.startswith(text[: room * 2 // 3])
        assert short.endswith(text[len(text) - room // 3 :])
        assert "characters left out" in short


# --- whether it is worth it ------------------------------------------------------------------------------------------------------------


def test_the_whole_request_must_get_smaller_by_a_tenth() -> None:
    settings = CompressSettings()
    assert is_gain(1_000, 900, settings)
    assert not is_gain(1_000, 901, settings)
    assert not is_gain(1_000, 1_500, settings)


@given(conversation=conversations, words=st.integers(0, 4_000))
def test_the_size_foretold_is_the_size_it_then_has(
    conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]], words: int
) -> None:
    history = lived(conversation)
    cut = find_cut(history.view)
    if cut is None:
        return
    summary = user("word " * words + "end")
    foretold = raw_tokens_with(history.view, cut, summary)
    history.compress(cut.through_seq, summary, after=cut.after_seq)
    assert history.view.raw_tokens == foretold


def test_the_threshold_is_a_share_of_the_window_or_a_number_of_tokens() -> None:
    assert threshold_tokens(CompressSettings(), 200_000) == 140_000
    assert threshold_tokens(CompressSettings(threshold_tokens=50_000), 200_000) == 50_000
    assert threshold_tokens(CompressSettings(threshold_tokens=50_000), 8_000) == 8_000


# --- without a model -------------------------------------------------------------------------------------------------------------------


@given(conversation=conversations, wanted=st.integers(0, 5_000))
def test_the_oldest_results_go_first_the_last_batch_never_and_no_more_than_needed(
    conversation: tuple[bool, list[tuple[int, list[tuple[int, int]], bool, bool]]], wanted: int
) -> None:
    history = lived(conversation)
    view = history.view
    found = shrink(view, wanted)
    order = [outcome.result.call_id for outcome in view.outcomes]
    last = [outcome.result.call_id for outcome in view.outcomes if outcome.seq == view.outcomes[-1].seq]
    assert not set(found.call_ids) & set(last)
    assert list(found.call_ids) == [call_id for call_id in order if call_id in found.call_ids]
    before = view.raw_tokens
    history.prune(found.call_ids)
    saved = before - history.view.raw_tokens
    assert abs(saved - found.raw_tokens) <= len(found.call_ids) + 1
    assert history.view.pruned == set(found.call_ids), "each of them really is replaced"
    assert not set(shrink(history.view, wanted).call_ids) & set(found.call_ids), "what is gone is not counted on again"
    if found.call_ids:
        less = shrink(lived(conversation).view, found.raw_tokens)
        assert less.call_ids == found.call_ids
    if wanted and found.raw_tokens < wanted:
        rest = shrink(history.view, 10**9)
        assert not rest.call_ids, "as far as it goes"


# --- skills ----------------------------------------------------------------------------------------------------------------------------


def skilled(text: str = "Write haiku.") -> History:
    history = History(now_ms=lambda: 1_700_000_000_000)
    history.configure("model", "Be brief.")
    history.say(user("begin"))
    for number, (name, content) in enumerate([("activate_skill", f'<skill name="poet">\n{text}\n</skill>'), ("look", "x" * 9_000)]):
        call = ToolCall(f"s{number}", name)
        history.answer(Response(Message("assistant", (call,)), FinishReason.TOOL_CALLS))
        history.start_tool(call)
        history.finish_tool(ToolResult(call.id, name, (Text(content),)))
    history.answer(Response(assistant("done"), FinishReason.STOP))
    history.say(user('<skill name="painter">\nPaint.\n</skill>\n\na ship'))
    history.answer(Response(assistant("painted"), FinishReason.STOP))
    return history


def test_a_summary_keeps_what_activated_skills_say_each_once() -> None:
    history = skilled()
    verbatim = verbatim_through(history.entries, history.entries[-1].seq)
    assert verbatim.skills == ('<skill name="poet">\nWrite haiku.\n</skill>', '<skill name="painter">\nPaint.\n</skill>')
    assert verbatim.prompts == ("begin", "a ship")
    summary = summary_message("It went well.", verbatim).text
    assert summary.count("Write haiku.") == summary.count("Paint.") == 1
    early = verbatim_through(history.entries, history.entries[1].seq)
    assert early.skills == (), "what stays in view is not told twice"


def test_however_long_skills_are_there_is_a_bound() -> None:
    history = skilled("word " * 100_000)
    summary = summary_message("x", verbatim_through(history.entries, history.entries[-1].seq), 1_000)
    assert len(summary.text) < 20_000


def test_skills_are_never_shrunk() -> None:
    view = skilled("long " * 3_000).view
    assert shrink(view, 1e9).call_ids == ()
