"""Batching: the trace and tracers of vmap, and batched evaluation of jaxprs."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base.boundary import user_context
from hlofront.base.config import check_tracer_leaks
from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core import rules
from hlofront.core.aval import register_value_type, typeof
from hlofront.core.axes import (
    AxisData,
    BatchTag,
    axes_in_scope,
    mapped_aval,
    split_batch_axis,
    splitting_batches,
    unmapped_aval,
)
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Jaxpr, Literal, Value
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import closed_programs_in
from hlofront.core.references import is_reference
from hlofront.core.trace import RuleTrace, Trace, Tracer, current_trace, interpreting_with, process
from hlofront.primitives.rules.batching import to_front
from hlofront.transforms.jvp import describe
from hlofront.transforms.leaks import raise_if_leaked
from hlofront.transforms.stage import stage

Axes = Sequence[int | None]


class BatchTracer(Tracer):
    """A tracer of vmap: a value with a batch axis, whose aval omits that axis."""

    __slots__ = ("batch_axis", "value")

    _trace: "BatchTrace"

    def __init__(self, trace: "BatchTrace", value: ArrayLike, batch_axis: int):
        # It is never replaced, so it may have a narrower type than in the base class.
        self._trace = trace  # pyright: ignore[reportIncompatibleVariableOverride]
        self.value = value
        self.batch_axis = batch_axis
        aval = typeof(value)
        self.aval = mapped_aval(aval.shape[batch_axis], batch_axis, aval)

    @property
    def val(self) -> ArrayLike:
        """The batched value, under JAX's name."""
        return self.value

    @property
    def batch_dim(self) -> int:
        """The batch axis, under JAX's name."""
        return self.batch_axis

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={typeof(self.value)})"

    __str__ = __repr__

    def _origin_message(self) -> str:
        value = self.value
        return value._origin_message() if isinstance(value, Tracer) else ""

    def _origin_arguments(self) -> list[str]:
        value = self.value
        return value._origin_arguments() if isinstance(value, Tracer) else []

    def _traced_function(self) -> str:
        return describe(self._trace.debug_info)


register_value_type(BatchTracer, lambda tracer: tracer.aval)


def mark_closed_over(values: Sequence[Value]) -> None:
    """Record in the tags of batched values that a function with a custom rule closed over them."""
    for x in values:
        while type(x) is BatchTracer:
            tag = x._trace.tag  # pyright: ignore[reportPrivateUsage]
            if isinstance(tag, BatchTag):
                tag.closed_over = True
            x = x.value


class BatchTrace(RuleTrace):
    """A trace of vmap, which applies batch rules to operations on batched values."""

    __slots__ = ("axis", "debug_info", "parent", "programs_of", "tag")

    # The axis's tag, which all traces of one vmap call share. A function with a custom rule runs
    # under another trace with another parent, and the batched values of this trace that it closes
    # over are batched values there too.
    tag: object

    def __init__(self, parent: Trace, axis: AxisData, debug_info: DebugInfo | None = None):
        self.parent = parent
        self.axis = axis
        self.tag = axis.tag
        self.debug_info = debug_info
        # Programs that captured values of this function; see `StagingTrace.programs_of`.
        self.programs_of: dict[object, object] = {}

    @property
    def main(self) -> object:
        return self.tag

    def wrap(self, value: Value, axis: int | None) -> Value:
        return value if axis is None else BatchTracer(self, value, axis)

    def split(self, x: Value) -> tuple[Value, int | None]:
        if type(x) is BatchTracer and x._trace.tag is self.tag:  # pyright: ignore[reportPrivateUsage]
            return x.value, x.batch_axis
        return x, None

    def lift(self, x: Value) -> Value:
        return self.parent.lift(x)

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        values: list[Value] = []
        axes: list[int | None] = []
        results: Value
        axes_out: Any
        mapped = False
        tag = self.tag
        for x in args:
            if type(x) is BatchTracer and x._trace.tag is tag:  # pyright: ignore[reportPrivateUsage]
                values.append(x.value)
                axes.append(x.batch_axis)
                mapped = True
            else:
                values.append(x)
                axes.append(None)
        with interpreting_with(self.parent):
            if primitive.carries_programs and primitive in rules.batch_with_trace:
                rule = rules.batch_with_trace[primitive]
                results, axes_out = rule(self, values, axes, **params)
            elif not mapped and not asks_for_axis(primitive, self.axis, values):
                return self.parent.process(primitive, args, params)
            else:
                results, axes_out = run_batched(primitive, self.axis, values, axes, params)
        if primitive.multiple_results:
            return [self.wrap(x, axis) for x, axis in zip(results, axes_out, strict=True)]
        return self.wrap(results, axes_out)


