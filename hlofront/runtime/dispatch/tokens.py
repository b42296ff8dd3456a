"""The tokens with which programs with effects wait for earlier ones, and the host waits for all."""

import atexit
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array
from hlofront.bridge import failures
from hlofront.bridge.client import Device, result_handler
from hlofront.core.aval import ShapedArray
from hlofront.core.effects import Effect
from hlofront.runtime.sharding.placement import host_put, on_device, placement_on

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import ShardedToken

# (thread, ordered effect) -> (the device of the latest such program, its token).
_latest: dict[tuple[int, Effect], tuple[Device, Array]] = {}
# The tokens of programs with unordered effects, the oldest first.
_running: "deque[ShardedToken]" = deque()
# The tokens of programs whose callbacks have no effects: their results tell of errors.
_calling: "deque[ShardedToken]" = deque()
# The limit on running programs of either kind, beyond which a program waits for the oldest.
_MAX_RUNNING = 32
# The errors that effects_barrier will raise.
_failed: deque[Exception] = deque(maxlen=8)
_token_aval = ShapedArray((0,), np.dtype(np.bool_))


def new_token(device: Device) -> Array:
    """Return a token that waits for nothing: an empty boolean array, the operand of programs."""
    return host_put(np.zeros(0, np.bool_), _token_aval, placement_on(device), True)


def token_handler(device: Device) -> Callable[..., Array]:
    """Return the result handler that wraps a program's token as an array for the next program."""
    return result_handler(_token_aval, on_device(device), True)


def take_tokens(effects: Iterable[Effect], device: Device) -> list[Array]:
    """Return a token per effect, which waits for this thread's latest program with that effect."""
    thread = threading.get_ident()
    tokens: list[Array] = []
    for effect in effects:
        where, token = _latest.get((thread, effect), (device, None))
        if token is not None:
            if where != device:
                # Another device cannot wait for the token: this thread does.
                _has_failed(token)
                token = None
            elif token.is_ready() and _has_failed(token):
                # A failed program must not make the following ones fail.
                token = None
        tokens.append(new_token(device) if token is None else token)
    return tokens


def keep_tokens(effects: Iterable[Effect], device: Device, tokens: Iterable[Array]) -> None:
    """Store a token per effect, for which the next programs with these effects wait."""
    thread = threading.get_ident()
    for effect, token in zip(effects, tokens, strict=True):
        _latest[thread, effect] = (device, token)


def keep_running(token: "ShardedToken") -> None:
    """Store the token of a running program, for which effects_barrier waits."""
    _running.append(token)
    while len(_running) > _MAX_RUNNING:
        _has_failed(_running.popleft())


def keep_until_exit(token: "ShardedToken") -> None:
    """Store the token of a running program that calls Python, which must not end before it."""
    _calling.append(token)
    while len(_calling) > _MAX_RUNNING:
        _wait(_calling.popleft())


def _wait(token: "ShardedToken") -> None:
    with contextlib.suppress(failures.JaxRuntimeError):
        token.block_until_ready()


def _has_failed(token: "Array | ShardedToken") -> bool:
    """Wait for a program's token; return whether it failed, and store its error if so."""
    try:
        token.block_until_ready()
    except failures.JaxRuntimeError as error:
        _failed.append(error)
        return True
    return False


@boundary
def effects_barrier() -> None:
    """Wait until all callbacks of the programs that were started have been run.

    Raises:
      JaxRuntimeError: if a callback failed; the exception that it raised is the cause.
    """
    while _running:
        _has_failed(_running.popleft())
    for key, latest in list(_latest.items()):
        _, token = latest
        if _has_failed(token) and _latest.get(key) is latest:
            del _latest[key]
    if _failed:
        first = _failed[0]
        _failed.clear()
        raise first


@atexit.register
def _wait_for_callbacks() -> None:
    """Wait for running programs: once Python exits, they cannot call it, and end the process."""
    while _calling:
        _wait(_calling.popleft())
    effects_barrier()
