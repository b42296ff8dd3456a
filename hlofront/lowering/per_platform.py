"""Programs for several platforms: the module is told which one it runs on, and branches on it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower

# Stands for the number of the platform among the large constants, which travel down the calls as
# it does: the argument of main that JAX names `_platform_index`.
INDEX = object()
index_aval = ShapedArray((), np.dtype(np.int32))


def lower_per_platform(build: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Lower the equation of the builder by the rule of each platform, in a branch for each."""
    equation = build.equation
    primitive = equation.primitive
    multiple = primitive.multiple_results
    avals_in, avals_out = build.avals_in, build.avals_out
    groups = lower.for_platforms(primitive, build.module.platforms)

    def of(rule: Callable[..., Any], inner: Any) -> Sequence[Any]:
        inner.avals_in, inner.avals_out = avals_in, avals_out
        results = rule(inner, *operands, **params)
        return results if multiple else [results]

    branches = [(platforms, partial(of, rule)) for rule, platforms in groups]
    results = choose(build, branches, avals_out, equation.effects)
    return results if multiple else results[0]


def choose(
    build: Any,
    branches: Sequence[tuple[tuple[str, ...], Callable[[Any], Sequence[Any]]]],
    avals: Sequence[Any],
    effects: Any = (),
) -> list[Any]:
    """Run the branch of the platform that the module runs on.

    Args:
      branches: each with its platforms; together they are all of the module's. A branch is handed
        a builder, for its platforms alone, and returns values of `avals`.
      effects: those of all branches together.
    """
    module = build.module
    around = module.platforms
    numbers = {name: i for i, (names, _) in enumerate(branches) for name in names}
    index = number_of(build, [numbers[name] for name in around])

    def narrowed(names: tuple[str, ...], branch: Any, inner: Any) -> Sequence[Any]:
        module.platforms = names
        try:
            return branch(inner)
        finally:
            module.platforms = around

    regions = [partial(narrowed, names, branch) for names, branch in branches]
    return build.case(index, regions, avals, effects)


def number_of(build: Any, numbers: Sequence[int]) -> Any:
    """The one of these numbers, of which each platform has one, for that which the module runs on.

    Raises:
      NotImplementedError: in the body of an operation, which sees nothing from outside.
    """
    if len(set(numbers)) == 1:
        return build.constant(numbers[0], np.int32)
    platforms = build.module.platforms
    index = build.hoisted.get(id(INDEX))
    if index is None:
        raise NotImplementedError(  # the class that JAX raises
            f"{build.equation.primitive.name} is not the same on {', '.join(platforms)}, and is in "
            "the body of an operation that cannot be told where it runs: lower for one of them"
        )
    whole = build.module.all_platforms
    given = dict(zip(platforms, numbers, strict=True))
    if [given.get(name) for name in whole] == list(range(len(whole))):
        return index
    # In branches for some platforms any number does for the others.
    wanted = tuple([given.get(name, 0) for name in whole])
    found = build.constants.get((INDEX, wanted))
    if found is None:
        constants = [partial(_constant, number) for number in wanted]
        (found,) = build.case(index, constants, [index_aval])
        build.constants[INDEX, wanted] = found
    return found


def _constant(number: int, inner: Any) -> list[Any]:
    return [inner.constant(number, np.int32)]
