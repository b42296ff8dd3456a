"""Targets: devices to compile for, attached or not, by name: "tpu:v5e:2x2", "cuda:h100:8"."""

import contextlib
import dataclasses
import difflib
import math
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from hlofront.base.config import options as settings
from hlofront.base.errors import PluginError, TargetError
from hlofront.bridge import compile_process
from hlofront.bridge import plugins as bridge
from hlofront.bridge.client import Device
from hlofront.bridge.state import JaxRuntimeError
from hlofront.bridge.worker_process import CannotStart
from hlofront.pjrt import clients, platforms, toolchain
from hlofront.pjrt.target_facts import (
    GPUS,
    TPUS,
    Gpu,
    Links,
    Tpu,
    cache_bandwidth,
    is_shape,
    links_of,
    sources_of,
    target_config,
    vector_peak,
)

# The listed targets: one of each kind, with the shapes and counts that are commonly rented.
NAMES = (
    "cpu",
    "tpu:v4:2x2x1",
    "tpu:v5e:1x1",
    "tpu:v5e:2x2",
    "tpu:v5p:2x2x1",
    "tpu:v6e:1x1",
    "tpu:v6e:4x4",
    "tpu:7x:2x2x1",
    "cuda:t4",
    "cuda:l4",
    "cuda:a100",
    "cuda:h100",
    "cuda:h100:8",
    "cuda:h200",
    "cuda:b200",
)
_PER_HOST = 8
_MAX_GPUS = 4096
_in_subprocess = settings["hlofront_compile_apart"]


@dataclasses.dataclass(frozen=True)
class Description:
    """The specifications of one device of a target; None where they are unknown."""

    name: str
    title: str
    platform: str
    devices: int
    memory_bytes: int | None
    """The bytes of memory of each device; the other numbers are also of each device."""
    bandwidth: float | None
    """The bandwidth of that memory, in bytes per second."""
    peak_flops: Mapping[str, float]
    """The dense peak operations per second by dtype; empty where they are not known."""
    plugin: str
    """The name of the compiler: a plugin or jaxlib."""
    sources: tuple[str, ...]
    vector_flops: float | None = None
    """The peak rate of elementwise operations of any dtype, per second."""
    cache_bytes: int = 0
    """The size of a GPU's second-level cache; 0 where programs manage the memory on the chip."""
    cache_bandwidth: float | None = None
    clock: float | None = None
    """The cycles per second of the cores, in which the compiler estimates times."""
    links: Links | None = None
    """The links to other devices."""

    def __str__(self) -> str:
        rows = [("devices", f"{self.devices} x {self.title}" if self.devices > 1 else self.title)]
        if self.memory_bytes:
            rows.append(("memory", f"{self.memory_bytes / 2**30:,.1f} GiB"))
        if self.bandwidth:
            rows.append(("bandwidth", f"{self.bandwidth / 1e9:,.0f} GB/s"))
        for dtype, peak in self.peak_flops.items():
            rows.append((f"peak {dtype}", f"{peak / 1e12:,.1f} TFLOP/s"))
        if self.vector_flops:
            rows.append(("elementwise", f"{self.vector_flops / 1e12:,.1f} TFLOP/s"))
        if self.cache_bytes and self.cache_bandwidth:
            size, rate = self.cache_bytes / 2**20, self.cache_bandwidth / 1e9
            rows.append(("cache", f"{size:,.0f} MiB, {rate:,.0f} GB/s"))
        if self.links is not None and self.devices > 1:
            rows.append(("links", f"{self.links.bandwidth / 1e9:,.0f} GB/s each way"))
            if self.links.network:
                rows.append(("network", f"{self.links.network / 1e9:,.0f} GB/s each way"))
        rows.append(("compiled by", self.plugin))
        rows += [("source", source) for source in self.sources]
        width = max(len(title) for title, _ in rows)
        each = " (memory and rates: of each device)" if self.devices > 1 else ""
        return f"{self.name}{each}\n" + "\n".join(f"  {t:<{width}}  {v}" for t, v in rows)


