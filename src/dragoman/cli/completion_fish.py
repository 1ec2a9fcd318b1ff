"""The completion script of fish: a line for each command, action and option, with the condition under which it is offered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.completion_table import CompletedCommand, CompletedOption, Kind

_FISH = r"""# Completes dragoman in fish: dragoman completions fish | source

function __dragoman_at --description 'whether the words so far are this command and this action'
    set -l command run
    set -l action ''
    set -l option ''
    for word in (commandline -opc)[2..-1]
        if test -n "$option"
            set -l before $option
            set option ''
            if not string match -q -- '-*' $word; or not contains -- $before @MAYBE_OPTIONS@
                continue
            end
        end
        switch $word
            case @VALUE_OPTIONS@ @MAYBE_OPTIONS@
                set option $word
            case '-*'
            case '*'
                if test $command != run
                    test -n "$action"; or set action $word
                else if contains -- $word @COMMANDS@
                    set command $word
                end
        end
    end
    test $command = $argv[1]; or return 1
    test (count $argv) -eq 1; or test "$action" = $argv[2]
end

complete -c dragoman -e
complete -c dragoman -f
"""


def fish_script(commands: Sequence[CompletedCommand]) -> str:
    options = [option for command in commands for option in command.options]
    parts = {
        "VALUE_OPTIONS": _names(option for option in options if option.takes in ("value", "many")),
        "MAYBE_OPTIONS": _names(option for option in options if option.takes == "maybe"),
        "COMMANDS": " ".join(command.name for command in commands if command.name != "run"),
    }
    text = _FISH
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text + "\n".join(line for command in commands for line in _lines(command, commands)) + "\n"


def _names(options: Iterator[CompletedOption]) -> str:
    return " ".join(dict.fromkeys(name for option in options for name in option.names))


def _lines(command: CompletedCommand, commands: Sequence[CompletedCommand]) -> Iterator[str]:
    here = f"complete -c dragoman -n '__dragoman_at {command.name}'"
    before_action = f"complete -c dragoman -n '__dragoman_at {command.name} \"\"'"
    if command.name == "run":
        for each in commands:
            if each.name != "run":
                yield f"{here} -a {each.name}{_about(each.about)}"
    for action in command.actions:
        yield f"{before_action} -a {action.name}{_about(action.about)}"
    if command.words:
        yield f"{before_action} {_kind(command.words)}"
    for action, kind in command.operands.items():
        if kind:
            yield f"complete -c dragoman -n '__dragoman_at {command.name} {action}' {_kind(kind)}"
    for option in command.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        yield f"{here} {names}{_value(option)}{_about(option.about)}"


def _value(option: CompletedOption) -> str:
    if option.takes == "nothing":
        return ""
    if option.choices:
        return f" -x -a {_quote(' '.join(option.choices))}"
    return f" {_kind(option.kind, value=True)}" if option.kind else " -x"


def _kind(kind: Kind, *, value: bool = False) -> str:
    match kind:
        case "files":
            return "-r -F" if value else "-F"
        case "directories":
            return "-x -a '(__fish_complete_directories)'"
        case _:
            return f"{'-x ' if value else ''}-a '(dragoman completions {kind} 2>/dev/null)'"


def _about(text: str) -> str:
    return f" -d {_quote(text)}" if text else ""


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
