"""A small project for a scripted model to work in: modules, tests of which one fails, a build with a long and colourful log."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

MODULES = ("accounts", "amounts", "books", "currency", "entries", "exports", "imports", "periods", "quotas", "reports", "rounding", "taxes")
PORT, QUOTA_FILE, ERROR_CODE = "8143", "legacy/quota_table_v2.csv", "LEDGER-4711"
WISH = "Never change anything under legacy/, and write every amount with a comma before its cents."


def lay_out(folder: Path) -> None:
    rng = random.Random(31)
    files = {
        "config/service.toml": f'[service]\nname = "ledger"\nport = {PORT}\nworkers = 4\n',
        "docs/handover.md": _handover(),
        QUOTA_FILE: "account,quota\n" + "".join(f"{number},{rng.randint(1, 900)}\n" for number in range(1_000, 1_060)),
        "build.py": _BUILD,
        "tests/test_quotas.py": _QUOTA_TEST,
        "src/ledger/__init__.py": "",
        "conftest.py": "import sys\nsys.path.insert(0, 'src')\n",
    }
    for name in MODULES:
        files[f"src/ledger/{name}.py"] = _module(name, rng)
        if name != "quotas":
            files[f"tests/test_{name}.py"] = _tests(name, rng)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "First"]):
        subprocess.run(["git", *command], cwd=folder, check=True)


def _handover() -> str:
    parts = [f"## {name}\n\nThe module `{name}` is tested by tests/test_{name}.py. It has no state.\n" for name in MODULES]
    return f"# Handover\n\nThe quotas come from {QUOTA_FILE}; the older quota_table.csv is not read any more.\n\n" + "\n".join(parts)


def _module(name: str, rng: random.Random) -> str:
    lines = [f'"""{name.capitalize()} of the ledger."""', "", "from __future__ import annotations", ""]
    for number in range(rng.randint(12, 30)):
        lines += [
            "",
            f"def {name}_step_{number}(amount: int, rate: int = {rng.randint(2, 30)}) -> int:",
            f'    """Step {number} of {name}: the amount in cents, after {rng.choice(("tax", "discount", "rounding", "transfer"))}."""',
            "    if amount < 0:",
            f'        raise ValueError("{name}: an amount is not negative")',
            f"    return amount * rate // {rng.randint(31, 99)}",
            "",
        ]
    return "\n".join(lines)


def _tests(name: str, rng: random.Random) -> str:
    lines = ["import pytest", "", f"from ledger import {name}", ""]
    for number in range(rng.randint(5, 11)):
        lines += [
            "",
            f"def test_step_{number}_takes_nothing_below_zero() -> None:",
            "    with pytest.raises(ValueError, match='negative'):",
        ]
        lines += [f"        {name}.{name}_step_{number}(-1)", ""]
    return "\n".join(lines)


_QUOTA_TEST = f"""\
from pathlib import Path


def read_quota(account: int) -> int:
    rows = dict(line.split(",") for line in Path("{QUOTA_FILE}").read_text().splitlines()[1:])
    if str(account) not in rows:
        raise LookupError(f"{ERROR_CODE}: account {{account}} has no quota")
    return int(rows[str(account)])


def test_every_account_has_a_quota() -> None:
    for account in range(1_000, 1_080):
        assert read_quota(account) >= 0
"""
_BUILD = '''\
"""Prints what a build prints: a bar that is drawn anew, colours, and a line for each thing compiled."""

import sys

count = int(sys.argv[1])
for percent in range(0, 101, 4):
    print(f"\\r\\033[32mResolving\\033[0m [{'#' * (percent // 4):25}] {percent:3}%", end="")
print()
for number in range(count):
    unit = f"ledger-{number % 97:02}"
    print(f"\\033[1;34m[{number + 1:4}/{count}]\\033[0m Compiling {unit} (src/ledger/{unit}/module_{number}.c) with -O2 -Wall")
    if number % 211 == 210:
        print(f"\\033[33mwarning:\\033[0m unused variable 'rate' in {unit}:{number}", file=sys.stderr)
print("\\033[1;32mFinished\\033[0m", count, "units")
'''
