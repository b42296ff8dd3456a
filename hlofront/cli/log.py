"""The command `log`: a page about a whole run, made from the files that HLOFRONT_LOG requested."""

import argparse
import json
import pathlib
from typing import TextIO

from hlofront.cli.options import Commands, add_command
from hlofront.cli.program_files import write_file
from hlofront.cli.progress import announce, finish
from hlofront.inspect.target import UsageError
from hlotools.html.program_page import page
from hlotools.run_log.log_page import log_page
from hlotools.run_log.records import LogError, RunRecords, read_log
from hlotools.run_log.summary import RunSummary

_HELP = """\
Makes a page about a whole run: what was traced, compiled and recompiled, and why, and cache hits.
The run must have HLOFRONT_LOG=FOLDER set; each process writes its own file to the folder.

example:
  HLOFRONT_LOG=run python train.py
  python -m hlofront log run
"""


def add_parser(commands: Commands) -> None:
    """Add the command `log` to the command line's parser."""
    command = add_command(commands, "log", "a page over a whole run, made by HLOFRONT_LOG", _HELP)
    command.add_argument("folder", metavar="FOLDER", help="the folder that HLOFRONT_LOG named")
    command.add_argument("--html", metavar="OUT", help="the page (FOLDER/log.html)")
    command.add_argument(
        "--pages",
        type=int,
        default=20,
        metavar="N",
        help="the number of programs, slowest first, that get a page of their HLO (20)",
    )
    command.add_argument("--most", type=int, default=10, metavar="N", help="how many rows (10)")
    command.add_argument("--json", action="store_true", help="print the events as JSON")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    try:
        run = read_log(options.folder)
    except (LogError, OSError) as error:
        raise UsageError(str(error)) from error
    if options.json:
        rows = [{"process": record.process, **record.facts} for record in run.records]
        print(json.dumps(rows, indent=1), file=out)
        if not options.html:
            return 0
    summary = RunSummary(run)
    _make_pages(run, summary, options.pages)
    finish()
    path = options.html or str(pathlib.Path(options.folder) / "log.html")
    if not options.json:
        print(summary.text(options.most), file=out)
    write_file(path, log_page(run, path))
    return 0


def _make_pages(run: RunRecords, summary: RunSummary, most: int) -> None:
    """Write pages of the programs that took longest, next to the files of their optimized HLO."""
    slowest = summary.slowest[: max(most, 0)]
    for number, record in enumerate(slowest, 1):
        announce(f"making the page of {record.name} ({number} of {len(slowest)})")
        file = run.program_file(record, "hlo")
        if file is None or file.with_suffix(".html").exists():
            continue
        try:
            made = page(file.read_text(encoding="utf-8"), title=record.name)
            file.with_suffix(".html").write_text(made, encoding="utf-8")
        except (ValueError, OSError) as error:
            raise UsageError(f"{file}: {error}") from error
