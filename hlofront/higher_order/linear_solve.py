"""Solutions that are differentiated by what they solve: custom_linear_solve, custom_root."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import Subprogram
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.higher_order.custom_jvp import custom_jvp
from hlofront.higher_order.jit_call import split_captured
from hlofront.primitives.batching import move_axis, with_new_axis
from hlofront.primitives.derivatives import add_tangents, instantiate
from hlofront.primitives.elementwise import neg
from hlofront.transforms.batch import batch_program
from hlofront.transforms.flatten import stage_tree
from hlofront.transforms.grad import linearize
from hlofront.transforms.jvp import jvp_jaxpr
from hlofront.transforms.linear_transpose import linear_transpose

custom_linear_solve_p = Primitive(
    "custom_linear_solve", multiple_results=True, carries_programs=True
)
# Its name in jax.lax.
linear_solve_p = custom_linear_solve_p


class _LinearSolveTuple(NamedTuple):
    """Something for each of the four functions. Programs print with this name."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transposed(self) -> "_LinearSolveTuple":
        """Return the functions that multiply by and solve the transposed system."""
        return _LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


@rules.subprograms(custom_linear_solve_p)
def _(*, const_lengths, jaxprs):
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


def _staged(
    fun: Callable[..., Any], args: tuple[Any, ...], what: str
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """(program, the values that it captured, which are its first inputs, structure of results)."""
    leaves, in_tree = tree.tree_flatten((args, {}))
    info = DebugInfo(what, source.describe_callable(fun))
    program, out_tree = stage_tree(fun, in_tree, [typeof(x) for x in leaves], info)
    return *split_captured(program), out_tree


def _check_like(
    name: str, out_tree: Any, avals: Sequence[Any], like_tree: Any, like: Sequence[Any], what: str
) -> None:
    """Raise unless results are of the structure and shapes of something."""
    shapes, wanted = [a.shape for a in avals], [a.shape for a in like]
    if out_tree != like_tree:
        raise TypeError(
            f"{name}() output pytree structure must match {what}, got {out_tree} and {like_tree}."
        )
    if shapes != wanted:
        raise ValueError(f"{name}() output shapes must match {what}, got {shapes} and {wanted}")


def _check_shapes(name: str, avals: Sequence[Any], like: Sequence[Any]) -> None:
    shapes, wanted = [a.shape for a in avals], [a.shape for a in like]
    if shapes != wanted:
        raise ValueError(f"{name}() output shapes must match b, got {shapes} and {wanted}")


@boundary
def custom_linear_solve(
    matvec: Callable[..., Any],
    b: Any,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve `matvec(x) = b` by `solve`; derivatives solve once more, and never enter `solve`.

    Args:
      matvec: a linear function, of pytrees like `b`. It may close over values: the solution is
        differentiated with respect to them.
      b: the right-hand side, a pytree of arrays.
      solve: `solve(matvec, b)` gives the solution.
      transpose_solve: `transpose_solve(vecmat, b)` solves the transposed system; needed in reverse
        mode, unless `symmetric`.
      symmetric: whether the transposed system is the system: `matvec` is `vecmat`, and `solve`
        solves both where there is no `transpose_solve`.
      has_aux: whether solving gives (solution, auxiliary data), the latter not differentiated.

    Returns:
      The solution, like `b`; (solution, auxiliary data) where there are some.

    Raises:
      ValueError: if shapes of results are not those of `b`.
      TypeError: if results have another structure than `b`, or `transpose_solve` is missing where
        it is needed.
    """
    leaves, structure = tree.tree_flatten(b)
    avals = [typeof(x) for x in leaves]
    matrix, matrix_values, matrix_tree = _staged(matvec, (b,), "custom_linear_solve")
    _check_solution("matvec", matrix, matrix_tree, structure, avals, False)
    solving, solve_values, out_tree = _staged(
        lambda x: solve(matvec, x), (b,), "custom_linear_solve"
    )
    _check_solution("solve", solving, out_tree, structure, avals, has_aux)
    transposed = transposed_solving = None
    transposed_values: list[Any] = []
    transposed_solve_values: list[Any] = []
    vecmat = matvec
    if symmetric:
        transposed, transposed_values = matrix, matrix_values
        transposed_solving, transposed_solve_values = solving, solve_values
    elif transpose_solve is not None:
        backwards = linear_transpose(matvec, b)

        def vecmat(x: Any) -> Any:
            return backwards(x)[0]

        transposed, transposed_values, _ = _staged(vecmat, (b,), "custom_linear_solve")
    if transpose_solve is not None:
        transposed_solving, transposed_solve_values, transposed_tree = _staged(
            lambda x: transpose_solve(vecmat, x), (b,), "custom_linear_solve"
        )
        _check_solution(
            "transpose_solve", transposed_solving, transposed_tree, structure, avals, has_aux
        )
    captured = _LinearSolveTuple(
        matrix_values, transposed_values, solve_values, transposed_solve_values
    )
    results = custom_linear_solve_p.bind(
        *(x for values in captured for x in values),
        *leaves,
        const_lengths=_LinearSolveTuple(*map(len, captured)),
        jaxprs=_LinearSolveTuple(matrix, transposed, solving, transposed_solving),
    )
    if not has_aux:
        return structure.unflatten(results)
    return out_tree.unflatten(results)


def _check_solution(
    name: str,
    program: ClosedJaxpr,
    out_tree: Any,
    structure: Any,
    avals: Sequence[Any],
    has_aux: bool,
) -> None:
    """Raise unless the results of a function are like the right-hand side."""
    found: Any = program.out_avals
    if has_aux:
        parts = out_tree.children() if out_tree.node_data() is not None else []
        if len(parts) != 2:
            raise ValueError(
                f"{name}() of custom_linear_solve with has_aux=True must return a pair, the "
                f"solution and auxiliary data; it returned {out_tree}"
            )
        out_tree = parts[0]
        found = found[: out_tree.num_leaves]
    _check_shapes(name, found, avals)
    if out_tree != structure:
        raise TypeError(
            f"{name}() output pytree structure must match b, got {out_tree} and {structure}."
        )


def _split(args: Sequence[Any], lengths: _LinearSolveTuple) -> tuple[_LinearSolveTuple, list[Any]]:
    """The captured values of each function, and the right-hand side."""
    parts: list[Any] = []
    start = 0
    for length in lengths:
        parts.append(list(args[start : start + length]))
        start += length
    return _LinearSolveTuple(*parts), list(args[start:])


def _bind(captured: Any, b: Sequence[Any], programs: Any) -> list[Any]:
    return custom_linear_solve_p.bind(
        *(x for values in captured for x in values),
        *b,
        const_lengths=_LinearSolveTuple(*map(len, captured)),
        jaxprs=programs,
    )


@rules.infer(custom_linear_solve_p)
def _(*avals, const_lengths, jaxprs):
    if len(const_lengths) != 4 or sum(const_lengths) > len(avals):
        raise TypeError(
            "custom_linear_solve wants `const_lengths`, how many of its operands each of its four "
            f"functions captured, and got {const_lengths!r} for {len(avals)} operands"
        )
    # A solution is of its right-hand side's type, weakly typed where that is; what comes after it
    # is auxiliary.
    b = avals[sum(const_lengths) :]
    return [*b, *jaxprs.solve.out_avals[len(b) :]]


@rules.effects(custom_linear_solve_p)
def _(*avals, const_lengths, jaxprs):
    return jaxprs.solve.effects


@rules.run(custom_linear_solve_p)
def _(*args, const_lengths, jaxprs):
    captured, b = _split(args, const_lengths)
    return jaxpr_as_fun(jaxprs.solve, *captured.solve, *b)


# A x = b gives A dx = db - dA x.
@rules.jvp(custom_linear_solve_p)
def _(primals, tangents, *, const_lengths, jaxprs):
    captured, _ = _split(primals, const_lengths)
    moving, b_moving = _split(tangents, const_lengths)
    results = custom_linear_solve_p.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
    count = len(b_moving)
    solution, aux = results[:count], results[count:]
    side = b_moving
    if any(type(t) is not Zero for t in moving.matvec):
        matrix = jaxprs.matvec
        still = [Zero.of(x) for x in solution]
        _, moved = jvp_jaxpr(
            matrix.jaxpr, matrix.consts, [*captured.matvec, *solution], [*moving.matvec, *still]
        )
        side = [
            add_tangents(t, m if type(m) is Zero else neg(m))
            for t, m in zip(b_moving, moved, strict=True)
        ]
    if all(type(t) is Zero for t in side):
        return results, [Zero.of(x) for x in results]
    solved = _bind(captured, [instantiate(t) for t in side], jaxprs)
    return results, [*solved[:count], *(Zero.of(x) for x in aux)]


@rules.transpose(custom_linear_solve_p)
def _(cotangents, *operands, const_lengths, jaxprs):
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve: give transpose_solve, or symmetric=True if the system is."
        )
    captured, b = _split(operands, const_lengths)
    if any(type(x) is not UndefinedPrimal for x in b):
        raise TypeError("custom_linear_solve is linear in the whole of its right-hand side")
    count = len(b)
    if all(type(c) is Zero for c in cotangents[:count]):
        return [None] * len(operands)
    given = [instantiate(c) for c in cotangents[:count]]
    found = _bind(captured.transposed(), given, jaxprs.transposed())
    return [None] * (len(operands) - count) + found[:count]


@rules.batch_with_axis(custom_linear_solve_p)
def _(axis: AxisData, values, axes, *, const_lengths, jaxprs):
    values = [x if a is None else move_axis(x, a, 0) for x, a in zip(values, axes, strict=True)]
    captured, b = _split(values, const_lengths)
    flags, b_flags = _split([a is not None for a in axes], const_lengths)
    # Where anything is batched, the solution is; and so that the transposed system fits, all of it
    # and of the right-hand side are.
    b = [x if f else with_new_axis(x, axis.size) for x, f in zip(b, b_flags, strict=True)]
    everything = [True] * len(b)
    programs = _LinearSolveTuple(
        *[
            None if program is None else batch_program(program, axis, [*own, *everything], True)[0]
            for program, own in zip(jaxprs, flags, strict=True)
        ]
    )
    results = _bind(captured, b, programs)
    return results, [0] * len(results)


# ---- custom_root ---------------------------------------------------------------------------------


class _RootPrograms:
    """The programs behind custom_root, each with the values that it captured as first inputs."""

    __slots__ = ("f", "solve", "tangent_solve")

    def __init__(self, f: ClosedJaxpr, solve: ClosedJaxpr, tangent_solve: ClosedJaxpr):
        self.f = f
        self.solve = solve
        self.tangent_solve = tangent_solve


@boundary
def custom_root(
    f: Callable[..., Any],
    initial_guess: Any,
    solve: Callable[..., Any],
    tangent_solve: Callable[..., Any],
    has_aux: bool = False,
) -> Any:
    """Find x with `f(x) = 0` by `solve`; differentiated by the implicit function theorem.

    Args:
      f: of a pytree of arrays, returns one like it. It may close over values: the root is
        differentiated with respect to them.
      initial_guess: where `solve` begins.
      solve: `solve(f, initial_guess)` gives the root. It may use while_loop.
      tangent_solve: `tangent_solve(g, y)` solves `g(x) = y` for a linear function g: `y / g(1.0)`
        for scalars, custom_linear_solve or an iterative solver otherwise.
      has_aux: whether `solve` returns (root, auxiliary data), the latter not differentiated.

    Returns:
      The root, like `initial_guess`; (root, auxiliary data) where there are some.

    Raises:
      TypeError: if a function returns something of another structure.
      ValueError: if shapes differ.
    """
    leaves, structure = tree.tree_flatten(initial_guess)
    avals = [typeof(x) for x in leaves]
    program, f_values, f_tree = _staged(f, (initial_guess,), "custom_root")
    _check_like("f", f_tree, program.out_avals, structure, avals, "initial_guess")
    solving, solve_values, out_tree = _staged(
        lambda x: solve(f, x), (initial_guess,), "custom_root solve"
    )
    root_tree, count = out_tree, len(solving.out_avals)
    if has_aux:
        children = out_tree.children() if out_tree.node_data() is not None else []
        if len(children) != 2:
            raise TypeError(
                "solve() of custom_root with has_aux=True must return a pair, the root and "
                f"auxiliary data; it returned {out_tree}"
            )
        root_tree = children[0]
        count = root_tree.num_leaves
    found = solving.out_avals[:count]
    _check_like("solve", root_tree, found, structure, avals, "initial_guess")

    def linearize_and_solve(x: Any, y: Any) -> Any:
        _, g = linearize(f, x)
        return tangent_solve(g, y)

    tangents, tangent_values, tangent_tree = _staged(
        linearize_and_solve, (initial_guess, initial_guess), "custom_root tangent_solve"
    )
    _check_like("tangent_solve", tangent_tree, tangents.out_avals, structure, avals, "x")
    results = _root(
        _RootPrograms(program, solving, tangents), f_values, solve_values, tangent_values, leaves
    )
    return out_tree.unflatten(results)


@partial(custom_jvp, nondiff_argnums=(0,))
def _root(programs, f_values, solve_values, tangent_values, guess):
    return jaxpr_as_fun(programs.solve, *solve_values, *guess)


# f(x, a) = 0 gives (df/dx) dx = -(df/da) da.
@_root.defjvp
def _root_jvp(programs, primals, tangents):
    f_values, _, tangent_values, guess = primals
    results = _root(programs, *primals)
    count = len(guess)
    solution, aux = results[:count], results[count:]
    still = [Zero.of(x) for x in solution]
    f = programs.f
    _, moved = jvp_jaxpr(f.jaxpr, f.consts, [*f_values, *solution], [*tangents[0], *still])
    side = [neg(instantiate(t)) for t in moved]
    moving = jaxpr_as_fun(programs.tangent_solve, *tangent_values, *solution, *side)
    return results, [*moving, *(instantiate(Zero.of(x)) for x in aux)]
