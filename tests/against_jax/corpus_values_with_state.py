"""Values with a state, whose types are MutableHiTypes: what functions read of them and change."""

import dataclasses
import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        hijax = jax
        Effect = object
        cur_qdd = None
    else:
        hijax = importlib.import_module(f"{jax.__name__}.experimental.hijax")
        Effect = importlib.import_module(f"{jax.__name__}.extend.core").Effect
        cur_qdd = importlib.import_module(f"{jax.__name__}.experimental").cur_qdd

    class BoxEffect(Effect):
        pass

    effect = BoxEffect()
    hijax.control_flow_allowed_effects.add_type(BoxEffect)

    @dataclasses.dataclass(frozen=True)
    class State:
        leaf_avals: tuple
        treedef: object

        def to_tangent_qdd(self):
            return State(tuple(a.to_tangent_aval() for a in self.leaf_avals), self.treedef)

        def normalize(self):
            return State(tuple(a.normalize() for a in self.leaf_avals), self.treedef)

    class New(hijax.HiPrimitive):
        def abstract_eval(self, *leaves, treedef):
            return hijax.AvalQDD(BoxType(), State(leaves, treedef)), {effect}

        def to_lojax(self, *leaves, treedef):
            return Box.holding(jax.tree.unflatten(treedef, leaves))

        def impl(self, *leaves, treedef):
            return self.to_lojax(*leaves, treedef=treedef)

    class Set(hijax.HiPrimitive):
        multiple_results = True

        def abstract_eval(self, box, *leaves, treedef):
            box.mutable_qdd.update(State(leaves, treedef))
            return [], {effect}

        def to_lojax(self, box, *leaves, treedef):
            box.value = jax.tree.unflatten(treedef, leaves)
            return []

        def impl(self, box, *leaves, treedef):
            return self.to_lojax(box, *leaves, treedef=treedef)

    class Get(hijax.HiPrimitive):
        multiple_results = True

        def abstract_eval(self, box, *, avals):
            return avals, {effect}

        def to_lojax(self, box, *, avals):
            return jax.tree.leaves(box.value)

        def impl(self, box, *, avals):
            return self.to_lojax(box, avals=avals)

    if cur_qdd is not None:
        new_p, set_p, get_p = New("new_box"), Set("set_box"), Get("get_box")

    def read(box):
        state = cur_qdd(box)
        return jax.tree.unflatten(state.treedef, get_p.bind(box, avals=state.leaf_avals))

    def put(box, value):
        leaves, treedef = jax.tree.flatten(value)
        set_p.bind(box, *leaves, treedef=treedef)

    class BoxType(hijax.MutableHiType):
        get = hijax.aval_method(read)
        set = hijax.aval_method(put)

        def __hash__(self):
            return hash(BoxType)

        def __eq__(self, other):
            return isinstance(other, BoxType)

        def str_short(self, short_dtypes=False, **_):
            return "Box"

        def lo_ty_qdd(self, state):
            return [low for t in state.leaf_avals for low in t.lo_ty()]

        def new_from_loval(self, state, *low):
            return Box.holding(jax.tree.unflatten(state.treedef, low))

        def read_loval(self, state, box):
            return jax.tree.leaves(read(box))

        def update_from_loval(self, state, box, *low):
            put(box, jax.tree.unflatten(state.treedef, low))

        def to_tangent_aval(self):
            return BoxType()

    class Box:
        def __new__(cls, value):
            leaves, treedef = jax.tree.flatten(value)
            return new_p.bind(*leaves, treedef=treedef)

        @classmethod
        def holding(cls, value):
            box = object.__new__(cls)
            box.value = value
            return box

        def get(self):
            return read(self)

        def set(self, value):
            put(self, value)

        def cur_qdd(self):
            leaves, treedef = jax.tree.flatten(self.value)
            return State(tuple(map(jax.typeof, leaves)), treedef)

    hijax.register_hitype(Box, lambda box: BoxType())

    x = np.arange(3, dtype=np.float32)

    def add(box, x):
        box.set(box.get() + x)

    @corpus.program(x)
    def outside_of_functions(x):
        box = Box({"a": x})
        box.set({"b": box.get()["a"] + 1, "c": x})
        return box.get(), len(jax.tree.leaves(box)), str(jax.typeof(box).str_short())

    @corpus.program(x)
    def argument_of_jit(x):
        box = Box(jnp.zeros(3))

        @jax.jit
        def f(box, x):
            add(box, x)
            before = box.get()
            add(box, 2 * x)
            return before

        return f(box, x), f(box, 1 + x), f(box=box, x=x), box.get()

    @corpus.program(x)
    def jit_changes_the_structure(x):
        box = Box({})

        @jax.jit
        def f(box, name_of, x):
            box.set({**box.get(), f"sum{len(box.get())}": jnp.sum(x)})

        f(box, {}, x)
        f(box, {}, 2 * x)
        return box.get()

    @corpus.program(x)
    def values_made_inside(x):
        @jax.jit
        def f(x):
            box = Box(x)
            add(box, jnp.ones(3))
            return box.get()

        return f(x)

    @corpus.program(x)
    def jit_closes_over_it(x):
        box = Box(jnp.zeros(3))

        @jax.jit
        def f(x):
            add(box, x)
            return box.get() * 2

        results = [f(x)]
        box.set(x + 100)
        results.append(f(x))
        return results, box.get()

    @corpus.program(x)
    def jit_reads_what_it_closes_over(x):
        box = Box(jnp.zeros(3))
        f = jax.jit(lambda x: box.get() + x)
        results = [f(x)]
        box.set(x)
        results.append(f(x))
        box.set(x[:1])
        results.append(f(x))
        return results

    @corpus.program(x)
    def jit_in_jit(x):
        box = Box(jnp.zeros(3))

        @jax.jit
        def outer(box, x):
            inner = jax.jit(lambda x: add(box, x))
            inner(x)
            add(box, 10)
            inner(2 * x)
            jax.jit(add)(box, 100)
            return box.get()

        return outer(box, x), outer(box, x), box.get()

    @corpus.program(x)
    def scan_closes_over_it(x):
        box, last = Box(jnp.float32(1)), Box(jnp.zeros(()))

        def body(carry, x):
            box.set(box.get() * 2 + x)
            last.set(x)
            return carry + box.get(), box.get()

        results = lax.scan(body, jnp.float32(0), x)
        again = lax.scan(body, jnp.float32(0), x)
        return results, again, box.get(), last.get()

    @corpus.program(x)
    def scan_in_jit(x):
        box = Box({"count": jnp.int32(0), "sum": jnp.zeros(3)})

        def body(_, x):
            held = box.get()
            box.set({"count": held["count"] + 1, "sum": held["sum"] + x})
            return None, None

        @jax.jit
        def f(x):
            lax.scan(body, None, jnp.stack([x, x * 2]))
            return box.get()["count"] * 2

        return f(x), f(x), box.get()

    @corpus.program(x)
    def while_loops(x):
        box = Box(jnp.float32(1))

        def step(i):
            box.set(box.get() * 2)
            return i + 1

        lax.while_loop(lambda i: i < 3, step, 0)
        lax.fori_loop(0, 2, lambda i, c: (add(box, 1), c)[1], 0)
        return box.get()

    @corpus.program(x)
    def branches(x):
        box = Box(jnp.zeros(3))

        def f(p, x):
            lax.cond(p, lambda: add(box, x), lambda: add(box, 2 * x))
            lax.cond(p, lambda box, x: box.set(box.get() + 1), lambda box, x: box.set(x), box, x)
            lax.switch(p + 1, [lambda: add(box, 4), lambda: add(box, 20), lambda: add(box, 300)])

        f(jnp.bool_(True), x)
        first = box.get()
        jax.jit(f)(jnp.bool_(False), x)
        return first, box.get()

    @corpus.program(x)
    def derivatives_of_functions_that_close_over_it(x):
        box, seen = Box(jnp.float32(2)), Box(jnp.float32(0))

        def f(x):
            seen.set(lax.stop_gradient(jnp.sum(x)))
            return jnp.sum(box.get() * x * x)

        gradient = jax.grad(f)(x), jax.grad(jax.jit(f))(x)
        return gradient, seen.get(), jax.jvp(f, (x,), (x,))

    @corpus.program(x)
    def derivatives_of_scans(x):
        box = Box(jnp.float32(2))

        def f(x):
            def body(c, x):
                return c * box.get() + x, None

            return lax.scan(body, jnp.float32(0), x)[0]

        return jax.grad(f)(x)

    @corpus.program(x)
    def an_argument_without_derivative(x):
        box = Box(jnp.float32(2))

        def f(x, box):
            result = jnp.sum(x * box.get())
            box.set(jnp.float32(7))
            return result

        return jax.grad(f)(x, box), box.get()

    @corpus.program(x)
    def batches(x):
        box = Box(jnp.float32(2))

        def f(box, x):
            result = box.get() * x
            box.set(jnp.float32(7))
            return result

        return jax.vmap(f, (None, 0))(box, x), jax.vmap(lambda x: box.get() * x)(x)

    @corpus.program(x)
    def shapes_of_results(x):
        box = Box(x)

        def f(box, n):
            box.set(jnp.zeros(n["n"].shape))
            return box.get()

        shape = jax.eval_shape(f, box, {"n": jnp.ones(5)})
        jitted = jax.jit(f).eval_shape(box, {"n": jnp.ones(6)})
        return shape.shape, jitted.shape, box.get()

    return corpus
