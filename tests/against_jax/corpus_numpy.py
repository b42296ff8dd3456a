"""The numpy functions of every day: values, dtypes and weak types.

Most run under jit, which compiles once for a program of many calls; a few run as they are.
"""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, f8_e4m3, floats, ints, unit


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    creation(corpus, jnp)
    promotion(corpus, jnp)
    ufuncs(corpus, jnp)
    reductions(corpus, jnp)
    shapes(corpus, jnp)
    products(corpus, jnp)
    choosing(corpus, jnp)
    scalars_and_dtypes(corpus, jax, jnp)
    return corpus


def creation(corpus, jnp):
    @corpus.program(modes=("value",))
    def array_of_python_values():
        return (
            jnp.array(1),
            jnp.array(2.0),
            jnp.array(True),
            jnp.array(1j),
            jnp.array([1, 2.5]),
            jnp.array([[1, 2], [3, 4]]),
            jnp.array([]),
            jnp.array([[], []]),
            jnp.array((1, True)),
        )

    @corpus.program(floats(2), ints(2, dtype=np.int8))
    def array_of_numpy(x, n):
        return jnp.array(x), jnp.array(n), jnp.array([x, x]), jnp.array([n, x]), jnp.asarray(x)

    @corpus.program()
    def array_of_arrays():
        a = jnp.array(1.0)
        return jnp.array([a, 2.0]), jnp.array([jnp.ones(2), jnp.zeros(2)]), jnp.asarray(a)

    @corpus.program()
    def array_with_dtype():
        return (
            jnp.array([1, 2], dtype=jnp.float32),
            jnp.array(1.5, dtype=jnp.bfloat16),
            jnp.array([1.7, -1.7], dtype=int),
            jnp.array([0, 2], dtype=bool),
            jnp.array([1, 2], dtype="uint8"),
            jnp.array([1], dtype=float),
            jnp.array([1, 2], ndmin=3),
            jnp.array([0.1, 0.2], dtype=f8_e4m3),
        )

    @corpus.program(np.arange(3), np.arange(3.0))
    def doubles_become_singles(n, x):
        return jnp.array(n), jnp.array(x), jnp.asarray(x)

    @corpus.program()
    def asking_for_64_bits():
        return jnp.zeros(2, dtype=jnp.float64), jnp.array([1], dtype="int64")

    @corpus.program(x64=True)
    def creation_with_x64():
        return (
            jnp.array(1),
            jnp.array([1.0]),
            jnp.arange(3),
            jnp.ones(2),
            jnp.zeros(2, int),
            jnp.linspace(0, 1, 3),
            jnp.array(1.0) + 1,
            jnp.float32(1) + 2.0,
            jnp.full(2, 3),
        )

    @corpus.program(modes=("value",))
    def zeros_ones_full_eye():
        return (
            jnp.zeros(3),
            jnp.ones((2, 1), dtype=jnp.int32),
            jnp.full((2, 2), 7),
            jnp.full((2,), 1.5, dtype=jnp.bfloat16),
            jnp.full((2, 2), jnp.array([1, 2])),
            jnp.eye(3),
            jnp.eye(2, 3, k=1, dtype=jnp.int32),
            jnp.identity(2),
            jnp.zeros(()),
            jnp.zeros((0, 2)),
            jnp.empty((2,)),
        )

    @corpus.program(ints(2, 2))
    def like_another(n):
        return (
            jnp.zeros_like(n),
            jnp.ones_like(n, dtype=jnp.float32),
            jnp.full_like(n, 2.7),
            jnp.zeros_like(1.0),
            jnp.ones_like(n, shape=(3,)),
            jnp.empty_like(n),
        )

    @corpus.program(tolerance=1e-5)
    def ranges():
        return (
            jnp.arange(5),
            jnp.arange(1, 4),
            jnp.arange(0, 1, 0.25),
            jnp.arange(5, 0, -2),
            jnp.arange(3.0),
            jnp.arange(3, dtype=jnp.uint8),
            jnp.arange(0),
            jnp.linspace(0, 1, 5),
            jnp.linspace(0, 10, 4, endpoint=False),
            jnp.linspace(1, 2, 3, retstep=True),
            jnp.linspace(0, 5, 3, dtype=int),
            jnp.logspace(0, 2, 3),
        )

    @corpus.program(floats(3), floats(3, 3))
    def triangles_and_diagonals(v, m):
        return (
            jnp.diag(v),
            jnp.diag(m, k=1),
            jnp.diagonal(m, offset=-1),
            jnp.tril(m),
            jnp.triu(m, k=1),
            jnp.tri(3, 2),
            jnp.trace(m),
        )

    @corpus.program(floats(2), ints(3))
    def grids(x, n):
        return jnp.meshgrid(x, n), jnp.meshgrid(x, n, indexing="ij")


