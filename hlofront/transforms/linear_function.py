"""Linear functions of tangents, as linearize returns them: pytrees of residuals."""

from collections.abc import Sequence
from typing import cast

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, NumPyArray
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import Atom, Jaxpr, Literal, Value
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.trace import as_array, as_result
from hlofront.primitives.rules.derivatives import zeros_of


class LinearFunctionSpec(NamedTuple):
    """The auxiliary data of the pytree LinearFunction: its jaxpr, structures and avals."""

    # The jaxpr of the tangents; its constants are the residuals.
    jaxpr: Jaxpr
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    # Per leaf of the arguments, whether its tangent is an input of the program.
    has_tangent: tuple[bool, ...]
    # Per leaf of the result, whether its tangent is an output of the program; if not, it is zero.
    present: tuple[bool, ...]
    out_avals: tuple[ShapedArray, ...]


class LinearFunction:
    """A linear function of tangents, as linearize returns it; a pytree of its residuals."""

    # jit keeps a weak reference to the functions that it compiles.
    __slots__ = ("__weakref__", "residuals", "spec")

    def __init__(self, residuals: Sequence[Value], spec: LinearFunctionSpec):
        self.residuals = residuals
        self.spec = spec

    @boundary
    def __call__(self, *tangents: PyTree) -> PyTree:
        spec = self.spec
        leaves, given_tree = tree.tree_flatten(tangents)
        if given_tree != spec.in_tree:
            raise TypeError(
                "the linearized function was given tangents of another structure than its "
                f"primals: expected {spec.in_tree}, got {given_tree}"
            )
        for leaf, aval in zip(leaves, spec.in_avals, strict=True):
            tangent_aval, expected = typeof(leaf), aval.to_tangent_aval()
            if tangent_aval.shape != expected.shape or tangent_aval.dtype != expected.dtype:
                raise ValueError(
                    "linearized function called on tangent values inconsistent with the original "
                    f"primal values: got tangent aval {tangent_aval} for primal aval {aval} but "
                    f"expected {expected}."
                )
        nonzero_tangents = [x for x, flag in zip(leaves, spec.has_tangent, strict=True) if flag]
        results = zip(spec.jaxpr.outvars, eval_jaxpr(spec.jaxpr, self.residuals, *nonzero_tangents))
        return spec.out_tree.unflatten(
            [
                _linear_result(*next(results))
                if there
                else as_array(zeros_of(aval.to_tangent_aval()))
                for there, aval in zip(spec.present, spec.out_avals, strict=True)
            ]
        )

    def __repr__(self) -> str:
        return f"LinearFunction(\n{self.spec.jaxpr}\n)"


def _linear_result(atom: Atom, tangent: ArrayLike) -> ArrayLike:
    """Return a result of a linear program as an array, unless it is a host value passed through."""
    return as_array(tangent) if type(atom) is Literal else as_returned(tangent)


tree.register_pytree_node(
    LinearFunction,
    lambda f: ((f.residuals,), f.spec),
    lambda spec, children: LinearFunction(children[0], spec),
)


def as_returned(x: Value) -> Value:
    """Return a result of a differentiated function as an array, unless it is a valid host value."""
    if isinstance(x, np.ndarray | np.generic):
        value = cast(NumPyArray, x)
        if value.dtype == typeof(value).dtype:
            return value
    return as_result(x)
