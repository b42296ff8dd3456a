"""Arrays sent between processes by jaxlib's transfer servers: no group of processes is needed."""

from typing import TYPE_CHECKING

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array
from hlofront.bridge.transfer import (
    TransferConnection,
    TransferServer,
    await_pull_flat,
    error_array,
    pull_flat,
    start_transfer_server,
)

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["TransferConnection", "TransferServer", "make_error_array", "start_transfer_server"]


def _pull(self: object, uuid: int, xs: PyTree, timeout: "datetime | None" = None) -> PyTree:
    """Fetch a pytree of arrays from the server that this is a connection to.

    Args:
      uuid: the number under which the server awaits the request.
      xs: a pytree of ShapeDtypeStructs with shardings, of the requested arrays.
      timeout: the time until which to wait.

    Returns:
      A pytree of arrays.
    """
    structs, structure = tree.tree_flatten(xs)
    if not structs:
        return xs
    client = next(iter(structs[0].sharding.device_set)).client
    options = {} if timeout is None else {"timeout": timeout}
    return structure.unflatten(pull_flat(self, uuid, client, structs, **options))


def _await_pull(self: object, uuid: int, arrays: PyTree, timeout: "datetime | None" = None) -> None:
    """Keep a pytree of arrays until another process pulls them.

    Args:
      uuid: the number under which that process requests them.
      arrays: the pytree of arrays.
      timeout: the time until which to keep them.
    """
    options = {} if timeout is None else {"timeout": timeout}
    await_pull_flat(self, uuid, tree.tree_leaves(arrays), **options)


# Methods of jaxlib's classes, like those of its arrays.
TransferConnection.pull = _pull
TransferServer.await_pull = _await_pull


def make_error_array(aval: object, message: object) -> Array:
    """Return an array of this type that raises an error where its elements are read.

    Args:
      aval: an object with a shape, dtype and sharding.
      message: the text of the error.
    """
    client = next(iter(aval.sharding.device_set)).client
    return error_array(client, aval, str(message))
