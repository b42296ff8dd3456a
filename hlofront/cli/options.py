"""The parser of the command line, and options that several commands share."""

import argparse
import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors about unknown words suggest known ones."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise the error for an unknown command or an invalid value of an option."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        hint = did_you_mean(str(value), choices) or f" (choose from {', '.join(choices)})"
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def refuse(self, unknown: list[str]) -> None:
        """End the process with an error about unknown arguments."""
        known = self._option_string_actions
        hints = [did_you_mean(word.partition("=")[0], known) for word in unknown]
        self.error(f"unrecognized arguments: {' '.join(unknown)}{''.join(hints)}")


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[CommandParser]
else:
    Commands = argparse._SubParsersAction


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known word nearest to a word, or "" if none is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.65)
    return f": did you mean {near[0]}?" if near else ""


def add_command(
    commands: Commands, name: str, summary: str, description: str
) -> argparse.ArgumentParser:
    """Add a command and return its parser, whose help does not reflow the description."""
    return commands.add_parser(
        name,
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_color(parser: argparse.ArgumentParser) -> None:
    """Add the option `--color`."""
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="color syntax and headings; by default only on a terminal",
    )


def add_args(parser: argparse.ArgumentParser, repeated: bool = False) -> None:
    """Add the option `--args`, the specs of a function's arguments, for one call or several."""
    again = "; may be given again for calls of other kinds" if repeated else ""
    parser.add_argument(
        "--args",
        action="append" if repeated else "store",
        metavar="SPECS",
        help="argument shapes, such as 'f32[32,64], i32[32]', and those of trees, such as "
        "'{w: f32[2,3], b: [f32[3]]}, f32[8,2]'; by default those of "
        f"example_args in the file, a tuple or a function that returns it{again}",
    )


def add_repeated(parser: argparse.ArgumentParser, option: str, metavar: str, purpose: str) -> None:
    """Add an option that may be repeated, whose value is the list of what it was given."""
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=purpose)


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the output options of commands that print differences, such as --json and --html."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--markdown", action="store_true", help="print Markdown, as for a pull request's comment"
    )
    parser.add_argument("--html", metavar="OUT", help="write one self-contained page to this file")
    add_repeated(
        parser,
        "--fail-on",
        "LIMIT",
        "a total and how much it may grow by, such as 'bytes>1%%' or 'peak>0'; the exit "
        "status is then 1 if a limit is exceeded, and 0 for other differences",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="list all changes, including folded ones"
    )
    add_color(parser)