def promotion(corpus, jnp):
    dtypes = [
        np.bool_, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32,
        np.float16, bf16, np.float32, np.complex64,
    ]  # fmt: skip
    scalars = {"bool": True, "int": 2, "float": 1.5, "complex": 1j}
    for dtype in dtypes:
        x = np.ones(2, dtype)

        def with_every_other(x):
            return [jnp.add(x, np.ones(2, other)) for other in dtypes]

        corpus.add(f"promotion_of_{np.dtype(dtype).name}", with_every_other, x)
        corpus.add(
            f"promotion_of_{np.dtype(dtype).name}_by_scalars",
            lambda x: {name: jnp.multiply(x, value) for name, value in scalars.items()},
            x,
        )
        corpus.add(
            f"promotion_of_{np.dtype(dtype).name}_to_inexact",
            lambda x: (jnp.sin(x), jnp.true_divide(x, x), jnp.mean(x), jnp.sum(x), jnp.prod(x)),
            x,
            tolerance=1e-2,
        )

    @corpus.program()
    def promotion_of_scalars():
        values = list(scalars.values())
        return [[jnp.add(a, b) for a in values] for b in values]

    @corpus.program(ints(2, dtype=np.int8), modes=("value",))
    def weak_types_stay_and_go(n):
        weak = jnp.asarray(2)
        return (
            weak,
            weak + weak,
            weak * 1.5,
            n + weak,
            jnp.array(2) + n,
            weak.astype(jnp.int32),
            jnp.sin(2),
            jnp.where(True, 1, 2.0),
            jnp.maximum(1, n),
            -weak,
            jnp.square(2.0),
        )

    @corpus.program(modes=("value",))
    def result_types():
        return (
            jnp.result_type(np.int8, np.float32),
            jnp.result_type(1, np.int8),
            jnp.promote_types("int32", "float16"),
            jnp.promote_types(jnp.bfloat16, jnp.float16),
            jnp.result_type(1.0),
            jnp.result_type(1, 2.0, 1j),
            jnp.result_type(jnp.array(1), jnp.int8),
        )


