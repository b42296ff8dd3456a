"""HiPrim: operations that are objects whose methods are their rules.

Users define a class, make an object of it for the types of its operands, and call the object. An
equation of the primitive `call_hi_primitive` has the object as its parameter `_prim`; its operands
and results are the low values of the object's.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

from hlofront.base import tree
from hlofront.base.elements import float0
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import AbstractValue
from hlofront.core.axes import AxisData, mapped_aval, unmapped_aval
from hlofront.core.effects import Effects, no_effects
from hlofront.core.high_types import HiType, low_types, lowered, raised
from hlofront.core.symbolic_zeros import BatchAxis, Duals, Tangent, Tangents, Zero
from hlofront.higher_order.checkpoint.checkpoint_policies import Policy
from hlofront.higher_order.hi_prim.accumulators import ValAccum
from hlofront.higher_order.hi_prim.hi_calls import call_hi_primitive_p
from hlofront.higher_order.selecting import nonzero_flags
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.primitives.rules.derivatives import instantiate


class Rematerialization(NamedTuple):
    """The argument of `HiPrim.remat` that describes the checkpoint around the operation."""

    policy: Policy | None


# A function of residuals and operands that recomputes the result.
Recompute = Callable[..., PyTree]

# The dict that a backward rule logs for `f_vjp.with_logs`.
Logs = dict[Any, Any] | None

# Classes whose methods are defaults: an operation defines a method if a subclass does.
_classes_of_defaults: set[type] = set()

Class = TypeVar("Class", bound=type)


def has_defaults(cls: Class) -> Class:
    """Declare the methods of a class of operations to be defaults."""
    _classes_of_defaults.add(cls)
    return cls


@has_defaults
class HiPrim:
    """An operation whose rules are methods, on pytrees of arrays and of values of HiTypes.

    Subclasses set three attributes in `__init__` and call this class's: `in_avals`, a tuple with a
    pytree of types for each operand; `out_aval`, the pytree of types of the result; and `params`,
    a dict of hashable parameters, which become attributes. They define `expand`, and further
    methods for the transformations that they take part in. Objects are called with operands.

    Example:
      >>> from hlofront.experimental.hijax import HiPrim, vjp_from_jvp
      >>> class Double(HiPrim):
      ...     def __init__(self, aval):
      ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
      ...         super().__init__()
      ...     def expand(self, x):
      ...         return x * 2
      ...     def jvp(self, primals, tangents):
      ...         return self(*primals), tangents[0] * 2
      ...     vjp_fwd, vjp_bwd_retval = vjp_from_jvp
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
        self.in_avals_flat, self.in_tree = tree.tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = tree.tree_flatten(self.out_aval)
        vars(self).update(self.params)
        self.check(*self.in_avals)

    def defines(self, method: str) -> bool:
        """Return whether the operation's class overrides the default of a method."""
        owner = next(cls for cls in type(self).__mro__ if method in vars(cls))
        return owner not in _classes_of_defaults

    @property
    def may_log(self) -> bool:
        """Whether `vjp_bwd` may return a dict for `f_vjp.with_logs`."""
        return self.defines("vjp_bwd") or self.defines("vjp_bwd_retval_logs")

    def _missing(self, purpose: str, method: str) -> NotImplementedError:
        return NotImplementedError(f"for {purpose}, subclass {type(self)} must implement {method}")

    # ---- what subclasses define

    def expand(self, *args: Any) -> Any:
        """Return the result, computed with other operations."""
        raise self._missing("any use", "`expand`")

    def vjp_fwd(self, nzs_in: PyTree, /, *args: Any) -> Any:
        """Return the result, a pytree of residuals, and, if requested, which results have tangents.

        Args:
          nzs_in: per operand, whether its tangent may be nonzero.
          args: the operands.
        """
        raise self._missing("grad support", "`vjp_fwd`")

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: Any) -> Logs:
        """Add the operands' cotangents to accumulators, by their method `accum`.

        It may return a dict of pytrees by name, which `f_vjp.with_logs` returns.

        Args:
          res: the residuals.
          outgrad: the cotangent of the result, in which some leaves may be symbolic zeros.
          arg_accums: a pytree of `GradAccum`s for each operand.
        """
        returned, logs = self.vjp_bwd_retval_logs(res, outgrad)
        cotangents = self.in_tree.flatten_up_to(returned)
        for total, x in zip(self.in_tree.flatten_up_to(arg_accums), cotangents, strict=True):
            total.accum(x)
        return logs

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> Any:
        """Return a tuple of the operands' cotangents."""
        raise self._missing("grad support", "`vjp_bwd` or `vjp_bwd_retval`")

    def vjp_bwd_retval_logs(self, res: PyTree, outgrad: PyTree, /) -> tuple[Any, Logs]:
        """Return a tuple of the operands' cotangents, and a dict of logs as for `vjp_bwd`."""
        if not self.defines("vjp_bwd"):
            return self.vjp_bwd_retval(res, outgrad), None
        sums = [ValAccum(cotangent_type(t)) for t in self.in_avals_flat]
        logs = self.vjp_bwd(res, outgrad, *self.in_tree.unflatten(sums))
        return self.in_tree.unflatten([total.freeze() for total in sums]), logs

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
        """Add cotangents to the accumulators of operands in which the operation is linear.

        Args:
          out_ct: the cotangent of the result.
          maybe_accums: the operands, with a `GradAccum` for each unknown leaf.
        """
        raise self._missing("transpose support", "`transpose`")

    def batch(self, axis_data: AxisData, args: Any, dims: Any) -> tuple[PyTree, PyTree]:
        """Return the result for a batch of operands, and the batch axes of its leaves.

        `hijax.vmap_rule` batches a function, such as `self.expand`.

        Args:
          axis_data: the name and size of the axis.
          args: the operands.
          dims: their batch axes, or None.
        """
        raise self._missing("vmap support", "`batch`")

    def dce(self, used_outs: PyTree, live_ins: PyTree) -> tuple[PyTree, PyTree, "HiPrim | None"]:
        """Return which operands are read, which results remain, and the operation that makes these.

        The first two are pytree prefixes; the operation is None if there is nothing to do.

        Args:
          used_outs: per leaf of the result, whether anything reads it.
          live_ins: per leaf of the operands, whether a reference is read afterwards; always True in
              hlofront.
        """
        if self.effects or any(self.out_tree.flatten_up_to(used_outs)):
            return True, True, self
        return False, False, None

    def remat(self, trace: Rematerialization, *args: Any) -> tuple[PyTree, PyTree, Recompute]:
        """Return the result, residuals, and a function that recomputes it in `checkpoint`.

        The function is called with the residuals and the operands. Residuals, and values that the
        function closes over, are saved. By default nothing is saved, and everything is recomputed.

        Args:
          trace: its attribute `policy` is the policy of the checkpoint, or None.
          args: the operands.
        """

        def recompute(_: PyTree, *args: Any) -> PyTree:
            return self(*args)

        return self(*args), (), recompute

    def staging(self, trace: Any, source_info: Any, *args: Any) -> PyTree:
        """Add the operation to the program being traced, and return the result.

        Args:
          trace: the trace; its method `default_process_primitive` adds an equation.
          source_info: the operation's place in the user's program.
          args: the operands.
        """
        low = lowered(self.in_avals_flat, self.in_tree.flatten_up_to(args))
        params = {"_prim": self}
        results = trace.default_process_primitive(call_hi_primitive_p, low, params, source_info)
        return self.raised_result(results)

    def check(self, *arg_tys: Any) -> None:
        """Raise an error if the operation does not accept operands of these types."""

    def pp_params(self) -> dict[str, Any]:
        """Return the parameters that are shown when programs are printed."""
        return {name: value for name, value in self.params.items() if not name.startswith("_")}

    # ---- called by rules, because the signatures of methods depend on the version of JAX

    def without_dead_code(self, used_outs: PyTree) -> tuple[PyTree, PyTree, "HiPrim | None"]:
        """Return the result of `dce`."""
        return self.dce(used_outs, self.in_tree.unflatten([True] * self.in_tree.num_leaves))

    def recomputed(self, policy: Policy | None, *args: Any) -> tuple[PyTree, Recompute]:
        """Return the result, and a function of the operands that recomputes it."""
        result, residuals, recompute = self.remat(Rematerialization(policy), *args)
        return result, partial(recompute, residuals)

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
        return f"{type(self).__name__}[{self.pp_params()}]"

    def _key(self) -> Hashable:
        types = tuple(self.in_avals_flat), self.in_tree, tuple(self.out_avals_flat), self.out_tree
        return type(self), tuple(self.params.items()), self.effects, types

    def __hash__(self) -> int:
        return hash((type(self).__name__, tuple(self.params.items()), self.effects))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HiPrim) and self._key() == other._key()


