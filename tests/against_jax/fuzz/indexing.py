"""Operations that are drawn: indexing, `.at` updates, sorting, searching, random keys."""

import numpy as np

from tests.against_jax.fuzz.machine import operation


def entry(m, d, size, values):
    """What takes the place of one axis in an index."""
    form = d.below(10)
    if form < 3:
        start, stop = d.of((None, 0, 1, -1)), d.of((None, size, -1, 1))
        return slice(start, stop, d.of((None, None, 1, 2, -1)))
    if form == 3:
        return slice(None)
    if not size:
        return slice(None, None, -1)
    if form == 4:
        return d.between(-size, size - 1)
    if form == 5:
        return m.jnp.asarray(m.scalar(m.pick(d, values, "iu"))) % size
    if form == 6:
        return np.arange(size) % 2 == d.below(2)
    if form == 7:
        return [d.between(0, size - 1) for _ in range(2)]
    if form == 8:
        return m.jnp.asarray(m.pick_array(d, values, "iu")).ravel()[:2]
    return np.array([[d.between(-size, size)], [0]])


def index(m, d, x, values):
    entries = [entry(m, d, size, values) for size in np.shape(x)]
    arrays = [e for e in entries if isinstance(e, list | np.ndarray) or hasattr(e, "aval")]
    # Several arrays must broadcast together: only the first one stays.
    seen = 0
    for place, one in enumerate(entries):
        if any(one is array for array in arrays):
            seen += 1
            if seen > 1 and np.ndim(one):
                entries[place] = slice(None)
    entries = entries[: d.between(0, len(entries))]
    if d.chance(0.2):
        entries.insert(d.below(len(entries) + 1), None)
    if d.chance(0.2):
        entries.insert(d.below(len(entries) + 1), Ellipsis)
    entries = [np.array(e) if isinstance(e, list) else e for e in entries]
    return entries[0] if len(entries) == 1 and d.chance(0.7) else tuple(entries)


@operation(5)
def indexed(m, d, values):
    x = m.jnp.asarray(m.pick_array(d, values))
    where = index(m, d, x, values)
    if d.chance(0.3):
        mode = d.of(("fill", "clip", "promise_in_bounds", "drop"))
        options = {"mode": mode}
        if mode == "fill" and d.chance(0.5):
            options["fill_value"] = d.of((0, 7))
        return m.applied(f"{m.shown(x)}.at[{m.shown(where)}].get", x.at[where].get, **options)
    return m.applied("operator.getitem", lambda x, where: x[where], x, where)


@operation(5)
def updated(m, d, values):
    x = m.jnp.asarray(m.pick_array(d, values, "iufc" if d.chance(0.8) else "b"))
    where = index(m, d, x, values)
    kind = x.dtype.kind
    names = ["set", "set", "add", "multiply", "min", "max", "apply", "subtract", "divide", "power"]
    if kind == "c":
        names = ["set", "add", "multiply"]
    if kind in "iu":
        names = ["set", "add", "multiply", "min", "max", "subtract"]
    if kind == "b":
        names = ["set", "max", "min"]
    name = d.of(names)
    said = f"{m.shown(x)}.at[{m.shown(where)}].{name}"
    function = getattr(x.at[where], name)
    if name == "apply":
        return m.applied(said, function, m.jnp.sin)
    taken = x[where]
    y = m.second(d, taken, values, {"V": "f", "f": "iuf", "c": "iufc"}.get(kind, kind))
    if np.broadcast_shapes(np.shape(taken), np.shape(y)) != np.shape(taken):
        y = m.scalar(y)
    if name in ("divide", "power"):
        y = d.of((2, 1.5))
    options = {}
    if d.chance(0.2):
        options["mode"] = d.of(("drop", "clip", "promise_in_bounds", "fill"))
    if d.chance(0.1) and name != "apply":
        options["unique_indices"] = False
    return m.applied(said, function, y, **options)


