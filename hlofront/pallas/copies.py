"""Copies between memories: async_copy, make_async_copy, sync_copy, and their primitives."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import Atom, Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import NDIndexer, dtype_after, read_effect, shape_after, write_effect
from hlofront.higher_order.control_flow.cond import switch
from hlofront.pallas.masked import reference_text
from hlofront.pallas.memory import DMA_SEMAPHORE_DTYPE, SemaphoreType
from hlofront.pallas.scoped import run_scoped
from hlofront.pallas.selected_refs import SelectedRef
from hlofront.pallas.semaphores import DeviceId, DeviceIdType, added, semaphore_at
from hlofront.primitives.elementwise.elementwise import add
from hlofront.primitives.references.references import RefLike, indexed
from hlofront.primitives.references.rules import Discharged
from hlofront.primitives.references.updates import read_at, write_at
from hlofront.primitives.rules.derivatives import unknown_derivative

if TYPE_CHECKING:
    from hlofront.core.programs.print import Printing

# Operands of both: the leaves of a CopyOperands, whose structure is the parameter `tree`.
dma_start_p = Primitive("dma_start", multiple_results=True)
# Waits until all bytes of the destination have arrived; with `is_wait_send`, until all bytes of
# the source have been read.
dma_wait_p = Primitive("dma_wait", multiple_results=True)

for _primitive in (dma_start_p, dma_wait_p):
    _primitive.ref_primitive = True
    rules.effects(_primitive)(lambda *_, **__: frozenset((read_effect, write_effect)))
    unknown_derivative(
        _primitive,
        "a copy has one semaphore, and its tangent would need another. Define the derivatives of "
        "the function around pallas_call by jax.custom_jvp or jax.custom_vjp",
    )

Transforms = Sequence[NDIndexer]


class CopyOperands(NamedTuple):
    """The operands of a copy: references with indexers, semaphores, and the device that receives.

    Attributes:
      src: the reference that is read.
      src_transforms: the indexers of the part that is read.
      dst: the reference that is written to.
      dst_transforms: the indexers of the part that is written.
      dst_sem: the reference to the semaphores that the destination's device signals; None if the
        compiler allocates one.
      dst_sem_transforms: the indexers of one of them.
      src_sem: the reference to the semaphores that are signaled when the source has been read; None
        if nothing waits for that.
      src_sem_transforms: the indexers of one of them.
      device_id: the device of the destination; None for the kernel's own.
    """

    src: Any
    src_transforms: Transforms
    dst: Any
    dst_transforms: Transforms
    dst_sem: Any
    dst_sem_transforms: Transforms
    src_sem: Any = None
    src_sem_transforms: Transforms = ()
    device_id: Any = None


class AsyncCopyDescriptor:
    """A copy that can be started and waited for."""

    __slots__ = ("device_id_type", "operands")

    def __init__(self, operands: CopyOperands, device_id_type: DeviceIdType = DeviceIdType.MESH):
        self.operands = operands
        self.device_id_type = device_id_type

    @property
    def is_remote(self) -> bool:
        """True if another device receives the copy."""
        return self.operands.device_id is not None

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Start the copy.

        Args:
          priority: the priority of the copy; higher ones go first.
          add: whether values are added to those at the destination.
        """
        leaves, structure = tree.tree_flatten(self.operands)
        dma_start_p.bind(
            *leaves,
            tree=structure,
            device_id_type=self.device_id_type,
            priority=priority,
            add=bool(add),
        )

    def wait(self) -> None:
        """Wait for the copy, and if it has a source semaphore, until the source has been read."""
        if self.operands.src_sem is not None:
            self._wait(is_wait_send=True)
        self.wait_recv()

    def wait_recv(self) -> None:
        """Wait until the copy has arrived, and is written to its destination."""
        self._wait(is_wait_send=False)

    wait_write = wait_recv

    def wait_send(self) -> None:
        """Wait until a copy to another device has been sent.

        Raises:
          ValueError: if no other device receives it.
        """
        if not self.is_remote:
            raise ValueError(
                "wait_send is for copies to other devices, of make_async_remote_copy: use wait()"
            )
        self._wait(is_wait_send=True)

    def wait_read(self) -> None:
        """Wait until the source has been read and may be overwritten.

        Raises:
          ValueError: if the copy has no semaphore for that.
        """
        if self.operands.src_sem is None:
            raise ValueError(
                "wait_read is for copies with a semaphore for their source: give "
                "make_async_copy a src_sem"
            )
        self._wait(is_wait_send=True)

    def _wait(self, is_wait_send: bool) -> None:
        leaves, structure = tree.tree_flatten(self.operands)
        dma_wait_p.bind(
            *leaves,
            tree=structure,
            device_id_type=self.device_id_type,
            is_wait_send=is_wait_send,
        )


