"""Patterns of a tool's name, and of what may still become one."""

from __future__ import annotations

import re

NAME = re.compile(r"""[^\s<>{}\[\]()"'`,;\\]{1,128}""")
NAME_START = re.compile(r"""[^\s<>{}\[\]()"'`,;\\]{0,128}""")
