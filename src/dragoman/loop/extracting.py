"""An extract in the place of older messages, where no summary is to be had and pruning is not enough. No model is asked."""

from __future__ import annotations

from dragoman.context.compress import (
    MAX_PROMPT_TOKENS,
    PROMPT_SHARE,
    Cut,
    find_cut,
    is_gain,
    raw_tokens_with,
    raw_tokens_without,
    summary_message,
    verbatim_through,
)
from dragoman.context.decide import threshold_tokens
from dragoman.context.extract import extract_text
from dragoman.context.settings import CompressSettings
from dragoman.context.tokens import message_tokens
from dragoman.loop.history import History
from dragoman.loop.request_size import RequestSize
from dragoman.values.messages import Message
from dragoman.values.record import Compressed

LEAST_TOKENS = 100
SHARE = 0.8
"""The request falls to this share of the threshold, if it can."""


def record_extract(history: History, size: RequestSize, settings: CompressSettings, window: int) -> Compressed | None:
    """Record the extract that brings the request below the threshold of this window. None if there is none."""
    original, threshold = size.tokens, threshold_tokens(settings, window)
    for keep in (settings.keep, 0.0):
        cut = find_cut(history.view, keep, at_most=threshold / size.scale)
        if cut is None:
            continue
        summary = _summary(history, size, cut, threshold * SHARE, min(MAX_PROMPT_TOKENS, window * PROMPT_SHARE) / size.scale)
        new = size.tokens_of(raw_tokens_with(history.view, cut, summary))
        if new <= threshold and is_gain(original, new, settings):
            limit, kept = history.view.window, cut.kept_seqs
            return history.compress(cut.through_seq, summary, original, new, after=cut.after_seq, window=limit, kept_seqs=kept)
    return None


def _summary(history: History, size: RequestSize, cut: Cut, wanted_tokens: float, room: float) -> Message:
    """What a person said, and an extract of the rest in what is left of the wanted size. `room`: the most raw tokens for each."""
    view, keeps = history.view, bool(cut.kept_seqs)
    verbatim = verbatim_through(history.entries, cut.through_seq)
    least = summary_message("", verbatim, room, keeps_results=keeps, is_extract=True)
    left = wanted_tokens / size.scale - raw_tokens_without(view, cut) - message_tokens(least)
    snapshot = extract_text(view.items[cut.start : cut.end], min(max(left, LEAST_TOKENS), room))
    return summary_message(snapshot, verbatim, room, keeps_results=keeps, is_extract=True)
