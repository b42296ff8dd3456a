"""Each sample with operands split along explicit axes of a mesh: the types of its results.

Imported by both sides, hlofront's and jax's, so it names neither. Nothing is compiled or run.
"""

import itertools
import sys
from typing import Any

from tests.systematic import trials

# A mesh axis for each small prime number, and a second one of size 2.
MESH = {"a": 2, "b": 3, "c": 5, "d": 7, "e": 2}

_NO_RULE = "sharding rule for"

# Per traced operand of a sample, per axis, the name of the mesh axis that splits it, or None.
Splits = tuple[tuple[str | None, ...], ...]


def divisor(size: int) -> str | None:
    """Return the first mesh axis whose size divides the size of an axis; None without one."""
    return next((name for name, parts in MESH.items() if size and size % parts == 0), None)


def splits_of(shapes: list[tuple[int, ...]]) -> dict[str, Splits]:
    """Return the ways in which operands of these shapes are split, by names such as "0:a,- 1:-"."""
    whole = [(None,) * len(shape) for shape in shapes]
    ways: list[list[tuple[str | None, ...]]] = []

    def add(*axes: tuple[int, int, str | None]) -> None:
        entries = [list(entry) for entry in whole]
        for operand, axis, name in axes:
            if name is None or shapes[operand][axis] % MESH[name]:
                return
            entries[operand][axis] = name
        ways.append([tuple(entry) for entry in entries])

    for operand, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            add((operand, axis, divisor(size)))
        for axis, other in itertools.combinations(range(len(shape)), 2):
            first = divisor(shape[axis])
            second = divisor(shape[other])
            add((operand, axis, first), (operand, other, "e" if second == first else second))
    for one, two in itertools.combinations(range(min(3, len(shapes))), 2):
        for axis, other in itertools.product(range(len(shapes[one])), range(len(shapes[two]))):
            name = divisor(shapes[one][axis])
            add((one, axis, name), (two, other, name))
            if axis == other:
                add((one, axis, "a"), (two, other, "e"))
    for axis in range(max(map(len, shapes), default=0)):
        alike = [(i, axis, divisor(s[axis])) for i, s in enumerate(shapes) if len(s) > axis]
        if len(alike) > 2:
            add(*alike)
    return {_name(way): tuple(way) for way in ways}


def _name(way: list[tuple[str | None, ...]]) -> str:
    return " ".join(
        f"{operand}:{','.join(name or '-' for name in entries)}"
        for operand, entries in enumerate(way)
        if any(entries)
    )


def types_of(sample: Any, values: list[Any], jax: Any) -> dict[str, str]:
    """Return per way of splitting the operands the types of results.

    An error is told by the name of its class.
    """
    call, traced = trials.split(sample, values)
    with trials.quiet(), jax.enable_x64(sample.needs_x64()), _mesh_in_context(jax):
        return {
            name: _types(call, _structs(traced, way, jax), jax)
            for name, way in splits_of([x.shape for x in traced]).items()
        }


def _mesh(jax: Any) -> Any:
    kinds = (jax.sharding.AxisType.Explicit,) * len(MESH)
    return jax.sharding.AbstractMesh(tuple(MESH.values()), tuple(MESH), axis_types=kinds)


def _mesh_in_context(jax: Any) -> Any:
    return jax.sharding.use_abstract_mesh(_mesh(jax))


def _structs(traced: list[Any], way: Splits, jax: Any) -> list[Any]:
    """Return the operands without data, split in a way."""
    mesh, spec = _mesh(jax), jax.sharding.PartitionSpec
    return [
        jax.ShapeDtypeStruct(
            x.shape, x.dtype, sharding=jax.sharding.NamedSharding(mesh, spec(*entries))
        )
        for x, entries in zip(traced, way, strict=True)
    ]


def _types(call: Any, structs: list[Any], jax: Any) -> str:
    try:
        avals = jax.make_jaxpr(call)(*structs).out_avals
    except Exception as error:
        # JAX refuses what it has no rule for, by an error that is of shardings too.
        return "NoRuleError" if _NO_RULE in str(error) else type(error).__name__
    return " ".join(aval.str_short(short_dtypes=True) for aval in avals)


def answer_for_reference(
    file: str, questions: dict[str, int], jax: Any, *_: Any
) -> dict[str, dict[str, str]]:
    """Under the reference: the answers of `types_of` for samples, by their names."""
    sys.modules["hlofront"] = jax
    sys.modules["hlofront.lax"] = jax.lax
    sys.modules["hlofront.numpy"] = jax.numpy
    samples = trials.load_file(file)
    return {
        name: types_of(samples[place], samples[place].operand_values(), jax)
        for name, place in questions.items()
    }
