"""The functions custom_linear_solve and custom_root, with implicit derivatives of solutions."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.subprograms import Subprogram
from hlofront.core.rules import BatchResult
from hlofront.core.sharding.mesh_context import vma_enabled
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Cotangent,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import Tracer
from hlofront.higher_order.calls.jit_call import split_captured
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.higher_order.selecting import nonzero_flags
from hlofront.primitives.collectives.varying import pvary
from hlofront.primitives.elementwise.elementwise import neg
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.primitives.rules.derivatives import add_tangents, instantiate
from hlofront.transforms.batch import batch_program
from hlofront.transforms.flatten import NO_KEYWORDS, check_hashable, stage_tree
from hlofront.transforms.grad import linearize
from hlofront.transforms.jvp import jvp_jaxpr
from hlofront.transforms.linear_transpose import linear_transpose

custom_linear_solve_p = Primitive(
    "custom_linear_solve", multiple_results=True, carries_programs=True
)
# The primitive's name in jax.lax.
linear_solve_p = custom_linear_solve_p


Member = TypeVar("Member")


class _LinearSolveTuple(NamedTuple, Generic[Member]):
    """A tuple with a value for each of the functions matvec, vecmat, solve and transpose_solve."""

    matvec: Member
    vecmat: Member
    solve: Member
    transpose_solve: Member

    def transposed(self) -> "_LinearSolveTuple[Member]":
        """Return the tuple for the transposed system."""
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


# The number of captured values of each function.
_Lengths = _LinearSolveTuple[int]
# The programs of the functions; those of the transposed system may be None.
_Programs = _LinearSolveTuple[Any]


@rules.subprograms(custom_linear_solve_p)
def _(*, const_lengths: _Lengths, jaxprs: _Programs) -> list[Subprogram]:
    solve = jaxprs.solve
    before = const_lengths.matvec + const_lengths.vecmat
    captured = range(before, before + const_lengths.solve)
    start = sum(const_lengths)
    rest = range(start, start + len(solve.in_avals) - len(captured))
    inputs, outputs = (*captured, *rest), range(len(solve.out_avals))
    return [
        Subprogram(program, "jaxprs", "call", inputs, outputs, path=(index,))
        if name == "solve"
        else Subprogram(program, "jaxprs", "alternative", path=(index,))
        for index, (name, program) in enumerate(zip(jaxprs._fields, jaxprs, strict=True))
    ]


class _Staged(NamedTuple):
    """A user's function of a linear or nonlinear solve, traced to a program.

    Attributes:
      name: the parameter that the function was passed for, in messages.
      program: the closed jaxpr, whose first inputs are the captured values.
      captured: the tracers of enclosing functions that the function uses.
      out_tree: the tree definition of the function's result.
    """

    name: str
    program: ClosedJaxpr
    captured: list[Tracer]
    out_tree: PyTreeDef

    @classmethod
    def of(
        cls, name: str, fun: Callable[..., PyTree], args: tuple[PyTree, ...], purpose: str
    ) -> "_Staged":
        """Trace a function with `args`, and turn the tracers it captures into first inputs."""
        leaves, in_tree = tree.tree_flatten((args, NO_KEYWORDS))
        info = DebugInfo(purpose, source.describe_callable(fun))
        program, out_tree = stage_tree(fun, in_tree, [typeof(x) for x in leaves], info)
        program, captured = split_captured(program)
        return cls(name, program, captured, out_tree)

    def split_aux(
        self, operation: str, error: type[Exception]
    ) -> tuple[PyTreeDef, list[ShapedArray]]:
        """Return the tree definition and types of the solution in (solution, auxiliary value).

        Raises:
          error: if the result is not a pair.
        """
        children = self.out_tree.children() if self.out_tree.node_data() is not None else []
        if len(children) != 2:
            raise error(
                f"{self.name}() of {operation} with has_aux=True must return a pair, the solution "
                f"and auxiliary data; it returned {self.out_tree}"
            )
        return children[0], self.program.out_avals[: children[0].num_leaves]


def _check_structure(name: str, out_tree: PyTreeDef, like_tree: PyTreeDef, what: str) -> None:
    if out_tree != like_tree:
        raise TypeError(
            f"{name}() output pytree structure must match {what}, got {out_tree} and {like_tree}."
        )


def _check_shapes(name: str, avals: Avals, like: Avals, what: str) -> None:
    shapes, expected = [a.shape for a in avals], [a.shape for a in like]
    if shapes != expected:
        raise ValueError(f"{name}() output shapes must match {what}, got {shapes} and {expected}")


@boundary
def custom_linear_solve(
    matvec: Callable[..., PyTree],
    b: PyTree,
    solve: Callable[..., PyTree],
    transpose_solve: Callable[..., PyTree] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> PyTree:
    """Solve `matvec(x) = b` by `solve`; derivatives solve again and do not differentiate `solve`.

    Args:
      matvec: a linear function of pytrees like `b`. The solution can be differentiated with
        respect to values that it closes over.
      b: the right-hand side, a pytree of arrays.
      solve: `solve(matvec, b)` returns the solution.
      transpose_solve: `transpose_solve(vecmat, b)` solves the transposed system; required in
        reverse mode, unless `symmetric`.
      symmetric: whether the system is its own transpose: `vecmat` is `matvec`, and `solve` solves
        both systems if `transpose_solve` is None.
      has_aux: whether `solve` returns (solution, auxiliary value), the latter not differentiated.

    Returns:
      The solution, a pytree like `b`; with `has_aux`, (solution, auxiliary value).

    Raises:
      ValueError: if shapes of results are not those of `b`.
      TypeError: if the structure of a result is not that of `b`, or if `transpose_solve` is
        required and None.
    """
    leaves, structure = tree.tree_flatten(b)
    avals = [typeof(x) for x in leaves]

    def staged(name: str, fun: Callable[[PyTree], PyTree]) -> _Staged:
        return _Staged.of(name, fun, (b,), "custom_linear_solve")

    matrix = staged("matvec", matvec)
    _check_solution(matrix, structure, avals, False)
    solving = staged("solve", lambda x: solve(matvec, x))
    _check_solution(solving, structure, avals, has_aux)
    if vma_enabled():
        # In shard_map the solution varies like the matrix, so the right-hand side must too.
        outputs = (*matrix.program.out_avals, *solving.program.out_avals[: len(avals)])
        axes = frozenset[Hashable]().union(*[a.manual_axis_type.varying for a in outputs])
        wider = [pvary(x, axes) for x in leaves]
        if any(x is not y for x, y in zip(wider, leaves, strict=True)):
            b = structure.unflatten(wider)
            return custom_linear_solve(matvec, b, solve, transpose_solve, symmetric, has_aux)
    transposed: _Staged | None = None
    transposed_solving: _Staged | None = None
    vecmat = matvec
    if symmetric:
        transposed, transposed_solving = matrix, solving
    elif transpose_solve is not None:
        backwards = linear_transpose(matvec, b)

        def vecmat(x: PyTree) -> PyTree:
            return backwards(x)[0]

        transposed = staged("vecmat", vecmat)
    if transpose_solve is not None:
        transposed_solving = staged("transpose_solve", lambda x: transpose_solve(vecmat, x))
        _check_solution(transposed_solving, structure, avals, has_aux)
    functions = _LinearSolveTuple(matrix, transposed, solving, transposed_solving)
    results = _bind(
        _LinearSolveTuple(*[[] if f is None else f.captured for f in functions]),
        leaves,
        _LinearSolveTuple(*[None if f is None else f.program for f in functions]),
    )
    return (solving.out_tree if has_aux else structure).unflatten(results)


def _check_solution(function: _Staged, structure: PyTreeDef, avals: Avals, has_aux: bool) -> None:
    """Raise an error unless a function's results match the right-hand side in structure and type.

    Args:
      function: the traced function.
      structure: the tree definition of the right-hand side.
      avals: the types of the right-hand side's leaves.
      has_aux: whether the function returns a pair of the solution and an auxiliary value.

    Raises:
      ValueError: if the function does not return a pair under `has_aux`, or shapes differ.
      TypeError: if structures differ.
    """
    out_tree, out_avals = function.out_tree, function.program.out_avals
    if has_aux:
        out_tree, out_avals = function.split_aux("custom_linear_solve", ValueError)
    _check_shapes(function.name, out_avals, avals, "b")
    _check_structure(function.name, out_tree, structure, "b")


def _split(
    args: Sequence[Member], lengths: _Lengths
) -> tuple[_LinearSolveTuple[list[Member]], list[Member]]:
    """Split a list over operands into parts for each function's captured values, and the rest."""
    parts: list[list[Member]] = []
    start = 0
    for length in lengths:
        parts.append(list(args[start : start + length]))
        start += length
    return _LinearSolveTuple(*parts), list(args[start:])


