"""The command `show`: the stages of a function from source to HLO."""

import argparse
import json
import pathlib
from collections.abc import Callable
from typing import TextIO

from hlofront.cli.dumps import (
    add_options,
    only_program,
    show_dumps,
    show_folder,
    wants_dumps,
)
from hlofront.cli.loading import load_call
from hlofront.cli.options import Commands, add_args, add_color, add_command, add_repeated
from hlofront.cli.program_files import (
    PAGES,
    is_program,
    naming_errors,
    read_program,
    write_file,
    write_page,
)
from hlofront.cli.progress import announce, finish
from hlofront.cli.stages import SHOWN, STAGES, TITLE_OF_KERNELS, sections
from hlofront.inspect.program_page import page
from hlofront.inspect.target import UsageError
from hlofront.pjrt.targets import target
from hlotools.cost.collectives import collectives
from hlotools.cost.memory_use import memory_use
from hlotools.ir.kernel_parameters import kernels_text
from hlotools.ir.program_text import TITLES
from hlotools.ir.styles import STYLES, styled
from hlotools.terminal_colors import Painter

_SHOW_HELP = """\
Shows the stages of a function: its source, jaxpr, StableHLO, XLA's optimized HLO, cost and memory;
for a program over several devices also how each value is sharded, and the collectives; and the
kernels of Mosaic and Triton in its custom calls, decoded.

example:
  python -m hlofront show examples/kmeans.py:step
  python -m hlofront show model.py:loss --args "f32[32,64], i32[32]" --stage hlo
  python -m hlofront show model.py:loss --target cpu --target tpu:v5e:1x1 --target cuda:h100
  python -m hlofront show model.py:loss --html loss.html
  python -m hlofront show train.py:step --stage sharding
  python -m hlofront show train.py:step --stage memory --target tpu:v5e:1x1
  python -m hlofront show dump.hlo --style source
  python -m hlofront show dump.hlo --mesh data=4,model=2
  python -m hlofront show model.py:loss --passes --operation fusion.3
  python -m hlofront show model.py:loss --kernel loop_add_fusion --code ptx --target cuda:h100
  python -m hlofront show model.py:step --kernels --target tpu:v5e:1x1
  python -m hlofront show model.py:step --bundles fusion.3 --target tpu:v5e:1x1
  python -m hlofront show attention.mlir --kernels --target tpu:v5e:1x1
  python -m hlofront show attention.mlir --kernels --by-line --target cuda:h100
"""


