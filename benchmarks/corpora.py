"""Where the collected data of other programs is, which some benchmarks read in place: `DRAGOMAN_CORPORA`, or beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

CORPORA = Path(os.environ.get("DRAGOMAN_CORPORA") or Path(__file__).resolve().parents[2] / "shared" / "corpora")
NO_CORPORA = "the data is not part of the repository; if you have a folder of it, name it: DRAGOMAN_CORPORA=/some/folder"
