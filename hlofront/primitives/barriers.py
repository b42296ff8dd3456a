"""Primitives that keep an order: optimization_barrier, tokens, sinks."""

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.core.aval import AbstractToken, register_value_type, token_aval
from hlofront.core.effects import Effect
from hlofront.core.primitive import Primitive
from hlofront.core.rules import effects, infer, run
from hlofront.core.trace import process

# ---- barriers ------------------------------------------------------------------------------------

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)


@boundary
def optimization_barrier(operand, /):
    """The same values, but the compiler moves nothing across: all are computed before any is used.

    Args:
      operand: a tree of arrays.
    """
    leaves, structure = tree.tree_flatten(operand)
    return tree.tree_unflatten(structure, process(optimization_barrier_p, tuple(leaves), {}))


@infer(optimization_barrier_p)
def _(*operands):
    return list(operands)


# ---- tokens --------------------------------------------------------------------------------------


class Token:
    """What a token is outside of programs: operations on values are in order as they are."""

    __slots__ = ("__weakref__",)

    def block_until_ready(self):
        """The token itself: there is nothing to wait for."""
        return self


register_value_type(Token, lambda token: token_aval)

create_token_p = Primitive("create_token")
after_all_p = Primitive("after_all")


@boundary
def create_token(_=None):
    """A token that waits for nothing."""
    return process(create_token_p, (), {})


@boundary
def after_all(*operands):
    """A token that waits for these tokens.

    Raises TypeError if an operand is no token.
    """
    return process(after_all_p, operands, {})


@infer(create_token_p)
def _():
    return token_aval


@infer(after_all_p)
def _(*operands):
    for operand in operands:
        if not isinstance(operand, AbstractToken):
            raise TypeError(f"Arguments to after_all must be tokens, got {operand}")
    return token_aval


@run(create_token_p)
def _():
    return Token()


@run(after_all_p)
def _(*operands):
    for operand in operands:
        if not isinstance(operand, Token):
            raise TypeError(f"Arguments to after_all must be tokens, got {operand!r}")
    return Token()


# ---- sinks ---------------------------------------------------------------------------------------


class KeptEffect(Effect):
    """The effect of an operation that is to stay though nothing uses its result."""

    __slots__ = ()

    def __str__(self):
        return "Kept"


_kept = frozenset({KeptEffect()})

dce_sink_p = Primitive("dce_sink", multiple_results=True)


@boundary
def dce_sink(val, *, prevent_mlir_dce=False):
    """Use a value for nothing, so that what computes it stays in the program.

    Args:
      val: a tree of arrays.
      prevent_mlir_dce: whether it is to stay in the compiled program too; otherwise the compiler
        may drop it. That needs a custom call `dce_sink` on the device.
    """
    params = {"prevent_mlir_dce": bool(prevent_mlir_dce)}
    for leaf in tree.tree_leaves(val):
        process(dce_sink_p, (leaf,), params)


@infer(dce_sink_p)
def _(operand, *, prevent_mlir_dce):
    return []


@effects(dce_sink_p)
def _(operand, *, prevent_mlir_dce):
    return _kept


@run(dce_sink_p)
def _(operand, *, prevent_mlir_dce):
    return []
