"""What Python's own tools say about every public name: `help`, `inspect.signature`, `typing.get_type_hints`."""

from __future__ import annotations

import inspect
import pydoc
import typing
from collections.abc import Iterator
from importlib import import_module

import dragoman

NOT_CALLED = {"dragoman.Run.__init__"}  # `agent.run` makes one; what it is given is ours


def test_every_public_name_has_help() -> None:
    for name, value in public_names():
        if not isinstance(value, str):  # __version__ and constants: pydoc would look for a module of that name
            assert pydoc.render_doc(value, renderer=pydoc.plaintext), name
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, f"{name}: help() would show the words of its base class, or none"


def test_every_public_class_and_function_has_a_signature_and_types() -> None:
    """A type that is imported for type checkers alone must be found here too, without its module being loaded before."""
    for name, value in public_names():
        for each, callable_ in with_methods(name, value):
            try:
                inspect.signature(callable_)
                typing.get_type_hints(callable_)
            except Exception as error:
                raise AssertionError(f"{each}: {error!r}; for a type in a block of TYPE_CHECKING see dragoman.base.late_types") from error


def public_names() -> Iterator[tuple[str, object]]:
    for module in (dragoman, *(import_module(f"dragoman.{name}") for name in dragoman._MODULES)):
        for name in getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]:
            yield f"{module.__name__}.{name}", getattr(module, name)


def with_methods(name: str, value: object) -> Iterator[tuple[str, typing.Any]]:
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return
    yield name, value
    for key, member in inspect.getmembers_static(value) if inspect.isclass(value) else ():
        method = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        is_ours = inspect.isfunction(method) and method.__module__.startswith("dragoman")
        if is_ours and (key == "__init__" or not key.startswith("_")) and f"{name}.{key}" not in NOT_CALLED:
            yield f"{name}.{key}", method