class _ChosenCopy(AsyncCopyDescriptor):
    """One of several copies, chosen when the kernel runs."""

    __slots__ = ("copies", "index")

    def __init__(self, index: ArrayLike, copies: Sequence[AsyncCopyDescriptor]):
        super().__init__(copies[0].operands, copies[0].device_id_type)
        self.index = index
        self.copies = copies

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        switch(self.index, [lambda c=c: c.start(priority, add=add) for c in self.copies])

    def _wait(self, is_wait_send: bool) -> None:
        switch(self.index, [lambda c=c: c._wait(is_wait_send) for c in self.copies])


def _dma_semaphore_at(sem: RefLike | None) -> tuple[RefLike | None, tuple[NDIndexer, ...]]:
    if sem is None:
        return None, ()
    ref, transforms = semaphore_at(sem, "make_async_copy")
    if ref.dtype != DMA_SEMAPHORE_DTYPE:
        raise ValueError(
            f"a copy requires a DMA semaphore, but got a {ref.dtype} semaphore: allocate a "
            "pltpu.SemaphoreType.DMA"
        )
    return ref, transforms


def _copy_between(
    name: str,
    src_ref: RefLike | SelectedRef,
    dst_ref: RefLike | SelectedRef,
    dst_sem: RefLike | None,
    src_sem: RefLike | None,
    device_id: DeviceId | None = None,
    device_id_type: DeviceIdType | None = None,
) -> AsyncCopyDescriptor:
    """Return the copy that a function of this name describes, or a choice of copies."""
    rest = (dst_sem, src_sem, device_id, device_id_type)
    if isinstance(src_ref, SelectedRef):
        copies = [_copy_between(name, each, dst_ref, *rest) for each in src_ref.refs]
        return _ChosenCopy(src_ref.index, copies)
    if isinstance(dst_ref, SelectedRef):
        copies = [_copy_between(name, src_ref, each, *rest) for each in dst_ref.refs]
        return _ChosenCopy(dst_ref.index, copies)
    operands = CopyOperands(
        *indexed(src_ref, None, name),
        *indexed(dst_ref, None, name),
        *_dma_semaphore_at(dst_sem),
        *_dma_semaphore_at(src_sem),
        device_id,
    )
    kind = DeviceIdType.MESH if device_id_type is None else device_id_type
    return AsyncCopyDescriptor(operands, kind)


def make_async_copy(
    src_ref: RefLike | SelectedRef,
    dst_ref: RefLike | SelectedRef,
    sem: RefLike | None = None,
    *,
    src_sem: RefLike | None = None,
) -> AsyncCopyDescriptor:
    """Return a copy from one reference to another, without starting it.

    Args:
      src_ref: the reference that is read, a view `ref.at[...]`, or the result of `pl.select_ref`.
      dst_ref: the reference that is written to, or another of these.
      sem: a reference to a semaphore of type DMA; None for one of the compiler's.
      src_sem: another one, which is signaled when the source has been read.

    Raises:
      ValueError: if shapes or dtypes differ, or the semaphore is not one of type DMA.
    """
    return _copy_between("make_async_copy", src_ref, dst_ref, sem, src_sem)


