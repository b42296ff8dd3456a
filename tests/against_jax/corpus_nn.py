"""Neural networks' functions, initializers and resized images against the reference."""

import importlib

import ml_dtypes
import numpy as np

from tests.against_jax.describe import Anything, Corpus
from tests.support.units import Units

# As in corpus_random: these numbers differ by units in the last place between processors.
SAMPLED = Units(float16=20, bfloat16=8, float32=128)

PLAIN = (
    "celu elu gelu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log_sigmoid "
    "mish relu relu6 selu sigmoid silu soft_sign softplus sparse_plus sparse_sigmoid squareplus "
    "swish tanh"
).split()
ALONG_AXES = ("log_softmax", "logmeanexp", "logsumexp", "softmax", "standardize", "glu")


def draw(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    nn = door("nn")
    elementwise(corpus, jax, nn)
    along_axes(corpus, jax, jnp, nn)
    one_hot(corpus, jax, nn)
    attention(corpus, jax, jnp, nn)
    initializers(corpus, jax, door("nn.initializers"))
    images(corpus, jax, jnp, door("image"))
    return corpus


def elementwise(corpus, jax, nn):
    x = np.array([-7, -3, -1, -0.5, 0, 0.25, 1, 3, 6, 8], np.float32)
    halves = x.astype(ml_dtypes.bfloat16)
    functions = [getattr(nn, name) for name in PLAIN]

    def values(x):
        return [f(x) for f in functions], [f(2.0) for f in functions], nn.log1mexp(abs(x))

    def slopes(x):
        each = [jax.vmap(jax.grad(f))(x) for f in functions]
        return each, jax.vmap(jax.grad(nn.log1mexp))(abs(x) + 0.1)

    corpus.add("activations", values, x, modes=("jit",), tolerance=1e-5)
    corpus.add("activations_slopes", slopes, x, modes=("jit",), tolerance=1e-5)
    corpus.add("activations_eagerly", lambda x: [f(x) for f in functions[::5]], x, tolerance=1e-5)
    corpus.add("activations_of_halves", values, halves, modes=("jit",), tolerance=3e-2)
    for name in (*PLAIN, "log1mexp"):
        function = getattr(nn, name)
        corpus.add(f"{name}_equations", function, x, modes=("equations",))
        corpus.add(
            f"{name}_jvp_equations",
            lambda x, t, f=function: jax.jvp(f, (x,), (t,)),
            x,
            x,
            modes=("equations",),
        )
        for label, given in {
            "integers": np.array([1, 2], np.int8),
            "booleans": np.array([True, False]),
            "complex": np.complex64(1 + 2j),
            "a_list": [1.0, 2.0],
        }.items():
            corpus.add(f"{name}_of_{label}", function, given, modes=("shape",))
    corpus.add("gelu_exact", lambda x: nn.gelu(x, approximate=False), x, tolerance=1e-5)
    corpus.add("gelu_exact_of_a_number", lambda: nn.gelu(1.5, False), tolerance=1e-5)
    corpus.add("elu_of_arrays", lambda x, a: nn.elu(x, a), x, x, tolerance=1e-5)
    corpus.add("celu_of_arrays", lambda x, a: nn.celu(x, a), x, x + 9, tolerance=1e-5)
    corpus.add("leaky_relu_slope", lambda x: nn.leaky_relu(x, 0.3), x)
    corpus.add("squareplus_bend", lambda x: nn.squareplus(x, 1), x, tolerance=1e-5)


def along_axes(corpus, jax, jnp, nn):
    x, mask = draw(3, 4), draw(4, 3).T > -0.3
    functions = [getattr(nn, name) for name in ALONG_AXES]

    def values(x, mask):
        wheres = [f(x, where=mask, axis=1) for f in functions[:-1]]
        axes = [f(x, axis=axis) for f in functions[:-1] for axis in (0, (0, 1), None)]
        gradients = [
            jax.grad(lambda x, f=f: jnp.sum(f(x) * f(x) * x))(x[:2, :2]) for f in functions
        ]
        return [f(x) for f in functions], wheres, axes, gradients

    corpus.add("along_axes", values, x, mask, modes=("jit",), tolerance=1e-4)
    corpus.add(
        "along_axes_of_halves",
        lambda x: [f(x) for f in functions],
        x.astype(np.float16),
        modes=("jit",),
        tolerance=5e-3,
    )
    for name, function in zip(ALONG_AXES, functions, strict=not isinstance(jax, Anything)):
        corpus.add(f"{name}_equations", function, x, modes=("equations",))
        corpus.add(
            f"{name}_gradient_equations",
            jax.grad(lambda x, f=function: jnp.sum(f(x))),
            x,
            modes=("equations",),
        )
        shapes = {"modes": ("shape",)}
        corpus.add(f"{name}_of_integers", function, np.arange(6).reshape(2, 3), **shapes)
        corpus.add(f"{name}_of_booleans", function, np.array([True, False]), **shapes)
        corpus.add(f"{name}_of_a_number", function, 2.0, **shapes)
        corpus.add(f"{name}_of_a_list", function, [1.0, 2.0], **shapes)
        corpus.add(f"{name}_no_such_axis", lambda x, f=function: f(x, axis=4), x, **shapes)
        if name == "glu":
            continue
        corpus.add(
            f"{name}_where_equations",
            lambda x, m, f=function: f(x, where=m, axis=1),
            x,
            mask,
            modes=("equations",),
        )
        corpus.add(f"{name}_where_numbers", lambda x, f=function: f(x, where=x), x, **shapes)
    corpus.add("glu_odd", nn.glu, x.T)
    extremes = np.array([[np.inf, 1], [-np.inf, -np.inf], [np.nan, 1], [1e30, -1e30]], np.float32)
    corpus.add("logsumexp_extremes", lambda x: nn.logsumexp(x, axis=1), extremes)
    corpus.add("softmax_extremes", nn.softmax, extremes)
    corpus.add("log_softmax_extremes", nn.log_softmax, extremes)
    corpus.add("softmax_masked", lambda x: nn.softmax(x, where=False), x)
    corpus.add("softmax_nothing", lambda x: nn.softmax(x, axis=0), np.zeros((0, 3), np.float32))
    corpus.add("logsumexp_nothing", nn.logsumexp, np.zeros((0,), np.float32))
    corpus.add(
        "logsumexp_factors",
        lambda x, b: (
            nn.logsumexp(x, axis=0, b=b, keepdims=True),
            nn.logsumexp(x, b=b, return_sign=True),
            nn.logsumexp(x, axis=1, b=b * b),
            jax.grad(lambda b: nn.logsumexp(x, b=b * b))(b),
        ),
        x,
        draw(3, 4) + 0.2,
        tolerance=1e-5,
        modes=("jit",),
    )
    z = (draw(5) + 1j * draw(6)[:5]).astype(np.complex64)
    corpus.add("logsumexp_complex", lambda z: nn.logsumexp(z), z, tolerance=1e-5)
    corpus.add(
        "logsumexp_complex_sign", lambda z: nn.logsumexp(z, return_sign=True), z, tolerance=1e-5
    )
    corpus.add(
        "standardize_stable",
        lambda x, m: nn.standardize(x, where=m, algorithm="stable", epsilon=0.1),
        x,
        mask,
        tolerance=1e-5,
    )
    corpus.add("standardize_given", lambda x: nn.standardize(x, mean=x[:, :1], variance=2), x)
    corpus.add("standardize_algorithm", lambda x: nn.standardize(x, algorithm="other"), x)
    corpus.add("softmax_x64", nn.softmax, draw(3, 4, dtype=np.float64), x64=True)
    corpus.add("softmax_batched", jax.vmap(nn.softmax, 1), x, tolerance=1e-5)


def one_hot(corpus, jax, nn):
    places = np.array([[0, 2], [1, 7]])
    corpus.add("one_hot_plain", lambda i: nn.one_hot(i, 3), places)
    corpus.add("one_hot_axis", lambda i: nn.one_hot(i, 3, axis=0, dtype=np.int8), places)
    corpus.add("one_hot_list", lambda: nn.one_hot([0, 1, -1], 3))
    corpus.add("one_hot_number", lambda: nn.one_hot(1, 3))
    corpus.add("one_hot_floats", lambda x: nn.one_hot(x, 3), np.array([0.0, 1.5]))
    corpus.add("one_hot_none", lambda i: nn.one_hot(i, 0), places)
    corpus.add("one_hot_booleans", lambda i: nn.one_hot(i, 2), np.array([True]))
    corpus.add("one_hot_no_axis", lambda i: nn.one_hot(i, 2, axis=5), places)
    corpus.add("one_hot_negative", lambda i: nn.one_hot(i, -2), places)
    corpus.add("one_hot_fraction", lambda i: nn.one_hot(i, 2.5), places)
    corpus.add("one_hot_traced", lambda i: jax.jit(nn.one_hot)(i, 3), places)
    corpus.add("one_hot_equations", lambda i: nn.one_hot(i, 3), places, modes=("equations",))
    for name, count in (("one_hot_named", 2), ("one_hot_named_wrong", 3)):
        corpus.add(
            name,
            lambda i, count=count: jax.vmap(
                lambda i: nn.one_hot(i, count, axis="rows"), axis_name="rows"
            )(i),
            places,
        )
    for name, axis in {
        "of_one_name": ("rows",),
        "of_no_name": (),
        "of_a_place": (0,),
        "of_another_name": ("columns",),
        "none": None,
        "float": 1.5,
    }.items():
        for count in (1, 2):
            corpus.add(
                f"one_hot_of_{count}_axis_{name}",
                lambda i, count=count, axis=axis: jax.vmap(
                    lambda i: nn.one_hot(i, count, axis=axis), axis_name="rows"
                )(i),
                places,
            )


def attention(corpus, jax, jnp, nn):
    def f(q, k, **options):
        return nn.dot_product_attention(q, k, k * 0.5, **options)

    q, k = draw(2, 5, 4, 8), draw(2, 6, 2, 8)
    bias, mask = draw(1, 4, 5, 6), draw(2, 1, 5, 6) > -1
    lengths = np.array([2, 5], np.int32)
    for name, options in {
        "plain": {},
        "bias": {"bias": bias},
        "bias_3d": {"bias": bias[0]},
        "mask": {"mask": mask},
        "mask_2d": {"mask": mask[0, 0]},
        "scaled": {"scale": 0.7, "implementation": "xla"},
        "causal": {"is_causal": True},
        "window": {"local_window_size": 1},
        "windows": {"local_window_size": (1, 2), "is_causal": True},
        "lengths": {"query_seq_lengths": lengths, "key_value_seq_lengths": lengths},
        "everything": {
            "bias": bias,
            "mask": mask,
            "is_causal": True,
            "local_window_size": (3, 1),
            "key_value_seq_lengths": lengths,
            "return_residual": True,
        },
        "mask_of_numbers": {"mask": bias},
        "mask_too_large": {"mask": np.ones((3, 4, 5, 6), bool)},
        "lengths_too_many": {"query_seq_lengths": np.ones((3,), np.int32)},
        "implementation": {"implementation": "other"},
        "cudnn": {"implementation": "cudnn"},
    }.items():
        corpus.add(
            f"attention_{name}",
            lambda q, k, o=options: f(q, k, **o),
            q,
            k,
            modes=("jit",),
            tolerance=1e-5,
        )
    corpus.add("attention_unbatched", f, q[0], k[0], tolerance=1e-5)
    corpus.add("attention_heads", f, q[:, :, :3], k)
    corpus.add("attention_dtypes", f, q.astype(np.float16), k)
    corpus.add("attention_shapes", lambda q, k: nn.dot_product_attention(q, k, k[:, :3]), q, k)
    corpus.add("attention_integers", f, q.astype(np.int32), k.astype(np.int32))
    low = [x.astype(ml_dtypes.bfloat16) for x in (q, k)]
    corpus.add("attention_halves", lambda q, k: f(q, k, is_causal=True), *low, tolerance=2e-2)
    corpus.add("attention_equations", f, q, k, modes=("equations",))
    corpus.add(
        "attention_causal_equations",
        lambda q, k: f(q, k, is_causal=True),
        q,
        k,
        modes=("equations",),
    )
    corpus.add(
        "attention_gradients",
        jax.grad(lambda q, k: jnp.sum(f(q, k, is_causal=True) ** 2), (0, 1)),
        q,
        k,
        tolerance=1e-4,
        modes=("jit",),
    )
    corpus.add(
        "scaled_dot_general_plain",
        lambda a, b: nn.scaled_dot_general(a, b, (((2,), (2,)), ((0,), (0,)))),
        q[0][:2],
        q[0][:2],
        tolerance=1e-5,
    )
    corpus.add("scaled_dot_general_mode", lambda: nn.get_scaled_dot_general_config("other"))


def initializers(corpus, jax, make):
    def draws(name, init, shape, dtype=None):
        def initialize():
            return init(jax.random.key(3), shape, *(() if dtype is None else (dtype,)))

        corpus.add(name, initialize, tolerance=SAMPLED)

    for name in ("glorot", "he", "lecun", "xavier", "kaiming"):
        for kind in ("normal", "uniform"):
            draws(f"{name}_{kind}", getattr(make, f"{name}_{kind}")(), (4, 3, 5))
    draws("zeros", make.zeros, (2, 3))
    draws("ones", make.ones, (2, 3), np.float16)
    draws("constant", make.constant(np.arange(3.0)), (2, 3))
    draws("normal", make.normal(0.3), (4, 3), ml_dtypes.bfloat16)
    draws("uniform", make.uniform(2, np.float16), (4, 3))
    draws("truncated_normal", make.truncated_normal(0.5, lower=-1.0), (4, 3))
    draws("he_in_halves", make.he_normal(), (4, 3), ml_dtypes.bfloat16)
    draws("he_axes", make.he_normal(in_axis=0, out_axis=(1, 2)), (4, 2, 3))
    draws("he_batch", make.he_uniform(in_axis=1, out_axis=2, batch_axis=0), (4, 2, 3))
    for kind in ("normal", "uniform", "truncated_normal"):
        scaled = make.variance_scaling(0.7, "fan_geo_avg", kind)
        draws(f"scaled_{kind}", scaled, (3, 5))
        draws(f"scaled_{kind}_complex", scaled, (3, 5), np.complex64)
    key = jax.random.key
    corpus.add("orthogonal", lambda: make.orthogonal(2.0, 0)(key(1), (3, 2, 4)), tolerance=1e-5)
    corpus.add(
        "delta_orthogonal", lambda: make.delta_orthogonal()(key(1), (3, 2, 4)), tolerance=1e-5
    )
    for name, call in {
        "vector": lambda: make.he_normal()(key(0), (4,)),
        "mode": lambda: make.variance_scaling(1.0, "other", "normal")(key(0), (4, 2)),
        "distribution": lambda: make.variance_scaling(1.0, "fan_in", "other")(key(0), (4, 2)),
        "integers": lambda: make.normal()(key(0), (4, 2), int),
        "nothing": lambda: make.he_normal()(key(0), (0, 2)),
        "orthogonal_vector": lambda: make.orthogonal()(key(0), (4,)),
        "delta_matrix": lambda: make.delta_orthogonal()(key(0), (4, 2)),
        "delta_narrow": lambda: make.delta_orthogonal()(key(0), (3, 4, 2)),
        "negative": lambda: make.ones(None, (-3,)),
    }.items():
        corpus.add(f"initializer_of_{name}", call)


def images(corpus, jax, jnp, image):
    x = draw(4, 5)
    for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area"):

        def sizes(x, m=method):
            return image.resize(x, (6, 3), m), image.resize(x, (6, 3), m, antialias=False)

        corpus.add(f"resize_{method}", sizes, x, modes=("jit",), tolerance=1e-4)
    corpus.add(
        "resize_integers", lambda x: image.resize(x, (2, 7), "linear"), np.arange(20).reshape(4, 5)
    )
    corpus.add(
        "resize_same", lambda x: image.resize(x, (4, 5), "cubic"), np.arange(20).reshape(4, 5)
    )
    corpus.add("resize_to_nothing", lambda x: image.resize(x, (0, 5), "linear"), x)
    corpus.add("resize_of_nothing", lambda x: image.resize(x[:0], (4, 5), "linear"), x)
    corpus.add("resize_rank", lambda x: image.resize(x, (4,), "linear"), x)
    corpus.add("resize_method", lambda x: image.resize(x, (4, 5), "other"), x)
    corpus.add(
        "resize_equations", lambda x: image.resize(x, (6, 3), "linear"), x, modes=("equations",)
    )
    corpus.add(
        "resize_gradient",
        jax.grad(lambda x: jnp.sum(image.resize(x, (6, 3), "lanczos3") ** 2)),
        x,
        tolerance=1e-4,
        modes=("jit",),
    )
    scale, move = np.array([1.5], np.float32), np.array([-0.7], np.float32)

    def moved(x, scale, move, shape=(4, 7), dims=(1,), method="linear"):
        return image.scale_and_translate(x, shape, dims, scale, move, method)

    corpus.add("moved", moved, x, scale, move, tolerance=1e-5)
    corpus.add(
        "moved_other_axis",
        lambda *a: moved(*a, (7, 5), (-2,), "cubic"),
        x,
        scale,
        move,
        tolerance=1e-5,
    )
    corpus.add("moved_area", lambda *a: moved(*a, method="area"), x, scale, move, tolerance=1e-5)
    corpus.add("moved_nearest", lambda *a: moved(*a, method="nearest"), x, scale, move)
    corpus.add("moved_numbers", moved, x, np.ones(2, np.float32), move)
    corpus.add(
        "moved_gradients",
        jax.grad(lambda *a: jnp.sum(moved(*a) * 0.5), (0, 1, 2)),
        x,
        scale,
        move,
        tolerance=1e-4,
        modes=("jit",),
    )
