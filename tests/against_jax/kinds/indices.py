"""Indices of every integer dtype, also where it does not hold the size of the axis."""

import numpy as np

from tests.against_jax.describe import Corpus

KNOWN = {
    r"_u?int4_": "jax refuses these dtypes as indices, seeds and in powers, or wraps sizes in them",
    r"_int8_": "jax adds and divides by the 300 elements in int8: OverflowError, or wrong places",
    r"^put_uint8_far": "jax takes the position modulo 300 - 256",
    r"^dynamic_update_index_": "both refuse a float of Python; jax by an AssertionError",
    r"^index_take_uint64_": "jax refuses these indices",
    r"_bool_": "jax wraps booleans as `x % True`, and other classes of errors",
}
DTYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool int4 uint4".split()
POSITIONS = {
    "few": [0, 1, 2],
    "repeated": [3, 3, 0],
    "far": [5, 127, 100],
    "from_the_end": [-1, -2, 0],
    "beyond_the_front": [-100, -128, 1],
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    for name, function in functions(jax, jnp, lax).items():
        for dtype in DTYPES:
            for kind, positions in POSITIONS.items():
                if dtype[0] == "u" and min(positions) < 0:
                    continue
                if dtype == "bool" and kind != "few":
                    continue
                small = [x % 8 for x in positions] if "int4" in dtype else positions
                corpus.add(
                    f"{name}_{dtype}_{kind}",
                    function,
                    made(jax, jnp, small, dtype),
                    x64="64" in dtype,
                )
    return corpus


def made(jax, jnp, positions, dtype):
    import ml_dtypes

    kind = getattr(ml_dtypes, dtype) if "int4" in dtype else dtype
    return np.array(positions).astype(kind)


def functions(jax, jnp, lax):
    long = np.arange(300, dtype=np.float32)
    wide = np.arange(12, dtype=np.float32).reshape(3, 4)
    at = lambda x: jnp.asarray(x).at
    found = {
        "item": lambda i: jnp.asarray(long)[i],
        "items": lambda i: jnp.asarray(wide)[i, i],
        "item_of_rows": lambda i: jnp.asarray(wide)[:, i],
        "one_item": lambda i: jnp.asarray(long)[i[0]],
        "none_item": lambda i: jnp.asarray(wide)[i, None, i[::-1]],
        "roll": lambda i: (jnp.roll(wide, i[1]), jnp.roll(wide, i[2], 1)),
        "roll_both": lambda i: jnp.roll(wide, i[:2], (0, 1)),
        "unravel": lambda i: jnp.unravel_index(i, (20, 30)),
        "dynamic_slice": lambda i: lax.dynamic_slice(long, (i[1],), (4,)),
        "dynamic_slice_of_two": lambda i: lax.dynamic_slice(wide, (i[0], i[1]), (2, 2)),
        "dynamic_index": lambda i: lax.dynamic_index_in_dim(long, i[1]),
        "dynamic_slice_in_dim": lambda i: lax.dynamic_slice_in_dim(wide, i[0], 2, 1),
        "dynamic_update": lambda i: lax.dynamic_update_slice(long, long[:3] + 0.5, (i[2],)),
        "dynamic_update_index": lambda i: lax.dynamic_update_index_in_dim(wide, 9.0, i[0], 1),
        "index_take": lambda i: lax.index_take(long, (i,), (0,)),
        "along_axis": lambda i: jnp.take_along_axis(jnp.asarray(long), i, 0),
        "along_rows": lambda i: jnp.take_along_axis(jnp.asarray(wide), i[None], 1),
        "put_along": lambda i: jnp.put_along_axis(jnp.asarray(long), i, 7.0, 0, inplace=False),
        "put": lambda i: jnp.put(jnp.asarray(long), i, -1.0, inplace=False),
        "put_wrapped": lambda i: jnp.put(jnp.asarray(wide), i, -1.0, mode="wrap", inplace=False),
        "one_hot": lambda i: jax.nn.one_hot(i, 8),
        "choose": lambda i: jnp.choose(i % 3, [long[:3], long[3:6], long[6:9]], mode="clip"),
        "choose_wrapped": lambda i: jnp.choose(i, [long[:3], long[3:6]], mode="wrap"),
        "select_n": lambda i: lax.select_n(jnp.asarray(i > 1), long[:3], long[3:6]),
        "switch": lambda i: lax.switch(i[0], [jnp.sin, jnp.cos, jnp.tan], 1.0),
        "delete": lambda i: jnp.delete(jnp.asarray(long[:10]), i[0] % 3),
        "repeat": lambda i: jnp.repeat(jnp.asarray(long[:3]), abs(i) % 5, total_repeat_length=8),
        "bincount": lambda i: jnp.bincount(i, length=10),
        "segment_sum": lambda i: jax.ops.segment_sum(long[:3], i, 130),
        "segment_max": lambda i: jax.ops.segment_max(long[:3], i, 6),
        "gather_loop": lambda i: lax.fori_loop(0, 3, lambda k, c: c + jnp.asarray(long)[i[k]], 0.0),
        "scan_over": lambda i: lax.scan(lambda c, k: (c + long[0], jnp.asarray(long)[k]), 0.0, i),
        "slice_start": lambda i: jax.vmap(lambda k: lax.dynamic_slice(long, (k,), (3,)))(i),
        "update_start": lambda i: jax.vmap(
            lambda k: lax.dynamic_update_slice(wide, wide[:2, :2] - 1, (k, k))
        )(i),
        "batched_item": lambda i: jax.vmap(lambda k: jnp.asarray(wide)[k, k])(i),
        "derived_item": lambda i: jax.grad(lambda x: jnp.sum(x[i] ** 2))(jnp.asarray(long)),
        "derived_take": lambda i: jax.grad(lambda x: jnp.sum(jnp.take(x, i, 0)))(jnp.asarray(wide)),
        "rot90": lambda i: jnp.asarray(wide)[i[0] :] if isinstance(i, np.ndarray) else 0,
        "ravel_multi_index": lambda i: [
            jnp.ravel_multi_index((i, i), (20, 30), mode=mode) for mode in ("wrap", "clip")
        ],
        "searchsorted": lambda i: jnp.searchsorted(i, i),
        "digitize": lambda i: jnp.digitize(i, np.array([0, 2, 50], i.dtype)),
        "argsort": lambda i: (jnp.argsort(i), jnp.argsort(-i), jnp.argsort(i, descending=True)),
        "arange": lambda i: jnp.arange(3, dtype=i.dtype) - i,
        "eye": lambda i: jnp.tril(wide, int(i[0])) if isinstance(i, np.ndarray) else 0,
        "shift_left": lambda i: (jnp.left_shift(i, i), jnp.right_shift(i, i)),
        "power": lambda i: (jnp.power(i, i), jnp.power(2, i)),
        "divmod": lambda i: (jnp.divmod(i, 3), jnp.divmod(7, i), jnp.remainder(i, -i)),
        "mean": lambda i: (jnp.mean(i), jnp.sum(i), jnp.prod(i), jnp.cumsum(i), jnp.max(i)),
        "average": lambda i: jnp.average(long[:3], weights=i),
        "diff": lambda i: (jnp.diff(i), jnp.ediff1d(i), jnp.trapezoid(i)),
        "interp": lambda i: jnp.interp(i, long[:5], long[:5] * 2),
        "fold_in": lambda i: jax.random.key_data(jax.random.fold_in(jax.random.key(0), i[1])),
        "seed": lambda i: jax.random.key_data(jax.random.key(i[1])),
    }
    for mode in ("clip", "wrap", "fill", "promise_in_bounds"):
        found[f"take_{mode}"] = lambda i, mode=mode: jnp.take(long, i, mode=mode)
        found[f"take_rows_{mode}"] = lambda i, mode=mode: jnp.take(wide, i, 1, mode=mode)
        found[f"get_{mode}"] = lambda i, mode=mode: at(long)[i].get(mode=mode)
    for mode in ("clip", "drop", None):
        for method in ("set", "add", "multiply", "max", "apply"):
            value = jnp.sin if method == "apply" else 3.0
            found[f"{method}_{mode}"] = lambda i, mode=mode, method=method, value=value: getattr(
                at(wide)[i, i], method
            )(value, mode=mode)
    return found
