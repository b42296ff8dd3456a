"""pure_callback and io_callback: Python functions called by programs or eagerly."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import canonicalize_dtype, dtype_of
from hlofront.base.elements import ExtendedDType
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.bridge.client import Device, SingleDeviceSharding
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.rules import run
from hlofront.core.trace import process
from hlofront.higher_order.calls import callback_batching
from hlofront.pjrt import clients
from hlofront.primitives.calls.callbacks import (
    FlatCallback,
    check_vmap_method,
    io_callback_p,
    pure_callback_p,
)
from hlofront.runtime.array.key_array import array_of, base_of
from hlofront.runtime.compilation.host_calls import (
    call_on_the_host,
    callback_error,
    checked_results,
)
from hlofront.runtime.sharding.device_assignment import first_device
from hlofront.runtime.sharding.placement import choose_device, put
from hlofront.transforms.flatten import check_hashable

# Imported for its side effect: it registers the batch rules of callbacks.
del callback_batching


@boundary
def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: SingleDeviceSharding | None = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> tree.PyTree:
    """Call a Python function without side effects from inside a program.

    The program may call it more or less often than the code says, or not at all where nothing
    uses its result.

    Args:
      callback: a function of pytrees of arrays, which are on the CPU. It returns a pytree of
        arrays or of NumPy arrays.
      result_shape_dtypes: the type of its result: a pytree of objects with a shape and a dtype,
        such as ShapeDtypeStruct.
      *args: its arguments, pytrees of arrays.
      sharding: the sharding of the single device that should call it; None for any.
      vmap_method: the behavior under vmap. "sequential" calls it once per example, in a loop, and
        "sequential_unrolled" without a loop. The other methods call it once, with arrays that have
        the batch axis in front, and it must return such arrays: "broadcast_all" repeats arguments
        that are not mapped, "expand_dims" adds a batch axis of size 1 to them, and
        "legacy_vectorized" leaves them unchanged. None raises an error.
      **kwargs: its keyword arguments.

    Returns:
      A pytree of arrays with the structure and types of `result_shape_dtypes`.

    Raises:
      ValueError: if `vmap_method` is none of those, or `result_shape_dtypes` has 64-bit types and
        those are off.
      JaxRuntimeError: if the callback raises an exception, which is the error's cause, or returns
        a wrong result. A program that is running already may raise it where its results are used.

    Example:
      >>> on_host = lambda x: np.sort(x)
      >>> of_type = jax.ShapeDtypeStruct((3,), np.float32)
      >>> jax.jit(lambda x: jax.pure_callback(on_host, of_type, x))(jnp.array([3.0, 1.0, 2.0]))
      Array([1., 2., 3.], dtype=float32)
    """
    check_vmap_method(vmap_method)
    leaves, flat, avals, out_tree = _flat(
        "pure_callback", callback, result_shape_dtypes, args, kwargs
    )
    results = process(
        pure_callback_p,
        tuple(leaves),
        {
            "callback": flat,
            "result_avals": avals,
            "sharding": _one_device("pure_callback", sharding),
            "vmap_method": vmap_method,
        },
    )
    return tree.tree_unflatten(out_tree, results)


@boundary
def io_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: SingleDeviceSharding | None = None,
    ordered: bool = False,
    **kwargs: object,
) -> tree.PyTree:
    """Call a Python function that has side effects from inside a program.

    It is called exactly as often as the code says, even where nothing uses its result.

    Args:
      callback: a function of pytrees of arrays, which are on the CPU. It returns a pytree of
        arrays or of NumPy arrays.
      result_shape_dtypes: the type of its result: a pytree of objects with a shape and a dtype,
        such as ShapeDtypeStruct; None for no result.
      *args: its arguments, pytrees of arrays.
      sharding: the sharding of the single device that should call it; None for any.
      ordered: whether it is called in order with other ordered callbacks, of this program and of
        those called before and after it.
      **kwargs: its keyword arguments.

    Returns:
      A pytree of arrays with the structure and types of `result_shape_dtypes`.

    Raises:
      ValueError: if `result_shape_dtypes` has 64-bit types and those are off.
      JaxRuntimeError: if the callback raises an exception, which is the error's cause, or returns
        a wrong result. A program that is running already may raise it where its results are used,
        or in effects_barrier.
    """
    leaves, flat, avals, out_tree = _flat(
        "io_callback", callback, result_shape_dtypes, args, kwargs
    )
    results = process(
        io_callback_p,
        tuple(leaves),
        {
            "callback": flat,
            "result_avals": avals,
            "sharding": _one_device("io_callback", sharding),
            "ordered": ordered,
        },
    )
    return tree.tree_unflatten(out_tree, results)


def _flat(
    name: str,
    callback: Callable[..., object],
    result_shape_dtypes: object,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> tuple[list[ArrayLike], FlatCallback, tuple[ShapedArray, ...], tree.PyTreeDef]:
    """Flatten a callback: return its flat arguments and function, result avals and structure."""
    check_hashable(callback)
    leaves, in_tree = tree.tree_flatten((args, kwargs))
    for path, leaf in tree.tree_leaves_with_path((args, kwargs)):
        try:
            typeof(leaf)
        except TypeError as error:
            raise TypeError(
                f"Error interpreting argument to {name} as a JAX value: the one at "
                f"{_argument_path(path)} is {leaf!r} of type {type(leaf)}. Bind values that are "
                "not arrays with functools.partial."
            ) from error
    results, out_tree = tree.tree_flatten(result_shape_dtypes)
    avals = tuple(_result_aval(name, result) for result in results)
    return leaves, FlatCallback(callback, in_tree), avals, out_tree


def _argument_path(path: tree.KeyPath) -> str:
    """Return the path of an argument, such as `args[0]['a']`."""
    which, *rest = path
    return ("args", "kwargs")[which.idx] + tree.keystr(tuple(rest))


def _result_aval(name: str, result: object) -> ShapedArray:
    if not hasattr(result, "shape") or not hasattr(result, "dtype"):
        raise AttributeError(
            f"{name}: result_shape_dtypes must have leaves with a shape and a dtype, such as "
            f"ShapeDtypeStruct((), 'float32'); got {result!r} of type {type(result)}"
        )
    dtype = dtype_of(result.dtype)
    if isinstance(dtype, ExtendedDType):
        raise TypeError(
            f"{name}: a callback returns NumPy arrays, and result_shape_dtypes has {dtype}. Return "
            "the data, and make it into such an array outside, as random.wrap_key_data does."
        )
    if canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            f"{name}: result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is "
            f"disabled, and has {dtype.name}. Return {canonicalize_dtype(dtype).name} from the "
            "callback, or turn 64-bit types on."
        )
    return ShapedArray(tuple(result.shape), dtype)


def _one_device(name: str, sharding: object) -> SingleDeviceSharding | None:
    """Return the user's sharding; raise an error unless it has one device or is None."""
    if sharding is not None and not isinstance(sharding, SingleDeviceSharding):
        raise NotImplementedError(  # JAX raises this class.
            f"{name} takes a SingleDeviceSharding, which says the device to call from; got "
            f"{sharding!r} of type {type(sharding)}"
        )
    return sharding