def ufuncs(corpus, jnp):
    for (
        name
    ) in """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp exp2 expm1 log
        log2 log10 log1p sqrt cbrt square reciprocal abs absolute fabs negative positive sign floor
        ceil trunc rint isnan isinf isfinite signbit deg2rad rad2deg degrees radians sinc
        logical_not conj real imag""".split():
        corpus.add(
            f"ufunc_{name}",
            lambda x, n, name=name: (getattr(jnp, name)(x), getattr(jnp, name)(n)),
            unit(3),
            ints(3) % 2,
            tolerance=1e-5,
        )
    for name in """add subtract multiply divide true_divide floor_divide mod remainder fmod power
        float_power maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2 copysign nextafter
        equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
        heaviside ldexp""".split():
        if name == "ldexp":
            corpus.add("ufunc_ldexp", lambda x, n: jnp.ldexp(x, n), floats(3), ints(3))
            continue
        corpus.add(
            f"ufunc_{name}",
            lambda x, y, n, name=name: (
                getattr(jnp, name)(x, y),
                getattr(jnp, name)(x, 2),
                getattr(jnp, name)(n, x),
            ),
            unit(2, 3),
            floats(3),
            ints(2, 3),
            tolerance=1e-5,
        )
    for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm".split():
        corpus.add(
            f"ufunc_{name}",
            lambda n, m, name=name: (getattr(jnp, name)(n, m), getattr(jnp, name)(m, 3)),
            ints(4),
            np.abs(ints(4)) % 5,
        )

    @corpus.program(ints(3), bools(3))
    def inversions(n, p):
        return jnp.invert(n), jnp.bitwise_not(p), jnp.logical_not(n), ~p

    @corpus.program(floats(4), ints(4))
    def rounding(x, n):
        return jnp.round(x), jnp.round(x, 1), jnp.around(x * 100, -1), jnp.round(n)

    @corpus.program(floats(4), ints(4), modes=("value",))
    def divisions(x, n):
        return jnp.divmod(x, 0.7), jnp.divmod(n, 3), jnp.modf(x), n // 3, n % 3, -n // 3

    @corpus.program(floats(5), modes=("value",))
    def clipping(x):
        return jnp.clip(x, -1, 1), jnp.clip(x, min=0), jnp.clip(x, max=0.5)

    @corpus.program(complexes(3), tolerance=1e-5)
    def of_complex(z):
        return jnp.abs(z), jnp.angle(z), jnp.exp(z), jnp.real(z), z.imag, jnp.conj(z), jnp.sqrt(z)

    @corpus.program(np.array([np.nan, np.inf, -np.inf, 1.0], np.float32))
    def of_odd_numbers(x):
        return (
            jnp.isnan(x),
            jnp.isinf(x),
            jnp.isposinf(x),
            jnp.isneginf(x),
            jnp.nan_to_num(x),
            jnp.maximum(x, 0),
            jnp.sign(x),
            jnp.nansum(x[:1]),
        )

    @corpus.program(np.zeros(2, np.int32))
    def integer_division_by_zero(n):
        return jnp.floor_divide(3, n), jnp.remainder(3, n), 3 / n


def reductions(corpus, jnp):
    for name in "sum prod max min mean var std any all argmax argmin median".split():
        corpus.add(
            f"reduction_{name}",
            lambda x, n, p, name=name: [
                getattr(jnp, name)(x),
                getattr(jnp, name)(x, axis=0),
                getattr(jnp, name)(x, -1),
                getattr(jnp, name)(x, axis=1, keepdims=True),
                getattr(jnp, name)(n),
                getattr(jnp, name)(p.astype(int) if name in ("median", "var", "std") else p),
            ],
            floats(3, 4),
            ints(3, 4),
            bools(3, 4),
            tolerance=1e-5,
        )
    for name in "cumsum cumprod".split():
        corpus.add(
            f"reduction_{name}",
            lambda x, n, name=name: (
                getattr(jnp, name)(x),
                getattr(jnp, name)(x, axis=0),
                getattr(jnp, name)(n, axis=1),
                getattr(jnp, name)(n > 0, axis=1),
            ),
            floats(2, 3),
            ints(2, 3),
            tolerance=1e-5,
        )

    @corpus.program(floats(2, 3, 4), tolerance=1e-5)
    def over_several_axes(x):
        return (
            x.sum((0, 2)),
            jnp.max(x, axis=(0, 1)),
            jnp.mean(x, axis=(-1, 0), keepdims=True),
            jnp.sum(x, axis=()),
            jnp.any(x > 1, axis=(1, 2)),
        )

    @corpus.program(floats(3, 4), tolerance=1e-5)
    def with_options(x):
        return (
            jnp.sum(x, dtype=jnp.bfloat16),
            jnp.sum(x, where=x > 0),
            jnp.max(x, initial=10.0),
            jnp.max(x, axis=0, where=x > 0, initial=-1.0),
            jnp.mean(x, where=x > 0),
            jnp.var(x, ddof=1),
            jnp.std(x, axis=0, ddof=1),
            jnp.prod(x, initial=2),
            jnp.mean(x, dtype=jnp.float16),
        )

    @corpus.program(ints(4, dtype=np.int8), ints(4, dtype=np.uint8), floats(4, dtype=bf16))
    def of_narrow_types(n, m, x):
        return jnp.sum(n), jnp.sum(m), jnp.prod(n), jnp.mean(n), jnp.sum(x), jnp.max(m), x.mean()

    @corpus.program(np.zeros((0, 3), np.float32))
    def of_nothing(x):
        return jnp.sum(x), jnp.prod(x, axis=0), jnp.all(x), jnp.sum(x, axis=1)

    @corpus.program(np.array([1, np.nan, 3, np.nan], np.float32))
    def around_nan(x):
        return jnp.nansum(x), jnp.nanmean(x), jnp.nanmax(x), jnp.max(x), jnp.count_nonzero(x)

    @corpus.program(2.5, 3)
    def of_python_scalars(x, n):
        return jnp.sum(x), jnp.max(n), jnp.mean(n), jnp.all(True)

    @corpus.program(floats(4), floats(4), modes=("value",))
    def are_they_equal(x, y):
        return (
            jnp.allclose(x, y),
            jnp.array_equal(x, x),
            jnp.isclose(x, y),
            jnp.array_equal(x, y[:2]),
        )


