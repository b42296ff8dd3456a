"""The command `cost`: where a compiled program spends operations, bytes and time."""

import argparse
from typing import TYPE_CHECKING, TextIO

from hlofront.cli.loading import load_call
from hlofront.cli.options import Commands, add_args, add_color, add_command
from hlofront.cli.program_files import (
    is_program,
    naming_errors,
    read_program,
    write_file,
    write_page,
)
from hlofront.cli.progress import announce, finish
from hlofront.inspect.jitted import jitted
from hlofront.inspect.target import UsageError
from hlofront.pjrt.targets import target as find_target
from hlotools.ir.program_text import TITLES
from hlotools.terminal_colors import Painter

if TYPE_CHECKING:
    from hlotools.cost.costs import Costs

_COST_HELP = """\
Shows where a compiled program spends operations, bytes and time: by source line or instruction.

example:
  python -m hlofront cost model.py:step --args "f32[32,64]" --target cuda:h100
  python -m hlofront cost model.py:step --target cuda:h100 --html cost.html
  python -m hlofront cost dump.hlo --target cuda:h100
"""


def add_parser(commands: Commands) -> None:
    """Add the command `cost` to the command line's parser."""
    cost = add_command(commands, "cost", "where a program spends operations and bytes", _COST_HELP)
    cost.add_argument(
        "target_function", metavar="FILE:FUNCTION", help="or a file with HLO; - for standard input"
    )
    add_args(cost)
    cost.add_argument("--target", metavar="DEVICE", help="compile for it, attached or not")
    cost.add_argument(
        "--by", choices=("line", "instruction"), default="line", help="what a row is of (line)"
    )
    cost.add_argument("--most", type=int, default=20, metavar="N", help="how many rows (20)")
    cost.add_argument("--json", action="store_true", help="print JSON, with all rows")
    cost.add_argument("--html", metavar="OUT", help="write the program as a page, costs as color")
    add_color(cost)
    cost.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.cost import costs

    if is_program(options.target_function):
        return _cost_of_program(options, out)
    function, args = load_call(options.target_function, options.args)
    if options.html:
        write_page(options.html, function, args, "hlo", options.target)
        if not options.json:
            return 0
    announce(f"compiling {options.target_function}")
    staged = jitted(function)
    if options.target:
        with find_target(options.target) as target:
            # With this option XLA writes its own cost estimates into programs for GPUs.
            extra_options = (
                {"xla_gpu_collect_cost_model_stats": True} if target.platform == "cuda" else {}
            )
            compiled = staged.lower(*args).compile(compiler_options=extra_options)
            report = costs(compiled, target=target)
    else:
        report = costs(staged.lower(*args).compile())
    finish()
    _print(report, options, out)
    return 0


def _cost_of_program(options: argparse.Namespace, out: TextIO) -> int:
    """Run `cost` on a file of HLO text: print its costs or write the page; return the exit status.

    Raises:
      UsageError: with `--args`, or if the file has no HLO.
    """
    from hlofront.inspect.cost import costs
    from hlofront.inspect.program_page import page

    if options.args:
        raise UsageError(f"{options.target_function} is a program as text: --args is for functions")
    read = read_program(options.target_function)
    if read.kind != "hlo":
        raise UsageError(f"{read.label} is {TITLES[read.kind]}: only HLO has costs")
    if options.html:
        with naming_errors(read.label):
            made = page(read.text, options.target, title=read.label)
        write_file(options.html, made)
        if not options.json:
            return 0
    with naming_errors(read.label):
        report = costs(read.text, options.target)
    _print(report, options, out)
    return 0


def _print(report: "Costs", options: argparse.Namespace, out: TextIO) -> None:
    if options.json:
        print(report.json(), file=out)
    else:
        table = report.text(options.by, options.most)
        print(Painter(out, options.color).table(table), file=out)
