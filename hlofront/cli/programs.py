"""`diff`, `compare` and `cost` at the shell: 0 for programs that are the same, 1 for others."""

import argparse
import contextlib
import pathlib
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from hlofront.cli.target import UsageError, arguments_for, load_function
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.jit import jit
from hlotools.ir.hlo import HloSyntaxError
from hlotools.ir.program_text import STDIN, TITLES, ProgramText, program_of_file
from hlotools.terminal_colors import Painter

_DIFF_HELP = """\
Compares two programs by structure: names, lines, layouts of tables and history make no difference.
Each is a file with HLO, StableHLO or a jaxpr, or a function as FILE:FUNCTION.

example:
  python -m hlofront diff before.hlo after.hlo
  python -m hlofront diff model.py:step model.py:faster_step --args "f32[32,64]" --html diff.html
"""
_COMPARE_HELP = """\
Compiles one function under several versions of jaxlib, for several devices (absent ones too), or as
of several git revisions, and shows cost, memory, times and what differs in the optimized HLO.

example:
  python -m hlofront compare model.py:step --jaxlib 0.8.3 --jaxlib 0.10.2 --jaxlib 0.12.0.1
  python -m hlofront compare model.py:step --target cpu --target tpu:v5e:2x2 --target cuda:h100
  python -m hlofront compare model.py:step --at HEAD~1 --at HEAD
"""
_COST_HELP = """\
Shows where a compiled program spends operations, bytes and time: by source line or instruction.

example:
  python -m hlofront cost model.py:step --args "f32[32,64]" --target cuda:h100
  python -m hlofront cost model.py:step --target cuda:h100 --html cost.html
  python -m hlofront cost dump.hlo --target cuda:h100
"""
PAGES = ("jaxpr", "stablehlo", "hlo")


def add_parsers(commands: Any) -> None:
    diff = _parser(commands, "diff", "what differs between two programs", _DIFF_HELP)
    diff.add_argument(
        "before", metavar="A", help="a file of text, - for standard input, or FILE:FUNCTION"
    )
    diff.add_argument("after", metavar="B", help="the same")
    _add_args(diff)
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
    _add_outputs(diff)
    diff.set_defaults(run=_diff)

    compare = _parser(
        commands, "compare", "a function under other jaxlibs, devices, revisions", _COMPARE_HELP
    )
    compare.add_argument("target_function", metavar="FILE:FUNCTION")
    _add_args(compare)
    compare.add_argument(
        "--jaxlib", action="append", default=[], metavar="VERSION", help="'current' is this one"
    )
    compare.add_argument("--target", action="append", default=[], metavar="DEVICE")
    compare.add_argument("--at", action="append", default=[], metavar="REVISION")
    compare.add_argument("--no-run", action="store_true", help="compile only, and time no run")
    _add_outputs(compare)
    compare.set_defaults(run=_compare)

    cost = _parser(commands, "cost", "where a program spends operations and bytes", _COST_HELP)
    cost.add_argument(
        "target_function", metavar="FILE:FUNCTION", help="or a file with HLO; - for standard input"
    )
    _add_args(cost)
    cost.add_argument("--target", metavar="DEVICE", help="compile for it, attached or not")
    cost.add_argument("--by", choices=("line", "instruction"), default="line")
    cost.add_argument("--most", type=int, default=20, help="how many rows")
    cost.add_argument("--json", action="store_true")
    cost.add_argument("--html", metavar="OUT", help="write the program as a page, costs as colour")
    cost.set_defaults(run=_cost)


