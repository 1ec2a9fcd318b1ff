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
_FUNCTIONS = (
    "sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln lg exp min max lim limsup liminf mod gcd lcm det dim arg argmax "
    "argmin sup inf ker deg hom tr rank Pr"
)
_WORDS = frozenset(_FUNCTIONS.split())
"""Named as they are written; a command that is none of these and no sign is shown as it stands, braces and all."""
_SIGN = re.compile(r"[=<>+*/|^_!-]|\\(?:[A-Za-z]+|%)")
_APPLIED = re.compile(r"[A-Za-z]'*(?:\([^()]+\))?")
"""`f(x)`, `O(n)`, `f'`."""
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
    "gg": "≫", "ll": "≪", "gets": "←", "longrightarrow": "→", "leftrightarrow": "↔", "Leftrightarrow": "⇔", "Leftarrow": "⇐",
    "uparrow": "↑", "downarrow": "↓", "cong": "≅", "simeq": "≃", "asymp": "≍", "parallel": "∥", "angle": "∠", "triangle": "△",
    "therefore": "∴", "because": "∵", "setminus": "∖", "supset": "⊃", "supseteq": "⊇", "varnothing": "∅", "nexists": "∄", "hbar": "ℏ",
    "Re": "ℜ", "Im": "ℑ", "aleph": "ℵ", "bullet": "•", "star": "⋆", "dagger": "†", "iint": "∬", "oint": "∮", "vdots": "⋮", "ddots": "⋱",
    "lVert": "‖", "rVert": "‖", "Vert": "‖", "lvert": "|", "rvert": "|", "vert": "|", "colon": ":", "top": "⊤", "bot": "⊥",
    "models": "⊨", "vdash": "⊢", "bigcup": "⋃", "bigcap": "⋂", "coprod": "∐", "bmod": "mod", "upsilon": "υ", "Upsilon": "Υ",
    "vartheta": "ϑ", "varsigma": "ς", "degree": "°", "square": "□", "lbrace": "{", "rbrace": "}", "backslash": "\\",
    "left": "", "right": "", "middle": "", "displaystyle": "", "textstyle": "", "limits": "", "nolimits": "", "nonumber": "", "notag": "",
    "big": "", "Big": "", "bigg": "", "Bigg": "", "bigl": "", "bigr": "", "Bigl": "", "Bigr": "",
    ",": " ", ";": " ", ":": " ", "!": "", " ": " ",
    "{": "{", "}": "}", "%": "%", "$": "$", "_": "_", "&": "&", "#": "#", "|": "‖", "\\": "; ",
}  # fmt: skip
_SETS = {"R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ", "P": "ℙ", "E": "𝔼"}
_FRACTIONS = frozenset(("frac", "dfrac", "tfrac"))
_RELATIONS = frozenset("≤≥≠≈≡∼∝×·÷±∓→←⇒⇔↦∈∉⊂⊆⊃⊇∪∩≫≪↔⇐≅≃")
"""Where nothing stands before one of these, the space that ends its command is none."""
_KEPT_NAMES = (
    "text mathrm mathbf mathit mathsf mathtt mathcal mathscr mathfrak operatorname textbf textit textrm texttt boldsymbol bm mbox "
    "underbrace underline boxed"
)
_KEPT = frozenset(_KEPT_NAMES.split())
_ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0304", "tilde": "\u0303", "widetilde": "\u0303",
    "dot": "\u0307", "ddot": "\u0308", "vec": "\u20d7",
}  # fmt: skip
_AROUND = {"pmatrix": "()", "bmatrix": "[]", "Bmatrix": "{}", "vmatrix": "||", "Vmatrix": "‖‖", "cases": "{}"}
"""What an environment has around its rows."""


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
    if (found := find_formula(text, at)) is not None and found.size == len(rest):
        return True  # a letter right behind it, and it is none
    return rest == "$" or rest.startswith("$$") or not (rest[1].isspace() or "\n" in rest or "$" in rest[1:] or _MONEY.match(rest))


def _is_formula(text: str) -> bool:
    """Whether what stands between two dollar signs is one: a letter, or letters and figures with signs between them, but no names."""
    plain = re.sub(r"\\(?:text|mathrm|operatorname|begin|end)\{[^{}]*\}|\\[A-Za-z]+", " ", text)
    if any(name not in _WORDS and (len(name) > 2 or "_" in plain) for name in _NAME.findall(plain)):
        return False
    return bool(_SIGN.search(text) or _APPLIED.fullmatch(text)) or (len(text) <= 2 and text.isalpha())


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
            if shown[:-1] in _RELATIONS and "".join(out[-1:])[-1:].strip():
                shown = shown.rstrip()
            out.append(_set_apart(shown, out, text[at:]) if found[1] in _FRACTIONS else shown)
        elif char in "^_":
            inside, at = _operand(text, at + 1, depth)
            out.append(_script(char, inside))
        elif char in "{}":
            at += 1
        elif char == "&":  # between two columns
            out.append(" ")
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
    if name == "binom":
        above, end = _operand(text, end, depth)
        below, end = _operand(text, end, depth)
        return f"C({above},{below})", end
    if name == "pmod":
        inside, end = _operand(text, end, depth)
        return f"(mod {inside})", end
    if name in _KEPT:
        return _operand(text, end, depth)
    if name in _ACCENTS:
        inside, end = _operand(text, end, depth)
        return inside + _ACCENTS[name] if len(inside) == 1 else f"{name}({inside})", end
    if name in ("begin", "end"):
        kind, end = _operand(text, end, depth)
        return _AROUND.get(kind, "  ")[name == "end"].strip(), end
    if name in ("left", "right") and text[end : end + 1] == ".":  # a bracket that is not there
        return "", end + 1
    if name in _SIGNS:
        is_wide = found[0].endswith(" ") and bool(_SIGNS[name].strip())
        return _SIGNS[name] + (" " if is_wide else ""), end
    if name.isalpha() and name not in _WORDS:
        return _as_written(text, found)
    return f"{name}{' ' if found[0].endswith(' ') else ''}" if name.isalpha() else name, end


def _as_written(text: str, found: re.Match[str]) -> tuple[str, int]:
    """A command that is not known, with what stands in braces behind it."""
    end = found.end()
    while text[end : end + 1] == "{":
        level, at = 0, end
        for at in range(end, len(text)):
            level += {"{": 1, "}": -1}.get(text[at], 0)
            if not level:
                break
        end = at + 1
    return text[found.start() : end], end


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
            shown, end = _command(text, found, depth + 1) if depth < 20 else (found[1], found.end())
            return (shown[:-1], end - 1) if shown.endswith(" ") and text[end - 1] == " " else (shown, end)
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
