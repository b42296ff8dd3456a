"""The user's functions and rules over an axis: what the batching of their calls makes of them."""

from collections.abc import Callable, Sequence
from typing import Any, overload

from hlofront.base.typing import ArrayLike
from hlofront.core.aval import ShapedArray
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.symbolic_zeros import BatchAxis, Cotangent, Tangent, Zero
from hlofront.higher_order.custom_rule import SymbolicZero
from hlofront.primitives.batching import move_axis, to_front, with_new_axis
from hlofront.primitives.reducing import reduce_sum
from hlofront.transforms.batch import Axes, batch_flat, batch_program_at

# A function of flat values.
FlatCall = Callable[..., Sequence[ArrayLike]]
# (residuals, cotangents of the results) -> cotangents of the arguments.
FlatBackward = Callable[[Sequence[ArrayLike], Sequence[Cotangent]], Sequence[Cotangent]]
# (primals, which of them have tangents) -> results, residuals, and the backward rule.
ForwardResult = tuple[Sequence[ArrayLike], Sequence[ArrayLike], FlatBackward]
FlatForward = Callable[[Sequence[ArrayLike], Sequence[bool]], ForwardResult]


def all_in_front(values: Sequence[ArrayLike], axes: Axes) -> tuple[list[ArrayLike], list[bool]]:
    """Return the values with their batch axis in front, and per value whether it has one."""
    flags = [a is not None for a in axes]
    return [
        x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)
    ], flags


class BatchedCall:
    """A call, with a batch axis, of a function that has a custom rule.

    An interpreter runs the function or the rule; the first run sets the batch axes of the results.

    Args:
      axis: the size and name of the axis.
      tag: the tag of the BatchTrace that batches the call: its tracers are batched values also
        where the function or the rule closes over them.
      axes: the batch axis of each operand, or None.
    """

    __slots__ = ("axes", "axis", "result_axes", "tag")

    def __init__(self, axis: AxisData, tag: object, axes: Axes):
        self.axis = axis
        self.tag = tag
        self.axes = tuple(axes)
        self.result_axes: Sequence[BatchAxis] | None = None

    @property
    def mapped(self) -> bool:
        """Return whether any operand has the axis."""
        return any(a is not None for a in self.axes)

    def axes_of_results(self) -> Sequence[BatchAxis]:
        """Return which axis of each result it is, after the function or its rule was run.

        Raises:
          RuntimeError: if neither was.
        """
        if self.result_axes is None:
            raise RuntimeError("neither the function of a batched call nor its rule was run")
        return self.result_axes

    @overload
    def function(self, call: ClosedJaxpr) -> ClosedJaxpr: ...
    @overload
    def function(self, call: FlatCall) -> "BatchedFunction": ...
    def function(self, call: ClosedJaxpr | FlatCall) -> "ClosedJaxpr | BatchedFunction":
        """Return the function, or the program that was traced from it, over the axis."""
        if not isinstance(call, ClosedJaxpr):
            return BatchedFunction(call, self)
        if not self.mapped and self.axis.name is None:
            self.result_axes = [None] * len(call.jaxpr.outvars)
            return call
        # The axes of the rule's results are not known yet, so that all results have the axis if
        # any operand has it.
        front = (True,) * len(call.jaxpr.outvars) if self.mapped else None
        program, axes_out = batch_program_at(call, self.axis, self.axes, front)
        self.result_axes = list(axes_out)
        return program

    def run(
        self, fun: Callable[..., Sequence[Any]], args: Sequence[Any], axes: Axes
    ) -> tuple[list[Any], list[BatchAxis]]:
        """Run a function over the axis, and return its results and their batch axes."""
        return batch_flat(fun, self.axis, args, axes, tag=self.tag)

    def moved(self, x: Tangent, axis: BatchAxis, wanted: BatchAxis) -> Tangent:
        """Return a result, or its tangent, with the batch axis that the call's results have.

        Args:
          x: the result, or the tangent.
          axis: its batch axis.
          wanted: the batch axis that it is to have.

        Raises:
          ValueError: if it has a batch axis and is to have none.
        """
        size = self.axis.size
        if isinstance(x, Zero):
            return x if wanted is None else Zero(with_axis(x.aval, size, wanted))
        if axis is None:
            return x if wanted is None else with_new_axis(x, size, wanted)
        if wanted is None:
            raise varies("the rule gives a result that varies over it, where the function does not")
        return move_axis(x, axis, wanted)


def varies(what: str) -> ValueError:
    """Return the error for a rule that varies over an axis that no argument of its call has.

    Args:
      what: what varies, as the end of a sentence.
    """
    return ValueError(
        "a function with a custom derivative was called under vmap with no argument that is "
        f"mapped, and {what}: its derivative cannot be told. Pass the mapped value that the rule "
        "uses to the function as an argument."
    )


