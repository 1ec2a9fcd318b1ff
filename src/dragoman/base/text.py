"""Text for people's eyes: one harmless line, sizes, bars."""

from __future__ import annotations

_EIGHTHS = " ▏▎▍▌▋▊▉█"
# What a terminal would act on. Line ends and tabs stay; a carriage return would let a line be overwritten.
_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)])
_CONTROLS.pop(ord("\n"))
_CONTROLS.pop(ord("\t"))


def harmless(text: str) -> str:
    """The text without control characters: an answer must not be able to move the cursor, set a title or fill the clipboard."""
    return text if text.isprintable() else text.translate(_CONTROLS)


def one_line(text: str, limit: int = 2_000) -> str:
    """For messages: one line, harmless and of bounded length, whatever a service or a file name put into it."""
    line = harmless(" ".join(text.split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def size(count: int) -> str:
    """`812 B`, `4.1 kB`, `60 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 999.5:
            return f"{amount:.1f} {unit}" if unit != "B" and amount < 9.95 else f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def bar(share: float, columns: int) -> str:
    """A bar of so many columns at most, to an eighth of one; something is never shown as nothing."""
    eighths = round(max(min(share, 1.0), 0.0) * columns * 8)
    eighths = max(eighths, 1) if share > 0 else eighths
    return _EIGHTHS[8] * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
