"""A standalone program: `python -I line_editor.py FILE` edits a file's text on one line. It imports only the standard library.

It is a process of its own because the conversation cannot wait for a line and for a cancel at once.
"""

from __future__ import annotations

import sys


def main(path: str) -> int:
    with open(path, encoding="utf-8", newline="") as file:
        text = file.read()
    if path.endswith(".json"):
        text = " ".join(line.strip() for line in text.split("\n"))
    try:
        edited = _ask_line(text)
    except (EOFError, KeyboardInterrupt):
        print()
        return 1
    with open(path, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(edited)
    return 0


def _ask_line(text: str) -> str:
    try:
        import readline
    except ImportError:
        return input(f"{text}\n> ") or text
    readline.set_startup_hook(lambda: readline.insert_text(text))
    return input("> ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
