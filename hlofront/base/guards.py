"""Guards that jaxlib's C++ enforces on transfers, threads and garbage collection."""

import contextlib
from collections.abc import Generator

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
    """Return a context manager that sets the transfer guards of this thread.

    Args:
      new_val: "allow"; "log" or "disallow" for implicit transfers; "log_explicit" or
        "disallow_explicit" for all transfers, including those by device_put; None for the defaults.
    """
    with contextlib.ExitStack() as stack:
        for option in (_every_transfer_guard, *_transfer_guards.values()):
            stack.enter_context(option(new_val))
        yield


def _enforce(field: str, option: Option, levels: object) -> None:
    """Set a field of jaxlib's guard state whenever an option changes.

    Args:
      field: the field's name.
      option: the option to follow.
      levels: jaxlib's enumeration of the field's values.
    """

    def update_guard(value: str | None, local: bool) -> None:
        guards = state.guards.thread_local_state() if local else state.guards.global_state()
        level = None if value is unset or value is None else getattr(levels, value.upper())
        setattr(guards, field, level)

    option.watch(update_guard)


def _set_every_guard(value: str | None, local: bool) -> None:
    # Within a thread, transfer_guard() sets and restores each of them itself.
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
