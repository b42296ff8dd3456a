"""The command `completion`: a script by which a shell completes the command line."""

import argparse
from collections.abc import Iterator, Mapping
from typing import TextIO

from hlofront.base.named_tuple import NamedTuple
from hlofront.cli.options import Commands, add_command
from hlofront.pjrt.targets import targets

_HELP = """\
Prints a script by which a shell completes commands, options and their values, names of targets,
files, and the functions of FILE:FUNCTION. It completes the command `hlofront`, which an
installation puts on the PATH; without one, write `alias hlofront='python -m hlofront'` as well.

example:
  python -m hlofront completion bash >> ~/.bashrc
  python -m hlofront completion zsh > ~/.zfunc/_hlofront     # in a folder of $fpath
  python -m hlofront completion fish > ~/.config/fish/completions/hlofront.fish
"""


def add_parser(commands: Commands) -> None:
    """Add the command `completion` to the command line's parser."""
    parser = add_command(
        commands, "completion", "a script for completion in bash, zsh or fish", _HELP
    )
    parser.add_argument("shell", choices=_SCRIPTS, help="the shell that the script is for")
    parser.set_defaults(run=lambda options, out: _run(options, commands.choices, out))


def _run(
    options: argparse.Namespace, parsers: Mapping[str, argparse.ArgumentParser], out: TextIO
) -> int:
    words = [_words_of(name, parser) for name, parser in parsers.items()]
    print(_SCRIPTS[options.shell](words), file=out, end="")
    return 0


class _Words(NamedTuple):
    """The words that can follow a command.

    Attributes:
      command: the command.
      options: its options, each with its possible values: () if unknown, None if it takes none.
      first: the possible values of the first argument; () if it is a file.
    """

    command: str
    options: dict[str, tuple[str, ...] | None]
    first: tuple[str, ...]


def _words_of(command: str, parser: argparse.ArgumentParser) -> _Words:
    words = _Words(command, {}, ())
    for action in _actions(parser):
        values = tuple(map(str, action.choices or ()))
        if "--target" in action.option_strings:
            values = tuple(target.name for target in targets())
        for option in action.option_strings:
            words.options[option] = None if action.nargs == 0 else values
        if not action.option_strings and values:
            words = words._replace(first=values)
    return words


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a command, and those of its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


# ---- scripts -------------------------------------------------------------------------------------

# The functions that a file defines.
_SED = r"sed -n -E 's/^(async )?def ([A-Za-z][A-Za-z0-9_]*).*/\2/p'"

_BASH = r"""
_hlofront() {
    # Readline splits words at colons as well, which FILE:FUNCTION and names of targets have.
    local line=${COMP_LINE:0:COMP_POINT} words values found each
    local word=${line##*[[:space:]]}
    read -ra words <<< "$line"
    [[ -n $word ]] || words+=("")
    local count=${#words[@]} command=${words[1]}
    if ((count <= 2)); then
        found=$(compgen -W "$_hlofront_commands" -- "$word")
    elif [[ $word == -* ]]; then
        found=$(compgen -W "$(_hlofront_options "$command")" -- "$word")
    else
        values=$(_hlofront_values "$command" "${words[count - 2]}")
        if [[ -n $values ]]; then
            found=$(compgen -W "$values" -- "$word")
        elif [[ $word == *.py:* ]]; then
            each=${word%%.py:*}.py
            found=$(compgen -P "$each:" -W "$(_hlofront_functions "$each")" -- "${word#"$each":}")
        else
            compopt -o filenames 2> /dev/null
            found=$(compgen -f -- "$word")
            [[ $found == *.py ]] && compopt -o nospace 2> /dev/null
        fi
    fi
    local before=
    [[ $COMP_WORDBREAKS == *:* ]] && before=${word%"${word##*:}"}
    COMPREPLY=()
    while IFS= read -r each; do
        [[ -n $each ]] && COMPREPLY+=("${each#"$before"}")
    done <<< "$found"
}
complete -F _hlofront hlofront
"""

_ZSH = r"""
_hlofront() {
    local word=$words[CURRENT] command=$words[2] values
    if ((CURRENT == 2)); then
        compadd -- ${=_hlofront_commands}
    elif [[ $word == -* ]]; then
        compadd -- $(_hlofront_options $command)
    else
        values=$(_hlofront_values $command "$words[CURRENT-1]")
        if [[ -n $values ]]; then
            compadd -- ${=values}
        elif compset -P '*.py:'; then
            compadd -- $(_hlofront_functions ${word%%:*})
        else
            _files
        fi
    fi
}
if [[ $funcstack[1] == _hlofront ]]; then
    _hlofront "$@"
else
    compdef _hlofront hlofront
fi
"""

_FISH = r"""
function __hlofront_functions
    set -l file (string match -r '^(.*\.py):' -- (commandline -ct))[2]
    and SED $file | string replace -r '^' $file:
end
complete -c hlofront -n 'not __fish_use_subcommand' -a '(__hlofront_functions)'
"""


def _tables(commands: list[_Words]) -> str:
    """Return what scripts for bash and zsh know: the words, by shell functions of one shape."""
    options = [
        f"        {command.command}) echo '{' '.join(command.options)}' ;;" for command in commands
    ]
    values = [
        f"        '{command.command} {option}') echo '{' '.join(words)}' ;;"
        for command in commands
        for option, words in {**command.options, command.command: command.first}.items()
        if words
    ]
    return "\n".join(
        [
            f"_hlofront_commands='{' '.join(command.command for command in commands)}'",
            "_hlofront_options() {",
            '    case "$1" in',
            *options,
            "    esac",
            "}",
            "_hlofront_values() {",
            '    case "$1 $2" in',
            *values,
            "    esac",
            "}",
            "_hlofront_functions() {",
            f'    {_SED} "$1" 2> /dev/null',
            "}",
        ]
    )


def _fish(commands: list[_Words]) -> str:
    names = " ".join(command.command for command in commands)
    lines = [f"complete -c hlofront -n __fish_use_subcommand -f -a '{names}'"]
    for command in commands:
        start = f"complete -c hlofront -n '__fish_seen_subcommand_from {command.command}'"
        if command.first:
            lines.append(f"{start} -f -a '{' '.join(command.first)}'")
        for option, values in command.options.items():
            name = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            argument = "" if values is None else f" -x -a '{' '.join(values)}'" if values else " -r"
            lines.append(f"{start} {name}{argument}")
    return "\n".join(lines) + _FISH.replace("SED", _SED)


_SCRIPTS = {
    "bash": lambda commands: _tables(commands) + _BASH,
    "zsh": lambda commands: "#compdef hlofront\n" + _tables(commands) + _ZSH,
    "fish": _fish,
}
