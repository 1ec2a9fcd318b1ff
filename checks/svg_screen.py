"""A screen of a terminal as an SVG picture, and several as one that moves. Text stays text: it can be read, searched and copied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from dragoman.base.graphemes import width

CELL, LINE, PAD = 8.43, 18.0, 14.0
FONT = "ui-monospace, 'Cascadia Code', 'JetBrains Mono', 'DejaVu Sans Mono', Menlo, Consolas, 'Noto Sans Mono CJK SC', monospace"
BACK, FORE = "#16181d", "#d7dae0"
BASIC = ["#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0"]
BRIGHT = ["#7f848e", "#f08a92", "#b5d99c", "#f2d59b", "#8cc7ff", "#d7a1ea", "#7fd1da", "#ffffff"]
_CODES = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[\x0e\x0f(][0-9A-B]?")


@dataclass(frozen=True)
class Style:
    fore: str = FORE
    back: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    under: bool = False
    struck: bool = False
    reverse: bool = False


def draw(screen: str, rows: int, columns: int, title: str) -> str:
    """One screen, as `tmux capture-pane -e` tells it."""
    return _page([_body(screen)], rows, columns, title, [])


def draw_moving(frames: Sequence[tuple[float, str]], rows: int, columns: int, title: str) -> str:
    """Screens, each with the second at which it came; the last stays for three seconds."""
    return _page([_body(screen) for _, screen in frames], rows, columns, title, [second for second, _ in frames])


def _page(bodies: list[str], rows: int, columns: int, title: str, seconds: list[float]) -> str:
    wide, high = columns * CELL + 2 * PAD, rows * LINE + 2 * PAD
    if seconds:
        total = seconds[-1] + 3.0
        styles = []
        for number, second in enumerate(seconds):
            end = seconds[number + 1] if number + 1 < len(seconds) else total
            first, last = 100 * second / total, 100 * end / total
            hidden = f"0%{{visibility:hidden}}{first:.3f}%{{visibility:visible}}" if number else "0%{visibility:visible}"
            styles.append(f"@keyframes f{number}{{{hidden}{last:.3f}%,100%{{visibility:hidden}}}}")
            styles.append(f"#f{number}{{animation:f{number} {total:.2f}s step-end infinite}}")
        bodies = [f'<g id="f{number}">{body}</g>' for number, body in enumerate(bodies)]
        moving = "".join(styles)
    else:
        moving = ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" role="img">'
        f"<title>{escape(title)}</title>"
        f"<style>text{{font:14px {FONT};white-space:pre}}{moving}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>{"".join(bodies)}</svg>\n'
    )


def _body(screen: str) -> str:
    drawn, style = [], Style()
    for row, line in enumerate(screen.rstrip("\n").split("\n")):
        runs, style = _runs(line, style)
        column = 0
        for text, how in runs:
            drawn.append(_run(text, how, row, column))
            column += width(text)
    return "".join(drawn)


def _runs(line: str, style: Style) -> tuple[list[tuple[str, Style]], Style]:
    """The pieces of a line with one look each, and the look in which the next line begins."""
    found, at = [], 0
    for code in _CODES.finditer(line):
        if code.start() > at:
            found.append((line[at : code.start()], style))
        at = code.end()
        if code.group(1) is not None:
            style = _changed(style, code.group(1))
    if at < len(line):
        found.append((line[at:], style))
    return found, style


def _changed(style: Style, codes: str) -> Style:
    numbers = [int(number or 0) for number in re.split("[;:]", codes)]
    while numbers:
        code = numbers.pop(0)
        if code in (38, 48):
            colour = _colour(numbers)
            style = replace(style, fore=colour) if code == 38 else replace(style, back=colour)
        else:
            style = _simple(style, code)
    return style


def _simple(style: Style, code: int) -> Style:
    switches = {1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"under": True}, 7: {"reverse": True}, 9: {"struck": True}}
    ends = {22: {"bold": False, "dim": False}, 23: {"italic": False}, 24: {"under": False}, 27: {"reverse": False}, 29: {"struck": False}}
    match code:
        case 0:
            return Style()
        case 39:
            return replace(style, fore=FORE)
        case 49:
            return replace(style, back="")
        case _ if 30 <= code <= 37:
            return replace(style, fore=BASIC[code - 30])
        case _ if 40 <= code <= 47:
            return replace(style, back=BASIC[code - 40])
        case _ if 90 <= code <= 97:
            return replace(style, fore=BRIGHT[code - 90])
        case _ if 100 <= code <= 107:
            return replace(style, back=BRIGHT[code - 100])
    return replace(style, **{**switches, **ends}.get(code, {}))


def _colour(numbers: list[int]) -> str:
    """Takes the rest of an extended colour off the list."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (numbers.pop(0) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = numbers.pop(0) if numbers else 7
    if number < 16:
        return (BASIC + BRIGHT)[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    steps = [0, 95, 135, 175, 215, 255]
    red, rest = divmod(number - 16, 36)
    return "#" + "".join(f"{steps[part]:02x}" for part in (red, *divmod(rest, 6)))


def _run(text: str, style: Style, row: int, column: int) -> str:
    fore, back = (style.back or BACK, style.fore) if style.reverse else (style.fore, style.back)
    cells = width(text)
    x, top = PAD + column * CELL, PAD + row * LINE
    box = f'<rect x="{x:.1f}" y="{top:.1f}" width="{cells * CELL:.1f}" height="{LINE}" fill="{back}"/>' if back else ""
    if not text.strip():
        return box
    lines = " ".join(name for name, on in (("underline", style.under), ("line-through", style.struck)) if on)
    looks = [f'fill="{fore}"']
    looks += ['font-weight="bold"'] if style.bold else []
    looks += ['opacity="0.6"'] if style.dim else []
    looks += ['font-style="italic"'] if style.italic else []
    looks += [f'text-decoration="{lines}"'] if lines else []
    length = f'textLength="{cells * CELL:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'{box}<text x="{x:.1f}" y="{top + 13.5:.1f}" {length} xml:space="preserve" {" ".join(looks)}>{escape(text)}</text>'
