"""A function on arrays that are padded to a bucket, with the results of the unpadded arrays."""

from collections.abc import Callable, Mapping, Sequence

from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, register_pytree_node
from hlofront.base.typing import Value
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import Avals
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.sizes.scopes import SymbolicScope
from hlofront.core.sizes.symbolic import SizeExpression, has_symbolic_size, variable
from hlofront.runtime.buckets import (
    array_rules,  # noqa: F401  # The rules of the operations.
    index_rules,  # noqa: F401
    program_rules,  # noqa: F401
)
from hlofront.runtime.buckets.bounding import Bounded
from hlofront.transforms.flatten import stage_tree

Shape = tuple[int | SizeExpression, ...]


class PaddedResult:
    """The result of a function in a bucket: a pytree of arrays, some padded.

    Attributes:
      value: the padded result.
      shapes: per leaf, its shape without padding, as a function of the lengths; None for leaves
        that are not padded.
    """

    __slots__ = ("shapes", "value")

    def __init__(self, value: PyTree, shapes: tuple[Shape | None, ...]):
        self.value = value
        self.shapes = shapes

    def __repr__(self) -> str:
        return f"PaddedResult({self.value!r}, shapes={self.shapes})"


register_pytree_node(
    PaddedResult, lambda x: ((x.value,), x.shapes), lambda shapes, x: PaddedResult(x[0], shapes)
)


class Bucket(NamedTuple):
    """A bucket of lengths: from `least` to `size`, to which arrays are padded."""

    least: int
    size: int


class BoundedProgram(NamedTuple):
    """A program of symbolic sizes, and the structure of its results."""

    program: ClosedJaxpr
    out_tree: PyTreeDef
    sizes: Mapping[str, int]

    def __call__(
        self, lengths: Mapping[str, Value], leaves: Sequence[Value]
    ) -> tuple[PaddedResult, tuple[str, ...]]:
        """Return the result for padded arrays, and the operations that are masked, with lines."""
        bounded = Bounded(self.sizes, lengths)
        results = bounded.run(self.program, leaves)
        shapes: list[Shape | None] = [
            aval.shape if has_symbolic_size(getattr(aval, "shape", ())) else None
            for aval in self.program.out_avals
        ]
        value = self.out_tree.unflatten(results)
        return PaddedResult(value, tuple(shapes)), tuple(bounded.masked)


def bounded_program(
    fun: Callable[..., PyTree],
    in_tree: PyTreeDef,
    avals: Avals,
    axes: Sequence[Mapping[int, str]],
    buckets: Mapping[str, Bucket],
    debug_info: DebugInfo,
) -> BoundedProgram:
    """Trace a function for all lengths of some buckets.

    Args:
      fun: a function of pytrees of arrays.
      in_tree: the structure of its (args, kwargs).
      avals: the padded types of the leaves.
      axes: per leaf, the name of the length of each axis that is padded.
      buckets: the bucket of each length.
      debug_info: names for messages.

    Raises:
      InconclusiveDimensionOperation: if Python needs the value of a length.
    """
    scope = SymbolicScope(
        [
            text
            for name, bucket in buckets.items()
            for text in (f"{name} >= {bucket.least}", f"{name} <= {bucket.size}")
        ]
    )
    symbolic = [
        aval.update(
            shape=tuple(
                variable(names[axis], scope) if axis in names else size
                for axis, size in enumerate(aval.shape)
            )
        )
        if names
        else aval
        for aval, names in zip(avals, axes, strict=True)
    ]
    try:
        program, out_tree = stage_tree(fun, in_tree, symbolic, debug_info)
    except InconclusiveDimensionOperation as error:
        bounds = ", ".join(f"{b.least} <= {name} <= {b.size}" for name, b in buckets.items())
        error.add_note(
            f"{debug_info.func_src_info} is jitted with buckets and traced once for all lengths of "
            f"one ({bounds}): its Python code cannot branch on a length or count to it. Use array "
            "operations and lax's loops, or jit it without `buckets`."
        )
        raise
    return BoundedProgram(program, out_tree, {name: b.size for name, b in buckets.items()})