def _bind(
    captured: "_LinearSolveTuple[list[Any]]", b: ArrayLikes, programs: _Programs
) -> list[Value]:
    return custom_linear_solve_p.bind(
        *(x for values in captured for x in values),
        *b,
        const_lengths=_LinearSolveTuple(*map(len, captured)),
        jaxprs=programs,
    )


@rules.infer(custom_linear_solve_p)
def _(*avals: ShapedArray, const_lengths: _Lengths, jaxprs: _Programs) -> list[ShapedArray]:
    if len(const_lengths) != 4 or sum(const_lengths) > len(avals):
        raise TypeError(
            "custom_linear_solve requires `const_lengths`, how many of its operands each of its "
            f"four functions captured, got {const_lengths!r} for {len(avals)} operands"
        )
    # A solution has the type of its right-hand side, including its weak type; auxiliary values
    # follow it.
    b = avals[sum(const_lengths) :]
    return [*b, *jaxprs.solve.out_avals[len(b) :]]


@rules.effects(custom_linear_solve_p)
def _(*avals: ShapedArray, const_lengths: _Lengths, jaxprs: _Programs) -> Effects:
    return jaxprs.solve.effects


@rules.run(custom_linear_solve_p)
def _(*args: ArrayLike, const_lengths: _Lengths, jaxprs: _Programs) -> list[ArrayLike]:
    captured, b = _split(args, const_lengths)
    return jaxpr_as_fun(jaxprs.solve, *captured.solve, *b)


