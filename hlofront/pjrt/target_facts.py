"""The specifications of the chips that programs can be compiled for.

Peak rates are of dense arithmetic without sparsity, in operations per second; memory and bandwidth
are in bytes. Each chip names where its numbers are published. Rates bound times from below, so the
highest is used where sources differ.
"""

from collections.abc import Mapping

from hlofront.base.named_tuple import NamedTuple

_G, _T = 10**9, 10**12
_GiB, _KiB, _MiB = 2**30, 2**10, 2**20


class Links(NamedTuple):
    """The links between devices: the bytes per second that one device sends, in one direction."""

    bandwidth: float
    """Over all links to the neighboring devices."""
    device_count: int
    """The number of devices that these links reach: those of a host, or of a slice."""
    network: float | None
    """To devices of other hosts; None where the links reach all devices."""
    reduces: bool
    """Whether the switches between the devices sum: a device then sends an array once."""
    source: str


class Tpu(NamedTuple):
    """A generation of TPUs; the numbers are per chip."""

    title: str
    libtpu_name: str
    devices_per_chip: int
    memory: int
    bandwidth: float
    peak: Mapping[str, float]
    shapes: tuple[str, ...]
    source: str
    link: float
    """The bandwidth of one link to a neighbor, in one direction."""
    clock_ghz: float | None = None
    """The clock of its cores, None where it is not published."""
    vector_peak: float | None = None
    """The peak rate of the units for elementwise operations, None where it is not published."""
    chip_config: str = ""
    """The name that libtpu gives the use of the cores; empty for its default."""


class Gpu(NamedTuple):
    """A GPU, with the properties that XLA's compiler requires."""

    title: str
    driver_name: str
    """The name that NVIDIA's driver, and therefore an attached device, uses for the GPU."""
    memory: int
    bandwidth: float
    peak: Mapping[str, float]
    source: str
    capability: tuple[int, int]
    multiprocessors: int
    shared_memory: int
    shared_memory_optin: int
    threads: int
    """The largest number of threads resident on a multiprocessor."""
    units: int
    """The number of units for float32, per multiprocessor."""
    l2_cache: int
    clock_ghz: float
    link: float
    """The bandwidth of one GPU to others of its host, in one direction: NVLink or PCI Express."""
    link_source: str
    network: float
    """The bandwidth of one GPU of the maker's largest systems to those of other hosts."""
    switch_reduces: bool = False


