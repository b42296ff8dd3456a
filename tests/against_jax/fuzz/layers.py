"""Transformations around a drawn program: each takes a function and arguments, gives both anew."""

import math

import numpy as np

from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.loops_and_branches import policy
from tests.against_jax.fuzz.machine import kind_of

LAYERS = {}
WEIGHTS = {}


def layer(weight=1.0):
    def register(function):
        LAYERS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return register


def leaves_of(m, tree):
    return m.jax.tree_util.tree_leaves(tree)


def is_float(x):
    return kind_of(x) == "f"


def floating(m, args):
    """The places of the arguments whose leaves are floats, at least one."""
    return [
        place
        for place, arg in enumerate(args)
        if leaves_of(m, arg) and all(map(is_float, leaves_of(m, arg)))
    ]


def total(m, result):
    """A number made of a result's floats and complex numbers."""
    jnp = m.jnp
    found = jnp.zeros((), "float32")
    for leaf in leaves_of(m, result):
        kind = kind_of(leaf)
        if kind == "c":
            found = found + jnp.sum(jnp.sin(jnp.real(leaf)) + jnp.imag(leaf)).astype("float32")
        if kind == "f":
            found = found + jnp.sum(jnp.sin(leaf)).astype("float32")
    return found


def tangent_of(m, x):
    if kind_of(x) in "fc":
        return m.jnp.cos(x)
    if kind_of(x) == "0":
        return x
    return np.zeros(np.shape(x), m.jax.dtypes.float0)


@layer(3)
def jit(m, d, function, args):
    options = {}
    form = d.below(5)
    if form == 0:
        options["donate_argnums"] = d.below(max(len(args), 1))
    if form == 1:
        options["inline"] = True
    if form == 2:
        options["keep_unused"] = True
    return m.call("jax.jit", function, **options), args


@layer(4)
def vmap(m, d, function, args):
    size = d.of((1, 2, 3))
    jnp = m.jnp
    in_axes, new = [], []
    for arg in args:
        if d.chance(0.2):
            in_axes.append(None)
            new.append(arg)
            continue
        negative = d.chance(0.3)
        leaves = leaves_of(m, arg)
        axes = [(-1 if negative else d.between(0, np.ndim(x))) for x in leaves]
        same = len(set(axes)) <= 1 or d.chance(0.5)
        axes = [0] * len(axes) if same and not negative else axes
        if not all(hasattr(x, "ndim") for x in leaves):
            leaves = [jnp.asarray(x) for x in leaves]
        stacked = [
            (np if isinstance(x, np.ndarray) else jnp).stack(
                [x if i % 2 == 0 else (x[::-1] if np.ndim(x) else x) for i in range(size)], axis
            )
            for x, axis in zip(leaves, axes, strict=True)
        ]
        new.append(m.like_tree(arg, stacked))
        in_axes.append(m.like_tree(arg, axes) if not same else (-1 if negative else 0))
    if all(axis is None for axis in in_axes):
        return m.call("jax.vmap", function, tuple(in_axes), axis_size=size), new
    name = m.new_axis_name()
    options = {}
    if d.chance(0.3):
        options["out_axes"] = d.of((-1, 0))
    if d.chance(0.5):
        options["axis_name"] = name

    def named(*args):
        if "axis_name" not in options:
            return function(*args)
        m.axes.append((name, size))
        try:
            return function(*args)
        finally:
            m.axes.pop()

    whole = set(map(str, in_axes)) == {"0"} and d.chance(0.5)
    return m.call("jax.vmap", named, 0 if whole else tuple(in_axes), **options), new


@layer(4)
def grad(m, d, function, args):
    places = floating(m, args)
    if not places:
        return jvp(m, d, function, args)
    argnums = d.of((places[0], tuple(places), d.of(places)))
    form = d.below(4)
    if form == 0:
        made = m.call("jax.grad", lambda *xs: total(m, function(*xs)), argnums)
        return made, args
    if form == 1:
        return m.call("jax.value_and_grad", lambda *xs: total(m, function(*xs)), argnums), args

    def with_aux(*xs):
        out = function(*xs)
        return total(m, out), out

    name = d.of(("jax.grad", "jax.value_and_grad"))
    return m.call(name, with_aux, argnums, has_aux=True), args