class Target:
    """The devices that programs are compiled for, which need not be attached to this machine.

    `target(name)` makes one. As a context manager it makes the stages of jit compile for its first
    device: `jit(f).lower(x).compile()`. Code in the block still runs on the default device.
    """

    __slots__ = ("_chip", "_count", "_devices", "_lock", "_shape", "name", "platform")

    name: str
    platform: str
    """The platform of the target: "cpu", "tpu" or "cuda"."""

    def __init__(self, name: str, platform: str, chip: Tpu | Gpu | None, shape: str, count: int):
        self.name = name
        self.platform = platform
        self._chip = chip
        self._shape = shape
        self._count = count
        self._devices: list[Device] | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"hlofront.target({self.name!r})"

    def __reduce__(self) -> tuple[Callable[[str], "Target"], tuple[str]]:
        return target, (self.name,)

    @property
    def devices(self) -> list[Device]:
        """The target's devices, with coordinates, for shardings and compilation.

        Raises:
          PluginError: if the plugin that compiles for them is missing or does not know them.
        """
        if self._chip is None:
            return clients.local_devices("cpu")
        devices = self._devices
        if devices is None:
            with self._lock:
                if self._devices is None:
                    self._devices = self._open(self._chip)
                devices = self._devices
        return list(devices)

    def _open(self, chip: Tpu | Gpu) -> list[Device]:
        if platforms.find_plugins().get(self.platform) is None:
            missing = platforms.missing(self.platform, install_hint(self.platform))
            raise PluginError(f"target {self.name!r}: {missing}")
        api = platforms.load(self.platform)
        try:
            if isinstance(chip, Tpu):
                name = f"{chip.libtpu_name}:{self._shape}"
                options: dict[str, object] = {}
                if chip.chip_config:
                    options["chip_config_name"] = chip.chip_config
                if self._count == 1:
                    # By default older plugins assume four chips per host.
                    options["chips_per_host_bounds"] = (1, 1, 1)
                devices = bridge.absent_devices(api, "tpu", name, options)
            else:
                options = {"target_config": target_config(chip), "topology": self._shape}
                devices = bridge.absent_devices(api, self.platform, self.name, options)
        except JaxRuntimeError as error:
            plugin = platforms.find_plugins()[self.platform]
            newer = f"`pip install -U {plugin.origin}`" if plugin.installed else plugin.library
            raise PluginError(
                f"target {self.name!r}: its plugin ({plugin.source}) does not know it: {error}. "
                f"A newer one may: {newer}."
            ) from error
        for device in devices:
            _target_of[device] = self
        return devices

    @property
    def is_attached(self) -> bool:
        """Return whether programs compiled for the target can run here, as for the CPU."""
        return self._chip is None

    def describe(self) -> Description:
        """Return the target's memory, bandwidth and peak rates per device, and their sources."""
        chip = self._chip
        if chip is None:
            title = f"this machine's processor, {os.cpu_count()} cores"
            memory = _memory_of_host()
            compiled_by = f"jaxlib {bridge.jaxlib_version()}"
            sources = ("/proc/meminfo",) if memory else ()
            return Description(
                name=self.name,
                title=title,
                platform="cpu",
                devices=len(self.devices),
                memory_bytes=memory,
                bandwidth=None,
                peak_flops={},
                plugin=compiled_by,
                sources=sources,
            )
        plugin = platforms.find_plugins().get(self.platform)
        share = chip.devices_per_chip if isinstance(chip, Tpu) else 1
        title = chip.title if share == 1 else f"half a chip of {chip.title}"
        return Description(
            name=self.name,
            title=title,
            platform=self.platform,
            devices=self._count * share,
            memory_bytes=chip.memory // share,
            bandwidth=chip.bandwidth / share,
            peak_flops={dtype: peak / share for dtype, peak in chip.peak.items()},
            plugin=plugin.source if plugin else f"nothing yet: {install_hint(self.platform)}",
            sources=sources_of(chip),
            vector_flops=peak / share if (peak := vector_peak(chip)) else None,
            cache_bytes=chip.l2_cache if isinstance(chip, Gpu) else 0,
            cache_bandwidth=cache_bandwidth(chip) if isinstance(chip, Gpu) else None,
            clock=chip.clock_ghz * 1e9 if chip.clock_ghz else None,
            links=links_of(chip, self._shape, self._count, _PER_HOST),
        )

    def __enter__(self) -> "Target":
        if self.platform == "tpu" and self._devices is None:
            _start_worker()
        # A missing plugin raises here, rather than at the first compile().
        _enter(self.devices[:1])
        return self

    def __exit__(self, *exception: object) -> None:
        _leave()

    def on_all(self) -> "_OnAll":
        """Return a context manager in which programs compile for all of the target's devices."""
        return _OnAll(self)

    def compiler_options(self, options: Mapping[str, object]) -> dict[str, object]:
        """Return compiler options, extended by those that tell the plugin where its tools are."""
        return compiler_options(self.platform, options)


