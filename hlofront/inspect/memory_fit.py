"""The check whether a program fits into a device's memory, before it runs."""

import contextlib
import re
from collections.abc import Callable

from hlofront.base.errors import JaxRuntimeError
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import tree_leaves
from hlofront.inspect.cost import costs
from hlofront.inspect.jitted import jitted
from hlofront.pjrt.targets import Target, target_of
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Lowered
from hlotools.cost.memory_use import buffer_lines, memory_use, size_text
from hlotools.cost.peak import BufferCost, assigned_bytes

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_TOO_LARGE = re.compile(
    r"total memory required .*?\((?P<needed>[\d.]+)(?P<needed_unit>[KMGT]?)B?\) "
    r"exceeds available HBM \((?P<available>[\d.]+)(?P<available_unit>[KMGT]?)"
)
# What a kernel allocates, in libtpu's words: all of it, or a block of an operand.
_SCOPED = re.compile(r"for %?(\S+) = .* with size ([\d.]+\w) and limit ([\d.]+\w) exceeded")
_TOO_LARGE_IN_VMEM = re.compile(
    r"\(size=(\d+)\) would exceed memory \(size=(\d+)\).*?tag = '([^.']*)"
)


class Fits(NamedTuple):
    """The memory that a program needs and that a device has; true if the program fits."""

    fits: bool | None
    """Whether the program fits; None where the device's memory is not known."""
    needed_bytes: int
    """The bytes of arguments, results, temporaries and code; donated bytes are counted once."""
    available_bytes: int | None
    argument_bytes: int
    output_bytes: int
    temporary_bytes: int
    code_bytes: int
    alias_bytes: int
    """The bytes that arguments and results share, by donation."""
    device: str
    buffers: tuple[BufferCost, ...]
    """The largest buffers that live at the peak, with the lines that they come from.

    Of a program that the compiler refuses these are the values before its optimizations.
    """
    notes: tuple[str, ...] = ()
    """What a TPU's kernels need beyond their VMEM, and where their CostEstimate is contradicted."""

    def __bool__(self) -> bool:
        return bool(self.fits)

    def __str__(self) -> str:
        verdict = {True: "fits", False: "does not fit", None: "may or may not fit"}[self.fits]
        of = "" if self.available_bytes is None else f" of {size_text(self.available_bytes)}"
        needs = f"it needs {size_text(self.needed_bytes)}{of}"
        parts = (
            ("arguments", self.argument_bytes),
            ("results", self.output_bytes),
            ("temporaries", self.temporary_bytes),
            ("code", self.code_bytes),
            ("shared by donation", self.alias_bytes),
        )
        lines = [
            f"{verdict} into the memory of {self.device}: {needs}",
            "  " + ", ".join(f"{title} {size_text(count)}" for title, count in parts),
        ]
        notes = [f"  {note}" for note in self.notes]
        return "\n".join([*lines, *notes, *buffer_lines(self.buffers, 5)])


def fits(
    f: Callable[..., object],
    *specs: object,
    target: str | Target | None = None,
    margin: float = 0.0,
) -> Fits:
    """Compile a program for a device, and return whether it fits into the device's memory.

    Args:
      f: a function of arrays, jitted or not.
      specs: the function's arguments: arrays, or objects with a shape and dtype.
      target: the device, attached or not, as `hlofront.target` takes it: "cuda:h100",
        "tpu:v5e:1x1". By default the devices of the arguments' shardings, else the device on which
        the function would run.
      margin: the fraction of the memory that must stay free for the runtime and other programs.

    Raises:
      ValueError: if the margin is not between 0 and 1.
      TargetError: if the target does not exist.
    """
    if not 0 <= margin < 1:
        raise ValueError(f"margin is a share of the memory, from 0 to below 1: got {margin}")
    device_target = find_target(target) if isinstance(target, str) else target
    with device_target if device_target is not None else contextlib.nullcontext():
        lowered = jitted(f).lower(*specs)
        if device_target is None:
            # The shardings of the arguments may be over devices of a target.
            device_target = target_of(lowered._first_device)
        try:
            compiled = lowered.compile()
        except JaxRuntimeError as error:
            return _refused(lowered, device_target, error, margin)
    memory = compiled.memory_analysis()
    needed = assigned_bytes(memory) + memory.generated_code_size_in_bytes
    name, usable = _device_memory(lowered, device_target, margin)
    priced = costs(compiled)
    return Fits(
        fits=None if usable is None else needed <= usable,
        needed_bytes=needed,
        available_bytes=usable,
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        temporary_bytes=memory.temp_size_in_bytes,
        code_bytes=memory.generated_code_size_in_bytes,
        alias_bytes=memory.alias_size_in_bytes,
        device=name,
        buffers=tuple(priced.buffers),
        notes=tuple(map(str, priced.contradictions)),
    )


