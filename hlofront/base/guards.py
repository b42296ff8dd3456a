"""Options that jaxlib's C++ enforces: what transfers, threads and garbage collections may do."""

import contextlib
from collections.abc import Generator
from typing import Any

from hlofront.base.config import options
from hlofront.base.option import Option, unset
from hlofront.bridge import state

_every_transfer_guard = options["jax_transfer_guard"]
_transfer_guards = {
    "host_to_device": options["jax_transfer_guard_host_to_device"],
    "device_to_device": options["jax_transfer_guard_device_to_device"],
    "device_to_host": options["jax_transfer_guard_device_to_host"],
}


@contextlib.contextmanager
def transfer_guard(new_val: str | None) -> Generator[None]:
    """Return a context manager for what copies between host and devices do in this thread.

    Args:
      new_val: "allow"; "log" or "disallow" what was not asked for by device_put and its like;
        "log_explicit" or "disallow_explicit" all; None for the defaults.
    """
    with contextlib.ExitStack() as stack:
        for option in (_every_transfer_guard, *_transfer_guards.values()):
            stack.enter_context(option(new_val))
        yield


def _enforce(field: str, option: Option, levels: Any) -> None:
    """Have jaxlib's guards hold an option's value in the field of that name.

    Args:
      levels: jaxlib's enumeration of the values that the field takes.
    """

    def update_guard(value: str | None, local: bool) -> None:
        guards = state.guards.thread_local_state() if local else state.guards.global_state()
        level = None if value is unset or value is None else getattr(levels, value.upper())
        setattr(guards, field, level)

    option.watch(update_guard)


def _set_every_guard(value: str | None, local: bool) -> None:
    # Within a thread, transfer_guard() sets each itself, and so can restore each.
    if not local:
        for option in _transfer_guards.values():
            option.set(value)


def _set_thread_guard(value: object, local: bool) -> None:
    state.guards.update_thread_guard_global_state(value is True)


for _field, _guard in _transfer_guards.items():
    _enforce(_field, _guard, state.guards.TransferGuardLevel)
_enforce(
    "garbage_collect_array",
    options["jax_array_garbage_collection_guard"],
    state.guards.GarbageCollectionGuardLevel,
)
_every_transfer_guard.watch(_set_every_guard)
options["jax_thread_guard"].watch(_set_thread_guard)
