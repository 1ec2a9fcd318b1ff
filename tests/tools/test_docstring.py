"""Docstrings as people write them: the description goes to the tool, what is said of a parameter goes to the parameter."""

from __future__ import annotations

import string
from inspect import cleandoc

import docstring_parser
import pytest
from docstring_parser import DocstringStyle
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.tools.docstring import read_docstring
from dragoman.tools.function import tool

STYLES = {
    "google": """
        Find the tides of a harbour.

        Times are local.

        Args:
            harbour (str): name of the harbour,
                as on the chart.
            days (tuple(int, int), optional): from and to.

        Returns:
            The times, in order.
        """,
    "numpy": """
        Find the tides of a harbour.

        Times are local.

        Parameters
        ----------
        harbour : str
            name of the harbour,
            as on the chart.
        days : tuple of int, optional
            from and to.

        Returns
        -------
        list of str
            The times, in order.
        """,
    "sphinx": """
        Find the tides of a harbour.

        Times are local.

        :param str harbour: name of the harbour,
            as on the chart.
        :param days: from and to.
        :type days: tuple(int, int)
        :returns: The times, in order.
        :rtype: list(str)
        """,
    "epytext": """
        Find the tides of a harbour.

        Times are local.

        @param harbour: name of the harbour,
            as on the chart.
        @type harbour: str
        @param days: from and to.
        @return: The times, in order.
        """,
}


@pytest.mark.parametrize("style", STYLES)
def test_each_style_says_the_same(style: str) -> None:
    """Those of NumPy and Sphinx were sent as they stand, and no parameter was described."""
    description, parameters = read_docstring(cleandoc(STYLES[style]))
    assert parameters == {"harbour": "name of the harbour, as on the chart.", "days": "from and to."}
    first, second, *rest = description.split("\n\n")
    assert (first, second) == ("Find the tides of a harbour.", "Times are local.")
    assert "The times, in order." in "".join(rest)
    assert not [mark for mark in (":param", ":type", ":rtype", ":return", "@", "---") if mark in description]


def test_what_is_said_of_a_parameter_reaches_the_schema() -> None:
    def tides(harbour: str, days: int = 1) -> str:
        """The tides.

        Parameters
        ----------
        harbour : str
            Name of the harbour.
        days : int, optional
            How many days.
        """
        return harbour + str(days)

    spec = tool(tides).spec
    properties = jsontext.decode(spec.parameters)["properties"]
    assert spec.description == "The tides."
    assert [properties[name]["description"] for name in ("harbour", "days")] == ["Name of the harbour.", "How many days."]


CASES = {
    "two names, one entry": ("Parameters\n----------\nx, y : int\n    Where.", ("", {"x": "Where.", "y": "Where."})),
    "no type": ("Parameters\n----------\nx\n    Where.", ("", {"x": "Where."})),
    "stars": ("Args:\n  *names: which\n  **more: else", ("", {"names": "which", "more": "else"})),
    "two paragraphs": ("Parameters\n----------\nx : int\n    One.\n\n    Two.", ("", {"x": "One. Two."})),
    "an Other Parameters section": ("Do.\n\nOther Parameters\n----------------\nx : int\n    One.", ("Do.", {"x": "One."})),
    "a section after it": ("Parameters\n----------\nx : int\n    One.\n\nNotes\n-----\nSlow.", ("Notes:\nSlow.", {"x": "One."})),
    "text after it": ("Parameters\n----------\nx : int\n    One.\n\nIt is slow.", ("It is slow.", {"x": "One."})),
    "a title that is none of ours": ("Tides\n-----\nThey come and go.", ("Tides\n-----\nThey come and go.", {})),
    "a field that wraps beside the margin": (":param x: One\nand two.\n\nIt is slow.", ("It is slow.", {"x": "One and two."})),
    "what it raises": (":raises KeyError: none such", ("Raises KeyError: none such", {})),
    "a role is not a field": (":class:`Tide` of a day.", (":class:`Tide` of a day.", {})),
    "a word with a colon": ("Note: slow.\nparam: no.", ("Note: slow.\nparam: no.", {})),
    "an address": ("Mail me@param.example: now.", ("Mail me@param.example: now.", {})),
    "nothing": ("", ("", {})),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_cases(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert read_docstring(text) == expected


# --- any docstring


NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
WORDS = st.lists(st.text(string.ascii_letters + string.digits + "'.,", min_size=1, max_size=8), min_size=1, max_size=6).map(" ".join)
PARAMETERS = st.dictionaries(NAMES, st.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=4)


def written(style: DocstringStyle, about: str, parameters: dict[str, list[str]]) -> str:
    """A docstring in a style; what is said of a parameter may take several lines."""
    match style:
        case DocstringStyle.GOOGLE:
            entries = [f"    {name} (int): " + "\n        ".join(said) for name, said in parameters.items()]
            return "\n".join([about, "", "Args:", *entries])
        case DocstringStyle.NUMPYDOC:
            entries = [f"{name} : int\n    " + "\n    ".join(said) for name, said in parameters.items()]
            return "\n".join([about, "", "Parameters", "----------", *entries])
        case DocstringStyle.REST:
            return "\n".join([about, "", *(f":param int {name}: " + "\n    ".join(said) for name, said in parameters.items())])
        case _:
            return "\n".join([about, "", *(f"@param {name}: " + "\n    ".join(said) for name, said in parameters.items())])


@pytest.mark.parametrize("style", [DocstringStyle.GOOGLE, DocstringStyle.NUMPYDOC, DocstringStyle.REST, DocstringStyle.EPYDOC])
@given(about=WORDS, parameters=PARAMETERS)
def test_what_was_written_is_read_and_another_parser_reads_it_alike(
    style: DocstringStyle, about: str, parameters: dict[str, list[str]]
) -> None:
    text = written(style, about, parameters)
    description, read = read_docstring(text)
    assert description == about
    assert read == {name: " ".join(said) for name, said in parameters.items()}
    theirs = docstring_parser.parse(text, style)
    assert read == {each.arg_name: " ".join((each.description or "").split()) for each in theirs.params}


LINES = st.sampled_from(
    ["Args:", "Parameters", "----------", "Returns", "-------", ":param x: one", ":returns: two", "@param y: three", "    z (int): four",
     "    five", "x : int", "", "Plain words.", ":type x: int", "Raises:", "        deep", ":raises KeyError: six", "Notes", "====="]
)  # fmt: skip


@given(st.lists(LINES, max_size=12).map("\n".join) | st.text(max_size=80))
def test_any_text_is_read_and_a_paragraph_after_it_is_not_lost(text: str) -> None:
    description, parameters = read_docstring(f"{text}\n\nIt is slow.")
    assert description.endswith("It is slow.")
    assert read_docstring(text)[1].keys() == parameters.keys()


@given(st.lists(st.text(string.ascii_letters + " .,", min_size=1, max_size=20), min_size=1, max_size=5).map("\n".join))
def test_a_text_without_sections_stays_as_it_is(text: str) -> None:
    description, parameters = read_docstring(text)
    assert parameters == {}
    assert description.split() == text.split()
