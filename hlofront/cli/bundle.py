"""The command `bundle`: a function's programs in one file, from which processes start quickly."""

import argparse
from typing import TextIO

from hlofront import bundle
from hlofront.cli.loading import load_function
from hlofront.cli.options import Commands, add_args, add_command, add_repeated
from hlofront.cli.progress import announce, finish, say
from hlofront.inspect.jitted import LibraryJit, jitted
from hlofront.inspect.target import UsageError, arguments_for

_HELP = """\
Writes a function's programs to one file: traced, lowered to StableHLO, and compiled for each
target. hlofront.bundle.load(FILE, trust=True) calls them without the function, and
hlofront.bundle.attach gives them to a jitted function.

  ls FILE       lists the programs of a bundle, and its executables
  verify FILE   checks the whole file, and shows which executables can be used on this machine

example:
  python -m hlofront bundle model.py:step --args "f32[32,64], i32[32]" --target cpu -o step.hlob
  python -m hlofront bundle model.py:step --args "f32[1,64]" --args "f32[32,64]" \\
      --target cpu --target tpu:v5e:2x2 -o step.hlob
  python -m hlofront bundle ls step.hlob
  python -m hlofront bundle verify step.hlob
"""
_READERS = ("ls", "verify")


def add_parser(commands: Commands) -> None:
    """Add the command `bundle` to the command line's parser."""
    parser = add_command(
        commands, "bundle", "a function's compiled programs, written to one file", _HELP
    )
    parser.add_argument("what", metavar="FILE:FUNCTION", help="or ls, or verify")
    parser.add_argument("file", nargs="?", metavar="FILE", help="the bundle, for ls and verify")
    add_args(parser, repeated=True)
    add_repeated(
        parser,
        "--target",
        "NAME",
        "compile for this, such as cpu or tpu:v5e:2x2, which need not be attached; may be "
        "repeated; by default the device of this machine",
    )
    parser.add_argument(
        "--vjp-order",
        type=int,
        default=0,
        metavar="N",
        help="include N reverse-mode derivatives, for grad of the loaded function",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the file to write")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    if options.what in _READERS:
        if options.file is None or options.args or options.target or options.output:
            raise UsageError(f"expected `bundle {options.what} FILE`, without options")
        return _read(options.what, options.file, out)
    if options.file is not None:
        raise UsageError(f"expected FILE:FUNCTION, or ls or verify before {options.file}")
    if options.output is None:
        raise UsageError("give the file to write: -o step.hlob")
    function, module = load_function(options.what)
    staged = jitted(function)
    if isinstance(staged, LibraryJit):
        raise UsageError(
            f"{options.what} is jitted by {type(function).__module__.partition('.')[0]}, and takes "
            "its modules, which a bundle does not have. Give a function of arrays: jit one that "
            "takes the module's arrays, and puts the module together again"
        )
    calls = [
        bundle.arguments(*arguments_for(function, module, options.what, specs))
        for specs in options.args or (None,)
    ]
    announce(f"compiling {options.what}")
    bundle.save(
        options.output,
        staged,
        *calls,
        targets=options.target,
        vjp_order=options.vjp_order,
    )
    say(f"wrote {options.output}")
    print(bundle.ls(options.output), file=out)
    return 0


def _read(command: str, path: str, out: TextIO) -> int:
    """List the contents of a bundle, or check which of its executables can be used here."""
    try:
        if command == "ls":
            print(bundle.ls(path), file=out)
            return 0
        for verdict in bundle.verify(path):
            print(verdict, file=out)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except bundle.BundleError as error:
        finish()
        raise UsageError(str(error)) from error
    print(f"{path} is whole", file=out)
    return 0