def asks_for_axis(primitive: Primitive, axis: AxisData, operands: ArrayLikes) -> bool:
    """Return whether to apply a primitive's batch rule even if no operand is batched.

    hlofront's own rules need the batch axis only if it has a name, or for mutable references: new
    ones are batched, because batched values may be written to them, and unbatched ones cannot be
    written to. Rules of other packages may always use its size.
    """
    return primitive in rules.batch_with_axis and (
        axis.name is not None
        or primitive.ref_primitive
        or primitive in rules.batch_with_axis.foreign
        or (primitive.carries_programs and any(is_reference(typeof(x)) for x in operands))
    )


def run_batched(
    primitive: Primitive, axis: AxisData, values: ArrayLikes, axes: Axes, params: Params
) -> tuple[Value, Value]:
    """Apply a primitive's batch rule; return (result, batch axis), or a list of each."""
    values, axes = tuple(values), tuple(axes)
    if axis.explicit_mesh_axis or split_batch_axis() is not None:
        with splitting_batches(axis):
            return _batch_rule_result(primitive, axis, values, axes, params)
    return _batch_rule_result(primitive, axis, values, axes, params)


def _batch_rule_result(
    primitive: Primitive,
    axis: AxisData,
    values: tuple[ArrayLike, ...],
    axes: tuple[int | None, ...],
    params: Params,
) -> tuple[Value, Value]:
    with_axis = rules.batch_with_axis.get(primitive)
    if with_axis is not None:
        return with_axis(axis, values, axes, **params)
    return rules.batch[primitive](values, axes, **params)


def batch_flat(
    fun: Callable[..., Sequence[Value]],
    axis: AxisData,
    values: Sequence[Value],
    axes: Axes,
    debug_info: DebugInfo | None = None,
) -> tuple[list[Value], list[int | None]]:
    """Run a flat function under vmap; return its results and their batch axes.

    Args:
      fun: takes and returns flat values.
      axis: the size and name of the batch axis. Tracers that the function closes over are batched
        values too if their BatchTrace has the axis's tag.
      values: the arguments, as arrays with their batch axes.
      axes: per argument its batch axis, or None if it is not batched.
      debug_info: the debug info of the function.
    """
    trace = BatchTrace(current_trace(), axis, debug_info)
    named = () if axis.name is None else ((axis.name, axis.size),)
    try:
        with interpreting_with(trace), axes_in_scope(named):
            outputs = fun(*map(trace.wrap, values, axes))
    finally:
        trace.alive = False
        trace.programs_of.clear()
    pairs = [trace.split(x) for x in outputs]
    if check_tracer_leaks.value:
        del outputs
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)
    return [x for x, _ in pairs], [a for _, a in pairs]


