"""Every command with actions finds them in the same way."""

from __future__ import annotations

import pytest

from dragoman.app.options import Options
from dragoman.conversation.actions import Action, find_action
from dragoman.values.errors import InputError
from dragoman.words import choose_language

ACTIONS = {"list": Action[Options](lambda options: "listed"), "remove": Action[Options](lambda options: "removed", "NAME")}


def test_the_first_word_names_the_action_and_without_one_it_is_list() -> None:
    assert find_action(Options(command="auth", words=("remove", "x")), ACTIONS) == ("remove", ACTIONS["remove"])
    assert find_action(Options(command="auth"), ACTIONS) == ("list", ACTIONS["list"])


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "dragoman auth has no action remov; choose from list, remove; did you mean remove?"),
        ("zh", "dragoman auth 没有操作 remov；可选 list, remove；您是指 remove 吗？"),
    ],
)
def test_an_unknown_one_is_refused_with_the_nearest(language: str, sentence: str) -> None:
    choose_language(language)
    try:
        with pytest.raises(InputError) as refused:
            find_action(Options(command="auth", words=("remov",)), ACTIONS)
        assert str(refused.value) == sentence
    finally:
        choose_language("en")
