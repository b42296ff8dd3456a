"""Mutable references: made inside, passed in and closed over, under every transformation."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr", "jit"))
    straight(corpus, jax, jnp)
    indices(corpus, jax, jnp)
    loops(corpus, jax, jnp, lax)
    derivatives(corpus, jax, jnp, lax)
    batches(corpus, jax, jnp, lax)
    from_outside(corpus, jax, jnp, lax)
    errors(corpus, jax, jnp, lax)
    return corpus


def straight(corpus, jax, jnp):
    @corpus.program(floats(3))
    def read_and_written(x):
        ref = jax.new_ref(x)
        ref[...] += 1
        y = ref[0]
        ref[1] = y
        ref[1:] = ref[1:] * 2
        return jax.freeze(ref)

    @corpus.program(floats(3))
    def frozen(x):
        return jax.freeze(jax.new_ref(x))

    @corpus.program(floats(3))
    def freed(x):
        ref = jax.new_ref(x)
        y = ref[...]
        jax.free_ref(ref)
        return y

    @corpus.program(floats(3), modes=("jaxpr", "jit"))
    def empty(x):
        ref = jax.empty_ref(jax.typeof(x))
        ref[...] = x
        return ref[...]

    @corpus.program(floats(3))
    def swapped(x):
        ref = jax.new_ref(x)
        old = jax.ref.swap(ref, 1, 5.0)
        return old, jax.ref.get(ref), jax.ref.get(ref, 1)

    @corpus.program(floats(3))
    def added(x):
        ref = jax.new_ref(x)
        ref.addupdate(x)
        jax.ref.addupdate(ref, 0, 2.0)
        jax.ref.set(ref, 2, 1.0)
        return ref[...]

    @corpus.program(floats())
    def scalar(x):
        ref = jax.new_ref(x)
        ref[...] *= 2
        return ref[...]

    @corpus.program()
    def weak():
        ref = jax.new_ref(1.0)
        ref[...] = jnp.float32(2)
        return ref[...]

    @corpus.program(ints(3))
    def integers(x):
        ref = jax.new_ref(x)
        ref[0] = jnp.int32(7)
        return ref[...]

    @corpus.program(floats(3))
    def of_a_kind(x):
        return jax.new_ref(x, kind="scratch")[...]

    @corpus.program(floats(3))
    def in_a_jitted_function(x):
        ref = jax.new_ref(x)
        jax.jit(lambda r: r.__setitem__(0, 9.0))(ref)
        return ref[...]

    @corpus.program(floats(3))
    def closed_over_by_a_jitted_function(x):
        ref = jax.new_ref(x)

        @jax.jit
        def add():
            ref[...] += 1.0

        add()
        add()
        return ref[...]

    @corpus.program(floats(3), modes=("repr",))
    def prints_as(x):
        return jax.new_ref(x), jax.typeof(jax.new_ref(x))


def indices(corpus, jax, jnp):
    matrix = floats(3, 4)
    for name, index in {
        "an_integer": 1,
        "a_negative_integer": -1,
        "integers": (1, 2),
        "a_slice": slice(1, None),
        "slices": (slice(0, 2), slice(1, 3)),
        "strides": (slice(0, 3, 2), slice(1, 4, 2)),
        "a_column": (slice(None), 0),
        "an_ellipsis": (..., 0),
        "nothing": (),
        "none": None,
        "an_array": np.array([0, 2]),
        "negative_indices": np.array([-1, 0]),
        "small_integers": np.array([1, 2], np.int8),
        "a_slice_and_an_array": (slice(1, 3), np.array([0, 1])),
        "an_array_and_a_slice": (np.array([2, 0]), slice(1, 3)),
        "no_elements": slice(2, 1),
    }.items():

        def text(x, index=index):
            return jax.new_ref(x)[index]

        def read_and_written(x, index=index):
            ref = jax.new_ref(x)
            part = ref[index]
            ref[index] = jnp.sin(part)
            jax.ref.addupdate(ref, index, jnp.ones_like(part))
            return part, ref[...]

        corpus.add(f"text_of_{name}", text, matrix, modes=("jaxpr",))
        corpus.add(f"at_{name}", read_and_written, matrix, modes=("jit",))

    @corpus.program(matrix, 1)
    def computed_integers(x, i):
        ref = jax.new_ref(x)
        ref[i, 1:3] = ref[0, :2]
        return ref[i], ref[:, i]

    @corpus.program(floats(2, 3, 4), np.array([0, 1]), modes=("jit",))
    def arrays_around_a_slice(x, i):
        ref = jax.new_ref(x)
        ref[i, :, i] = ref[i, :, i + 2]
        return ref[...], ref[i, 1, i]

    @corpus.program(matrix, np.array([[0], [1]]), np.array([1, 3]), modes=("jit",))
    def arrays_that_broadcast(x, i, j):
        ref = jax.new_ref(x)
        jax.ref.addupdate(ref, (i, j), jnp.ones((2, 2)))
        return ref[i, j], ref[i, 1], ref[...]

    @corpus.program(matrix, modes=("jit",))
    def repeated_indices_are_added_to_twice(x):
        ref = jax.new_ref(x)
        jax.ref.addupdate(ref, np.array([1, 1]), jnp.ones((2, 4)))
        return ref[...]

    @corpus.program(matrix, 1, modes=("jaxpr", "jit"))
    def views(x, i):
        def inside(ref, i):
            part = ref.at[1:].at[0]
            part[i] = 2.0
            return part[i], ref[...]

        return inside(jax.new_ref(x), i)


def loops(corpus, jax, jnp, lax):
    @corpus.program(floats(3), floats(5, 3))
    def scan_over_a_constant(x, xs):
        ref = jax.new_ref(x)

        def step(c, row):
            ref[...] += row
            return c + ref[0], ref[1]

        return lax.scan(step, 0.0, xs), ref[...]

    @corpus.program(floats(4))
    def scan_over_references(x):
        ref = jax.new_ref(x)

        def step(c, element):
            element[...] = c + 1
            return c + 1, None

        return lax.scan(step, 0.0, ref), ref[...]

    @corpus.program(floats(4), modes=("jit",))
    def fori(x):
        ref = jax.new_ref(jnp.zeros(4))
        lax.fori_loop(0, 4, lambda i, _: ref.__setitem__(i, x[i] * 2), None)
        return ref[...]

    @corpus.program(5)
    def while_writes(n):
        ref = jax.new_ref(0.0)

        def body(i):
            ref[...] += 1.0
            return i + 1

        return lax.while_loop(lambda i: i < n, body, 0), ref[...]

    for pred in (True, False):

        def branches(x, pred=pred):
            ref = jax.new_ref(x)

            def one():
                ref[...] = x * 2
                return 1.0

            def other():
                ref[0] += 3.0
                return ref[1]

            return lax.cond(pred, one, other), ref[...]

        corpus.add(f"branches_{pred}".lower(), branches, floats(3), modes=("jit",))

    @corpus.program(True, floats(3))
    def a_branch_that_does_nothing(pred, x):
        ref = jax.new_ref(x)
        lax.cond(pred, lambda: None, lambda: ref.__setitem__(1, 2.0))
        return ref[...]

    @corpus.program(1, floats(3))
    def switch(i, x):
        ref = jax.new_ref(x)
        y = lax.switch(
            i,
            [lambda r: r[0], lambda r: r.__setitem__(1, 3.0) or 1.0, lambda r: 0.0],
            ref,
        )
        return y, ref[...]

    @corpus.program(floats(3), floats(4, 3), modes=("jit",))
    def nested(x, xs):
        ref = jax.new_ref(x)

        def step(c, row):
            def inner(i, c):
                ref[i] += row[i] * c
                return c * 0.5

            lax.cond(c > 2, lambda: ref.__setitem__(0, c), lambda: None)
            return lax.fori_loop(0, 3, inner, c) + 1, ref[2]

        return lax.scan(step, 1.0, xs), ref[...]

    @corpus.program(floats(3))
    def inside_of_a_checkpoint(x):
        @jax.checkpoint
        def f(x):
            ref = jax.new_ref(x)
            ref[...] *= 2
            return ref[...]

        return f(x)


def derivatives(corpus, jax, jnp, lax):
    def plain(x):
        ref = jax.new_ref(x)
        ref[...] = jnp.sin(ref[...])
        ref[0] *= 2
        return ref[...].sum()

    def through_scan(x):
        ref = jax.new_ref(jnp.zeros(()))

        def step(c, x):
            ref[...] += jnp.sin(x) * c
            return c * x, ref[...]

        c, ys = lax.scan(step, 1.0, x)
        return ref[...] + c + ys.sum()

    def through_indices(x):
        ref = jax.new_ref(jnp.zeros(4))
        lax.fori_loop(0, 4, lambda i, _: ref.__setitem__(i, jnp.sin(x[i]) * ref[i - 1]), None)
        ref[1:] += x[:3] ** 2
        return (ref[...] * x).sum()

    def through_cond(x):
        ref = jax.new_ref(x)

        def one():
            ref[...] = jnp.sin(ref[...])

        def other():
            ref[...] *= 3.0

        lax.cond(x[0] > 0, one, other)
        lax.cond(x[1] > 0, one, other)
        return ref[...].sum()

    def through_jit(x):
        ref = jax.new_ref(x)

        @jax.jit
        def square():
            ref[...] *= ref[...]
            return ref[0]

        return square() + ref[...].sum()

    def through_references_that_are_scanned(x):
        ref = jax.new_ref(x)

        def step(c, element):
            element[...] = jnp.sin(element[...]) * c
            return c + element[...], None

        c, _ = lax.scan(step, 1.0, ref)
        return c + ref[...].sum()

    def through_sums(x):
        ref = jax.new_ref(x)
        ref.addupdate(x * x)
        jax.ref.addupdate(ref, 0, x[1] * 3)
        return jax.freeze(ref).sum()

    def through_old_values(x):
        ref = jax.new_ref(x)
        old = jax.ref.swap(ref, 1, x[0] * x[2])
        return (ref[...] * old).sum()

    def beside_integers(x):
        count = jax.new_ref(jnp.zeros((), jnp.int32))
        ref = jax.new_ref(x)

        def step(c, y):
            count[...] += 1
            ref[0] += y
            return c * y, None

        c, _ = lax.scan(step, 1.0, x)
        return c * count[...] + ref[...].sum()

    x = floats(4)
    for function in (
        plain,
        through_scan,
        through_indices,
        through_cond,
        through_jit,
        through_references_that_are_scanned,
        through_sums,
        through_old_values,
    ):

        def derivatives_of(x, t, function=function):
            derivative = jax.grad(function)
            return function(x), jax.jvp(function, (x,), (t,)), jax.jvp(derivative, (x,), (t,))

        corpus.add(function.__name__, derivatives_of, x, floats(4), modes=("jit",))
    corpus.add(
        "jvp_beside_integers",
        lambda x: jax.jvp(beside_integers, (x,), (x,)),
        x,
        modes=("jit",),
    )
    corpus.add("grad_outside_of_jit", jax.grad(through_scan), x, modes=("value",))
    corpus.add(
        "linearize_outside_of_jit",
        lambda x: jax.linearize(plain, x)[1](x),
        x,
        modes=("value",),
    )
    corpus.add("text_of_grad", jax.grad(plain), x, modes=("jaxpr",))
    corpus.add(
        "text_of_jvp",
        lambda x, t: jax.jvp(through_scan, (x,), (t,)),
        x,
        x,
        modes=("jaxpr",),
    )

    @corpus.program(x, modes=("jit",))
    def in_a_custom_vjp(x):
        @jax.custom_vjp
        def f(x):
            ref = jax.new_ref(x)
            ref[...] *= 2
            return ref[...]

        f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x,))
        return f(x), jax.grad(lambda x: f(x).sum())(x)

    @corpus.program(x, modes=("jit",))
    def residual_that_is_a_reference(x):
        seen = jax.new_ref(jnp.zeros(4))

        @jax.custom_vjp
        def f(ref, x):
            return x * 2

        def backward(ref, g):
            ref[...] = g
            return None, g * 2

        f.defvjp(lambda ref, x: (x * 2, ref), backward)
        gradient = jax.grad(lambda x: (f(seen, x) * x).sum())(x)
        return gradient, seen[...]

    @corpus.program(x, modes=("jit",))
    def constants_may_be_read(x):
        ref = jax.new_ref(x)
        return jax.grad(lambda y: (ref[...] * y).sum())(x)

    @corpus.program(x, modes=("jit",))
    def constants_may_be_written(x):
        ref = jax.new_ref(x)

        def f(y):
            ref[...] = lax.stop_gradient(y) * 2
            return (ref[...] * y).sum()

        return jax.grad(f)(x), ref[...]


def batches(corpus, jax, jnp, lax):
    def plain(x):
        ref = jax.new_ref(x)
        ref[...] = jnp.sin(ref[...])
        ref[0] *= 2
        return ref[...].sum(), ref[...]

    def of_constants(x):
        ref = jax.new_ref(0.0)
        ref[...] = x
        return ref[...]

    def at_indices(i, v):
        ref = jax.new_ref(jnp.arange(12.0).reshape(3, 4))
        ref[i] += v
        ref[0, i] = 1.0
        return ref[...], ref[i, 1:]

    def with_scan(x):
        ref = jax.new_ref(jnp.zeros(()))

        def step(c, x):
            ref[...] += jnp.sin(x) * c
            return c * x, ref[...]

        return lax.scan(step, 1.0, x), ref[...]

    def with_while(n):
        ref = jax.new_ref(1.0)

        def body(i):
            ref[...] *= 2.0
            return i + 1

        lax.while_loop(lambda i: i < n, body, 0)
        return ref[...]

    corpus.add("vmap_plain", jax.vmap(plain), floats(2, 3), modes=("jit",))
    corpus.add("vmap_last_axis", jax.vmap(plain, 1, (0, 1)), floats(3, 2), modes=("jit",))
    corpus.add("vmap_of_constants", jax.vmap(of_constants), floats(3))
    corpus.add(
        "vmap_at_indices", jax.vmap(at_indices), np.array([0, 2]), floats(2, 4), modes=("value",)
    )
    corpus.add("vmap_with_scan", jax.vmap(with_scan), floats(2, 3), modes=("jit",))
    corpus.add("vmap_with_while", jax.vmap(with_while), np.array([1, 3, 0]), modes=("jit",))
    corpus.add(
        "vmap_of_grad",
        jax.vmap(jax.grad(lambda x: plain(x)[0])),
        floats(2, 3),
        modes=("jit",),
    )

    @corpus.program(floats(2, 3), floats(2, 3))
    def vmapped_references(x, y):
        ref = jax.new_ref(x)
        z = jax.vmap(lambda r, y: (r.__setitem__(0, y[1]), r[...])[1])(ref, y)
        return z, ref[...]

    @corpus.program(floats(2, 3), floats(3))
    def references_with_another_batch_axis(x, y):
        ref = jax.new_ref(x)
        jax.vmap(lambda r, y: r.__setitem__(0, y * r[1]), (1, 0))(ref, y)
        return ref[...]

    @corpus.program(floats(2, 3), floats(4))
    def shared_references_may_be_read(x, y):
        ref = jax.new_ref(x)
        return jax.vmap(lambda y: y * ref[0].sum())(y)

    @corpus.program(floats(4, 3), np.array([0, 2, 1, 0]))
    def shared_references_at_indices(x, i):
        ref = jax.new_ref(x)
        return jax.vmap(lambda i: ref[i])(i)


def from_outside(corpus, jax, jnp, lax):
    for mode in ("passed", "closed_over"):

        def text(x, mode=mode):
            ref = jax.new_ref(x)
            if mode == "passed":
                return str(jax.make_jaxpr(lambda r, y: (r.__setitem__(0, y), r[1])[1])(ref, 1.0))
            return str(jax.make_jaxpr(lambda y: (ref.__setitem__(0, y), ref[1])[1])(1.0))

        corpus.add(f"text_{mode}", text, floats(3), modes=("repr",))

    @corpus.program(floats(3), modes=("value",))
    def called_twice(x):
        ref = jax.new_ref(x)

        @jax.jit
        def step(r, y):
            r[...] += y
            return r[0]

        return step(ref, 1.0), step(ref, 2.0), ref[...]

    @corpus.program(floats(3), modes=("value",))
    def closed_over_by_jit(x):
        ref = jax.new_ref(x)

        @jax.jit
        def step(y):
            ref[1] = y
            return ref[...].sum()

        return step(1.0), step(2.0), ref[...]

    @corpus.program(floats(3), modes=("value",))
    def scanned_outside_of_jit(x):
        ref = jax.new_ref(x)

        def step(c, y):
            ref[...] += y
            return c + ref[0], ref[1]

        return lax.scan(step, 0.0, x), lax.cond(True, lambda: ref[0], lambda: 0.0), ref[...]

    @corpus.program(floats(3), modes=("value",))
    def the_first_value_is_copied(x):
        x = jnp.asarray(x)
        ref = jax.new_ref(x)
        y = ref[...]
        ref[...] = jnp.zeros(3)
        return x, y, ref[...]

    @corpus.program(floats(3), modes=("value",))
    def jvp_of_references(x):
        ref, tangent = jax.new_ref(x), jax.new_ref(x * 2)

        def f(r, y):
            r[...] *= y
            return r[0]

        return jax.jvp(f, (ref, x), (tangent, x)), ref[...], tangent[...]

    @corpus.program(floats(3), modes=("value",))
    def grad_beside_a_reference(x):
        return jax.grad(lambda y, r: (r[...] * y).sum())(x, jax.new_ref(x))

    @corpus.program(floats(3), modes=("value",))
    def shapes(x):
        ref = jax.new_ref(x)
        struct = jax.ShapeDtypeStruct((3,), np.float32, is_ref=True)
        return [
            str(jax.eval_shape(lambda r: r[0], a).shape) == "()"
            for a in (ref, jax.typeof(ref), struct)
        ]

    @corpus.program(floats(3), modes=("value",))
    def members(x):
        ref = jax.new_ref(x)
        return [ref.shape == (3,), ref.dtype == x.dtype, ref.ndim, ref.size, len(ref)]

    @corpus.program(floats(3), modes=("value",))
    def instances(x):
        inside = []
        ref = jax.new_ref(x)
        jax.jit(lambda r: inside.append(isinstance(r, jax.Ref)))(ref)
        return isinstance(ref, jax.Ref), isinstance(ref, jax.Array), inside

    @corpus.program(floats(3), modes=("value",))
    def compiled_ahead_of_time(x):
        ref = jax.new_ref(x)
        step = jax.jit(lambda r, y: r.__setitem__(0, y)).lower(ref, 1.0).compile()
        step(ref, 4.0)
        return ref[...]

    class Holder:
        """An object that converts itself to an array, and has the attributes of what it holds."""

        def __init__(self, held):
            self.held = held

        def __jax_array__(self):
            return self.held

        def __getattr__(self, name):
            return getattr(self.held, name)

    @corpus.program(floats(3), modes=("value",))
    def objects_with_the_attributes_of_references(x):
        holder = Holder(jax.new_ref(x))
        return isinstance(holder, jax.Ref), isinstance(holder.held, jax.Ref)

    @corpus.program(floats(3), modes=("value",))
    def the_type_of_an_object_that_converts_itself(x):
        return jax.typeof(Holder(jnp.asarray(x)))

    @corpus.program(floats(3), modes=("value",))
    def arrays_like_objects_that_convert_themselves(x):
        class Plain:
            def __jax_array__(self):
                return jnp.asarray(x)

        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
        holder = Holder(jax.device_put(x, sharding))
        makers = [jnp.zeros_like, jnp.ones_like, lambda a: jnp.full_like(a, 7), jnp.empty_like]
        shardings = [make(holder).sharding == sharding for make in makers]
        return shardings, [make(Plain()) for make in makers], jnp.zeros_like(holder, dtype=int)


def errors(corpus, jax, jnp, lax):
    def add(name, function, mode="jit"):
        corpus.add(f"error_{name}", lambda x: function(jax.new_ref(x), x), floats(3), modes=(mode,))

    add("returned", lambda r, x: r)
    add("returned_from_jit", lambda r, x: jax.jit(lambda r: r)(r))
    add("returned_from_scan", lambda r, x: lax.scan(lambda c, _: (c, r), 0.0, None, length=2))
    add("carried", lambda r, x: lax.scan(lambda c, _: (c, None), r, None, length=2))
    add("carried_by_while", lambda r, x: lax.while_loop(lambda c: True, lambda c: c, r))
    add("returned_from_cond", lambda r, x: lax.cond(True, lambda: r, lambda: r))
    add("passed_twice", lambda r, x: jax.jit(lambda a, b: a[...] + b[...])(r, r))
    add("passed_twice_in_a_list", lambda r, x: jax.jit(lambda a: a[0][...] + a[1][...])([r, r]))
    add("passed_twice_to_vmap", lambda r, x: jax.vmap(lambda a, b: a[...] + b[...])(r, r))
    add("passed_twice_to_eval_shape", lambda r, x: jax.eval_shape(lambda a, b: a[0] + b[0], r, r))
    functions_with_a_vjp(add, jax)
    add("passed_and_closed_over", lambda r, x: jax.jit(lambda a: a[...] + r[...])(r))
    add(
        "passed_twice_to_cond",
        lambda r, x: lax.cond(True, lambda a, b: b[0], lambda a, b: a[0], r, r),
    )
    add(
        "scanned_and_closed_over",
        lambda r, x: lax.scan(lambda c, a: (c + r[0] + a[...], 0), 0.0, r),
    )
    add("written_a_shape", lambda r, x: r.__setitem__(..., x[:2]))
    add("written_a_scalar", lambda r, x: r.__setitem__(..., 1.0))
    add("written_a_dtype", lambda r, x: r.__setitem__(0, 1))
    add("added_a_dtype", lambda r, x: jax.ref.addupdate(r, 0, 1))
    add("too_many_indices", lambda r, x: r[0, 0])
    add("two_ellipses", lambda r, x: r[..., ...])
    add("a_negative_step", lambda r, x: r[::-1])
    add("get_of_an_array", lambda r, x: jax.ref.get(x, 0))
    add("a_string", lambda r, x: r["a"])
    add("batched_value", lambda r, x: jax.vmap(lambda y: r.__setitem__(0, y))(x))
    add("batched_sum", lambda r, x: jax.vmap(lambda y: jax.ref.addupdate(r, 0, y))(x))
    add("shared_and_written", lambda r, x: jax.vmap(lambda y: r.__setitem__(0, 1.0))(x))
    add("differentiated_value", lambda r, x: jax.grad(lambda y: r.__setitem__(..., y) or y[0])(x))
    add("an_operation", lambda r, x: lax.sin(r))
    add(
        "batched_cond",
        lambda r, x: jax.vmap(
            lambda p, q: lax.cond(p > 0, lambda: q.__setitem__(..., 1.0), lambda: None)
        )(x, r),
    )
    add(
        "while_backwards",
        lambda r, x: jax.grad(
            lambda y: (
                lax.while_loop(lambda i: i < y[0], lambda i: i + r[0], 0.0)
                + (
                    lambda q: (
                        lax.while_loop(
                            lambda i: i < 3, lambda i: (q.__setitem__(0, q[0] * 2), i + 1)[1], 0
                        )
                        + q[0]
                    )
                )(jax.new_ref(y))
            )
        )(x),
    )


def functions_with_a_vjp(add, jax):
    """Add calls of functions with a vjp rule that are given references, or return them."""

    def ruled(function, forward):
        function = jax.custom_vjp(function)
        function.defvjp(forward, lambda residual, ct: (ct, None, None))
        return function

    def read(x, r, s):
        return x[0] + r[0] + s[0]

    reads = ruled(read, lambda x, r, s: (read(x, r, s), x))
    returns = ruled(lambda x, r, s: (x, r), lambda x, r, s: ((x, r), x))
    makes = ruled(read, lambda x, r, s: (x[0], jax.new_ref(x)))
    keeps = ruled(read, lambda x, r, s: (x[0], (r, s)))
    for name, function in {"reads": reads, "returns": returns, "makes": makes}.items():
        # Where jax traces a call, it does not see that two references are one.
        add(f"vjp_{name}_twice", lambda r, x, f=function: f(x, r, r), mode="value")
        add(f"vjp_{name}", lambda r, x, f=function: f(x, r, jax.new_ref(x)))
        add(
            f"vjp_{name}_differentiated",
            lambda r, x, f=function: jax.vjp(f, x, r, jax.new_ref(x))[0],
        )
    add("vjp_keeps_arguments", lambda r, x: jax.vjp(keeps, x, r, jax.new_ref(x))[0])