# ---- groups of low values ------------------------------------------------------------------------


def groups_of(types: Sequence[Any], low: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the low values of each value of these types."""
    ends = iter(low)
    return [[next(ends) for _ in low_types([t])] for t in types]


def tangent_type(t: Any) -> Any:
    return t.to_tangent_aval()


def cotangent_type(t: Any) -> Any:
    return t.to_ct_aval() if isinstance(t, HiType) else t.to_cotangent_aval()


def raised_tangents(types: Sequence[Any], low: Tangents) -> list[Any]:
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


def results_with_tangents(prim: HiPrim) -> list[bool]:
    """Return, per low value of the result, whether it has a tangent, unlike integers."""
    return [_tangent_dtype(t) != float0 for t in prim.low_types_out]


def _tangent_dtype(t: AbstractValue) -> object:
    return getattr(t.to_tangent_aval(), "dtype", float0)


def tangents_of_result(prim: HiPrim, result: Any) -> list[Tangent]:
    types = [tangent_type(t) for t in prim.out_avals_flat]
    return lowered_tangents(types, prim.out_tree.flatten_up_to(result))


def flags_of_operands(prim: HiPrim, tangents: Tangents) -> tuple[bool, ...]:
    groups = groups_of(prim.in_avals_flat, tangents)
    return tuple([any(nonzero_flags(group)) for group in groups])


def of_low(types: Sequence[Any], members: Sequence[Any]) -> list[Any]:
    """Repeat the member for each value once per low value."""
    return [x for t, x in zip(types, members, strict=True) for _ in low_types([t])]


def with_axis_at(x: ArrayLike, axis: BatchAxis, new_axis: BatchAxis, size: int) -> ArrayLike:
    if new_axis is None or axis == new_axis:
        return x
    return with_new_axis(x, size, new_axis) if axis is None else move_axis(x, axis, new_axis)


def run_jvp(prim: HiPrim, primals: ArrayLikes, tangents: Tangents) -> Duals:
    """Run the method jvp on low values."""
    raised = raised_tangents([tangent_type(t) for t in prim.in_avals_flat], tangents)
    result, tangent = prim.jvp(prim.raised_args(primals), prim.in_tree.unflatten(raised))
    return prim.low_result(result), tangents_of_result(prim, tangent)


def type_of_batch(axis: AxisData, dim: BatchAxis, aval: Any) -> Any:
    """Return the type of a batch of values, or of one value if there is no batch axis."""
    if dim is not None and isinstance(aval, HiType):
        return aval.inc_rank(axis.size, dim)
    return unmapped_aval(axis.size, dim, aval, axis.explicit_mesh_axis, axis.mesh)


def type_of_example(axis: AxisData, dim: BatchAxis, aval: Any) -> Any:
    """Return the type of one value in a batch of this type."""
    if dim is not None and isinstance(aval, HiType):
        return aval.dec_rank(axis.size, dim)
    return mapped_aval(axis.size, dim, aval)