def async_copy(
    src_ref: RefLike | SelectedRef,
    dst_ref: RefLike | SelectedRef,
    sem: RefLike | None = None,
    *,
    src_sem: RefLike | None = None,
    priority: int = 0,
    add: bool = False,
) -> AsyncCopyDescriptor:
    """Start a copy from one reference to another, and return it as an object to wait for.

    Args:
      src_ref: the reference that is read, or a view `ref.at[...]`.
      dst_ref: the reference that is written to, or a view.
      sem: a reference to a semaphore of type DMA; None for one of the compiler's.
      src_sem: another one, which is signaled when the source has been read.
      priority: the priority of the copy; higher ones go first.
      add: whether values are added to those at the destination.

    Raises:
      ValueError: if shapes or dtypes differ, or the semaphore is not one of type DMA.
    """
    copy = make_async_copy(src_ref, dst_ref, sem, src_sem=src_sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(
    src_ref: RefLike | SelectedRef, dst_ref: RefLike | SelectedRef, *, add: bool = False
) -> None:
    """Copy from one reference to another, and wait until it is done.

    Args:
      src_ref: the reference that is read, or a view `ref.at[...]`.
      dst_ref: the reference that is written to, or a view.
      add: whether values are added to those at the destination.

    Raises:
      ValueError: if shapes or dtypes differ.
    """

    def copy(sem: RefLike) -> None:
        async_copy(src_ref, dst_ref, sem, add=add).wait()

    run_scoped(copy, SemaphoreType.DMA)


def make_async_remote_copy(
    src_ref: RefLike | SelectedRef,
    dst_ref: RefLike | SelectedRef,
    send_sem: RefLike,
    recv_sem: RefLike,
    device_id: DeviceId | None,
    device_id_type: DeviceIdType | None = None,
) -> AsyncCopyDescriptor:
    """Return a copy to a reference of another device, which is not started yet.

    Args:
      src_ref: the reference that is read, or a view `ref.at[...]`.
      dst_ref: the other device's reference that is written to: the kernel's own has its name.
      send_sem: a reference to a semaphore of type DMA, signaled when the copy has been sent.
      recv_sem: one that the receiver signals when the copy has arrived.
      device_id: the device that receives it.
      device_id_type: how the device is named; by default by its coordinates in the mesh.

    Raises:
      ValueError: if shapes or dtypes differ, or a semaphore is not one of type DMA.
    """
    name = "make_async_remote_copy"
    return _copy_between(name, src_ref, dst_ref, recv_sem, send_sem, device_id, device_id_type)


def async_remote_copy(
    src_ref: RefLike | SelectedRef,
    dst_ref: RefLike | SelectedRef,
    send_sem: RefLike,
    recv_sem: RefLike,
    device_id: DeviceId | None,
    device_id_type: DeviceIdType | None = None,
) -> AsyncCopyDescriptor:
    """Start a copy to a reference of another device, and return it, to wait for.

    The arguments, and the errors, are those of `make_async_remote_copy`.
    """
    copy = make_async_remote_copy(src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type)
    copy.start()
    return copy


# ---- rules ---------------------------------------------------------------------------------------


@rules.infer(dma_start_p)
def _(*avals: AbstractValue, tree: PyTreeDef, **_: object) -> list[ShapedArray]:
    copy: CopyOperands = tree.unflatten(avals)
    src, dst = (
        (shape_after(ref.shape, transforms), dtype_after(ref.dtype, transforms))
        for ref, transforms in (
            (copy.src, copy.src_transforms),
            (copy.dst, copy.dst_transforms),
        )
    )
    if src != dst:
        raise ValueError(
            "a copy has a source and a destination of one shape and dtype: the source has shape "
            f"{src[0]} and dtype {src[1]}, the destination shape {dst[0]} and dtype {dst[1]}. "
            "Select equal parts by ref.at[...]; copies do not convert."
        )
    return []


@rules.infer(dma_wait_p)
def _(*avals: AbstractValue, **_: object) -> list[ShapedArray]:
    return []


def _on_one_device(equation: Equation, operands: ArrayLikes) -> CopyOperands:
    copy: CopyOperands = equation.params["tree"].unflatten(operands)
    if copy.device_id is not None:
        raise ValueError(
            f"a kernel that is interpreted runs on one device: it copies to device {copy.device_id}"
        )
    return copy


def _size(copy: CopyOperands) -> int:
    """Return what a copy adds to its semaphore: its number of elements."""
    return ShapedArray(shape_after(copy.dst.shape, copy.dst_transforms), "bool").size


def _places(equation: Equation) -> CopyOperands:
    """Return the positions of a copy's operands among those of its equation."""
    return equation.params["tree"].unflatten(range(len(equation.invars)))


def _signaled(
    equation: Equation, copy: CopyOperands, number: int, *names: str
) -> dict[Atom, ArrayLike]:
    """Return the new arrays of semaphores, with some counts increased by a number.

    Args:
      equation: the equation.
      copy: its operands.
      number: the number that is added.
      names: those of `dst_sem` and `src_sem` that are signaled; they may be of one array.
    """
    new: dict[Atom, ArrayLike] = {}
    for name in names:
        array = getattr(copy, name)
        if array is not None:
            atom = equation.invars[getattr(_places(equation), name)]
            transforms = getattr(copy, f"{name}_transforms")
            new[atom] = added(new.get(atom, array), transforms, number)
    return new


def _per_operand(equation: Equation, new: dict[Atom, ArrayLike]) -> list[ArrayLike | None]:
    return [new.get(atom) for atom in equation.invars]


@rules.discharge(dma_start_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    copy = _on_one_device(equation, operands)
    value = read_at(copy.src, copy.src_transforms)
    if equation.params["add"]:
        value = add(read_at(copy.dst, copy.dst_transforms), value)
    new = _signaled(equation, copy, _size(copy), "dst_sem", "src_sem")
    dst = equation.invars[_places(equation).dst]
    new[dst] = write_at(copy.dst, copy.dst_transforms, value)
    return _per_operand(equation, new), []


@rules.discharge(dma_wait_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    copy = _on_one_device(equation, operands)
    name = "src_sem" if equation.params["is_wait_send"] else "dst_sem"
    return _per_operand(equation, _signaled(equation, copy, -_size(copy), name)), []


def _destination(copy: CopyOperands, printing: "Printing") -> str:
    """Return the text of a copy's destination and of its semaphore."""
    text = reference_text(printing, copy.dst, copy.dst_transforms)
    if copy.dst_sem is None:
        return text
    return f"{text} {reference_text(printing, copy.dst_sem, copy.dst_sem_transforms)}"


@rules.show(dma_start_p)
def _(equation: Equation, printing: "Printing") -> str:
    copy: CopyOperands = equation.params["tree"].unflatten(equation.invars)
    src = reference_text(printing, copy.src, copy.src_transforms)
    kind = " add" if equation.params["add"] else ""
    return (
        f"dma_start(p{equation.params['priority']}){kind} {src} -> {_destination(copy, printing)}"
    )


@rules.show(dma_wait_p)
def _(equation: Equation, printing: "Printing") -> str:
    copy: CopyOperands = equation.params["tree"].unflatten(equation.invars)
    return f"dma_wait {_destination(copy, printing)}"
