"""Functions with custom derivatives that close over mapped values, or leave values unmapped."""

from functools import partial

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    for name, make in closures(jax).items():
        called(corpus, jax, jnp, lax, name, make)
        differentiated(corpus, jax, lax, name, make)
        unread(corpus, jax, jnp, lax, name, make)
    nested_calls(corpus, jax, jnp)
    random_keys(corpus, jax)
    solutions(corpus, jax, lax)
    arguments_without_derivatives(corpus, jax)
    unmapped(corpus, jax, jnp, lax)
    return corpus


def closures(jax):
    """Each makes a function of x that is c * x, and says that its derivative is 10 * c."""

    def forward(c, **options):
        f = jax.custom_jvp(lambda x: c * x)
        f.defjvp(lambda primals, tangents: (c * primals[0], c * 10 * tangents[0]), **options)
        return f

    def forward_calls_itself(c):
        f = jax.custom_jvp(lambda x: c * x)
        f.defjvps(lambda tangent, result, x: c * 10 * tangent)
        return f

    def backward(c, **options):
        f = jax.custom_vjp(lambda x: c * x)
        f.defvjp(lambda x: (f(x), c), lambda c, cotangent: (c * 10 * cotangent,), **options)
        return f

    def backward_closes_too(c):
        f = jax.custom_vjp(lambda x: c * x)
        f.defvjp(lambda x: (c * x, ()), lambda _, cotangent: (c * 10 * cotangent,))
        return f

    def symbolic_backward(c):
        f = jax.custom_vjp(lambda x: c * x)
        f.defvjp(
            lambda x: (c * x.value, c),
            lambda c, cotangent: (c * 10 * cotangent,),
            symbolic_zeros=True,
        )
        return f

    def gradient(c):
        return jax.custom_gradient(lambda x: (c * x, lambda cotangent: (c * 10 * cotangent,)))

    return {
        "forward": forward,
        "forward_symbolic": partial(forward, symbolic_zeros=True),
        "forward_calls_itself": forward_calls_itself,
        "backward": backward,
        "backward_closes_too": backward_closes_too,
        "backward_symbolic": symbolic_backward,
        "backward_under_remat": partial(backward, optimize_remat=True),
        "custom_gradient": gradient,
    }


def called(corpus, jax, jnp, lax, name, make):
    vmap = jax.vmap

    def calls(c):
        return {
            "of a scalar": vmap(lambda c: make(c)(2.0))(c),
            "of an array": vmap(lambda c: make(c)(jnp.ones(2)))(c),
            "of itself": vmap(lambda c: make(c)(c + 1))(c),
            "along another axis": vmap(lambda c: make(c)(jnp.ones(2)), out_axes=1)(c),
            "jit inside": vmap(lambda c: jax.jit(lambda x: make(c)(x))(2.0))(c),
            "jit outside": vmap(jax.jit(lambda c: make(c)(2.0)))(c),
            "checkpoint": vmap(jax.checkpoint(lambda c: make(c)(2.0)))(c),
            "nested": vmap(lambda d: vmap(lambda c: make(c * d)(2.0))(c))(c + 1),
            "of the outer": vmap(lambda d: vmap(lambda x: make(d)(x))(c))(c + 1),
            "of the inner": vmap(lambda d: vmap(lambda c: make(c)(d))(c))(c + 1),
            "collective": vmap(lambda c: make(c)(lax.psum(c, "i")), axis_name="i")(c),
            "collective closed over": vmap(
                lambda c: make(lax.psum(c, "i"))(c), axis_name="i", out_axes=0
            )(c),
        }

    def in_loops(c):
        step = lambda c: lambda carry, _: (make(c)(carry), carry)
        loop = lambda c: lambda i, carry: make(c)(carry)
        branch = lambda c: lambda x: make(c)(x)
        return {
            "scan": vmap(lambda c: lax.scan(step(c), jnp.float32(2), None, length=2))(c),
            "fori": vmap(lambda c: lax.fori_loop(0, 2, loop(c), jnp.float32(2)))(c),
            "while": vmap(lambda c: lax.while_loop(lambda x: x < 5, make(c + 1), jnp.float32(2)))(
                abs(c) + 1
            ),
            "cond": vmap(lambda c: lax.cond(c > 0.5, branch(c), lambda x: x, jnp.float32(2)))(c),
        }

    corpus.add(f"{name}_called", calls, floats(3))
    corpus.add(f"{name}_in_loops", in_loops, floats(3))


