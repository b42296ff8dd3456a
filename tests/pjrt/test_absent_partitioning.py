"""The host decides how operations are split where compilers of compile-only devices ask it.

Skipped where the plugin that compiles for a target is not installed. libtpu does not ask, and says
"Custom emitter for CustomSPMDPartitioning not found", under jax too.
"""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.errors import JaxRuntimeError
from hlofront.experimental.custom_partitioning import custom_partitioning
from hlofront.sharding import AxisType, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.pjrt.needed import need


def rows_over(name):
    """The type of an array whose rows all devices of a target split."""
    target = jax.target(name)
    need(target.platform)
    mesh = jax.make_mesh((len(target.devices),), ("x",), (AxisType.Auto,), devices=target.devices)
    return jax.ShapeDtypeStruct((64, 16), np.float32, sharding=NamedSharding(mesh, P("x")))


def split_by(partition):
    @custom_partitioning
    def tripled(x):
        return jnp.sin(x) * 3

    tripled.def_partition(partition=partition, sharding_rule="a b -> a b")
    return tripled


def test_a_partition_function_is_asked_and_its_operations_run_on_each_gpu():
    asked = []

    def partition(mesh, args, result):
        asked.append((args[0].shape, args[0].sharding.spec))
        return mesh, lambda x: jnp.cos(x) * 3, args[0].sharding, (args[0].sharding,)

    rows = rows_over("cuda:h100:8")
    compiled = jax.jit(lambda x: split_by(partition)(x) + 1).lower(rows).compile()
    assert asked == [((64, 16), P("x", None))]
    text = compiled.as_text() or ""
    assert "f32[8,16]" in text and "cosine(" in text and "CustomSPMDPartitioning" not in text
    assert not re.search(r"all-gather|all-to-all|collective-permute", text)


def test_an_exception_of_a_partition_function_is_the_cause_of_the_error():
    def partition(mesh, args, result):
        raise LookupError("not split so")

    rows = rows_over("cuda:h100:2")
    with pytest.raises(JaxRuntimeError, match="not split so") as raised:
        jax.jit(split_by(partition)).lower(rows).compile()
    assert type(raised.value.__cause__) is LookupError


def test_shardings_of_values_on_gpus_are_inspected():
    seen = []

    def inspecting(x):
        jax.debug.inspect_array_sharding(x.T * 2, callback=seen.append)
        return x + 1

    jax.jit(inspecting).lower(rows_over("cuda:h100:4")).compile()
    assert [sharding.spec for sharding in seen] == [P(None, "x")]


def test_tpus_refuse_what_their_compiler_does_not_ask_about():
    rows = rows_over("tpu:v5e:2x2")
    with pytest.raises(ValueError, match="libtpu does not support these"):
        jax.jit(split_by(lambda *_: None)).lower(rows).compile()
