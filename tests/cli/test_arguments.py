"""The command line: values are data, mistakes are named, and every option there is can be found in the help."""

from __future__ import annotations

from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from dragoman.app.arguments import COMMANDS, OPTIONS, BadArguments, parse
from dragoman.app.options import Options
from dragoman.conversation.actions import Action
from dragoman.conversation.help_texts import help_for
from dragoman.conversation.pages import context, models, sessions


def problem(*argv: str) -> str:
    with pytest.raises(BadArguments) as caught:
        parse(argv)
    assert caught.value.exit_code == 42
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- what is understood


def test_nothing_is_a_conversation() -> None:
    assert parse([]) == Options()


@pytest.mark.parametrize("argv", [["-p", "hi"], ["--prompt", "hi"], ["--prompt=hi"]])
def test_a_prompt_in_every_spelling(argv: list[str]) -> None:
    assert parse(argv).prompt == "hi"


def test_every_option_of_a_run() -> None:
    argv = ["-p", "hi", "-m", "gemini/x", "--output-format", "json", "--max-turns=7", "--trust", "--yes", "--approval", "plan"]
    argv += ["--include", "a", "--include=b", "--config", "c.toml", "--debug", "--no-color", "--lang", "zh", "-C", "somewhere"]
    assert parse(argv) == Options(
        prompt="hi",
        model="gemini/x",
        output_format="json",
        max_turns=7,
        trust=True,
        yes=True,
        approval="plan",
        include=("a", "b"),
        config="c.toml",
        debug=True,
        no_color=True,
        lang="zh",
        directory="somewhere",
    )


@pytest.mark.parametrize(
    "prompt", ["--yolo", "--search", "--config=/tmp/evil.toml", "-m", "--", "models", "-", "--help", "=", "a=b", "--version"]
)
def test_whatever_follows_p_is_the_prompt(prompt: str) -> None:
    """TR07: no option is taken from inside a prompt."""
    assert parse(["-p", prompt]) == Options(prompt=prompt)
    assert parse(["--prompt", prompt, "--trust"]) == Options(prompt=prompt, trust=True)
    assert parse([f"--prompt={prompt}"]) == Options(prompt=prompt)


@hypothesis.given(st.text())
def test_any_text_at_all_can_be_a_prompt(prompt: str) -> None:
    assert parse(["--debug", "-p", prompt]) == Options(prompt=prompt, debug=True)
    assert parse([f"--prompt={prompt}"]) == Options(prompt=prompt)


@pytest.mark.parametrize("name", ["--config", "--model", "-m", "--include", "-C"])
def test_other_values_are_data_too(name: str) -> None:
    parsed = parse(["-p", "x", name, "--trust"])
    assert not parsed.trust


def test_the_later_of_two_wins_so_that_an_alias_can_be_overruled() -> None:
    assert parse(["-m", "a", "-m", "b"]).model == "b"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str) -> None:
    assert parse([command]).command == command
    assert parse(["--debug", command]) == Options(command=command, debug=True)
    assert parse([command, "--help"]).help
    assert parse([command, "--output-format", "json"]).output_format == "json"


def test_models_takes_a_name() -> None:
    assert parse(["models", "gem"]).words == ("gem",)
    assert parse(["models", "--", "-gem"]).words == ("-gem",)


@pytest.mark.parametrize("flag", ["-h", "--help", "-V", "--version"])
def test_help_and_version_are_given_whatever_else_is_wrong(flag: str) -> None:
    parsed = parse(["--nonsense", flag, "--max-turns", "none"])
    assert parsed.help or parsed.version


@pytest.mark.parametrize(
    "argv",
    [["--search", "北京 天气"], ["--search", "-p", "北京 天气"], ["-p", "北京 天气", "--search"], ["-p", "--search", "北京 天气"]],
)
def test_a_search_of_ones_own_in_every_spelling(argv: list[str]) -> None:
    assert parse([*argv, "--debug"]) == parse(["--debug", *argv]) == Options(prompt="北京 天气", search="now", debug=True)


def test_one_word_is_enough_to_search_for_and_none_is_read_from_standard_input() -> None:
    assert parse(["-p", "--search", "weather"]) == parse(["--search", "weather"]) == Options(prompt="weather", search="now")
    assert parse(["--search"]) == Options(prompt="", search="now")


@pytest.mark.parametrize("argv", [["--search", "grounding", "-p", "hi"], ["-p", "hi", "--search=grounding"]])
def test_how_the_model_searches_is_said_with_a_word(argv: list[str]) -> None:
    assert parse(argv) == Options(prompt="hi", search="grounding")