@operation(3)
def taken(m, d, values):
    x = m.jnp.asarray(m.pick_array(d, values))
    rank = x.ndim
    axis = d.between(-rank, rank - 1)
    size = x.shape[axis]
    places = m.pick(d, values, "iu")
    form = d.below(9)
    if form == 0:
        mode = d.of((None, "fill", "clip", "wrap"))
        return m.call("jnp.take", x, places, axis=d.of((None, axis)), mode=mode)
    if form == 1:
        places = m.jnp.asarray(m.fit(places, m.jnp.zeros(x.shape, int))) % size
        return m.call("jnp.take_along_axis", x, places, axis)
    start = m.jnp.asarray(m.scalar(places)).astype("int32")
    starts = [start if d.chance(0.5) else d.between(-1, 1) for _ in range(rank)]
    if form == 2:
        return m.call("lax.dynamic_slice", x, starts, [d.between(0, s) for s in x.shape])
    if form == 3:
        update = x[tuple(slice(d.between(1, s)) for s in x.shape)]
        return m.call("lax.dynamic_update_slice", x, m.fit(m.pick(d, values), update), starts)
    if form == 4:
        keep = d.chance(0.5)
        return m.call("lax.dynamic_index_in_dim", x, starts[0], axis, keepdims=keep)
    if form == 5:
        condition = m.fit(m.pick(d, values, "b"), np.zeros(x.shape, bool))
        name = d.of(("nonzero", "argwhere", "flatnonzero"))
        return m.call(f"jnp.{name}", condition, size=3, fill_value=d.of((None, 0)))
    if form == 6:
        places = m.jnp.ravel(m.jnp.asarray(places))[:3] % 3
        places = m.jnp.resize(places, (x.shape[0],))
        return m.call(f"ops.segment_{d.of(('sum', 'max', 'prod'))}", x, places, 3)
    if form == 7:
        return m.call("nn.one_hot", places, 3, axis=d.of((-1, 0)))
    return m.call("jnp.bincount", m.jnp.abs(m.jnp.ravel(places)) % 4, length=4)


@operation(3)
def ordered(m, d, values):
    x = m.pick_array(d, values, "iuf")
    rank = np.ndim(x)
    axis = d.between(-rank, rank - 1)
    form = d.below(8)
    if form == 0:
        return m.call("jnp.sort", x, axis, descending=d.chance(0.3))
    if form == 1:
        return m.call("jnp.argsort", x, axis, stable=True, descending=d.chance(0.3))
    if form == 2:
        y = m.fit(m.pick(d, values, "iuf"), m.jnp.asarray(x))
        keys = d.between(1, 2)
        return m.call("lax.sort", (m.jnp.asarray(x), y), dimension=axis % rank, num_keys=keys)
    if form == 3:
        return m.call("lax.top_k", m.jnp.asarray(x), d.between(0, x.shape[-1]))
    if form == 4:
        side = d.of(("left", "right"))
        places = m.pick(d, values, "iuf")
        return m.call("jnp.searchsorted", m.jnp.sort(m.jnp.ravel(x)), places, side=side)
    if form == 5:
        return m.call("jnp.unique", x, size=3, return_inverse=d.chance(0.5), fill_value=0)
    if form == 6:
        return m.call(d.of(("jnp.quantile", "jnp.percentile")), m.as_kind(x, "f"), 0.5, axis=axis)
    x = m.jnp.ravel(m.as_kind(x, "f"))
    return m.call("jnp.interp", x, np.float32([-1, 0, 2]), np.float32([3, 1, 2]))


@operation(3)
def random(m, d, values):
    keys = [x for x in values if kind_is_key(x)]
    if not keys or d.chance(0.1):
        return m.call(d.of(("random.key", "random.key", "random.PRNGKey")), d.of((0, 7, 123)))
    key = d.recent(keys)
    form = d.below(14)
    if form == 0:
        return m.call("random.split", key, d.between(1, 3))
    if form == 1:
        return m.call("random.fold_in", key, m.scalar(m.pick(d, values, "iu")))
    if not isinstance(key.dtype, np.dtype) and np.ndim(key):
        return m.applied("operator.getitem", lambda x: x[0], key)
    shape = d.of(((), (2,), (0,), (2, 3)))
    dtype = d.of(("float32", "bfloat16", "float16"))
    x = m.pick_array(d, values, "f")
    if form in (2, 3):
        name = d.of(("uniform", "normal", "exponential", "gumbel", "laplace", "logistic", "cauchy"))
        return m.call(f"random.{name}", key, shape, dtype)
    if form == 4:
        return m.call("random.randint", key, shape, -3, 9, d.of(("int32", "uint8", "int8")))
    if form == 5:
        return m.call("random.bernoulli", key, m.jnp.abs(m.jnp.sin(x)))
    if form == 6:
        return m.call("random.categorical", key, x, axis=d.between(-np.ndim(x), -1))
    if form == 7:
        axis = d.between(0, np.ndim(x) - 1)
        return m.call("random.permutation", key, x, axis=axis, independent=d.chance(0.3))
    if form == 8:
        return m.call("random.choice", key, x, shape)
    if form == 9:
        return m.call("random.bits", key, shape, d.of(("uint32", "uint8", "uint16")))
    if form == 10:
        return m.call("random.key_data", key)
    if form == 11:
        return m.call("random.truncated_normal", key, -1.0, m.jnp.abs(x) + 1, None, "float32")
    if form == 12:
        return m.call("random.dirichlet", key, np.float32([1, 2]), shape)
    return m.call("random.rademacher", key, shape)


def kind_is_key(x):
    dtype = getattr(x, "dtype", None)
    return dtype is not None and (
        not isinstance(dtype, np.dtype) or (dtype == np.uint32 and np.shape(x) == (2,))
    )
