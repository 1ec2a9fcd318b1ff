"""Write how the fixtures open today: `python tests/written_before/write_expected.py`.

Only where another outcome is wanted, and never to make a test pass: look through the diff, each line of it is something that users'
sessions do differently from now on. The fixtures themselves are never written again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[0] = str(HERE.parent)

from written_before.desk import NAMES, Desk  # noqa: E402
from written_before.test_written_before import (  # noqa: E402
    EXPORTED,
    FORMS,
    SOUGHT,
    as_compressed,
    as_opened,
    as_resumed,
    as_rewound,
    as_undone,
    configured,
    exported,
    found,
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        desks = Desks(Path(folder))
        desk = desks.another()
        desk.take_all()
        for name in NAMES:
            opened = as_opened(desk, name)
            opened |= {"resumed": as_resumed(desks.another(), name)}
            opened |= {"undone": as_undone(desks.another(), name), "rewound": as_rewound(desks.another(), name)}
            opened |= {"compressed": as_compressed(desks.another(), name)}
            write(f"expected/{name}.json", as_json(opened))
            write(f"expected/{name}.txt", desk.dragoman("sessions", "show", NAMES[name]))
        desk.configure("")
        for name in EXPORTED:
            for form, ending in FORMS.items():
                write(f"exports/{name}.{ending}", exported(desk, name, form))
        write("expected/search.json", as_json({words: found(desk, words) for words in SOUGHT}))
        write("expected/config.json", as_json({key: each["value"] for key, each in configured(desk).items()}))


class Desks:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0

    def another(self) -> Desk:
        self._made += 1
        return Desk(self._folder / str(self._made))


def write(path: str, text: str) -> None:
    (HERE / path).parent.mkdir(exist_ok=True)
    (HERE / path).write_text(text)


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