# A x = b gives A dx = db - dA x.
@rules.jvp(custom_linear_solve_p)
def _(
    primals: ArrayLikes, tangents: Tangents, *, const_lengths: _Lengths, jaxprs: _Programs
) -> tuple[list[ArrayLike], list[Tangent]]:
    captured, _ = _split(primals, const_lengths)
    captured_tangents, b_tangents = _split(tangents, const_lengths)
    results = custom_linear_solve_p.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
    count = len(b_tangents)
    solution, aux = results[:count], results[count:]
    side = b_tangents
    if any(nonzero_flags(captured_tangents.matvec)):
        matrix: ClosedJaxpr = jaxprs.matvec
        zeros = [Zero.of(x) for x in solution]
        _, product_tangents = jvp_jaxpr(
            matrix.jaxpr,
            matrix.consts,
            [*captured.matvec, *solution],
            [*captured_tangents.matvec, *zeros],
        )
        side = [
            add_tangents(t, p if isinstance(p, Zero) else neg(p))
            for t, p in zip(b_tangents, product_tangents, strict=True)
        ]
    if not any(nonzero_flags(side)):
        return results, [Zero.of(x) for x in results]
    solved = _bind(captured, [instantiate(t) for t in side], jaxprs)
    return results, [*solved[:count], *(Zero.of(x) for x in aux)]


@rules.transpose(custom_linear_solve_p)
def _(
    cotangents: Sequence[Cotangent],
    *operands: Operand,
    const_lengths: _Lengths,
    jaxprs: _Programs,
) -> list[Cotangent | None]:
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve: give transpose_solve, or symmetric=True if the system is."
        )
    captured, b = _split(operands, const_lengths)
    if any(type(x) is not UndefinedPrimal for x in b):
        raise TypeError("custom_linear_solve is linear in the whole of its right-hand side")
    count = len(b)
    if not any(nonzero_flags(cotangents[:count])):
        return [None] * len(operands)
    side = [instantiate(c) for c in cotangents[:count]]
    solved = _bind(captured.transposed(), side, jaxprs.transposed())
    return [*[None] * (len(operands) - count), *solved[:count]]


@rules.batch_with_axis(custom_linear_solve_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    const_lengths: _Lengths,
    jaxprs: _Programs,
) -> BatchResult:
    values = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)]
    captured, b = _split(values, const_lengths)
    flags, b_flags = _split([a is not None for a in axes], const_lengths)
    # Programs may read their index along a named axis even if no operand is batched.
    if not any(a is not None for a in axes) and not any(
        any(batch_program(program, axis, [*const_flags, *b_flags])[1])
        for program, const_flags in zip(jaxprs, flags, strict=True)
        if program is not None
    ):
        return _bind(captured, b, jaxprs), [None] * len(b)
    # If any operand is batched, the whole right-hand side and solution are batched, so that the
    # transposed system fits.
    b = [x if f else with_new_axis(x, axis.size) for x, f in zip(b, b_flags, strict=True)]
    all_batched = [True] * len(b)
    programs = _LinearSolveTuple(
        *[
            None
            if program is None
            else batch_program(program, axis, [*const_flags, *all_batched], True)[0]
            for program, const_flags in zip(jaxprs, flags, strict=True)
        ]
    )
    results = _bind(captured, b, programs)
    return results, [0] * len(results)


