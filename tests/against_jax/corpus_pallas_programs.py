"""Small kernels of Pallas, interpreted: aliases, buffers, prefetch, control flow, and layers."""

import numpy as np

from tests.against_jax.corpus_pallas_kernels import corpus_of, each, mapped, rows, specs
from tests.against_jax.inputs import bf16, floats, unit
from tests.against_jax.pallas_kit import kit_of


def programs(jax, jnp, lax):
    groups = (aliases, buffers, scalars_first, parts, branches, transformed, layers)
    corpus = corpus_of(groups, jax, jnp, lax)
    cores(corpus, kit_of(jax, jnp, lax))
    return corpus


# ---- results in the memory of operands -----------------------------------------------------------


def aliases(add, kit):
    pl = kit.pl
    blocks = specs(kit, *[((2,), lambda i: i)] * 2)

    def halved(x_ref, o_ref):
        o_ref[...] = o_ref[...] / 2 + x_ref[...]

    add("read_by_the_result", halved, floats(8), grid=4, input_output_aliases={0: 0}, **blocks)
    add("read_twice", halved, floats(4), grid=3, input_output_aliases={0: 0})
    add(
        "only_first_block",
        lambda x, o: o.__setitem__(..., -x[...]),
        floats(8),
        grid=1,
        input_output_aliases={0: 0},
        **blocks,
    )
    add("of_bfloat16", halved, floats(8).astype(bf16), input_output_aliases={0: 0})

    def second(x_ref, y_ref, o_ref):
        o_ref[pl.ds(0, 2)] = x_ref[pl.ds(2, 2)]

    add("second_operand", second, floats(4), floats(4), input_output_aliases={1: 0})

    def swapped(x_ref, o_ref):
        kept = o_ref[0]
        o_ref[0] = x_ref[3]
        o_ref[3] = kept

    add("swapped_ends", swapped, floats(4), input_output_aliases={0: 0})


# ---- buffers -------------------------------------------------------------------------------------


