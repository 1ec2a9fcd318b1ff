"""Formulas as models write them (`$a^2$`, `\\(x_i\\)`, `\\[\\frac{a}{b}\\]`) as a line of text: a², xᵢ, a/b.

What is no formula (money, variables of a shell) stays as it is; so does what has no letter of its own for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

REACH = 300
"""How far from its beginning a formula may end, in characters."""

_CLOSED = {
    "$": re.compile(r"\$\$(?P<whole>[^$]{1,300}?)\$\$|\$(?P<part>(?![\s$])[^$\n]{0,298}?[^\s$\\])\$(?![A-Za-z0-9])"),
    "\\": re.compile(r"\\\((?P<part>.{1,298}?)\\\)|\\\[(?P<whole>.{1,298}?)\\\]", re.DOTALL),
}
_MONEY = re.compile(r"\$\d[\d.,]*[kMB]?(?:[\s.,;:!?)/–-]|\Z)")
_NAME = re.compile(r"[A-Za-z]{2,}")
_WORDS = frozenset(["sin", "cos", "tan", "log", "ln", "exp", "min", "max", "lim", "mod", "gcd", "det", "dim", "arg", "sup", "inf", "Pr"])
_SIGN = re.compile(r"[=<>+*/|^_!-]|\\[A-Za-z]+")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)\s?")
_SCRIPT = re.compile(r"([\^_])")
_ABOVE: dict[str, str] = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzTABDEGHIJKLMNOPRUVW",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵁⱽᵂ",
        strict=True,
    )
)
_BELOW: dict[str, str] = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_SIGNS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ",
    "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "neq": "≠", "ne": "≠",
    "approx": "≈", "equiv": "≡", "sim": "∼", "propto": "∝", "times": "×", "cdot": "·", "div": "÷", "pm": "±", "mp": "∓", "ast": "∗",
    "to": "→", "rightarrow": "→", "leftarrow": "←", "Rightarrow": "⇒", "implies": "⇒", "iff": "⇔", "mapsto": "↦", "infty": "∞",
    "sum": "∑", "prod": "∏", "int": "∫", "partial": "∂", "nabla": "∇", "in": "∈", "notin": "∉", "subset": "⊂", "subseteq": "⊆",
    "cup": "∪", "cap": "∩", "emptyset": "∅", "forall": "∀", "exists": "∃", "neg": "¬", "land": "∧", "wedge": "∧", "lor": "∨", "vee": "∨",
    "ldots": "…", "dots": "…", "cdots": "⋯", "mid": "|", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "langle": "⟨",
    "rangle": "⟩", "ell": "ℓ", "circ": "∘", "oplus": "⊕", "otimes": "⊗", "perp": "⊥", "prime": "′", "quad": "  ", "qquad": "    ",
    "left": "", "right": "", "displaystyle": "", "limits": "", "big": "", "Big": "", ",": " ", ";": " ", ":": " ", "!": "", " ": " ",
    "{": "{", "}": "}", "%": "%", "$": "$", "_": "_", "&": "&", "#": "#", "|": "‖", "\\": "; ",
}  # fmt: skip
_SETS = {"R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ", "P": "ℙ", "E": "𝔼"}
_FRACTIONS = frozenset(("frac", "dfrac", "tfrac"))
_KEPT = frozenset(
    ("text", "mathrm", "mathbf", "mathit", "mathsf", "operatorname", "textbf", "textit", "mathcal", "boldsymbol", "vec", "hat", "bar")
)


class Formula(NamedTuple):
    """What is shown, and how much of the text it stands for."""

    shown: str
    size: int


def find_formula(text: str, at: int) -> Formula | None:
    """The formula that begins here, if one does."""
    found = _CLOSED[text[at]].match(text, at, at + REACH + 4)
    if found is None:
        return None
    whole, part = found["whole"], found["part"]
    if whole is None and text[at] == "$" and not _is_formula(part):
        return None
    return Formula(readable(part if whole is None else whole), found.end() - at)


def may_become_one(text: str, at: int) -> bool:
    """Whether what follows may still make a formula of it."""
    rest = text[at : at + REACH]
    if len(rest) >= REACH or "\n\n" in rest:
        return False
    if text[at] == "\\":
        return rest[1:2] in ("", "(", "[")
    return rest == "$" or rest.startswith("$$") or not (rest[1].isspace() or "\n" in rest or "$" in rest[1:] or _MONEY.match(rest))


def _is_formula(text: str) -> bool:
    """Whether what stands between two dollar signs is one: a letter, or letters and figures with signs between them, but no names."""
    plain = re.sub(r"\\(?:text|mathrm|operatorname)\{[^{}]*\}|\\[A-Za-z]+", " ", text)
    if any(name not in _WORDS and (len(name) > 2 or "_" in plain) for name in _NAME.findall(plain)):
        return False
    return bool(_SIGN.search(text)) or (len(text) <= 2 and text.isalpha())


def readable(text: str) -> str:
    """The formula in one line."""
    return re.sub(r" {2,}", " ", _read(text.replace("\n", " "), 0)).strip()


def _read(text: str, depth: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and (found := _COMMAND.match(text, at)) is not None:
            shown, at = _command(text, found, depth)
            out.append(_set_apart(shown, out, text[at:]) if found[1] in _FRACTIONS else shown)
        elif char in "^_":
            inside, at = _operand(text, at + 1, depth)
            out.append(_script(char, inside))
        elif char in "{}" or char == "&":
            at += 1
        else:
            out.append(char)
            at += 1
    return "".join(out)


def _set_apart(fraction: str, before: Sequence[str], rest: str) -> str:
    """So that what stands beside a fraction is not read as a part of it: `1/n ∑`, not `1/n∑`."""
    if rest[:1] in ("^", "_"):
        return f"({fraction})"
    last = "".join(before[-1:])[-1:]
    touches = bool(rest[:1]) and (rest[0].isalnum() or rest[0] in "\\({")
    return f"{' ' * last.isalnum()}{fraction}{' ' * touches}"


def _command(text: str, found: re.Match[str], depth: int) -> tuple[str, int]:
    name, end = found[1], found.end()
    if name in _FRACTIONS:
        above, end = _operand(text, end, depth)
        below, end = _operand(text, end, depth)
        return f"{_bracketed(above)}/{_bracketed(below)}", end
    if name == "sqrt":
        root, end = _index(text, end)
        inside, end = _operand(text, end, depth)
        return f"{root}√{_bracketed(inside)}", end
    if name == "mathbb":
        inside, end = _operand(text, end, depth)
        return _SETS.get(inside, inside), end
    if name in _KEPT:
        return _operand(text, end, depth)
    if name in ("begin", "end"):
        return "", _operand(text, end, depth)[1]
    if name in _SIGNS:
        is_wide = found[0].endswith(" ") and bool(_SIGNS[name].strip())
        return _SIGNS[name] + (" " if is_wide else ""), end
    return f"{name}{' ' if found[0].endswith(' ') else ''}" if name.isalpha() else name, end


def _index(text: str, at: int) -> tuple[str, int]:
    """Of `\\\\sqrt[3]{x}`: which root."""
    if text[at : at + 1] != "[" or (end := text.find("]", at)) < 0:
        return "", at
    return _script("^", text[at + 1 : end]), end + 1


def _operand(text: str, at: int, depth: int) -> tuple[str, int]:
    """What stands in the braces here, or the one thing that does."""
    while text[at : at + 1] == " ":
        at += 1
    if text[at : at + 1] != "{":
        if text[at : at + 1] == "\\" and (found := _COMMAND.match(text, at)) is not None:
            return _command(text, found, depth + 1) if depth < 20 else (found[1], found.end())
        return text[at : at + 1], at + 1
    level = 0
    for end in range(at, len(text)):
        level += {"{": 1, "}": -1}.get(text[end], 0)
        if not level:
            inside = text[at + 1 : end]
            return (_read(inside, depth + 1) if depth < 20 else inside), end + 1
    return text[at + 1 :], len(text)


def _script(sign: str, inside: str) -> str:
    """Small letters, where there are such for all of it."""
    letters = _ABOVE if sign == "^" else _BELOW
    small = [letters.get(char, "") for char in inside.replace(" ", "")]
    if inside in ("′", "∘"):
        return "°" if inside == "∘" else inside
    return "".join(small) if small and all(small) else f"{sign}{inside}" if len(inside) == 1 else f"{sign}({inside})"


def _bracketed(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 1 or text.isalnum() or (text[0] == "(" and text[-1] == ")" and "(" not in text[1:]) else f"({text})"
