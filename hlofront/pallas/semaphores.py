"""Semaphores of kernels: semaphore_signal, semaphore_wait and semaphore_read."""

import enum
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from hlofront.base import tree
from hlofront.base.elements import int32
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import NDIndexer, shape_after, write_effect
from hlofront.pallas.masked import reference_text
from hlofront.pallas.memory import DMA_SEMAPHORE_DTYPE, is_semaphore
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, neg
from hlofront.primitives.references.references import RefLike, indexed
from hlofront.primitives.references.rules import Discharged
from hlofront.primitives.references.updates import read_at, write_at
from hlofront.primitives.rules.derivatives import no_derivative

if TYPE_CHECKING:
    from hlofront.core.programs.print import Printing


class DeviceIdType(enum.Enum):
    """How another device is named: by its coordinates in the mesh, or by a single number."""

    MESH = "mesh"
    LOGICAL = "logical"


# What users give for a device: its number, or its coordinates in the mesh, by axis or by name.
DeviceId = ArrayLike | ArrayLikes | Mapping[Hashable, ArrayLike]

# Operands: the leaves of (semaphore, indexers, increment, device, core), whose structure is the
# parameter `args_tree`; the device and the core are None for the kernel's own.
semaphore_signal_p = Primitive("semaphore_signal", multiple_results=True)
# Operands: the leaves of (semaphore, indexers, value, whether to subtract the value).
semaphore_wait_p = Primitive("semaphore_wait", multiple_results=True)
# Operands: the leaves of (semaphore, indexers). The result is the count.
semaphore_read_p = Primitive("semaphore_read")

for _primitive in (semaphore_signal_p, semaphore_wait_p, semaphore_read_p):
    _primitive.ref_primitive = True
    rules.effects(_primitive)(lambda *_, **__: frozenset((write_effect,)))
    no_derivative(_primitive)


def semaphore_at(ref: RefLike, function: str) -> tuple[RefLike, tuple[NDIndexer, ...]]:
    """Return the reference to semaphores behind a reference or view, and the view's indexers.

    Raises:
      ValueError: if it is not a reference to one semaphore.
    """
    ref, transforms = indexed(ref, None, function)
    if not is_semaphore(ref.dtype):
        raise ValueError(
            f"`{function}` requires a semaphore, such as a scratch buffer of type "
            f"pltpu.SemaphoreType.DMA: got a reference of type {typeof(ref).str_short()}"  # pyright: ignore[reportArgumentType]
        )
    shape = shape_after(ref.shape, transforms)
    if shape:
        raise ValueError(
            f"`{function}` requires one semaphore, got an array of shape {shape}: use sem.at[i]"
        )
    return ref, transforms


def _counting_semaphore_at(
    ref: RefLike, function: str, instead: str
) -> tuple[RefLike, tuple[NDIndexer, ...]]:
    """Return `semaphore_at` of a semaphore that kernels signal themselves.

    Raises:
      ValueError: if it is a semaphore of copies, which only copies may change.
    """
    ref, transforms = semaphore_at(ref, function)
    if ref.dtype == DMA_SEMAPHORE_DTYPE:
        raise ValueError(
            f"`{function}` requires a semaphore of type REGULAR or BARRIER, got one of copies, "
            f"dma_sem: {instead}"
        )
    return ref, transforms


def semaphore_signal(
    sem_or_view: RefLike,
    inc: ArrayLike = 1,
    *,
    device_id: DeviceId | None = None,
    device_id_type: DeviceIdType | None = None,
    core_index: ArrayLike | None = None,
) -> None:
    """Add to the count of a semaphore.

    Args:
      sem_or_view: a reference to a semaphore, or to one of an array of them: `sem.at[i]`.
      inc: the number to add.
      device_id: the device whose semaphore it is; None for the kernel's own.
      device_id_type: how the device is named; by default by its coordinates in the mesh.
      core_index: the core whose semaphore it is; None for the kernel's own.

    Raises:
      ValueError: if it is not one semaphore, or it is a semaphore of copies.
    """
    ref, transforms = _counting_semaphore_at(
        sem_or_view, "semaphore_signal", "a copy signals it when it arrives"
    )
    args = (ref, transforms, convert(inc, int32, False), device_id, core_index)
    leaves, structure = tree.tree_flatten(args)
    kind = DeviceIdType.MESH if device_id_type is None else device_id_type
    semaphore_signal_p.bind(*leaves, args_tree=structure, device_id_type=kind)