class BatchedFunction:
    """A flat function over an axis of some of its arguments.

    Attributes:
      in_program: whether it is being traced, so that the rule, which runs later, has to give
        results with the same axes.
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
    """Return the function of a call that is being traced, which knows so afterwards."""
    inner = call
    while isinstance(inner, BatchedFunction):
        inner.in_program = True
        inner = inner.fun
    return call


class BatchedRule:
    """A forward rule, (*primals, *tangents) -> (*results, *tangents), over an axis."""

    __slots__ = ("__name__", "axes", "call", "rule")

    def __init__(self, rule: Callable[..., Sequence[Tangent]], call: BatchedCall, axes: Axes):
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
                # It is of the same type in every example.
                rule_args[index], axes[index] = SymbolicZero(without_axis(x.aval, a)), None
        values, axes_out = call.run(self.rule, rule_args, axes)
        count = len(values) // 2
        wanted = call.result_axes
        if wanted is None:
            pairs = zip(axes_out[:count], axes_out[count:], strict=True)
            wanted = call.result_axes = [t if p is None else p for p, t in pairs]
        return [
            call.moved(x, a, w)
            for x, a, w in zip(values, axes_out, [*wanted, *wanted], strict=True)
        ]


class BatchedForward:
    """A forward rule of custom_vjp over an axis of some of its arguments."""

    __slots__ = ("__name__", "axes", "call", "forward")

    def __init__(self, forward: FlatForward, call: BatchedCall, axes: Axes):
        self.forward = forward
        self.call = call
        self.axes = tuple(axes)
        self.__name__: str = getattr(forward, "__name__", "")

    def __call__(
        self, primals: Sequence[ArrayLike], perturbed: Sequence[bool]
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
        wanted = call.result_axes
        if wanted is None:
            # A result without the axis has one cotangent, the sum over all examples. The backward
            # rule can do with that only where it is the same in all of them.
            wanted = axes_out[:count]
            if call.mapped or any(a is not None for a in axes_out):
                wanted = [0 if a is None else a for a in wanted]
            call.result_axes = wanted
        results: list[Any] = [
            call.moved(x, a, w)
            for x, a, w in zip(values[:count], axes_out[:count], wanted, strict=True)
        ]
        own = BatchedBackward(backward, call.axis, call.tag, axes_out[count:], wanted, self.axes)
        return results, values[count:], own


class BatchedBackward:
    """A backward rule over an axis; cotangents of values without the axis are summed over it.

    Args:
      backward: the rule.
      axis: the axis.
      tag: the tag of the BatchTrace; see `BatchedCall`.
      residual_axes: which axis of each residual it is.
      result_axes: which axis of each result, and of its cotangent, it is.
      axes: which axis of each argument, and of its cotangent, it is.
    """

    __slots__ = ("axes", "axis", "backward", "residual_axes", "result_axes", "tag")

    def __init__(
        self,
        backward: FlatBackward,
        axis: AxisData,
        tag: object,
        residual_axes: Axes,
        result_axes: Axes,
        axes: Axes,
    ):
        self.backward = backward
        self.axis = axis
        self.tag = tag
        self.residual_axes = tuple(residual_axes)
        self.result_axes = tuple(result_axes)
        self.axes = axes

    def __call__(
        self, residuals: Sequence[ArrayLike], cotangents: Sequence[Cotangent]
    ) -> list[Cotangent]:
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

        values, axes_out = batch_flat(
            flat, self.axis, [*residuals, *arrays], [*self.residual_axes, *axes], tag=self.tag
        )
        return [
            self._fitted(x, a, wanted)
            for x, a, wanted in zip(values, axes_out, self.axes, strict=True)
        ]

    def _fitted(self, x: Cotangent, axis: BatchAxis, wanted: BatchAxis) -> Cotangent:
        """Return a cotangent with its batch axis moved to that of its argument.

        Args:
          x: the cotangent.
          axis: its batch axis, or None.
          wanted: the batch axis of the argument; if None, the result is the sum over all examples.
        """
        size = self.axis.size
        if isinstance(x, Zero):
            return x if wanted is None else Zero(with_axis(x.aval, size, wanted))
        if wanted is None:
            results_vary = any(a is not None for a in self.result_axes)
            if axis is None:
                # The same in all examples.
                return reduce_sum(to_front(x, axis, size), (0,)) if results_vary else x
            if not results_vary:
                raise varies("its backward rule gives a cotangent that varies over it")
            return reduce_sum(x, (axis,))
        return with_new_axis(x, size, wanted) if axis is None else move_axis(x, axis, wanted)


def with_axis(aval: ShapedArray, size: int, axis: int) -> ShapedArray:
    """Return the type with one more axis, of this size and at this index."""
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def without_axis(aval: ShapedArray, axis: int) -> ShapedArray:
    """Return the type without the axis of this index."""
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))
