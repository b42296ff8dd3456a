"""Operations on arrays that are drawn: elementwise, reductions, shapes, contractions, dtypes."""

import math
import operator

import numpy as np

from tests.against_jax.fuzz.machine import kind_of, operation

# By what may be given: any kind, no complex numbers, positive ones, those within (-1, 1), floats.
UNARY = {
    "any": (
        "jnp.sin jnp.cos jnp.tanh jnp.square jnp.negative jnp.abs jnp.sign jnp.positive jnp.conj "
        "jnp.real jnp.imag jnp.isfinite jnp.isnan jnp.logical_not jnp.sinc jnp.zeros_like "
        "jnp.ones_like jnp.asarray jnp.array jnp.atleast_2d jnp.ravel jnp.nan_to_num jnp.exp2 "
        "operator.neg operator.pos operator.abs jnp.isreal jnp.angle jnp.iscomplex jnp.expm1 "
        "lax.stop_gradient lax.optimization_barrier nn.sigmoid nn.tanh nn.silu jnp.reciprocal"
    ),
    "real": (
        "jnp.floor jnp.ceil jnp.trunc jnp.rint jnp.deg2rad jnp.cbrt jnp.fabs jnp.signbit nn.relu "
        "nn.relu6 nn.elu nn.softplus nn.celu nn.selu nn.hard_tanh nn.hard_sigmoid nn.soft_sign "
        "nn.leaky_relu nn.log_sigmoid nn.gelu nn.mish nn.squareplus jnp.arcsinh jnp.arctan "
        "special.erf special.expit jnp.heaviside jnp.modf jnp.frexp "
        "nn.hard_swish nn.sparse_plus nn.relu"
    ),
    "positive": (
        "jnp.log jnp.sqrt jnp.log1p jnp.log2 jnp.arccosh special.gammaln special.digamma "
        "jnp.log10 special.i0e special.entr"
    ),
    "unit": (
        "jnp.exp jnp.arcsin jnp.arccos jnp.arctanh jnp.sinh jnp.cosh jnp.tan special.erfinv "
        "jnp.expm1"
    ),
    "float": (
        "lax.sin lax.exp2 lax.logistic lax.rsqrt lax.is_finite lax.erf lax.erfc lax.tanh "
        "lax.square lax.sign lax.neg lax.abs lax.cbrt lax.tan lax.floor lax.round lax.expm1"
    ),
    "integer": (
        "jnp.bitwise_not operator.invert lax.population_count lax.clz lax.bitwise_not "
        "jnp.bitwise_count"
    ),
}
UNARY = {kind: names.split() for kind, names in UNARY.items()}


@operation(6)
def unary(m, d, values):
    kind = d.of(("any", "any", "any", "real", "real", "positive", "unit", "float", "integer"))
    name = d.of(UNARY[kind])
    if kind == "any":
        return m.call(name, m.pick(d, values))
    if kind == "integer":
        return m.call(name, m.pick(d, values, "iu"))
    if kind == "float":
        return m.call(name, m.as_kind(m.pick_array(d, values, "f"), "f"))
    x = m.pick(d, values, "biuf" if kind == "real" else "f")
    if kind == "positive":
        x = m.jnp.abs(x) + 0.5
    if kind == "unit":
        x = m.jnp.tanh(x) * 0.9
    if name in ("jnp.heaviside",):
        return m.call(name, x, 0.5)
    return m.call(name, x)


BINARY = {
    "any": (
        "jnp.add jnp.subtract jnp.multiply jnp.equal jnp.not_equal operator.add operator.sub "
        "operator.mul operator.eq operator.ne jnp.logical_and jnp.logical_or jnp.logical_xor "
        "operator.add operator.mul operator.sub"
    ),
    "real": (
        "jnp.maximum jnp.minimum jnp.less jnp.greater_equal operator.lt operator.ge jnp.arctan2 "
        "jnp.logaddexp jnp.fmax jnp.copysign jnp.logaddexp2 operator.gt operator.le "
        "jnp.fmin"
    ),
    "divide": (
        "jnp.divide jnp.true_divide operator.truediv jnp.floor_divide operator.floordiv "
        "jnp.remainder operator.mod jnp.fmod divmod jnp.divmod"
    ),
    "integer": (
        "jnp.bitwise_and jnp.bitwise_or jnp.bitwise_xor operator.and_ operator.or_ operator.xor "
        "jnp.left_shift jnp.right_shift operator.lshift operator.rshift"
    ),
}
BINARY = {kind: names.split() for kind, names in BINARY.items()}