def semaphore_wait(sem_or_view: RefLike, value: ArrayLike = 1, *, decrement: bool = True) -> None:
    """Wait until the count of a semaphore is at least a number, and subtract it.

    Args:
      sem_or_view: a reference to a semaphore, or to one of an array of them: `sem.at[i]`.
      value: the number.
      decrement: whether to subtract it.

    Raises:
      ValueError: if it is not one semaphore, or it is a semaphore of copies.
    """
    ref, transforms = _counting_semaphore_at(
        sem_or_view, "semaphore_wait", "use the method wait of the copy"
    )
    leaves, structure = tree.tree_flatten((ref, transforms, convert(value, int32, False)))
    semaphore_wait_p.bind(*leaves, args_tree=structure, decrement=bool(decrement))


def semaphore_read(sem_or_view: RefLike) -> Array:
    """Return the count of a semaphore.

    Args:
      sem_or_view: a reference to a semaphore, or to one of an array of them: `sem.at[i]`.

    Raises:
      ValueError: if it is not one semaphore.
    """
    ref, transforms = semaphore_at(sem_or_view, "semaphore_read")
    leaves, structure = tree.tree_flatten((ref, transforms))
    return semaphore_read_p.bind(*leaves, args_tree=structure)


@rules.infer(semaphore_signal_p, semaphore_wait_p)
def _(*avals: AbstractValue, **_: object) -> list[ShapedArray]:
    return []


@rules.infer(semaphore_read_p)
def _(*avals: AbstractValue, args_tree: PyTreeDef) -> ShapedArray:
    return ShapedArray((), int32)


# ---- discharge: one device, which runs the kernel in order, waits for nothing --------------------


def added(array: ArrayLike, transforms: Sequence[NDIndexer], number: ArrayLike) -> Array:
    """Return an array of semaphores with one count increased by a number."""
    dtype = typeof(array).dtype
    count = convert(read_at(array, transforms), int32, False)
    total = add(count, convert(number, int32, False))
    return write_at(array, transforms, convert(total, dtype, False))  # pyright: ignore[reportReturnType]


@rules.discharge(semaphore_signal_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, transforms, inc, device, _ = equation.params["args_tree"].unflatten(operands)
    if device is not None:
        raise ValueError(
            "a kernel that is interpreted runs on one device: semaphore_signal was given "
            f"device_id={device}"
        )
    return [added(array, transforms, inc), *[None] * len(operands[1:])], []


@rules.discharge(semaphore_wait_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, transforms, value = equation.params["args_tree"].unflatten(operands)
    new = added(array, transforms, neg(value)) if equation.params["decrement"] else None
    return [new, *[None] * len(operands[1:])], []


@rules.discharge(semaphore_read_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, transforms = equation.params["args_tree"].unflatten(operands)
    return [None] * len(operands), convert(read_at(array, transforms), int32, False)


@rules.show(semaphore_signal_p)
def _(equation: Equation, printing: "Printing") -> str:
    ref, transforms, inc, device, core = equation.params["args_tree"].unflatten(equation.invars)
    text = f"semaphore_signal {reference_text(printing, ref, transforms)} {printing.used(inc)}"
    for name, value in (("device_id", device), ("core", core)):
        if value is not None:
            text += f" {name}={', '.join(map(printing.used, tree.tree_leaves(value)))}"
    return text


@rules.show(semaphore_wait_p)
def _(equation: Equation, printing: "Printing") -> str:
    ref, transforms, value = equation.params["args_tree"].unflatten(equation.invars)
    kind = "[dec]" if equation.params["decrement"] else ""
    part = reference_text(printing, ref, transforms)
    return f"semaphore_wait{kind} {part} {printing.used(value)}"
