"""Taylor mode against the reference: terms of series, their types and structures, and refusals."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

ROW = np.array([0.3, 0.7, 1.2], np.float32)
OTHER = np.array([0.5, -0.4, 2.0], np.float32)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        module = jax
    else:
        module = importlib.import_module(f"{jax.__name__}.experimental.jet")

    def jet(fun, primals, series):
        """What jet gives of arrays on a device: of NumPy's, the reference computes with NumPy."""
        return module.jet(fun, [jnp.asarray(x) for x in primals], series)

    of_one_operand(corpus, jet, jnp, lax)
    of_two_operands(corpus, jet, jnp, lax)
    of_arrays(corpus, jet, jax, jnp)
    results_and_arguments(corpus, module, jax, jnp)
    other_packages(corpus, module, jax)
    refused(corpus, module.jet, jnp)
    return corpus


def of_one_operand(corpus, jet, jnp, lax):
    names = (
        "exp expm1 log log1p sqrt rsqrt sin cos sinh cosh tanh asinh atanh logistic erf erfc "
        "erf_inv abs neg square floor sign"
    )
    for name in names.split():

        def along(x, first, second, f=getattr(lax, name)):
            return jet(f, (x,), ((first, second, first),))

        corpus.add(name, along, ROW / 2, OTHER, ROW, tolerance=2e-4)
    for exponent in (-2, 2, 3, 5):

        def powers(x, first, n=exponent):
            return jet(lambda y: y**n, (x,), ((first, x),))

        corpus.add(f"integer_pow_{exponent}", powers, ROW, OTHER, tolerance=1e-5)

    @corpus.program(np.complex64(0.5 + 1j), tolerance=1e-5)
    def complex_sine(x):
        return jet(jnp.sin, (x,), ((x, x * x),))


def of_two_operands(corpus, jet, jnp, lax):
    for name in "add sub mul div max min pow atan2 rem".split():

        def along(x, y, f=getattr(lax, name)):
            return jet(f, (x, y), ((y, x), (x, y)))

        corpus.add(name, along, ROW, np.abs(OTHER), tolerance=1e-4)

        def by_first(x, y, f=getattr(lax, name)):
            return jet(lambda z: f(z, y), (x,), ((y, x),))

        corpus.add(f"{name}_by_first", by_first, ROW, np.abs(OTHER), tolerance=1e-4)

    @corpus.program(np.float32(1))
    def ties(x):
        return jet(jnp.maximum, (x, x), ((x, 2 * x), (4 * x, 5 * x)))


def of_arrays(corpus, jet, jax, jnp):
    def add(name, function, tolerance=1e-5):
        corpus.add(
            name, lambda x, y: jet(function, (x,), ((y, x, y),)), ROW, OTHER, tolerance=tolerance
        )

    add("dot", lambda x: jnp.dot(x, x + 1))
    add("sum_of_products", lambda x: jnp.sum(x[:, None] * jnp.arange(4.0)))
    add("largest", jnp.max)
    add("cumulative_product", jnp.cumprod)
    add("cumulative_sum", jnp.cumsum)
    add("elements", lambda x: x[np.array([2, 0])] * x[1:])
    add("joined", lambda x: jnp.concatenate([x, jnp.ones(2), x * x]))
    add("chosen", lambda x: jnp.where(x > 0.5, x * x, jnp.sin(x)))
    add("padded", lambda x: jnp.pad(x * x, 1))
    add("softmax", jax.nn.softmax)
    add("norm", lambda x: jnp.sqrt(jnp.sum(x * x)))
    add("within_jit", jax.jit(lambda x: jnp.sin(x) * x))
    add("of_vmap", jax.vmap(lambda x: jnp.exp(x) / x))
    add("of_grad", jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)))
    add("spectrum", lambda x: jnp.real(jnp.fft.fft(x)), 1e-4)


