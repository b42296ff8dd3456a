"""The table of RECORD.md: a row for each run."""

import datetime
import pathlib
import platform
from importlib import metadata

from tests.fuzz import ledger
from tests.soak.running import Outcome

PATH = pathlib.Path(__file__).with_name("RECORD.md")


def row(name: str, minutes: float, outcome: Outcome) -> str:
    """Return the row of a run: its finds are a count, until somebody writes what became of them."""
    cells = (
        datetime.date.today().isoformat(),
        ledger.machine(),
        f"Python {platform.python_version()}, jaxlib {metadata.version('jaxlib')}",
        name,
        f"{minutes:g}",
        f"{outcome.operations:,}",
        f"{outcome.resident:,.1f}",
        f"{outcome.regions:,}",
        f"{len(outcome.finds)} {ledger.TO_BE_KEPT}" if outcome.finds else "0",
    )
    return f"| {' | '.join(cells)} |"


def add(row: str, path: pathlib.Path = PATH) -> None:
    with path.open("a") as file:
        print(row, file=file)
