"""The costs of hlofront's programs on a target, by instruction and by source line."""

from hlofront.base.errors import TargetError
from hlofront.inspect.kernel_decoding import parse
from hlofront.pjrt.targets import Description, Target, named, target_of
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlotools.cost import costs as text_costs
from hlotools.cost.costs import Costs as Costs
from hlotools.cost.memory_use import MemoryUse
from hlotools.cost.memory_use import memory_use as text_memory_use
from hlotools.ir.hlo import HloModule


def costs(program: object, target: Target | Description | str | None = None) -> Costs:
    """Return the operations, bytes and time of a program, by instruction and by source line.

    The operations and bytes follow from shapes; the time is a lower bound from the target's
    published rates: see docs/reference/costs.md. The peak of memory is that of XLA's buffers for a
    result of `compile`, and follows from the schedule for texts.

    Args:
      program: a result of `compile`; HLO text, the path of an HLO file, or a result of `parse`;
        or a result of `lower`, for the program before optimization.
      target: a result of `hlofront.target`, or the target's name, such as "cuda:h100". By default
        the device that a result of `compile` is compiled for.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TargetError: if a compiled program is for a platform other than the target's.
      TypeError: if the program is of another type.
    """
    described = description_of(target)
    if isinstance(program, Compiled):
        described = description_for(program, described)
    return text_costs.costs(_readable(program), described)


def memory_use(program: object) -> MemoryUse:
    """Return the memory of a program over time: the live values at each operation, and the peak.

    The order is that of the schedule; for a result of `lower` that of the program before XLA's
    optimizations. Of a result of `compile`, `assigned_bytes` is what XLA reserves.

    ```python
    print(memory_use(jit(step).lower(params, x).compile()))   # a chart, and the buffers at the peak
    ```

    Args:
      program: a result of `compile` or `lower`; HLO text, the path of an HLO file, or a result of
        `parse`.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is of another type.
    """
    return text_memory_use(_readable(program))


def description_for(compiled: Compiled, described: Description | None) -> Description | None:
    """Return the description of the device that a program is compiled for, if it has rates.

    Raises:
      TargetError: if the program is compiled for a platform other than the description's.
    """
    device = compiled._first_device
    if described is None:
        device_target = target_of(device)
        return None if device_target is None else device_target.describe()
    platforms = ("cuda", "gpu") if described.platform == "cuda" else (described.platform,)
    if device.platform not in platforms and described.platform in ("cpu", "cuda", "tpu"):
        raise TargetError(
            f"the program is compiled for {named(device)}, but its cost was requested for "
            f"{described.name}: compile it inside of `with hlofront.target({described.name!r})`"
        )
    return described


def description_of(target: Target | Description | str | None) -> Description | None:
    """Return the description of a target: itself, that of a Target, or that of a target's name."""
    described = find_target(target) if isinstance(target, str) else target
    return described.describe() if isinstance(described, Target) else described


def _readable(program: object) -> object:
    """Return a lowered stage as an HloModule, and any other value unchanged."""
    if isinstance(program, Lowered):
        module: HloModule = parse(program.as_text("hlo", debug_info=True))
        return module
    return program