@operation(7)
def binary(m, d, values):
    kind = d.of(("any", "any", "any", "real", "divide", "integer"))
    name = d.of(BINARY[kind])
    kinds = {"any": "biufc", "real": "biuf", "divide": "iuf", "integer": "iu"}[kind]
    x = m.pick(d, values, kinds)
    y = m.second(d, x, values, kinds)
    if kind == "divide":
        y = m.jnp.abs(y) + 1
    if name == "divmod":
        if not hasattr(x, "aval") and not hasattr(y, "aval"):
            x = m.jnp.asarray(x)
        return m.applied(name, divmod, x, y)
    if name in ("operator.lshift", "operator.rshift", "jnp.left_shift", "jnp.right_shift"):
        y = m.jnp.clip(y, 0, 3).astype(m.jnp.result_type(y))
    if name.startswith("operator") and not (hasattr(x, "aval") or hasattr(y, "aval")):
        x = m.jnp.asarray(x)
    if d.chance(0.3):
        x, y = y, x
        if kind == "divide":
            y = m.jnp.abs(y) + 1
    return m.call(name, x, y)


@operation(2)
def lax_binary(m, d, values):
    name = d.of("add sub mul max min div rem pow atan2 eq lt ge ne nextafter bitwise_and".split())
    if name == "bitwise_and":
        x = m.pick_array(d, values, "biu")
    elif name in ("pow", "atan2", "nextafter"):
        x = m.pick_array(d, values, "f")
    else:
        x = m.pick_array(d, values, "iuf")
    y = m.fit(m.pick(d, values, "biuf"), x)
    if name in ("div", "rem"):
        y = m.jnp.abs(y) + np.ones((), y.dtype)
    if name == "pow":
        x = m.jnp.abs(x) + 0.5
        if d.chance(0.3):
            y = 2
    elif d.chance(0.2):
        y = {"b": True, "f": 1.5}.get(kind_of(x), 2)
    return m.call(f"lax.{name}", x, y)


@operation(2)
def power(m, d, values):
    x = m.pick(d, values)
    form = d.below(4)
    if form == 0:
        x = x if hasattr(x, "aval") else m.jnp.asarray(x)
        exponent = d.of((0, 1, 2, 3, 2.0, True, np.int32(2)))
        return m.applied("operator.pow", operator.pow, x, exponent)
    if form == 1:
        x = m.pick_array(d, values, "iufc")
        return m.call("lax.integer_pow", x, d.of((0, 1, 2, 3, -1 if kind_of(x) in "fc" else 4)))
    if form == 2:
        x = m.pick(d, values, "biuf")
        y = m.jnp.abs(m.second(d, x, values, "biu"))
        return m.call(d.of(("jnp.power", "operator.pow")), m.jnp.asarray(x), m.jnp.minimum(y, 3))
    x = m.jnp.abs(m.pick(d, values, "f")) + 0.5
    return m.call(d.of(("jnp.power", "jnp.float_power")), x, m.second(d, x, values, "f"))


@operation(2)
def choice(m, d, values):
    x = m.pick(d, values)
    y = m.second(d, x, values)
    form = d.below(5)
    if form == 0:
        condition = m.meet(m.jnp.asarray(x) * m.jnp.asarray(y), m.pick(d, values, "b"))
        return m.call("jnp.where", condition, x, y)
    if form == 1:
        x = m.pick_array(d, values)
        y = m.fit(y, x)
        return m.call("lax.select", x == y, x, y)
    if form == 2:
        x = m.pick(d, values, "biuf")
        low, high = d.of(((0, 1), (-1, None), (None, 1.5), (0.0, 2)))
        return m.call("jnp.clip", x, low, high)
    if form == 3:
        x = m.pick_array(d, values, "iuf")
        return m.call("lax.clamp", m.fit(1, x), x, m.fit(2, x)) if x.dtype.kind != "u" else x
    x = m.pick_array(d, values)
    y, z = m.fit(y, x), m.fit(0, x)
    return m.call("jnp.select", [x == y, x != z], [y, z], d.of((0, x)))


