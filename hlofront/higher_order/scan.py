"""scan: a loop of a known number of steps, which carries values and collects others."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import errors, source, tree
from hlofront.base.boundary import boundary
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.check import types_match
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import Subprogram
from hlofront.core.trace import Tracer
from hlofront.higher_order.bodies import (
    carry_name,
    check_carry,
    held_weakly,
    promoted_carry,
    refuse_effects,
    written_once,
)
from hlofront.primitives.converting import convert
from hlofront.primitives.slicing import index_in_dim, stack
from hlofront.transforms.flatten import Signature, result_paths, stage_tree
from hlofront.transforms.simplify import constants_as_inputs, forwarded

# Operands: what all steps read, the carry, and what is read step by step, along the first axis.
# Results: the carry, and what is collected. The program is of one step; it has no constants.
scan_p = Primitive("scan", multiple_results=True, carries_programs=True)

_disable_jit = state.disable_jit


@rules.subprograms(scan_p)
def _(*, jaxpr, length, num_carry, num_consts, **_):
    count, sliced = len(jaxpr.in_avals), num_consts + num_carry
    return (
        Subprogram(
            jaxpr,
            "jaxpr",
            "body",
            operands=range(count),
            results=range(len(jaxpr.out_avals)),
            carried=range(num_consts, sliced),
            sliced=range(sliced, count),
            iterations=length,
        ),
    )


@rules.infer(scan_p)
def _(*avals, jaxpr, length, num_carry, num_consts, reverse, unroll, **_):
    if type(reverse) is not bool:
        raise TypeError(f"scan wants `reverse` to be True or False, and got {reverse!r}")
    for name, count in (("num_carry", num_carry), ("num_consts", num_consts), ("unroll", unroll)):
        if type(count) is not int or count < 0:
            raise TypeError(f"scan wants `{name}` to be an int of at least 0, and got {count!r}")
    steps = num_consts + num_carry
    for place, (aval, wanted) in enumerate(zip(avals, jaxpr.in_avals, strict=True)):
        if place >= steps:
            wanted = stacked(wanted, length)
        if aval is not wanted and not types_match(aval, wanted):
            raise TypeError(
                f"scan wants operand {place} to be of type {wanted.str_short()}, and got "
                f"{aval.str_short()}"
            )
    out_avals = jaxpr.out_avals
    return [*out_avals[:num_carry], *[stacked(aval, length) for aval in out_avals[num_carry:]]]


@rules.effects(scan_p)
def _(*avals, jaxpr, **_):
    return jaxpr.effects


def stacked(aval: Any, length: int) -> Any:
    """The type of what `length` steps read or collect of this type."""
    return aval.update(shape=(length, *aval.shape))


@boundary
def scan(
    f: Callable[..., tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Step along the first axis of arrays, with a carry from step to step.

    It is what this does, in one operation that is compiled once for all steps:

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Args:
      f: of the carry and one step's part of `xs`; it returns the next carry and what is to be
        collected. It is traced once, and must return a carry of the types that it is given.
      init: the first carry: a tree of arrays.
      xs: a tree of arrays that have one size along their first axis, or None.
      length: the number of steps; needed where `xs` has no arrays.
      reverse: whether to step from the end to the start.
      unroll: how many steps the compiled loop takes at a time; True for all of them, which leaves
        no loop.
      _split_transpose: accepted as JAX does; it makes no difference here.

    Returns:
      (carry, ys): the last carry, and a tree of what was collected, stacked along a new first
      axis: at index i what the step for `xs[i]` returned.

    Raises:
      TypeError: if `f` cannot be called, does not return a pair, or returns a carry of another
        structure or other types.
      ValueError: if sizes along the first axes differ, an array has no axis, the number of steps
        is unknown or negative, or `unroll` is negative.
    """
    if not callable(f):
        raise TypeError(
            "lax.scan: f argument should be a callable; got "
            f"{source.shortened(repr(f))} of type {type(f)}."
        )
    return loop(f, None, init, xs, length, reverse, unroll)


