"""Checks types: `python -m tests.check.types` writes this checkout's stubs and runs pyright."""

import os
import subprocess
import sys

from tests.check.running import ROOT

# A nursery of 128 MiB (V8's default is 16) takes an eighth off the time: pyright allocates a lot.
NODE_OPTIONS = "--max-semi-space-size=128"


def main() -> int:
    subprocess.run([sys.executable, "scripts/write_stubs.py"], cwd=ROOT, check=True)
    command = [sys.executable, "-m", "pyright", "-p", "pyproject.toml"]
    environment = {"NODE_OPTIONS": NODE_OPTIONS, **os.environ}
    command += ["--pythonpath", sys.executable]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
