"""The facts about TPUs by which kernels choose their blocks."""

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.pjrt import targets
from hlofront.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

V = pltpu.ChipVersion


def test_facts_of_chips():
    v5e, v6e = (pltpu.get_tpu_info_for_chip(chip, 1) for chip in (V.TPU_V5E, V.TPU_V6E))
    assert (v5e.generation, v5e.vmem_capacity_bytes, v5e.mxu_column_size) == (5, 128 << 20, 128)
    assert v5e.hbm_capacity_bytes == 17_200_000_000 and v5e.sparse_core is None
    assert v6e.bf16_ops_per_second == 920 * 10**12 and v6e.sparse_core.num_subcores == 16
    pair = pltpu.get_tpu_info_for_chip(V.TPU_V5P, 2)
    assert pair.is_megacore and not pair.is_split_chip and not pair.is_lite
    for chip in V:
        info = pltpu.get_tpu_info_for_chip(chip, 1)
        assert info.is_matmul_supported("float32", "float32")
        assert info.num_lanes == 128 and info.chip_version is chip


def test_tiles_and_products_by_dtype():
    v5e, v7x = (pltpu.get_tpu_info_for_chip(chip, 1) for chip in (V.TPU_V5E, V.TPU_7X))
    rows = [v5e.get_sublane_tiling(dtype) for dtype in (jnp.float32, jnp.bfloat16, "int8", "int4")]
    assert rows == [8, 8, 32, 64] and v7x.get_sublane_tiling(jnp.bfloat16) == 16
    assert v5e.get_sublane_tiling(bool) == 32
    assert v5e.is_matmul_supported("int8", "uint8") and not v7x.is_matmul_supported("int8", "int8")
    assert v7x.is_matmul_supported(jnp.bfloat16, jnp.float8_e4m3fn)
    assert not v7x.is_matmul_supported(jnp.float8_e4m3fn, jnp.bfloat16)


def test_the_device_that_programs_are_traced_for():
    device = AbstractDevice("TPU v5p", 2, "tpu")
    with use_abstract_mesh(AbstractMesh((2,), ("x",), abstract_device=device)):
        info = pltpu.get_tpu_info()
    assert info == pltpu.get_tpu_info_for_chip(V.TPU_V5P, 2)
    if jax.default_backend() == "cpu":
        with pytest.raises(ValueError, match="a device of kind 'cpu': trace inside of"):
            pltpu.get_tpu_info()


def test_an_absent_device():
    missing = targets.install_hint("tpu")
    if missing:
        pytest.skip(missing)
    with jax.target("tpu:v6e:1x1"):
        assert pltpu.get_tpu_info().chip_version is V.TPU_V6E


def test_a_number_of_cores_that_a_chip_has_not():
    with pytest.raises(ValueError, match="is 1, or 2 for v4 and v5p: got 2 for v5e"):
        pltpu.get_tpu_info_for_chip(V.TPU_V5E, 2)
