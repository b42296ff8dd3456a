"""Options that several commands of the command line share."""

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(
    commands: "Commands", name: str, summary: str, description: str
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
    """Add the option `--args`, the specs of a function's arguments, in one call or in several."""
    again = "; may be given again for calls of other kinds" if repeated else ""
    parser.add_argument(
        "--args",
        action="append" if repeated else "store",
        metavar="SPECS",
        help="argument shapes, such as 'f32[32,64], i32[32]'; by default those of "
        f"example_args in the file, a tuple or a function that returns it{again}",
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the output options of commands that print differences, such as --json and --html."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--markdown", action="store_true", help="print Markdown, as for a pull request's comment"
    )
    parser.add_argument("--html", metavar="OUT", help="write one self-contained page to this file")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="LIMIT",
        help="a total and how much it may grow by, such as 'bytes>1%%' or 'peak>0'; the exit "
        "status is then 1 if a limit is exceeded, and 0 for other differences",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="list all changes, including folded ones"
    )
    add_color(parser)
