"""The table of LEDGER.md: a row for each run."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import subprocess
from typing import NamedTuple

PATH = pathlib.Path(__file__).with_name("LEDGER.md")
# What stands in a row until somebody writes which tests keep the finds.
TO_BE_KEPT = "(to be kept)"
_ORACLE = "HLOFRONT_ORACLE_PYTHON"


class Row(NamedTuple):
    """A run: its finds are a count, with the tests that keep them."""

    date: str
    machine: str
    versions: str
    generator: str
    seeds: str
    programs: str
    finds: str


def rows(path: pathlib.Path = PATH) -> list[Row]:
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines[1:]]


def add(
    generator: str, first: int, last: int, programs: int, finds: int, path: pathlib.Path = PATH
) -> Row:
    """Append a run to the table, and return its row."""
    row = Row(
        datetime.date.today().isoformat(),
        machine(),
        _versions(generator),
        generator,
        f"{first}..{last}",
        f"{programs:,}",
        f"{finds} {TO_BE_KEPT}" if finds else "0",
    )
    with path.open("a") as file:
        print(f"| {' | '.join(row)} |", file=file)
    return row


def machine() -> str:
    """Return the machine in words."""
    return f"{_processor()}, {os.cpu_count()} cores"


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions(generator: str) -> str:
    found = f"Python {platform.python_version()}, jaxlib {importlib.metadata.version('jaxlib')}"
    if generator == "jax":
        code = "import importlib.metadata; print(importlib.metadata.version('jax'))"
        command = [os.environ[_ORACLE], "-c", code]
        found += f", jax {subprocess.run(command, capture_output=True, text=True).stdout.strip()}"
    return found
