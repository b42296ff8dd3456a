"""The batching of functions with custom derivative rules, and of the rules themselves."""

from collections.abc import Callable, Sequence
from typing import Any, overload

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray
from hlofront.core.axes import AxisData, mapped_aval, split_batch_axis, unmapped_aval
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Cotangent, Tangent, Tangents, Zero
from hlofront.higher_order.custom_rules.custom_rule import SymbolicZero
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.rules.batching import move_axis, to_front, with_new_axis
from hlofront.transforms.backward_logs import LogsAsResults
from hlofront.transforms.batch import Axes, batch_flat, batch_program_at

# A function of flat values.
FlatCall = Callable[..., ArrayLikes]
# (residuals, cotangents of the results) -> cotangents of the arguments.
FlatBackward = Callable[[ArrayLikes, Sequence[Cotangent]], Sequence[Cotangent]]
# (primals, per primal whether it has a tangent) -> results, residuals, and the backward rule.
ForwardResult = tuple[ArrayLikes, ArrayLikes, FlatBackward]
FlatForward = Callable[[ArrayLikes, Sequence[bool]], ForwardResult]


def all_in_front(values: ArrayLikes, axes: Axes) -> tuple[list[ArrayLike], list[bool]]:
    """Move each batch axis to the front; return the values, and per value whether it has one."""
    flags = [a is not None for a in axes]
    return [
        x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)
    ], flags


class BatchedCall:
    """A batched call of a function that has a custom rule.

    An interpreter runs the function or the rule; the first run sets the batch axes of the results.

    Args:
      axis: the batch axis. Tracers of the BatchTrace with its tag are batched values even if the
        function or the rule closes over them.
      axes: the batch axis of each operand, or None.
    """

    __slots__ = ("axes", "axis", "result_axes")

    def __init__(self, axis: AxisData, axes: Axes):
        self.axis = axis
        self.axes = tuple(axes)
        self.result_axes: BatchAxes | None = None

    @property
    def mapped(self) -> bool:
        """Return whether any operand of the call has the batch axis."""
        return any(a is not None for a in self.axes)

    def axes_of_results(self) -> BatchAxes:
        """Return the batch axis of each result of the call, once its function or rule has run.

        Raises:
          RuntimeError: if neither has run.
        """
        if self.result_axes is None:
            raise RuntimeError("neither the function of a batched call nor its rule was run")
        return self.result_axes

    @overload
    def function(self, call: ClosedJaxpr) -> ClosedJaxpr: ...
    @overload
    def function(self, call: FlatCall) -> "BatchedFunction": ...
    def function(self, call: ClosedJaxpr | FlatCall) -> "ClosedJaxpr | BatchedFunction":
        """Return the batched function: a closed jaxpr for a closed jaxpr, or a BatchedFunction."""
        if not isinstance(call, ClosedJaxpr):
            return BatchedFunction(call, self)
        if not self.mapped and self.axis.name is None:
            self.result_axes = [None] * len(call.jaxpr.outvars)
            return call
        # The batch axes of the rule's results are not known yet, so all results are batched if any
        # operand is.
        front = (True,) * len(call.jaxpr.outvars) if self.mapped else None
        program, axes_out = batch_program_at(call, self.axis, self.axes, front)
        self.result_axes = list(axes_out)
        return program

    def run(
        self, fun: Callable[..., Sequence[Value]], args: Sequence[Value], axes: Axes
    ) -> tuple[list[Value], list[BatchAxis]]:
        """Run a function under the batch trace, and return its results and their batch axes."""
        return batch_flat(fun, self.axis, args, axes)

    def moved(self, x: Tangent, axis: BatchAxis, axis_out: BatchAxis) -> Tangent:
        """Move the batch axis of a result to that of the call's corresponding result.

        Args:
          x: the result, or its tangent.
          axis: the current batch axis of `x`.
          axis_out: the batch axis of the returned value.

        Raises:
          ValueError: if `x` has a batch axis and `axis_out` is None.
        """
        size = self.axis.size
        if isinstance(x, Zero):
            return x if axis_out is None else Zero(with_axis(x.aval, size, axis_out))
        if axis is None:
            return x if axis_out is None else with_new_axis(x, size, axis_out)
        if axis_out is None:
            raise varies("the rule gives a result that varies over it, where the function does not")
        return move_axis(x, axis, axis_out)