@layer(0.7)
def grad_by_integers(m, d, function, args):
    argnums = tuple(range(len(args)))
    if any(kind_of(x) in "ck" for x in leaves_of(m, args)):
        return jvp(m, d, function, args)
    scalar = lambda *xs: total(m, function(*xs))
    return m.call("jax.grad", scalar, argnums, allow_int=d.chance(0.8)), args


@layer(3)
def jvp(m, d, function, args):
    def pushed(*args):
        tangents = m.jax.tree_util.tree_map(lambda x: tangent_of(m, x), args)
        return m.call("jax.jvp", function, args, tangents)

    return pushed, args


@layer(3)
def vjp(m, d, function, args):
    def pulled(*args):
        out, pull = m.call("jax.vjp", function, *args)
        cotangents = m.jax.tree_util.tree_map(lambda x: tangent_of(m, x), out)
        return out, m.applied("pull", pull, cotangents)

    return pulled, args


@layer(2)
def linearize(m, d, function, args):
    both = d.chance(0.5)

    def linearized(*args):
        out, push = m.call("jax.linearize", function, *args)
        tangents = m.jax.tree_util.tree_map(lambda x: tangent_of(m, x), args)
        if not both:
            return out, m.applied("push", push, *tangents)
        return m.applied("vmap", m.jax.vmap(push, axis_size=2, in_axes=None), *tangents)

    return linearized, args


@layer(2)
def jacobian(m, d, function, args):
    places = floating(m, args)
    sizes = [sum(math.prod(np.shape(x)) for x in leaves_of(m, args[place])) for place in places]
    places = [place for place, size in zip(places, sizes, strict=True) if size <= 8]
    if not places:
        return vjp(m, d, function, args)
    form = d.below(3)
    if form == 2:
        return m.call("jax.hessian", lambda *xs: total(m, function(*xs)), places[0]), args

    def floats(*args):
        found = [x for x in leaves_of(m, function(*args)) if is_float(x)]
        return [m.jnp.ravel(x)[:4] for x in found]

    return m.call(
        ("jax.jacfwd", "jax.jacrev")[form], floats, d.of((places[0], tuple(places)))
    ), args


@layer(1.5)
def checkpoint(m, d, function, args):
    options = {"policy": policy(m, d)} if d.chance(0.5) else {}
    return m.call("jax.checkpoint", function, **options), args


@layer(1)
def holomorphic(m, d, function, args):
    places = [
        place
        for place, arg in enumerate(args)
        if leaves_of(m, arg) and all(kind_of(x) == "c" for x in leaves_of(m, arg))
    ]
    if not places:
        return grad(m, d, function, args)

    def scalar(*args):
        found = [x for x in leaves_of(m, function(*args)) if kind_of(x) == "c"]
        return sum((m.jnp.sum(x) for x in found), m.jnp.zeros((), "complex64"))

    return m.call("jax.grad", scalar, places[0], holomorphic=True), args


@layer(1)
def written_down(m, d, function, args):
    def evaluated(*args):
        made = m.call("jax.make_jaxpr", function)(*args)
        return m.jax.core.eval_jaxpr(made.jaxpr, made.consts, *leaves_of(m, args))

    return evaluated, args


@layer(1)
def scanned(m, d, function, args):
    """The function in a loop, over stacked arguments."""
    new = m.jax.tree_util.tree_map(lambda x: m.jnp.stack([m.jnp.asarray(x)] * 2), args)
    return lambda *xs: m.call("lax.scan", lambda c, x: (c + 1, function(*x)), 0, xs), new


def wrap(m, layers, function, args):
    for name, seed, *mistake in layers:
        with m.spoilt(mistake):
            function, args = LAYERS[name](m, Draw(seed), function, args)
    return function, args
