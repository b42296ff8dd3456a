"""Callbacks under vmap: called for one example after another, or once for all."""

from collections.abc import Sequence

from hlofront.base.typing import ArrayLike
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import ParamDict
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, batch
from hlofront.core.symbolic_zeros import BatchAxis
from hlofront.core.trace import process
from hlofront.higher_order.scan import scan
from hlofront.primitives.batching import batch_size, move_axis, with_new_axis
from hlofront.primitives.callbacks import io_callback_p, pure_callback_p


@batch(pure_callback_p)
def _(
    values: Sequence[ArrayLike],
    axes: Sequence[BatchAxis],
    *,
    vmap_method: str | None,
    result_avals: Sequence[ShapedArray],
    **params: object,
) -> BatchResult:
    if vmap_method in ("sequential", "sequential_unrolled"):
        params |= {"vmap_method": vmap_method, "result_avals": result_avals}
        unroll = batch_size(values, axes) if vmap_method == "sequential_unrolled" else 1
        return _one_by_one(pure_callback_p, values, axes, params, unroll)
    if vmap_method is None:
        raise NotImplementedError(  # the class that JAX raises
            "vmap is only supported for the pure_callback primitive when vmap_method is one of "
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
    params |= {
        "vmap_method": vmap_method,
        "result_avals": tuple(aval.update(shape=(size, *aval.shape)) for aval in result_avals),
    }
    results = process(pure_callback_p, tuple(operands), params)
    return results, [0] * len(results)


@batch(io_callback_p)
def _(
    values: Sequence[ArrayLike], axes: Sequence[BatchAxis], *, ordered: bool, **params: object
) -> BatchResult:
    if ordered:
        raise ValueError(
            "Cannot `vmap` ordered IO callback: the examples are in no order. Take ordered=False, "
            "loop over the examples with lax.map, or call it once, outside of vmap."
        )
    return _one_by_one(io_callback_p, values, axes, {"ordered": ordered, **params}, 1)


def _one_by_one(
    primitive: Primitive,
    values: Sequence[ArrayLike],
    axes: Sequence[BatchAxis],
    params: ParamDict,
    unroll: int,
) -> tuple[list[ArrayLike], list[int]]:
    """Call a callback for one example after another, in a loop.

    Args:
      primitive: the operation that calls it.
      values: the operands.
      axes: the batch axis of each operand.
      params: the parameters of the operation.
      unroll: how many examples one step of the compiled loop takes.
    """
    mapped = [move_axis(x, a, 0) for x, a in zip(values, axes, strict=True) if a is not None]

    def example(carry: tuple[()], own: Sequence[ArrayLike]) -> tuple[tuple[()], list[ArrayLike]]:
        rest = iter(own)
        operands = [x if a is None else next(rest) for x, a in zip(values, axes, strict=True)]
        return carry, process(primitive, tuple(operands), params)

    _, results = scan(example, (), mapped, unroll=unroll)
    return results, [0] * len(results)
