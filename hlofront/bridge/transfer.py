"""jaxlib's servers that transfer arrays between processes, and arrays whose reads raise errors."""

from typing import Any

from hlofront.bridge import state
from hlofront.bridge.client import Client

# Methods are added to the classes, whose stubs lack them.
TransferConnection: Any = state.extension.TransferConnection
TransferServer: Any = state.extension.TransferServer
start_transfer_server: Any = state.extension.start_transfer_server
error_array: Any = state.extension._make_error_array


def pull_flat(
    connection: Any, uuid: int, client: Client, structs: list[Any], **options: Any
) -> list[Any]:
    """Fetch arrays of these types from the server of a connection."""
    return connection._pull_flat(uuid, client, structs, **options)


def await_pull_flat(server: Any, uuid: int, arrays: list[Any], **options: Any) -> None:
    """Keep arrays until another process pulls them from a server."""
    server._await_pull_flat(uuid, arrays, **options)
