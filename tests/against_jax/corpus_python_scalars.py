"""Python scalars that are differentiated: what comes out, and what Python may ask of them."""

import importlib

import numpy as np

from tests.against_jax.describe import Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("repr",))
    classes_of_results(corpus, jax, jnp, lax)
    arguments_of_rules(corpus, jax, jnp)
    questions(corpus, jax, jnp, lax)
    values_of_numpy(corpus, jax, jnp)
    jacobians_of_integers(corpus, jax)
    checked(corpus, jax)
    seeds(corpus, jax, jnp)
    scalars_with_a_dtype(corpus, jax, jnp, lax)
    integers_out_of_range(corpus, jax, jnp, lax)
    cotangents_of_integers(corpus, jax, jnp)
    return corpus


def integers_out_of_range(corpus, jax, jnp, lax):
    """No function may take or return an integer that the default dtype does not hold."""
    product = jax.custom_jvp(lambda x, n: x * n)
    product.defjvp(lambda primals, tangents: (product(*primals), tangents[0] * primals[1]))
    scaled = jax.custom_vjp(lambda x, n: x * n)
    scaled.defvjp(lambda x, n: (x * n, n), lambda n, cotangent: (cotangent * n, None))
    functions = {
        "argument": lambda n: jax.jit(lambda n: n)(n),
        "inner_argument": lambda n: jax.jit(lambda x: jax.jit(lambda n: x * n)(n))(2.0),
        "result": lambda n: jax.jit(lambda: n)(),
        "branches": lambda n: lax.cond(True, lambda: n, lambda: 1),
        "scanned": lambda n: lax.scan(lambda c, _: (c, n), 0, None, length=2),
        "described": lambda n: jax.eval_shape(lambda n: n, n),
        "jaxpr": lambda n: str(jax.make_jaxpr(lambda n: n)(n)),
        "stop_gradient": lax.stop_gradient,
        "custom_jvp": lambda n: product(2.0, n),
        "slope_of_custom_jvp": lambda n: jax.grad(product)(2.0, n),
        "custom_vjp": lambda n: scaled(2.0, n),
        "slope_of_custom_vjp": lambda n: jax.grad(scaled)(2.0, n),
        "checkpoint": lambda n: jax.checkpoint(lambda x, n: x * n)(2.0, n),
        "full": lambda n: lax.full((2,), n, "float32"),
        "with_floats": lambda n: jnp.array([n, 1.0]),
    }
    for name, function in functions.items():
        for size, n in {"last": 2**31 - 1, "first_beyond": 2**31, "wide": -(2**40)}.items():
            corpus.add(f"integer_{name}_{size}", lambda f=function, n=n: f(n))


def cotangents_of_integers(corpus, jax, jnp):
    given = {
        "float0": lambda: np.zeros((), jax.dtypes.float0),
        "integer": lambda: 1,
        "float": lambda: 1.0,
        "array": lambda: jnp.ones((), "bfloat16"),
        "none": lambda: None,
        "vector": lambda: jnp.ones(2),
    }
    for name, cotangent in given.items():

        def pulled(cotangent=cotangent):
            _, pull = jax.vjp(lambda x: (x * 2.0, 3), 1.0)
            return pull((1.0, cotangent()))

        corpus.add(f"cotangent_of_an_integer_{name}", pulled)

    @corpus.program(np.arange(3.0))
    def stopped_values_of_numpy(x):
        stopped = jax.lax.stop_gradient((x, np.float64(2), np.arange(3), np.float16(1)))
        return [str(leaf.dtype) for leaf in stopped], stopped[0] * 2


def classes(jax, results):
    """The class of each leaf as users see it: a Python scalar's, or an array with its type."""

    def kind(x):
        for scalar in (bool, int, float, complex):
            if isinstance(x, scalar) and not isinstance(x, np.generic):
                return scalar.__name__
        return f"array of {x.dtype}, weak {jnp_weak(x)}"

    def jnp_weak(x):
        return bool(getattr(getattr(x, "aval", None), "weak_type", False))

    return [kind(x) for x in jax.tree_util.tree_leaves(results)]


