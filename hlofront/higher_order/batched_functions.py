"""The user's functions and rules over an axis: what the batching of their calls makes of them."""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.symbolic_zeros import Zero
from hlofront.higher_order.custom_rule import SymbolicZero
from hlofront.primitives.batching import move_axis, to_front, with_new_axis
from hlofront.primitives.reducing import reduce_sum
from hlofront.transforms.batch import Axes, batch_flat, batch_program_at


def all_in_front(values: Sequence[Any], axes: Axes) -> tuple[list[Any], list[bool]]:
    """The values with the batch axis of those that have one in front, and which have one."""
    flags = [a is not None for a in axes]
    return [
        to_front(x, a, 0) if a is not None else x for x, a in zip(values, axes, strict=True)
    ], flags


class BatchedCall:
    """One call of a function with a custom rule over an axis.

    Either the function is run or its rule is, by whatever interprets the call, and the one that is
    run first decides which results have the axis.

    Args:
      axis: the axis.
      tag: the tag of the BatchTrace that the call is batched for: values of it that the function
        or the rule closes over are batched values there too.
      axes: which axis of each operand it is.
    """

    __slots__ = ("axes", "axis", "result_axes", "tag")

    def __init__(self, axis: AxisData, tag: Any, axes: Axes):
        self.axis = axis
        self.tag = tag
        self.axes = tuple(axes)
        self.result_axes: list[int | None] | None = None

    @property
    def mapped(self) -> bool:
        return any(a is not None for a in self.axes)

    def function(self, call: Any) -> Any:
        """The function, or the program that it is written down as, over the axis."""
        if not isinstance(call, ClosedJaxpr):
            return BatchedFunction(call, self)
        if not self.mapped and self.axis.name is None:
            self.result_axes = [None] * len(call.jaxpr.outvars)
            return call
        # What the rule will give is not known, so that all results have the axis if any operand has
        # it.
        front = (True,) * len(call.jaxpr.outvars) if self.mapped else None
        program, axes_out = batch_program_at(call, self.axis, self.axes, front)
        self.result_axes = list(axes_out)
        return program

    def run(
        self, fun: Callable[..., Sequence[Any]], args: Sequence[Any], axes: Axes
    ) -> tuple[list[Any], list[int | None]]:
        return batch_flat(fun, self.axis, args, axes, tag=self.tag)

    def moved(self, x: Any, axis: int | None, wanted: int | None) -> Any:
        """A result, or its tangent, with the axis where the results of the call have it."""
        size = self.axis.size
        if type(x) is Zero:
            return x if wanted is None else Zero(with_axis(x.aval, size, wanted))
        if axis is None:
            return x if wanted is None else with_new_axis(x, size, wanted)
        if wanted is None:
            raise varies("the rule gives a result that varies over it, where the function does not")
        return move_axis(x, axis, wanted)


def varies(what: str) -> ValueError:
    return ValueError(
        "a function with a custom derivative was called under vmap with no argument that is "
        f"mapped, and {what}: its derivative cannot be told. Pass the mapped value that the rule "
        "uses to the function as an argument."
    )


class BatchedFunction:
    """A flat function over an axis of some of its arguments."""

    __slots__ = ("call", "fun", "in_program")

    def __init__(self, fun: Callable[..., Sequence[Any]], call: BatchedCall):
        self.fun = fun
        self.call = call
        # Whether it is being written down, so that the rule, which runs later, has to give results
        # with the same axes.
        self.in_program = False

    @property
    def debug_info(self) -> Any:
        return getattr(self.fun, "debug_info", None)

    def __call__(self, *args: Any) -> list[Any]:
        call = self.call
        values, axes = call.run(self.fun, args, call.axes)
        if self.in_program and call.mapped:
            values = [to_front(x, a, call.axis.size) for x, a in zip(values, axes, strict=True)]
            axes = [0] * len(values)
        call.result_axes = axes
        return values


def in_program(call: Any) -> Any:
    """A function of a call that is being written down."""
    inner = call
    while isinstance(inner, BatchedFunction):
        inner.in_program = True
        inner = inner.fun
    return call


