"""Arrays as objects: how they print, their attributes and methods, and what goes through jit."""

import copy
import pickle

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, floats, ints


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    printing(corpus, jnp)
    methods(corpus, jax, jnp)
    through_jit(corpus, jax, jnp, lax)
    trees(corpus, jax, jnp)
    return corpus


def printing(corpus, jnp):
    for name, make in {
        "floats": lambda: jnp.array([1.0, 2.5, -3.0]),
        "weak_float": lambda: jnp.asarray(1.5),
        "weak_int": lambda: jnp.asarray(2),
        "int32_scalar": lambda: jnp.int32(2),
        "matrix": lambda: jnp.arange(6).reshape(2, 3),
        "bfloat16": lambda: jnp.array([1, 2], jnp.bfloat16),
        "bools": lambda: jnp.array([True, False]),
        "complex": lambda: jnp.array([1 + 2j]),
        "empty": lambda: jnp.zeros((0, 3)),
        "long": lambda: jnp.arange(2000),
        "uint8": lambda: jnp.arange(3, dtype=jnp.uint8),
        "wide": lambda: jnp.linspace(0, 1, 30),
        "cube": lambda: jnp.zeros((2, 2, 2)),
        "float16": lambda: jnp.array([0.1, 2], jnp.float16),
        "nan": lambda: jnp.array([jnp.nan, jnp.inf]),
        "weak_vector": lambda: jnp.full((2,), 1.0),
        "tuple": lambda: (jnp.float32(1), [jnp.arange(2)]),
    }.items():
        corpus.add(f"repr_{name}", make, modes=("repr",))
        corpus.add(f"str_{name}", lambda make=make: str(make()))

    @corpus.program()
    def formatted():
        x = jnp.float32(1.23456)
        return f"{x:.2f}", f"{x}", format(x, ".1f"), f"{jnp.int32(42):>5d}", f"{jnp.arange(3)}"


def methods(corpus, jax, jnp):
    for name in "sum prod max min mean var std any all argmax argmin cumsum cumprod ptp".split():
        corpus.add(
            f"method_{name}",
            lambda x, name=name: (
                getattr(jnp.asarray(x), name)(),
                getattr(jnp.asarray(x), name)(axis=0),
            ),
            floats(3, 4),
            tolerance=1e-5,
        )

    @corpus.program(floats(2, 3))
    def attributes(x):
        x = jnp.asarray(x)
        return (
            x.shape,
            x.dtype,
            x.ndim,
            x.size,
            x.itemsize,
            x.nbytes,
            x.weak_type,
            x.is_fully_addressable,
            x.is_fully_replicated,
            len(x.devices()),
            x.is_deleted(),
            x.committed,
            len(x.addressable_shards),
        )

    @corpus.program(floats(2, 3))
    def other_methods(x):
        x = jnp.asarray(x)
        return (
            x.copy(),
            x.flatten(),
            x.swapaxes(0, 1),
            x.repeat(2),
            x.clip(0, 1),
            x.round(1),
            x.conj(),
            x.real,
            x.imag,
            x.take(jnp.array([0, 2])),
            x.nonzero(),
            x.diagonal(),
            x.trace(),
            x.block_until_ready(),
            x.tobytes(),
        )

    @corpus.program(floats(3), bools(3), complexes(2), floats(2, dtype=bf16))
    def copies(x, p, z, b):
        arrays = [jnp.asarray(a) for a in (x, p, z, b)] + [jnp.asarray(1.0)]
        return [
            [pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a), jnp.copy(a)]
            for a in arrays
        ]

    @corpus.program(floats(2, 3))
    def to_numpy(x):
        x = jnp.asarray(x)
        return (
            np.asarray(x),
            np.array(x, dtype=np.float64),
            np.sum(x),
            np.float32(2) + x,
            np.add(np.asarray(x), 1),
            np.asarray(x).flags.writeable,
            np.array(x).flags.writeable,
            x.__array__(),
            np.asarray(jnp.bfloat16(1.5)),
        )

    @corpus.program(floats(3))
    def dlpack(x):
        return np.from_dlpack(jnp.asarray(x)), jnp.from_dlpack(jnp.asarray(x))

    @corpus.program(floats(3))
    def put_and_get(x):
        there = jax.device_put({"a": x, "b": [1, 2.0]})
        return there, jax.device_get(there), jax.device_put(jnp.asarray(x), jax.devices()[0])

    @corpus.program()
    def isinstance_of_array():
        x = jnp.ones(2)
        seen = []
        jax.jit(lambda t: seen.append(isinstance(t, jax.Array)) or t)(x)
        return isinstance(x, jax.Array), isinstance(np.ones(2), jax.Array), seen

    @corpus.program(floats(3))
    def hashing_and_comparing(x):
        x = jnp.asarray(x)
        return x == x, x != np.asarray(x), x is None, x in [x][:0], (x == x).all()


