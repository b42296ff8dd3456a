"""Convolutions that cut and pad an axis, which XLA gets wrong on CPUs, over several devices."""

import numpy as np
import pytest

import hlofront as jax
from hlofront.sharding import AxisType, NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.xla_faults.test_convolutions import convolved, expected, whole_numbers

SPLITS = [
    (AxisType.Auto, P("x"), 1),
    (AxisType.Auto, P("x"), 2),
    (AxisType.Auto, P(None, "x"), 1),
    (AxisType.Auto, P(None, "x"), 2),
    (AxisType.Explicit, P("x"), 2),
]


@pytest.mark.parametrize(("kind", "spec", "dilation"), SPLITS, ids=str)
def test_convolutions_of_split_arrays_are_right(kind, spec, dilation):
    mesh = jax.make_mesh((2,), ("x",), axis_types=(kind,))
    with jax.set_mesh(mesh):
        x = jax.device_put(whole_numbers(), NamedSharding(mesh, spec))
        found = jax.jit(lambda x: convolved(x, (-1, 1), dilation))(x)
    np.testing.assert_array_equal(found, expected(whole_numbers(), (-1, 1), dilation))