def functions(jax, lax):
    """Functions of a scalar that pass it on, or give back another scalar."""
    doubled = jax.custom_jvp(lambda x: x * 2.0)
    doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 2.0))
    passed = jax.custom_vjp(lambda x: x)
    passed.defvjp(lambda x: (x, None), lambda _, cotangent: (cotangent,))
    constant = jax.custom_vjp(lambda x: 3.0)
    constant.defvjp(lambda x: (3.0, x), lambda _, cotangent: (cotangent * 2.0,))
    return {
        "itself": lambda x: x,
        "constant": lambda x: 2.0,
        "pair": lambda x: (x, 3.0),
        "product": lambda x: x * 2.0,
        "custom_jvp": doubled,
        "custom_vjp": passed,
        "constant_of_custom_vjp": constant,
        "checkpoint": jax.checkpoint(lambda x: (x, 2.0)),
        "stop_gradient": lax.stop_gradient,
        "choice": lambda x: x if x > 0 else -x,
    }


def classes_of_results(corpus, jax, jnp, lax):
    for name, function in functions(jax, lax).items():
        forward = "custom_vjp" not in name
        both = lambda x, f=function: (x * 1.0, f(x))
        first = lambda x, f=function: jax.tree_util.tree_leaves(f(x))[0]
        ways = {
            "vjp": lambda x, f=function: jax.vjp(f, x)[0],
            "aux_of_grad": lambda x, f=both: jax.grad(f, has_aux=True)(x),
            "aux_of_vjp": lambda x, f=both: jax.vjp(f, x, has_aux=True)[2],
            "pull": lambda x, f=first: jax.vjp(f, x)[1](1.0),
            "grad": lambda x, f=first: jax.grad(f)(x),
        }
        if forward:
            ways |= {
                "jvp": lambda x, f=function: jax.jvp(f, (x,), (1.0,)),
                "linearize": lambda x, f=function: jax.linearize(f, x)[0],
                "push": lambda x, f=function: jax.linearize(f, x)[1](1.0),
            }
        if name == "stop_gradient":
            del ways["pull"]
        for way, program in ways.items():
            corpus.add(f"{way}_of_{name}", lambda x, p=program: classes(jax, p(x)), 2.0)


def arguments_of_rules(corpus, jax, jnp):
    """What rules are called with where nothing but the derivative is traced."""

    def arguments_of_jvp_rule(derive):
        seen = []
        custom = jax.custom_jvp(lambda x: x * 2)

        def rule(primals, tangents):
            seen.extend(classes(jax, (primals, tangents)))
            return custom(*primals), tangents[0]

        custom.defjvp(rule)
        derive(custom)
        return seen

    def arguments_of_vjp_rules(derive):
        seen = []
        custom = jax.custom_vjp(lambda x: x * 2)

        def forward(x):
            seen.extend(classes(jax, x))
            return x * 2.0, x

        def backward(x, cotangent):
            seen.extend(classes(jax, (x, cotangent)))
            return (cotangent * x,)

        custom.defvjp(forward, backward)
        derive(custom)
        return seen

    for kind, x in {"float": 2.0, "array": np.ones((2,), np.float32)}.items():
        corpus.add(
            f"jvp_rule_is_given_{kind}",
            lambda x: arguments_of_jvp_rule(lambda f: jax.jvp(f, (x,), (x,))),
            x,
        )
        corpus.add(
            f"vjp_rules_are_given_{kind}",
            lambda x: arguments_of_vjp_rules(lambda f: jax.vjp(f, x)[1](x)),
            x,
        )


def questions(corpus, jax, jnp, lax):
    """Conversions of a value that is being differentiated and whose number is known."""
    asked = {
        "bool": bool,
        "int": int,
        "item": lambda x: x.item(),
        "float": float,
        "complex": complex,
        "tolist": lambda x: x.tolist(),
        "asarray": np.asarray,
        "index": lambda x: [1, 2, 3][x],
        "hex": hex,
        "choice": lambda x: 1 if x else 2,
        "devices": lambda x: len(x.devices()),
    }
    for name, ask in asked.items():

        def derived(x, ask=ask):
            return x * 1.0, (ask(x), ask((x * 1).astype(int)) if name != "asarray" else 0)

        for kind, x in {"float": 2.0, "array": jnp.float32(2.0)}.items():
            for way, program in {
                "grad": lambda x, f=derived: jax.grad(f, has_aux=True)(x)[1],
                "jvp": lambda x, f=derived: jax.jvp(f, (x,), (1.0,), has_aux=True)[2],
                "grad_of_grad": lambda x, f=derived: jax.grad(
                    lambda y: jax.grad(f, has_aux=True)(y), has_aux=True
                )(x)[1],
                "jit_of_grad": lambda x, f=derived: jax.jit(jax.grad(f, has_aux=True))(x)[1],
                "vmap_of_grad": lambda x, f=derived: (
                    jax.vmap(jax.grad(f, has_aux=True))(x[None])[1] if np.ndim(x) else 0
                ),
            }.items():
                corpus.add(f"{name}_of_{kind}_in_{way}", program, x)