def loop(
    f: Callable[..., Any],
    as_step: Callable[[Any], Callable[..., Any]] | None,
    init: Any,
    xs: Any,
    length: Any = None,
    reverse: Any = False,
    unroll: Any = 1,
) -> tuple[Any, Any]:
    """A scan of the function that `as_step` makes of a user's; None for the function itself.

    What is traced is remembered for `f` and `as_step`, which must be a function of a module.
    """
    leaves, xs_tree = tree.tree_flatten(xs)
    steps = _length(leaves, length)
    if _disable_jit.value:
        step = f if as_step is None else as_step(f)
        return _loop_in_python(step, init, leaves, xs_tree, steps, bool(reverse))
    if isinstance(unroll, bool):
        unroll = max(steps, 1) if unroll else 1
    elif unroll < 0:
        raise ValueError(
            f"`unroll` must be a `bool` or a non-negative `int`; scan got unroll={unroll}."
        )
    first, init_tree = tree.tree_flatten(init)
    body = _body(f, as_step, init_tree, xs_tree, first, leaves)
    if body.carry_avals is not None:
        first = [
            convert(x, aval.dtype, aval.weak_type) if aval is not typeof(x) else x
            for x, aval in zip(first, body.carry_avals, strict=True)
        ]
    results = scan_p.bind(
        *[first[i] for i in body.invariant],
        *body.consts,
        *[first[i] for i in body.varying],
        *leaves,
        reverse=bool(reverse),
        length=steps,
        jaxpr=body.program,
        num_consts=len(body.invariant) + len(body.consts),
        num_carry=len(body.varying),
        unroll=operator.index(unroll),
    )
    return body.assemble(first, leaves, results)


def _length(leaves: Sequence[Any], length: Any) -> Any:
    """The number of steps that `xs` or `length` say."""
    shapes = [typeof(leaf).shape for leaf in leaves]
    if not all(shapes):
        without = [str(leaf) for leaf, shape in zip(leaves, shapes, strict=True) if not shape]
        raise ValueError(
            f"scan got value with no leading axis to scan over: {', '.join(without)}. What every "
            "step reads as it is belongs into the carry, or f may close over it."
        )
    sizes = [shape[0] for shape in shapes]
    if length is not None:
        steps = _known_length(length)
        if any(size != steps for size in sizes):
            raise ValueError(
                f"scan got `length` argument of {steps} which disagrees with leading axis sizes "
                f"{sizes}."
            )
        return steps
    if not sizes:
        raise ValueError(
            "scan got no values to scan over and `length` not provided: give one of them."
        )
    if any(size != sizes[0] for size in sizes):
        unique = ", ".join(map(str, dict.fromkeys(sizes)))
        raise ValueError(
            f"scan got values with different leading axis sizes: {unique}. Each step reads one "
            "element of each, so they must agree."
        )
    return sizes[0]


def _known_length(length: Any) -> int:
    if isinstance(length, Tracer):
        raise errors.ConcretizationTypeError(
            length,
            "The `length` argument to `scan` must be a concrete integer. For a number of steps "
            "that is computed, use `while_loop` or `fori_loop`.",
        )
    steps = int(length)
    if steps < 0:
        raise ValueError(f"scan got length={steps}; wanted the number of steps, from 0 on.")
    return steps


# ---- the function of one step --------------------------------------------------------------------


class Body:
    """The function of one step as a program, and how its operands and results are laid out."""

    __slots__ = (
        "carry_avals",
        "consts",
        "invariant",
        "out_tree",
        "passed",
        "program",
        "varying",
    )

    def __init__(
        self,
        program: ClosedJaxpr,
        carry_count: int,
        out_tree: Any,
        carry_avals: Sequence[Any] | None,
    ):
        # The types of the carry where they are not those of `init`.
        self.carry_avals = carry_avals
        self.out_tree = out_tree
        # What the function closes over.
        self.consts = program.consts
        jaxpr = constants_as_inputs(program)
        count = len(self.consts)
        origin = forwarded(jaxpr)
        # A member of the carry that each step returns as it is: all steps read it, and no more.
        self.invariant = [i for i in range(carry_count) if origin[i] == count + i]
        self.varying = [i for i in range(carry_count) if origin[i] != count + i]
        # Per collected value the place among `xs` of what it is; None where it is computed.
        first = count + carry_count
        self.passed = [
            place - first if place is not None and place >= first else None
            for place in origin[carry_count:]
        ]
        inputs, outputs = jaxpr.invars, jaxpr.outvars
        collected = zip(outputs[carry_count:], self.passed, strict=True)
        jaxpr = jaxpr.replace(
            invars=[
                *[inputs[count + i] for i in self.invariant],
                *inputs[:count],
                *[inputs[count + i] for i in self.varying],
                *inputs[first:],
            ],
            outvars=[
                *[outputs[i] for i in self.varying],
                *[atom for atom, place in collected if place is None],
            ],
        )
        self.program = ClosedJaxpr(jaxpr)

    def assemble(self, first: Sequence[Any], xs: Sequence[Any], results: Sequence[Any]) -> Any:
        """The last carry and what was collected, as the pair that the function returns."""
        found = iter(results)
        varying = set(self.varying)
        carry = [next(found) if i in varying else as_array(x) for i, x in enumerate(first)]
        ys = [next(found) if place is None else as_array(xs[place]) for place in self.passed]
        return self.out_tree.unflatten([*carry, *ys])