def through_jit(corpus, jax, jnp, lax):
    @corpus.program(floats(3), 2, 1.5, True, np.float64(2), np.arange(3))
    def every_kind_of_argument(x, n, f, p, d, i):
        return jax.jit(lambda *args: args)(x, n, f, p, d, i)

    @corpus.program(floats(3))
    def static_arguments(x):
        f = jax.jit(
            lambda x, n, *, how: x * n if how == "mul" else x + n,
            static_argnums=1,
            static_argnames="how",
        )
        return f(x, 2, how="mul"), f(x, 2, how="add"), f(x, 3.0, how="mul")

    @corpus.program({"w": floats(2, 2), "b": [floats(2), None]})
    def trees_in_and_out(tree):
        return jax.jit(lambda t: {"out": (t["w"] @ t["b"][0], t["b"][1]), "n": 3})(tree)

    @corpus.program(floats(3))
    def nested_and_shared(x):
        inner = jax.jit(lambda x: jnp.sin(x) * 2)
        return jax.jit(lambda x: inner(inner(x)) + inner(x))(x)

    @corpus.program(floats(3))
    def python_control_flow(x):
        @jax.jit
        def f(x):
            total = 0
            for i in range(3):
                if x.shape[0] > i:
                    total = total + x[i]
            return total

        return f(x)

    @corpus.program(floats(3))
    def as_a_decorator(x):
        @jax.jit
        def f(x, y=2.0):
            "Doc."
            return x * y

        return f(x), f(x, 3), f(x, y=4), f.__name__, f.__doc__

    @corpus.program(floats(3))
    def shapes_of_results(x):
        def f(x):
            return {"a": jnp.sin(x), "n": x.sum(), "w": 1.0}

        return jax.eval_shape(f, x), jax.jit(f).eval_shape(x)

    @corpus.program(floats(3))
    def ahead_of_time(x):
        lowered = jax.jit(lambda x: {"y": x * 2}).lower(x)
        compiled = lowered.compile()
        return compiled(x), lowered.out_info, str(compiled.in_tree), lowered.args_info is not None

    @corpus.program(floats(3))
    def tracing_happens_once(x):
        seen = []

        @jax.jit
        def f(x):
            seen.append(x.shape)
            return x + 1

        f(x), f(x), f(jnp.asarray(x)), f(x[:2]), f(2.0), f(3.0), f(2)
        return len(seen)

    @corpus.program(floats(3))
    def donated_arguments_are_gone(x):
        a = jnp.asarray(x) + 0
        b = jax.jit(lambda a: a + 1, donate_argnums=0)(a)
        return b, a.is_deleted()


def trees(corpus, jax, jnp):
    tree = {"b": [1, (2, None)], "a": {"z": 3.0, "y": ints(2)}}

    @corpus.program()
    def tree_functions():
        leaves, structure = jax.tree.flatten(tree)
        return (
            leaves,
            str(structure),
            jax.tree.map(lambda x: x * 2, tree),
            jax.tree.reduce(lambda a, b: a + np.sum(b), tree, 0.0),
            jax.tree.unflatten(structure, leaves[::-1]),
            jax.tree.all([True, True]),
            jax.tree.leaves(None),
            jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, tuple))[-1],
            jax.tree.transpose(
                jax.tree.structure([0, 0]), jax.tree.structure({"a": 0}), [{"a": 1}, {"a": 2}]
            ),
        )

    @corpus.program()
    def tree_paths():
        found, _ = jax.tree_util.tree_flatten_with_path(tree)
        return [(jax.tree_util.keystr(path), leaf) for path, leaf in found]

    @corpus.program()
    def tree_of_own_class():
        @jax.tree_util.register_pytree_node_class
        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

            def tree_flatten(self):
                return (self.a, self.b), None

            @classmethod
            def tree_unflatten(cls, _, children):
                return cls(*children)

        out = jax.jit(lambda p: Pair(p.b * 2, p.a))(Pair(jnp.ones(2), 3))
        return out.a, out.b