# ---- eager calls ---------------------------------------------------------------------------------


def _put_operand(x: ArrayLike, host: Device) -> Array:
    """Return an operand of a callback as an array on the host's device."""
    aval = typeof(x).strip_weak_type()
    return array_of(aval, lambda stored: put(base_of(x), stored, host, True))


def _run_now(
    name: str, callback: Callable[..., Sequence[object]], args: ArrayLikes, avals: Avals
) -> list[Array]:
    """Call a user's callback eagerly; return its results as arrays."""
    where, committed = choose_device(args)
    device = first_device(where)
    # A result on one of several devices may be used on the others.
    committed = committed and device is where
    host = clients.local_devices("cpu")[0]
    try:
        operands = [_put_operand(x, host) for x in args]
        results = call_on_the_host(name, callback, operands)
        results = checked_results(name, results, avals)
    except Exception as error:
        # A program would raise this class of error, and users catch one class in both cases.
        raise callback_error(name, error) from error
    return [
        put(x, aval, device, committed, copied=True) for x, aval in zip(results, avals, strict=True)
    ]


@run(pure_callback_p)
def _(*args: ArrayLike, callback: FlatCallback, result_avals: Avals, **_: object) -> list[Array]:
    function: Callable[..., Sequence[object]] = callback
    if not any(aval.size for aval in result_avals):
        # XLA omits the call in a program, too.
        function = lambda *_: [np.zeros(aval.shape, aval.dtype) for aval in result_avals]
    return _run_now("pure_callback", function, args, result_avals)


@run(io_callback_p)
def _(*args: ArrayLike, callback: FlatCallback, result_avals: Avals, **_: object) -> list[Array]:
    return _run_now("io_callback", callback, args, result_avals)
