"""Folders that are not part of the project, which some tests read in place: data of other programs, and recorded exchanges.

Variables name them. Without one, they are looked for beside the checkout, where the build machine has them. The variables are read when
this is imported, because tests run without variables of ours.
"""

from __future__ import annotations

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared"
_USUAL_RECORDINGS = _BESIDE / "recorded"

CORPORA = Path(os.environ.get("DRAGOMAN_CORPORA") or _BESIDE / "corpora")
"""Sessions, faults, attacks and model outputs of other programs. CONTRIBUTING.md says what lies where."""
RECORDINGS = Path(os.environ.get("DRAGOMAN_RECORDINGS") or _USUAL_RECORDINGS)
"""Exchanges with real services."""
ARE_USUAL_RECORDINGS = RECORDINGS.resolve() == _USUAL_RECORDINGS.resolve()
"""Whether these are the recordings that the lists in recorded/known.py were written for."""

NO_CORPORA = (
    "reads data of other programs, which is not part of the repository: nothing is wrong. "
    "If you have a folder of such data (CONTRIBUTING.md says of what), name it: DRAGOMAN_CORPORA=/some/folder make test"
)
NO_RECORDINGS = (
    f"no recorded exchanges in {RECORDINGS}: they are not part of the repository, and nothing is wrong. "
    "If you have a folder of them (docs/reference/wire.md says of what), name it: DRAGOMAN_RECORDINGS=/some/folder make recorded"
)
