"""The command `compare`: one function under several jaxlibs, devices or git revisions."""

import argparse
from typing import TextIO

from hlofront.cli.diff import print_difference, status_of
from hlofront.cli.loading import load_call
from hlofront.cli.options import Commands, add_args, add_command, add_outputs, add_repeated
from hlofront.cli.progress import announce, finish
from hlofront.inspect.target import UsageError

_COMPARE_HELP = """\
Compiles one function with several versions of jaxlib, for several devices (attached or not), or
from several git revisions, and shows cost, memory, times and differences in the optimized HLO.

example:
  python -m hlofront compare model.py:step --jaxlib 0.8.3 --jaxlib 0.10.2 --jaxlib 0.12.0.1
  python -m hlofront compare model.py:step --target cpu --target tpu:v5e:2x2 --target cuda:h100
  python -m hlofront compare model.py:step --at HEAD~1 --at HEAD
  python -m hlofront compare model.py:step --at HEAD~1 --at HEAD --target tpu:v5e:2x2
  python -m hlofront compare model.py:step --target cuda:h100 --autotuning a.textproto \\
    --autotuning b.textproto
"""


def add_parser(commands: Commands) -> None:
    """Add the command `compare` to the command line's parser."""
    compare = add_command(
        commands, "compare", "a function under other jaxlibs, devices, revisions", _COMPARE_HELP
    )
    compare.add_argument("target_function", metavar="FILE:FUNCTION", help="the function")
    add_args(compare)
    for option, metavar, purpose in (
        ("--jaxlib", "VERSION", "compile with it; 'current' is this one"),
        ("--target", "DEVICE", "compile for it, attached or not; once with --at"),
        ("--at", "REVISION", "compile the function as it is at this git revision"),
        ("--autotuning", "FILE", "compile for an NVIDIA GPU with these autotuning results"),
    ):
        add_repeated(compare, option, metavar, f"{purpose}; may be repeated")
    compare.add_argument("--no-run", action="store_true", help="only compile, without timing runs")
    add_outputs(compare)
    compare.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.comparison.compare import check_targets, compare

    if not (options.jaxlib or options.target or options.at or options.autotuning):
        raise UsageError(
            "give at least one --jaxlib VERSION, --target DEVICE, --at REVISION or --autotuning "
            "FILE"
        )
    try:
        check_targets(options.jaxlib, options.target, options.at)
    except ValueError as error:
        raise UsageError(str(error)) from error
    function, args = load_call(options.target_function, options.args)
    comparison = compare(
        function,
        *args,
        jaxlib=options.jaxlib,
        target=options.target,
        at=options.at,
        autotuning=options.autotuning,
        run=not options.no_run,
        file=options.target_function,
        specs=options.args,
        tell=announce,
        kernels=bool(options.html),
    )
    finish()
    try:
        status = status_of(comparison, options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    print_difference(comparison, options, out)
    return 2 if comparison.errors else status
