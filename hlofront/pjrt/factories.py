"""Platforms whose clients are made by functions that other packages register."""

# pyright: strict

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import Client

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import DeviceTopology

_logger = logging.getLogger(__name__)


class Factory(NamedTuple):
    """The maker of the client of a platform, and the platform's priority among others."""

    make_client: Callable[[], Client | None]
    priority: int
    fail_quietly: bool
    experimental: bool
    make_topology: Callable[..., "DeviceTopology"] | None
    c_api: object


factories: dict[str, Factory] = {}
# Platform -> why its client could not be made.
failures: dict[str, str] = {}


def make_client(name: str) -> Client:
    """Create the client of a platform by its registered function.

    Raises:
      RuntimeError: if the function raises an error, or returns None.
    """
    factory = factories[name]
    if factory.experimental:
        _logger.warning(
            "Platform %r is experimental and not all functionality may be correctly supported!",
            name,
        )
    try:
        client = factory.make_client()
        if client is None:
            raise RuntimeError(f"Could not initialize backend {name!r}")
    except Exception as error:
        failures[name] = str(error)
        raise RuntimeError(
            f"Unable to initialize backend {name!r}: {error}. Its client is made by a function "
            "that register_backend_factory was given; set JAX_PLATFORMS=cpu to continue without it."
        ) from error
    failures.pop(name, None)
    return client