def differentiated(corpus, jax, lax, name, make):
    vmap, grad = jax.vmap, jax.grad

    def derivatives(c):
        return {
            "inside": vmap(lambda c: grad(make(c))(2.0))(c),
            "of itself": vmap(lambda c: grad(make(c))(c + 1))(c),
            "pulled back": vmap(lambda c: jax.vjp(make(c), 2.0)[1](1.0))(c),
            "mapped": vmap(grad(lambda x, c: make(c)(x)))(c + 1, c),
            "both": vmap(lambda d: vmap(lambda c: grad(make(c))(d))(c))(c + 1),
            "jit": vmap(lambda c: jax.jit(grad(lambda x: make(c)(x)))(2.0))(c),
            "checkpoint": vmap(lambda c: grad(jax.checkpoint(lambda x: make(c)(x)))(2.0))(c),
            "checkpoint outside": vmap(jax.checkpoint(lambda c: grad(make(c))(2.0)))(c),
            "scan": vmap(lambda c: lax.scan(lambda s, _: (grad(make(c))(s), s), 2.0, None, 2)[0])(
                c
            ),
        }

    def derivatives_outside(c):
        return {
            "shared": grad(lambda x: vmap(lambda c: make(c)(x))(c).sum())(2.0),
            "mapped": grad(lambda x: vmap(lambda c: make(c)(c * x))(c).sum())(2.0),
            "jit": grad(jax.jit(lambda x: vmap(lambda c: make(c * 2)(c * x))(c).sum()))(2.0),
        }

    corpus.add(f"{name}_differentiated", derivatives, floats(3))
    if name not in ("backward_closes_too", "custom_gradient"):
        corpus.add(f"{name}_differentiated_outside", derivatives_outside, floats(3))


def unread(corpus, jax, jnp, lax, name, make):
    """Calls in programs that nothing reads, derived after vmap: jax cannot run those that are."""
    around = {
        "jit": lambda f: lambda x: (jax.jit(f)(x), x)[1],
        "fori_loop": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, s: (f(s), s)[1], x),
    }
    for place, program in around.items():
        mapped = lambda c, x, program=program: jax.vmap(lambda c, x: program(make(c))(x) * 2)(c, x)
        corpus.add(
            f"{name}_unread_in_{place}_and_derived",
            lambda c, x, f=mapped: jax.grad(lambda x: f(c, x).sum())(x),
            floats(3),
            floats(3),
            modes=("jit",),
        )


def nested_calls(corpus, jax, jnp):
    def forward(f, *args):
        f = jax.custom_jvp(f)
        f.defjvp(lambda primals, tangents: (f(*primals), sum(tangents)))
        return f(*args)

    def backward(f, *args):
        f = jax.custom_vjp(f)
        f.defvjp(lambda *args: (f(*args), None), lambda _, ct: (ct,) * len(args))
        return f(*args)

    for name, call in {"forward": forward, "backward": backward}.items():

        def each_others(x, call=call):
            inner = lambda y: jax.jit(lambda w: call(lambda y: w + y, y) + call(lambda: y))
            return call(lambda y: inner(y)(x), x)

        corpus.add(f"{name}_closing_over_each_others_arguments", each_others, 3.0)
        corpus.add(
            f"{name}_closing_over_each_others_mapped_arguments",
            lambda x, f=each_others: jax.vmap(f)(x),
            floats(3),
        )


