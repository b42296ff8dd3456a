"""Relayout: copies of arrays with their elements in another order in memory."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofront.base.caches import memoize
from hlofront.base.typing import Array
from hlofront.bridge.arrays import assembled
from hlofront.bridge.client import ArrayImpl, Device, LoadedExecutable, result_handler
from hlofront.bridge.members import is_committed, pjrt_layout_of, sharding_of
from hlofront.core.aval import ShapedArray
from hlofront.core.lowering_request import LoweringRequest
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt.clients import lowering_platform
from hlofront.pjrt.compile import compile_module, compile_options, mlir_lock
from hlofront.transforms.stage import stage

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import PjRtLayout

# The size of packed elements in the text of a layout, which the dtype decides.
_ELEMENT_SIZE = re.compile(r":?E\(\d+\)")


def mode_of(layout: "PjRtLayout") -> str:
    """Return the layout of a buffer as a layout mode, such as "{1,0}"."""
    return _ELEMENT_SIZE.sub("", str(layout))


def is_laid_as(x: object, layout: "PjRtLayout") -> bool:
    """Return whether a value is not an array, or has its elements in the order of a layout.

    An array that a call has deleted had this layout: otherwise, a copy would have been donated.
    """
    if type(x) is not ArrayImpl or x.is_deleted():
        return True
    own_layout = pjrt_layout_of(x)
    return own_layout == layout or mode_of(own_layout) == mode_of(layout)


def laid_as_parameters(arrays: Sequence[Array], layouts: "Sequence[PjRtLayout]") -> list[Array]:
    """Return arrays in the layouts of a program's parameters, copying those in other layouts."""
    return [
        x if is_laid_as(x, layout) else laid_out(x, mode_of(layout))
        for x, layout in zip(arrays, layouts, strict=True)
    ]


@memoize
def default_mode(aval: ShapedArray, device: Device) -> str:
    """Return the layout mode that arrays of a type have by default on a device."""
    return mode_of(device.client.get_default_layout(aval.dtype, aval.shape, device))


def laid_out(x: Array, mode: str) -> Array:
    """Return an array with the layout of a mode, on the same devices; unchanged if it has it.

    Args:
      x: an array.
      mode: the order of the axes, as in LayoutModes.
    """
    if mode_of(pjrt_layout_of(x)) == mode:
        return x
    sharding = sharding_of(x)
    if sharding.num_devices == 1 and len(sharding.device_set) == 1:
        return _laid_out_on_one_device(x, mode)
    shards = [_laid_out_on_one_device(shard.data, mode) for shard in x.addressable_shards]
    return assembled(x.aval, sharding, shards, is_committed(x))


def _laid_out_on_one_device(x: Array, mode: str) -> Array:
    sharding = sharding_of(x)
    (device,) = sharding.device_set
    modes = LayoutModes((mode_of(pjrt_layout_of(x)),), (mode,))
    loaded = _copying_program(x.aval, modes, device)
    handler = result_handler(x.aval, sharding, is_committed(x))
    (copy,) = loaded.execute_sharded([x]).consume_with_handlers([handler])
    return copy


@memoize
def _copying_program(aval: ShapedArray, modes: LayoutModes, device: Device) -> LoadedExecutable:
    """Return the executable that returns its argument in another layout."""
    # Loads MLIR, which a process that compiles nothing does not need.
    from hlofront.lowering.module import lower_program

    program = stage(lambda x: [x], [aval])
    with mlir_lock:
        request = LoweringRequest("relayout", lowering_platform(device), layouts=modes)
        module = lower_program(program, request)
    return compile_module(device.client, module.ir_module, [device], compile_options([device]))
