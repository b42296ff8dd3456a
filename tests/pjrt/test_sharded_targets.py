"""Programs are split over the devices of targets, which are not attached."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.errors import AbsentDeviceError
from hlofront.experimental import topologies
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.pjrt.needed import need


def layer(x, w):
    return jnp.tanh(x @ w)


def test_a_topology_by_jax_names():
    need("tpu")
    topology = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
    mesh = topologies.make_mesh(topology, (2, 2), ("x", "y"))
    x = jax.ShapeDtypeStruct((256, 512), "bfloat16", sharding=NamedSharding(mesh, P("x", "y")))
    w = jax.ShapeDtypeStruct((512, 512), "bfloat16", sharding=NamedSharding(mesh, P("y")))
    lowered = jax.jit(layer).lower(x, w)
    assert "mhlo.num_partitions = 4" in lowered.as_text()
    compiled = lowered.compile()
    text = compiled.as_text()
    assert "num_partitions=4" in text and "all-reduce" in text
    assert "bf16[128,256]{1,0:T(8,128)(2,1)}" in text  # each device's part of x
    assert compiled.input_shardings == ((x.sharding, w.sharding), {})
    assert compiled.output_shardings == NamedSharding(mesh, P("x"))
    assert compiled.memory_analysis().argument_size_in_bytes == (256 * 512 // 4 + 512 * 256) * 2
    assert "4 devices" in repr(compiled)
    with pytest.raises(AbsentDeviceError, match="nor arrays be put there"):
        jax.device_put(np.ones((256, 512)), x.sharding)
    with pytest.raises(AbsentDeviceError, match="4 devices of kind"):
        compiled(jnp.ones((256, 512), "bfloat16"), jnp.ones((512, 512), "bfloat16"))


def test_shardings_that_jit_is_told():
    need("cuda")
    mesh = Mesh(np.array(jax.target("cuda:h100:8").devices).reshape(4, 2), ("x", "y"))

    def split(*entries):
        return NamedSharding(mesh, P(*entries))

    x, w = (jax.ShapeDtypeStruct(shape, "bfloat16") for shape in ((256, 512), (512, 512)))
    compiled = jax.jit(layer, in_shardings=(split("x"), split(None, "y"))).lower(x, w).compile()
    assert "num_partitions=8" in compiled.as_text()
    assert compiled.output_shardings.spec == P("x", "y")
    with jax.target("cuda:h100:8").on_all():
        alike = jax.jit(layer).lower(x, w).compile()
    assert "num_partitions=8" in alike.as_text()
    assert alike.output_shardings.is_fully_replicated