def random_keys(corpus, jax):
    @corpus.program(np.uint32(3))
    def keys_closed_over(seed):
        def forward(key):
            f = jax.custom_jvp(lambda x: x * jax.random.uniform(key))
            f.defjvp(lambda p, t: (f(*p), t[0] * jax.random.uniform(key, minval=2, maxval=3)))
            return f(2.0), jax.grad(f)(2.0)

        def backward(key):
            f = jax.custom_vjp(lambda x: x * jax.random.uniform(key))
            f.defvjp(lambda x: (f(x), key), lambda key, ct: (ct * jax.random.uniform(key) * 3,))
            return f(2.0), jax.grad(f)(2.0)

        keys = jax.random.split(jax.random.key(seed), 3)
        return jax.vmap(forward)(keys), jax.vmap(backward)(keys)


def solutions(corpus, jax, lax):
    @corpus.program(floats(3), 2.0)
    def solutions_are_typed_as_their_right_hand_sides(c, x):
        """Weakly, where those are: in loops they are what is carried."""

        def solve(c, b, **options):
            divide = lambda _, b: b / c
            return lax.custom_linear_solve(lambda x: c * x, b, divide, divide, **options)

        mapped = jax.vmap(lambda c: lax.scan(lambda b, _: (solve(c, b), b), x, None, length=2))(c)
        return mapped, jax.jit(jax.grad(lambda b: solve(c[0], b)))(x)


def arguments_without_derivatives(corpus, jax):
    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def scaled(scale, x):
        return scale * x

    @scaled.defjvp
    def scaled_jvp(scale, primals, tangents):
        return scaled(scale, *primals), scale * 10 * tangents[0]

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def scaled_back(scale, x):
        return scale * x

    scaled_back.defvjp(lambda s, x: (s * x, None), lambda s, _, ct: (s * 10 * ct,))

    @corpus.program(floats(3))
    def mapped_values_as_nondiff_arguments(c):
        return {
            "closed over": jax.vmap(lambda c: scaled(c, 2.0))(c),
            "mapped": jax.vmap(scaled)(c, c + 1),
            "derivative": jax.vmap(jax.grad(scaled, 1))(c, c + 1),
            "derivative at one point": jax.vmap(jax.grad(scaled, 1), (0, None))(c, 2.0),
        }

    @corpus.program(3.0, 4.0)
    def nondiff_arguments_are_constants_of_the_derivative(scale, x):
        return jax.grad(scaled, (0, 1))(scale, x)

    for name, call in {
        "jit": lambda s, x: jax.jit(scaled_back)(s, x),
        "vmap": lambda s, x: jax.vmap(lambda s: scaled_back(s, x), axis_size=2)(s),
        "in_a_tree": lambda s, x: jax.jit(lambda s: scaled_back({"a": s}, x))(s),
        "grad": lambda s, x: jax.grad(scaled_back)(s, x),
    }.items():
        corpus.add(f"traced_nondiff_argument_of_custom_vjp_{name}", call, 3.0, 4.0)


def unmapped(corpus, jax, jnp, lax):
    forward = jax.custom_jvp(lambda x: lax.psum(x, "i"))
    forward.defjvp(lambda p, t: (lax.psum(p[0], "i"), lax.psum(t[0], "i")))
    backward = jax.custom_vjp(lambda x: lax.psum(x, "i"))
    backward.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (ct,))

    for name, f in {"forward": forward, "backward": backward}.items():

        def stays_unmapped(c, x, f=f):
            c, x = jnp.asarray(c), jnp.asarray(x)
            one = partial(jax.vmap, axis_name="i", in_axes=(0, None), out_axes=None)
            program = jax.make_jaxpr(f, axis_env=[("i", 3)])(x)
            return {
                "called": one(lambda _, x: f(x))(c, x),
                "jit": one(jax.jit(lambda _, x: f(x)))(c, x),
                "derivative": jax.grad(one(lambda _, x: f(x)), 1)(c, x),
                "derivative inside": one(lambda _, x: jax.grad(f)(x))(c, x),
                "program": one(lambda _, x: jax.core.eval_jaxpr(program.jaxpr, [], x)[0])(c, x),
                "nested": one(jax.vmap(lambda _, x: f(x), in_axes=(None, 0)))(c, c),
            }

        corpus.add(
            f"{name}_results_that_no_argument_maps", stays_unmapped, floats(3), np.float32(2)
        )