class _OnAll:
    """The context of `Target.on_all()`."""

    def __init__(self, target: Target):
        self._target = target

    def __enter__(self) -> Target:
        devices = self._target.devices
        count = len(devices)
        if self._target.is_attached and count > 1:
            raise TargetError(
                f"{self._target} has {count} devices that are attached: on_all() is for those that "
                "programs are only compiled for"
            )
        _enter(devices)
        return self._target

    def __exit__(self, *exception: object) -> None:
        _leave()


def _start_worker() -> None:
    """Start the compile worker process, in parallel to loading the devices' plugin."""
    if _in_subprocess.value and platforms.find_plugins().get("tpu") is not None:
        # If no worker can start, compile() runs in this process.
        with contextlib.suppress(CannotStart):
            platforms.prepare("tpu")
            compile_process.current_worker().start()


# The context variable also holds the target of the enclosing block: threads share targets, which
# have no record of who entered them.
def _enter(devices: list[Device]) -> None:
    outer = clients.compiling_for.get()
    check = partial(_check_targeted, devices[0])
    clients.compiling_for.set(clients.CompilationTarget(devices, outer, check))


def _leave() -> None:
    current = clients.compiling_for.get()
    clients.compiling_for.set(current.outer if current is not None else None)


_targets: dict[str, Target] = {}
_target_of: dict[Device, Target] = {}


def target_of(device: Device) -> Target | None:
    """Return the target that a device belongs to; None for attached devices."""
    return _target_of.get(device)


def named(device: Device) -> str:
    """Return the name of a device's target; for an attached device, its own name."""
    device_target = target_of(device)
    return str(device) if device_target is None else device_target.name


def _check_targeted(targeted: Device, devices: Iterable[Device]) -> None:
    """Raise TargetError for devices that do not belong to the requested device's target."""
    for device in devices:
        if target_of(device) is not target_of(targeted) or device.platform != targeted.platform:
            raise TargetError(
                f"the program should be compiled for {named(targeted)}, but the shardings of its "
                f"arguments or results are over {named(device)}: make their mesh of the target's "
                "devices, hlofront.target(name).devices, or compile without a target"
            )


def compiler_options(platform: str, options: Mapping[str, object]) -> dict[str, object]:
    """Return compiler options, extended by those with which a platform's plugin finds its tools."""
    if platform != "cuda":
        return dict(options)
    return toolchain.ptxas_overrides(cuda_of_plugin(), dict(options))


def cuda_of_plugin() -> str:
    """Return the major version of CUDA that the installed plugin is built for."""
    plugin = platforms.find_plugins().get("cuda")
    version = re.search(r"cuda(\d+)", f"{plugin.origin} {plugin.library}") if plugin else None
    return version.group(1) if version else "13"


def _memory_of_host() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


# ---- names ---------------------------------------------------------------------------------------