REDUCTIONS = {
    "any": "sum mean prod any all count_nonzero std var".split(),
    "real": "max min argmax argmin ptp median nanmax nansum nanmean nanargmin average".split(),
    "cumulative": "cumsum cumprod nancumsum".split(),
    "special": "logsumexp softmax log_softmax standardize norm cumlogsumexp cummax cummin".split(),
}

METHODS = "sum mean prod any all max min argmax cumsum std var".split()


@operation(6)
def reduction(m, d, values):
    kind = d.of(("any", "any", "real", "cumulative", "special"))
    name = d.of(REDUCTIONS[kind])
    kinds = {"any": "biufc", "real": "biuf", "cumulative": "biufc", "special": "f"}[kind]
    x = m.pick_array(d, values, kinds)
    rank = np.ndim(x)
    axis = d.of((None, d.between(-rank, rank - 1), d.between(-rank, rank - 1)))
    options = {}
    if kind == "special":
        axis = d.between(-rank, rank - 1)
        if name == "logsumexp":
            return m.call("nn.logsumexp", x, axis=axis, keepdims=d.chance(0.3))
        if name == "norm":
            return m.call("jnp.linalg.norm", x, d.of((None, 1, 2, np.inf)), axis=axis)
        if name.startswith("cum"):
            return m.call(f"lax.{name}", x, axis % rank, reverse=d.chance(0.4))
        return m.call(f"nn.{name}", x, axis)
    if kind == "any" and rank > 1 and d.chance(0.3):
        axis = tuple(d.some(range(rank), 0, rank))
    if kind != "cumulative" and d.chance(0.3):
        options["keepdims"] = True
    if name in ("sum", "prod", "cumsum", "cumprod", "mean") and d.chance(0.2):
        options["dtype"] = d.of(("float32", "int32", "bfloat16", "complex64"))
        if kind_of_text(options["dtype"]) != "c" and x.dtype.kind == "c":
            options["dtype"] = "complex64"
    if name in ("sum", "prod", "mean", "any", "all") and d.chance(0.2):
        options["where"] = m.meet(x, x != 0)
    if name in ("sum", "max", "prod", "min") and d.chance(0.15):
        options["initial"] = 1
    # jax's methods ignore `initial`.
    if "initial" not in options and d.chance(0.4) and name in METHODS:
        return m.method(x, name, axis, **options)
    return m.call(f"jnp.{name}", x, axis=axis, **options)


def kind_of_text(name):
    return name[0]


