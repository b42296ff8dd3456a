"""The command `diff`: the differences between two programs; exit status 0 if they are equal."""

import argparse
from typing import TYPE_CHECKING, TextIO

from hlofront.cli.options import Commands, add_args, add_command, add_outputs, add_repeated
from hlofront.cli.program_files import is_program, read_program, write_file
from hlofront.cli.progress import finish, say
from hlofront.inspect.target import UsageError, other_jaxlibs_are_for_cpus
from hlotools.ir.program_text import STDIN
from hlotools.profiles.xplane import is_profile
from hlotools.terminal_colors import Painter

if TYPE_CHECKING:
    from hlofront.inspect.comparison.compare import Comparison
    from hlotools.matching.difference import Diff

_DIFF_HELP = """\
Compares two programs by structure: names, source lines and formatting do not matter.
Each is a file with HLO, StableHLO or a jaxpr, or a function as FILE:FUNCTION; or both are profiles:
then it lists the source lines that take longer than their repeats explain.

example:
  python -m hlofront diff before.hlo after.hlo
  python -m hlofront diff model.py:step model.py:faster_step --args "f32[32,64]" --html diff.html
  python -m hlofront diff model.py:step model.py:faster_step --target cuda:h100 --fail-on 'bytes>1%'
  python -m hlofront diff model.py:step model.py:step --at HEAD~1 --at HEAD --target tpu:v5e:2x2
  python -m hlofront diff model.py:step model.py:step --jaxlib 0.10.2 --jaxlib 0.12.0.1
  python -m hlofront diff before.xplane.pb after.xplane.pb

--target, --jaxlib and --at hold for both functions if given once, for A and for B if given twice.
--target once may be combined with --at.
"""


def add_parser(commands: Commands) -> None:
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
        help="which program of a function to compare; by default the kind that the file has, or "
        "the optimized HLO of two functions",
    )
    diff.add_argument(
        "--schedule",
        action="store_true",
        help="also report operations that a compiled program runs earlier or later",
    )
    for option, metavar, purpose in (
        ("--target", "DEVICE", "compile functions for it, attached or not"),
        ("--jaxlib", "VERSION", "compile functions with it; 'current' is this one"),
        ("--at", "REVISION", "compile functions from a git revision of their files"),
    ):
        add_repeated(diff, option, metavar, f"{purpose}; once or twice")
    add_outputs(diff)
    diff.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.cli.diff_sides import function_side
    from hlotools.matching.difference import diff_of_sides, with_dump

    arguments = options.before, options.after
    if is_profile(arguments[0]) and is_profile(arguments[1]):
        return _profiles(options, out)
    if arguments == (STDIN, STDIN):
        raise UsageError("standard input holds one program: give a file for the other")
    setting, names = _setting_of(options)
    read = [read_program(text) if is_program(text) else None for text in arguments]
    known = [program.kind for program in read if program is not None]
    if options.stage is None:
        options.stage = known[0] if len(known) == 1 else "hlo"
    if setting in ("--jaxlib", "--at") and options.stage != "hlo":
        raise UsageError(f"{setting} compares optimized HLO: the stage here is {options.stage}")
    try:
        sides = [
            function_side(text, setting, name, options) if each is None else with_dump(each, text)
            for text, name, each in zip(arguments, names, read, strict=True)
        ]
        finish()
        difference = diff_of_sides(sides[0], sides[1], options.schedule)
        status = status_of(difference, options)
    except ValueError as error:
        # A text cannot be parsed, or the two are of different kinds; the message says which.
        raise UsageError(str(error)) from error
    print_difference(difference, options, out)
    return status


def _profiles(options: argparse.Namespace, out: TextIO) -> int:
    """Print which source lines take longer in a second profile; return the exit status."""
    from hlofront.inspect.profiling import profiles_in
    from hlotools.profiles.comparison import compare_profiles

    if options.html or options.markdown or options.fail_on or options.schedule:
        raise UsageError("profiles are compared as text or --json")
    before, after = profiles_in(options.before), profiles_in(options.after)
    known = {each.program: each for each in reversed(before)}
    pairs = [(known[each.program], each) for each in after if each.program in known]
    if not pairs:
        names = [", ".join(each.program for each in side) for side in (before, after)]
        raise UsageError(f"the profiles have no program in common: {names[0]}; {names[1]}")
    difference = compare_profiles(*pairs[0])
    print(difference.json() if options.json else difference.text(), file=out)
    return 0 if difference.equal else 1


def _setting_of(options: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the option that determines how functions are compiled, and its values for A and B.

    Raises:
      UsageError: if there are several such options, too many values, or no functions for them.
    """
    settings = {
        name: values
        for name, values in (
            ("--target", options.target),
            ("--jaxlib", options.jaxlib),
            ("--at", options.at),
        )
        if values
    }
    if not settings:
        return "", ["", ""]
    if settings.keys() == {"--target", "--at"} and len(options.target) == 1:
        del settings["--target"]
    if settings.keys() == {"--target", "--jaxlib"}:
        raise UsageError(other_jaxlibs_are_for_cpus(options.target[0]))
    if len(settings) > 1:
        raise UsageError(
            f"{' and '.join(settings)} do not go together: give one of them, or --target once "
            "and --at"
        )
    ((setting, values),) = settings.items()
    files = [text for text in (options.before, options.after) if is_program(text)]
    if len(files) == 2:
        raise UsageError(f"{setting} is for functions: the programs in files are compiled already")
    most = 2 - len(files)
    if len(values) > most:
        raise UsageError(
            f"{setting} is given {len(values)} times, and there "
            + ("are two functions" if most == 2 else f"is one function: {files[0]} is a file")
        )
    return setting, [values[0], values[-1]]


def status_of(difference: "Diff | Comparison", options: argparse.Namespace) -> int:
    """Return the exit status: 1 for a difference, or with `--fail-on` only for an exceeded limit.

    Raises:
      ValueError: if a text is not a limit, or names an unknown total.
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
        color = Painter(out, options.color).on
        if options.verbose:
            print(difference.text(color=color, verbose=True, limit=None), file=out)
        else:
            print(difference.text(color=color), file=out)