def _refused(
    lowered: Lowered, target: Target | None, error: JaxRuntimeError, margin: float
) -> Fits:
    """Return the answer for a program that is too large to be compiled; raise any other error.

    The compiler for TPUs rejects programs that do not fit, and its error has their size. The one
    for GPUs fails to allocate the operands of the kernels that it tries out.
    """
    name, available = _device_memory(lowered, target, margin)
    use = memory_use(_before_xla(lowered))
    refused = _TOO_LARGE.search(str(error))
    vmem = vmem_exceeded(str(error))
    if refused is not None and target is not None:
        needed = int(float(refused["needed"]) * _UNITS[refused["needed_unit"]])
        total = float(refused["available"]) * _UNITS[refused["available_unit"]]
        available = int(total * (1 - margin))
    elif str(error).startswith("RESOURCE_EXHAUSTED"):
        needed = use.peak_bytes
    else:
        raise error
    arguments, results = _bytes_of(lowered.in_avals), _bytes_of(lowered.out_avals)
    too_large = available is not None and needed > available
    return Fits(
        # Arrays that exist already may be why a smaller program was refused.
        fits=False if too_large or refused is not None or vmem else None,
        needed_bytes=needed,
        available_bytes=available,
        argument_bytes=arguments,
        output_bytes=results,
        temporary_bytes=max(needed - arguments - results, 0),
        code_bytes=0,
        alias_bytes=0,
        device=name,
        buffers=tuple(lifetime.buffer for lifetime in use.live()),
        notes=(vmem,) if vmem else (),
    )


def vmem_exceeded(refusal: str) -> str:
    """Return what needs more vector memory than a TPU has; "" for other errors of the compiler.

    Args:
      refusal: the text of the compiler's error.
    """
    if scoped := _SCOPED.search(refusal):
        return f"VMEM exceeded: {scoped[1]} needs {scoped[2]}, the limit is {scoped[3]}"
    if "space=vmem" in refusal and (large := _TOO_LARGE_IN_VMEM.search(refusal)):
        needed, limit = (size_text(int(number)) for number in large.groups()[:2])
        return f"VMEM exceeded: {large[3]} needs {needed}, the limit is {limit}"
    return ""


def _device_memory(
    lowered: Lowered, target: Target | None, margin: float
) -> tuple[str, int | None]:
    """Return the name of a program's device, and the bytes of its memory that it may use."""
    if target is not None:
        name, available = str(target.name), target.describe().memory_bytes
    else:
        device = lowered._first_device
        name = str(device)
        stats = device.memory_stats() if hasattr(device, "memory_stats") else None
        available = (stats or {}).get("bytes_limit")
    return name, None if available is None else int(available * (1 - margin))


def _bytes_of(avals: object) -> int:
    return sum(aval.size * aval.dtype.itemsize for aval in tree_leaves(avals))


def _before_xla(lowered: Lowered) -> str:
    return lowered.as_text("hlo", debug_info=True)
