"""MLIR types of values and references in Mosaic kernels: scalars, vectors, memrefs, semaphores."""

# The stubs of jaxlib do not name the types of all arguments.
# pyright: reportUnknownMemberType=false

import functools

from hlofront.base.typing import DType
from hlofront.bridge.mlir import context, ir
from hlofront.core.references import AbstractRef

_ELEMENTS = {
    "bool": "i1",
    "float32": "f32",
    "bfloat16": "bf16",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float4_e2m1fn": "f4E2M1FN",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32)},
    "semaphore": "!tpu.semaphore",
    "dma_sem": "!tpu.dma_semaphore",
    "barrier_semaphore": "!tpu.semaphore",
}
# Mosaic's names of memories by the names of memory spaces, where they differ.
_MEMORIES = {"None": "vmem", "default": "vmem", "index": "smem", "key": "smem", "error": "smem"}


def element_text(dtype: DType) -> str:
    """Return the text of the MLIR type of an element in registers; integers are signless.

    Raises:
      TypeError: if TPU kernels have no such elements.
    """
    text = _ELEMENTS.get(dtype.name)
    if text is None:
        raise TypeError(f"{no_elements(dtype)}. Convert before the kernel")
    return text


def no_elements(dtype: DType) -> str | None:
    """Return the message for a dtype that TPU kernels do not support; None for others."""
    if dtype.name in _ELEMENTS:
        return None
    return f"TPU kernels have no elements of {dtype.name}, only of {', '.join(_ELEMENTS)}"


@functools.cache
def parsed(text: str) -> ir.Type:
    """Return an MLIR type parsed from its text."""
    return ir.Type.parse(text, context)


@functools.cache
def value_type(shape: tuple[int, ...], dtype: DType) -> ir.Type:
    """Return the type of an array in registers: a scalar's if it has no axes, else a vector's."""
    return parsed(_shaped("vector", shape, element_text(dtype)) if shape else element_text(dtype))


def memory_of(aval: AbstractRef) -> str:
    """Return Mosaic's name of the memory of a reference, such as "vmem"."""
    name = str(aval.memory_space)
    return _MEMORIES.get(name, name)


@functools.cache
def memref_type(shape: tuple[int, ...], dtype: DType, memory: str) -> ir.Type:
    """Return the type of a buffer in a memory; booleans are stored as int32."""
    element = "i32" if dtype.name == "bool" else element_text(dtype)
    return parsed(_shaped("memref", shape, element, f", #tpu.memory_space<{memory}>"))


def _shaped(kind: str, shape: tuple[int, ...], element: str, rest: str = "") -> str:
    return f"{kind}<{''.join(f'{size}x' for size in shape)}{element}{rest}>"