def shapes(corpus, jnp):
    @corpus.program(floats(2, 6))
    def reshaping(x):
        return (
            jnp.reshape(x, (3, 4)),
            jnp.reshape(x, -1),
            x.reshape(2, -1, 2),
            jnp.reshape(x, (6, 2), order="F"),
            jnp.ravel(x),
            x.ravel("F"),
            x.flatten(),
            jnp.reshape(x, (12, 1, 1)),
        )

    @corpus.program(floats(2, 3, 4))
    def transposing(x):
        return (
            jnp.transpose(x),
            x.T,
            jnp.transpose(x, (1, 0, 2)),
            x.transpose(2, 0, 1),
            jnp.swapaxes(x, 0, -1),
            jnp.moveaxis(x, 0, 2),
            jnp.moveaxis(x, (0, 1), (-1, 0)),
            jnp.rollaxis(x, 2),
            x.mT,
        )

    @corpus.program(floats(1, 3, 1))
    def adding_and_dropping_axes(x):
        return (
            jnp.squeeze(x),
            jnp.squeeze(x, 0),
            x.squeeze((0, -1)),
            jnp.expand_dims(x, 1),
            jnp.expand_dims(x, (0, -1)),
            jnp.atleast_1d(2.0),
            jnp.atleast_2d(jnp.arange(3)),
            jnp.atleast_3d(x[0]),
        )

    @corpus.program(floats(2, 3), ints(2, 3))
    def joining(x, n):
        return (
            jnp.concatenate([x, n]),
            jnp.concatenate([x, x], axis=1),
            jnp.concatenate([x, x], axis=None),
            jnp.stack([x, n]),
            jnp.stack([x, x], axis=-1),
            jnp.vstack([x, x[0]]),
            jnp.hstack([x, n]),
            jnp.dstack([x, x]),
            jnp.column_stack([x[0], n[0]]),
            jnp.append(x, 1),
            jnp.append(x, x, axis=0),
        )

    @corpus.program(floats(6, 2))
    def splitting(x):
        return (
            jnp.split(x, 3),
            jnp.split(x, [1, 4]),
            jnp.array_split(x, 4),
            jnp.hsplit(x, 2),
            jnp.vsplit(x, 2),
            jnp.unstack(x, axis=1),
        )

    @corpus.program(floats(2, 3), modes=("value",))
    def repeating(x):
        return (
            jnp.tile(x, 2),
            jnp.tile(x, (2, 1, 2)),
            jnp.repeat(x, 2),
            jnp.repeat(x, 2, axis=0),
            jnp.repeat(x, np.array([1, 0, 2]), axis=1),
            jnp.broadcast_to(x, (2, 2, 3)),
            jnp.broadcast_arrays(x, jnp.ones(3)),
        )

    @corpus.program(floats(3, 4))
    def turning(x):
        return (
            jnp.flip(x),
            jnp.flip(x, 0),
            jnp.fliplr(x),
            jnp.flipud(x),
            jnp.roll(x, 1),
            jnp.roll(x, (1, -1), axis=(0, 1)),
            jnp.rot90(x),
        )

    @corpus.program(floats(2, 3))
    def padding(x):
        return (
            jnp.pad(x, 1),
            jnp.pad(x, ((0, 1), (2, 0)), constant_values=7),
            jnp.pad(x, 1, mode="edge"),
            jnp.pad(x, ((1, 1), (2, 2)), mode="reflect"),
            jnp.pad(x, 2, mode="wrap"),
        )

    @corpus.program(floats(2, 3), modes=("value",))
    def asking(x):
        return jnp.shape(x), jnp.ndim(x), jnp.size(x), len(jnp.asarray(x)), jnp.asarray(x).nbytes


