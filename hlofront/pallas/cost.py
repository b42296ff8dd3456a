"""estimate_cost: the cost of a function of arrays, for the cost estimate of a kernel."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.core.jaxpr import Equation, Jaxpr
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import subprograms_of
from hlofront.pallas.block_specs import CostEstimate
from hlofront.pallas.kernel_call import pallas_call_p
from hlofront.transforms.make_jaxpr import make_jaxpr

# The elementwise operations that are counted, once per element.
_ARITHMETIC = frozenset("add ceil div floor max min mul neg round sub".split())
_TRANSCENDENTAL = frozenset("acos asin atan cos exp log logistic sin sinh sqrt tan tanh".split())

# The number of operations, and the number of transcendental ones.
_Counts = tuple[int, int]


@boundary
def estimate_cost(fun: Callable[..., PyTree], *args: PyTree, **kwargs: object) -> CostEstimate:
    """Return the cost of a call of a function of arrays, for `pallas_call(cost_estimate=...)`.

    Products of matrices and the most frequent elementwise operations are counted: in loops once per
    iteration, and of branches only the most expensive one.

    Args:
      fun: the function, such as a plain one that computes the same as a kernel.
      *args: its arguments: pytrees of arrays or of `jax.ShapeDtypeStruct`s.
      **kwargs: its keyword arguments, which are not traced.

    Example:
      >>> x = jax.ShapeDtypeStruct((64, 64), jnp.float32)
      >>> pl.estimate_cost(lambda x, y: x @ y, x, x).flops
      524288
    """
    program = make_jaxpr(partial(fun, **kwargs))(*args)
    flops, transcendentals = _counts(program.jaxpr)
    avals = (*program.in_avals, *program.out_avals)
    return CostEstimate(
        flops=flops,
        transcendentals=transcendentals,
        bytes_accessed=sum(aval.size * aval.dtype.itemsize for aval in tree.tree_leaves(avals)),
    )


@once_per_program
def _counts(jaxpr: Jaxpr) -> _Counts:
    counts = [_of_equation(equation) for equation in jaxpr.eqns]
    return sum(flops for flops, _ in counts), sum(others for _, others in counts)


def _of_equation(equation: Equation) -> _Counts:
    name = equation.primitive.name
    if equation.primitive is pallas_call_p:
        cost = equation.params["cost_estimate"]
        return (cost.flops, cost.transcendentals) if cost is not None else (0, 0)
    parts = subprograms_of(equation)
    if parts:
        branches = [_counts(part.jaxpr) for part in parts if part.role == "branch"]
        runs = [
            (part.iterations or 1, _counts(part.jaxpr))
            for part in parts
            if part.role in ("inlined", "call", "body", "condition")
        ]
        runs.append((1, max(branches, key=sum, default=(0, 0))))
        return sum(n * counts[0] for n, counts in runs), sum(n * counts[1] for n, counts in runs)
    size = getattr(equation.outvars[0].aval, "size", 0) if equation.outvars else 0
    if name in _ARITHMETIC:
        return size, 0
    if name in _TRANSCENDENTAL:
        return 0, size
    if name == "integer_pow":
        power = abs(equation.params["y"])
        products = power.bit_length() - 1 + power.bit_count() + (equation.params["y"] < 0)
        return (products * size if power > 1 or products > 1 else 0), 0
    if name == "dot_general":
        (axes, _), _ = equation.params["dimension_numbers"]
        shape: Any = equation.invars[0].aval
        return 2 * size * math.prod([shape.shape[axis] for axis in axes]), 0
    return 0, 0
