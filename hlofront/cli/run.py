"""The command `run`: starts a script as a group of several processes on this machine."""

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from typing import IO, TextIO

from hlofront.cli.options import Commands, add_command

_HELP = """\
Starts a script as several processes of one group on this machine, to try out a program that will
run on several machines. Each process has its own CPU devices, and `jax.distributed.initialize()`
without arguments joins them. Lines that a process prints are prefixed with its number. If one
process fails, the others are terminated.

example:
  python -m hlofront run --processes 2 --devices 4 train.py --steps 100
"""
# How long processes have to end after SIGTERM, in seconds.
_TO_END = 5.0


def add_parser(commands: Commands) -> None:
    """Add the command `run` to the command line's parser."""
    run = add_command(commands, "run", "a script as several processes of one group", _HELP)
    run.add_argument("--processes", type=_positive, default=2, metavar="N", help="how many (2)")
    run.add_argument(
        "--devices", type=_positive, default=1, metavar="D", help="CPU devices of each (1)"
    )
    run.add_argument("-m", dest="is_module", action="store_true", help="SCRIPT is a module")
    run.add_argument("script", metavar="SCRIPT", help="a Python file, or a module after -m")
    run.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")
    run.set_defaults(run=_run)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"at least 1: got {number}")
    return number


def _run(options: argparse.Namespace, out: TextIO) -> int:
    module = ["-m"] if options.is_module else []
    command = [sys.executable, *module, options.script, *options.arguments]
    return run_group(command, options.processes, options.devices, out)


@contextlib.contextmanager
def reserved_port() -> Generator[int, None, None]:
    """Reserve a TCP port of this machine for a group, on which its process 0 may then listen.

    Other groups that start at the same time do not take the port.
    """
    with socket.socket() as reservation:
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reservation.bind(("127.0.0.1", 0))
        yield int(reservation.getsockname()[1])


def free_port() -> int:
    """Return the number of an unused TCP port of this machine."""
    with reserved_port() as port:
        return port


def variables_of(number: int, processes: int, devices: int, port: int) -> dict[str, str]:
    """Return the environment variables of one process of a group on this machine."""
    return {
        "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
        "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{port}",
        "JAX_NUM_PROCESSES": str(processes),
        "JAX_PROCESS_ID": str(number),
        "JAX_NUM_CPU_DEVICES": str(devices),
        "JAX_PLATFORMS": "cpu",
        "PYTHONUNBUFFERED": "1",
    }


def run_group(command: Sequence[str], processes: int, devices: int, out: TextIO) -> int:
    """Run a command as a group of processes; return 0, or the status of the first that failed.

    Args:
      command: the program and its arguments.
      processes: the number of processes.
      devices: the number of CPU devices of each process.
      out: the stream for their output; each line is prefixed with the number of its process.
    """
    with reserved_port() as port:
        return _run_group(command, processes, devices, port, out)


def _run_group(command: Sequence[str], processes: int, devices: int, port: int, out: TextIO) -> int:
    group = [
        subprocess.Popen(
            command,
            env={**os.environ, **variables_of(number, processes, devices, port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        for number in range(processes)
    ]
    width = len(str(processes - 1))
    lock = threading.Lock()

    def copy(number: int, lines: IO[str]) -> None:
        for line in lines:
            with lock:
                out.write(f"[{number:>{width}}] {line.rstrip()}\n")
                out.flush()

    readers = [
        threading.Thread(target=copy, args=(number, process.stdout), daemon=True)
        for number, process in enumerate(group)
    ]
    for reader in readers:
        reader.start()
    try:
        status = _wait(group)
    finally:
        _end(group)
    for reader, process in zip(readers, group, strict=True):
        reader.join(_TO_END)
        if process.stdout is not None:
            process.stdout.close()
    if status:
        failed = next(n for n, process in enumerate(group) if process.returncode == status)
        out.write(f"process {failed} has ended with status {status}, and the others were ended\n")
    return abs(status)


def _wait(group: "Sequence[subprocess.Popen[str]]") -> int:
    """Wait until all processes have ended or one has failed; return its status, or 0."""
    while True:
        statuses = [process.poll() for process in group]
        failed = next((status for status in statuses if status), 0)
        if failed or None not in statuses:
            return failed
        time.sleep(0.05)


def _end(group: "Sequence[subprocess.Popen[str]]") -> None:
    """Stop the processes that are still running: by SIGTERM, and after a while by SIGKILL."""
    for process in group:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + _TO_END
    for process in group:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
