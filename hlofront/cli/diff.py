"""The command `diff`: the differences between two programs; exit status 0 if they are equal."""

import argparse
import contextlib
from typing import TYPE_CHECKING, TextIO

from hlofront.cli.options import add_args, add_command, add_outputs
from hlofront.cli.program_files import is_program, read_program, write_file
from hlofront.cli.progress import announce, finish, say
from hlofront.cli.target import UsageError, arguments_for, load_function
from hlofront.inspect.jitted import jitted
from hlofront.pjrt.targets import target as find_target
from hlotools.ir.program_text import STDIN
from hlotools.terminal_colors import Painter

if TYPE_CHECKING:
    from hlofront.cli.options import Commands
    from hlofront.inspect.comparison.compare import Comparison
    from hlotools.matching.difference import Diff

_DIFF_HELP = """\
Compares two programs by structure: names, lines, layouts of tables and history make no difference.
Each is a file with HLO, StableHLO or a jaxpr, or a function as FILE:FUNCTION.

example:
  python -m hlofront diff before.hlo after.hlo
  python -m hlofront diff model.py:step model.py:faster_step --args "f32[32,64]" --html diff.html
  python -m hlofront diff model.py:step model.py:faster_step --target cuda:h100 --fail-on 'bytes>1%'
"""


def add_parser(commands: "Commands") -> None:
    """Add the command `diff` to the command line's parser."""
    diff = add_command(commands, "diff", "what differs between two programs", _DIFF_HELP)
    diff.add_argument(
        "before", metavar="A", help="a file of text, - for standard input, or FILE:FUNCTION"
    )
    diff.add_argument("after", metavar="B", help="the same")
    add_args(diff)
    diff.add_argument(
        "--stage",
        choices=("jaxpr", "stablehlo", "hlo"),
        help="of functions: which of their programs; by default that of the file beside it, and "
        "the optimized HLO of two functions",
    )
    diff.add_argument(
        "--schedule",
        action="store_true",
        help="operations that run earlier or later in a compiled program differ too",
    )
    diff.add_argument(
        "--target", metavar="DEVICE", help="compile functions for it, attached or not"
    )
    add_outputs(diff)
    diff.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.difference import diff

    arguments = options.before, options.after
    if arguments == (STDIN, STDIN):
        raise UsageError("standard input holds one program: give a file for the other")
    if options.target and all(map(is_program, arguments)):
        raise UsageError("--target is for functions: the programs in files are compiled already")
    read = [read_program(text) if is_program(text) else None for text in arguments]
    known = [each.kind for each in read if each is not None]
    if options.stage is None:
        options.stage = known[0] if len(known) == 1 else "hlo"
    sides = [
        _text(text, options) if each is None else each.text
        for text, each in zip(arguments, read, strict=True)
    ]
    finish()
    labels = [
        text if each is None else each.label for text, each in zip(arguments, read, strict=True)
    ]
    try:
        difference = diff(*sides, schedule=options.schedule, labels=(labels[0], labels[1]))
        status = status_of(difference, options)
    except ValueError as error:
        # A text cannot be parsed, or the two are of different kinds; the message says which.
        raise UsageError(str(error)) from error
    print_difference(difference, options, out)
    return status


def _text(text: str, options: argparse.Namespace) -> str:
    """Return the text of FILE:FUNCTION's program, at the stage and for the arguments of `options`.

    Raises:
      UsageError: if `text` is neither a file nor FILE:FUNCTION.
    """
    if ":" not in text and not text.endswith(".py"):
        raise UsageError(f"there is no file {text}, and it is no FILE:FUNCTION")
    function, module = load_function(text)
    args = arguments_for(module, text, options.args)
    staged = jitted(function)
    with find_target(options.target) if options.target else contextlib.nullcontext():
        traced = staged.trace(*args)
        if options.stage == "jaxpr":
            return traced.jaxpr.pretty_print(source_info=True, use_color=False)
        lowered = traced.lower()
        if options.stage == "stablehlo":
            return lowered.as_text(debug_info=True)
        announce(f"compiling {text}")
        return lowered.compile().as_text() or ""


def status_of(difference: "Diff | Comparison", options: argparse.Namespace) -> int:
    """Return the exit status: 1 for a difference, or with `--fail-on` for an exceeded limit alone.

    Raises:
      ValueError: if a text is not a limit, or names no total.
    """
    if not options.fail_on:
        return 0 if difference.equal else 1
    exceeded = difference.exceeded(options.fail_on)
    for limit in exceeded:
        say(f"{limit}: exceeded")
    return 1 if exceeded else 0


def print_difference(
    difference: "Diff | Comparison", options: argparse.Namespace, out: TextIO
) -> None:
    """Print a difference, or write it to the file that `--html` names."""
    if options.html:
        write_file(options.html, difference.html())
    if options.json:
        print(difference.json(), file=out)
    elif options.markdown:
        print(difference.markdown(), file=out)
    elif not options.html:
        how = {"verbose": True, "limit": None} if options.verbose else {}
        print(difference.text(color=Painter(out, options.color).on, **how), file=out)
