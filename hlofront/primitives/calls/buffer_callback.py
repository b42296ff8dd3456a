"""buffer_callback: Python functions that compute in the memory of a program's arrays."""

# pyright: strict

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.effects import Effects, OwnEffect, no_effects
from hlofront.core.primitive import Primitive
from hlofront.core.rules import effects, infer, jvp, transpose
from hlofront.core.trace import process
from hlofront.primitives.calls.callbacks import check_vmap_method
from hlofront.primitives.calls.ffi import check_aliases

buffer_callback_p = Primitive("buffer_callback", multiple_results=True)


class BufferCallbackEffect(OwnEffect):
    """The effect of a buffer callback that does more than compute its results."""

    __slots__ = ()

    def __str__(self) -> str:
        return "BufferCallback"


buffer_callback_effect = BufferCallbackEffect()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: PyTree,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., PyTree]:
    """Return a function of arrays whose results a Python function writes in place, on CPU or GPU.

    The Python function is called as `callback(context, results, *args, **kwargs)` with buffers
    instead of arrays, and writes the results into the buffers `results`. A buffer has a shape and a
    dtype; NumPy reads and writes it on CPUs by `np.asarray`, other libraries on GPUs by
    `__cuda_array_interface__` or DLPack. `context.stream` is the address of the stream of a GPU.

    Args:
      callback: the Python function, which returns None.
      result_shape_dtypes: the shape and dtype of each result: a pytree of ShapeDtypeStructs.
      has_side_effect: whether it is called even if nothing needs its results.
      vmap_method: how vmap calls it, as for `pure_callback`. With None, vmap raises an error.
      input_output_aliases: the results that reuse an operand's memory: positions of results by
          positions of operands, in the flat arguments and results.
      command_buffer_compatible: whether a GPU may record the kernels that the function launches,
        and replay them without calling the function.

    Returns:
      A function of pytrees of arrays, whose result is a pytree like `result_shape_dtypes`.

    Raises:
      ValueError: if an alias names no operand or result, or operand and result differ in type.

    Example::

        def add_one(context, result, x):
            np.asarray(result)[...] = np.asarray(x) + 1

        buffer_callback(add_one, jax.ShapeDtypeStruct((), np.int32))(41)
    """
    check_vmap_method(vmap_method)
    described, out_tree = tree.tree_flatten(result_shape_dtypes)
    result_avals = tuple(ShapedArray(tuple(x.shape), x.dtype) for x in described)

    @boundary
    def call(*args: PyTree, **kwargs: PyTree) -> PyTree:
        operands, in_tree = tree.tree_flatten((args, kwargs))
        aliases = tuple(sorted((input_output_aliases or {}).items()))
        check_aliases(aliases, [typeof(x) for x in operands], result_avals)
        params: dict[str, Any] = {
            "callback": callback,
            "command_buffer_compatible": command_buffer_compatible,
            "has_side_effect": has_side_effect,
            "in_tree": in_tree,
            "input_output_aliases": aliases,
            "out_tree": out_tree,
            "result_avals": result_avals,
            "vmap_method": vmap_method,
        }
        return out_tree.unflatten(process(buffer_callback_p, tuple(operands), params))

    return call


def on_buffers(
    callback: Callable[..., None],
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    context: object,
    buffers: Sequence[object],
) -> None:
    """Call an equation's function with the buffers of its operands and of its results.

    Raises:
      ValueError: if it returns anything.
    """
    count = in_tree.num_leaves
    args, kwargs = in_tree.unflatten(buffers[:count])
    returned: object = callback(context, out_tree.unflatten(buffers[count:]), *args, **kwargs)
    if returned is not None:
        raise ValueError(
            "buffer_callback callback must not return any values: it writes its results into the "
            f"buffers of its second argument; it returned a value of type {type(returned).__name__}"
        )


@infer(buffer_callback_p)
def _(
    *_: AbstractValue, result_avals: Sequence[AbstractValue], **params: object
) -> list[AbstractValue]:
    return list(result_avals)


@effects(buffer_callback_p)
def _(*_: AbstractValue, has_side_effect: bool, **params: object) -> Effects:
    return frozenset((buffer_callback_effect,)) if has_side_effect else no_effects


@jvp(buffer_callback_p)
def _(*_: object, **params: object) -> NoReturn:
    raise ValueError(
        "Buffer callbacks do not support JVP. Please use `jax.custom_jvp` to use callbacks while "
        "taking gradients."
    )


@transpose(buffer_callback_p)
def _(*_: object, **params: object) -> NoReturn:
    raise ValueError(
        "Buffer callbacks do not support transpose. Please use `jax.custom_vjp` to use callbacks "
        "while taking gradients."
    )
