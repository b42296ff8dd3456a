"""VJPHiPrimitive: operations that are objects, with the methods of jax 0.10.

jax 0.12 removed the class in favor of HiPrim.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.core.axes import AxisData, axes_in_scope
from hlofront.core.high_types import low_types, lowered, raised
from hlofront.core.jaxpr import Value
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Cotangent, Zero
from hlofront.higher_order.checkpoint.checkpoint_policies import Policy
from hlofront.higher_order.hi_prim.accumulators import GradAccum, NullAccum, ValAccum
from hlofront.higher_order.hi_prim.hi_prim import (
    HiPrim,
    cotangent_type,
    groups_of,
    has_defaults,
    lowered_tangents,
    of_low,
    raised_tangents,
    run_jvp,
    tangent_type,
    type_of_batch,
    with_axis_at,
)
from hlofront.higher_order.selecting import nonzero_flags, where, with_zeros
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.transforms.batch import batch_flat


@has_defaults
class VJPHiPrimitive(HiPrim):
    """An operation whose rules are methods, as in jax 0.10; new code defines a HiPrim.

    It differs from HiPrim in three methods, `batch_dim_rule`, `dce` and `remat`.

    Example:
      >>> from hlofront.experimental.hijax import VJPHiPrimitive
      >>> class Double(VJPHiPrimitive):
      ...     def __init__(self, aval):
      ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
      ...         super().__init__()
      ...     def expand(self, x):
      ...         return x * 2
      ...     def vjp_fwd(self, nzs_in, x):
      ...         return self(x), None
      ...     def vjp_bwd_retval(self, res, g):
      ...         return (g * 2,)
      >>> jax.grad(lambda x: Double(jax.typeof(x))(x))(1.0)
      Array(2., dtype=float32, weak_type=True)
    """

    def __init__(self):
        super().__init__()
        if self.defines("vjp_bwd") and self.defines("vjp_bwd_retval"):
            raise AttributeError(
                f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`"
            )

    def batch(self, axis_data: AxisData, args: Any, dims: Any) -> tuple[PyTree, PyTree]:
        """Return the result for a batch of operands, and the batch axes of its leaves.

        Args:
          axis_data: the name and size of the axis.
          args: the operands.
          dims: their batch axes, or None.
        """
        out_dim = self.batch_dim_rule(axis_data, dims)
        return VmapOf(self, axis_data, dims, out_dim)(*args), out_dim

    def batch_dim_rule(self, axis_data: AxisData, dims: Any, /) -> PyTree:
        """Return the batch axes of the result's leaves, from those of the operands."""
        raise self._missing("vmap support", "`batch` or `batch_dim_rule`")

    def dce(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, used_outs: PyTree
    ) -> tuple[PyTree, PyTree, HiPrim | None]:
        """Return which operands are read, which results remain, and the operation that makes these.

        The first two are pytree prefixes; the operation is None if there is nothing to do.

        Args:
          used_outs: per leaf of the result, whether anything reads it.
        """
        if any(self.out_tree.flatten_up_to(used_outs)):
            return True, True, self
        return False, False, None

    def remat(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, policy: Policy | None, *args: Any
    ) -> tuple[PyTree, Callable[..., PyTree]]:
        """Return the result, and a function of the operands that recomputes it in `checkpoint`.

        Values that the function closes over are saved. By default nothing is saved, and everything
        is recomputed.

        Args:
          policy: the policy of the checkpoint, or None.
          args: the operands.
        """
        return self(*args), self

    def without_dead_code(self, used_outs: PyTree) -> tuple[PyTree, PyTree, HiPrim | None]:
        return self.dce(used_outs)

    def recomputed(self, policy: Policy | None, *args: Any) -> tuple[PyTree, Callable[..., PyTree]]:
        return self.remat(policy, *args)


def _is_wanted(total: object) -> bool:
    return isinstance(total, GradAccum) and not isinstance(total, NullAccum)


def _zeros(aval: Any) -> list[Zero]:
    return [Zero(t) for t in low_types([aval])]


class BatchedResiduals(NamedTuple):
    """The residuals of a batch: leaves, each with a batch axis or None."""

    leaves: list[Any]
    description: "ResidualsDescription"


@tree.register_static
class ResidualsDescription(NamedTuple):
    """The structure of the residuals of one example, and the batch axes of the leaves."""

    structure: PyTreeDef
    axes: tuple[BatchAxis, ...]


