"""`python -m benchmarks.schema_suite`: our check of arguments beside the JSON-Schema-Test-Suite, draft 2020-12.

Read in place: `public/json_schema_tests.tar.xz` of the corpora. The check bounds its work, ignores formats and never fetches a schema, so
what it does not decide it lets through. Two kinds of mistakes are told apart: a value that fits and is refused costs a model a call, one
that does not fit and is let through reaches the tool.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.corpora import CORPORA, NO_CORPORA
from benchmarks.table import Table
from dragoman.values.schema import problems

ARCHIVE = CORPORA / "public" / "json_schema_tests.tar.xz"
FOLDER = "tests/draft2020-12/"


class SuiteCase(NamedTuple):
    file: str
    schema: Any
    value: Any
    is_valid: bool
    is_optional: bool


def cases() -> Iterator[SuiteCase]:
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            _, found, name = member.name.partition(FOLDER)
            if not found or not name.endswith(".json") or (file := archive.extractfile(member)) is None:
                continue
            for group in json.loads(file.read()):
                for test in group["tests"]:
                    yield SuiteCase(name.removesuffix(".json"), group["schema"], test["data"], test["valid"], name.startswith("optional/"))


def measure() -> Table:
    table = Table(
        "Arguments and schemas: JSON-Schema-Test-Suite, draft 2020-12",
        ["part", "tests", "right", "refused though valid", "let through though invalid"],
    )
    judged = [(case, not problems(case.schema, case.value)) for case in cases()]
    for part, is_optional in (("required", False), ("optional (formats and the like)", True)):
        of = [(case, fits) for case, fits in judged if case.is_optional is is_optional]
        right = sum(case.is_valid == fits for case, fits in of)
        table.rows.append(
            [
                part,
                len(of),
                right,
                sum(case.is_valid and not fits for case, fits in of),
                sum(fits and not case.is_valid for case, fits in of),
            ]
        )
    wrong = sorted({case.file for case, fits in judged if case.is_valid != fits and not case.is_optional})
    table.notes.append(f"Required, not all right: {', '.join(wrong)}.")
    return table


if __name__ == "__main__":
    print(measure().markdown() if ARCHIVE.is_file() else NO_CORPORA)