def _parser(commands: Any, name: str, summary: str, description: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_args(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--args",
        metavar="SPECS",
        help="argument shapes, such as 'f32[32,64], i32[32]'; by default those that "
        "example_args() in the file returns",
    )


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", metavar="OUT", help="write one self-contained page to this file")
    parser.add_argument(
        "--verbose", action="store_true", help="list all changes, and what is folded into them"
    )
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def say(text: str) -> None:
    """Say something on stderr, where it is in nobody's way."""
    print(f"hlofront: {text}", file=sys.stderr, flush=True)


# Seconds that something may take before it is said what is going on.
PATIENCE = 1.0
_waiting: threading.Timer | None = None


def tell(text: str) -> None:
    """Say on stderr what is going on, if that takes long: until the next call, or `told`."""
    global _waiting
    told()
    if PATIENCE <= 0:
        say(text)
        return
    _waiting = threading.Timer(PATIENCE, say, (text,))
    _waiting.daemon = True
    _waiting.start()


def told() -> None:
    """What was going on is done."""
    if _waiting is not None:
        _waiting.cancel()


# ---- diff ----------------------------------------------------------------------------------------


def is_program(text: str) -> bool:
    """Whether it names a file of a program's text, and no function."""
    return text == STDIN or (pathlib.Path(text).exists() and not text.endswith(".py"))


def read_program(path: str) -> ProgramText:
    """The program in a file, or in standard input.

    Raises:
      UsageError: if there is none.
    """
    try:
        return program_of_file(path)
    except ValueError as error:
        raise UsageError(str(error)) from error


@contextlib.contextmanager
def reading(label: str) -> Iterator[None]:
    """What is said of text that cannot be read names its file."""
    try:
        yield
    except HloSyntaxError as error:
        raise HloSyntaxError(error.message, error.line, error.column, error.text, label) from None


def write_file(path: str, text: str) -> None:
    """Write a page, and say so.

    Raises:
      UsageError: if it cannot be written.
    """
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    say(f"wrote {path}")


def _diff(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.difference import diff

    given = options.before, options.after
    if given == (STDIN, STDIN):
        raise UsageError("standard input holds one program: give a file for the other")
    read = [read_program(text) if is_program(text) else None for text in given]
    known = [each.kind for each in read if each is not None]
    if options.stage is None:
        options.stage = known[0] if len(known) == 1 else "hlo"
    sides = [
        _text(text, options) if each is None else each.text
        for text, each in zip(given, read, strict=True)
    ]
    told()
    labels = [text if each is None else each.label for text, each in zip(given, read, strict=True)]
    try:
        found = diff(*sides, schedule=options.schedule, labels=(labels[0], labels[1]))
    except ValueError as error:
        # A text that cannot be read, or texts of two kinds: the message says which.
        raise UsageError(str(error)) from error
    _show(found, options, out)
    return 0 if found.equal else 1


def _text(text: str, options: argparse.Namespace) -> str:
    """The text of a function's program, for one side of a diff."""
    if ":" not in text and not text.endswith(".py"):
        raise UsageError(f"there is no file {text}, and it is no FILE:FUNCTION")
    function, module = load_function(text)
    args = arguments_for(module, text, options.args)
    staged: Any = function if hasattr(function, "trace") else jit(function)
    traced = staged.trace(*args)
    if options.stage == "jaxpr":
        return traced.jaxpr.pretty_print(source_info=True, use_color=False)
    lowered = traced.lower()
    if options.stage == "stablehlo":
        return lowered.as_text(debug_info=True)
    tell(f"compiling {text}")
    return lowered.compile().as_text() or ""


def _show(found: Any, options: argparse.Namespace, out: TextIO) -> None:
    if options.html:
        write_file(options.html, found.html())
    if options.json:
        print(found.json(), file=out)
    elif not options.html:
        how = {"verbose": True, "limit": None} if options.verbose else {}
        print(found.text(color=Painter(out, options.color).on, **how), file=out)


# ---- compare -------------------------------------------------------------------------------------


def _compare(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.comparison.compare import compare

    if not (options.jaxlib or options.target or options.at):
        raise UsageError("give at least one --jaxlib VERSION, --target DEVICE or --at REVISION")
    function, module = load_function(options.target_function)
    args = arguments_for(module, options.target_function, options.args)
    found = compare(
        function,
        *args,
        jaxlib=options.jaxlib,
        target=options.target,
        at=options.at,
        run=not options.no_run,
        file=options.target_function,
        specs=options.args,
        tell=tell,
    )
    told()
    _show(found, options, out)
    if found.errors:
        return 2
    return 0 if found.equal else 1


# ---- cost ----------------------------------------------------------------------------------------


def _cost(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.cost import costs

    if is_program(options.target_function):
        return _cost_of_program(options, out)
    function, module = load_function(options.target_function)
    args = arguments_for(module, options.target_function, options.args)
    if options.html:
        write_page(options.html, function, args, "hlo", options.target)
        if not options.json:
            return 0
    tell(f"compiling {options.target_function}")
    staged: Any = function if hasattr(function, "lower") else jit(function)
    if options.target:
        with find_target(options.target) as place:
            compiled = staged.lower(*args).compile()
            report = costs(compiled, target=place)
    else:
        report = costs(staged.lower(*args).compile())
    told()
    print(report.json() if options.json else report.text(options.by, options.most), file=out)
    return 0


def _cost_of_program(options: argparse.Namespace, out: TextIO) -> int:
    """Show the cost of a program that is there as text."""
    from hlofront.inspect.cost import costs
    from hlofront.inspect.program_page import page

    if options.args:
        raise UsageError(f"{options.target_function} is a program as text: --args is for functions")
    read = read_program(options.target_function)
    if read.kind != "hlo":
        raise UsageError(f"{read.label} is {TITLES[read.kind]}: cost is told of HLO")
    if options.html:
        with reading(read.label):
            made = page(read.text, options.target, title=read.label)
        write_file(options.html, made)
        if not options.json:
            return 0
    with reading(read.label):
        report = costs(read.text, options.target)
    print(report.json() if options.json else report.text(options.by, options.most), file=out)
    return 0


# ---- pages ---------------------------------------------------------------------------------------


def write_page(
    path: str, function: Any, args: tuple[Any, ...], stage: str, target: str | None
) -> None:
    """Write a function's program to a file as a page to look at.

    Args:
      stage: "jaxpr", "stablehlo" or "hlo".
      target: the name of what it is compiled and its time reckoned for; None: the device at hand.
    """
    from hlofront.inspect.program_page import page

    staged: Any = function if hasattr(function, "trace") else jit(function)
    place = find_target(target) if target else None
    with place or contextlib.nullcontext():
        traced = staged.trace(*args)
        program = traced if stage == "jaxpr" else traced.lower()
        if stage == "hlo":
            tell(f"compiling {getattr(function, '__name__', 'the function')}")
            program = program.compile()
    write_file(path, page(program, place))