def target(name: str) -> Target:
    """Return devices to compile for by name, whether or not they are attached to this machine.

    Inside `with target(name):`, `jit(f).lower(x).compile()` compiles for its first device, and
    `with target(name).on_all():` for all. The HLO, cost and memory can be read. Running the program
    requires the device; calling it elsewhere raises an AbsentDeviceError. The block does not affect
    where eager operations and calls of jitted functions run.

    Args:
      name: "cpu"; "tpu:GENERATION:SHAPE", such as "tpu:v5e:2x2"; "cuda:GPU" or "cuda:GPU:COUNT",
        such as "cuda:h100:8". `targets()` lists them.

    Raises:
      TargetError: if there is no such target; the message suggests similar ones.
      TypeError: if the name is not a string.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a target's name is a string, such as 'tpu:v5e:2x2': got {name!r}")
    cached = _targets.get(name)
    if cached is None:
        cached = _targets.setdefault(name, _parse(name))
    return cached


def _parse(name: str) -> Target:
    kind, *rest = name.split(":")
    if name == "cpu":
        return Target(name, "cpu", None, "", 1)
    if kind == "cpu":
        raise _unknown(name, "the CPU has no kinds: its name is just 'cpu'")
    if kind == "tpu":
        return _parse_tpu(name, rest)
    if kind == "cuda":
        return _parse_cuda(name, rest)
    if kind in ("gpu", "rocm"):
        raise _unknown(
            name,
            "GPUs of NVIDIA start with 'cuda:'; for others, programs are compiled on machines that "
            "have them",
        )
    raise _unknown(name, "a target is 'cpu', 'tpu:GENERATION:SHAPE' or 'cuda:GPU[:COUNT]'")


def _parse_tpu(name: str, rest: list[str]) -> Target:
    generation = rest[0] if rest else ""
    chip = TPUS.get(generation)
    if chip is None:
        raise _unknown(name, f"generations of TPUs are {_listed(TPUS)}")
    if len(rest) != 2 or not is_shape(chip, rest[1]):
        cubes = len(chip.shapes[0].split("x")) == 3
        more = ", and multiples of 4x4x4 up to 24 with sides in ascending order" if cubes else ""
        problem = f"{rest[1]!r} is none of them" if len(rest) > 1 else "the name has none"
        raise _unknown(
            name,
            f"a TPU's name ends with the shape of the slice, and {problem}; {chip.title} has "
            f"{', '.join(chip.shapes)}{more}",
            f"tpu:{generation}:{_closest(rest[1] if len(rest) > 1 else '', chip.shapes)}",
        )
    count = 1
    for side in rest[1].split("x"):
        count *= int(side)
    return Target(name, "tpu", chip, rest[1], count)


def _parse_cuda(name: str, rest: list[str]) -> Target:
    chip = GPUS.get(rest[0]) if rest else None
    if chip is None:
        raise _unknown(name, f"the GPUs are {_listed(GPUS)}")
    number = rest[1] if len(rest) == 2 else "1"
    is_number = number.isascii() and number.isdigit() and not number.startswith("0")
    count = int(number) if is_number and len(number) <= 6 else 0
    hosts, left = divmod(count, _PER_HOST)
    if len(rest) > 2 or not 0 < count <= _MAX_GPUS or (hosts and left):
        raise _unknown(
            name,
            f"after the GPU comes how many: 1 to {_PER_HOST}, or a multiple of {_PER_HOST} up to "
            f"{_MAX_GPUS}",
            f"cuda:{rest[0]}:{_PER_HOST}",
        )
    return Target(name, "cuda", chip, f"1x{hosts}x{_PER_HOST}" if hosts else f"1x1x{count}", count)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _closest(shape: str, shapes: tuple[str, ...]) -> str:
    """Return the shape with the same beginning as `shape`, or the most similar number of chips."""
    sides = [int(side) for side in shape.split("x") if side.isascii() and side.isdigit()]
    count = math.prod(sides) if sides else 1
    return min(
        shapes,
        key=lambda each: (
            not (sides and each.startswith(f"{shape}x")),
            abs(math.prod(map(int, each.split("x"))) - count),
        ),
    )


def _unknown(name: str, why: str, close: str | None = None) -> TargetError:
    # The most common targets come first.
    smallest = (f"tpu:{generation}:{chip.shapes[0]}" for generation, chip in TPUS.items())
    candidates = ["tpu:v5e:1x1", "cuda:h100", *NAMES, *smallest]
    text = name.strip().lower().replace("gpu", "cuda", 1)
    for other_name, generation in _OTHER_NAMES.items():
        text = text.replace(other_name, generation)
    close = _of_accelerator_type(text) or close
    # "v5e:2x2" and "h100" lack the first part of a name; "tpu" and "v5e" the last.
    spellings = (text, f"tpu:{text}", f"cuda:{text}")
    exact = next((s for s in spellings if s in candidates), None)
    longer = (c for s in spellings if s for c in candidates if c.startswith(f"{s.rstrip(':')}:"))
    close = exact or close or next(longer, None)
    if close is None:
        close = next(iter(difflib.get_close_matches(text, candidates, 1, 0.6)), None)
    hint = f" Did you mean {close!r}?" if close else ""
    return TargetError(
        f"there is no target {name!r}: {why}.{hint} hlofront.targets() lists all names."
    )


# Other names of TPU generations.
_OTHER_NAMES = {"v5litepod": "v5e", "trillium": "v6e", "ironwood": "7x", "tpu7x": "7x", "v7x": "7x"}
# Generations whose accelerator types count cores, two to a chip.
_IN_CORES = ("v2", "v3", "v4", "v5p", "7x")


def _of_accelerator_type(text: str) -> str | None:
    """Return the target for a Google Cloud accelerator type, "v5litepod-8" or "v4-16", or None."""
    match = re.fullmatch(r"(?:tpu[:-])?(\w+)[-:](\d{1,5})", text)
    if match is None:
        return None
    generation, count = match.groups()
    chip = TPUS.get(generation)
    if chip is None:
        return None
    chips = int(count) // (2 if generation in _IN_CORES else 1)
    for shape in chip.shapes:
        if math.prod(map(int, shape.split("x"))) == chips:
            return f"tpu:{generation}:{shape}"
    return None


# ---- the list ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Listed:
    """A row of the table that `targets()` returns."""

    name: str
    title: str
    devices: int
    ready: bool
    """Whether the compiler of the target is installed."""
    how: str
    """The compiler, or the command that installs it."""


class TargetList(tuple[Listed, ...]):
    """The list of available targets, which prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        names, titles = max(len(r.name) for r in self), max(len(r.title) for r in self)
        rows = [
            f"{r.name:<{names}}  {r.devices:>4} x {r.title:<{titles}}  "
            f"{'with' if r.ready else 'missing:'} {r.how}"
            for r in self
        ]
        shapes = "; ".join(f"{name}: {', '.join(chip.shapes)}" for name, chip in TPUS.items())
        return "\n".join([*rows, f"TPU slices: {shapes}", "GPUs: add :COUNT, such as cuda:h100:8"])

    __str__ = __repr__


def targets() -> TargetList:
    """Return a table of the names that `target` accepts, with the devices and plugin of each."""
    rows: list[Listed] = []
    for name in NAMES:
        described = target(name).describe()
        how, ready = described.plugin, True
        missing = install_hint(target(name).platform)
        if missing:
            how, ready = missing, False
        rows.append(Listed(name, described.title, described.devices, ready, how))
    return TargetList(rows)


def install_hint(platform: str) -> str:
    """Return the command that installs all that compiling for a platform lacks, or ""."""
    if platform == "cpu":
        return ""
    cuda = cuda_of_plugin()
    assembler: list[str] = []
    if platform == "cuda" and toolchain.find_ptxas(cuda) is None:
        assembler.append(toolchain.PACKAGES.get(cuda, toolchain.PACKAGES["13"]))
    if platform not in platforms.find_plugins():
        return platforms.install_command(platform, *assembler)
    return platforms.install_command("", *assembler)
