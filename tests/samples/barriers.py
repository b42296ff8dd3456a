"""Samples of barriers."""

from hlofront import lax
from tests.samples import sample
from tests.support.cases import c64, f32, i8


def barrier_of_tree(x, y):
    return lax.optimization_barrier({"a": x, "b": (y,)})


def barrier_of_nothing(x):
    return lax.optimization_barrier(()), x


def sunk(x):
    lax.dce_sink({"a": lax.sin(x)})
    return x


sample(lax.optimization_barrier, f32[2, 3], reference=lambda x: x)
sample(barrier_of_tree, c64[2], i8[0], reference=lambda x, y: (x, y))
sample(barrier_of_nothing, f32[()], reference=lambda x: x)
sample(sunk, f32[3], reference=lambda x: x)