def as_array(x: Any) -> Any:
    """An operand that comes back as it is: no longer NumPy's, where that was."""
    aval: Any = typeof(x)
    return convert(x, aval.dtype, aval.weak_type) if isinstance(x, np.ndarray | np.generic) else x


def _body(
    f: Callable[..., Any],
    as_step: Callable[..., Any] | None,
    init_tree: Any,
    xs_tree: Any,
    first: Sequence[Any],
    xs: Sequence[Any],
) -> Body:
    carry_avals = tuple([typeof(x) for x in first])
    x_avals = tuple([typeof(x).update(shape=typeof(x).shape[1:]) for x in xs])
    return written_once(
        f,
        ("scan", as_step, init_tree, xs_tree, carry_avals, x_avals),
        lambda: _write_down(f, as_step, init_tree, xs_tree, carry_avals, x_avals),
    )


def _write_down(
    f: Callable[..., Any],
    as_step: Callable[..., Any] | None,
    init_tree: Any,
    xs_tree: Any,
    carry_avals: Sequence[Any],
    x_avals: Sequence[Any],
) -> Body:
    in_tree = tree.treedef_tuple([tree.treedef_tuple([init_tree, xs_tree]), _NO_KEYWORDS])
    step = f if as_step is None else as_step(f)
    out_tree: Any = None

    reference = held_weakly(f)

    def names() -> tuple[str, ...]:
        function = reference()
        if function is None:
            return ()
        args, _ = tree.tree_unflatten(in_tree, range(in_tree.num_leaves))
        return Signature(function).argument_names((args if as_step is None else args[1:], {}))

    where = source.describe_callable(f)
    info = DebugInfo("scan", where, names, lambda: result_paths(out_tree))
    promoted = None
    while True:
        program, out_tree = stage_tree(step, in_tree, [*carry_avals, *x_avals], info)
        carry_tree = _carry_tree(out_tree, program.out_avals)
        returned = program.out_avals[: carry_tree.num_leaves]
        if promoted is None and carry_tree == init_tree:
            promoted = promoted_carry(carry_avals, returned)
            if promoted is not None:
                carry_avals = promoted
                continue
        break
    check_carry(
        "scan body function", lambda: carry_name(step), init_tree, carry_avals, carry_tree, returned
    )
    refuse_effects("scan", program.effects)
    return Body(program, len(returned), out_tree, promoted)


_NO_KEYWORDS = tree.tree_structure({})


def _carry_tree(out_tree: Any, avals: Sequence[Any]) -> Any:
    """The structure of the carry that the function returned, with what is to be collected."""
    children = out_tree.children()
    if len(children) != 2:
        returned = tree.tree_unflatten(out_tree, avals)
        raise TypeError(
            f"scan body output must be a pair, got {returned}. Return (carry, y), and None as y "
            "where nothing is to be collected."
        )
    return children[0]


# ---- without compiling ---------------------------------------------------------------------------


def _loop_in_python(
    f: Callable[..., Any], carry: Any, xs: Sequence[Any], xs_tree: Any, length: int, reverse: bool
) -> tuple[Any, Any]:
    """Run a scan in Python, while jit is disabled."""
    if not length:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown: f is never called. Take it out of disable_jit()."
        )
    collected: list[Any] = []
    for i in reversed(range(length)) if reverse else range(length):
        step = [index_in_dim(x, i, keepdims=False) for x in xs]
        carry, y = f(carry, xs_tree.unflatten(step))
        collected.append(y)
    if reverse:
        collected.reverse()
    return carry, tree.tree_map(lambda *ys: stack(ys), *collected)
