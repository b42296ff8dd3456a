"""Checks types: `python -m tests.check.types` writes this checkout's stubs and runs a type checker.

pyrefly, which takes ten seconds, is part of `./check`. pyright, which most editors use, takes
minutes and is part of `./check rest`: `python -m tests.check.types pyright`. It also checks what
types users' programs get, in tests/conventions/uses_of_types.py.
"""

import os
import subprocess
import sys

from tests.check.running import ROOT

# A nursery of 128 MiB (V8's default is 16) takes an eighth off the time: pyright allocates a lot.
NODE_OPTIONS = "--max-semi-space-size=128"


def main(checker: str = "pyrefly") -> int:
    subprocess.run([sys.executable, "scripts/write_stubs.py"], cwd=ROOT, check=True)
    command = {
        "pyrefly": ["check", "--output-format", "min-text", "--python-interpreter-path"],
        "pyright": ["-p", "pyproject.toml", "--pythonpath"],
    }[checker]
    environment = {"NODE_OPTIONS": NODE_OPTIONS, **os.environ}
    command = [sys.executable, "-m", checker, *command, sys.executable]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
