"""The primitive inspect_sharding, which passes the sharding of a value to a function."""

# pyright: strict

from collections.abc import Sequence

from hlofront.base.typing import ArrayLikes
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.effects import Effects, OwnEffect
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import no_subprograms
from hlofront.core.rules import batch, effects, infer, jvp, subprograms, transpose
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Cotangents, Duals, Operand, Tangents
from hlofront.core.trace import process


class InspectionEffect(OwnEffect):
    """The effect of inspecting a sharding, which happens when a program is compiled."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is InspectionEffect

    def __hash__(self) -> int:
        return hash(InspectionEffect)

    def __str__(self) -> str:
        return "ShardingInspection"


_inspection_effect = InspectionEffect()

inspect_sharding_p = Primitive("inspect_sharding", multiple_results=True, carries_programs=True)
subprograms(inspect_sharding_p)(no_subprograms)


@infer(inspect_sharding_p)
def _(x: ShapedArray, **_: object) -> list[ShapedArray]:
    return []


@effects(inspect_sharding_p)
def _(x: AbstractValue, **_: object) -> Effects:
    return frozenset({_inspection_effect})


@jvp(inspect_sharding_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    return process(inspect_sharding_p, tuple(primals), params), []


@transpose(inspect_sharding_p)
def _(cotangents: Sequence[Cotangent], x: Operand, **_: object) -> Cotangents:
    return [None]


# The callback sees the sharding of the batch.
@batch(inspect_sharding_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[ArrayLikes, BatchAxes]:
    return process(inspect_sharding_p, tuple(values), params), []