def varies(what: str) -> ValueError:
    """Return the error for a rule that varies over a batch axis that no argument of its call has.

    Args:
      what: the end of the message, which names the varying value.
    """
    return ValueError(
        "a function with a custom derivative was called under vmap with no argument that is "
        f"mapped, and {what}: its derivative is unknown. Pass the mapped value that the rule "
        "uses to the function as an argument."
    )


class BatchedFunction:
    """A function of flat values, batched over an axis of some of its arguments.

    Attributes:
      in_program: whether the function is being traced, so that the rule, which runs later, must
        return results with equal batch axes.
    """

    __slots__ = ("call", "fun", "in_program")

    def __init__(self, fun: FlatCall, call: BatchedCall):
        self.fun = fun
        self.call = call
        self.in_program = False

    @property
    def debug_info(self) -> DebugInfo | None:
        return getattr(self.fun, "debug_info", None)

    def __call__(self, *args: ArrayLike) -> list[ArrayLike]:
        call = self.call
        values, axes = call.run(self.fun, args, call.axes)
        if self.in_program and call.mapped:
            values = [to_front(x, a, call.axis.size) for x, a in zip(values, axes, strict=True)]
            axes = [0] * len(values)
        call.result_axes = axes
        return values


def in_program(call: FlatCall) -> FlatCall:
    """Set `in_program` of each nested BatchedFunction of a call, and return the call's function."""
    inner = call
    while isinstance(inner, BatchedFunction):
        inner.in_program = True
        inner = inner.fun
    return call


class BatchedRule:
    """A batched jvp rule: (*primals, *tangents) -> (*results, *tangents)."""

    __slots__ = ("__name__", "axes", "call", "rule")

    def __init__(self, rule: Callable[..., Tangents], call: BatchedCall, axes: Axes):
        self.rule = rule
        self.call = call
        self.axes = (*axes, *axes)
        self.__name__ = getattr(rule, "__name__", "")

    def __call__(self, *args: ArrayLike | SymbolicZero) -> list[Tangent]:
        call = self.call
        axes = list(self.axes)
        rule_args = list(args)
        for index, (x, a) in enumerate(zip(args, axes, strict=True)):
            if isinstance(x, SymbolicZero) and a is not None:
                # The zero tangent has the same type in all examples.
                rule_args[index], axes[index] = SymbolicZero(without_axis(x.aval, a)), None
        values, axes_out = call.run(self.rule, rule_args, axes)
        count = len(values) // 2
        result_axes = call.result_axes
        if result_axes is None:
            pairs = zip(axes_out[:count], axes_out[count:], strict=True)
            result_axes = call.result_axes = [t if p is None else p for p, t in pairs]
        return [
            call.moved(x, a, w)
            for x, a, w in zip(values, axes_out, [*result_axes, *result_axes], strict=True)
        ]


class BatchedForward:
    """A forward rule of custom_vjp, batched over an axis of some of its arguments."""

    __slots__ = ("__name__", "axes", "call", "forward")

    def __init__(self, forward: FlatForward, call: BatchedCall, axes: Axes):
        self.forward = forward
        self.call = call
        self.axes = tuple(axes)
        self.__name__: str = getattr(forward, "__name__", "")

    def __call__(
        self, primals: ArrayLikes, perturbed: Sequence[bool]
    ) -> tuple[list[ArrayLike], list[ArrayLike], "BatchedBackward"]:
        call = self.call
        forwards: list[ForwardResult] = []

        def flat(*args: ArrayLike) -> list[ArrayLike]:
            forwards.append(self.forward(args, perturbed))
            results, residuals, _ = forwards[-1]
            return [*results, *residuals]

        values, axes_out = call.run(flat, primals, self.axes)
        batched_results, _, backward = forwards.pop()
        count = len(batched_results)
        result_axes = call.result_axes
        if result_axes is None:
            # A result without the batch axis has one cotangent: the sum over all examples. A
            # backward rule can only use that sum if the rule does not vary over the examples.
            result_axes = axes_out[:count]
            if call.mapped or any(a is not None for a in axes_out):
                result_axes = [0 if a is None else a for a in result_axes]
            call.result_axes = result_axes
        results: list[Value] = [
            call.moved(x, a, w)
            for x, a, w in zip(values[:count], axes_out[:count], result_axes, strict=True)
        ]
        batched_backward = BatchedBackward(
            backward, call.axis, axes_out[count:], result_axes, self.axes
        )
        return results, values[count:], batched_backward