# ---- custom_root ---------------------------------------------------------------------------------


class _RootPrograms(NamedTuple):
    """The programs behind custom_root, each with its captured values as first inputs."""

    f: ClosedJaxpr
    solve: ClosedJaxpr
    tangent_solve: ClosedJaxpr


@boundary
def custom_root(
    f: Callable[..., PyTree],
    initial_guess: PyTree,
    solve: Callable[..., PyTree],
    tangent_solve: Callable[..., PyTree],
    has_aux: bool = False,
) -> PyTree:
    """Find a root of `f` by `solve`, with derivatives by the implicit function theorem.

    Args:
      f: maps a pytree of arrays to one of equal structure, shapes and dtypes. The root can be
        differentiated with respect to values that `f` closes over.
      initial_guess: a pytree of arrays, the initial value for `solve`.
      solve: `solve(f, initial_guess)` returns the root. It may use while_loop.
      tangent_solve: `tangent_solve(g, y)` solves `g(x) = y` for a linear function g: `y / g(1.0)`
        for scalars; for others, use for example custom_linear_solve.
      has_aux: whether `solve` returns (root, auxiliary value), the latter not differentiated.

    Returns:
      The root, a pytree like `initial_guess`; with `has_aux`, (root, auxiliary value).

    Raises:
      TypeError: if the structure of a function's result is not that of `initial_guess`.
      ValueError: if shapes differ.
    """
    check_hashable(f)
    leaves, structure = tree.tree_flatten(initial_guess)
    avals = [typeof(x) for x in leaves]

    def check_like(name: str, out_tree: PyTreeDef, out_avals: Avals, what: str) -> None:
        _check_structure(name, out_tree, structure, what)
        _check_shapes(name, out_avals, avals, what)

    function = _Staged.of("f", f, (initial_guess,), "custom_root")
    check_like("f", function.out_tree, function.program.out_avals, "initial_guess")

    def solve_from(x: PyTree) -> PyTree:
        return solve(f, x)

    solving = _Staged.of("solve", solve_from, (initial_guess,), "custom_root solve")
    root_tree, root_avals = solving.out_tree, solving.program.out_avals
    if has_aux:
        root_tree, root_avals = solving.split_aux("custom_root", TypeError)
    check_like("solve", root_tree, root_avals, "initial_guess")

    def linearize_and_solve(x: PyTree, y: PyTree) -> PyTree:
        _, g = linearize(f, x)
        return tangent_solve(g, y)

    tangents = _Staged.of(
        "tangent_solve",
        linearize_and_solve,
        (initial_guess, initial_guess),
        "custom_root tangent_solve",
    )
    check_like("tangent_solve", tangents.out_tree, tangents.program.out_avals, "x")
    results = _root(
        _RootPrograms(function.program, solving.program, tangents.program),
        function.captured,
        solving.captured,
        tangents.captured,
        leaves,
    )
    return solving.out_tree.unflatten(results)


# Lists of arrays.
_Arrays = list[ArrayLike]


@partial(custom_jvp, nondiff_argnums=(0,))
def _root(
    programs: _RootPrograms,
    f_values: _Arrays,
    solve_values: _Arrays,
    tangent_values: _Arrays,
    guess: _Arrays,
) -> _Arrays:
    return jaxpr_as_fun(programs.solve, *solve_values, *guess)


# f(x, a) = 0 gives (df/dx) dx = -(df/da) da.
@_root.defjvp
def _root_jvp(
    programs: _RootPrograms,
    primals: tuple[_Arrays, _Arrays, _Arrays, _Arrays],
    tangents: tuple[_Arrays, _Arrays, _Arrays, _Arrays],
) -> tuple[_Arrays, _Arrays]:
    f_values, _, tangent_values, guess = primals
    results = _root(programs, *primals)
    count = len(guess)
    solution, aux = results[:count], results[count:]
    zeros = [Zero.of(x) for x in solution]
    f = programs.f
    _, value_tangents = jvp_jaxpr(f.jaxpr, f.consts, [*f_values, *solution], [*tangents[0], *zeros])
    side = [neg(instantiate(t)) for t in value_tangents]
    tangents_out = jaxpr_as_fun(programs.tangent_solve, *tangent_values, *solution, *side)
    return results, [*tangents_out, *(instantiate(Zero.of(x)) for x in aux)]
