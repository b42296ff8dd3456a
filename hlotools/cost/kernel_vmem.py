"""The buffers of Mosaic kernels in VMEM: blocks of operands and results, and scratch buffers."""

import re
from typing import NamedTuple

from hlotools.cost.memory_use import size_text
from hlotools.ir.custom_kernels import CustomKernel
from hlotools.ir.kernel_parameters import kernels_in, parameters_of, title_of

# The rows and columns of a tile of VMEM: buffers are rounded up to whole tiles.
_TILE = (8, 128)
_ALLOCATED = re.compile(r"memref\.alloca\(\) : memref<([\dx]*x)?([a-z]\w*), [^>]*<vmem>")
_BITS = re.compile(r"\d+")


class VmemBuffer(NamedTuple):
    """A buffer of a kernel.

    Attributes:
      name: its purpose: "operand 0".
      type: its sizes and its elements: "128x128xf32".
      copies: the number of buffers: one is copied while the kernel computes with another.
      bytes: the bytes of all copies.
    """

    name: str
    type: str
    copies: int
    bytes: int

    def __str__(self) -> str:
        count = f"{self.copies} of " if self.copies > 1 else ""
        return f"{size_text(self.bytes):>9}  {self.name}: {count}{self.type}"


def vmem_buffers(kernel: CustomKernel) -> list[VmemBuffer]:
    """Return the buffers of a decoded Mosaic kernel in VMEM, the largest first."""
    parameters = parameters_of(kernel)
    modes = parameters.get("pipeline_mode", {})
    found: list[VmemBuffer] = []
    for name, space in parameters.get("memory spaces", {}).items():
        if space == "vmem":
            is_window = not name.startswith("scratch") and "grid" in parameters
            copies = 2 if is_window and "synchronous" not in modes.get(name, "") else 1
            sizes, dtype = parameters["block sizes"][name], parameters["dtypes"][name]
            found.append(_buffer(name, "" if sizes == "scalar" else f"{sizes}x", dtype, copies))
    for sizes, dtype in _ALLOCATED.findall(kernel.mlir):
        found.append(_buffer("allocated by run_scoped", sizes, dtype, 1))
    return sorted(found, key=lambda buffer: -buffer.bytes)


def _buffer(name: str, sizes: str, dtype: str, copies: int) -> VmemBuffer:
    shape = [int(size) for size in sizes.split("x") if size]
    for axis, unit in zip((-1, -2), reversed(_TILE), strict=True):
        if len(shape) >= -axis:
            shape[axis] = -(-shape[axis] // unit) * unit
    bits = _BITS.search(dtype)
    total = (int(bits[0]) if bits else 32) * copies
    for size in shape:
        total *= size
    return VmemBuffer(name, f"{sizes}{dtype}", copies, total // 8)


def vmem_lines(hlo: str, count: int) -> list[str]:
    """Return lines on the kernels that use the most VMEM in a program, with their largest buffers.

    Args:
      hlo: the program as HLO.
      count: the maximum number of buffers.
    """
    kernels = [(i, k, vmem_buffers(k)) for i, k in kernels_in(hlo) if k.mlir]
    kernels.sort(key=lambda each: -sum(buffer.bytes for buffer in each[2]))
    for call, kernel, buffers in kernels[:1]:
        total = size_text(sum(buffer.bytes for buffer in buffers))
        head = f"Without its temporaries, the buffers of {title_of(call, kernel)} take {total}:"
        return [head, *map(str, buffers[:count])]
    return []
