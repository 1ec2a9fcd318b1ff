"""Sequences of hostile and clumsy steps in a world: values that can be printed, pasted and run again, and the generator of them.

Steps name paths only by what stands for them (`@home`, `@elsewhere`, `@temporary`, `@workspace`), or in the system's temporary folders:
all of them are decoys.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from policy.sandbox.storm.commands import make_command, make_loop, make_plot
from policy.sandbox.storm.layout import FORMS, PLACES, TRAITS, World


class Step(NamedTuple):
    """What the model, or the person, does next: calls of tools in one answer, or one of `undo`, `rewind`, `reopen`."""

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    other: str = ""


class Sequence(NamedTuple):
    world: World
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        """As JSON on one line, for `--sequence`."""
        return json.dumps({"world": [*self.world], "steps": [step.other or [*step.calls] for step in self.steps]})

    @property
    def has_background(self) -> bool:
        return any(arguments.get("background") for step in self.steps for _, arguments in step.calls)


def parse(text: str) -> Sequence:
    """Read what `str` of a sequence wrote."""
    data = json.loads(text)
    place, form, traits = data["world"]
    steps = (Step(other=each) if isinstance(each, str) else Step(tuple((name, args) for name, args in each)) for each in data["steps"])
    return Sequence(World(place, form, tuple(traits)), tuple(steps))


def shell(command: str, **more: Any) -> Step:
    return Step((("run_shell", {"command": command, **more}),))


# --- the generator --------------------------------------------------------------------------------------------------------


def generate(seed: int) -> Sequence:
    """The same sequence for the same seed."""
    dice = random.Random(f"storm {seed}")
    place = dice.choice(PLACES)
    form = "plain" if "worktree" in place or dice.random() < 0.5 else dice.choice(FORMS)
    traits = dice.sample(TRAITS, dice.choice((0, 1, 2, 2, 3, 4)))
    if sum(each in ("hooks path", "husky", "absent hooks path") for each in traits) > 1:
        traits = [each for each in traits if each not in ("husky", "absent hooks path")]
    world = World(place, form, tuple(sorted(traits)))
    steps = [_make_step(world, dice) for _ in range(dice.randint(3, 12))]
    if dice.random() < 0.4:
        plot = make_plot(world, dice)
        places = sorted(dice.randint(0, len(steps)) for _ in plot)
        for at, command in reversed(list(zip(places, plot, strict=True))):
            steps.insert(at, shell(command))
    return Sequence(world, tuple(_join(steps[:12], dice)))


def _join(steps: list[Step], dice: random.Random) -> Iterator[Step]:
    """Some calls come in one answer."""
    waiting = steps[0]
    for step in steps[1:]:
        if waiting.calls and step.calls and dice.random() < 0.12:
            waiting = Step(waiting.calls + step.calls)
        else:
            yield waiting
            waiting = step
    yield waiting


def _make_step(world: World, dice: random.Random) -> Step:
    kind = dice.random()
    if kind < 0.68:
        return shell(make_command(world, dice))
    if kind < 0.72:
        return shell(make_loop(world, dice), background=True)
    if kind < 0.90:
        return Step((_make_file_call(dice),))
    return Step(other=dice.choice(("undo", "undo", "undo force", "rewind", "rewind", "reopen")))


def _make_file_call(dice: random.Random) -> tuple[str, dict[str, Any]]:
    path = dice.choice(_FILES)
    match dice.choice(("write_file", "write_file", "edit", "read_file", "glob", "grep")):
        case "write_file":
            return "write_file", {"file_path": path, "content": f"{dice.choice(('one', 'X = 1', '#!/bin/sh'))}\n"}
        case "edit":
            old, new = dice.choice((("one", "two"), ("X = 1", "X = 2"), ("v", "w"), ("mine", "theirs")))
            return "edit", {"file_path": path, "old_string": old, "new_string": new}
        case "read_file":
            return "read_file", {"file_path": path}
        case "glob":
            return "glob", {"pattern": dice.choice(("**/*", "**/id_rsa", "*/*", "**/.git/config"))}
        case _:
            return "grep", {"pattern": dice.choice(("secret", "mine", "X = ")), **({"path": path} if dice.random() < 0.4 else {})}


_FILES = (
    "readme.txt", "src/main.py", "a/new.txt", "sub/readme.txt", "sub/new/er.txt", "vendor/v.txt", "vendor/letter.txt", "x", "x/letter.txt",
    "x/.bashrc", ".husky/pre-commit", ".venv/lib/python3/site-packages/mylib.py", "node_modules/pkg/index.js", "src/notes", "AGENTS.md",
    ".git/config", "sub/.git/config", "pipe", "a", "link", "link/letter.txt", "../outside.txt", "@home/.bashrc",
    "@home/Documents/letter.txt", "@elsewhere/victim.txt", "@temporary/of-another-program", "flip/letter.txt", "flip/new.txt",
)  # fmt: skip
