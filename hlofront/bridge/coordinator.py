"""The process that runs the coordination service of a group; coordination.py starts it as a script.

The process is separate so that the service outlives the process of the group that started it: the
others then learn which process has ended, instead of being ended by jaxlib. It prints "ready" when
the service listens, and ends when its input has ended and no process is connected any more.
This file imports nothing of hlofront.
"""

import importlib
import json
import os
import pathlib
import sys
import time
from typing import Any

# The seconds between counts of connections, and for which there must be none.
_PERIOD, _GRACE = 1.0, 10.0


def connections(port: int) -> int:
    """Return the number of open TCP connections to a port of this machine; 0 except on Linux."""
    count = 0
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        path = pathlib.Path(table)
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        for line in lines:
            _, local, _, connection_state, *_ = line.split()
            count += int(local.rpartition(":")[2], 16) == port and connection_state == "01"
    return count


def main(
    address: str,
    processes: int,
    heartbeat_timeout: int,
    shutdown_timeout: int,
    mutual_tls: dict[str, str],
) -> None:
    """Run the service until the group has ended."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    jaxlib: Any = importlib.import_module("jaxlib._jax")
    try:
        service = jaxlib.get_distributed_runtime_service(
            address,
            processes,
            heartbeat_timeout=heartbeat_timeout,
            shutdown_timeout=shutdown_timeout,
            recoverable=True,
            **mutual_tls,
        )
    except Exception as error:
        print(f"error {error}".splitlines()[0], flush=True)
        return
    print("ready", flush=True)
    sys.stdin.buffer.read()
    # Readers of the starting process's standard error must not have to wait for this process.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    port = int(address.rpartition(":")[2])
    alone_since = time.monotonic()
    while time.monotonic() - alone_since < _GRACE:
        time.sleep(_PERIOD)
        if connections(port):
            alone_since = time.monotonic()
    service.shutdown()


if __name__ == "__main__":
    processes, heartbeat, shutdown = map(int, sys.argv[2:5])
    main(sys.argv[1], processes, heartbeat, shutdown, json.loads(sys.argv[5]))
