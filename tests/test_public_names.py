"""The public namespace: lazy, complete, and honest about what it has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dragoman


@pytest.fixture
def borrowed(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A public name lent by the standard library, so that the mechanism is seen apart from what it offers."""
    monkeypatch.setitem(dragoman._EXPORTS, "fsum", "math")
    yield "fsum"
    vars(dragoman).pop("fsum", None)


def test_a_name_is_imported_when_asked_for_and_then_kept(borrowed: str) -> None:
    import math

    assert borrowed not in vars(dragoman)
    assert getattr(dragoman, borrowed) is math.fsum
    assert vars(dragoman)[borrowed] is math.fsum


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'nonsense'"):
        _ = dragoman.nonsense
    assert not hasattr(dragoman, "__wrapped__")


def test_every_public_name_resolves_and_is_listed() -> None:
    assert set(dragoman.__all__) == {"__version__", *dragoman._EXPORTS}
    assert set(dragoman.__all__) <= set(dir(dragoman))
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None, name


def test_no_public_name_is_a_modules_too() -> None:
    """Whoever imports the module would find it in the place of the name."""
    import pkgutil

    modules = {module.name for module in pkgutil.iter_modules(dragoman.__path__)}
    assert set(dragoman.__all__) & modules == set()