def buffers(add, kit):
    jnp, lax, pl, pltpu = kit.jnp, kit.lax, kit.pl, kit.pltpu
    vector = pltpu.VMEM((4,), np.float32)
    row = specs(kit, *[((1, 4), rows)] * 2)

    def previous(x_ref, o_ref, last):
        @pl.when(pl.program_id(0) == 0)
        def _():
            last[...] = jnp.zeros_like(last)

        o_ref[0] = last[...]
        last[...] = x_ref[0]

    add("of_the_step_before", previous, floats(3, 4), grid=3, scratch_shapes=[vector], **row)

    def counted(x_ref, o_ref, count):
        count[0] = jnp.where(pl.program_id(0) == 0, 0, count[0]) + 1
        o_ref[...] = x_ref[...] * count[0].astype(jnp.float32)

    add(
        "counter", counted, floats(3, 4), grid=3, scratch_shapes=[pltpu.SMEM((1,), np.int32)], **row
    )

    def two(x_ref, o_ref, a, b):
        a[...] = x_ref[...] + 1
        b[...] = a[...] > 1
        o_ref[...] = jnp.where(b[...], a[...], 0.0)

    add("two_of_them", two, floats(4), scratch_shapes=[vector, pltpu.VMEM((4,), np.bool_)])

    def nested(x_ref, o_ref):
        def outer(a):
            a[...] = x_ref[...] * 2
            pl.run_scoped(lambda b: inner(a, b), vector)

        def inner(a, b):
            b[...] = a[...] + x_ref[...]
            o_ref[...] = b[...]

        pl.run_scoped(outer, vector)

    add("in_buffers", nested, floats(4))

    def in_a_loop(x_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.loop(0, 3)
        def _(i):
            @pl.with_scoped(vector)
            def body(a):
                a[...] = o_ref[...] + i
                o_ref[...] = a[...] * 2

            body()

    add("in_a_loop", in_a_loop, floats(4))

    def result(x_ref, o_ref):
        def body(a):
            a[...] = x_ref[...]
            return {"sum": jnp.sum(a[...]), "first": a[0]}

        got = pl.run_scoped(body, vector)
        o_ref[...] = x_ref[...] * got["sum"] + got["first"]

    add("result_of_scope", result, floats(4))

    def queue(x_ref, o_ref, ring):
        @pl.loop(0, 4)
        def _(i):
            ring[i % 2] = x_ref[i]
            o_ref[i] = lax.cond(i > 0, lambda: ring[0] + ring[1], lambda: ring[0])

    add("ring", queue, floats(4, 4), scratch_shapes=[pltpu.VMEM((2, 4), np.float32)])


# ---- scalars that index maps read ----------------------------------------------------------------


def scalars_first(add, kit):
    jnp, pl, pltpu = kit.jnp, kit.pl, kit.pltpu

    def grid(count, sizes, *pairs):
        return {"grid_spec": pltpu.PrefetchScalarGridSpec(count, sizes, **specs(kit, *pairs))}

    def without(kernel, count=1):
        return lambda *refs: kernel(*refs[count:])

    order, x = np.array([2, 0, 3, 1], np.int32), floats(4, 4)
    own = ((1, 4), lambda i, n: (i, 0))
    chosen = ((1, 4), lambda i, n: (n[i], 0))
    options = {"shape": (4, 4), "dtype": np.float32}
    add("gathered", without(mapped(lambda x: x)), order, x, **options, **grid(1, 4, chosen, own))
    add("scattered", without(mapped(lambda x: x)), order, x, **options, **grid(1, 4, own, chosen))
    add(
        "added_neighbor",
        without(mapped(lambda x, y: x + y)),
        order,
        x,
        x,
        **options,
        **grid(1, 4, own, chosen, own),
    )

    def ragged(n_ref, x_ref, o_ref):
        length = n_ref[pl.program_id(0)]
        inside = jnp.arange(4)[None] < length
        o_ref[...] = jnp.where(inside, x_ref[...], 0.0)

    add("ragged_rows", ragged, order, x, **options, **grid(1, 4, own, own))

    def summed(n_ref, x_ref, o_ref):
        def body(i, total):
            return total + x_ref[0, i]

        total = pl.loop(0, n_ref[pl.program_id(0)], init_carry=jnp.float32(0))(body)
        o_ref[...] = jnp.full_like(o_ref, total)

    add("sum_of_first", summed, order, x, **options, **grid(1, 4, own, own))
    two = ((1, 4), lambda i, n, m: (n[m[i]], 0))
    add(
        "of_two_arrays",
        without(mapped(lambda x: -x), 2),
        order,
        order[::-1].copy(),
        x,
        **options,
        **grid(2, 4, two, ((1, 4), lambda i, n, m: (i, 0))),
    )
    table = np.array([[0, 3], [2, 1]], np.int32)
    add(
        "of_a_table",
        without(mapped(lambda x: x * 2)),
        table,
        x,
        **options,
        **grid(
            1,
            (2, 2),
            ((1, 4), lambda i, j, t: (t[i, j], 0)),
            ((1, 4), lambda i, j, t: (i * 2 + j, 0)),
        ),
    )


# ---- parts of references -------------------------------------------------------------------------


def parts(add, kit):
    jnp, pl, pltpu = kit.jnp, kit.pl, kit.pltpu
    x = floats(4, 6)

    def strided(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(0, 2, 2), pl.ds(1, 3, 2)]

    def computed_start(x_ref, o_ref):
        start = (x_ref[0, 0] > 0).astype(jnp.int32) + 1
        o_ref[...] = x_ref[pl.ds(start, 2), 1:4]

    def gathered(x_ref, o_ref):
        chosen = jnp.arange(1, 5, 2) - 1
        o_ref[...] = x_ref[chosen, 1:4]

    def views(x_ref, o_ref):
        view = x_ref.at[1:].at[:, 2:5]
        o_ref[...] = view[1:] + view[0]

    def added(x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        pl.loop(0, 4)(lambda i: o_ref.at[i % 2].__setitem__(..., o_ref[i % 2] + x_ref[i, :3]))

    def ellipsis(x_ref, o_ref):
        o_ref[..., 0] = x_ref[:2, 5]
        o_ref[0, 1:] = x_ref[3, :2]
        o_ref[1, 1:] = x_ref[-1, 2:4]

    def last_first(x_ref, o_ref):
        @pl.loop(0, 3)
        def _(i):
            o_ref[:, pl.ds(2 - i, 1)] = x_ref[:2, pl.ds(i, 1)]

    def masked(x_ref, o_ref):
        o_ref[...] = jnp.ones_like(o_ref)
        mask = x_ref[:2, :3] > 0
        pltpu.store(o_ref, pltpu.load(x_ref.at[2:, 3:], mask=None), mask=mask)

    kernels = (strided, computed_start, gathered, views, added, ellipsis, last_first, masked)
    for kernel in kernels:
        add(kernel.__name__, kernel, x, shape=(2, 3))


# ---- branches and loops --------------------------------------------------------------------------


def branches(add, kit):
    jnp, lax, pl = kit.jnp, kit.lax, kit.pl
    x = floats(4)

    def switch(x_ref, o_ref):
        choose = (lambda: x_ref[...], lambda: -x_ref[...], lambda: x_ref[...] * 10)
        o_ref[...] = lax.switch(pl.program_id(0), choose)

    def while_loop(x_ref, o_ref):
        total = lax.while_loop(lambda v: v < 5, lambda v: v * 2 + 1, jnp.float32(0))
        o_ref[...] = x_ref[...] * total

    def scan(x_ref, o_ref):
        _, total = lax.scan(lambda c, y: (c + y, c * y), jnp.float32(1), x_ref[...])
        o_ref[...] = total

    def fori(x_ref, o_ref):
        def body(i, carry):
            o_ref[i] = carry
            return carry + x_ref[i]

        o_ref[0] = lax.fori_loop(0, 4, body, jnp.float32(0))

    def nested(x_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.loop(0, 4)
        def _(i):
            @pl.loop(0, 4, step=3)
            def _(j):
                @pl.when(i != j)
                def _():
                    o_ref[i] = o_ref[i] + o_ref[j]

    def unrolled(x_ref, o_ref):
        @pl.loop(0, 4, unroll=True)
        def _(i):
            o_ref[i] = x_ref[3 - i]

    def jitted(x_ref, o_ref):
        o_ref[...] = kit.jax.jit(lambda v: jnp.sin(v) + 1)(x_ref[...])

    for kernel in (while_loop, scan, fori, nested, unrolled, jitted):
        add(kernel.__name__, kernel, x)
    row = ((1, 4), rows)
    add("switch", switch, floats(3, 4), grid=3, **specs(kit, row, row))


# ---- transformations -----------------------------------------------------------------------------


def transformed(add, kit):
    jax, jnp, call = kit.jax, kit.jnp, kit.call

    def under(name, transform, kernel, *args, **options):
        """Add a transformed call, as a kernel that only names it."""
        corpus = add.args[0]
        shape = options.pop("shape", args[0].shape[1:])
        corpus.add(
            f"transformed_{name}",
            transform(lambda *xs: call(kernel, shape, *xs, **options)),
            *args,
        )

    x = floats(3, 4)
    scaled = mapped(lambda x, y: x * jnp.sum(y))
    blocks = {"grid": 2, **specs(kit, *[((2,), lambda i: i)] * 2)}
    under("batch_of_blocks", jax.vmap, mapped(jnp.exp), x, **blocks)
    under("batch_of_two", jax.vmap, scaled, x, x)
    under("batch_in_jit", lambda f: jax.jit(jax.vmap(f)), mapped(jnp.cos), x, **blocks)
    under("scan_of_calls", lambda f: lambda x: jax.lax.map(f, x), mapped(jnp.sin), x, **blocks)

    def tangent(f):
        return lambda x, y: jax.jvp(f, (x, y), (y, x))

    under("tangent_of_product", tangent, scaled, floats(4), floats(4), shape=(4,))

    def of_masked(x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        kit.pltpu.store(o_ref, kit.pltpu.load(x_ref) ** 2, mask=jnp.arange(4) < 2)

    under(
        "tangent_of_masked",
        lambda f: lambda x: jax.jvp(f, (x,), (x,)),
        of_masked,
        floats(4),
        shape=(4,),
    )


# ---- layers of models ----------------------------------------------------------------------------


def layers(add, kit):
    jax, jnp, pl, pltpu = kit.jax, kit.jnp, kit.pl, kit.pltpu
    x = floats(4, 8)
    row = ((2, 8), rows)
    by_row = {"grid": 2, **specs(kit, row, row)}
    with_scale = {"grid": 2, **specs(kit, row, ((8,), lambda i: 0), row)}

    def norm(x, scale):
        return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale

    def layer_norm(x, scale):
        centered = x - x.mean(-1, keepdims=True)
        return centered / jnp.sqrt(centered.var(-1, keepdims=True) + 1e-5) * scale

    def rotated(x, angle):
        a, b = x[:, :4], x[:, 4:]
        return jnp.concatenate([a * jnp.cos(angle) - b, a * jnp.sin(angle) + b], axis=1)

    add("softmax", mapped(lambda x: jax.nn.softmax(x, axis=-1)), x, **by_row)
    add("rms_norm", mapped(norm), x, unit(8), **with_scale)
    add("layer_norm", mapped(layer_norm), x, unit(8), **with_scale)
    add("gelu", mapped(jax.nn.gelu), x, **by_row)
    add("rotary", mapped(rotated), x, unit(4), grid=2, **specs(kit, row, ((4,), lambda i: 0), row))

    def attention(q_ref, k_ref, v_ref, o_ref, top, total, sums):
        @pl.when(pl.program_id(0) == 0)
        def _():
            top[...] = jnp.full_like(top, -1e30)
            total[...] = jnp.zeros_like(total)
            sums[...] = jnp.zeros_like(sums)

        scores = q_ref[...] @ k_ref[...].T
        new = jnp.maximum(top[...], scores.max(axis=1, keepdims=True))
        weights = jnp.exp(scores - new)
        scale = jnp.exp(top[...] - new)
        total[...] = total[...] * scale + weights.sum(axis=1, keepdims=True)
        sums[...] = sums[...] * scale + weights @ v_ref[...]
        top[...] = new

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = sums[...] / total[...]

    whole, block = ((4, 8), lambda i: (0, 0)), ((2, 8), rows)
    column = pltpu.VMEM((4, 1), np.float32)
    add(
        "flash_attention",
        attention,
        x,
        floats(6, 8),
        unit(6, 8),
        grid=3,
        scratch_shapes=[column, column, pltpu.VMEM((4, 8), np.float32)],
        **specs(kit, whole, block, block, whole),
    )

    def random_block(key_ref, o_ref):
        key = jax.random.wrap_key_data(key_ref[...])
        o_ref[...] = pltpu.sample_block(jax.random.uniform, key, (4, 4), (2, 4), (8, 8))

    add(
        "random_blocks",
        random_block,
        np.array([1, 2], np.uint32),
        shape=(8, 8),
        dtype=np.float32,
        grid=(2, 2),
        **specs(kit, ((2,), lambda i, j: 0), ((4, 4), each)),
    )


# ---- cores ---------------------------------------------------------------------------------------


def cores(corpus, kit):
    jax, pl, pltpu = kit.jax, kit.pl, kit.pltpu

    def on_each_core(x):
        mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
        ref, out = jax.new_ref(x), jax.new_ref(kit.jnp.zeros_like(x))

        @pl.core_map(mesh, interpret=pltpu.InterpretParams())
        def _():
            core = kit.lax.axis_index("core")

            def with_buffer(buffer):
                pltpu.sync_copy(ref.at[core], buffer)
                buffer[...] = buffer[...] * 2 + core
                pltpu.sync_copy(buffer, out.at[1 - core])
                pltpu.sync_copy(buffer, ref.at[core])

            pl.run_scoped(with_buffer, pltpu.VMEM((8,), np.float32))

        return out[...], ref[...]

    corpus.add("core_map", lambda x: jax.jit(on_each_core)(x), floats(2, 8))
