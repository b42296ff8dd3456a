"""Facts about TPUs by which kernels choose their blocks: pltpu.get_tpu_info()."""

import dataclasses
import enum

from hlofront.base.dtypes import bit_width, dtype_of
from hlofront.base.typing import DTypeLike
from hlofront.bridge.client import Device
from hlofront.core.sharding.mesh import AbstractDevice
from hlofront.core.sharding.mesh_context import get_abstract_mesh
from hlofront.pjrt.clients import compiling_for
from hlofront.runtime.sharding.placement import default_device


class ChipVersion(enum.Enum):
    """The models of TPUs."""

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"
    TPU_8T = "8t"

    def __str__(self) -> str:
        return self.value


@dataclasses.dataclass(frozen=True)
class SparseCoreInfo:
    """The SparseCores of a chip.

    Attributes:
      num_cores: the SparseCores of a chip.
      num_subcores: the vector subcores of each.
      num_lanes: the lanes of a subcore's registers.
      vmem_capacity_bytes: the bytes of a subcore's memory.
      dma_granule_size_bytes: the bytes that a copy moves at least.
    """

    num_cores: int
    num_subcores: int
    num_lanes: int
    vmem_capacity_bytes: int
    dma_granule_size_bytes: int


@dataclasses.dataclass(frozen=True)
class TpuInfo:
    """The facts about a device of a TPU, whose rates and HBM are those of one TensorCore.

    Attributes:
      chip_version, generation: the model, and the number of its generation.
      num_cores: the TensorCores of the device.
      num_lanes, num_sublanes: the shape of a vector register of 32-bit elements.
      mxu_column_size, num_mxus: the size and number of the units for matrix products.
      num_accumulators: the accumulators of such a unit.
      vmem_capacity_bytes, cmem_capacity_bytes, smem_capacity_bytes, hbm_capacity_bytes: the
        capacities of memories; 0 for a memory that it lacks.
      mem_bw_bytes_per_second: the bandwidth of HBM.
      bf16_ops_per_second, int8_ops_per_second, fp8_ops_per_second, int4_ops_per_second: the rates
        of matrix products, an addition and a multiplication counting as two; 0 if unsupported.
      sparse_core: its SparseCores, or None.
    """

    chip_version: ChipVersion
    generation: int
    num_cores: int
    num_lanes: int
    num_sublanes: int
    mxu_column_size: int
    num_mxus: int
    num_accumulators: int
    vmem_capacity_bytes: int
    cmem_capacity_bytes: int
    smem_capacity_bytes: int
    hbm_capacity_bytes: int
    mem_bw_bytes_per_second: int
    bf16_ops_per_second: int
    int8_ops_per_second: int
    fp8_ops_per_second: int
    int4_ops_per_second: int
    sparse_core: SparseCoreInfo | None = None

    @property
    def is_lite(self) -> bool:
        """Whether the chip has one TensorCore, and is made for inference first."""
        return self.chip_version in _LITE

    @property
    def is_megacore(self) -> bool:
        """Whether the device is two TensorCores of a chip."""
        return self.num_cores > 1

    @property
    def is_split_chip(self) -> bool:
        """Whether the device is one of the two TensorCores of a chip."""
        return self.num_cores == 1 and self.chip_version in _OF_TWO_CORES

    def get_sublane_tiling(self, dtype: DTypeLike) -> int:
        """Return how many rows of elements of a dtype a tile of a memory has."""
        bits = bit_width(dtype_of(dtype))
        if bits == 16 and self.generation < 7:
            return self.num_sublanes
        return self.num_sublanes * (32 // bits)

    def is_matmul_supported(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> bool:
        """Return whether the chip multiplies matrices of these dtypes without converting them."""
        names = dtype_of(lhs_dtype).name, dtype_of(rhs_dtype).name
        return any(names[0] in lhs and names[1] in rhs for lhs, rhs in _PRODUCTS[self.chip_version])


_LITE = {ChipVersion.TPU_V4I, ChipVersion.TPU_V5E, ChipVersion.TPU_V6E}
# Chips whose two TensorCores may be one device, and all chips of two.
_MEGACORE = {ChipVersion.TPU_V4, ChipVersion.TPU_V5P}
_OF_TWO_CORES = set(ChipVersion) - _LITE - {ChipVersion.TPU_8T}

_WIDE = ("float32", "bfloat16")
_FP8_OF_7 = ("float8_e4m3fn", "float8_e5m2")
_FLOATS_OF_5 = (*_WIDE, "float8_e5m2", "float8_e4m3b11fnuz")
_OF_5 = (
    (_FLOATS_OF_5, _FLOATS_OF_5),
    (("int8", "uint8"), ("int8", "uint8")),
    (("int4", "uint4"), ("int4", "uint4")),
)
_OF_7 = ((_WIDE, (*_WIDE, *_FP8_OF_7)), (_FP8_OF_7, _FP8_OF_7))


# Dtypes of the left operand of a product, and of the right one.
_Operands = tuple[tuple[str, ...], tuple[str, ...]]
_PRODUCTS: dict[ChipVersion, tuple[_Operands, ...]] = {
    ChipVersion.TPU_V2: ((("float32",), ("float32",)),),
    ChipVersion.TPU_V3: ((("float32",), ("float32",)),),
    ChipVersion.TPU_V4I: ((_WIDE, (*_WIDE, "int8")),),
    ChipVersion.TPU_V4: ((_WIDE, (*_WIDE, "int8")),),
    ChipVersion.TPU_V5E: _OF_5,
    ChipVersion.TPU_V5P: _OF_5,
    ChipVersion.TPU_V6E: _OF_5,
    ChipVersion.TPU_7: _OF_7,
    ChipVersion.TPU_7X: _OF_7,
    ChipVersion.TPU_8I: tuple([(lhs, (*rhs, "int4", "uint4")) for lhs, rhs in _OF_7]),
    ChipVersion.TPU_8T: tuple([(lhs, (*rhs, "int4")) for lhs, rhs in _OF_7]),
}

# The units of the table below, from the generation on: MiB of VMEM, MB of CMEM, KiB of SMEM, 10 MB
# of HBM, 0.1 GB per second, and 10^11 operations per second.
_UNITS = (1, 1, 1, 1, 1 << 20, 10**6, 1 << 10, 10**7, 10**8, *[10**11] * 4)
# By chip: the generation, the size and number of matrix units, the accumulators of each, the
# capacities of VMEM, CMEM, SMEM and HBM, the bandwidth of HBM, and the rates of products of
# bfloat16, int8, float8 and int4, of one TensorCore. As in jax 0.12.0.1.
_CHIPS: dict[ChipVersion, tuple[int, ...]] = {
    ChipVersion.TPU_V2: (2, 128, 1, 0, 16, 0, 16, 800, 3580, 230, 0, 0, 0),
    ChipVersion.TPU_V3: (3, 128, 2, 0, 16, 0, 16, 1720, 4125, 700, 0, 0, 0),
    ChipVersion.TPU_V4I: (4, 128, 4, 0, 16, 134, 1024, 859, 6140, 1370, 0, 0, 0),
    ChipVersion.TPU_V4: (4, 128, 4, 0, 16, 67, 1024, 1720, 6150, 1375, 0, 0, 0),
    ChipVersion.TPU_V5E: (5, 128, 4, 0, 128, 0, 1024, 1720, 8200, 1970, 3940, 0, 7880),
    ChipVersion.TPU_V5P: (5, 128, 4, 0, 64, 0, 1024, 5150, 12300, 2295, 4590, 0, 9200),
    ChipVersion.TPU_V6E: (6, 256, 2, 0, 128, 0, 1024, 3440, 16400, 9200, 18400, 9200, 36800),
    ChipVersion.TPU_7: (7, 256, 2, 128, 64, 0, 1024, 10300, 37000, 11550, 0, 23000, 0),
    ChipVersion.TPU_7X: (7, 256, 2, 128, 64, 0, 1024, 10300, 37000, 11550, 0, 23000, 0),
    ChipVersion.TPU_8I: (8, 256, 2, 256, 192, 0, 1024, 15450, 43000, 5505, 0, 44040, 0),
    ChipVersion.TPU_8T: (8, 256, 2, 256, 128, 0, 1024, 23100, 64000, 9961, 9961, 59769, 119538),
}
_SPARSE_CORES: dict[ChipVersion, SparseCoreInfo] = {
    ChipVersion.TPU_V5P: SparseCoreInfo(4, 16, 8, 512 << 10, 32),
    ChipVersion.TPU_V6E: SparseCoreInfo(2, 16, 8, 256 << 10, 32),
    ChipVersion.TPU_7: SparseCoreInfo(2, 16, 16, 512 << 10, 32),
    ChipVersion.TPU_7X: SparseCoreInfo(2, 16, 16, 512 << 10, 32),
    ChipVersion.TPU_8I: SparseCoreInfo(1, 4, 16, 512 << 10, 64),
    ChipVersion.TPU_8T: SparseCoreInfo(2, 16, 16, 256 << 10, 64),
}
_KINDS = {
    "TPU v2": ChipVersion.TPU_V2,
    "TPU v3": ChipVersion.TPU_V3,
    "TPU v4 lite": ChipVersion.TPU_V4I,
    "TPU v4": ChipVersion.TPU_V4,
    "TPU v5 lite": ChipVersion.TPU_V5E,
    "TPU v5e": ChipVersion.TPU_V5E,
    "TPU v5": ChipVersion.TPU_V5P,
    "TPU v5p": ChipVersion.TPU_V5P,
    "TPU v6 lite": ChipVersion.TPU_V6E,
    "TPU v6e": ChipVersion.TPU_V6E,
    "TPU7": ChipVersion.TPU_7,
    "TPU7x": ChipVersion.TPU_7X,
}


def get_tpu_info_for_chip(
    chip_version: ChipVersion, num_tensor_cores_per_logical_device: int
) -> TpuInfo:
    """Return the facts about a device of a TPU.

    Args:
      chip_version: the model.
      num_tensor_cores_per_logical_device: the TensorCores of the device: 1; or 2 for v4 and v5p,
        whose two TensorCores may be one device.

    Raises:
      ValueError: if devices of the model have no such number of TensorCores.
    """
    cores = num_tensor_cores_per_logical_device
    if cores not in ((1, 2) if chip_version in _MEGACORE else (1,)):
        raise ValueError(
            f"num_tensor_cores_per_logical_device is 1, or 2 for v4 and v5p: got {cores} for "
            f"{chip_version}"
        )
    generation, *facts = [
        fact * unit for fact, unit in zip(_CHIPS[chip_version], _UNITS, strict=True)
    ]
    sublanes = 16 if chip_version is ChipVersion.TPU_8T else 8
    first = (chip_version, generation, cores, 128, sublanes)
    return TpuInfo(*first, *facts, sparse_core=_SPARSE_CORES.get(chip_version))


class Tiling(enum.Enum):
    """The tiles of arrays in the memories of a kernel: those of TensorCores, or of SparseCores."""

    COMPACT = enum.auto()
    SPARSE_CORE = enum.auto()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a tile of 32-bit elements, on the TPU that programs are traced for."""
        chip = _KINDS.get(traced_for().device_kind, ChipVersion.TPU_V4)
        info = get_tpu_info_for_chip(chip, 1)
        if self is Tiling.COMPACT:
            return (info.num_sublanes, info.num_lanes)
        return (8 if info.sparse_core is None else info.sparse_core.num_lanes,)


def traced_for() -> Device | AbstractDevice:
    """Return the device that programs are traced for.

    That is the device of the abstract mesh in context, if it has one, the target of the enclosing
    `with hlofront.target(...):`, or the default device.
    """
    abstract = get_abstract_mesh().abstract_device
    if abstract is not None:
        return abstract
    target = compiling_for.get()
    return default_device() if target is None else target.devices[0]


def is_tpu_device() -> bool:
    """Return whether programs are traced for a TPU, attached or not."""
    return traced_for().platform == "tpu"


def get_tpu_info() -> TpuInfo:
    """Return the facts about the TPU that programs are traced for.

    That is the TPU of the abstract mesh in context, if it has an `abstract_device`; the absent TPU
    inside `with hlofront.target("tpu:v5e:1x1"):`; else the default device.

    Raises:
      ValueError: if it is not a TPU.

    Example:
      >>> from hlofront.experimental.pallas import tpu as pltpu
      >>> v5e = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 1)
      >>> v5e.vmem_capacity_bytes, v5e.get_sublane_tiling("int8")
      (134217728, 32)
    """
    device = traced_for()
    chip = _KINDS.get(device.device_kind)
    if chip is None:
        raise ValueError(
            f"get_tpu_info is for TPUs, and programs are traced for a device of kind "
            f"{device.device_kind!r}: trace inside of `with hlofront.target('tpu:v5e:1x1'):`, with "
            "an AbstractMesh with an abstract_device, or use get_tpu_info_for_chip"
        )
    return get_tpu_info_for_chip(chip, getattr(device, "num_cores", None) or 1)
