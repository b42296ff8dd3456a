"""The command `find-miscompile`: whether XLA compiles a function wrongly, which part, and why."""

import argparse
import dataclasses
import json
from typing import TextIO

from hlofront.cli.loading import load_call
from hlofront.cli.options import Commands, add_args, add_command
from hlofront.cli.progress import announce, finish
from hlofront.inspect.target import UsageError

_HELP = """\
Runs a function as a whole and operation by operation, and says whether XLA compiles it wrongly: by
more than rounding explains. If so, it finds the smallest part that is wrong, the passes of XLA
without which it is right, the options that cure the function, and the versions of jaxlib that have
the fault. Arguments that are only shapes get random values. The exit status is 1 if it is wrong.

example:
  python -m hlofront find-miscompile model.py:step
  python -m hlofront find-miscompile model.py:step --args 'f32[32,64]' --jaxlib 0.12.0.1 --out fault
"""


def add_parser(commands: Commands) -> None:
    """Add the command `find-miscompile` to the command line's parser."""
    find = add_command(
        commands, "find-miscompile", "whether XLA compiles a function wrongly", _HELP
    )
    find.add_argument("target_function", metavar="FILE:FUNCTION", help="the function")
    add_args(find)
    find.add_argument(
        "--jaxlib",
        action="append",
        metavar="VERSION",
        help="try what is wrong with it; may be repeated; by default with those that `compare "
        "--jaxlib` has made environments for",
    )
    find.add_argument(
        "--out", metavar="FOLDER", help="write files that reproduce it to this folder"
    )
    find.add_argument(
        "--isolated",
        action="store_true",
        help="run everything in a process of its own; by default, if the first run ends it",
    )
    find.add_argument(
        "--seconds", type=float, default=60.0, help="how long a run may take there (60)"
    )
    find.add_argument("--json", action="store_true", help="print JSON")
    find.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.miscompile.find_miscompile import find_miscompile
    from hlofront.inspect.profiling import with_values

    function, args = load_call(options.target_function, options.args)
    try:
        report = find_miscompile(
            function,
            isolated=options.isolated or None,
            seconds=options.seconds,
            jaxlibs=options.jaxlib,
            folder=options.out,
            tell=announce,
        )(*with_values(args))
    except FileExistsError as error:
        raise UsageError(str(error)) from error
    finish()
    if options.json:
        print(json.dumps(dataclasses.asdict(report), indent=1, default=str), file=out)
    else:
        print(report, file=out)
    return 1 if report else 0
