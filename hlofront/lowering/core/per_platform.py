"""Modules for several platforms, which take the platform index and branch on it."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.effects import Effect
from hlofront.core.rules import LoweringRule, lower
from hlofront.lowering.core.emitter import Emitter

# The key of the platform index among the large constants, which are passed down through calls in
# the same way: the argument of main that JAX names `_platform_index`.
INDEX = object()
index_aval = ShapedArray((), np.dtype(np.int32))

# A branch emits into the builder that it is called with, and returns its results.
Branch = Callable[[Any], Values]


def lower_per_platform(
    build: Emitter, operands: Values, params: dict[str, object]
) -> Value | list[Value]:
    """Lower the current equation by the rule of each platform, with one branch per rule."""
    primitive = build.primitive
    multiple = primitive.multiple_results
    avals_in, avals_out = build.avals_in, build.avals_out
    groups = lower.for_platforms(primitive, build.module.platforms, build)

    def by_rule(rule: LoweringRule, inner: Emitter) -> Values:
        inner.avals_in, inner.avals_out = avals_in, avals_out
        results = rule(inner, *operands, **params)
        return results if multiple else [results]

    branches = [(platforms, partial(by_rule, rule)) for rule, platforms in groups]
    results = choose(build, branches, avals_out, build.current.effects)
    return results if multiple else results[0]


def choose(
    build: Emitter,
    branches: Sequence[tuple[tuple[str, ...], Branch]],
    avals: Sequence[AbstractValue],
    effects: Iterable[Effect] = (),
) -> list[Value]:
    """Emit a branch per group of platforms; the module runs the branch of its platform.

    Args:
      branches: pairs of a branch and its platforms, which together cover those of the module. A
          branch emits into the builder that it receives, only for its platforms, and returns values
          of `avals`.
      effects: the union of the branches' effects.
    """
    module = build.module
    around = module.platforms
    numbers = {name: i for i, (names, _) in enumerate(branches) for name in names}
    index = number_of(build, [numbers[name] for name in around])

    def narrowed(names: tuple[str, ...], branch: Branch, inner: Emitter) -> Values:
        module.platforms = names
        try:
            return branch(inner)
        finally:
            module.platforms = around

    regions = [partial(narrowed, names, branch) for names, branch in branches]
    return build.case(index, regions, avals, effects)


def number_of(build: Emitter, numbers: Sequence[int]) -> Value:
    """Return the number for the platform on which the module runs, from one per platform.

    Raises:
      NotImplementedError: in the body of an operation that cannot use values from outside.
    """
    if len(set(numbers)) == 1:
        return build.constant(numbers[0], np.int32)
    platforms = build.module.platforms
    index = build.hoisted.get(id(INDEX))
    if index is None:
        raise NotImplementedError(  # JAX raises this class.
            f"{build.primitive.name} is not the same on {', '.join(platforms)}, and is in the body "
            "of an operation that does not know the platform: lower for one of them"
        )
    whole = build.module.all_platforms
    number_by_platform = dict(zip(platforms, numbers, strict=True))
    if [number_by_platform.get(name) for name in whole] == list(range(len(whole))):
        return index
    # In a branch for some platforms, the numbers of other platforms are arbitrary.
    wanted = tuple([number_by_platform.get(name, 0) for name in whole])
    chosen = build.constants.get((INDEX, wanted))
    if chosen is None:
        constants = [partial(_constant, number) for number in wanted]
        (chosen,) = build.case(index, constants, [index_aval])
        build.constants[INDEX, wanted] = chosen
    return chosen


def _constant(number: int, inner: Emitter) -> list[Value]:
    return [inner.constant(number, np.int32)]
