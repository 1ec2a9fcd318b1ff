"""Lines of code: without blank lines, comments and docstrings. `python -m benchmarks.lines FILE...`"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from pathlib import Path

NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """How many lines hold code. A text over several lines counts with all of them, unless it is a docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(source))


def docstring_lines(source: str) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node) is not None:
            statement = node.body[0]
            lines.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return lines


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{code_lines(Path(name).read_text(encoding='utf-8')):5} {name}")
