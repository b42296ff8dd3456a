"""Samples as functions to vmap: stacks of their operands, and the ways to map over them.

Imported by both sides, as trials.py is: the namespace of JAX's functions is handed in.
"""

import zlib
from typing import Any

import numpy as np

from tests.support.cases import Spec
from tests.systematic import differentiating, trials

SIZE = 3


def chosen(samples: list[Any]) -> list[int]:
    """The places of those with operands to map over."""
    places = {}
    for place, sample in enumerate(samples):
        if any(
            isinstance(operand, Spec) or trials.is_traced(operand) for operand in sample.operands
        ):
            # Compiling takes long: of those that differ by the bits of floats alone, one.
            places.setdefault(differentiating.key(sample, alike=True), place)
    return list(places.values())


def in_all_ways(samples: list[Any]) -> set[str]:
    """Return the names of the samples that are mapped over in every way.

    All are, but for functions that are loops within loops and take seconds to compile: of those
    the first sample of each is, and the others are mapped over along the first axes alone.
    """
    first = {sample.function: sample for sample in reversed(samples)}
    return {
        sample.name
        for sample in samples
        if sample.function.__name__ not in differentiating.LONG or first[sample.function] is sample
    }


class Stacks:
    """The operands of a sample, several of each, along a first axis."""

    def __init__(self, sample: Any, jax: Any, in_all_ways: bool = True):
        self.in_all_ways = in_all_ways
        values = sample.operand_values()
        call, self.operands = trials.split(sample, values)
        self.call = lambda *operands: jax.tree_util.tree_leaves(call(*operands))
        generator = np.random.default_rng(zlib.crc32(sample.name.encode()) + 1)
        self.stacks = [
            np.stack([value, *(_another(spec, value, i, generator) for i in range(1, SIZE))])
            for spec, value in zip(sample.operands, values, strict=True)
            if trials.is_traced(value)
        ]

    def ways(self) -> list[tuple[list[int | None], int]]:
        """The ways to map: an axis per operand, and that of the results.

        All operands along the first axis; then, in all ways, all along the last, some along either,
        and each alone.
        """
        last = [stack.ndim - 1 for stack in self.stacks]
        places = range(len(last))
        if not self.in_all_ways:
            return [([0] * len(last), 0)]
        found = [([0] * len(last), 0), (last, -1)]
        if len(last) > 1:
            found.append(([(0, last[i])[i % 2] for i in places], 0))
            for one in places:
                axis = (last[one], 0)[one % 2]
                found.append(([axis if i == one else None for i in places], axis and -1))
        return found

    def mapped(self, way: tuple[list[int | None], int]) -> list[Any]:
        """The operands, those that are mapped with their stack along that axis."""
        return [
            one if axis is None else np.moveaxis(stack, 0, axis)
            for one, stack, axis in zip(self.operands, self.stacks, way[0], strict=True)
        ]

    def entries(self, way: tuple[list[int | None], int]) -> list[list[Any]]:
        """What a loop calls the function with, in turn."""
        return [
            [
                one if axis is None else stack[i]
                for one, stack, axis in zip(self.operands, self.stacks, way[0], strict=True)
            ]
            for i in range(SIZE)
        ]


def _another(spec: Any, value: Any, number: int, generator: np.random.Generator) -> Any:
    """Other values of the kind: drawn, or the same in another order, as they may be indices."""
    if isinstance(spec, Spec):
        return spec.draw(generator)
    return np.roll(value[::-1] if np.ndim(value) else value, number)


def in_every_way(stacks: Stacks, jax: Any) -> Any:
    """A function of the operands of each way, that maps the sample's function in each."""

    def mapped(*all_operands):
        return [
            jax.vmap(stacks.call, in_axes=way[0], out_axes=way[1])(*operands)
            for way, operands in zip(stacks.ways(), all_operands, strict=True)
        ]

    return mapped
