"""The command `bisect`: the first jaxlib or git revision at which a function's program changes."""

import argparse
import json
from typing import TextIO

from hlofront.cli.loading import load_call
from hlofront.cli.options import Commands, add_args, add_command
from hlofront.cli.progress import announce, finish
from hlofront.inspect.target import UsageError

_BISECT_HELP = """\
Finds the first version of jaxlib, or the first git revision, at which the compiled program of a
function changes, and shows the difference. A change is a difference in the optimized HLO, a
condition on a figure, or the verdict of a command that reads the HLO.

example:
  python -m hlofront bisect model.py:step --at v1..HEAD
  python -m hlofront bisect model.py:step --at v1..HEAD --target tpu:v5e:2x2
  python -m hlofront bisect model.py:step --jaxlib 0.10.2..0.12.0.1 --when 'flops>1e9'
  python -m hlofront bisect model.py:step --at HEAD~20..HEAD --command '! grep -q custom-call'
"""


def add_parser(commands: Commands) -> None:
    """Add the command `bisect` to the command line's parser."""
    bisect = add_command(
        commands, "bisect", "the first version at which a program changes", _BISECT_HELP
    )
    bisect.add_argument("target_function", metavar="FILE:FUNCTION", help="the function")
    add_args(bisect)
    ranges = bisect.add_mutually_exclusive_group(required=True)
    ranges.add_argument("--jaxlib", metavar="A..B", help="versions, or a list: 0.10.2,0.11.2")
    ranges.add_argument("--at", metavar="A..B", help="git revisions")
    bisect.add_argument(
        "--target", metavar="DEVICE", help="compile revisions for it, attached or not"
    )
    questions = bisect.add_mutually_exclusive_group()
    questions.add_argument(
        "--when",
        metavar="CONDITION",
        help="on flops, bytes, arguments, results, temporaries, code (bytes), compile_seconds or "
        "run_seconds, such as 'flops>1e9'",
    )
    questions.add_argument(
        "--command",
        dest="shell",
        metavar="COMMAND",
        help="reads the HLO; exit status 0: unchanged, 125: skip this version, any other: changed",
    )
    bisect.add_argument("--json", action="store_true", help="print JSON")
    bisect.add_argument("--verbose", action="store_true", help="list all changes")
    bisect.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    from hlofront.inspect.bisection import bisect
    from hlofront.inspect.comparison.environments import NoEnvironment

    function, args = load_call(options.target_function, options.args)
    try:
        bisection = bisect(
            function,
            *args,
            jaxlib=options.jaxlib,
            at=options.at,
            target=options.target,
            when=options.when,
            command=options.shell,
            file=options.target_function,
            specs=options.args,
            tell=announce,
        )
    except (ValueError, NoEnvironment) as error:
        raise UsageError(str(error)) from error
    finish()
    if options.json:
        difference = bisection.difference
        report = {
            "before": bisection.before and bisection.before.label,
            "after": bisection.after and bisection.after.label,
            "skipped": bisection.skipped,
            "reason": bisection.reason,
            "tried": [version._asdict() for version in bisection.tried],
            "difference": json.loads(difference.json()) if difference is not None else None,
        }
        print(json.dumps(report, indent=1), file=out)
    else:
        print(bisection.text(verbose=options.verbose), file=out)
    return 0 if bisection.after is not None else 1
