"""The tests of the MCP client share code with each other alone: programs that are also run by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))
