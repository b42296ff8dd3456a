"""The instrumented loop bodies that record the step in which each value first goes bad."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Literal
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import called_by, inputs_among
from hlofront.inspect.stepwise.operands import ELEMENTWISE
from hlofront.numpy import isfinite, isinf, isnan, where
from hlofront.primitives.arrays.slicing import stack
from hlofront.primitives.elementwise.converting import convert_element_type

# The kinds of bad elements to search for, and the attributes of `Value` to follow.
SearchFor = tuple[tuple[str, ...], tuple[str, ...]]


def bad_elements(x: ArrayLike, kinds: tuple[str, ...]) -> Array | None:
    """Return a boolean array that is True at bad elements, or None for a dtype that has none."""
    dtype = typeof(x).dtype
    if isinstance(dtype, ExtendedDType) or not issubdtype(dtype, np.inexact):
        return None
    if kinds == ("inf",):
        return isinf(x)
    return isnan(x) if kinds == ("nan",) else ~isfinite(x)


def noted(
    search_for: SearchFor, time: ArrayLike, new: ArrayLikes, since: Sequence[Sequence[Array]] | None
) -> list[list[Array]]:
    """Return the step since which each part of a carry is bad, in one list per followed attribute.

    A step of -1 means from the start, -2 not at all.
    """
    kinds, followed = search_for
    times_of_members: list[list[Array]] = []
    for i, which in enumerate(followed):
        times: list[Array] = []
        for position, x in enumerate(new):
            before = (
                -1 if since is None else where(since[i][position] > -2, since[i][position], time)
            )
            bad = bad_elements(x, ("inf",) if which == "infinite" else kinds)
            bad = False if bad is None else bad.any()
            times.append(convert_element_type(where(bad, before, -2), np.int32))
        times_of_members.append(times)
    return times_of_members


def strong(values: ArrayLikes) -> list[ArrayLike]:
    return [
        x
        if isinstance(typeof(x).dtype, ExtendedDType)
        else convert_element_type(x, typeof(x).dtype)
        for x in values
    ]


def watched_step(
    program: ClosedJaxpr, search_for: SearchFor, args: ArrayLikes
) -> tuple[list[ArrayLike], Array | NumPyArray]:
    """Return the results of a program, and for each operation whether it made bad elements."""
    begun: list[Array | np.bool_] = []
    results = _run(program, args, search_for[0], begun)
    return results, stack(begun) if begun else np.zeros(0, bool)


@once_per_program
def count_watched(program: ClosedJaxpr) -> int:
    """Return the number of operations that `watched_step` watches."""
    return sum(
        count_watched(call.closed) if (call := called_by(equation)) is not None else 1
        for equation in program.jaxpr.eqns
    )


def _run(
    program: ClosedJaxpr, args: ArrayLikes, kinds: tuple[str, ...], begun: list[Array | np.bool_]
) -> list[ArrayLike]:
    jaxpr = program.jaxpr
    values: dict[Atom, ArrayLike] = dict(zip(jaxpr.constvars, program.consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Atom) -> ArrayLike:
        return atom.val if type(atom) is Literal else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        call = called_by(equation)
        if call is not None:
            results = _run(call.closed, inputs_among(call, operands), kinds, begun)
        else:
            results = equation.primitive.bind(*operands, **equation.params)
            if not equation.primitive.multiple_results:
                results = (results,)
            begun.append(_begins(equation.primitive.name, operands, results, kinds))
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _begins(
    name: str, operands: ArrayLikes, results: ArrayLikes, kinds: tuple[str, ...]
) -> Array | np.bool_:
    """Return whether an operation makes bad elements where its operands have none."""
    made = [bad for x in results if (bad := bad_elements(x, kinds)) is not None]
    if not made or name == "select_n":
        return np.bool_(False)
    had = [bad for x in operands if (bad := bad_elements(x, kinds)) is not None]
    begins = np.bool_(False)
    for bad in made:
        if name in ELEMENTWISE:
            for other in had:
                bad = bad & ~other
            begins = begins | bad.any()
        else:
            begins = begins | bad.any()
            for other in had:
                begins = begins & ~other.any()
    return begins