class BatchedRule:
    """A forward rule, (*primals, *tangents) -> (*results, *tangents), over an axis."""

    __slots__ = ("__name__", "axes", "call", "rule")

    def __init__(self, rule: Any, call: BatchedCall, axes: Axes):
        self.rule = rule
        self.call = call
        self.axes = (*axes, *axes)
        self.__name__ = getattr(rule, "__name__", "")

    def __call__(self, *args: Any) -> list[Any]:
        call = self.call
        axes = list(self.axes)
        given = list(args)
        for place, (x, a) in enumerate(zip(args, axes, strict=True)):
            if type(x) is SymbolicZero and a is not None:
                # It is of the same type in every example.
                given[place], axes[place] = SymbolicZero(without_axis(x.aval, a)), None
        values, found = call.run(self.rule, given, axes)
        count = len(values) // 2
        wanted = call.result_axes
        if wanted is None:
            pairs = zip(found[:count], found[count:], strict=True)
            wanted = call.result_axes = [t if p is None else p for p, t in pairs]
        return [
            call.moved(x, a, w) for x, a, w in zip(values, found, [*wanted, *wanted], strict=True)
        ]


class BatchedForward:
    """A forward rule of custom_vjp over an axis of some of its arguments."""

    __slots__ = ("__name__", "axes", "call", "forward")

    def __init__(self, forward: Any, call: BatchedCall, axes: Axes):
        self.forward = forward
        self.call = call
        self.axes = tuple(axes)
        self.__name__ = forward.__name__

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        call = self.call
        count = backward = None

        def flat(*args: Any) -> list[Any]:
            nonlocal count, backward
            results, residuals, backward = self.forward(args, perturbed)
            count = len(results)
            return [*results, *residuals]

        values, found = call.run(flat, primals, self.axes)
        wanted = call.result_axes
        if wanted is None:
            # A result without the axis has one cotangent, the sum over all examples. The backward
            # rule can do with that only where it is the same in all of them.
            wanted = found[:count]
            if call.mapped or any(a is not None for a in found):
                wanted = [0 if a is None else a for a in wanted]
            call.result_axes = wanted
        results = [
            call.moved(x, a, w)
            for x, a, w in zip(values[:count], found[:count], wanted, strict=True)
        ]
        own = BatchedBackward(backward, call.axis, call.tag, found[count:], wanted, self.axes)
        return results, values[count:], own


class BatchedBackward:
    """A backward rule over an axis; cotangents of values without the axis are summed over it."""

    __slots__ = ("axes", "axis", "backward", "residual_axes", "result_axes", "tag")

    def __init__(
        self,
        backward: Any,
        axis: AxisData,
        tag: Any,
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

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        count = len(residuals)
        given: list[Any] = []
        axes: list[int | None] = []
        zeros: dict[int, Zero] = {}
        for place, (c, a) in enumerate(zip(cotangents, self.result_axes, strict=True)):
            if type(c) is Zero:
                zeros[place] = c if a is None else Zero(without_axis(c.aval, a))
            else:
                given.append(c)
                axes.append(a)

        def flat(*args: Any) -> list[Any]:
            rest = iter(args[count:])
            arriving = [
                zeros[place] if place in zeros else next(rest) for place in range(len(cotangents))
            ]
            return self.backward(args[:count], arriving)

        values, found = batch_flat(
            flat, self.axis, [*residuals, *given], [*self.residual_axes, *axes], tag=self.tag
        )
        return [
            self._fitted(x, a, wanted)
            for x, a, wanted in zip(values, found, self.axes, strict=True)
        ]

    def _fitted(self, x: Any, a: int | None, wanted: int | None) -> Any:
        size = self.axis.size
        if type(x) is Zero:
            return x if wanted is None else Zero(with_axis(x.aval, size, wanted))
        if wanted is None:
            if a is None:
                # The same in all examples.
                given = any(axis is not None for axis in self.result_axes)
                return reduce_sum(to_front(x, a, size), (0,)) if given else x
            if all(axis is None for axis in self.result_axes):
                raise varies("its backward rule gives a cotangent that varies over it")
            return reduce_sum(x, (a,))
        return with_new_axis(x, size, wanted) if a is None else move_axis(x, a, wanted)


def with_axis(aval: Any, size: Any, axis: int) -> Any:
    """The aval with one more axis."""
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def without_axis(aval: Any, axis: int) -> Any:
    """The aval with one axis less."""
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))
