"""Rules of HiPrims that are derived from other rules, and functions that batch rules call.

A pair of rules is assigned in the body of a class, as in `lin, linearized = linearize_from_jvp`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.base.tree_nodes import register_pytree_node, register_static
from hlofront.base.typing import ArrayLike
from hlofront.core.axes import AxisData
from hlofront.core.high_types import low_types, lowered, raised
from hlofront.core.jaxpr import ClosedJaxpr, Value
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.symbolic_zeros import BatchAxis, Zero
from hlofront.higher_order.hi_prim.hi_prim import (
    HiPrim,
    cotangent_type,
    groups_of,
    lowered_tangents,
    of_low,
    raised_tangents,
    results_with_tangents,
    run_jvp,
    tangent_type,
    tangents_of_result,
    type_of_batch,
    type_of_example,
)
from hlofront.higher_order.selecting import nonzero_flags, where, with_zeros
from hlofront.primitives.rules.batching import to_front
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.extension import partial_eval_jaxpr_nounits
from hlofront.transforms.linear_transpose import linear_transpose
from hlofront.transforms.stage import stage
from hlofront.transforms.vmap import vmap

# ---- linearization -------------------------------------------------------------------------------


class PairOfRules(NamedTuple):
    """Two rules that belong together, which a class body assigns to two names."""

    first: Callable[..., Any]
    second: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        first, second = self.first.__name__.lstrip("_"), self.second.__name__.lstrip("_")
        raise TypeError(
            f"this is a pair of rules, not a rule: unpack it in the class body, as in `{first}, "
            f"{second} = ...`"
        )


@dataclasses.dataclass(slots=True, eq=False)
class Linearization:
    """The residuals of a derived `lin`: constants, and the linear program that they belong to.

    Attributes:
      consts: the values that the program reads.
      program: the program from (*consts, *tangents of operands) to tangents of results.
      has_tangent: per low value of the operands, whether its tangent is an input.
      present: per low value of the result, whether its tangent is an output.
    """

    consts: Sequence[Value]
    program: ClosedJaxpr
    has_tangent: tuple[bool, ...]
    present: tuple[bool, ...]


register_pytree_node(
    Linearization,
    lambda x: (tuple(x.consts), (x.program, x.has_tangent, x.present)),
    lambda description, consts: Linearization(consts, *description),
)


def _flags(prim: HiPrim, nzs_in: PyTree) -> tuple[bool, ...]:
    return tuple(map(bool, prim.in_tree.flatten_up_to(nzs_in)))


def _lin(self: HiPrim, nzs_in: PyTree, *primals: Any) -> tuple[PyTree, Linearization, PyTree]:
    """Return the result, residuals, and which results have tangents, by the rule `jvp`."""
    types = low_types(self.in_avals_flat)
    has_tangent = tuple(of_low(self.in_avals_flat, _flags(self, nzs_in)))
    low = lowered(self.in_avals_flat, self.in_tree.flatten_up_to(primals))
    present: tuple[bool, ...] = ()

    def run(*operands: Value) -> list[Value]:
        nonlocal present
        tangents = with_zeros(operands[len(types) :], has_tangent, types)
        results, tangents_out = run_jvp(self, operands[: len(types)], tangents)
        present = tuple(nonzero_flags(tangents_out))
        return [*results, *where(tangents_out, present)]

    tangent_types = [t.to_tangent_aval() for t in where(types, has_tangent)]
    program = stage(run, [*types, *tangent_types])
    unknown = [False] * len(types) + [True] * len(tangent_types)
    count = len(self.low_types_out)
    wanted = [False] * count + [True] * sum(present)
    known, linear, unknown_out, _ = partial_eval_jaxpr_nounits(program, unknown, wanted)
    values = eval_jaxpr(known.jaxpr, known.consts, *low)
    known_count = unknown_out.count(False)
    if any(unknown_out[:count]):
        # The operations of the rule do not split; the result that it computes is unused.
        result = self(*primals)
    else:
        result = self.raised_result(values[:count])
    depends = [any(group) for group in groups_of(self.out_avals_flat, present)]
    residuals = Linearization(values[known_count:], linear, has_tangent, present)
    return result, residuals, self.out_tree.unflatten(depends)


def _linearized(self: HiPrim, residuals: Linearization, *tangents: Any) -> PyTree:
    """Return the tangent of the result, by the program in the residuals."""
    types = [tangent_type(t) for t in self.in_avals_flat]
    low = lowered_tangents(types, self.in_tree.flatten_up_to(tangents))
    arriving = [instantiate(t) for t in where(low, residuals.has_tangent)]
    program = residuals.program
    departing = eval_jaxpr(program.jaxpr, program.consts, *residuals.consts, *arriving)
    low_out = with_zeros(departing, residuals.present, self.low_types_out)
    types_out = [tangent_type(t) for t in self.out_avals_flat]
    return self.out_tree.unflatten(raised_tangents(types_out, low_out))


def jvp_from_lin(self: HiPrim, primals: Any, tangents: Any) -> tuple[PyTree, PyTree]:
    """The rule `jvp` of a HiPrim that defines `lin` and `linearized`.

    Example:
      >>> from hlofront.experimental import hijax
      >>> class Double(hijax.HiPrim):
      ...     def __init__(self, aval):
      ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
      ...         super().__init__()
      ...     def expand(self, x):
      ...         return x * 2
      ...     def lin(self, nzs_in, x):
      ...         return self(x), ()
      ...     def linearized(self, residuals, dx):
      ...         return dx * 2
      ...     jvp = hijax.jvp_from_lin
      >>> double = Double(jax.typeof(jnp.float32(1)))
      >>> jax.jvp(double, (jnp.float32(3),), (jnp.float32(1),))
      (Array(6., dtype=float32), Array(2., dtype=float32))
    """
    if type(self).lin is _lin:
        raise TypeError(
            f"{type(self)} defines `jvp` by `lin`, and `lin` by `jvp`: only one of `jvp_from_lin` "
            "and `linearize_from_jvp` can be used"
        )
    flags = [type(t) is not Zero for t in self.in_tree.flatten_up_to(tangents)]
    result, residuals, *_ = self.lin(self.in_tree.unflatten(flags), *primals)
    return result, self.linearized(residuals, *tangents)


# ---- backward rules ------------------------------------------------------------------------------


@register_static
class NonzeroTangents(NamedTuple):
    """Per operand, whether it has a tangent; these residuals are part of programs."""

    flags: tuple[bool, ...]


def _transposed(
    prim: HiPrim, flags: Sequence[bool], linear: Callable[..., PyTree], outgrad: PyTree
) -> PyTree:
    """Return the cotangents of operands by transposing a function of their tangents."""
    has_tangent = of_low(prim.in_avals_flat, flags)
    types = low_types(prim.in_avals_flat)
    tangent_types = [tangent_type(t) for t in prim.in_avals_flat]
    differentiable = results_with_tangents(prim)

    def low_linear(*low: Value) -> list[Value]:
        tangents = raised_tangents(tangent_types, with_zeros(low, has_tangent, types))
        result = tangents_of_result(prim, linear(*prim.in_tree.unflatten(tangents)))
        return [instantiate(t) for t in where(result, differentiable)]

    cotangent_types = [cotangent_type(t) for t in prim.out_avals_flat]
    arriving = lowered_tangents(cotangent_types, prim.out_tree.flatten_up_to(outgrad))
    examples = [t.to_tangent_aval() for t in where(types, has_tangent)]
    departing = iter(
        linear_transpose(low_linear, *examples)(
            [instantiate(ct) for ct in where(arriving, differentiable)]
        )
    )
    cotangents: list[Any] = []
    for t, flag in zip(prim.in_avals_flat, flags, strict=True):
        ct_type = cotangent_type(t)
        if flag:
            cotangents += raised([ct_type], [next(departing) for _ in low_types([ct_type])])
        else:
            cotangents.append(Zero(ct_type))
    return prim.in_tree.unflatten(cotangents)


def _vjp_fwd_of_jvp(self: HiPrim, nzs_in: PyTree, /, *primals: Any) -> Any:
    """Return the result, and the operands as residuals."""
    return self(*primals), (primals, NonzeroTangents(_flags(self, nzs_in)))


def _vjp_bwd_retval_of_jvp(self: HiPrim, res: Any, outgrad: PyTree, /) -> PyTree:
    """Return the cotangents of the operands by transposing the rule `jvp`."""
    primals, nonzero = res
    return _transposed(self, nonzero.flags, lambda *t: self.jvp(primals, t)[1], outgrad)


def _vjp_fwd_of_lin(self: HiPrim, nzs_in: PyTree, /, *primals: Any) -> Any:
    """Return the results of the rule `lin`."""
    result, residuals, *more = self.lin(nzs_in, *primals)
    return result, (residuals, NonzeroTangents(_flags(self, nzs_in))), *more


def _vjp_bwd_retval_of_lin(self: HiPrim, res: Any, outgrad: PyTree, /) -> PyTree:
    """Return the cotangents of the operands by transposing the rule `linearized`."""
    residuals, nonzero = res
    return _transposed(self, nonzero.flags, lambda *t: self.linearized(residuals, *t), outgrad)


for _rule, _name in (
    (_vjp_fwd_of_jvp, "vjp_fwd"),
    (_vjp_fwd_of_lin, "vjp_fwd"),
    (_vjp_bwd_retval_of_jvp, "vjp_bwd_retval"),
    (_vjp_bwd_retval_of_lin, "vjp_bwd_retval"),
):
    _rule.__name__ = _name

linearize_from_jvp = PairOfRules(_lin, _linearized)
vjp_from_jvp = PairOfRules(_vjp_fwd_of_jvp, _vjp_bwd_retval_of_jvp)
vjp_from_lin = PairOfRules(_vjp_fwd_of_lin, _vjp_bwd_retval_of_lin)


# ---- batches -------------------------------------------------------------------------------------


def _is_none(x: object) -> bool:
    return x is None


def _with_zeros_of(change: Callable[[BatchAxis, Any], Any], axes: PyTree, values: PyTree) -> PyTree:
    """Return values with the type of each symbolic zero changed according to its batch axis."""

    def of_subtree(axis: BatchAxis, subtree: PyTree) -> PyTree:
        def of_leaf(x: Any) -> Any:
            return Zero(change(axis, x.aval)) if type(x) is Zero else x

        return tree.tree_map(of_leaf, subtree, is_leaf=lambda x: type(x) is Zero)

    return tree.tree_map(of_subtree, axes, values, is_leaf=_is_none)


def vmap_rule(
    axis_data: AxisData,
    f: Callable[..., PyTree],
    in_axes: Any,
    out_axes: Any,
    *,
    sum_match: bool = False,
) -> Callable[..., PyTree]:
    """Return a function mapped over the batch axis, for the rule `batch` of a HiPrim.

    Arguments and results may hold symbolic zeros, whose types gain or lose the batch axis.

    Args:
      axis_data: the name and size of the axis, the first argument of `batch`.
      f: the function of one example.
      in_axes: the batch axes of its arguments, as for `vmap`.
      out_axes: the batch axes of its results.
      sum_match: whether a result with axis None that depends on the example is summed.

    Example:
      >>> from hlofront.experimental.hijax import HiPrim, vmap_rule
      >>> class Double(HiPrim):
      ...     def __init__(self, aval):
      ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
      ...         super().__init__()
      ...     def expand(self, x):
      ...         return x * 2
      ...     def batch(self, axis_data, args, dims):
      ...         return vmap_rule(axis_data, self.expand, dims, 0)(*args), 0
      >>> jax.vmap(lambda x: Double(jax.typeof(x))(x))(jnp.arange(3))
      Array([0, 2, 4], dtype=int32)
    """
    mapped = vmap(
        f,
        in_axes=in_axes,
        out_axes=out_axes,
        axis_name=axis_data.name,
        axis_size=axis_data.size,
        spmd_axis_name=axis_data.spmd_name or None,
        sum_match=sum_match,
    )

    def batched(*args: Any) -> PyTree:
        examples = _with_zeros_of(partial(type_of_example, axis_data), in_axes, args)
        return _with_zeros_of(partial(type_of_batch, axis_data), out_axes, mapped(*examples))

    return batched


def unmap_avals(axis_data: AxisData, avals: PyTree, dims: PyTree) -> PyTree:
    """Return the types of batches of values of these types, given their batch axes or None."""

    def of_batch(aval: Any, dim: BatchAxis) -> Any:
        return type_of_batch(axis_data, dim, aval)

    return tree.tree_map(of_batch, avals, dims)


def bdims_at_front(axis_data: AxisData, args: PyTree, dims: PyTree) -> PyTree:
    """Return values with their batch axis first; those without one are repeated along it."""

    def at_front(x: ArrayLike, dim: BatchAxis) -> ArrayLike:
        return to_front(x, dim, axis_data.size)

    return tree.tree_map(at_front, args, dims)