@operation(7)
def shape(m, d, values):
    x = m.pick(d, values) if d.chance(0.3) else m.pick_array(d, values)
    sizes = np.shape(x)
    rank = len(sizes)
    form = d.below(20)
    if form == 0 or rank == 0:
        return m.call("jnp.expand_dims", x, d.of((0, -1, (0, 1), (0, -1))))
    axis = d.between(-rank, rank - 1)
    other = d.between(-rank, rank - 1)
    if form == 1:
        return m.call("jnp.reshape", x, d.of((-1, (-1, 1), (1, -1), (sizes[0], -1), sizes[::-1])))
    if form == 2:
        return m.call("jnp.transpose", x, d.of((None, tuple(d.some(range(rank), rank, rank)))))
    if form == 3:
        return m.call(d.of(("jnp.swapaxes", "jnp.moveaxis")), x, axis, other)
    if form == 4:
        ones = [i for i, size in enumerate(sizes) if size == 1]
        return m.call("jnp.squeeze", x, d.of((None, d.of(ones) if ones else None)))
    if form == 5:
        return m.call("jnp.broadcast_to", x, (*d.of(((), (2,), (1, 2))), *sizes))
    if form == 6:
        return m.call("jnp.flip", x, d.of((None, axis)))
    if form == 7:
        return m.call("jnp.roll", x, d.between(-2, 2), d.of((None, axis)))
    if form == 8:
        return m.call("jnp.tile", x, d.of((2, (1, 2), ())))
    if form == 9:
        repeats = d.of((2, 0, np.arange(sizes[axis]) % 2 + 1))
        return m.call("jnp.repeat", x, repeats, axis=axis)
    if form == 10:
        mode = d.of(("constant", "edge", "reflect", "wrap", "symmetric"))
        width = d.of((1, (0, 1), [(1, 0)] * rank))
        return m.call("jnp.pad", x, width, mode=mode)
    if form in (11, 12):
        parts = [x, m.fit(m.pick(d, values), x), *([x] if d.chance(0.3) else [])]
        if d.chance(0.3):
            parts[1] = m.jnp.asarray(parts[1]).astype(d.of(("float32", "int32", "bool")))
        if form == 12:
            return m.call("jnp.stack", parts, d.between(-rank - 1, rank))
        return m.call("jnp.concatenate", parts, d.of((axis, axis, None)))
    if form == 13:
        return m.call(d.of(("jnp.array_split", "jnp.split")), x, sizes[axis] or 1, axis)
    if form == 14:
        x = x if rank > 1 else m.jnp.stack([x, x])
        return m.call(d.of(("jnp.tril", "jnp.triu", "jnp.rot90", "jnp.diagonal", "jnp.trace")), x)
    if form == 15:
        return m.call("jnp.diag", x if rank <= 2 else m.jnp.ravel(x), d.between(-1, 1))
    if form == 16:
        padding = [(d.between(-1, 2), d.between(0, 2), d.between(0, 1)) for _ in sizes]
        x = m.jnp.asarray(x)
        return m.call("lax.pad", x, m.jnp.zeros((), x.dtype), padding)
    if form == 17:
        starts = [d.between(0, size) for size in sizes]
        ends = [d.between(start, size) for start, size in zip(starts, sizes, strict=True)]
        return m.call("lax.slice", x, starts, ends, d.of((None, [d.between(1, 2) for _ in sizes])))
    if form == 18:
        return m.call("lax.rev", m.jnp.asarray(x), d.some(range(rank), 0, rank))
    places = sorted(d.some(range(rank + 1), rank, rank))
    target = [2] * (rank + 1)
    for place, size in zip(places, sizes, strict=True):
        target[place] = size
    return m.call("lax.broadcast_in_dim", m.jnp.asarray(x), target, places)


@operation(4)
def contraction(m, d, values):
    x = m.pick_array(d, values, "biufc")
    form = d.below(8)
    size = np.shape(x)[-1]
    y = m.jnp.resize(m.pick_array(d, values, "biufc"), (size, 2))
    if form == 0:
        return m.call(d.of(("jnp.dot", "jnp.matmul", "operator.matmul")), x, y)
    if form == 1:
        options = d.of(({}, {"preferred_element_type": "float32"}, {"precision": "highest"}))
        if x.dtype.kind == "c" or y.dtype.kind == "c":
            options = {}
        return m.call(
            "jnp.einsum", "...i,ij->...j" if d.chance(0.5) else "...i,ij", x, y, **options
        )
    if form == 2:
        return m.call("jnp.tensordot", x, y, d.of((1, ([-1], [0]), 0)))
    if form == 3:
        x = m.jnp.ravel(x)[:6]
        return m.call(d.of(("jnp.outer", "jnp.kron")), x, y[:, 0])
    if form == 4:
        return m.call(d.of(("jnp.vdot", "jnp.inner")), x.reshape(-1, size)[0], y[:, 1])
    if form == 5:
        x = x.reshape(-1, size)
        y = y.astype(x.dtype)
        return m.call("lax.dot_general", x, y, (((1,), (0,)), ((), ())))
    if form == 6:
        x = m.jnp.asarray(m.jnp.ravel(x), "float32") if x.dtype.kind != "c" else m.jnp.ravel(x)
        mode = d.of(("full", "same", "valid"))
        return m.call(d.of(("jnp.convolve", "jnp.correlate")), x, y[:, 0], mode=mode)
    x = m.jnp.resize(m.as_kind(m.jnp.ravel(x), "f"), (1, 2, 4)).astype("float32")
    kernel = m.jnp.resize(m.as_kind(m.jnp.ravel(y), "f"), (2, 2, 2)).astype("float32")
    padding = d.of(("SAME", "VALID", [(1, 0)]))
    return m.call("lax.conv_general_dilated", x, kernel, (d.between(1, 2),), padding)


