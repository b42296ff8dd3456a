"""The command `as-jax`: runs a script or module whose `import jax` gives hlofront."""

import argparse
import os
import runpy
import sys
from types import TracebackType
from typing import TextIO

from hlofront.cli.options import Commands, add_command
from hlofront.jax_names.import_hook import open_names

_HELP = """\
Runs a script like `python SCRIPT`, with hlofront instead of jax: `import jax` and all libraries on
top of it use hlofront. If hlofront is installed by pip, Python processes that the script starts do
so as well, because of the environment variable HLOFRONT_AS_JAX=1.

example:
  python -m hlofront as-jax train.py --steps 100
  python -m hlofront as-jax -m pytest tests
"""


def add_parser(commands: Commands) -> None:
    """Add the command `as-jax` to the command line's parser."""
    as_jax = add_command(commands, "as-jax", "a script whose `import jax` gives hlofront", _HELP)
    as_jax.add_argument("-m", dest="is_module", action="store_true", help="SCRIPT is a module")
    as_jax.add_argument("script", metavar="SCRIPT", help="a Python file, or a module after -m")
    as_jax.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")
    as_jax.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    open_names()
    os.environ["HLOFRONT_AS_JAX"] = "1"
    sys.argv = [options.script, *options.arguments]
    try:
        if options.is_module:
            runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(options.script))
            runpy.run_path(options.script, run_name="__main__")
    except Exception as error:
        # The error ends the script as under `python SCRIPT`.
        shown = error.with_traceback(_from_script(error.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
        return 1
    return 0


def _from_script(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without its first frames, which belong to this module and runpy."""
    while frames is not None and frames.tb_frame.f_globals.get("__name__") in (__name__, "runpy"):
        frames = frames.tb_next
    return frames