# --- what is not


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--promt", "x"], ["--promt", "did you mean --prompt?"]),
        (["-p=--trust"], ["-p=--trust", "write -p, a space, and its value"]),
        (["--allow", "-p", "x"], ["--allow needs a value"]),
        (["--zzzzzz"], ["--zzzzzz", "dragoman --help"]),
        (["--yolo"], ["--yolo", "did you mean --approval auto?"]),
        (["--add-dir", "x"], ["--add-dir", "did you mean --include?"]),
        (["-phello"], ["-phello", "-p"]),
        (["-p=hello"], ["-p"]),
        (["-p"], ["-p needs a value"]),
        (["--model="], ["--model needs a value"]),
        (["--trust=yes"], ["--trust takes no value"]),
        (["--output-format", "xml"], ["'xml'", "text, json or stream-json"]),
        (["--approval", "yolo"], ["'yolo'", "plan, default, auto-edit or auto"]),
        (["--approval", "aut"], ["'aut'", "plan, default, auto-edit or auto"]),
        (["--lang", "de"], ["en or zh"]),
        (["--max-turns", "0"], ["--max-turns", "'0'"]),
        (["--max-turns", "-3"], ["--max-turns"]),
        (["--max-turns", "1.5"], ["--max-turns"]),
        (["--max-turns", "٣"], ["--max-turns"]),
        (["--max-turns", "9" * 5000], ["--max-turns"]),
        (["-p", "a", "-p", "b"], ["twice"]),
        (["-p", "a", "--search", "b c"], ["'b c'"]),
        (["-p", "a", "--search=google"], ["'google'", "tool, grounding or off"]),
        (["models", "--search"], ["--search", "models"]),
        (["fix", "the", "bug"], ["'fix'", "-p"]),
        (["modles"], ["unknown command 'modles'", "did you mean models?"]),
        (["login"], ["unknown command 'login'"]),
        (["models", "--max-turns", "3"], ["--max-turns", "models"]),
        (["models", "--output-format", "stream-json"], ["text and json"]),
        (["--offline", "-p", "x"], ["doctor"]),
        (["doctor", "now"], ["'now'"]),
        (["config", "-p", "x"], ["-p", "config"]),
        (["\x1b]0;title\x07"], ["dragoman -p"]),
    ],
)
def test_a_mistake_is_named(argv: list[str], words: list[str]) -> None:
    told = problem(*argv)
    assert all(word in told for word in words), told
    assert told.isprintable()
    assert len(told) < 300


def test_the_output_format_counts_even_where_something_else_is_wrong() -> None:
    for argv in (["--nonsense", "--output-format", "stream-json"], ["--output-format=stream-json", "-p"]):
        with pytest.raises(BadArguments) as caught:
            parse(argv)
        assert caught.value.options.output_format == "stream-json"


@hypothesis.given(
    st.lists(st.one_of(st.sampled_from([name for option in OPTIONS for name in option.names]), st.text(max_size=8)), max_size=6)
)
def test_no_command_line_breaks_the_parser(argv: list[str]) -> None:
    try:
        parse(argv)
    except BadArguments:
        pass


# --- the table


def test_the_table_and_the_options_agree() -> None:
    assert {option.key for option in OPTIONS} == set(Options.__struct_fields__) - {"command", "words", "question"}


@pytest.mark.parametrize(("command", "actions"), [("models", models.ACTIONS), ("sessions", sessions.ACTIONS), ("context", context.ACTIONS)])
def test_each_option_of_a_command_belongs_to_one_of_its_actions(command: str, actions: dict[str, Action[Any]]) -> None:
    keys = {option.key for option in OPTIONS if command in option.commands and option.key != "output_format"}
    assert {key for action in actions.values() for key in action.options} == keys


def test_the_help_names_every_option() -> None:
    run = help_for("run")
    for option in OPTIONS:
        if option.commands in ((), ("run",)) or "run" in option.commands:
            assert all(name in run for name in option.names), option
        for command in option.commands or COMMANDS:
            assert option.names[-1] in help_for(command) or option.key == "version", (command, option)
    for command in COMMANDS:
        assert command in run
        assert help_for(command).startswith(f"usage: dragoman {command}")


def test_the_help_names_every_exit_code() -> None:
    from dragoman.values import errors

    codes = {value.exit_code for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.DragomanError)}
    for code in codes:
        assert str(code) in help_for("run")
