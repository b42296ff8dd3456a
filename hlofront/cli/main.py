"""The command line: `python -m hlofront show | diff | compare | cost | cache | doctor`."""

import argparse
import json
import pathlib
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from hlofront.base.errors import JaxRuntimeError, PluginError, TargetError
from hlofront.base.version import __version__
from hlofront.cli import cache, doctor, programs
from hlofront.cli.stages import STAGES, sections
from hlofront.cli.target import UsageError, arguments_for, load_function
from hlofront.inspect.program_page import page
from hlofront.pjrt.targets import target
from hlotools.ir.hlo import HloSyntaxError
from hlotools.ir.program_text import TITLES
from hlotools.ir.styles import STYLES, styled
from hlotools.terminal_colors import Painter

_SHOW_HELP = """\
Shows what a function becomes: its source, jaxpr, StableHLO, XLA's optimized HLO, cost and memory.

example:
  python -m hlofront show examples/kmeans.py:step
  python -m hlofront show model.py:loss --args "f32[32,64], i32[32]" --stage hlo
  python -m hlofront show model.py:loss --target cpu --target tpu:v5e:1x1 --target cuda:h100
  python -m hlofront show model.py:loss --html loss.html
  python -m hlofront show dump.hlo --style source
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m hlofront", description=__doc__)
    top.add_argument("--version", action="version", version=f"hlofront {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    show = commands.add_parser(
        "show",
        help="a function's source, jaxpr, StableHLO, optimized HLO, cost and memory",
        description=_SHOW_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    show.add_argument(
        "function",
        metavar="FILE:FUNCTION",
        help="or a file with HLO, StableHLO or a jaxpr; - for standard input",
    )
    show.add_argument(
        "--args",
        metavar="SPECS",
        help="argument shapes, such as 'f32[32,64], i32[32]'; by default those that "
        "example_args() in the file returns",
    )
    show.add_argument(
        "--stage",
        action="append",
        choices=STAGES,
        help="print this one alone, without headings; may be given again for more",
    )
    show.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="NAME",
        help="compile for this, such as tpu:v5e:1x1 or cuda:h100, which need not be here; may be "
        "given again for more (all names: python -m hlofront doctor)",
    )
    show.add_argument(
        "--html",
        metavar="OUT",
        help="write one page to this file, to look at in a browser: source beside operations, a "
        "graph, costs as colour; of the optimized HLO, or of --stage jaxpr or stablehlo",
    )
    show.add_argument(
        "--style",
        choices=STYLES,
        help="of StableHLO and HLO: as it is, beside the lines of source, without metadata and "
        "plain layouts, or without names; by default raw, and short of a file",
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours and headings in colour; by default on a terminal only",
    )
    show.set_defaults(run=_show)
    programs.add_parsers(commands)
    cache.add_parser(commands)
    doctor.add_parser(commands)
    return top


def main(argv: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    """Run the command line; 0 where it did what was asked, 2 where it could not."""
    out = out or sys.stdout
    options = parser().parse_args(argv)
    try:
        return options.run(options, out)
    except (UsageError, HloSyntaxError, TargetError, PluginError) as error:
        print(f"hlofront {options.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        return 0
    except JaxRuntimeError as error:
        print(f"hlofront {options.command}: XLA refused the program: {error}", file=sys.stderr)
        return 2
    except Exception as error:
        # The user's file or function failed: it is theirs to read, with their own lines.
        traceback.print_exception(type(error), error, _from_user(error.__traceback__))
        return 2
    finally:
        programs.told()


def _from_user(frames: TracebackType | None) -> TracebackType | None:
    """A traceback without the command line's own frames at its beginning."""
    here = str(pathlib.Path(__file__).parent)
    first = frames
    while first is not None and first.tb_frame.f_code.co_filename.startswith(here):
        first = first.tb_next
    return first or frames


def _show(options: argparse.Namespace, out: TextIO) -> int:
    if programs.is_program(options.function):
        return _show_program(options, out)
    targets = [target(name) for name in options.target]
    for each in targets:
        _ = each.devices  # What is missing is said before anything is shown.
    function, module = load_function(options.function)
    args = arguments_for(module, options.function, options.args)
    if options.html:
        return _page(options, function, args)
    wanted = tuple(options.stage or STAGES)
    painter = Painter(out, options.color)
    programs.tell(f"compiling {options.function}")
    shown = sections(function, args, wanted, targets, options.style or "raw")
    if options.json:
        found = [{"stage": s.stage, "title": s.title, "text": s.text} for s in shown]
        programs.told()
        print(json.dumps({"function": options.function, "sections": found}, indent=1), file=out)
        return 0
    for i, section in enumerate(shown):
        programs.told()
        if len(wanted) > 1 or len(targets) > 1:
            print(("\n" if i else "") + painter.heading(section.title), file=out)
        print(painter.code(section.text, section.language), file=out)
        programs.tell(f"compiling {options.function}")
    return 0


def _show_program(options: argparse.Namespace, out: TextIO) -> int:
    """Show a program that is there as text."""
    if options.args or options.stage or options.target:
        raise UsageError(
            f"{options.function} is a program as text: --args, --stage and --target are for "
            "functions"
        )
    read = programs.read_program(options.function)
    if options.html:
        with programs.reading(read.label):
            made = page(read.text, title=read.label)
        programs.write_file(options.html, made)
        return 0
    with programs.reading(read.label):
        text = styled(read.text, options.style or "short").rstrip()
    if options.json:
        section = {"stage": read.kind, "title": TITLES[read.kind], "text": text}
        print(json.dumps({"function": read.label, "sections": [section]}, indent=1), file=out)
        return 0
    language = "mlir" if read.kind == "stablehlo" else read.kind
    print(Painter(out, options.color).code(text, language), file=out)
    return 0


def _page(options: argparse.Namespace, function: object, args: tuple[object, ...]) -> int:
    stages = options.stage or ["hlo"]
    if len(stages) > 1 or stages[0] not in programs.PAGES:
        pages = ", ".join(programs.PAGES)
        raise UsageError(f"--html is a page of one program: with it --stage is one of {pages}")
    if len(options.target) > 1:
        raise UsageError("--html is a page of one program: give one --target with it")
    name = options.target[0] if options.target else None
    programs.write_page(options.html, function, args, stages[0], name)
    return 0