@operation(1)
def linear_algebra(m, d, values):
    jnp = m.jnp
    a = m.matrix(d, values, d.of(("f", "f", "c")))
    size = a.shape[0]
    a = jnp.tanh(jnp.abs(a) if d.chance(0.2) else a.real) * 0.3 + (0 * a + jnp.eye(size)) * 2
    b = jnp.resize(m.pick_array(d, values, "f"), (size,)).astype(a.dtype)
    form = d.below(9)
    if form == 0:
        return m.call("jnp.linalg.solve", a, b)
    if form == 1:
        return m.call(d.of(("jnp.linalg.inv", "jnp.linalg.det", "linalg.expm")), a)
    if form == 2:
        return m.call("jnp.linalg.slogdet", a)
    if form == 3:
        return m.call("jnp.linalg.cholesky", a @ a.conj().T)
    if form == 4:
        return m.call("linalg.solve_triangular", a, b, d.of((0, 1)), d.chance(0.5))
    if form == 5:
        return m.call("jnp.linalg.matrix_power", a, d.between(-1, 3))
    if form == 6:
        return m.call("jnp.linalg.eigvalsh", a + a.conj().T)
    if form == 7:
        options = {"left_side": True, "lower": d.chance(0.5), "transpose_a": d.chance(0.5)}
        return m.call("lax.linalg.triangular_solve", a, b[:, None], **options)
    return m.call("linalg.cho_solve", (jnp.linalg.cholesky(a @ a.conj().T), True), b)


@operation(3)
def conversion(m, d, values):
    x = m.pick(d, values)
    form = d.below(7)
    dtype = d.of("float32 bfloat16 float16 int32 int8 uint8 bool complex64".split())
    if np.ndim(x) == 0 and not hasattr(x, "dtype"):
        return m.call("jnp.asarray", x, d.of((None, dtype)))
    if x.dtype.kind == "c" or dtype in ("int32", "int8", "uint8"):
        x = m.as_kind(x, "i") if dtype[0] in "iu" else x
        dtype = dtype if dtype[0] in "iuc" else "complex64"
    if form == 0:
        return m.method(x, "astype", dtype)
    if form == 1:
        return m.call("lax.convert_element_type", x, dtype)
    if form == 2:
        return m.call("jnp.full_like", x, d.of((1, 2.0)), dtype=d.of((None, dtype)))
    if form == 3:
        x = m.pick_array(d, values, "f")
        return m.call("lax.reduce_precision", x, 5, 7)
    if form == 4:
        x = m.pick_array(d, values, "iuf")
        same = {1: "uint8", 2: "uint16", 4: "int32", 8: "uint32"}[x.dtype.itemsize]
        return m.call("lax.bitcast_convert_type", m.lax.stop_gradient(x), same)
    if form == 5:
        return m.call("jnp.round", m.pick(d, values, "iuf"), d.between(0, 2))
    return m.call("jnp.array", [m.scalar(x), d.of((1, 2.0, True))])


@operation(1)
def made(m, d, values):
    dtype = d.of((None, "float32", "int32", "bfloat16"))
    form = d.below(6)
    if form == 0:
        return m.call("jnp.arange", d.between(0, 4), dtype=dtype)
    if form == 1:
        x = m.pick(d, values, "f")
        return m.call("jnp.linspace", 0, m.scalar(x), 4, endpoint=d.chance(0.5))
    if form == 2:
        return m.call(d.of(("jnp.zeros", "jnp.ones")), (d.between(0, 3), 2), dtype)
    if form == 3:
        return m.call("jnp.eye", d.between(1, 3), d.of((None, 2)), d.between(-1, 1), dtype)
    if form == 4:
        return m.call("lax.broadcasted_iota", dtype or "int32", (2, 3), d.between(0, 1))
    return m.call("jnp.full", (2, math.prod(())), m.scalar(m.pick(d, values)))
