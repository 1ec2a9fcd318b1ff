"""Splits an answer into pieces without gaps or overlaps."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.text_tools.calls import Piece


def fill_gaps(pieces: Iterable[Piece], length: int) -> tuple[Piece, ...]:
    """Fill the gaps between pieces with text pieces. Neighbours of one kind are joined, except calls."""
    tiles: list[Piece] = []
    at = 0
    for piece in pieces:
        if piece.start > at:
            tiles.append(Piece("text", at, piece.start))
        if piece.end <= piece.start:
            continue
        last = tiles[-1] if tiles else None
        if last is not None and last.kind == piece.kind and piece.kind != "call":
            tiles[-1] = Piece(piece.kind, last.start, piece.end)
        else:
            tiles.append(piece)
        at = piece.end
    if at < length:
        tiles.append(Piece("text", at, length))
    return tuple(tiles)
