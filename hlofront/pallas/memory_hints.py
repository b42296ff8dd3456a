"""What programs say and ask about the memory of arrays and references, for kernels of TPUs."""

import numpy as np

from hlofront.base.elements import bool_
from hlofront.base.tree_nodes import register_pytree_node
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Equation
from hlofront.core.memories import Memories
from hlofront.core.primitive import Primitive
from hlofront.core.references import AbstractRef, RefView, shape_after
from hlofront.pallas.memory import ANY, HBM, HOST, SMEM, VMEM, TpuMemorySpace, space_of
from hlofront.primitives.elementwise.converting import as_array_of_trace
from hlofront.primitives.references.references import RefLike, TransformedRef, indexed
from hlofront.primitives.references.rules import Discharged
from hlofront.primitives.rules.batching import batch_elementwise
from hlofront.primitives.rules.derivatives import linear, no_derivative
from hlofront.runtime.array.transfer import device_put

# The operand is a reference; the result is whether it is in the memory `memory_space`.
has_memory_space_p = Primitive("has_memory_space")
has_memory_space_p.ref_primitive = True
no_derivative(has_memory_space_p)

# The operand, as an array whose type has the memory `memory_space`, for a kernel that takes it.
with_memory_space_constraint_p = Primitive("with_memory_space_constraint")
with_memory_space_constraint_p.moves_memory = True
rules.lower.modules[with_memory_space_constraint_p.name] = ["hlofront.pallas.interpret.operations"]


def with_memory_space_constraint(x: ArrayLike, memory_space: Memories) -> Array:
    """Return an array that must be in a memory when a kernel takes it as an operand.

    Without it the compiler chooses, such as to prefetch an operand in HBM to VMEM. Only operands of
    `pallas_call` are in that memory, when it is compiled for TPUs; so are results that alias them.

    Args:
      x: an array, in a jitted function.
      memory_space: `pltpu.HBM`, `pltpu.VMEM`, `pltpu.SMEM`, `pl.HOST`; or `pl.ANY`, which does not
        constrain it.

    Raises:
      NotImplementedError: for another memory.
    """
    if memory_space is ANY:
        return as_array_of_trace(x)
    if memory_space is HOST:
        return device_put(x, HOST)
    if memory_space not in (HBM, VMEM, SMEM):
        raise NotImplementedError(  # JAX raises this class.
            "with_memory_space_constraint only supports HBM, VMEM, SMEM, and HOST: got "
            f"{memory_space!r}"
        )
    return with_memory_space_constraint_p.bind(x, memory_space=memory_space)


@rules.infer(with_memory_space_constraint_p)
def _(x: ShapedArray, *, memory_space: TpuMemorySpace) -> ShapedArray:
    return x.update(memory_space=memory_space)


batch_elementwise(with_memory_space_constraint_p)
linear(
    with_memory_space_constraint_p,
    lambda ct, _, **params: [with_memory_space_constraint_p.bind(ct, **params)],
)


class AccessAssumptions(RefView):
    """A view of a whole reference, with what the compiler may assume about accesses through it.

    Attributes:
      names: the assumptions, as the parameters of `annotate` name them.
    """

    __slots__ = ("names",)

    def __init__(self, shape: tuple[int, ...], names: tuple[str, ...]):
        super().__init__(shape, shape)
        self.names = names

    def __repr__(self) -> str:
        return f"{{annotate({', '.join(self.names)})}}"


register_pytree_node(
    AccessAssumptions,
    lambda view: ((), (view.shape, view.names)),
    lambda static, _: AccessAssumptions(*static),
)


def annotate(
    ref: RefLike,
    *,
    no_store: bool = False,
    no_bank_conflict: bool = False,
    no_hazard: bool = False,
    no_hazard_no_deps: bool = False,
) -> TransformedRef:
    """Return a view of a reference through which the compiler may make assumptions.

    Interpreted kernels don't use them. Mosaic has them since jaxlib 0.12.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      no_store: the kernel doesn't write to the buffer, except by copies: instead of keeping an
        element, it may be read again.
      no_bank_conflict: accesses in one bundle are to different banks of the memory.
      no_hazard: reads don't follow writes of the same elements closely; if one does, it waits. Only
        in VMEM.
      no_hazard_no_deps: reads and writes through the view are of different elements, and may be
        reordered. Only in VMEM.

    Raises:
      TypeError: if `ref` is not a reference.
      ValueError: if assumptions exclude one another, or the memory has no such hazards.
    """
    given = {
        "no_store": no_store,
        "no_bank_conflict": no_bank_conflict,
        "no_hazard": no_hazard,
        "no_hazard_no_deps": no_hazard_no_deps,
    }
    try:
        base, transforms = indexed(ref, None, "annotate")
    except ValueError as error:
        raise TypeError(f"ref must be a reference, got {ref}") from error
    names = {name for name, is_given in given.items() if is_given}
    for transform in transforms:
        names.update(getattr(transform, "names", ()))
    hazards = names & {"no_hazard", "no_hazard_no_deps"}
    if len(hazards) + ("no_store" in names) > 1:
        raise ValueError(
            f"the assumptions {', '.join(sorted(names))} exclude one another: give one of "
            "no_store, no_hazard and no_hazard_no_deps"
        )
    space = space_of(ref)
    if hazards and space is not VMEM:
        raise ValueError(
            "Hazard overrides ('no_hazard' or 'no_hazard_no_deps') are only valid for VMEM "
            f"references, but got memory space: {space}"
        )
    rest = [each for each in transforms if not isinstance(each, AccessAssumptions)]
    shape = shape_after(base.shape, rest)
    return TransformedRef(base, [*rest, AccessAssumptions(shape, tuple(sorted(names)))])


def has_memory_space(ref: RefLike, memory_space: TpuMemorySpace) -> Array:
    """Return whether a reference that may be in any memory is in one, for `lax.cond` or `pl.when`.

    Interpreted kernels have these references in HBM. Mosaic has the operation since jaxlib 0.12.

    Args:
      ref: a reference with the memory `pl.ANY`, or a view of it.
      memory_space: the memory, such as `pltpu.VMEM`.

    Raises:
      ValueError: if `ref` is not a reference, its memory is known, or `memory_space` is `pl.ANY`.
    """
    base, _ = indexed(ref, None, "has_memory_space")
    space = space_of(ref)
    if space is not ANY:
        raise ValueError(f"Ref must have pl.ANY memory space, but got {space}")
    if not isinstance(memory_space, TpuMemorySpace):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"has_memory_space(..., {memory_space!r}) is not supported. Please specify a concrete "
            "memory space, such as pltpu.VMEM"
        )
    return has_memory_space_p.bind(base, memory_space=memory_space)


@rules.infer(has_memory_space_p)
def _(ref: AbstractRef, *, memory_space: TpuMemorySpace) -> ShapedArray:
    return ShapedArray((), bool_)


@rules.discharge(has_memory_space_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    return [None], np.bool_(equation.params["memory_space"] is HBM)