def batch_jaxpr(
    jaxpr: Jaxpr, consts: ArrayLikes, axis: AxisData, values: Sequence[Value], axes: Axes
) -> tuple[list[Value], list[int | None]]:
    """Evaluate a jaxpr on batched values; return its results and their batch axes."""
    known: dict[Atom, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, values, strict=True))
    # A variable without an entry is not batched.
    placed: dict[Atom, int] = {
        var: a for var, a in zip(jaxpr.invars, axes, strict=True) if a is not None
    }
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        operands = [
            atom.operand if type(atom) is Literal else known[atom] for atom in equation.invars
        ]
        own = [None if type(atom) is Literal else placed.get(atom) for atom in equation.invars]
        try:
            with coming_from(equation.name_stack, equation.traceback):
                if all(a is None for a in own) and not asks_for_axis(primitive, axis, operands):
                    results: Value = process(primitive, tuple(operands), equation.params)
                    if primitive.multiple_results:
                        known.update(zip(equation.outvars, results, strict=True))
                    else:
                        known[equation.outvars[0]] = results
                    continue
                results, axes_out = run_batched(primitive, axis, operands, own, equation.params)
        except Exception:
            with user_context(equation.traceback):
                raise
        if not primitive.multiple_results:
            results, axes_out = (results,), (axes_out,)
        for var, result, a in zip(equation.outvars, results, axes_out, strict=True):
            known[var] = result
            if a is not None:
                placed[var] = a
    outputs: list[Value] = []
    axes_found: list[int | None] = []
    for atom in jaxpr.outvars:
        if type(atom) is Literal:
            outputs.append(atom.operand)
            axes_found.append(None)
        else:
            outputs.append(known[atom])
            axes_found.append(placed.get(atom))
    return outputs, axes_found


def batch_program(
    program: ClosedJaxpr,
    axis: AxisData,
    batched: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return a closed jaxpr batched along axis 0 of inputs and outputs; cached per program.

    Args:
      program: the closed jaxpr of one example.
      axis: the size and name of the batch axis.
      batched: per input, whether it has the batch axis.
      instantiate: per output, or for all, whether to batch it even if no batched input affects it.

    Returns:
      The batched closed jaxpr, and per output whether it has the batch axis.
    """
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(program.jaxpr.outvars)
    axes = tuple(0 if b else None for b in batched)
    made, axes_out = batch_program_at(program, axis, axes, tuple(instantiate))
    return made, tuple(a is not None for a in axes_out)


def batch_program_at(
    program: ClosedJaxpr, axis: AxisData, axes: Axes, front: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """Return a closed jaxpr batched along chosen axes of its inputs; cached per program.

    Args:
      program: the closed jaxpr of one example.
      axis: the size and name of the batch axis.
      axes: per input its batch axis, or None if it is not batched.
      front: per output, whether to batch it in any case; batched outputs then have batch axis
        0. With None, each output has the batch axis that its batch rule returns.

    Returns:
      The batched closed jaxpr, and per output its batch axis or None.
    """
    # If rules close over batched values of a vmap call, other calls do not share the program.
    tag: object = axis.tag
    if not getattr(tag, "closed_over", True) or not _calls_closures(program):
        tag = None
    return _batch_program(program, axis, tuple(axes), None if front is None else tuple(front), tag)


@once_per_program
def _calls_closures(program: ClosedJaxpr) -> bool:
    """Return whether a program calls functions that closed over traced values.

    Their rules, which run later, may close over the same values.
    """
    return any(
        equation.primitive in rules.batch_with_trace and equation.params["num_consts"] > 0
        for equation in program.eqns
    ) or any(map(_calls_closures, closed_programs_in(program.eqns)))


@once_per_program
def _batch_program(
    program: ClosedJaxpr,
    axis: AxisData,
    axes: tuple[int | None, ...],
    front: tuple[bool, ...] | None,
    tag: object,
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    axis = axis.tagged(tag)
    axes_out: tuple[int | None, ...] = ()
    avals = [
        unmapped_aval(axis.size, a, aval, axis.explicit_mesh_axis, axis.mesh)
        for aval, a in zip(program.in_avals, axes, strict=True)
    ]

    def over_axis(*values: Value) -> list[Value]:
        nonlocal axes_out
        outputs, own_axes = batch_jaxpr(program.jaxpr, program.consts, axis, values, axes)
        if front is not None:
            with splitting_batches(axis):
                for i, (x, a, force) in enumerate(zip(outputs, own_axes, front, strict=True)):
                    if a is not None or force:
                        outputs[i], own_axes[i] = to_front(x, a, axis.size), 0
        axes_out = tuple(own_axes)
        return outputs

    named = () if axis.name is None else ((axis.name, axis.size),)
    with axes_in_scope(named):
        made = stage(over_axis, avals, program.jaxpr.origin)
    return made, axes_out
