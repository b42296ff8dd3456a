"""The command `profile`: the measured time of a program by line, with its bounds."""

import argparse
from typing import TextIO

from hlofront.cli.loading import load_call
from hlofront.cli.options import Commands, add_args, add_color, add_command
from hlofront.cli.program_files import is_program, naming_errors, read_program, write_file
from hlofront.cli.progress import announce, finish
from hlofront.inspect.target import UsageError
from hlotools.profiles.profile import Profile, profile
from hlotools.profiles.xplane import ProfileError
from hlotools.terminal_colors import Painter

_HELP = """\
Runs a function under XLA's profiler and shows the measured time by source line or operation. Also
reads existing profiles, also those written by jax: with --xplane.

example:
  python -m hlofront profile model.py:step
  python -m hlofront profile model.py:step --args "f32[32,64]" --runs 50 --html profile.html
  python -m hlofront profile --xplane /tmp/profile --target cuda:h100
"""


def add_parser(commands: Commands) -> None:
    """Add the command `profile` to the command line's parser."""
    command = add_command(commands, "profile", "measured time by source line", _HELP)
    command.add_argument(
        "target_function",
        metavar="FILE:FUNCTION",
        nargs="?",
        help="with --xplane: a file with the HLO of the program, if the profile does not have it",
    )
    add_args(command)
    command.add_argument("--runs", type=int, metavar="N", help="number of measured runs (10)")
    command.add_argument("--warm-up", type=int, metavar="N", help="number of warm-up runs (2)")
    command.add_argument(
        "--xplane",
        metavar="PATH",
        help="run nothing, and read HOST.xplane.pb, or the last profile in the folder that "
        "jax.profiler.trace wrote to",
    )
    command.add_argument(
        "--program", metavar="NAME", help="with --xplane: the program, by a part of its name"
    )
    command.add_argument(
        "--target",
        metavar="DEVICE",
        help="the device it ran on, such as cuda:h100: adds lower bounds",
    )
    command.add_argument(
        "--keep", metavar="FOLDER", help="write the profile, for XProf and Perfetto, here as well"
    )
    command.add_argument(
        "--by", choices=("line", "operation"), default="line", help="what a row is of (line)"
    )
    command.add_argument("--most", type=int, default=20, metavar="N", help="how many rows (20)")
    command.add_argument("--json", action="store_true", help="print JSON, with all rows")
    command.add_argument(
        "--html", metavar="OUT", help="write the program as a page, times as color"
    )
    add_color(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    try:
        measured, others = _read(options) if options.xplane else (_measured(options), [])
    except (ProfileError, OSError) as error:
        raise UsageError(str(error)) from error
    finish()
    if options.html:
        write_file(options.html, measured.page())
        if not options.json:
            return 0
    if options.json:
        print(measured.json(), file=out)
        return 0
    table = measured.text(options.by, options.most)
    print(Painter(out, options.color).table(table), file=out)
    if others:
        names = ", ".join(
            f"{other.program} ({other.runs * other.seconds:.3g} s)" for other in others
        )
        print(f"other programs, see --program: {names}", file=out)
    return 0


def _measured(options: argparse.Namespace) -> Profile:
    """Run the function that the command line names under the profiler.

    Raises:
      UsageError: if options cannot be combined.
    """
    from hlofront.inspect.profiling import profile as measure

    if options.program:
        raise UsageError("--program goes with --xplane")
    if options.target_function is None:
        raise UsageError("expected FILE:FUNCTION to run, or --xplane and a profile to read")
    if is_program(options.target_function):
        raise UsageError(
            f"{options.target_function} is a program as text, which does not run here: give "
            "FILE:FUNCTION, or --xplane and a profile of it"
        )
    runs = 10 if options.runs is None else options.runs
    warm_ups = 2 if options.warm_up is None else options.warm_up
    if runs < 1 or warm_ups < 0:
        raise UsageError("--runs is 1 or more, and --warm-up 0 or more")
    function, args = load_call(options.target_function, options.args)
    announce(f"running {options.target_function}")
    return measure(
        function,
        runs=runs,
        warm_ups=warm_ups,
        target=options.target,
        log_dir=options.keep,
        tell=announce,
    )(*args)


def _read(options: argparse.Namespace) -> tuple[Profile, list[Profile]]:
    """Read the profile that the command line names; return the chosen program and all the others.

    Raises:
      UsageError: if options cannot be combined, or name no program in the profile.
    """
    from hlofront.inspect.cost import description_of
    from hlofront.inspect.profiling import profiles_in

    unused = {
        "--args": options.args,
        "--runs": options.runs,
        "--warm-up": options.warm_up,
        "--keep": options.keep,
    }
    for name, value in unused.items():
        if value is not None:
            raise UsageError(f"{name} goes with FILE:FUNCTION: with --xplane nothing runs")
    if options.target_function is not None:
        if not is_program(options.target_function):
            raise UsageError("with --xplane nothing runs: give no FILE:FUNCTION, or a file of HLO")
        program = read_program(options.target_function)
        with naming_errors(program.label):
            chosen = profile(options.xplane, program.text, description_of(options.target))
        return chosen, []
    read = profiles_in(options.xplane, options.target)
    wanted = options.program or ""
    matching = [found for found in read if wanted in found.program]
    if not matching:
        names = ", ".join(dict.fromkeys(found.program for found in read))
        raise UsageError(f"{options.xplane} has no program {wanted!r}: it has {names}")
    return matching[0], [found for found in read if found is not matching[0]]
