"""Processes that answer a benchmark's requests, one of each library, so that they take turns."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]


class LibraryProcess:
    """A process that runs a benchmark's script with `--inside LIBRARY` and answers its requests."""

    def __init__(self, script: pathlib.Path, library: str, python: str, **environment: str):
        """Start the process; `environment` adds to the variables that it inherits."""
        self.library = library
        self.process = subprocess.Popen(
            [python, "-W", "ignore", str(script), "--inside", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "HLOFRONT_WARN_RECOMPILES": "0",
                **environment,
            },
        )

    def ask(self, *request: object) -> Any:
        """Return the answer to a request, both of which JSON can express.

        Raises:
          SystemExit: if the process has ended.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.library}'s process ended at {request}")
        return json.loads(line)

    def close(self) -> None:
        """End the input, and wait until the process has ended."""
        self.process.communicate()


def answer_requests(answer: Callable[..., object]) -> None:
    """Answer the requests of the process that started this one, until the input ends."""
    for line in sys.stdin:
        print(json.dumps(answer(*json.loads(line))), flush=True)