class VmapOf(VJPHiPrimitive):
    """An operation on a batch, whose rules are those of the operation on one example.

    Attributes:
      prim: the operation on one example.
      axis_data: the name and size of the axis.
      in_dims: the batch axis of each operand, or None.
      out_dim: the batch axis of each leaf of the result.
    """

    prim: VJPHiPrimitive
    axis_data: AxisData
    in_dims: tuple[BatchAxis, ...]
    out_dim: tuple[BatchAxis, ...]

    def __init__(self, prim: VJPHiPrimitive, axis_data: AxisData, in_dims: Any, out_dim: Any):
        axes: tuple[BatchAxis, ...] = tuple(prim.in_tree.flatten_up_to(in_dims))
        axes_out: tuple[BatchAxis, ...] = tuple(prim.out_tree.flatten_up_to(out_dim))
        self.in_avals = prim.in_tree.unflatten(
            [type_of_batch(axis_data, a, t) for t, a in zip(prim.in_avals_flat, axes, strict=True)]
        )
        self.out_aval = prim.out_tree.unflatten(
            [
                type_of_batch(axis_data, a, t)
                for t, a in zip(prim.out_avals_flat, axes_out, strict=True)
            ]
        )
        self.params = {"prim": prim, "axis_data": axis_data, "in_dims": axes, "out_dim": axes_out}
        super().__init__()

    @property
    def _low_axes(self) -> list[BatchAxis]:
        return of_low(self.prim.in_avals_flat, self.in_dims)

    @property
    def _low_axes_out(self) -> list[BatchAxis]:
        return of_low(self.prim.out_avals_flat, self.out_dim)

    def _low_args(self, args: Any) -> list[Any]:
        return lowered(self.in_avals_flat, self.in_tree.flatten_up_to(args))

    def _batch(
        self, fun: Callable[..., Sequence[Value]], low: Sequence[Value], axes: BatchAxes
    ) -> tuple[list[Value], list[BatchAxis]]:
        axis = self.axis_data
        named = () if axis.name is None else ((axis.name, axis.size),)
        with axes_in_scope(named):
            return batch_flat(fun, axis, low, axes)

    def _at_axes(self, values: Sequence[Any], axes: BatchAxes, wanted: BatchAxes) -> list[Any]:
        return [
            x if type(x) is Zero else with_axis_at(x, a, w, self.axis_data.size)
            for x, a, w in zip(values, axes, wanted, strict=True)
        ]

    def expand(self, *args: Any) -> Any:
        prim = self.prim

        def one(*low: Value) -> list[Value]:
            return prim.low_result(prim.expand(*prim.raised_args(low)))

        values, axes = self._batch(one, self._low_args(args), self._low_axes)
        return self.raised_result(self._at_axes(values, axes, self._low_axes_out))

    def jvp(self, primals: Any, tangents: Any) -> Any:
        prim = self.prim
        types = [tangent_type(t) for t in self.in_avals_flat]
        low_tangents = lowered_tangents(types, self.in_tree.flatten_up_to(tangents))
        present = nonzero_flags(low_tangents)
        count = len(present)

        def one(*low: Value) -> list[Any]:
            zeros = low_types(prim.in_avals_flat)
            results, tangents_out = run_jvp(
                prim, low[:count], with_zeros(low[count:], present, zeros)
            )
            return [*results, *tangents_out]

        axes_in = self._low_axes
        values, axes = self._batch(
            one,
            [*self._low_args(primals), *where(low_tangents, present)],
            [*axes_in, *where(axes_in, present)],
        )
        wanted = self._low_axes_out
        low = self._at_axes(values, axes, [*wanted, *wanted])
        types_out = [tangent_type(t) for t in self.out_avals_flat]
        tangent = raised_tangents(types_out, low[len(wanted) :])
        return self.raised_result(low[: len(wanted)]), self.out_tree.unflatten(tangent)

    def vjp_fwd(self, nzs_in: PyTree, /, *args: Any) -> Any:
        prim = self.prim
        structure: Any = None
        nonzero_outputs: Any = ()

        def one(*low: Value) -> list[Value]:
            nonlocal structure, nonzero_outputs
            result, residuals, *nonzero_outputs = prim.vjp_fwd(nzs_in, *prim.raised_args(low))
            leaves, structure = tree.tree_flatten(residuals)
            return [*prim.low_result(result), *leaves]

        values, axes = self._batch(one, self._low_args(args), self._low_axes)
        wanted = self._low_axes_out
        count = len(wanted)
        result = self.raised_result(self._at_axes(values[:count], axes[:count], wanted))
        description = ResidualsDescription(structure, tuple(axes[count:]))
        return result, BatchedResiduals(values[count:], description), *nonzero_outputs

    @property
    def may_log(self) -> bool:
        return False

    def vjp_bwd(self, res: BatchedResiduals, outgrad: PyTree, /, *arg_accums: Any) -> None:
        structure, axes = res.description

        def one(low: Sequence[Value], cotangent: PyTree, sums: Any) -> None:
            self.prim.vjp_bwd(structure.unflatten(low), cotangent, *sums)

        sums = self.in_tree.flatten_up_to(arg_accums)
        self._transposed(one, res.leaves, axes, outgrad, sums)

    def transpose(self, out_ct: PyTree, *maybe_accums: Any) -> None:
        prim = self.prim
        operands: list[Any] = self.in_tree.flatten_up_to(maybe_accums)
        known = [not isinstance(x, GradAccum) for x in operands]
        types = where(prim.in_avals_flat, known)

        def one(low: Sequence[Value], cotangent: PyTree, sums: Any) -> None:
            values = iter(raised(types, low))
            flat_sums = prim.in_tree.flatten_up_to(sums)
            merged = [next(values) if k else s for k, s in zip(known, flat_sums, strict=True)]
            prim.transpose(cotangent, *prim.in_tree.unflatten(merged))

        low = lowered(where(self.in_avals_flat, known), where(operands, known))
        axes = of_low(types, where(self.in_dims, known))
        self._transposed(one, low, axes, out_ct, operands)

    def _transposed(
        self,
        one: Callable[[Sequence[Value], PyTree, Any], None],
        low: Sequence[Value],
        axes: BatchAxes,
        out_ct: PyTree,
        sums: Sequence[Any],
    ) -> None:
        """Run a backward rule on a batch; cotangents of unbatched operands are summed over it.

        Args:
          one: the rule of one example, a function of low values, the cotangent and accumulators.
          low: the low values.
          axes: their batch axes.
          out_ct: the cotangent of the result.
          sums: per operand its accumulator; other members get no cotangent.
        """
        prim = self.prim
        types = [cotangent_type(t) for t in self.out_avals_flat]
        own_types = [cotangent_type(t) for t in prim.out_avals_flat]
        cotangents = lowered_tangents(types, self.out_tree.flatten_up_to(out_ct))
        present = nonzero_flags(cotangents)
        wanted = [_is_wanted(total) for total in sums]

        def flat(*values: Value) -> list[Any]:
            rest = with_zeros(values[len(low) :], present, prim.low_types_out)
            inner = [
                (ValAccum if flag else NullAccum)(cotangent_type(t))
                for t, flag in zip(prim.in_avals_flat, wanted, strict=True)
            ]
            arriving = prim.out_tree.unflatten(raised_tangents(own_types, rest))
            one(values[: len(low)], arriving, prim.in_tree.unflatten(inner))
            return [
                x
                for total in inner
                for x in (total.low if isinstance(total, ValAccum) else _zeros(total.aval))
            ]

        values, axes_out = self._batch(
            flat,
            [*low, *where(cotangents, present)],
            [*axes, *where(self._low_axes_out, present)],
        )
        departing: list[Cotangent] = []
        for x, a, w in zip(values, axes_out, self._low_axes, strict=True):
            if type(x) is Zero:
                departing.append(x)
            elif w is None:
                departing.append(x if a is None else reduce_sum(x, [a]))
            else:
                departing.append(with_axis_at(x, a, w, self.axis_data.size))
        groups = groups_of(prim.in_avals_flat, departing)
        for total, group, flag in zip(sums, groups, wanted, strict=True):
            if flag:
                total.add_low(group)

    def batch_dim_rule(self, axis_data: AxisData, dims: Any, /) -> PyTree:
        outer: list[BatchAxis] = self.in_tree.flatten_up_to(dims)
        inside = [
            d if d is None or axes is None else d - (axes < d)
            for d, axes in zip(outer, self.in_dims, strict=True)
        ]
        prim = self.prim
        out = prim.out_tree.flatten_up_to(
            prim.batch_dim_rule(axis_data, prim.in_tree.unflatten(inside))
        )
        return self.out_tree.unflatten(
            [
                d if d is None or axes is None else d + (axes <= d)
                for d, axes in zip(out, self.out_dim, strict=True)
            ]
        )
