"""Each name of jax.extend.linear_util and jax.api_util in use; a program has the name it calls."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        linear_util = api_util = jax
    else:
        linear_util = importlib.import_module(f"{jax.__name__}.extend.linear_util")
        api_util = importlib.import_module(f"{jax.__name__}.api_util")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    def wrapped(function, *args):
        info = api_util.debug_info("names", function, args, {})
        return linear_util.wrap_init(function, debug_info=info)

    # linear_util

    @program("linear_util.wrap_init")
    def _():
        fun = wrapped(lambda x, y: x + y, 1, 2)
        return fun.call_wrapped(1, 2), type(fun).__name__, isinstance(fun, linear_util.WrappedFun)

    @program("linear_util.wrap_init without debug_info")
    def _():
        return linear_util.wrap_init(lambda x, a: x + a, {"a": 1}).call_wrapped(2)

    @program("linear_util.WrappedFun")
    def _():
        def f(x):
            return x

        fun = wrapped(f, 1)
        same = (
            fun == wrapped(f, 1),
            hash(fun) == hash(wrapped(f, 1)),
            fun == wrapped(lambda x: x, 1),
        )
        return fun.__name__, fun.params, len(fun.transforms), len(fun.stores), same, fun.f is f

    @program("linear_util.transformation")
    def _():
        def doubled(n, *args):
            result = yield tuple(n * x for x in args), {}
            yield result + 1

        fun = linear_util.transformation(doubled)(wrapped(lambda x: x * 10, 1), 2)
        return fun.call_wrapped(3), len(fun.transforms)

    @program("linear_util.transformation2")
    def _():
        fun = linear_util.transformation2(lambda f, n, *args: f(*(n * x for x in args)) + 1)(
            wrapped(lambda x: x * 10, 1), 2
        )
        return fun.call_wrapped(3), len(fun.transforms), len(fun.stores)

    @program("linear_util.transformation_with_aux")
    def _():
        def doubled(n, *args):
            result = yield tuple(n * x for x in args), {}
            yield result + 1, "aux"

        fun, aux = linear_util.transformation_with_aux(doubled)(wrapped(lambda x: x * 10, 1), 2)
        return fun.call_wrapped(3), aux()

    @program("linear_util.transformation_with_aux2")
    def _():
        def doubled(f, store, n, *args):
            result = f(*(n * x for x in args))
            store.store(result)
            return result + 1

        fun, aux = linear_util.transformation_with_aux2(doubled)(wrapped(lambda x: x * 10, 1), 2)
        return fun.call_wrapped(3), aux()

    @program("linear_util.StoreException")
    def _():
        def stored(f, store, *args):
            store.store(1)
            return f(*args)

        fun, aux = linear_util.transformation_with_aux2(stored)(wrapped(lambda x: x, 1))
        try:
            aux()
        except linear_util.StoreException as error:
            empty = type(error).__name__
        fun.call_wrapped(1)
        try:
            fun.call_wrapped(1)
        except linear_util.StoreException as error:
            return empty, type(error).__name__, issubclass(linear_util.StoreException, Exception)

    @program("linear_util.merge_linear_aux")
    def _():
        def stored(f, store, *args):
            store.store("first")
            return f(*args)

        one, aux1 = linear_util.transformation_with_aux2(stored)(wrapped(lambda x: x, 1))
        _, aux2 = linear_util.transformation_with_aux2(stored)(wrapped(lambda x: x, 1))
        one.call_wrapped(1)
        return linear_util.merge_linear_aux(aux1, aux2), linear_util.merge_linear_aux(aux2, aux1)

    @program("linear_util.merge_linear_aux of none")
    def _():
        def stored(f, store, *args):
            return f(*args)

        _, aux1 = linear_util.transformation_with_aux2(stored)(wrapped(lambda x: x, 1))
        _, aux2 = linear_util.transformation_with_aux2(stored)(wrapped(lambda x: x, 1))
        return linear_util.merge_linear_aux(aux1, aux2)

    @program("linear_util.cache")
    def _():
        calls = []

        def count(fun, n):
            calls.append(n)
            return fun.call_wrapped(n)

        def f(x):
            return x + 1

        cached, fun = linear_util.cache(count), wrapped(f, 1)
        return cached(fun, 1), cached(fun, 1), cached(fun, 2), cached(wrapped(f, 1), 2), calls

    # api_util

    @program("api_util.argnums_partial")
    def _():
        fun = wrapped(lambda x, y, z: (x, y, z), 1, 2, 3)
        some, dynamic = api_util.argnums_partial(fun, (0, 2), (1, 2, 3))
        one, first = api_util.argnums_partial(fun, 1, (1, 2, 3))
        return some.call_wrapped(10, 30), dynamic, one.call_wrapped(20), first

    @program("api_util.argnums_partial of a static list")
    def _():
        fun = wrapped(lambda x, y: (x, y), 1, [2])
        return api_util.argnums_partial(fun, 0, (1, [2]))[0].call_wrapped(1)

    @program("api_util.debug_info")
    def _():
        def f(x, *rest, key=3):
            return x

        info = api_util.debug_info("names", f, (1.0, {"a": 2.0}), {"key": 1})
        name = info.func_src_info.split(" at ")[0]
        static = api_util.debug_info("names", f, (1.0, 2.0), {}, static_argnums=(0,))
        return info.traced_for, name, info.arg_names, static.arg_names, info.func_name

    @program("api_util.donation_vector")
    def _():
        tree = jax.tree.structure((((1, 2), 3), {"a": 4, "b": (5, 6)}))
        by_name = api_util.donation_vector((0,), ("b",), tree)
        return (
            by_name,
            api_util.donation_vector((1,), (), tree),
            api_util.donation_vector((), (), tree),
        )

    @program("api_util.flatten_axes")
    def _():
        tree = jax.tree.structure(((1, 2), 3))
        return api_util.flatten_axes("in_axes", tree, (0, 1)), api_util.flatten_axes(
            "axes", tree, 5
        )

    @program("api_util.flatten_axes of another tree")
    def _():
        return api_util.flatten_axes("in_axes", jax.tree.structure((1, 2)), (0, 1, 2))

    @program("api_util.flatten_fun")
    def _():
        args, tree = jax.tree.flatten(((1, {"a": 2}), {"k": 3}))
        fun, out = api_util.flatten_fun(wrapped(lambda x, d, k: {"r": x + d["a"] + k}, 1, {}), tree)
        return fun.call_wrapped(*args), str(out())

    @program("api_util.flatten_fun_nokwargs")
    def _():
        args, tree = jax.tree.flatten((1, {"a": 2}))
        fun, out = api_util.flatten_fun_nokwargs(wrapped(lambda x, d: (x, d["a"]), 1, {}), tree)
        return fun.call_wrapped(*args), str(out())

    @program("api_util.rebase_donate_argnums")
    def _():
        rebase = api_util.rebase_donate_argnums
        return rebase((0, 2), (1,)), rebase((3,), (0, 1)), rebase((), (0,)), rebase((1,), ())

    @program("api_util.rebase_donate_argnums of static ones")
    def _():
        return api_util.rebase_donate_argnums((1,), (1,))

    @program("api_util.safe_map")
    def _():
        return api_util.safe_map(lambda x, y: x + y, [1, 2], (3, 4)), api_util.safe_map(str, [])

    @program("api_util.safe_map of unequal lengths")
    def _():
        return api_util.safe_map(lambda x, y: x, [1, 2], [3])

    @program("api_util.shaped_abstractify")
    def _():
        values = (
            1.0,
            2,
            True,
            np.ones(2),
            np.int8(1),
            jnp.ones(3),
            jax.ShapeDtypeStruct((2,), "int8"),
        )
        return [str(api_util.shaped_abstractify(value)) for value in values]

    @program("api_util.shaped_abstractify of a string")
    def _():
        return api_util.shaped_abstractify("a")

    return corpus
