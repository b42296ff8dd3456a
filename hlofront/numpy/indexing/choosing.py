"""The selection of elements by the number of a choice: choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import process
from hlofront.numpy.arrays.shape import as_array
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.indexing.selecting import clamped, euclidean_remainder, host_value
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import broadcast_together, check_arraylike, promote_dtypes
from hlofront.primitives.arrays import slicing
from hlofront.primitives.elementwise import compare
from hlofront.primitives.elementwise.compare import select_n_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("mode",))
def _choose(a: ArrayLike, choices: ArrayLike | list[ArrayLike], mode: str) -> Array:
    cases: Any = slicing.unstack(choices) if hasattr(choices, "aval") else choices
    check_arraylike("choose", a, *cases)
    count = len(cases)
    a, *cases = broadcast_together("choose", a, *promote_dtypes(*cases))
    if mode == "wrap":
        a = euclidean_remainder(a, count)
    else:
        a = clamped(a, 0, count - 1)
    index = convert(a, int32, False)
    result = cases[0]
    for i, choice in enumerate(cases[1:], 1):
        result = process(select_n_p, (compare.eq(index, np.int32(i)), result, choice), {})
    return as_array(result)


@like(np.choose)
def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Select elements from several choices; `a` holds the number of the choice for each element.

    Args:
      a: integers from 0 to the number of choices.
      choices: arrays that broadcast with `a`, or one array with them along its first axis.
      out: must be None.
      mode: the treatment of integers out of range: "wrap" takes them modulo the number of choices,
        "clip" moves them to the nearest, and "raise", which does not accept a traced `a`, raises an
        error.

    Raises:
      ValueError: if `a` is not of integers or, with mode "raise", one is out of range.

    Example:
      >>> jnp.choose(jnp.array([1, 0, 1]), [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
      Array([10,  2, 30], dtype=int32)
    """
    refuse_out("choose", out)
    check_arraylike("choose", a)
    if not hasattr(choices, "aval"):
        choices = list(choices)
    count = len(choices)
    if not issubdtype(typeof(a).dtype, np.integer):
        raise ValueError(
            f"choose requires integers as indices of the choices, got dtype {typeof(a).dtype}"
        )
    if not count:
        raise ValueError("choose requires a nonempty sequence of choices")
    if mode == "raise":
        values = host_value(
            a,
            'The error occurred because jnp.choose was jit-compiled with mode="raise". Use '
            'mode="wrap" or mode="clip" instead.',
        )
        if ((values < 0) | (values >= count)).any():
            raise ValueError(
                f"invalid entry in choice array: jnp.choose got {values.min()} to {values.max()} "
                f'for {count} choices. mode="wrap" and mode="clip" allow that.'
            )
        mode = "clip"
    elif mode not in ("wrap", "clip"):
        raise ValueError(f"mode={mode!r} of jnp.choose must be 'raise', 'wrap' or 'clip'")
    chosen = _choose(a, choices, mode)
    aval = typeof(chosen)
    return convert(chosen, aval.dtype, False) if aval.weak_type else chosen


ARRAY_METHODS: dict[str, Callable[..., object]] = {"choose": choose}
