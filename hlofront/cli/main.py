"""The command line: `python -m hlofront show | diff | compare | bisect | cost | profile | ...`."""

import argparse
import pathlib
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from hlofront.base.errors import JaxRuntimeError, PluginError, TargetError
from hlofront.base.source import register_exclusion
from hlofront.base.version import __version__
from hlofront.cli import (
    as_jax,
    bisect,
    bundle,
    cache,
    compare,
    completion,
    cost,
    diff,
    doctor,
    find_miscompile,
    log,
    profile,
    progress,
    replacements,
    run,
    show,
    tune,
)
from hlofront.cli.options import CommandParser
from hlofront.inspect.target import UsageError
from hlofront.jax_names.import_hook import open_names
from hlotools.ir.hlo import HloSyntaxError
from hlotools.terminal_text import visible

_DESCRIPTION = """\
Shows, compares and measures the programs that XLA makes of Python functions.

  python -m hlofront show model.py:step       # jaxpr, StableHLO, optimized HLO, cost, memory
  python -m hlofront COMMAND --help           # explains a command, with examples

Commands import the file, and give it hlofront where it imports jax. Put what trains or prints below
`if __name__ == "__main__":`.
"""


def parser() -> CommandParser:
    top = CommandParser(
        prog="python -m hlofront",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"hlofront {__version__}")
    commands = top.add_subparsers(dest="command", title="commands", metavar="COMMAND")
    for command in (
        show,
        diff,
        compare,
        bisect,
        cost,
        profile,
        tune,
        find_miscompile,
        log,
        cache,
        bundle,
        doctor,
        as_jax,
        replacements,
        run,
        completion,
    ):
        command.add_parser(commands)
    for choice in commands.choices.values():
        # Errors about unknown arguments of a command show its usage.
        choice.set_defaults(parser=choice)
    return top


def main(argv: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command line; return its exit status: 0 for success, 2 for an error.

    Args:
      argv: the arguments, by default those of the process.
      out: the stream for output, by default stdout.
    """
    out = out or sys.stdout
    if argv is None:
        # The installed script on the PATH is not the user's program.
        register_exclusion(sys.argv[0])
    top = parser()
    options, unknown = top.parse_known_args(argv)
    if unknown:
        getattr(options, "parser", top).refuse(unknown)
    if options.command is None:
        top.print_help(out)
        return 0
    if argv is None and options.command != "doctor":
        # The user's files, and libraries that they import, may import jax, and get hlofront.
        # `doctor` looks for an installed jax.
        open_names()
    try:
        try:
            return options.run(options, out)
        finally:
            # Errors are printed on separate lines.
            progress.finish()
    except (UsageError, HloSyntaxError, TargetError, PluginError) as error:
        print(visible(f"hlofront {options.command}: {error}"), file=sys.stderr)
        return 2
    except BrokenPipeError:  # The reader, such as `head`, closed the pipe.
        sys.stderr.close()
        return 0
    except JaxRuntimeError as error:
        message = f"hlofront {options.command}: XLA refused the program: {error}"
        print(visible(message), file=sys.stderr)
        return 2
    except Exception as error:
        words = sys.argv[1:] if argv is None else argv
        if isinstance(error, OSError) and _is_named(error.filename, words):
            print(visible(f"hlofront {options.command}: {error}"), file=sys.stderr)
            return 2
        # The error is in the user's file or function: print only the user's own frames.
        traceback.print_exception(type(error), error, _from_user(error.__traceback__))
        return 2


def _is_named(file: object, words: Sequence[str]) -> bool:
    """Return whether the command line names a file, such as one whose name is too long."""
    return isinstance(file, str) and bool(file) and any(file in word for word in words)


def _from_user(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the command line's own frames at its beginning."""
    here = str(pathlib.Path(__file__).parent)
    first = frames
    while first is not None and first.tb_frame.f_code.co_filename.startswith(here):
        first = first.tb_next
    return first or frames
