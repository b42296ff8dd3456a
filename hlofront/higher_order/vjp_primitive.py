"""Operations that are objects with methods, among them a backward rule: VJPHiPrimitive.

Users define a class, make an object of it for the types of its operands, and call the object. An
equation of the primitive `call_hi_primitive` has the object as its parameter `_prim`, and as
operands and results the low values of the object's.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.elements import float0
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.axes import AxisData, axes_in_scope, unmapped_aval
from hlofront.core.effects import Effects, no_effects
from hlofront.core.high_types import HiType, low_types, lowered, raised
from hlofront.core.jaxpr import Value
from hlofront.core.symbolic_zeros import BatchAxis, Cotangent, Tangent, Zero
from hlofront.higher_order.checkpoint_policies import Policy
from hlofront.higher_order.hi_calls import call_hi_primitive_p
from hlofront.higher_order.selecting import nonzero_flags, where, with_zeros
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.primitives.rules.derivatives import add_tangents, instantiate
from hlofront.transforms.batch import batch_flat


class CotangentSum:
    """The cotangent of an operand, which backward rules add to.

    Attributes:
      aval: the type of the cotangent.
      is_wanted: whether anything depends on the cotangent.
    """

    __slots__ = ("_low", "aval", "is_wanted")

    def __init__(self, aval: Any, is_wanted: bool = True):
        self.aval = aval
        self.is_wanted = is_wanted
        self._low: Sequence[Cotangent] | None = None

    def accum(self, x: Any) -> None:
        """Add a cotangent; None and symbolic zeros add nothing.

        Raises:
          ValueError: if it has another shape than the operand.
        """
        if x is None or type(x) is Zero or not self.is_wanted:
            return
        aval = typeof(x)
        if isinstance(self.aval, ShapedArray) and getattr(aval, "shape", None) != self.aval.shape:
            raise ValueError(
                f"Expected cotangent type {self.aval.str_short()} but got {aval.str_short()}"
            )
        self.add_low(lowered([self.aval], [x]))

    def add_low(self, low: Sequence[Cotangent]) -> None:
        """Add a cotangent that consists of these low values."""
        if any(nonzero_flags(low)):
            before = self.low
            self._low = [add_tangents(a, b) for a, b in zip(before, low, strict=True)]

    def freeze(self) -> Any:
        """Return the sum, or a symbolic zero if nothing was added."""
        if self._low is None:
            return Zero(self.aval)
        (value,) = raised([self.aval], map(instantiate, self._low))
        return value

    @property
    def low(self) -> list[Cotangent]:
        """The low values of the sum."""
        return [Zero(t) for t in low_types([self.aval])] if self._low is None else [*self._low]

    def __repr__(self) -> str:
        return f"CotangentSum({self.aval})"


class VJPHiPrimitive:
    """An operation whose rules are methods, on pytrees of arrays and of values of HiTypes.

    Subclasses set three attributes in `__init__` and call this class's: `in_avals`, a tuple with a
    pytree of types for each operand; `out_aval`, the pytree of types of the result; and `params`,
    a dict of hashable parameters, which become attributes. They define `expand`, and further
    methods for the transformations that they take part in. Objects are called with operands.

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

    in_avals: tuple[PyTree, ...]
    out_aval: PyTree
    params: dict[str, Hashable]
    effects: Effects = no_effects

    def __init__(self):
        for name in ("in_avals", "out_aval", "params"):
            if not hasattr(self, name):
                raise AttributeError(f"subclass __init__ should set `self.{name}`")
        if self.defines("vjp_bwd") and self.defines("vjp_bwd_retval"):
            raise AttributeError(
                f"subclass {type(self)} should not override both `vjp_bwd` and `vjp_bwd_retval`"
            )
        self.in_avals_flat, self.in_tree = tree.tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree.tree_flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def defines(self, method: str) -> bool:
        """Return whether the class of the operation defines a method that this class has."""
        return getattr(type(self), method) is not getattr(VJPHiPrimitive, method)

    def _missing(self, purpose: str, method: str) -> NotImplementedError:
        return NotImplementedError(f"for {purpose}, subclass {type(self)} must implement {method}")

    # ---- what subclasses define

    def expand(self, *args: Any) -> Any:
        """Return the result, computed with other operations."""
        raise self._missing("any use", "`expand`")

    def vjp_fwd(self, nzs_in: PyTree, /, *args: Any) -> Any:
        """Return the result, a pytree of residuals, and if requested which results have a tangent.

        Args:
          nzs_in: per operand, whether it has a tangent that is not zero.
          args: the operands.
        """
        raise self._missing("grad support", "`vjp_fwd`")

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: Any) -> None:
        """Add cotangents to those of the operands, by the method `accum` of each leaf.

        Args:
          res: the residuals.
          outgrad: the cotangent of the result, in which some leaves may be symbolic zeros.
          arg_accums: a pytree of CotangentSums for each operand.
        """
        cotangents = self.in_tree.flatten_up_to(self.vjp_bwd_retval(res, outgrad))
        for total, x in zip(self.in_tree.flatten_up_to(arg_accums), cotangents, strict=True):
            total.accum(x)

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> Any:
        """Return a tuple of the operands' cotangents, from the residuals and the result's."""
        raise self._missing("grad support", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Return the result and its tangent; some leaves of tangents may be symbolic zeros."""
        raise self._missing("jvp support", "`jvp`")

    def lin(self, nzs_in: PyTree, *primals: Any) -> Any:
        """Return the result and residuals for `linearized`, like `vjp_fwd`."""
        raise self._missing("linearize support", "`lin` and `linearized`")

    def linearized(self, residuals: PyTree, *tangents: Any) -> Any:
        """Return the tangent of the result, which is linear in the tangents."""
        raise self._missing("linearize support", "`lin` and `linearized`")

    def transpose(self, out_ct: PyTree, *maybe_accums: Any) -> None:
        """Add cotangents to those of the operands in which the operation is linear.

        Args:
          out_ct: the cotangent of the result.
          maybe_accums: an operand each, with a CotangentSum for an unknown leaf.
        """
        raise self._missing("transpose support", "`transpose`")

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

    def dce(self, used_outs: PyTree) -> tuple[PyTree, PyTree, "VJPHiPrimitive | None"]:
        """Return which operands are read, which results are made, and the operation for these.

        The first two are pytree prefixes; the operation is None if there is nothing to do.

        Args:
          used_outs: per leaf of the result, whether anything reads it.
        """
        if any(self.out_tree.flatten_up_to(used_outs)):
            return True, True, self
        return False, False, None

    def remat(self, policy: Policy | None, *args: Any) -> tuple[PyTree, Callable[..., PyTree]]:
        """Return the result, and a function of the operands that recomputes it in `checkpoint`.

        What the function closes over is saved. By default nothing is, and all is recomputed.

        Args:
          policy: the policy of the checkpoint, or None.
          args: the operands.
        """
        return self(*args), self

    def staging(self, trace: Any, source_info: Any, *args: Any) -> PyTree:
        """Return the result, after the operation was added to the program that is being traced.

        Args:
          trace: the trace; its method `default_process_primitive` adds an equation.
          source_info: where in the user's program the operation is.
          args: the operands.
        """
        low = lowered(self.in_avals_flat, self.in_tree.flatten_up_to(args))
        params = {"_prim": self}
        results = trace.default_process_primitive(call_hi_primitive_p, low, params, source_info)
        return self.raised_result(results)

    def check(self, *arg_tys: Any) -> None:
        """Raise an error if the operation does not take operands of these types."""

    # ---- operations

    def __call__(self, *args: Any) -> Any:
        """Apply the operation to operands, pytrees of the structure of `in_avals`."""
        low = lowered(self.in_avals_flat, self.in_tree.flatten_up_to(args))
        results = call_hi_primitive_p.bind(*low, _prim=self)
        return self.raised_result(results)

    def raised_args(self, low: Sequence[Any]) -> Any:
        """Return the operands that consist of these low values."""
        return self.in_tree.unflatten(raised(self.in_avals_flat, low))

    def raised_result(self, low: Sequence[Any]) -> Any:
        """Return the result that consists of these low values."""
        return self.out_tree.unflatten(raised(self.out_avals_flat, low))

    def low_result(self, result: Any) -> list[Any]:
        """Return the low values of the result."""
        return lowered(self.out_avals_flat, self.out_tree.flatten_up_to(result))

    @property
    def low_types_out(self) -> list[Any]:
        """The types of the low values of the result."""
        return low_types(self.out_avals_flat)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> Hashable:
        types = tuple(self.in_avals_flat), self.in_tree, tuple(self.out_avals_flat), self.out_tree
        return type(self), tuple(self.params.items()), self.effects, types

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items()), self.effects))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key() == other._key()


# ---- groups of low values ------------------------------------------------------------------------


def groups_of(types: Sequence[Any], low: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the low values of each value of these types."""
    ends = iter(low)
    return [[next(ends) for _ in low_types([t])] for t in types]


def tangent_type(t: Any) -> Any:
    return t.to_tangent_aval()


def cotangent_type(t: Any) -> Any:
    return t.to_ct_aval() if isinstance(t, HiType) else t.to_cotangent_aval()


def raised_tangents(types: Sequence[Any], low: Sequence[Tangent]) -> list[Any]:
    """Return tangents of these types; one whose low values are all zero is a symbolic zero."""
    tangents: list[Any] = []
    for t, group in zip(types, groups_of(types, low), strict=True):
        if any(nonzero_flags(group)):
            tangents += raised([t], [instantiate(x) for x in group])
        else:
            tangents.append(Zero(t))
    return tangents


def lowered_tangents(types: Sequence[Any], tangents: Sequence[Any]) -> list[Tangent]:
    """Return the low values of tangents of these types, which may be symbolic zeros."""
    low: list[Tangent] = []
    for t, tangent in zip(types, tangents, strict=True):
        if type(tangent) is Zero:
            low += [Zero(aval) for aval in low_types([t])]
        else:
            low += lowered([t], [tangent])
    return low


def results_with_tangents(prim: VJPHiPrimitive) -> list[bool]:
    """Return per low value of the result whether it has a tangent: integers have none."""
    return [_tangent_dtype(t) != float0 for t in prim.low_types_out]


def _tangent_dtype(t: AbstractValue) -> object:
    return getattr(t.to_tangent_aval(), "dtype", float0)


def tangents_of_result(prim: VJPHiPrimitive, result: Any) -> list[Tangent]:
    types = [tangent_type(t) for t in prim.out_avals_flat]
    return lowered_tangents(types, prim.out_tree.flatten_up_to(result))


def flags_of_operands(prim: VJPHiPrimitive, tangents: Sequence[Tangent]) -> tuple[bool, ...]:
    groups = groups_of(prim.in_avals_flat, tangents)
    return tuple([any(nonzero_flags(group)) for group in groups])


def of_low(types: Sequence[Any], members: Sequence[Any]) -> list[Any]:
    """Return the member of each value once for each of its low values."""
    return [x for t, x in zip(types, members, strict=True) for _ in low_types([t])]


def with_axis_at(x: ArrayLike, axis: BatchAxis, new_axis: BatchAxis, size: int) -> ArrayLike:
    if new_axis is None or axis == new_axis:
        return x
    return with_new_axis(x, size, new_axis) if axis is None else move_axis(x, axis, new_axis)


def run_jvp(
    prim: VJPHiPrimitive, primals: Sequence[ArrayLike], tangents: Sequence[Tangent]
) -> tuple[Sequence[ArrayLike], Sequence[Tangent]]:
    """Run the method jvp on low values."""
    raised = raised_tangents([tangent_type(t) for t in prim.in_avals_flat], tangents)
    result, tangent = prim.jvp(prim.raised_args(primals), prim.in_tree.unflatten(raised))
    return prim.low_result(result), tangents_of_result(prim, tangent)


# ---- batches -------------------------------------------------------------------------------------


class BatchedResiduals(NamedTuple):
    """The residuals of a batch: their leaves, which have a batch axis or None each."""

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
      out_dim: that of each leaf of the result.
    """

    prim: VJPHiPrimitive
    axis_data: AxisData
    in_dims: tuple[BatchAxis, ...]
    out_dim: tuple[BatchAxis, ...]

    def __init__(self, prim: VJPHiPrimitive, axis_data: AxisData, in_dims: Any, out_dim: Any):
        axes: tuple[BatchAxis, ...] = tuple(prim.in_tree.flatten_up_to(in_dims))
        axes_out: tuple[BatchAxis, ...] = tuple(prim.out_tree.flatten_up_to(out_dim))
        self.in_avals = prim.in_tree.unflatten(
            [_type_of_batch(axis_data, a, t) for t, a in zip(prim.in_avals_flat, axes, strict=True)]
        )
        self.out_aval = prim.out_tree.unflatten(
            [
                _type_of_batch(axis_data, a, t)
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
        self, fun: Callable[..., Sequence[Value]], low: Sequence[Value], axes: Sequence[BatchAxis]
    ) -> tuple[list[Value], list[BatchAxis]]:
        axis = self.axis_data
        named = () if axis.name is None else ((axis.name, axis.size),)
        with axes_in_scope(named):
            return batch_flat(fun, axis, low, axes)

    def _at_axes(
        self, values: Sequence[Any], axes: Sequence[BatchAxis], wanted: Sequence[BatchAxis]
    ) -> list[Any]:
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

    def vjp_bwd(self, res: BatchedResiduals, outgrad: PyTree, /, *arg_accums: Any) -> None:
        structure, axes = res.description

        def one(low: Sequence[Value], cotangent: PyTree, sums: Any) -> None:
            self.prim.vjp_bwd(structure.unflatten(low), cotangent, *sums)

        sums = self.in_tree.flatten_up_to(arg_accums)
        self._transposed(one, res.leaves, axes, outgrad, sums)

    def transpose(self, out_ct: PyTree, *maybe_accums: Any) -> None:
        prim = self.prim
        operands: list[Any] = self.in_tree.flatten_up_to(maybe_accums)
        known = [not isinstance(x, CotangentSum) for x in operands]
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
        axes: Sequence[BatchAxis],
        out_ct: PyTree,
        sums: Sequence[Any],
    ) -> None:
        """Run a backward rule on a batch, and add what it adds; shared operands get the sum.

        Args:
          one: the rule of one example, of low values, the cotangent and the operands' sums.
          low: the low values.
          axes: their batch axes.
          out_ct: the cotangent of the result.
          sums: per operand its CotangentSum; what is none gets no cotangent.
        """
        prim = self.prim
        types = [cotangent_type(t) for t in self.out_avals_flat]
        own_types = [cotangent_type(t) for t in prim.out_avals_flat]
        cotangents = lowered_tangents(types, self.out_tree.flatten_up_to(out_ct))
        present = nonzero_flags(cotangents)
        wanted = [isinstance(total, CotangentSum) and total.is_wanted for total in sums]

        def flat(*values: Value) -> list[Any]:
            rest = with_zeros(values[len(low) :], present, prim.low_types_out)
            inner = [
                CotangentSum(cotangent_type(t), flag)
                for t, flag in zip(prim.in_avals_flat, wanted, strict=True)
            ]
            arriving = prim.out_tree.unflatten(raised_tangents(own_types, rest))
            one(values[: len(low)], arriving, prim.in_tree.unflatten(inner))
            return [x for total in inner for x in total.low]

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


def _type_of_batch(axis: AxisData, dim: BatchAxis, aval: Any) -> Any:
    if dim is not None and isinstance(aval, HiType):
        return aval.inc_rank(axis.size, dim)
    return unmapped_aval(axis.size, dim, aval, axis.explicit_mesh_axis, axis.mesh)
