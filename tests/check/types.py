"""Checks types: `python -m tests.check.types` writes this checkout's stubs and runs pyright."""

import subprocess
import sys

from tests.check.running import ROOT


def main() -> int:
    subprocess.run([sys.executable, "scripts/write_stubs.py"], cwd=ROOT, check=True)
    command = [sys.executable, "-m", "pyright", "-p", "pyproject.toml"]
    return subprocess.run([*command, "--pythonpath", sys.executable], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