def products(corpus, jnp):
    @corpus.program(floats(2, 3), unit(3, 2), floats(3), tolerance=1e-5, modes=("value",))
    def dots(a, b, v):
        return (
            jnp.dot(a, b),
            jnp.dot(a, v),
            jnp.dot(v, v),
            jnp.dot(2.0, a),
            a.dot(b),
            jnp.matmul(a, b),
            jnp.matmul(v, b),
            a @ b,
            jnp.vdot(v, v),
            jnp.inner(a, a),
            jnp.outer(v, v),
            jnp.tensordot(a, b, 1),
            jnp.tensordot(a, b, axes=([0], [1])),
            jnp.kron(a, v),
        )

    @corpus.program(floats(2, 3, 4), unit(2, 4, 2), tolerance=1e-5)
    def dots_of_higher_rank(a, b):
        return (
            jnp.matmul(a, b),
            jnp.dot(a, b[0]),
            jnp.dot(a, b),
            jnp.tensordot(a, b, ((0, 2), (0, 1))),
        )

    @corpus.program(ints(2, 3), floats(3), complexes(3), tolerance=1e-5)
    def dots_of_kinds(n, x, z):
        return jnp.dot(n, x), n @ n.T, jnp.vdot(z, z), jnp.dot(z, x), jnp.dot(n > 0, x)

    @corpus.program(floats(2, 3, dtype=bf16), floats(3, 2, dtype=bf16))
    def dots_with_a_wider_result(a, b):
        return a @ b, jnp.matmul(a, b, preferred_element_type=jnp.float32)

    for spec, ranks in {
        "ij,jk->ik": (2, 2),
        "ij,jk": (2, 2),
        "ij->ji": (2,),
        "ii->i": (2,),
        "ii": (2,),
        "ij->": (2,),
        "i,j->ij": (1, 1),
        "bij,bjk->bik": (3, 3),
        "...ij,...jk->...ik": (3, 2),
        "ij,j,k->ik": (2, 1, 1),
        "i,i->": (1, 1),
        "ijk,k->ji": (3, 1),
    }.items():
        corpus.add(
            f"einsum {spec}",
            lambda *xs, spec=spec: jnp.einsum(spec, *xs),
            *(floats(*(2,) * rank) for rank in ranks),
            tolerance=1e-5,
        )

    @corpus.program(floats(5), unit(3), tolerance=1e-5)
    def convolving(x, k):
        return jnp.convolve(x, k), jnp.convolve(x, k, mode="same"), jnp.correlate(x, k)

    @corpus.program(floats(3), floats(3), tolerance=1e-5)
    def cross_products(a, b):
        return jnp.cross(a, b)


