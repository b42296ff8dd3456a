"""Extended dtypes, such as random keys, as the ordinary arrays that store them on a device.

An array of extended elements has the axes of an element after its own. The parameters of primitives
that move elements are extended to those axes, and then the rule is called as for any other array.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.elements import ExtendedDType
from hlofront.base.typing import Shape
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.lowering.core.emitter import Emitter
from hlofront.primitives.arrays import dynamic_slicing, gathering, scattering, shaping, slicing
from hlofront.primitives.arrays.tiling import tile_p

Params = dict[str, Any]
# (parameters, ranks of the operands, rank of the result, shape of an element) -> parameters
Extend = Callable[[Params, Sequence[int], int, Shape], Params]
# The primitives whose first operand has the dtype of the result.
EXTENDED: dict[Primitive, Extend] = {}


def physical(aval: ShapedArray) -> ShapedArray:
    """Return the aval of an array as devices store it: keys become integers, others stay."""
    if isinstance(aval.dtype, ExtendedDType):
        return ShapedArray(*aval.dtype.physical(aval.shape))
    return aval


def extend_to_elements(
    build: Emitter, operands: list[Value], params: Params
) -> tuple[list[Value], Params]:
    """Return an equation's operands and parameters for the physical arrays of extended dtypes.

    The builder's avals become those of the physical arrays.
    """
    primitive = build.primitive
    avals, result = build.avals_in, build.avals_out[0]
    element, _ = avals[0].dtype.physical(())
    params = EXTENDED[primitive](params, [aval.ndim for aval in avals], result.ndim, element)
    build.avals_in = list(map(physical, avals))
    build.avals_out = list(map(physical, build.avals_out))
    with_starts = _WITH_STARTS.get(primitive)
    if with_starts is not None:
        # Slices begin at the start of an element. All starts have the same dtype.
        start = avals[with_starts] if len(avals) > with_starts else _start
        operands = [*operands, *[build.constant(0, start.dtype) for _ in element]]
        build.avals_in = [*build.avals_in, *[start.strip_weak_type()] * len(element)]
    return operands, params


_start = ShapedArray((), np.dtype(np.int32))
# The number of operands before the start indices.
_WITH_STARTS = {dynamic_slicing.dynamic_slice_p: 1, dynamic_slicing.dynamic_update_slice_p: 2}


def _extends(*primitives: Primitive) -> Callable[[Extend], Extend]:
    def register(extend: Extend) -> Extend:
        for primitive in primitives:
            EXTENDED[primitive] = extend
        return extend

    return register


def _after(rank: int, element: Shape) -> range:
    """Return the axis numbers of an element's axes, which follow the `rank` axes of an array."""
    return range(rank, rank + len(element))


@_extends(
    shaping.squeeze_p,
    shaping.rev_p,
    slicing.concatenate_p,
    slicing.stack_p,
    slicing.unstack_p,
    slicing.split_p,
    dynamic_slicing.dynamic_update_slice_p,
)
def _same(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    return params


@_extends(shaping.broadcast_in_dim_p)
def _broadcast_in_dim(
    params: Params, ranks: Sequence[int], result_rank: int, element: Shape
) -> Params:
    dimensions = (*params["broadcast_dimensions"], *_after(result_rank, element))
    return params | {
        "shape": (*params["shape"], *element),
        "broadcast_dimensions": dimensions,
    }


@_extends(shaping.reshape_p)
def _reshape(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    dimensions = params["dimensions"]
    if dimensions is not None:
        dimensions = (*dimensions, *_after(ranks[0], element))
    return params | {"new_sizes": (*params["new_sizes"], *element), "dimensions": dimensions}


@_extends(shaping.transpose_p)
def _transpose(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    return params | {"permutation": (*params["permutation"], *_after(ranks[0], element))}


@_extends(tile_p)
def _tile(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    return params | {"reps": (*params["reps"], *(1 for _ in element))}


@_extends(slicing.slice_p)
def _slice(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    strides = params["strides"]
    return params | {
        "start_indices": (*params["start_indices"], *(0 for _ in element)),
        "limit_indices": (*params["limit_indices"], *element),
        "strides": None if strides is None else (*strides, *(1 for _ in element)),
    }


@_extends(dynamic_slicing.dynamic_slice_p)
def _dynamic_slice(
    params: Params, ranks: Sequence[int], result_rank: int, element: Shape
) -> Params:
    return params | {"slice_sizes": (*params["slice_sizes"], *element)}


@_extends(gathering.gather_p)
def _gather(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    numbers = params["dimension_numbers"]
    return params | {
        "dimension_numbers": numbers._replace(
            offset_dims=(*numbers.offset_dims, *_after(result_rank, element))
        ),
        "slice_sizes": (*params["slice_sizes"], *element),
    }


@_extends(scattering.scatter_p)
def _scatter(params: Params, ranks: Sequence[int], result_rank: int, element: Shape) -> Params:
    numbers = params["dimension_numbers"]
    window = (*numbers.update_window_dims, *_after(ranks[2], element))
    return params | {"dimension_numbers": numbers._replace(update_window_dims=window)}
