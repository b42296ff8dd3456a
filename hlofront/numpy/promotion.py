"""Where dtypes and shapes of operands meet: NumPy's broadcasting, JAX's promotion."""

from typing import Any

import numpy as np

from hlofront.base.config import numpy_rank_promotion
from hlofront.base.dtypes import lattice_result
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.primitives.converting import convert_element_type, convert_weakly
from hlofront.primitives.shaping import broadcast_in_dim

_SCALARS = (bool, int, float, complex, np.generic)
_PYTHON_TYPE = {"b": bool, "i": int, "f": float, "c": complex}


def check_arraylike(name: str, *args: Any) -> None:
    """Raise the TypeError that names the first operand which is not an array or a scalar."""
    for position, x in enumerate(args):
        if not is_value(x) and not hasattr(x, "__jax_array__"):
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(x)} at position "
                f"{position}. Convert lists and tuples with jnp.asarray first."
            )


def promote_dtypes(*args: Any) -> list[Any]:
    """The operands in their common dtype."""
    avals = [typeof(x) for x in args]
    first = avals[0]
    if all(aval.dtype == first.dtype and aval.weak_type == first.weak_type for aval in avals):
        return list(args)
    dtype, weak = lattice_result(tuple((aval.dtype, aval.weak_type) for aval in avals))
    return [_converted(x, aval, dtype, weak) for x, aval in zip(args, avals, strict=True)]


def _converted(x: Any, aval: ShapedArray, dtype: Any, weak: bool) -> Any:
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    if isinstance(x, _SCALARS):
        if aval.dtype == dtype:
            return x
        # A scalar of the host changes its dtype here, and not in the program.
        return _PYTHON_TYPE[dtype.kind](x) if weak else np.asarray(x).astype(dtype)[()]
    if aval.dtype == dtype and not weak:
        # The dtype is right and only its weakness goes; the result is strong by the others.
        return x
    return convert_weakly(x, dtype) if weak else convert_element_type(x, dtype)


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """The operands in their common rank; sizes of one are left to lax, and scalars as well."""
    ranks = [typeof(x).ndim for x in args]
    most = max(ranks)
    if all(rank in (most, 0) for rank in ranks):
        return list(args)
    if numpy_rank_promotion.value != "allow":
        _rank_promotion_warning_or_error(name, [typeof(x).shape for x in args])
    return [
        x if rank in (most, 0) else _with_rank(x, typeof(x).shape, most)
        for x, rank in zip(args, ranks, strict=True)
    ]


def _with_rank(x: Any, shape: tuple[int, ...], rank: int) -> Any:
    new = rank - len(shape)
    return broadcast_in_dim(x, (1,) * new + shape, tuple(range(new, rank)))
