"""PDFs: read in a process of its own, by a library that may not be there."""

from __future__ import annotations

import asyncio
import importlib.util
import sys

import pytest

from dragoman.tools.web import pdf
from dragoman.tools.workspace import ToolRefusal


def reader(program: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-c", program)


def read(program: str) -> str:
    return asyncio.run(pdf.extract_pdf_text(b"%PDF-1.4 data", reader(program)))


def test_what_the_reader_writes_is_the_text() -> None:
    assert read("import sys; data = sys.stdin.buffer.read(); sys.stdout.write('[page 1]\\n' + str(len(data)))") == "[page 1]\n13"


def test_a_pdf_of_pictures_holds_no_text() -> None:
    assert read("pass") == "(the PDF holds no text)"


@pytest.mark.parametrize(("program", "word"), [(f"import sys; sys.exit({pdf.MISSING})", "installed"), ("raise ValueError", "damaged")])
def test_what_cannot_be_read_is_told(program: str, word: str) -> None:
    with pytest.raises(ToolRefusal, match=word):
        read(program)


def test_a_reader_that_stalls_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "TIMEOUT_S", 0.5)
    with pytest.raises(ToolRefusal):
        read("import time; time.sleep(600)")


def test_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "MAX_TEXT_BYTES", 1_000)
    assert len(read("print('x' * 1_000_000)")) == 1_000


def test_the_real_reader_refuses_what_is_no_pdf() -> None:
    there = importlib.util.find_spec("pypdf") is not None
    with pytest.raises(ToolRefusal, match="damaged" if there else "install pypdf"):
        asyncio.run(pdf.extract_pdf_text(b"%PDF-1.4 nonsense"))