def values_of_numpy(corpus, jax, jnp):
    """Values of NumPy that a differentiated function returns remain values of NumPy."""
    ways = {
        "jvp": lambda f, x: jax.jvp(f, (x,), (x,))[0],
        "vjp": lambda f, x: jax.vjp(f, x)[0],
        "linearize": lambda f, x: jax.linearize(f, x)[0],
        "value_and_grad": lambda f, x: jax.value_and_grad(
            lambda y: (jnp.sum(y) * 2.0, f(y)), has_aux=True
        )(x)[0][1],
        "jvp_of_jit": lambda f, x: jax.jvp(jax.jit(f), (x,), (x,))[0],
    }
    values = {
        "float": np.float32(3),
        "integer": np.int32(3),
        "boolean": np.bool_(True),
        "array": np.ones(2, "float32"),
    }
    for way, how in ways.items():
        for name, value in values.items():
            for kind, x in {"float": 2.0, "array": np.ones(2, "float32")}.items():

                def run(x, how=how, value=value):
                    return how(lambda y: (value, y * 2.0), jnp.asarray(x))

                corpus.add(f"{way}_of_numpy_{name}_at_{kind}", run, x, modes=("value",))

    @corpus.program(np.float32(2), modes=("value",))
    def passed_numpy_scalar(x):
        return jax.jvp(lambda x: x, (x,), (x * 3,))

    @corpus.program(np.float32(2), modes=("value",))
    def added_to_a_numpy_scalar(x):
        """The tangent is the one that was handed in, and yet the result of an operation."""
        return jax.jvp(lambda x: x + 1, (x,), (x * 3,))


def jacobians_of_integers(corpus, jax):
    """The Jacobian of an integer is zero, and weakly typed where the integer is."""
    for name, result in {"python": 3, "numpy": np.int32(3), "small": np.int8(3)}.items():
        for kind, x in {"float": 2.0, "vector": np.ones(2, "float32")}.items():
            corpus.add(
                f"jacobian_of_{name}_integer_at_{kind}",
                lambda x, result=result: jax.jacfwd(lambda _: (result, x))(x)[0],
                x,
                modes=("value", "jit"),
            )


def checked(corpus, jax):
    """What checkify gives back of Python scalars, which are no arguments of a program there."""

    def checkify():
        """The module of the namespace that was handed in."""
        return importlib.import_module(f"{jax.__name__}.experimental.checkify")

    for name, function in {
        "itself": lambda x: x,
        "several": lambda x: (x, 2, x * 1, True, 1j),
        "checked": lambda x: (checkify().check(x > 0, "not positive"), x)[1],
        "jit": jax.jit(lambda x: (x, 2.0)),
    }.items():
        for kind, x in {"float": 2.0, "int": 3}.items():
            corpus.add(
                f"checkify_of_{name}_{kind}",
                lambda x, f=function: classes(jax, checkify().checkify(f)(x)[1]),
                x,
            )


def seeds(corpus, jax, jnp):
    """Booleans as seeds: Python's are integers, those in arrays are not."""
    key = lambda seed: jax.random.key_data(jax.random.key(seed))
    for name, seed in {
        "python": True,
        "numpy_scalar": np.bool_(True),
        "numpy": np.array(True),
        "array": jnp.array(False),
        "several": np.array([True, False]),
    }.items():
        corpus.add(f"seed_of_{name}_boolean", lambda seed=seed: key(seed), modes=("value",))
        corpus.add(f"seed_of_{name}_boolean_in_jit", jax.jit(key), seed, modes=("value",))
        corpus.add(
            f"old_seed_of_{name}_boolean",
            lambda seed=seed: jax.random.PRNGKey(seed),
            modes=("value",),
        )


