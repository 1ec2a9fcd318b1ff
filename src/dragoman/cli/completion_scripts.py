"""The completion scripts of bash and zsh. Both shells run the same lines; only how a word is offered differs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.cli.completion_table import CompletedCommand, CompletedOption, Kind

_BASH = r"""# Completes dragoman in bash: source <(dragoman completions bash)

_dragoman_offer() {
    local each
    for each in "$@"; do
        each=${each%%:*}
        [[ $each == "$cur"* ]] && found+=("$each ")
    done
}

_dragoman_ask() {
    local each
    while IFS= read -r each; do
        [[ $each == "$cur"* ]] && found+=("$each ")
    done < <("$program" completions "$1" 2>/dev/null </dev/null)
}

_dragoman_paths() {
    local each
    compopt -o filenames +o nospace 2>/dev/null
    while IFS= read -r each; do
        found+=("$each")
    done < <(compgen "$1" -- "$cur")
}
_dragoman_files() { _dragoman_paths -f; }
_dragoman_directories() { _dragoman_paths -d; }

_dragoman() {
    local -a all=() before=() found=()
    local cur= word= glue= i program=${COMP_WORDS[0]/#\~/$HOME}
    # Bash takes a=b and a:b apart: put them together again.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ ${#all[@]} -gt 0 && ( -n $glue || $word == [=:]* ) ]]; then
            all[${#all[@]}-1]+=$word
            glue=
            [[ $word == *[=:] ]] && glue=1
        else
            all+=("$word")
        fi
    done
    cur=${all[${#all[@]}-1]}
    before=("${all[@]:0:${#all[@]}-1}")
    _dragoman_complete
    # Bash puts the reply behind the last : of the word.
    local prefix=
    [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]] && prefix=${cur%"${cur##*:}"}
    COMPREPLY=()
    for word in "${found[@]}"; do
        COMPREPLY+=("${word#"$prefix"}")
    done
}

@COMPLETE@
complete -o nospace -F _dragoman dragoman
"""

_ZSH = r"""#compdef dragoman
# Completes dragoman in zsh: source <(dragoman completions zsh), after compinit

_dragoman_offer() {
    local -a offered=("$@")
    _describe -t words word offered
}

_dragoman_ask() {
    local -a offered
    offered=("${(@f)$("$program" completions "$1" 2>/dev/null </dev/null)}")
    compadd -a offered
}

_dragoman_files() { _files; }
_dragoman_directories() { _files -/; }

_dragoman() {
    local -a before
    local cur=${words[CURRENT]} program=${words[1]/#\~/$HOME}
    before=("${(@)words[2,CURRENT-1]}")
    (( CURRENT > 2 )) || before=()
    [[ $cur == --*=* ]] && compset -P '*='
    _dragoman_complete
}

@COMPLETE@
if [[ ${funcstack[1]} == _dragoman ]]; then
    _dragoman "$@"
else
    compdef _dragoman dragoman
fi
"""

_COMPLETE = r"""_dragoman_complete() {
    local command=run action= option= optional= word
    for word in "${before[@]}"; do
        if [[ -n $option ]]; then
            option=
            [[ -n $optional && $word == -* ]] || continue
        fi
        case $word in
            @VALUE_OPTIONS@) option=$word optional= ;;
            @MAYBE_OPTIONS@) option=$word optional=1 ;;
            -*) ;;
            *)
                if [[ $command != run ]]; then
                    action=${action:-$word}
                else
                    case $word in @COMMANDS@) command=$word ;; esac
                fi
                ;;
        esac
    done
    [[ $cur == --*=* ]] && { option=${cur%%=*}; cur=${cur#*=}; optional=; }
    if [[ -n $option && ! ( -n $optional && $cur == -* ) ]]; then
        case $option in
@OPTION_VALUES@
        esac
        return
    fi
    if [[ $cur == -* ]]; then
        case $command in
@OPTIONS@
        esac
        return
    fi
    case $command:$action in
@WORDS@
    esac
}
"""


def bash_script(commands: Sequence[CompletedCommand]) -> str:
    return _BASH.replace("@COMPLETE@", _complete(commands))


def zsh_script(commands: Sequence[CompletedCommand]) -> str:
    return _ZSH.replace("@COMPLETE@", _complete(commands))


def _complete(commands: Sequence[CompletedCommand]) -> str:
    options = list(dict.fromkeys(option for command in commands for option in command.options))
    named = [command for command in commands if command.name != "run"]
    parts = {
        "VALUE_OPTIONS": "|".join(name for option in _by_names(options) if option.takes in ("value", "many") for name in option.names),
        "MAYBE_OPTIONS": "|".join(name for option in _by_names(options) if option.takes == "maybe" for name in option.names),
        "COMMANDS": "|".join(command.name for command in named),
        "OPTION_VALUES": _cases(("|".join(option.names), _values(option)) for option in _by_names(options) if option.takes != "nothing"),
        "OPTIONS": _cases((command.name, [_offer(_option_words(command))]) for command in commands),
        "WORDS": _cases(_word_cases(commands)),
    }
    text = _COMPLETE
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def _by_names(options: Iterable[CompletedOption]) -> list[CompletedOption]:
    """One row for each set of names: help texts describe an option for each command."""
    return list({option.names: option for option in options}.values())


def _cases(rows: Iterable[tuple[str, list[str]]]) -> str:
    return "\n".join(f"            {pattern}) {'; '.join(filter(None, lines))} ;;" for pattern, lines in rows if any(lines))


def _values(option: CompletedOption) -> list[str]:
    return [_offer([(choice, "") for choice in option.choices]) if option.choices else _call(option.kind)]


def _option_words(command: CompletedCommand) -> list[tuple[str, str]]:
    return [(option.names[-1], option.about) for option in command.options]


def _word_cases(commands: Sequence[CompletedCommand]) -> Iterable[tuple[str, list[str]]]:
    for command in commands:
        if command.name == "run":
            yield "run:*", [_offer([(each.name, each.about) for each in commands if each.name != "run"])]
            continue
        offered = [_offer([(word.name, word.about) for word in command.actions])] if command.actions else []
        yield f"{command.name}:", [*offered, _call(command.words)]
        for action, kind in command.operands.items():
            yield f"{command.name}:{action}", [_call(kind)]


def _offer(words: Iterable[tuple[str, str]]) -> str:
    """A name and what it is for, with a colon between as zsh wants it."""
    return " ".join(["_dragoman_offer", *(shlex.quote(f"{name}:{about}" if about else name) for name, about in words)])


def _call(kind: Kind) -> str:
    match kind:
        case "":
            return ""
        case "files" | "directories":
            return f"_dragoman_{kind}"
        case _:
            return f"_dragoman_ask {kind}"