def results_and_arguments(corpus, module, jax, jnp):
    jet = module.jet

    @corpus.program(np.float32(0.5))
    def structure(x):
        x = jnp.asarray(x)
        return jet(lambda y: {"sine": jnp.sin(y), "both": (y, [y * y])}, (x,), ((x, x),))

    @corpus.program(np.float32(0.5))
    def constants(x):
        x = jnp.asarray(x)
        return jet(lambda y: (y, jnp.ones(2), jnp.floor(y) > 0), (x,), ((x, x),))

    @corpus.program(np.float32(0.5))
    def coefficients(x):
        return (
            jet(jnp.sin, (x,), ((x, x, x),), factorial_scaled=False),
            module.jet2(jnp.sin, (x,), ((x, x, x),)),
        )

    @corpus.program(np.float32(0.5))
    def no_terms(x):
        return jet(jnp.sin, (x,), ((),))

    @corpus.program(np.float32(0.5))
    def lists_and_more_keywords(x):
        return jet(jnp.sin, [x], [[x, 1.0]], unknown=1)

    @corpus.program(np.float32(0.5), tolerance=1e-5)
    def of_jet(x):
        return jet(lambda y: jet(jnp.sin, (y,), ((1.0, 0.0),)), (x,), ((1.0, 0.0),))

    @corpus.program(ROW)
    def in_vmap_and_grad(x):
        second = lambda y: jet(jnp.sin, (y,), ((1.0, 0.0),))[1][1]
        return jax.vmap(second)(x), jax.grad(second)(x[0])

    @corpus.program(np.float64(0.5), x64=True, tolerance=1e-6)
    def in_64_bits(x):
        return jet(jnp.exp, (x,), ((x, x),))


def other_packages(corpus, module, jax):
    @corpus.program(np.float32(0.5))
    def rules_of_other_primitives(x):
        if isinstance(jax, Anything):
            return None
        x = jax.numpy.asarray(x)
        extend = importlib.import_module(f"{jax.__name__}.extend.core")

        def primitive(name, function):
            made = extend.Primitive(name)
            made.def_impl(function)
            made.def_abstract_eval(lambda aval, *_: aval)
            return made

        own = primitive("own", lambda x, y: x * y)
        module.jet_rules[own] = lambda primals, series: (
            primals[0] * primals[1],
            [a * primals[1] + b for a, b in zip(*series, strict=True)],
        )
        line = primitive("line", lambda x: 2 * x)
        module.deflinear(line)
        step = primitive("step", jax.numpy.floor)
        module.defzero(step)
        sine = primitive("sine", jax.numpy.sin)
        module.def_deriv(sine, jax.numpy.cos)
        cube = primitive("cube", lambda x: x**3)
        module.def_comp(cube, lambda x: x * x * x)
        each = (lambda y: own.bind(y, 3.0), line.bind, step.bind, sine.bind, cube.bind)
        return [module.jet(f, (x,), ((x, x, x),)) for f in each]


def refused(corpus, jet, jnp):
    def add(name, *args):
        corpus.add(f"refused_{name}", lambda: jet(*args))

    add("no_function", 3, (1.0,), ((1.0,),))
    add("no_arguments", lambda: 3.0, (), ())
    add("series_of_different_lengths", jnp.add, (0.5, 1.0), ((1.0, 2.0), (1.0,)))
    add("a_number_for_arguments", jnp.sin, 0.5, ((1.0,),))
    add("a_number_for_series", jnp.sin, (0.5,), 1.0)
    add("a_number_for_terms", jnp.sin, (0.5,), (1.0,))
    add("a_dictionary", lambda d: d["a"], ({"a": 0.5},), ({"a": [1.0]},))
    add("a_term_that_is_a_list", jnp.sin, (0.5,), (([1.0], 2.0),))
    add("text", jnp.sin, ("a",), ((1.0,),))
    add("a_term_that_is_text", jnp.sin, (0.5,), (("a",),))
    add("shapes", lambda x: x * x, (ROW,), ((np.ones((2, 3), np.float32), ROW),))
