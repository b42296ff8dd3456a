"""Primitives that order computations: optimization_barrier, tokens and sinks."""

from collections.abc import Sequence
from typing import Self, TypeVar

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLikes
from hlofront.core.aval import (
    AbstractToken,
    AbstractValue,
    ShapedArray,
    register_value_type,
    token_aval,
)
from hlofront.core.effects import Effects, OwnEffect
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, effects, infer, jvp, run, transpose
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Batched,
    Cotangent,
    Cotangents,
    Duals,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.rules.derivatives import no_derivative

_T = TypeVar("_T")

# ---- barriers ------------------------------------------------------------------------------------

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)


@boundary
def optimization_barrier(operand: _T, /) -> _T:
    """Return arrays unchanged behind a compiler barrier: all are computed before any is used.

    Args:
      operand: a pytree of arrays.
    """
    leaves, structure = tree.tree_flatten(operand)
    return tree.tree_unflatten(structure, process(optimization_barrier_p, tuple(leaves), {}))


@infer(optimization_barrier_p)
def _(*operands: ShapedArray) -> list[ShapedArray]:
    return list(operands)


@jvp(optimization_barrier_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Duals:
    return process(optimization_barrier_p, tuple(primals), {}), _fenced(tangents)


@transpose(optimization_barrier_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand) -> Cotangents:
    return _fenced(cotangents)


def _fenced(tangents: Tangents) -> list[Tangent]:
    """Return tangents or cotangents behind a barrier of their own; a `Zero` stays a `Zero`."""
    present = [tangent for tangent in tangents if type(tangent) is not Zero]
    if not present:
        return list(tangents)
    moved = iter(process(optimization_barrier_p, tuple(present), {}))
    return [tangent if type(tangent) is Zero else next(moved) for tangent in tangents]


@batch(optimization_barrier_p)
def _(values: ArrayLikes, axes: BatchAxes) -> tuple[ArrayLikes, BatchAxes]:
    return process(optimization_barrier_p, tuple(values), {}), axes


# ---- tokens --------------------------------------------------------------------------------------


class Token:
    """A token outside programs; it holds the array that a program returned for it, if any."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: Array | None = None):
        # The array that stands for the token in the arguments and results of programs.
        self.array = array

    def block_until_ready(self) -> Self:
        """Wait until the token's array, if it has one, is ready; return the token."""
        if self.array is not None:
            self.array.block_until_ready()
        return self


register_value_type(Token, lambda token: token_aval)

create_token_p = Primitive("create_token")
after_all_p = Primitive("after_all")


@boundary
def create_token(_: object = None) -> Array:
    """Return a new token, which is ready immediately.

    Args:
      _: an ignored argument.
    """
    return process(create_token_p, (), {})


@boundary
def after_all(*operands: object) -> Array:
    """Return a token that becomes ready after all of the operands, which are tokens.

    Args:
      *operands: tokens; without any, the result is ready immediately.

    Raises:
      TypeError: if an operand is not a token.
    """
    return process(after_all_p, operands, {})


@infer(create_token_p)
def _() -> AbstractToken:
    return token_aval


@infer(after_all_p)
def _(*operands: AbstractValue) -> AbstractToken:
    for operand in operands:
        if not isinstance(operand, AbstractToken):
            raise TypeError(f"Arguments to after_all must be tokens, got {operand}")
    return token_aval


@run(create_token_p)
def _() -> object:
    return Token()


@run(after_all_p)
def _(*operands: object) -> object:
    for operand in operands:
        if not isinstance(operand, Token):
            raise TypeError(f"Arguments to after_all must be tokens, got {operand!r}")
    return Token()


# Tokens carry no numbers: their derivative is zero, and all examples of a batch share one token.
no_derivative(create_token_p, after_all_p)


@batch(create_token_p)
def _(values: ArrayLikes, axes: BatchAxes) -> Batched:
    return create_token(), None


@batch(after_all_p)
def _(values: ArrayLikes, axes: BatchAxes) -> Batched:
    return after_all(*values), None


# ---- sinks ---------------------------------------------------------------------------------------


class SinkEffect(OwnEffect):
    """The effect of an operation that is kept although its result is unused."""

    __slots__ = ()

    def __str__(self) -> str:
        return "Kept"


_kept = frozenset({SinkEffect()})

dce_sink_p = Primitive("dce_sink", multiple_results=True)


@boundary
def dce_sink(val: object, *, prevent_mlir_dce: bool = False) -> PyTree:
    """Protect arrays from dead code elimination: the equations that compute them are kept.

    Args:
      val: a pytree of arrays.
      prevent_mlir_dce: whether the compiler must keep them too, which needs a custom call
        `dce_sink` on the device.
    """
    params = {"prevent_mlir_dce": bool(prevent_mlir_dce)}
    for leaf in tree.tree_leaves(val):
        process(dce_sink_p, (leaf,), params)


@infer(dce_sink_p)
def _(operand: ShapedArray, *, prevent_mlir_dce: bool) -> list[ShapedArray]:
    return []


@effects(dce_sink_p)
def _(operand: AbstractValue, *, prevent_mlir_dce: bool) -> Effects:
    return _kept


@run(dce_sink_p)
def _(operand: object, *, prevent_mlir_dce: bool) -> object:
    return []


@jvp(dce_sink_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    for value in (*primals, *tangents):
        if type(value) is not Zero:
            process(dce_sink_p, (value,), params)
    return [], []


@batch(dce_sink_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[ArrayLikes, BatchAxes]:
    return process(dce_sink_p, tuple(values), params), []
