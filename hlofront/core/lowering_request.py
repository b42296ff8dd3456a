"""LoweringRequest: how a program is lowered, described without loading MLIR."""

from collections.abc import Sequence
from typing import Any, Protocol

from hlofront.base.cpu_settings import CpuSettings
from hlofront.base.named_tuple import NamedTuple
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.core.sharding.mesh import NamedAxes

# Names and values of options that are not at their defaults, for cache keys.
ChangedOptions = tuple[tuple[str, object], ...]


class DeviceShardings(Protocol):
    """The number of devices of a program, and its input and output shardings, or None.

    `typed_mesh` is the mesh whose axes of type Explicit split values as their types say.
    """

    @property
    def device_count(self) -> int: ...
    @property
    def mesh(self) -> NamedAxes | None: ...
    @property
    def inputs(self) -> Sequence[Any]: ...
    @property
    def outputs(self) -> Sequence[Any] | None: ...
    @property
    def typed_mesh(self) -> NamedAxes | None: ...


class LoweringRequest(NamedTuple):
    """All that the module of a lowered program depends on, except for the program.

    Attributes:
      name: the name of the traced function.
      platform: the platform to lower for. With several, the first argument of main is the index of
        the platform that the module runs on.
      donated: per input, whether its buffer is donated; empty if none is.
      keep_unused: whether to keep inputs that no result depends on.
      cpu_settings: which code of hlofront's own to emit for CPUs.
      device_assignment: the number of devices, and the shardings of inputs and outputs; None for a
        program of one device.
      layouts: the layout modes of inputs and outputs; None for the defaults of the device.
      locations: the options of source lines that are not at their defaults. Lowering reads the
        options themselves; here they distinguish modules.
    """

    name: str
    platform: str | tuple[str, ...]
    donated: Sequence[bool] = ()
    keep_unused: bool = False
    cpu_settings: CpuSettings = CpuSettings()
    device_assignment: DeviceShardings | None = None
    layouts: LayoutModes | None = None
    locations: ChangedOptions = ()
