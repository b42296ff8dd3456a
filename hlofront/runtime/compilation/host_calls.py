"""The host side of callbacks: the functions that compiled programs call, and their failures."""

import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import filter_traceback
from hlofront.base.config import options
from hlofront.base.dtypes import array_dtype, issubdtype
from hlofront.base.elements import NumPyDType
from hlofront.base.option import Override
from hlofront.base.typing import Array, ArrayLike, NumPyArray
from hlofront.bridge import failures, state
from hlofront.bridge.client import Client, host_transfers
from hlofront.core.aval import Avals, ShapedArray
from hlofront.pjrt import clients
from hlofront.primitives.arrays.reducing import greatest_value, least_value
from hlofront.runtime.array.key_array import array_of
from hlofront.runtime.sharding.cpu_queue import on_cpu
from hlofront.runtime.sharding.placement import DevicePlacement, host_put, placement_on

if TYPE_CHECKING:
    from hlofront.lowering.core.host_call import HostCall

Result = TypeVar("Result")

_logger = logging.getLogger(__name__)
_default_device = options["jax_default_device"]


class HostFailures:
    """The exceptions of a program's callbacks, which are raised immediately or kept to the end.

    A device that raises one leaves the program, and other devices that exchange values with it
    would wait forever. Where exceptions are kept, the callback returns substitutes for its results,
    the program runs to its end, and then the runtime raises the first exception.
    """

    __slots__ = ("are_kept", "count", "first")

    def __init__(self):
        self.are_kept = False
        # The first exception of a run, with the name of the primitive that made the call.
        self.first: tuple[str, BaseException] | None = None
        # How many callbacks failed in a run.
        self.count = 0

    def keep(self, name: str, error: BaseException) -> None:
        """Keep the exception of a call that the primitive `name` made."""
        if self.first is None:
            self.first = name, error
        self.count += 1

    def take_error(self) -> failures.JaxRuntimeError | None:
        """Return the error of the run that has ended, or None, and forget what was kept."""
        first, self.first, self.count = self.first, None, 0
        return None if first is None else callback_error(*first)


def host_function(call: "HostCall", client: Client, host_failures: HostFailures) -> object:
    """Return the host function of a callback, which a device's runtime calls with NumPy arrays.

    TPUs send its operands and receive its results through numbered channels.
    """
    if call.takes_buffers:
        return _side_of_buffers(call)
    side = side_of(call, host_failures)
    return side if call.channels is None else host_transfers(client, side, *call.channels)


def side_of(
    call: "HostCall", host_failures: HostFailures
) -> Callable[..., tuple[NumPyArray | None, ...]]:
    """Return the function that runs a callback on NumPy arrays, and returns NumPy arrays.

    In an ordered call None represents the token, the first of its operands and results.
    """
    by_transfers = call.channels is not None

    def on_host(*buffers: NumPyArray | None) -> tuple[NumPyArray | None, ...]:
        # Any thread of the runtime may call this, without the user's thread-local options.
        before = state.enable_x64.swap_local(call.x64)
        try:
            if by_transfers:
                # A call without operands receives a dummy number.
                buffers = buffers[: len(call.avals_in)]
            elif call.ordered:
                buffers = buffers[1:]
            arrays = buffers if call.takes_numpy else as_arrays(buffers, call.avals_in)
            with on_cpu.callback() if host_failures.are_kept else nullcontext():
                results = call_on_the_host(call.name, call.function, arrays)
            results = checked_results(call.name, results, call.avals_out)
        except BaseException as error:
            if not host_failures.are_kept:
                # jaxlib raises its own error in the user's thread, with this one as its cause.
                origin, text = describe_failure(call.name, error)
                filter_traceback(error)
                failures.raise_recorded(error, origin, text)
            results = substitutes(call.avals_out, host_failures.count)
            host_failures.keep(call.name, error)
        finally:
            state.enable_x64.set_local(before)
        if by_transfers:
            return received(results)
        return (None, *results) if call.ordered else results

    return on_host


def _side_of_buffers(call: "HostCall") -> Callable[..., tuple[()]]:
    """Return the function that passes the buffers of operands and results to a callback."""

    def on_host(context: object, *buffers: object) -> tuple[()]:
        before = state.enable_x64.swap_local(call.x64)
        try:
            call.function(context, buffers)
        except BaseException as error:
            origin, text = describe_failure(call.name, error)
            filter_traceback(error)
            failures.raise_recorded(error, origin, text)
        finally:
            state.enable_x64.set_local(before)
        return ()

    return on_host


