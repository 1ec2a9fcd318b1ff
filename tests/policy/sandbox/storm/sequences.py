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
from policy.sandbox.storm.layout import FORMS, PLACES, TRAITS, WAYS, World
from policy.sandbox.storm.session_commands import SERVED, make_asking, make_connection, make_later, make_outside, make_plant, make_server


class Step(NamedTuple):
    """What the model, or the person, does next: calls of tools in one answer, or one of `undo`, `rewind`, `reopen`, `open 8123`,
    `close 8123`, `kill holder`, `kill launcher`."""

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
    place, form, traits, *way = data["world"]
    steps = (Step(other=each) if isinstance(each, str) else Step(tuple((name, args) for name, args in each)) for each in data["steps"])
    return Sequence(World(place, form, tuple(traits), *way), tuple(steps))


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
    world = World(place, form, tuple(sorted(traits)), "auto" if dice.random() < 0.6 else dice.choice(WAYS))
    steps = [_make_step(world, dice) for _ in range(dice.randint(2, 7))]
    if dice.random() < 0.4:
        plot = make_plot(world, dice)
        places = sorted(dice.randint(0, len(steps)) for _ in plot)
        for at, command in reversed(list(zip(places, plot, strict=True))):
            steps.insert(at, shell(command))
    steps = [*_join(steps[:12], dice)]
    if dice.random() < 0.3:
        plot = _make_session_plot(dice)
        places = sorted(dice.randint(0, len(steps)) for _ in plot)
        for at, step in reversed(list(zip(places, plot, strict=True))):
            steps.insert(at, step)
    return Sequence(world, tuple(steps))


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
    if kind < 0.50:
        return shell(make_command(world, dice), **({"writes": True} if dice.random() < 0.2 else {}))
    if kind < 0.54:
        return shell(make_loop(world, dice), background=True)
    if kind < 0.78:
        return _make_session_step(dice)
    if kind < 0.90:
        return Step((_make_file_call(dice),))
    return Step(other=dice.choice(_OTHERS))


def _make_session_step(dice: random.Random) -> Step:
    match dice.choices(("connect", "serve", "outside", "plant", "later"), (2, 1, 4, 3, 2))[0]:
        case "connect":
            return shell(make_connection(dice))
        case "serve":
            return shell(make_server(dice), background=True, **({"writes": True} if dice.random() < 0.5 else {}))
        case "outside":
            return shell(**make_outside(dice))
        case "plant":
            return shell(make_plant(dice), **({"writes": True} if dice.random() < 0.3 else {}))
        case _:
            return shell(make_later(dice))


def _make_session_plot(dice: random.Random) -> list[Step]:
    """Of which a later step uses what an earlier one has begun."""
    if dice.random() < 0.5:
        server = shell(make_server(dice), background=True, writes=True)
        port = next(port for port in SERVED if f", {port}))" in server.calls[0][1]["command"])
        return [server, shell(make_later(dice)), Step(other=f"open {port}"), shell(make_asking(port)), Step(other=f"close {port}")]
    let_out = shell(**make_outside(dice))
    return [let_out, shell(make_plant(dice), writes=True), let_out]


_OTHERS = (
    "undo", "undo", "undo force", "rewind", "rewind", "reopen", "reopen", f"open {SERVED[0]}", f"open {SERVED[0]}", f"close {SERVED[0]}",
    "kill holder", "kill launcher",
)  # fmt: skip


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