def scalars_with_a_dtype(corpus, jax, jnp, lax):
    """Python scalars that keep the dtype of the array that they stand for."""
    seen = []

    @jax.custom_vjp
    def scaled(x, y):
        return x * y

    def forward(x, y):
        return x * y, (x, y, 3.0, 2, 1j, True)

    def backward(residuals, g):
        seen.append([repr(r) for r in residuals if not isinstance(r, jax.Array)])
        seen.append(g.dtype)
        x, y, *_ = residuals
        return g * jnp.asarray(y, y.dtype), g * x

    scaled.defvjp(forward, backward)

    def noted(f):
        def program():
            seen.clear()
            return f(), list(seen)

        return program

    corpus.add("residuals", noted(lambda: jax.grad(scaled, (0, 1))(2.0, 3.0)))
    corpus.add("residuals_in_jit", noted(lambda: jax.jit(jax.grad(scaled, (0, 1)))(2.0, 3.0)))
    corpus.add("residuals_in_closed_jit", noted(jax.jit(lambda: jax.grad(scaled)(2.0, 3.0))))

    def repeated(x):
        return [repr(x), x + 1, type(x + 1).__name__, f"{x:}", hash(x) == hash(x + 0)]

    for name, x in {"float": 2.0, "int": 3, "complex": 1j}.items():
        corpus.add(f"stop_gradient_of_{name}", lambda x=x: repeated(lax.stop_gradient(x)))
        corpus.add(f"vjp_of_{name}", lambda x=x: repeated(jax.vjp(lambda x: x, x)[0]))
        corpus.add(f"checkpoint_of_{name}", lambda x=x: repeated(jax.checkpoint(lambda x: x)(x)))
        corpus.add(
            f"jaxpr_of_{name}",
            lambda y, x=x: y + lax.stop_gradient(x),
            jnp.ones(2, jnp.bfloat16),
            modes=("jaxpr",),
        )

    def x64_ends():
        with jax.enable_x64(True):
            scalar = lax.stop_gradient(2.0)
        return [scalar.dtype, jnp.asarray(scalar), jax.jit(lambda x: x)(scalar), scalar + 1]

    def x64_begins():
        scalar = lax.stop_gradient(2.0)
        with jax.enable_x64(True):
            arrays = [jnp.asarray(scalar), jnp.ones(2) + scalar]
            for first in (scalar, 2.0):
                jitted = jax.jit(lambda x: x + 1)
                arrays += [jitted(first), jitted(scalar), jitted(2.0), jitted(scalar)]
            return [scalar.dtype, *[x.dtype for x in arrays]]

    corpus.add("when_x64_ends", x64_ends)
    corpus.add("when_x64_begins", x64_begins)
    i, x = lax.stop_gradient(1), lax.stop_gradient(0.5)
    uses = {
        "index": lambda: jnp.arange(5)[i],
        "slice": lambda: jnp.arange(5)[i : i + 2],
        "update": lambda: jnp.arange(5).at[i].set(i),
        "axis": lambda: jnp.sum(jnp.ones((2, 3)), axis=i),
        "shape": lambda: jnp.zeros((i, 3)),
        "size": lambda: jnp.arange(i),
        "repetitions": lambda: jnp.tile(jnp.ones(2), i),
        "shift": lambda: jnp.roll(jnp.arange(3), i),
        "width": lambda: jnp.pad(jnp.ones(2), i, constant_values=x),
        "start": lambda: lax.dynamic_slice(jnp.arange(5), (i,), (i,)),
        "bound": lambda: lax.fori_loop(0, i, lambda j, c: c + j, 1),
        "carry": lambda: lax.scan(lambda c, _: (c, c), x, None, length=2),
        "branch": lambda: lax.cond(True, lambda x: x, lambda x: x + 1, x),
        "probability": lambda: jax.random.bernoulli(jax.random.key(0), x, (3,)),
        "elements": lambda: [jnp.array([i, 2]), jnp.stack([x, 1.0]), jnp.full((2,), i)],
        "promotion": lambda: [jnp.result_type(x, jnp.bfloat16), jnp.bfloat16(1) + x],
        "moved": lambda: jax.device_put(x),
        "static": lambda: jax.jit(lambda i: jnp.ones(i), static_argnums=0)(i),
    }
    for name, use in uses.items():
        corpus.add(f"scalar_with_a_dtype_as_{name}", use)