def received(results: Sequence[NumPyArray]) -> tuple[NumPyArray, ...]:
    """Return the arrays to send through channels: no empty ones; a dummy number for no results."""
    return tuple([x for x in results if x.size]) if results else (np.zeros((), np.float32),)


def as_arrays(values: Iterable[NumPyArray], avals: Iterable[ShapedArray]) -> list[Array]:
    """Convert NumPy arrays to arrays of these avals on the host's own device."""
    placement = placement_on(clients.local_devices("cpu")[0])
    return [
        array_of(aval, partial(_host_put, x, placement))
        for x, aval in zip(values, avals, strict=True)
    ]


def _host_put(x: NumPyArray, placement: DevicePlacement, aval: ShapedArray) -> Array:
    return host_put(x, aval, placement, True)


def on_the_host() -> Override:
    """Return a context with values on the CPU, as a device that waits for a callback is blocked."""
    return _default_device(clients.local_devices("cpu")[0])


# The public names of the primitives, for log messages.
_PUBLIC_NAMES = {
    "pure_callback": "jax.pure_callback",
    "io_callback": "jax.io_callback",
    "debug_callback": "jax.debug.callback",
    "debug_print": "jax.debug.print",
    "pallas_call": "a kernel",
}


def call_on_the_host(
    name: str, function: Callable[..., Result], arrays: Iterable[object]
) -> Result:
    """Call a user's function for the callback primitive `name`; log its exception and reraise it.

    The program may never report the exception, if nothing waits for the results or the device
    fails first.
    """
    try:
        with on_the_host():
            return function(*arrays)
    except Exception as error:
        _logger.error("%s failed", _PUBLIC_NAMES[name], exc_info=error)
        raise


def checked_results(name: str, results: Sequence[object], avals: Avals) -> tuple[NumPyArray, ...]:
    """Return the flat results of a callback as NumPy arrays of these avals.

    Results are ignored if there are no avals.

    Raises:
      TypeError: if the number of results, or a result's shape or dtype, is wrong.
    """
    if not avals:
        return ()
    if len(results) != len(avals):
        raise TypeError(
            f"{name}: Mismatched number of outputs from callback. Expected: {len(avals)}, "
            f"Actual: {len(results)}. It must return what result_shape_dtypes says."
        )
    checked: list[NumPyArray] = []
    for i, (result, aval) in enumerate(zip(results, avals, strict=True)):
        array = np.asarray(result)
        dtype = array_dtype(array.dtype)
        if dtype != aval.dtype:
            raise TypeError(
                f"{name}: Incorrect output dtype for return value #{i}: Expected: {aval.dtype}, "
                f"Actual: {dtype}. Convert it in the callback, as in np.asarray(result, "
                f"{aval.dtype.name!r}), or change result_shape_dtypes."
            )
        if array.shape != aval.shape:
            raise TypeError(
                f"{name}: Incorrect output shape for return value #{i}: Expected: {aval.shape}, "
                f"Actual: {array.shape}. Reshape it in the callback, or change "
                "result_shape_dtypes."
            )
        checked.append(np.asarray(array, dtype))
    return tuple(checked)


def substitutes(avals: Avals, failed: int) -> tuple[NumPyArray, ...]:
    """Return results of a callback that failed, which the program computes with until it ends.

    They are NaN or 0, then the greatest and the least number in turn, so that a loop that waits
    for a value of the callback ends.

    Args:
      avals: the types of the results.
      failed: how many callbacks failed before in this run of the program.
    """
    return tuple(
        [np.full(aval.shape, _substitute(aval.dtype, failed), aval.dtype) for aval in avals]
    )


def _substitute(dtype: NumPyDType, failed: int) -> ArrayLike:
    if failed % 3 == 0:
        return np.array(np.nan if issubdtype(dtype, np.inexact) else 0).astype(dtype)
    return greatest_value(dtype) if failed % 3 == 1 else least_value(dtype)


def callback_error(name: str, error: BaseException) -> failures.JaxRuntimeError:
    """Return the error of a program whose callback failed, with its exception as the cause."""
    _, text = describe_failure(name, error)
    filter_traceback(error)
    raised = failures.JaxRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}")
    raised.__cause__ = error
    return raised


def describe_failure(name: str, error: BaseException) -> tuple[str, str]:
    """Return the text of a callback's exception, and the message of the error that it causes."""
    said = "".join(traceback.format_exception_only(error)).strip()
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if source.is_user_file(frame.f_code.co_filename):
            where = f" at {frame.f_code.co_filename}:{line}"
    origin = f"It was raised{where} by a function that the program calls ({name})"
    return (
        f"{origin}.",
        f"{said}\n{origin}, and is the cause of this error, with its own traceback.",
    )
