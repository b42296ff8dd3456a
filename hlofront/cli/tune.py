"""The command `tune`: block sizes ranked by the static cycles of a TPU that is not attached."""

import argparse
import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TextIO

from hlofront.cli.loading import load_function
from hlofront.cli.options import Commands, add_args, add_color, add_command, add_repeated
from hlofront.cli.progress import announce, finish
from hlofront.inspect.target import UsageError, arguments_for
from hlofront.inspect.tuning import Tuning, tune
from hlotools.terminal_colors import Painter

_TUNE_HELP = """\
Ranks block sizes, or other choices, of a TPU's program without a TPU: compiles each combination,
lists those that exceed VMEM with the reason, ranks the others by static cycles (VLIW bundles by
the trips of their loops), and says what limits the best. Static cycles leave out waits for copies
between HBM and VMEM: they rank candidates, and do not predict times.

The function gets each combination as keyword arguments. Kernels of jax's Pallas are ranked as
files of StableHLO, jax.jit(f).trace(x).lower(lowering_platforms=("tpu",)).as_text(), or as folders
of libtpu's dumps.

example:
  python -m hlofront tune kernel.py:attention --over block=128,256,512 --target tpu:v6e:1x1
  python -m hlofront tune kernel.py:matmul --over rows=64,128 --over columns=128,256 \\
      --target tpu:v5e:1x1 --dump dumps
  python -m hlofront tune attention_128.mlir attention_256.mlir --target tpu:v6e:1x1
"""


def add_parser(commands: Commands) -> None:
    """Add the command `tune` to the command line's parser."""
    parser = add_command(commands, "tune", "block sizes of TPU kernels, ranked", _TUNE_HELP)
    parser.add_argument(
        "programs",
        nargs="+",
        metavar="FILE:FUNCTION",
        help="or files of StableHLO, or folders of libtpu's dumps",
    )
    add_args(parser)
    add_repeated(
        parser,
        "--over",
        "NAME=VALUES",
        "a keyword argument of the function, and its values: block=128,256; may be repeated, "
        "for all combinations",
    )
    parser.add_argument("--target", required=True, metavar="DEVICE", help="a TPU, attached or not")
    parser.add_argument(
        "--dump",
        metavar="FOLDER",
        help="keep the dumps in this folder: `show FOLDER/CANDIDATE --kernels` reads them",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with the kernels of each")
    add_color(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    try:
        ranking = _ranking(options)
    except FileExistsError as error:
        raise UsageError(f"--dump: {error}") from error
    finish()
    if options.json:
        print(ranking.json(), file=out)
    else:
        print(Painter(out, options.color).table(ranking.text()), file=out)
    return 0 if ranking.candidates else 2


def _ranking(options: argparse.Namespace) -> Tuning:
    """Return the ranking of the function, files or folders that the command line names.

    Raises:
      UsageError: if options cannot be combined, or no file is a program.
    """
    programs: list[str] = options.programs
    if ".py:" not in programs[0]:
        if options.over or options.args:
            raise UsageError("--over and --args are for functions: files are programs already")
        try:
            return tune(programs, target=options.target, folder=options.dump, tell=announce)
        except ValueError as error:
            raise UsageError(str(error)) from error
    if len(programs) > 1:
        raise UsageError("tune ranks one function, or several files")
    function, module = load_function(programs[0])
    over = values_of(options.over, function)
    first = functools.partial(function, **{name: values[0] for name, values in over.items()})
    args = arguments_for(first, module, programs[0], options.args)
    return tune(
        function, *args, over=over, target=options.target, folder=options.dump, tell=announce
    )


def values_of(texts: Sequence[str], function: Callable[..., object]) -> dict[str, list[object]]:
    """Return the values of each keyword argument in texts such as "block_q=128,256".

    Raises:
      UsageError: if there are none, a text has another form, or the function lacks the parameter.
    """
    found: dict[str, list[object]] = {}
    for text in texts:
        name, _, listed = text.partition("=")
        if not (name.isidentifier() and listed):
            raise UsageError(f"--over expects NAME=VALUES, such as block_q=128,256: got {text!r}")
        try:
            found[name] = list(ast.literal_eval(f"({listed},)"))
        except (ValueError, SyntaxError):
            found[name] = list(listed.split(","))
    if not found:
        raise UsageError("give the values to rank, such as --over block_q=128,256,512")
    parameters = inspect.signature(function).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for name in () if takes_any else found:
        if name not in parameters:
            listed = ", ".join(parameters)
            raise UsageError(f"--over: the function has no parameter {name!r}: {listed}")
    return found
