"""What a request holds and what was left out of it, piece by piece, in the order in which it was said."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from dragoman.base.text import clip
from dragoman.context.environment import skills_in
from dragoman.context.plan_path import Path
from dragoman.context.tokens import RESULT_TOKENS, message_tokens, part_tokens, text_tokens, tools_tokens
from dragoman.context.view import View
from dragoman.values.messages import Message, Part, Text, Thought, ToolCall, ToolResult
from dragoman.values.notes import is_note, is_setup
from dragoman.values.parts import INTERRUPTED, call_in_words, part_to_string
from dragoman.values.record import (
    About,
    Compressed,
    Entry,
    Pruned,
    Said,
    ToolFinished,
    fold,
)

Kind = Literal[
    "system",
    "tools",
    "environment",
    "memory",
    "skills",
    "summary",
    "prompt",
    "attached",
    "note",
    "thinking",
    "answer",
    "call",
    "result",
    "unseen",
]
"""`attached`: a file that a prompt names, or what a command of the user's own printed. `unseen`: tokens the service counts that nothing in
the record explains. `note`: the program's own messages to the model during a run."""
State = Literal["kept", "pruned", "summarised", "dropped", "waiting"]
"""`waiting`: results reach the model when all calls of an answer have one."""
Reason = Literal["", "outdated", "summarised", "rejected", "rewound", "unmatched", "interrupted", "waiting", "open", "window"]
"""`unmatched`: a result without an open call. `interrupted`: its call never ended (and the model was told so); `open`: it may still end.
`window`: a summary for models with a smaller window."""

Since = Literal["", "read", "edited"]
"""What became of the file a result shows: it was read again, or edited. Either way this is not its newest content."""

ABOUT_CHARS = 200


class PlanItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of a conversation: its size in the next request, or why it is not in it."""

    kind: Kind
    state: State
    tokens: int
    """Its size in the next request."""
    whole_tokens: int
    """Its size as it was said, pruned or not."""
    seq: int = 0
    """The entry it came with."""
    timestamp_ms: int = 0
    name: str = ""
    """The tool, or the memory file."""
    about: str = ""
    """How it begins, in one line."""
    reason: Reason = ""
    by_seq: int = 0
    """The entry that pruned, summarised or dropped it, or that brought it back."""
    detail: str = ""
    """The reason that entry gives."""
    call_id: str = ""
    goes: bool = False
    """It would be pruned before the next request."""
    window: int = 0
    """The entry `by_seq` holds for models with a window up to this one only; 0: for all."""
    held: bool = False
    """A person wants it kept: no rule prunes it."""
    since: Since = ""


class _Piece(msgspec.Struct, frozen=True):
    """An item before it is scaled to the model. If it is left out of the request, `raw` is 0."""

    kind: Kind
    raw: float
    whole: float
    about: str = ""
    name: str = ""
    call_id: str = ""
    seq: int = 0
    timestamp_ms: int = 0
    state: State = "kept"
    reason: Reason = ""
    by_seq: int = 0
    detail: str = ""
    window: int = 0
    held: bool = False
    since: Since = ""


_Place = tuple[int, int, int]
"""The position of a piece: by its entry; results before what was said with it, a summary after; then as in the message."""
_RESULTS, _SAID, _SUMMARY = 0, 1, 2


def items_of(view: View, entries: Sequence[Entry], *, total: int, scale: float, goes: Collection[str]) -> tuple[PlanItem, ...]:
    """The tokens of all items add up to `total`. `goes`: the calls whose results would be pruned next."""
    path = Path(entries, view.window)
    placed = sorted((*_request_pieces(view, path), *_left_out_pieces(view, path)), key=lambda each: each[0])
    factor = min(scale, total / view.raw_tokens) if view.raw_tokens else scale
    items: list[PlanItem] = []
    raw = 0.0
    for piece in (*_static_pieces(view, path), *(piece for _, piece in placed)):
        before, raw = raw, raw + piece.raw
        tokens = round(raw * factor) - round(before * factor)
        leaves = piece.kind == "result" and piece.state == "kept" and piece.call_id in goes
        whole = tokens if piece.whole == piece.raw else max(round(piece.whole * factor), tokens)
        items.append(_item(piece, tokens, whole, leaves))
    if (unseen := total - round(raw * factor)) > 0:
        items.append(PlanItem("unseen", "kept", unseen, unseen))
    return tuple(items)


def _item(piece: _Piece, tokens: int, whole_tokens: int, leaves: bool) -> PlanItem:
    return PlanItem(
        piece.kind,
        piece.state,
        tokens,
        whole_tokens,
        piece.seq,
        piece.timestamp_ms,
        piece.name,
        piece.about,
        piece.reason,
        piece.by_seq,
        piece.detail,
        piece.call_id,
        leaves,
        piece.window,
        piece.held,
        piece.since,
    )


# --- in the request


def _static_pieces(view: View, path: Path) -> Iterator[_Piece]:
    seq, timestamp_ms = (path.configured.seq, path.configured.timestamp_ms) if path.configured else (0, 0)
    if view.system:
        size = round(text_tokens(view.system))
        yield _Piece("system", size, size, _about(view.system), seq=seq, timestamp_ms=timestamp_ms)
    sizes = [tools_tokens([tool]) for tool in view.tools]
    rounding = tools_tokens(view.tools) - sum(sizes)
    for number, (tool, size) in enumerate(zip(view.tools, sizes, strict=True)):
        size += 0 if number else rounding
        yield _Piece("tools", size, size, _about(tool.description), tool.name, seq=seq, timestamp_ms=timestamp_ms)


def _request_pieces(view: View, path: Path) -> Iterator[tuple[_Place, _Piece]]:
    summaries = {(entry.through_seq, id(entry.summary)): entry for entry in path.compressions}
    said = {_place_of(entry): entry.seq for entry in path.entries if isinstance(entry, Said)}
    said |= {(0, which): seq for (_, which), seq in said.items()}  # the environment stands first, wherever it was told
    originals = {(outcome.seq, outcome.result.call_id): outcome.result for outcome in view.outcomes}
    for item in view.items:
        which = item.seq, id(item.message)
        if which in summaries:
            yield (item.seq, _SUMMARY, 0), _summary(summaries[which], item.raw_tokens)
            continue
        batch = path.batches.get(item.seq, {}) if which not in said else None
        for place, piece in enumerate(_pieces(item.message, item.raw_tokens, item.about)):
            piece = replace(piece, seq=said.get(which, item.seq), timestamp_ms=item.timestamp_ms)
            if batch is None:
                yield (item.seq, _SAID, place), piece
            else:
                original = originals.get((item.seq, piece.call_id))
                by = path.pruned_by(piece.call_id, item.seq) if piece.call_id in view.pruned else None
                yield (item.seq, _RESULTS, place), _with_outcome(piece, batch.get(piece.call_id), original, by, path, view.held)


def _with_outcome(
    piece: _Piece, finished: ToolFinished | None, original: ToolResult | None, by: Pruned | None, path: Path, held: Collection[str]
) -> _Piece:
    """A result with its outcome, and whether it was replaced."""
    if finished is None:
        return replace(piece, reason="interrupted")
    piece = replace(piece, seq=finished.seq, timestamp_ms=finished.timestamp_ms)
    piece = replace(piece, since=path.since(finished), held=piece.call_id in held)
    if by is None or original is None:
        back = path.kept.get(piece.call_id)
        return replace(piece, by_seq=back.seq) if back is not None and back.restored_tokens and back.seq > finished.seq else piece
    marks = replace(piece, state="pruned", reason="outdated", by_seq=by.seq, detail=by.reason, window=by.window)
    return replace(marks, whole=part_tokens(original), about=_about(_text_of(original)))


def _summary(entry: Compressed, raw: float) -> _Piece:
    return _Piece("summary", raw, raw, _about(entry.summary.text), seq=entry.seq, timestamp_ms=entry.timestamp_ms)


# --- left out of the request


@fold("left_out")
def _left_out_pieces(view: View, path: Path) -> Iterator[tuple[_Place, _Piece]]:
    shown = {(item.seq, id(item.message)) for item in view.items}
    shown |= {_place_of(entry) for entry in path.entries if isinstance(entry, Said) and (0, id(entry.message)) in shown}
    results_shown = {item.seq for item in view.items if item.message.results}
    homes = {finished.seq: seq for seq, batch in path.batches.items() for finished in batch.values() if finished is not None}
    for entry in path.entries:
        match entry:
            case Said(message=message) if _place_of(entry) not in shown or entry.seq in path.rewound_by:
                marks = _said_marks(entry, path)
                for place, piece in enumerate(_pieces(message, message_tokens(message), entry.about)):
                    yield (entry.seq, _SAID, place), _left_out_piece(entry, piece, marks)
            case Compressed() if (entry.through_seq, id(entry.summary)) not in shown or entry.seq in path.rewound_by:
                marks = _said_marks(entry, path)
                yield (entry.through_seq, _SUMMARY, 0), _left_out_piece(entry, _summary(entry, message_tokens(entry.summary)), marks)
            case ToolFinished(result=result) if homes.get(entry.seq) not in results_shown:
                [piece] = _pieces(Message("user", (result,)), part_tokens(result))
                yield (homes.get(entry.seq, entry.seq), _RESULTS, 0), _left_out_piece(entry, piece, _result_marks(entry, path, homes))
            case _:
                pass
    yield from _unfinished_calls(path, results_shown)


def _place_of(entry: Said) -> tuple[int, int]:
    return entry.seq, id(entry.message)


_Marks = tuple[State, Reason, int, str, int]


def _left_out_piece(entry: Entry, piece: _Piece, marks: _Marks) -> _Piece:
    state, reason, by_seq, detail, window = marks
    piece = replace(piece, seq=entry.seq, timestamp_ms=entry.timestamp_ms, raw=0.0)
    return replace(piece, state=state, reason=reason, by_seq=by_seq, detail=detail, window=window)


def _said_marks(entry: Said | Compressed, path: Path) -> _Marks:
    if entry.seq in path.rewound_by:
        return "dropped", "rewound", path.rewound_by[entry.seq], "", 0
    if (by := path.rejected.get(entry.seq)) is not None:
        return "dropped", "rejected", by.seq, by.reason, 0
    if isinstance(entry, Compressed) and entry not in path.compressions:
        return "dropped", "window", entry.seq, "", entry.window
    place = entry.through_seq if isinstance(entry, Compressed) else entry.seq
    return _summary_marks(path, place, entry.seq)


def _result_marks(entry: ToolFinished, path: Path, homes: Mapping[int, int]) -> _Marks:
    if entry.seq in path.rewound_by:
        return "dropped", "rewound", path.rewound_by[entry.seq], "", 0
    if (by := path.void.get(entry.seq)) is not None:
        return "dropped", "rejected", by.seq, by.reason, 0
    if entry.seq in path.unmatched:
        return "dropped", "unmatched", 0, "", 0
    if entry.seq not in homes:
        return "waiting", "waiting", 0, "", 0
    return _summary_marks(path, homes[entry.seq], entry.seq)


def _summary_marks(path: Path, place: int, since: int) -> _Marks:
    by = path.summarised_by(place, since)
    return ("summarised", "summarised", by.seq, "", by.window) if by is not None else ("dropped", "", 0, "", 0)


def _unfinished_calls(path: Path, results_shown: Collection[int]) -> Iterator[tuple[_Place, _Piece]]:
    """Calls without an end: those that may still end, and those that were summarised."""
    last = path.entries[-1].seq if path.entries else 0
    for call_id, finished in path.open.items():
        if finished is None:
            yield (last, _SUMMARY, 1), _Piece("result", 0, 0, call_id=call_id, state="waiting", reason="open")
    for seq, batch in path.batches.items():
        for call_id, finished in batch.items() if seq not in results_shown else ():
            if finished is None:
                state, reason, by_seq, detail, window = _summary_marks(path, seq, seq)
                whole = RESULT_TOKENS + text_tokens(INTERRUPTED)
                piece = _Piece("result", 0, whole, INTERRUPTED, call_id=call_id, seq=seq, state=state, reason=reason)
                yield (seq, _RESULTS, 0), replace(piece, by_seq=by_seq, detail=detail, window=window)


# --- a message, piece by piece


def _pieces(message: Message, raw: float, about: About = "") -> list[_Piece]:
    """Their sizes add up to `raw`: the overhead of the message itself goes to the first."""
    groups = list(_group_parts(message, about))
    spare = raw - sum(size for _, size, *_ in groups)
    pieces: list[_Piece] = []
    for kind, size, words, name, call_id in groups:
        size, spare = size + spare, 0
        pieces.append(_Piece(kind, size, size, words, name, call_id))
    return pieces


_Group = tuple[Kind, float, str, str, str]


def _group_parts(message: Message, about: About) -> Iterator[_Group]:
    thoughts = [part for part in message.parts if isinstance(part, Thought)]
    spoken = [part for part in message.parts if not isinstance(part, Thought | ToolCall | ToolResult)]
    if thoughts:
        yield "thinking", _size(thoughts), _about(" ".join(part.text for part in thoughts)), "", ""
    if message.role == "assistant" and (spoken or len(message.parts) == 0):
        yield "answer", _size(spoken), _about(part_to_string(spoken, verbose=True)), "", ""
    for part in message.parts:
        if isinstance(part, ToolCall):
            yield "call", part_tokens(part), _about(call_in_words(part)), part.name, part.id
        elif isinstance(part, ToolResult):
            yield "result", part_tokens(part), _about(_text_of(part)), part.name, part.call_id
    if message.role == "user" and (spoken or len(message.parts) == 0):
        yield from _user_groups(message, spoken, about)


def _user_groups(message: Message, spoken: Sequence[Part], about: About) -> Iterator[_Group]:
    text = message.text
    spoken, attached = _without_attached(spoken)
    size = _size(spoken)
    if not is_setup(about):
        yield "note" if is_note(about) else "prompt", size, _about(part_to_string(spoken, verbose=True)), "", ""
        for name, parts in attached:
            yield "attached", _size(parts), _about(part_to_string(parts, verbose=True)), name, ""
        return
    memory = list(_memory_in(text))
    of_memory = [text_tokens(said) for _, said in memory]
    skills = skills_in(text)
    of_skills = text_tokens(skills) if skills else 0
    yield "environment", size - sum(of_memory) - of_skills, _about(text), "", ""
    if skills:
        yield "skills", of_skills, _about(skills.partition("\n")[2]), "", ""
    for (name, said), each in zip(memory, of_memory, strict=True):
        yield "memory", each, _about(said), name, ""


def _without_attached(parts: Sequence[Part]) -> tuple[list[Part], list[tuple[str, list[Part]]]]:
    """What the person wrote, and what it brings by name: the text that says what it is, with the image or document behind it."""
    written: list[Part] = []
    attached: list[tuple[str, list[Part]]] = []
    is_open = False
    for part in parts:
        if isinstance(part, Text):
            is_open = part.attached is not None
            if part.attached is not None:
                attached.append((part.attached.name, []))
        (attached[-1][1] if is_open else written).append(part)
    return written, attached


def _memory_in(text: str) -> Iterator[tuple[str, str]]:
    """The memory files that the environment message quotes."""
    rest = text
    while (start := rest.find("\n--- What ")) >= 0:
        head, _, said = rest[start + len("\n--- What ") :].partition(" says ---\n")
        body, ends, rest = said.partition(f"\n--- End of {head} ---")
        if not ends:
            return
        yield head, body


def _size(parts: Iterable[Part]) -> float:
    return sum(map(part_tokens, parts))


def _text_of(result: ToolResult) -> str:
    return "".join(part.text if isinstance(part, Text) else f"[{part.mime}]" for part in result.content)


def _about(text: str) -> str:
    line = " ".join(text[: 4 * ABOUT_CHARS].split())
    return clip(line, ABOUT_CHARS)