_FLAT = ("1x1", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBES = tuple("2x2x1 2x2x2 2x2x4 2x4x4 4x4x4 4x4x8 4x8x8 8x8x8 8x8x16 8x16x16".split())
_DOCS = "https://cloud.google.com/tpu/docs/"

TPUS: dict[str, Tpu] = {
    "v2": Tpu(
        title="TPU v2",
        libtpu_name="v2",
        devices_per_chip=2,
        memory=16 * _GiB,
        bandwidth=700 * _G,
        peak={"bfloat16": 45 * _T},
        shapes=("2x2", "4x4", "4x8", "8x8", "8x16", "16x16"),
        source=_DOCS + "v2",
        link=62 * _G,
        clock_ghz=0.7,
    ),
    "v3": Tpu(
        title="TPU v3",
        libtpu_name="v3",
        devices_per_chip=2,
        memory=32 * _GiB,
        bandwidth=900 * _G,
        peak={"bfloat16": 123 * _T},
        shapes=("2x2", "4x4", "4x8", "8x8", "8x16", "16x16", "16x32", "32x32"),
        source=_DOCS + "v3",
        link=82 * _G,
        clock_ghz=0.94,
    ),
    "v4": Tpu(
        title="TPU v4",
        libtpu_name="v4",
        devices_per_chip=1,
        memory=32 * _GiB,
        bandwidth=1228 * _G,
        # As rented: a chip's two cores are one device.
        peak={"bfloat16": 275 * _T, "int8": 275 * _T},
        shapes=_CUBES,
        source=_DOCS + "v4",
        link=50 * _G,
        clock_ghz=1.05,
        chip_config="megacore",
    ),
    "v5e": Tpu(
        title="TPU v5e",
        libtpu_name="v5e",
        devices_per_chip=1,
        memory=16 * _GiB,
        bandwidth=819 * _G,
        peak={"bfloat16": 197 * _T, "int8": 394 * _T},
        shapes=_FLAT,
        source=_DOCS + "v5e",
        link=50 * _G,
        clock_ghz=1.5,
        vector_peak=4 * 8 * 128 * 1.5 * _G,
    ),
    "v5p": Tpu(
        title="TPU v5p",
        libtpu_name="v5p",
        devices_per_chip=1,
        memory=95 * _GiB,
        bandwidth=2765 * _G,
        peak={"bfloat16": 459 * _T, "int8": 918 * _T},
        shapes=(*_CUBES, "16x16x16"),
        source=_DOCS + "v5p",
        link=100 * _G,
        clock_ghz=1.75,
        vector_peak=2 * 4 * 8 * 128 * 1.75 * _G,
    ),
    "v6e": Tpu(
        title="TPU v6e (Trillium)",
        libtpu_name="v6e",
        devices_per_chip=1,
        memory=32 * _GiB,
        bandwidth=1638 * _G,
        peak={"bfloat16": 918 * _T, "int8": 1836 * _T},
        shapes=_FLAT,
        source=_DOCS + "v6e",
        link=112 * _G,
    ),
    "7x": Tpu(
        title="TPU 7x (Ironwood)",
        libtpu_name="tpu7x",
        devices_per_chip=2,
        memory=192 * _GiB,
        bandwidth=7380 * _G,
        peak={"bfloat16": 2307 * _T, "float8": 4614 * _T},
        shapes=(*_CUBES, "16x16x16"),
        source=_DOCS + "tpu7x",
        link=100 * _G,
    ),
}

_NVIDIA = "https://www.nvidia.com/en-us/data-center/"
# The network is that of DGX systems: an adapter of 200 (A100) or 400 Gbit/s for each GPU.
_NVLINK = _NVIDIA + "nvlink/"
_PCIE = "https://pcisig.com/specifications"

_H100 = Gpu(
    title="NVIDIA H100 SXM, 80 GB",
    driver_name="NVIDIA H100 80GB HBM3",
    memory=80 * _GiB,
    bandwidth=3352 * _G,
    peak={
        "float64": 34 * _T,
        "float64 (tensor cores)": 67 * _T,
        "float32": 67 * _T,
        "tensorfloat32": 494.7 * _T,
        "bfloat16": 989.4 * _T,
        "float16": 989.4 * _T,
        "float8": 1978.9 * _T,
        "int8": 1978.9 * _T,
    },
    source=_NVIDIA + "h100/",
    capability=(9, 0),
    multiprocessors=132,
    shared_memory=228 * _KiB,
    shared_memory_optin=227 * _KiB,
    threads=2048,
    units=128,
    l2_cache=50 * _MiB,
    clock_ghz=1.98,
    link=450 * _G,
    link_source=_NVLINK,
    network=50 * _G,
    switch_reduces=True,
)

GPUS: dict[str, Gpu] = {
    "h100": _H100,
    "h200": _H100._replace(
        title="NVIDIA H200 SXM, 141 GB",
        driver_name="NVIDIA H200",
        memory=141 * _GiB,
        bandwidth=4800 * _G,
        source=_NVIDIA + "h200/",
        l2_cache=60 * _MiB,
    ),
    "b200": Gpu(
        title="NVIDIA B200 SXM, 180 GB",
        driver_name="NVIDIA B200",
        memory=180 * _GiB,
        bandwidth=8000 * _G,
        peak={
            "float64": 37 * _T,
            "float32": 75 * _T,
            "tensorfloat32": 1125 * _T,
            "bfloat16": 2250 * _T,
            "float16": 2250 * _T,
            "float8": 4500 * _T,
            "int8": 4500 * _T,
            "float4": 9000 * _T,
        },
        source=_NVIDIA + "dgx-b200/",
        capability=(10, 0),
        multiprocessors=148,
        shared_memory=228 * _KiB,
        shared_memory_optin=227 * _KiB,
        threads=2048,
        units=128,
        l2_cache=126 * _MiB,
        clock_ghz=1.965,
        link=900 * _G,
        link_source=_NVLINK,
        network=50 * _G,
        switch_reduces=True,
    ),
    "a100": Gpu(
        title="NVIDIA A100 SXM, 80 GB",
        driver_name="NVIDIA A100-SXM4-80GB",
        memory=80 * _GiB,
        bandwidth=2039 * _G,
        peak={
            "float64": 9.7 * _T,
            "float64 (tensor cores)": 19.5 * _T,
            "float32": 19.5 * _T,
            "tensorfloat32": 156 * _T,
            "bfloat16": 312 * _T,
            "float16": 312 * _T,
            "int8": 624 * _T,
        },
        source=_NVIDIA + "a100/",
        capability=(8, 0),
        multiprocessors=108,
        shared_memory=164 * _KiB,
        shared_memory_optin=163 * _KiB,
        threads=2048,
        units=64,
        l2_cache=40 * _MiB,
        clock_ghz=1.41,
        link=300 * _G,
        link_source=_NVLINK,
        network=25 * _G,
    ),
    "l4": Gpu(
        title="NVIDIA L4, 24 GB",
        driver_name="NVIDIA L4",
        memory=24 * _GiB,
        bandwidth=300 * _G,
        peak={
            "float32": 30.3 * _T,
            "tensorfloat32": 60 * _T,
            "bfloat16": 121 * _T,
            "float16": 121 * _T,
            "float8": 242.5 * _T,
            "int8": 242.5 * _T,
        },
        source=_NVIDIA + "l4/",
        capability=(8, 9),
        multiprocessors=58,
        shared_memory=100 * _KiB,
        shared_memory_optin=99 * _KiB,
        threads=1536,
        units=128,
        l2_cache=48 * _MiB,
        clock_ghz=2.04,
        link=32 * _G,
        link_source=_PCIE,
        network=32 * _G,
    ),
    "t4": Gpu(
        title="NVIDIA T4, 16 GB",
        driver_name="Tesla T4",
        memory=16 * _GiB,
        bandwidth=320 * _G,
        peak={"float32": 8.1 * _T, "float16": 65 * _T, "int8": 130 * _T},
        source=_NVIDIA + "tesla-t4/",
        capability=(7, 5),
        multiprocessors=40,
        shared_memory=64 * _KiB,
        shared_memory_optin=64 * _KiB,
        threads=1024,
        units=64,
        l2_cache=4 * _MiB,
        clock_ghz=1.59,
        link=16 * _G,
        link_source=_PCIE,
        network=16 * _G,
    ),
}
_CAPABILITIES = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities"


# The bytes that a multiprocessor reads from the second-level cache in a cycle, since Volta.
_CACHE_BYTES_PER_CYCLE = 64
_CACHE_SOURCE = "https://on-demand.gputechconf.com/gtc/2018/presentation/s81006-volta-architecture-and-performance-optimization.pdf"
_TPU_UNITS = "https://jax-ml.github.io/scaling-book/tpus/"


def sources_of(chip: Tpu | Gpu) -> tuple[str, ...]:
    """Return the URLs of the pages that publish a chip's numbers."""
    if isinstance(chip, Gpu):
        return (chip.source, _CAPABILITIES, _CACHE_SOURCE, chip.link_source)
    return (chip.source, _TPU_UNITS)


def vector_peak(chip: Tpu | Gpu) -> float | None:
    """Return the most elementwise operations per second of any dtype, None if it is unknown.

    GPUs compute with float16 at up to four times the rate of float32 (the A100 does).
    """
    return 4 * chip.peak["float32"] if isinstance(chip, Gpu) else chip.vector_peak


def cache_bandwidth(chip: Gpu) -> float:
    """Return the bytes per second that all multiprocessors read from the second-level cache."""
    return _CACHE_BYTES_PER_CYCLE * chip.multiprocessors * chip.clock_ghz * _G


def links_of(chip: Tpu | Gpu, shape: str, count: int, per_host: int) -> Links:
    """Return the links of a chip in a system.

    Args:
      chip: the chip.
      shape: for TPUs, the shape of the slice, such as "2x4".
      count: the number of chips.
      per_host: for GPUs, the greatest number in a host.
    """
    if isinstance(chip, Gpu):
        beside = min(count, per_host)
        network = chip.network if count > per_host else None
        return Links(chip.link, beside, network, chip.switch_reduces, chip.link_source)
    # A chip has a link to each neighbor: one along a side of 2, two along longer ones.
    sides = [int(side) for side in shape.split("x")]
    neighbors = sum(min(side - 1, 2) for side in sides)
    return Links(chip.link * max(neighbors, 1), count, None, False, chip.source)


def target_config(chip: Gpu) -> str:
    """Return a GPU's properties for XLA's compiler, as the text of a GpuTargetConfigProto."""
    device = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 48 * _KiB,
        "shared_memory_per_core": chip.shared_memory,
        "shared_memory_per_block_optin": chip.shared_memory_optin,
        "threads_per_core_limit": chip.threads,
        "core_count": chip.multiprocessors,
        "fpus_per_core": chip.units,
        "block_dim_limit_x": 2**31 - 1,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "memory_bandwidth": int(chip.bandwidth),
        "l2_cache_size": chip.l2_cache,
        "clock_rate_ghz": chip.clock_ghz,
        "device_memory_size": chip.memory,
        "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536,
    }
    fields = " ".join(f"{name}: {value}" for name, value in device.items())
    major, minor = chip.capability
    fields += f" cuda_compute_capability {{ major: {major} minor: {minor} }}"
    return (
        f"gpu_device_info {{ {fields} }} "
        'platform_name: "CUDA" dnn_version_info { major: 9 minor: 8 } '
        "runtime_version { major: 12 minor: 8 } "
        f'device_description_str: "{chip.driver_name}"'
    )


def is_shape(chip: Tpu, shape: str) -> bool:
    """Return whether a TPU slice shape exists: the listed ones, and multiples of 4x4x4 chips."""
    if shape in chip.shapes:
        return True
    sides = shape.split("x")
    if len(sides) != 3 or len(chip.shapes[0].split("x")) != 3:
        return False
    if not all(side.isascii() and side.isdigit() and len(side) <= 2 for side in sides):
        return False
    lengths = [int(side) for side in sides]
    return all(n % 4 == 0 and 0 < n <= 24 for n in lengths) and lengths == sorted(lengths)
