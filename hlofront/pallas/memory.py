"""The memories of a device that kernels use, and the types of buffers and semaphores in them."""

import builtins
import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.dtypes import canonicalize_dtype, float0, iinfo, issubdtype
from hlofront.base.elements import ExtendedDType, NumPyDType, bool_, extended, int32
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, DType, DTypeLike
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.memories import Memories, MemorySpace
from hlofront.core.references import AbstractRef
from hlofront.primitives.arrays.creation import empty, full
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.references.references import RefLike, freeze, indexed, new_ref


class semaphore_dtype(extended):
    """The scalar class of the dtypes of semaphores."""


class semaphore(semaphore_dtype):
    """The scalar class of semaphores that kernels signal and wait for."""


class dma_semaphore(semaphore_dtype):
    """The scalar class of semaphores that copies between memories signal."""


class barrier_semaphore(semaphore_dtype):
    """The scalar class of semaphores that several devices share."""


class SemaphoreDType(ExtendedDType):
    """The dtype of a kind of semaphores, each of which counts in an int32.

    Attributes:
      name: its name, as in jaxprs.
      type: its scalar class.
    """

    __slots__ = ("name", "type")
    converts = True

    def __init__(self, name: str, scalar_class: builtins.type[semaphore_dtype]):
        self.name = name
        self.type = scalar_class

    def physical(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], NumPyDType]:
        return shape, int32

    @property
    def canonical(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(other) is SemaphoreDType and self.name == other.name

    def __hash__(self) -> int:
        return hash((SemaphoreDType, self.name))

    def __reduce__(self) -> tuple[object, ...]:
        return SemaphoreDType, (self.name, self.type)


SEMAPHORE_DTYPE = SemaphoreDType("semaphore", semaphore)
DMA_SEMAPHORE_DTYPE = SemaphoreDType("dma_sem", dma_semaphore)
BARRIER_SEMAPHORE_DTYPE = SemaphoreDType("barrier_semaphore", barrier_semaphore)
_DTYPE_OF_CLASS: dict[object, SemaphoreDType] = {
    dtype.type: dtype for dtype in (SEMAPHORE_DTYPE, DMA_SEMAPHORE_DTYPE, BARRIER_SEMAPHORE_DTYPE)
}


def is_semaphore(dtype: object) -> bool:
    """Return whether a dtype is one of semaphores."""
    return type(dtype) is SemaphoreDType


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """The type of a buffer in a memory, for scratch shapes and `run_scoped`.

    Attributes:
      inner_aval: the aval of the array that the buffer holds.
      memory_space: the memory.
    """

    inner_aval: ShapedArray
    memory_space: object

    @property
    def shape(self) -> tuple[int, ...]:
        return self.inner_aval.shape

    @property
    def dtype(self) -> DType:
        return self.inner_aval.dtype

    def get_array_aval(self) -> ShapedArray:
        """Return the aval of the array that the buffer holds."""
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        """Return the aval of a reference to the buffer."""
        return AbstractRef(self.inner_aval, self.memory_space)


def buffer_type(shape: Sequence[int], dtype: DTypeLike, memory_space: object) -> MemoryRef:
    """Return the type of a buffer of a shape and dtype in a memory."""
    if dtype in _DTYPE_OF_CLASS:
        dtype = _DTYPE_OF_CLASS[dtype]
    elif not isinstance(dtype, ExtendedDType):
        dtype = canonicalize_dtype(dtype)
    return MemoryRef(ShapedArray(tuple(map(int, shape)), dtype), memory_space)


class _Memories(Memories):
    """Memories of kernels, which are called with the shape and dtype of a buffer for its type."""

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        return buffer_type(shape, dtype, self)


class KernelMemorySpace(_Memories):
    """The memories of kernels for any kind of device.

    Calling a member with a shape and a dtype returns the type of a buffer there.
    """

    # Any memory: the compiler does not move the array, and the kernel copies from it.
    ANY = "any"
    # The memory that kernels of a platform compute in.
    DEFAULT = "default"
    # The code of an error that a kernel found.
    ERROR = "error"
    # Scalars that index maps read.
    INDEX = "index"
    # Keys of random numbers.
    KEY = "key"


class TpuMemorySpace(_Memories):
    """The memories of a TPU.

    Calling a member with a shape and a dtype returns the type of a buffer there, as in
    `VMEM((8, 128), jnp.float32)`.
    """

    # The memory of a core's vectors: tens of MB.
    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    # The memory of scalars.
    SMEM = "smem"
    # A memory between VMEM and HBM that some chips have.
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    # The main memory: tens of GB.
    HBM = "hbm"

    def __repr__(self) -> str:
        return self.name


# The memory of the host.
HOST = MemorySpace.Host

ANY = KernelMemorySpace.ANY
VMEM = TpuMemorySpace.VMEM
VMEM_SHARED = TpuMemorySpace.VMEM_SHARED
SMEM = TpuMemorySpace.SMEM
CMEM = TpuMemorySpace.CMEM
SEMAPHORE = TpuMemorySpace.SEMAPHORE
HBM = TpuMemorySpace.HBM


class SemaphoreType(enum.Enum):
    """The kinds of semaphores of a TPU, for scratch shapes: one, or an array, as in `DMA((2,))`."""

    # Counts what kernels signal.
    REGULAR = "regular"
    # Counts the bytes of copies that have arrived.
    DMA = "dma"
    # Shared by devices that wait for one another.
    BARRIER = "barrier"

    @property
    def dtype(self) -> SemaphoreDType:
        return _DTYPE_OF_TYPE[self.name]

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        return buffer_type(shape, self.dtype, TpuMemorySpace.SEMAPHORE)

    def get_array_aval(self) -> ShapedArray:
        """Return the aval of one semaphore."""
        return self(()).get_array_aval()

    def get_ref_aval(self) -> AbstractRef:
        """Return the aval of a reference to one semaphore."""
        return self(()).get_ref_aval()


_DTYPE_OF_TYPE = {
    "REGULAR": SEMAPHORE_DTYPE,
    "DMA": DMA_SEMAPHORE_DTYPE,
    "BARRIER": BARRIER_SEMAPHORE_DTYPE,
}


def ref_aval_of(scratch: object, what: str) -> AbstractRef:
    """Return the aval of a reference to the buffer or semaphores that a scratch shape describes.

    Args:
      scratch: a MemoryRef, a SemaphoreType, or another object with the method `get_ref_aval`.
      what: the parameter that it is from, for messages.

    Raises:
      TypeError: if it does not describe a buffer.
    """
    get_ref_aval = getattr(scratch, "get_ref_aval", None)
    if get_ref_aval is None or isinstance(scratch, type):
        raise TypeError(
            f"{what} must be a buffer in a memory, such as pltpu.VMEM((8, 128), jnp.float32), or a "
            f"semaphore, such as pltpu.SemaphoreType.DMA: got {scratch!r} of type "
            f"{type(scratch).__name__}"
        )
    return get_ref_aval()


def empty_like(x: PyTree) -> PyTree:
    """Return arrays of undefined elements with the shapes and dtypes of others.

    Args:
      x: a pytree of arrays, or of other objects with a shape and a dtype.
    """
    return tree.tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def empty_ref_like(x: MemoryRef | ShapedArray) -> RefLike:
    """Return a reference to a new buffer of undefined elements.

    Args:
      x: the type of the buffer, such as `pltpu.VMEM((8, 128), jnp.float32)`, or a shape and dtype:
        a `jax.ShapeDtypeStruct`, for a buffer in any memory.
    """
    space = x.memory_space if isinstance(x, MemoryRef) else KernelMemorySpace.ANY
    return new_ref(empty(x.shape, x.dtype), memory_space=space)


def run_state(f: Callable[[PyTree], None]) -> Callable[[PyTree], PyTree]:
    """Return a function of arrays that runs a function of references to them.

    Args:
      f: a function of a pytree of references.

    Returns:
      A function of a pytree of arrays that returns the final values of the references.

    Example:
      >>> def double_first(refs):
      ...     refs[0] = refs[0] * 2
      >>> pl.run_state(double_first)(jnp.arange(1.0, 4.0))
      Array([2., 2., 3.], dtype=float32)
    """

    def run(x: PyTree) -> PyTree:
        refs = tree.tree_map(new_ref, x)
        f(refs)
        return tree.tree_map(freeze, refs)

    return run


def space_of(ref: RefLike) -> object:
    """Return the memory of a reference, or of the one that a view is of."""
    base: Any = indexed(ref, None, "a kernel's reference")[0]
    return base.aval.memory_space


def uninitialized(aval: ShapedArray) -> Array:
    """Return the values that interpreted kernels read where nothing has been written.

    Elements are NaN, the lowest integer, or False; semaphores are 0.
    """
    dtype = aval.dtype
    if is_semaphore(dtype):
        return convert(full(aval.shape, 0, int32), dtype, False)
    if isinstance(dtype, ExtendedDType):
        return empty(aval.shape, dtype)
    if dtype == bool_:
        return full(aval.shape, False, dtype)
    lowest = iinfo(dtype).min if issubdtype(dtype, np.integer) else np.nan
    return full(aval.shape, lowest, dtype)


def has_tangent(aval: AbstractValue) -> bool:
    """Return whether an array or buffer has a tangent: integers and semaphores have none."""
    dtype = getattr(aval.to_tangent_aval(), "dtype", float0)
    return dtype != float0 and not is_semaphore(dtype)
