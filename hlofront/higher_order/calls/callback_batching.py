"""Callbacks and foreign functions under vmap: called for each example, or once for all."""

from collections.abc import Callable, Sequence

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.axes import unmapped_aval
from hlofront.core.jaxpr import ParamDict
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, batch
from hlofront.core.symbolic_zeros import BatchAxes
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.scan import scan
from hlofront.primitives.calls.buffer_callback import buffer_callback_p
from hlofront.primitives.calls.callbacks import io_callback_p, pure_callback_p
from hlofront.primitives.calls.ffi import MinorToMajor, ffi_call_p
from hlofront.primitives.rules.batching import batch_size, move_axis, with_new_axis


def _by_method(
    primitive: Primitive,
    values: ArrayLikes,
    axes: BatchAxes,
    params: ParamDict,
    with_batch: Callable[[ParamDict, Sequence[bool], int], ParamDict],
) -> BatchResult:
    """Call a function that expects unbatched arrays in the way that `vmap_method` says.

    Args:
      primitive: the operation that calls it.
      values: the operands.
      axes: the batch axis of each operand.
      params: the parameters of the operation.
      with_batch: (parameters, per operand whether it has a leading batch axis, the size of the
        batch) -> the parameters of the single call for all examples.
    """
    vmap_method = params["vmap_method"]
    if vmap_method in ("sequential", "sequential_unrolled"):
        unroll = batch_size(values, axes) if vmap_method == "sequential_unrolled" else 1
        return _one_by_one(primitive, values, axes, params, unroll)
    if vmap_method is None:
        raise NotImplementedError(  # JAX raises this class.
            f"vmap is only supported for the {primitive} primitive when vmap_method is one of "
            "'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
            f"'legacy_vectorized'. Got vmap_method={vmap_method}."
        )
    size = batch_size(values, axes)
    operands: list[ArrayLike] = []
    for x, axis in zip(values, axes, strict=True):
        if axis is not None:
            operands.append(move_axis(x, axis, 0))
        elif vmap_method == "legacy_vectorized":
            operands.append(x)
        else:
            operands.append(with_new_axis(x, 1 if vmap_method == "expand_dims" else size))
    gains = [axis is not None or vmap_method != "legacy_vectorized" for axis in axes]
    results = process(primitive, tuple(operands), with_batch(params, gains, size))
    return results, [0] * len(results)


def _with_larger_results(params: ParamDict, _: Sequence[bool], size: int) -> ParamDict:
    """Return the parameters of a call whose results have a leading batch axis."""
    return {
        **params,
        "result_avals": tuple(unmapped_aval(size, 0, aval) for aval in params["result_avals"]),
    }


@batch(pure_callback_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
    return _by_method(pure_callback_p, values, axes, params, _with_larger_results)


@batch(buffer_callback_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
    return _by_method(buffer_callback_p, values, axes, params, _with_larger_results)


@batch(ffi_call_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
    return _by_method(ffi_call_p, values, axes, params, _with_larger_layouts)


def _with_larger_layouts(params: ParamDict, gains: Sequence[bool], size: int) -> ParamDict:
    """Return the parameters of a foreign call whose batch axis varies slowest in memory."""
    return {
        **_with_larger_results(params, gains, size),
        "input_layouts": tuple(
            _with_slowest(layout) if gain else layout
            for layout, gain in zip(params["input_layouts"], gains, strict=True)
        ),
        "output_layouts": tuple(map(_with_slowest, params["output_layouts"])),
    }


def _with_slowest(layout: MinorToMajor) -> MinorToMajor:
    """Return the layout of an array with a new leading axis that varies slowest in memory."""
    return (*[axis + 1 for axis in layout], 0)


@batch(io_callback_p)
def _(values: ArrayLikes, axes: BatchAxes, *, ordered: bool, **params: object) -> BatchResult:
    if ordered:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: the examples are in no order. Take ordered=False, "
            "loop over the examples with lax.map, or call it once, outside of vmap."
        )
    return _one_by_one(io_callback_p, values, axes, {"ordered": ordered, **params}, 1)


def _one_by_one(
    primitive: Primitive, values: ArrayLikes, axes: BatchAxes, params: ParamDict, unroll: int
) -> tuple[list[ArrayLike], list[int]]:
    """Call a callback for one example at a time, in a loop.

    Args:
      primitive: the operation that calls it.
      values: the operands.
      axes: the batch axis of each operand.
      params: the parameters of the operation.
      unroll: the number of examples per iteration of the compiled loop.
    """
    mapped = [move_axis(x, a, 0) for x, a in zip(values, axes, strict=True) if a is not None]

    def example(carry: tuple[()], slices: ArrayLikes) -> tuple[tuple[()], list[ArrayLike]]:
        rest = iter(slices)
        operands = [x if a is None else next(rest) for x, a in zip(values, axes, strict=True)]
        return carry, process(primitive, tuple(operands), params)

    _, results = scan(example, (), mapped, unroll=unroll)
    return results, [0] * len(results)