def add_parser(commands: Commands) -> None:
    """Add the command `show` to the command line's parser."""
    show = add_command(
        commands,
        "show",
        "a function's source, jaxpr, StableHLO, optimized HLO, cost and memory",
        _SHOW_HELP,
    )
    show.add_argument(
        "function",
        metavar="FILE:FUNCTION",
        help="or a file with HLO, StableHLO or a jaxpr; - for standard input; or a folder of "
        "XLA's dumps: which programs it has, and what to read",
    )
    add_args(show)
    show.add_argument(
        "--stage",
        action="append",
        choices=STAGES,
        help="print only this one, without headings; may be repeated",
    )
    add_repeated(
        show,
        "--target",
        "NAME",
        "compile for this, such as tpu:v5e:1x1 or cuda:h100, which need not be attached; "
        "may be repeated (all names: python -m hlofront doctor)",
    )
    show.add_argument(
        "--html",
        metavar="OUT",
        help="write a page for browsers to this file: source next to operations, a graph, costs "
        "as colors; of the optimized HLO, or of --stage jaxpr or stablehlo",
    )
    show.add_argument(
        "--style",
        choices=STYLES,
        help="how to print StableHLO and HLO: as they are, next to the lines of source, without "
        "metadata and default layouts, or without names; by default raw, for files short",
    )
    show.add_argument(
        "--mesh",
        metavar="AXES",
        help="print the collectives of a file with optimized HLO, along the axes of this mesh, "
        "such as data=4,model=2",
    )
    show.add_argument("--json", action="store_true", help="print JSON")
    add_color(show)
    add_options(show)
    show.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    is_folder = pathlib.Path(options.function).is_dir()
    if is_folder and not wants_dumps(options):
        if not (options.stage or options.style or options.mesh or options.html):
            return show_folder(options, out)
        options.function = only_program(options.function)
    if wants_dumps(options):
        return show_dumps(options, out)
    if is_program(options.function):
        return _show_program(options, out)
    if options.mesh:
        raise UsageError("--mesh is for files with HLO: shardings of functions have their own mesh")
    targets = [target(name) for name in options.target]
    for listed_target in targets:
        _ = listed_target.devices  # Raises here if a device is missing, before any output.
    function, args = load_call(options.function, options.args)
    if options.html:
        return _page(options, function, args)
    wanted = tuple(options.stage or SHOWN)
    painter = Painter(out, options.color)
    announce(f"compiling {options.function}")
    shown = sections(function, args, wanted, targets, options.style or "raw")
    if options.json:
        rows = [{"stage": s.stage, "title": s.title, "text": s.text} for s in shown]
        finish()
        print(json.dumps({"function": options.function, "sections": rows}, indent=1), file=out)
        return 0
    for i, section in enumerate(shown):
        finish()
        if len(wanted) > 1 or len(targets) > 1:
            print(("\n" if i else "") + painter.heading(section.title), file=out)
        print(painter.code(section.text, section.language), file=out)
        announce(f"compiling {options.function}")
    return 0


def _show_program(options: argparse.Namespace, out: TextIO) -> int:
    """Show a program that is read from a file of text."""
    is_of_memory = options.stage == ["memory"]
    if options.args or (options.stage and not is_of_memory) or options.target:
        raise UsageError(
            f"{options.function} is a program as text: --args, --stage and --target are for "
            "functions, except for --stage memory"
        )
    read = read_program(options.function)
    if is_of_memory:
        if read.kind != "hlo":
            raise UsageError(f"{read.label} is {TITLES[read.kind]}: only HLO has memory figures")
        with naming_errors(read.label):
            use = memory_use(read.text)
        print(use.json() if options.json else use.text(), file=out)
        return 0
    if options.mesh:
        with naming_errors(read.label):
            report = collectives(read.text, options.mesh)
        shown = json.dumps(report.as_dict(), indent=1) if options.json else report.text()
        print(shown, file=out)
        return 0
    if options.html:
        with naming_errors(read.label):
            made = page(read.text, title=read.label)
        write_file(options.html, made)
        return 0
    with naming_errors(read.label):
        style = options.style or "short"
        text = styled(read.text, style).rstrip()
        kernels = kernels_text(read.text, style)
    if options.json:
        parts = [{"stage": read.kind, "title": TITLES[read.kind], "text": text}]
        if kernels:
            parts.append({"stage": "kernels", "title": TITLE_OF_KERNELS, "text": kernels})
        print(json.dumps({"function": read.label, "sections": parts}, indent=1), file=out)
        return 0
    language = "mlir" if read.kind == "stablehlo" else read.kind
    painter = Painter(out, options.color)
    print(painter.code(text, language), file=out)
    if kernels:
        print("\n" + painter.heading(TITLE_OF_KERNELS), file=out)
        print(painter.code(kernels, "mlir"), file=out)
    return 0


def _page(
    options: argparse.Namespace, function: Callable[..., object], args: tuple[object, ...]
) -> int:
    stages = options.stage or ["hlo"]
    if len(stages) > 1 or stages[0] not in PAGES:
        pages = ", ".join(PAGES)
        raise UsageError(f"--html is a page of one program: with it --stage is one of {pages}")
    if len(options.target) > 1:
        raise UsageError("--html is a page of one program: give one --target with it")
    name = options.target[0] if options.target else None
    write_page(options.html, function, args, stages[0], name)
    return 0
