"""Text of a PDF, if `pypdf` is installed. It runs in a separate process, so that a bad file can only crash or stall that."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
from dragoman.tools.workspace import ToolRefusal

TIMEOUT_S = 20.0
MAX_TEXT_BYTES = 8_000_000
MISSING = 3
"""Exit code of the reader if the library is missing."""
_PROGRAM = f"""
import io, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
except (ImportError, ValueError, OSError):
    pass
try:
    import pypdf
except ImportError:
    sys.exit({MISSING})
for number, page in enumerate(pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read())).pages, 1):
    sys.stdout.buffer.write(f"[page {{number}}]\\n{{page.extract_text()}}\\n\\n".encode("utf-8", "replace"))
"""
READER = (sys.executable, "-I", "-c", _PROGRAM)


async def extract_pdf_text(data: bytes, reader: Sequence[str] = READER) -> str:
    """Raises ToolRefusal if it cannot be read."""
    text = bytearray()

    def take(piece: bytes) -> None:
        text.extend(piece[: max(MAX_TEXT_BYTES - len(text), 0)])

    try:
        ended = await run_process(
            reader,
            directory=os.sep,
            env=child_environment(),
            take_stdout=take,
            take_stderr=lambda piece: None,
            timeout_s=TIMEOUT_S,
            stdin=data,
        )
    except OSError as error:
        raise ToolRefusal(f"the PDF could not be read: {error.strerror or error}", "not_text") from error
    if ended.code == MISSING:
        raise ToolRefusal("it is a PDF, and nothing that reads PDFs is installed: the user can install pypdf", "not_text")
    if ended.code and not text:
        raise ToolRefusal("the PDF could not be read: it is damaged, protected, or too large", "not_text")
    return text.decode("utf-8", "replace") or "(the PDF holds no text)"