def choosing(corpus, jnp):
    @corpus.program(floats(2, 3), ints(2, 3), bools(3), modes=("value",))
    def where(x, n, p):
        return (
            jnp.where(p, x, n),
            jnp.where(x > 0, x, 0),
            jnp.where(n, 1.0, 2),
            jnp.where(p[:, None], 1, jnp.arange(2)),
            jnp.where(x > 0),
            jnp.where(p, size=4, fill_value=-1),
            jnp.where(True, x, 0.0),
        )

    @corpus.program(floats(2, 3), ints(2, 3))
    def select_and_choose(x, n):
        return (
            jnp.select([x > 1, x > 0], [x, n], default=-1),
            jnp.choose(np.array([0, 1, 0]), [x[0], x[1]], mode="clip"),
            jnp.piecewise(x, [x < 0, x >= 0], [-1.0, lambda v: v * 2]),
        )

    @corpus.program(floats(3, 4), ints(6), modes=("value",))
    def sorting(x, n):
        return (
            jnp.sort(x),
            jnp.sort(x, axis=0),
            jnp.sort(x, axis=None),
            jnp.sort(n, descending=True),
            jnp.argsort(x),
            jnp.argsort(n, stable=True),
            jnp.argsort(x, axis=0),
            n.sort(),
            x.argsort(),
        )

    @corpus.program(ints(8), bools(2, 3), modes=("value",))
    def finding(n, p):
        return (
            jnp.nonzero(n),
            jnp.nonzero(p),
            jnp.flatnonzero(n),
            jnp.argwhere(p),
            jnp.unique(n % 4),
            jnp.unique(n % 4, return_counts=True),
            jnp.count_nonzero(p, axis=0),
            jnp.searchsorted(jnp.sort(n), 2),
        )

    @corpus.program(floats(3, 4), ints(2) % 3, modes=("value",))
    def taking(x, i):
        return (
            jnp.take(x, i),
            jnp.take(x, i, axis=0),
            jnp.take(x, 1, axis=1),
            jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
            jnp.compress(jnp.array([True, False, True]), x, axis=0),
        )


def scalars_and_dtypes(corpus, jax, jnp):
    @corpus.program(modes=("value",))
    def scalar_makers():
        return (
            jnp.float32(1),
            jnp.int8(3),
            jnp.bfloat16(0.5),
            jnp.bool_(1),
            jnp.uint32(7),
            jnp.complex64(2),
            jnp.float32([1, 2]),
            jnp.int32(2.9),
        )

    @corpus.program(modes=("value",))
    def constants():
        return (
            jnp.pi,
            jnp.e,
            jnp.inf,
            jnp.newaxis is None,
            jnp.euler_gamma,
            jnp.float32(jnp.nan) == 0,
        )

    @corpus.program(modes=("value",))
    def about_dtypes():
        return (
            int(jnp.iinfo(jnp.int8).max),
            float(jnp.finfo(jnp.float32).eps),
            float(jnp.finfo(jnp.bfloat16).max),
            jnp.issubdtype(jnp.bfloat16, jnp.floating),
            jnp.issubdtype(jnp.int8, jnp.integer),
            jnp.dtype("float32"),
            jnp.isdtype(jnp.float32, "real floating"),
            jnp.can_cast(np.int8, np.float32),
        )

    @corpus.program(floats(2))
    def casting(x):
        return (
            jnp.asarray(x).astype(int),
            jnp.asarray(x).astype("bfloat16"),
            jnp.astype(jnp.asarray(x), jnp.int8),
            jnp.asarray(x).view(jnp.int32),
            jnp.asarray([3.7, -3.7]).astype(jnp.uint8),
            jnp.asarray([300, -1]).astype(jnp.int8),
        )
