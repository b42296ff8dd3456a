"""The function `scan`, a loop with a static number of iterations, and its primitive."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base import errors, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.axes import mapped_aval, unmapped_aval
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.check import types_match
from hlofront.core.programs.subprograms import Subprogram
from hlofront.core.references import touches_references
from hlofront.core.trace import Tracer
from hlofront.higher_order.control_flow.bodies import (
    NO_KEYWORDS,
    carry_name,
    check_carry,
    debug_info_of,
    promoted_carry,
    refuse_effects,
    written_once,
)
from hlofront.primitives.arrays.slicing import index_in_dim, stack
from hlofront.primitives.elementwise.converting import convert
from hlofront.transforms.flatten import check_hashable, stage_tree
from hlofront.transforms.reference_checks import check_references
from hlofront.transforms.simplify import constants_as_inputs, forwarded

# Operands: constants, the carry, and `xs`, which is scanned along axis 0. Results: the carry, and
# the stacked `ys`. The jaxpr is the body, without constants.
scan_p = Primitive("scan", multiple_results=True, carries_programs=True)

_disable_jit = state.disable_jit


@rules.subprograms(scan_p)
def _(
    *, jaxpr: ClosedJaxpr, length: int, num_carry: int, num_consts: int, **_: object
) -> tuple[Subprogram]:
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


def scan_result_avals(
    *avals: ShapedArray,
    jaxpr: ClosedJaxpr,
    length: int,
    num_carry: int,
    num_consts: int,
    reverse: object,
    unroll: object,
    **_: object,
) -> list[ShapedArray]:
    if type(reverse) is not bool:
        raise TypeError(f"scan requires `reverse` to be True or False, got {reverse!r}")
    for name, count in (("num_carry", num_carry), ("num_consts", num_consts), ("unroll", unroll)):
        if type(count) is not int or count < 0:
            raise TypeError(f"scan requires `{name}` to be an int of at least 0, got {count!r}")
    first_sliced = num_consts + num_carry
    for index, (aval, expected) in enumerate(zip(avals, jaxpr.in_avals, strict=True)):
        if index >= first_sliced:
            expected = stacked(expected, length)
        if aval is not expected and not types_match(aval, expected):
            raise TypeError(
                f"scan requires operand {index} to be of type {expected.str_short()}, got "
                f"{aval.str_short()}"
            )
    out_avals = jaxpr.out_avals
    return [*out_avals[:num_carry], *[stacked(aval, length) for aval in out_avals[num_carry:]]]


rules.infer(scan_p)(scan_result_avals)


@rules.effects(scan_p)
def _(*avals: ShapedArray, jaxpr: ClosedJaxpr, **_: object) -> Effects:
    return jaxpr.effects


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """Return the aval of an array that stacks `length` values of type `aval` along axis 0."""
    result: Any = unmapped_aval(length, 0, aval)
    return result


def stacked_variable(variable: Var, length: int) -> Var:
    """Return a new variable for the array that stacks `length` values of `variable`."""
    aval: Any = variable.aval
    return Var(stacked(aval, length))


@boundary
def scan(
    f: Callable[..., tuple[PyTree, PyTree]],
    init: PyTree,
    xs: PyTree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[PyTree, PyTree]:
    """Scan a function along axis 0 of arrays, with a carry from iteration to iteration.

    The result is that of the following loop, compiled as one operation:

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, stack(ys)

    Args:
      f: `f(carry, x)` returns (next carry, y). It is traced once, and must return a carry with the
        structure and types of its input carry.
      init: the first carry: a pytree of arrays.
      xs: a pytree of arrays with equal sizes along axis 0, or None.
      length: the number of iterations; required if `xs` has no arrays.
      reverse: whether to scan from the last index to the first.
      unroll: the number of iterations of `f` per iteration of the compiled loop; True for all,
        without a loop.
      _split_transpose: accepted for compatibility with JAX, and ignored.

    Returns:
      (carry, ys): the last carry, and a pytree of the collected values, stacked along a new
      axis 0: index i holds the y of the iteration for `xs[i]`.

    Raises:
      TypeError: if `f` cannot be called, does not return a pair, or returns a carry of another
        structure or other types.
      ValueError: if sizes along axis 0 differ, an array is a scalar, the number of iterations is
        unknown or negative, or `unroll` is negative.

    Example:
      >>> lax.scan(lambda total, x: (total + x, total), 0.0, jnp.array([1.0, 2.0, 3.0]))
      (Array(6., dtype=float32), Array([0., 1., 3.], dtype=float32, weak_type=True))
    """
    if not callable(f):
        raise TypeError(
            "lax.scan: f argument should be a callable; got "
            f"{source.shortened(repr(f))} of type {type(f)}."
        )
    check_hashable(f)
    return loop(f, None, init, xs, length, reverse, unroll)


# Turns a user's function into the body of a scan; None if the function is the body.
AsStep = Callable[[Callable[..., PyTree]], Callable[..., PyTree]] | None


def loop(
    f: Callable[..., PyTree],
    as_step: AsStep,
    init: PyTree,
    xs: PyTree,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[PyTree, PyTree]:
    """Scan the body `as_step(f)`, or `f` if `as_step` is None, along axis 0, with a carry.

    The traced program is cached by `f` and `as_step`, which must be a module-level function.

    Args:
      f: the user's function.
      as_step: turns `f` into a function of (carry, x) that returns (next carry, y).
      init: the first carry: a pytree of arrays.
      xs: a pytree of arrays with equal sizes along axis 0, or None.
      length: the number of iterations; required if `xs` has no arrays.
      reverse: whether to scan from the last index to the first.
      unroll: the number of iterations per iteration of the compiled loop; True for all.

    Returns:
      (carry, ys): the last carry, and a pytree of the values y, stacked along a new axis 0.
    """
    leaves, xs_tree = tree.tree_flatten(xs)
    steps = _number_of_steps(leaves, length)
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
    if touches_references(body.program.effects):
        check_references(body.program.debug_info, [*first, *leaves], body.consts)
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


def _number_of_steps(leaves: ArrayLikes, length: int | None) -> int:
    """Return the number of iterations of a scan, from the leaves of `xs` and `length`.

    Raises:
      ValueError: if the sizes along axis 0 and `length` differ or are absent, or a leaf is scalar.
    """
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


def _known_length(length: int | Tracer) -> int:
    if isinstance(length, Tracer):
        raise errors.ConcretizationTypeError(
            length,
            "The `length` argument to `scan` must be a concrete integer. For a number of steps "
            "that is computed, use `while_loop` or `fori_loop`.",
        )
    steps = int(length)
    if steps < 0:
        raise ValueError(f"scan got length={steps}; expected a nonnegative number of steps.")
    return steps


# ---- the function of one step --------------------------------------------------------------------


class Body:
    """The traced body of a scan, and the layout of its operands and results.

    Attributes:
      carry_avals: the types of the carry if they differ from those of `init`, else None.
      consts: the values that the function closes over.
      invariant: the indices of the members of the carry that the body returns unchanged, which
        become constants of the scan.
      varying: the indices of the other members of the carry.
      passed: per collected value, the index of the leaf of `xs` that it equals; None if it is
        computed.
      out_tree: the structure of the pair that the function returns.
      program: the closed jaxpr of the body, without constants.
    """

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
        self, program: ClosedJaxpr, carry_count: int, out_tree: PyTreeDef, carry_avals: Avals | None
    ):
        self.carry_avals = carry_avals
        self.out_tree = out_tree
        self.consts = program.consts
        jaxpr = constants_as_inputs(program)
        count = len(self.consts)
        origin = forwarded(jaxpr)
        self.invariant = [i for i in range(carry_count) if origin[i] == count + i]
        self.varying = [i for i in range(carry_count) if origin[i] != count + i]
        first = count + carry_count
        self.passed = [
            index - first if index is not None and index >= first else None
            for index in origin[carry_count:]
        ]
        inputs, outputs = jaxpr.invars, jaxpr.outvars
        computed: list[Atom] = [
            atom
            for atom, index in zip(outputs[carry_count:], self.passed, strict=True)
            if index is None
        ]
        jaxpr = jaxpr.replace(
            invars=[
                *[inputs[count + i] for i in self.invariant],
                *inputs[:count],
                *[inputs[count + i] for i in self.varying],
                *inputs[first:],
            ],
            outvars=[*[outputs[i] for i in self.varying], *computed],
        )
        self.program = ClosedJaxpr(jaxpr)

    def assemble(
        self, first: ArrayLikes, xs: ArrayLikes, results: ArrayLikes
    ) -> tuple[PyTree, PyTree]:
        """Return the scan's result (carry, ys) as pytrees, from the flat results.

        Args:
          first: the leaves of the first carry.
          xs: the leaves of `xs`.
          results: the results of the scan.
        """
        remaining = iter(results)
        varying = set(self.varying)
        carry = [next(remaining) if i in varying else as_array(x) for i, x in enumerate(first)]
        ys = [next(remaining) if index is None else as_array(xs[index]) for index in self.passed]
        return self.out_tree.unflatten([*carry, *ys])


def as_array(x: ArrayLike) -> ArrayLike:
    """Convert a NumPy array to an array on a device, for operands that are also results."""
    aval = typeof(x)
    return convert(x, aval.dtype, aval.weak_type) if isinstance(x, np.ndarray | np.generic) else x


def element_aval(aval: ShapedArray) -> ShapedArray:
    """Return the aval of the elements along axis 0 of an array that a scan reads.

    Raises:
      ValueError: if the array is split along axis 0, which steps read one element at a time.
    """
    if aval.spec is not None and aval.spec[0] is not None:
        raise ValueError(
            "0th dimension of all xs should be replicated: every device runs all steps of a scan. "
            f"Got an array of type {aval.str_short()}. Reshard it, or scan over another axis."
        )
    element: Any = mapped_aval(aval.shape[0], 0, aval)
    return element


def _body(
    f: Callable[..., PyTree],
    as_step: AsStep,
    init_tree: PyTreeDef,
    xs_tree: PyTreeDef,
    first: ArrayLikes,
    xs: ArrayLikes,
) -> Body:
    carry_avals = tuple([typeof(x) for x in first])
    x_avals = tuple([element_aval(typeof(x)) for x in xs])
    return written_once(
        f,
        ("scan", as_step, init_tree, xs_tree, carry_avals, x_avals),
        lambda: _write_down(f, as_step, init_tree, xs_tree, carry_avals, x_avals),
    )


def _write_down(
    f: Callable[..., PyTree],
    as_step: AsStep,
    init_tree: PyTreeDef,
    xs_tree: PyTreeDef,
    carry_avals: Avals,
    x_avals: Avals,
) -> Body:
    args_tree = tree.treedef_tuple([init_tree, xs_tree])
    in_tree = tree.treedef_tuple([args_tree, NO_KEYWORDS])
    step = f if as_step is None else as_step(f)
    out_tree: PyTreeDef | None = None
    # The body that `as_step` makes from a user's function has an additional loop carry.
    first_argument = 0 if as_step is None else 1
    info = debug_info_of(f, "scan", args_tree, lambda: out_tree, first_argument)
    promoted: list[ShapedArray] | None = None
    while True:
        program, result_tree = stage_tree(step, in_tree, [*carry_avals, *x_avals], info)
        out_tree = result_tree
        carry_tree = _carry_tree(result_tree, program.out_avals)
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
    return Body(program, len(returned), result_tree, promoted)


def _carry_tree(out_tree: PyTreeDef, avals: Avals) -> PyTreeDef:
    """Return the tree definition of the carry, from that of the (carry, y) pair of the body.

    Raises:
      TypeError: if the body did not return a pair.
    """
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
    f: Callable[..., PyTree],
    carry: PyTree,
    xs: ArrayLikes,
    xs_tree: PyTreeDef,
    length: int,
    reverse: bool,
) -> tuple[PyTree, PyTree]:
    """Run a scan as a Python loop, for disabled jit; return the last carry and the stacked ys."""
    if not length:
        raise ValueError(
            "zero-length scan is not supported in disable_jit() mode because the output type is "
            "unknown: f is never called. Take it out of disable_jit()."
        )
    collected: list[PyTree] = []
    for i in reversed(range(length)) if reverse else range(length):
        step = [index_in_dim(x, i, keepdims=False) for x in xs]
        carry, y = f(carry, xs_tree.unflatten(step))
        collected.append(y)
    if reverse:
        collected.reverse()
    return carry, tree.tree_map(lambda *ys: stack(ys), *collected)
