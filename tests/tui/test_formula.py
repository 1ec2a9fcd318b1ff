"""Formulas are read as a person would write them in a line; money, code and variables of a shell stay as they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tui.formula import readable
from dragoman.tui.inline import parse


def shown(text: str) -> str:
    return "".join(span.text for span in parse(text).spans)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so $a^2 + b^2 = c^2$ holds", "so a² + b² = c² holds"),
        (r"for $x_i \le n$, $n$ steps", "for xᵢ ≤ n, n steps"),
        (r"\(\frac{a+b}{2}\) and \[\sum_{i=1}^{n} x_i = \sqrt{n}\]", "(a+b)/2 and ∑ᵢ₌₁ⁿ xᵢ = √n"),
        (r"$$e^{i\pi} + 1 = 0$$", "e^(iπ) + 1 = 0"),
        (r"$O(n \log n)$ in $\mathbb{R}^n$", "O(n log n) in ℝⁿ"),
        (r"$\text{loss} = -\log p$", "loss = -log p"),
        (r"$\sqrt[3]{x+1}$", "³√(x+1)"),
        (r"$O(n)$ for $f(x, y)$, $f'(x)$ and $P(A)$", "O(n) for f(x, y), f'(x) and P(A)"),
        (r"$\frac{1}{n}\sum_{i=1}^{n} x_i$", "1/n ∑ᵢ₌₁ⁿ xᵢ"),
        (r"\[\int_0^\infty e^{-x^2}\,dx\]", "∫₀^∞ e^(-x²) dx"),
        (r"$\lim_{x\to 0} \frac{\sin x}{x}$", "lim_(x→0) (sin x)/x"),
        (r"$\hat{y} = \bar x + \vec{v}\cdot\nabla f$", "y\u0302 = x\u0304 + v\u20d7·∇ f"),
        (r"$\overline{AB}$ is not $AB$", "overline(AB) is not AB"),
        (r"$\binom{n}{k}$, $5\%$, $a \equiv b \pmod{n}$", "C(n,k), 5%, a ≡ b (mod n)"),
        (r"$$\begin{pmatrix} a & b \\ c & d \end{pmatrix}$$", "( a b ; c d )"),
        (r"$f(x)=\begin{cases}1 & x>0\\0 & \text{otherwise}\end{cases}$", "f(x)={1 x>0; 0 otherwise}"),
        (r"$$\left. \frac{df}{dx} \right|_{x=0}$$", "df/dx |ₓ₌₀"),
        (r"$$\foo{bar}{b\le c} + \unheard x$$", r"\foo{bar}{b\le c} + \unheard x"),
        (r"$2\frac{a}{b}x = \frac{a}{b}, \frac{a}{b}^2$", "2 a/b x = a/b, (a/b)²"),
    ],
)
def test_a_formula(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It costs $5 and $10, or $5/month",
        "gain of $1.5k–$2k",
        "$HOME/bin:$PATH is set",
        "$foo_bar$ and $PATH$",
        "US$ 5",
        "from $5-$10",
        "a $ b $ c",
        "$(date) and $x(later)$",
    ],
)
def test_what_is_none_stays_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_code_stays_code() -> None:
    assert shown("`$a^2$`") == "$a^2$"


def test_a_piece_that_ends_with_a_formula_waits_for_what_follows() -> None:
    """Its last sign has come, and a letter behind it would make it none."""
    assert parse("so $a^2$", is_whole=False).used == len("so ")
    assert parse("so $5", is_whole=False).used == len("so $5")


def test_money_holds_no_text_up() -> None:
    assert parse("it costs $5 and then", is_whole=False).used == len("it costs $5 and then")


@given(st.text(alphabet="$a1 ^_{}\\(frac)[]+-\n5.", max_size=60), st.integers(0, 60))
def test_in_whatever_pieces_it_comes_the_same_is_shown(text: str, cut: int) -> None:
    first = parse(text[:cut], is_whole=False)
    begun = "".join(span.text for span in first.spans)
    assert shown(text).startswith(begun) or "\n" in text


@given(st.text(alphabet="ab^_{}\\frac sqrt[]", max_size=80))
def test_whatever_is_written_is_read(text: str) -> None:
    readable(text)