def may_log_backwards(backward: FlatBackward) -> bool:
    """Return whether a backward rule, of this or another package, may log."""
    return getattr(backward, "may_log", False)


class BatchedBackward:
    """A batched backward rule; cotangents of unbatched values are summed over the batch axis.

    Args:
      backward: the rule.
      axis: the batch axis; see `BatchedCall`.
      residual_axes: the batch axis of each residual.
      result_axes: the batch axis of each result and of its cotangent.
      axes: the batch axis of each argument and of its cotangent.
    """

    __slots__ = ("axes", "axis", "backward", "residual_axes", "result_axes")

    def __init__(
        self,
        backward: FlatBackward,
        axis: AxisData,
        residual_axes: Axes,
        result_axes: Axes,
        axes: Axes,
    ):
        self.backward = backward
        self.axis = axis
        self.residual_axes = tuple(residual_axes)
        self.result_axes = tuple(result_axes)
        self.axes = axes

    @property
    def may_log(self) -> bool:
        return may_log_backwards(self.backward)

    def __call__(self, residuals: ArrayLikes, cotangents: Sequence[Cotangent]) -> list[Cotangent]:
        count = len(residuals)
        arrays: list[ArrayLike] = []
        axes: list[BatchAxis] = []
        zeros: dict[int, Zero] = {}
        for index, (c, a) in enumerate(zip(cotangents, self.result_axes, strict=True)):
            if isinstance(c, Zero):
                zeros[index] = c if a is None else Zero(without_axis(c.aval, a))
            else:
                arrays.append(c)
                axes.append(a)

        def flat(*args: ArrayLike) -> Sequence[Cotangent]:
            rest = iter(args[count:])
            arriving = [
                zeros[index] if index in zeros else next(rest) for index in range(len(cotangents))
            ]
            return self.backward(args[:count], arriving)

        logged = LogsAsResults(flat)
        values, axes_out = batch_flat(
            logged, self.axis, [*residuals, *arrays], [*self.residual_axes, *axes]
        )
        values, axes_out = logged.take_logs(values, axes_out, "a custom VJP bwd rule")
        return [
            self._fitted(x, a, primal_axis)
            for x, a, primal_axis in zip(values, axes_out, self.axes, strict=True)
        ]

    def _fitted(self, x: Cotangent, axis: BatchAxis, primal_axis: BatchAxis) -> Cotangent:
        """Move a cotangent's batch axis to the batch axis of its argument.

        Args:
          x: the cotangent.
          axis: the batch axis of `x`, or None.
          primal_axis: the batch axis of the argument; if None, the examples are summed.
        """
        size = self.axis.size
        if isinstance(x, Zero):
            return x if primal_axis is None else Zero(with_axis(x.aval, size, primal_axis))
        if primal_axis is None:
            # As in JAX, a value that a rule returns without the batch axis counts once, not once
            # per example: a derivative is linear in the cotangents, so it is batched if they are.
            if axis is None:
                return x
            if all(a is None for a in self.result_axes):
                raise varies("its backward rule gives a cotangent that varies over it")
            return reduce_sum(x, (axis,))
        return (
            with_new_axis(x, size, primal_axis) if axis is None else move_axis(x, axis, primal_axis)
        )


def with_axis(aval: ShapedArray, size: int, axis: int) -> ShapedArray:
    """Return the aval with an axis of `size` inserted at index `axis`."""
    batch = split_batch_axis()
    names = () if batch is None else batch.explicit_mesh_axis
    result: Any = unmapped_aval(size, axis, aval, names)
    return result


def without_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    """Return the aval with the axis at index `axis` removed."""
    result: Any = mapped_aval(aval.shape[axis], axis, aval)
    return result
