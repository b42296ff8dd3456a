"""Samples of callbacks."""

import numpy as np

from hlofront import debug, lax, pure_callback
from tests.samples import sample
from tests.support.cases import c64, f32, i8

NO_JVP = (ValueError, "Pure callbacks do not support JVP")


def on_host(x, y):
    return np.asarray(x) * np.asarray(y)


def called(x, y, method=None):
    """Of operands of equal ranks, as `method` may give them more axes."""
    return pure_callback(on_host, x, x, y, vmap_method=method)


def shown(x, y):
    debug.callback(on_host, x, x, ordered=True)
    debug.callback(lambda *, key: None, key=y)
    return lax.neg(x)


for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all"):
    sample(
        called,
        f32[3, 2],
        f32[3, 2],
        method=method,
        name=f"called_{method}",
        reference=lambda x, y, method: x * y,
        not_differentiable=NO_JVP,
    )
sample(
    called,
    c64[2],
    c64[2],
    reference=lambda x, y: x * y,
    not_differentiable=NO_JVP,
    not_batched=(NotImplementedError, "vmap_method is one of"),
)
sample(
    called,
    i8[2],
    i8[2],
    name="called_with_integers",
    reference=lambda x, y: x * y,
    not_differentiable=NO_JVP,
    not_batched=(NotImplementedError, "vmap_method is one of"),
)
sample(shown, f32[2, 3], f32[2], reference=lambda x, y: -x)
