"""Kernels of Pallas, interpreted: blocks, grids, aliases, scratch, prefetch, copies, errors."""

import functools

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints
from tests.against_jax.pallas_kit import kit_of


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    kit = kit_of(jax, jnp, lax)
    for add in (blocks, dtypes, grids, aliases, scratch, prefetch, control, copies, batches):
        add(corpus, kit)
    tangents(corpus, kit)
    errors(corpus, kit)
    return corpus


def copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def doubled(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def blocks(corpus, kit):
    pl, call = kit.pl, kit.call

    def add(name, x, shape, grid, spec, out_spec):
        corpus.add(
            f"blocks_{name}",
            lambda x: call(
                copy,
                shape,
                x,
                dtype=x.dtype,
                grid=grid,
                in_specs=[pl.BlockSpec(*spec)],
                out_specs=pl.BlockSpec(*out_spec),
            ),
            x,
        )

    def same(i):
        return i

    x, m = floats(8), floats(6, 8)
    add("whole", x, (8,), (2,), (), ())
    add("without_index_map", x, (8,), (2,), ((4,),), ((4,),))
    add("in_order", x, (8,), (2,), ((4,), same), ((4,), same))
    add("reversed", x, (8,), (4,), ((2,), same), ((2,), lambda i: 3 - i))
    add("past_the_end", floats(10), (12,), (3,), ((4,), same), ((4,), same))
    add("integers_past_the_end", ints(10), (12,), (3,), ((4,), same), ((4,), same))
    add("booleans_past_the_end", x > 0, (12,), (3,), ((4,), same), ((4,), same))
    add("out_past_the_end", floats(12), (10,), (3,), ((4,), same), ((4,), same))
    add("not_all_visited", x, (12,), (2,), ((4,), same), ((4,), same))
    add("out_of_bounds", x, (12,), (3,), ((4,), lambda i: i + 5), ((4,), same))
    add("negative", x, (4,), (1,), ((4,), lambda i: -1), ((4,), same))
    add("larger_than_the_array", floats(5), (5,), (2,), ((8,), same), ((8,), same))
    add(
        "of_two_axes",
        m,
        (6, 8),
        (3, 2),
        ((2, 4), lambda i, j: (i, j)),
        ((2, 4), lambda i, j: (i, j)),
    )
    add(
        "transposed",
        m,
        (6, 4),
        (3, 2),
        ((2, 4), lambda i, j: (i, j)),
        ((2, 4), lambda i, j: (i, 0)),
    )
    add(
        "squeezed",
        m,
        (6, 8),
        (6,),
        ((None, 8), lambda i: (i, 0)),
        ((None, 8), lambda i: (5 - i, 0)),
    )
    add(
        "two_squeezed",
        m,
        (6, 8),
        (6, 8),
        ((None, None), lambda i, j: (i, j)),
        ((pl.squeezed, pl.Squeezed()), lambda i, j: (i, j)),
    )
    add("element", x, (9,), (3,), ((pl.Element(3),), lambda i: i * 3), ((3,), same))
    add("element_padded", x, (12,), (3,), ((pl.Element(4, (1, 2)),), lambda i: i * 3), ((4,), same))
    add(
        "element_out",
        floats(9),
        (8,),
        (3,),
        ((3,), same),
        ((pl.Element(3, (1, 0)),), lambda i: i * 3),
    )
    add(
        "element_and_blocked",
        m,
        (2, 8),
        (1,),
        ((pl.Element(2), 8), lambda i: (i + 3, 0)),
        ((2, 8), lambda i: (0, 0)),
    )
    add("blocked", x, (8,), (2,), ((pl.Blocked(4),), same), ((pl.Blocked(4),), same))
    add("buffered", x, (8,), (2,), ((4,), same, pl.Buffered(3)), ((4,), same))


def dtypes(corpus, kit):
    for name in ("bfloat16", "float16", "int8", "uint8", "int32", "bool", "float8_e4m3fn"):
        dtype = kit.jnp.dtype(name)

        def unwritten(dtype=dtype):
            return kit.call(lambda o_ref: None, (2,), dtype=dtype)

        def copied(dtype=dtype):
            x = kit.jnp.arange(6).astype(dtype)
            spec = kit.pl.BlockSpec((4,), lambda i: i)
            return kit.call(copy, (6,), x, dtype=dtype, grid=2, in_specs=[spec], out_specs=spec)

        corpus.add(f"unwritten_{name}", unwritten)
        corpus.add(f"copied_{name}", copied)


def grids(corpus, kit):
    jax, pl, call = kit.jax, kit.pl, kit.call
    spec = pl.BlockSpec((4,), lambda i: i)

    @corpus.program(floats(8))
    def grid_index(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + pl.program_id(0) * 10 + pl.num_programs(0)

        return call(kernel, (8,), x, grid=(2,), in_specs=[spec], out_specs=spec)

    @corpus.program(floats(4, 4), floats(4, 4))
    def grid_product(x, y):
        def kernel(x_ref, y_ref, o_ref):
            k = pl.program_id(2)

            @pl.when(k == 0)
            def _():
                o_ref[...] = kit.jnp.zeros_like(o_ref)

            o_ref[...] += x_ref[...] @ y_ref[...]

        return call(
            kernel,
            (4, 4),
            x,
            y,
            grid=(2, 2, 2),
            in_specs=[
                pl.BlockSpec((2, 2), lambda i, j, k: (i, k)),
                pl.BlockSpec((2, 2), lambda i, j, k: (k, j)),
            ],
            out_specs=pl.BlockSpec((2, 2), lambda i, j, k: (i, j)),
        )

    for size in (0, 1, 2):

        @functools.partial(corpus.add, f"grid_traced_{size}")
        def traced(size=size):
            def f(n, x):
                def kernel(x_ref, o_ref):
                    o_ref[...] = x_ref[...] + pl.num_programs(0)

                return call(kernel, (8,), x, grid=(n,), in_specs=[spec], out_specs=spec)

            return jax.jit(f)(size, floats(8))

    @corpus.program(floats(8))
    def grid_spec(x):
        grid_spec = pl.GridSpec(grid=2, in_specs=[spec], out_specs=spec)
        return call(copy, (8,), x, grid_spec=grid_spec)

    @corpus.program(floats(8))
    def grid_empty(x):
        return call(copy, (8,), x, grid=(0, 2))

    @corpus.program({"b": floats(4), "c": None})
    def pytrees(tree):
        def kernel(x, o):
            o["a"][...] = x["b"][...]
            o["d"][0][...] = x["b"][...] * 2

        one = jax.ShapeDtypeStruct((4,), np.float32)
        return pl.pallas_call(kernel, {"a": one, "d": [one]}, interpret=True)(tree)

    @corpus.program(2.5)
    def scalars(x):
        def kernel(x_ref, o_ref):
            o_ref[()] = x_ref[()]

        return call(kernel, (), x)


def aliases(corpus, kit):
    pl, call = kit.pl, kit.call

    @corpus.program(floats(8))
    def aliased(x):
        def kernel(x_ref, o_ref):
            o_ref[0] = x_ref[1]

        return call(kernel, (8,), x, input_output_aliases={0: 0})

    @corpus.program(floats(8), floats(10))
    def aliased_past_the_end(x, y):
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = x_ref[...]

        one = pl.BlockSpec((4,), lambda i: i)
        return call(
            kernel,
            (10,),
            x,
            y,
            grid=(1,),
            in_specs=[one, one],
            out_specs=pl.BlockSpec((4,), lambda i: i + 2),
            input_output_aliases={1: 0},
        )

    @corpus.program(floats(8))
    def written_input(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]
            x_ref[...] = x_ref[...] + 1

        return call(kernel, (8,), x, grid=(3,))


def scratch(corpus, kit):
    pl, pltpu, call = kit.pl, kit.pltpu, kit.call

    @corpus.program(floats(8))
    def scratch_kept(x):
        def kernel(x_ref, o_ref, total_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                total_ref[...] = kit.jnp.zeros_like(total_ref)

            total_ref[...] += x_ref[...]
            o_ref[...] = total_ref[...]

        spec = pl.BlockSpec((2,), lambda i: i)
        buffers = [pltpu.VMEM((2,), kit.jnp.float32)]
        return call(
            kernel, (8,), x, grid=4, in_specs=[spec], out_specs=spec, scratch_shapes=buffers
        )

    @corpus.program(ints(8))
    def scratch_unwritten(x):
        def kernel(x_ref, o_ref, buffer):
            o_ref[...] = buffer[...]

        return call(kernel, (8,), x, dtype=np.int32, scratch_shapes=[pltpu.SMEM((8,), np.int32)])

    @corpus.program(floats(8))
    def scratch_by_name(x):
        def kernel(x_ref, o_ref, *, acc):
            acc[...] = x_ref[...]
            o_ref[...] = acc[...] * 2

        return call(kernel, (8,), x, scratch_shapes={"acc": pltpu.VMEM((8,), np.float32)})

    @corpus.program(floats(8))
    def scoped(x):
        def kernel(x_ref, o_ref):
            def body(buffer, semaphore):
                buffer[...] = x_ref[...] * 2
                o_ref[...] = buffer[...]
                return buffer[...].sum()

            vmem, regular = pltpu.VMEM((8,), np.float32), pltpu.SemaphoreType.REGULAR
            o_ref[0] = pl.run_scoped(body, vmem, semaphore=regular)

        return call(kernel, (8,), x)


def prefetch(corpus, kit):
    pl, pltpu, call = kit.pl, kit.pltpu, kit.call

    @corpus.program(np.array([2, 0, 1], np.int32), floats(3, 4))
    def prefetched_order(order, x):
        def kernel(order_ref, x_ref, o_ref):
            o_ref[...] = x_ref[...] + order_ref[pl.program_id(0)]

        grid_spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(3,),
            in_specs=[pl.BlockSpec((None, 4), lambda i, order: (order[i], 0))],
            out_specs=pl.BlockSpec((None, 4), lambda i, order: (i, 0)),
        )
        return call(kernel, (3, 4), order, x, grid_spec=grid_spec)

    @corpus.program(np.zeros(1, np.int32), floats(8))
    def prefetched_written(n, x):
        def kernel(n_ref, x_ref, o_ref):
            n_ref[0] = n_ref[0] + 1
            o_ref[...] = x_ref[...] + n_ref[0].astype(kit.jnp.float32)

        grid_spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(3,))
        return call(kernel, (8,), n, x, grid_spec=grid_spec)

    @corpus.program(np.ones(1, np.int32), floats(8))
    def prefetched_and_aliased(n, x):
        def kernel(n_ref, x_ref, o_ref):
            o_ref[0] = 7.0

        grid_spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1)
        return call(kernel, (8,), n, x, grid_spec=grid_spec, input_output_aliases={1: 0})


def control(corpus, kit):
    pl, pltpu, jnp, call = kit.pl, kit.pltpu, kit.jnp, kit.call

    def add(name, kernel, *args):
        corpus.add(f"control_{name}", lambda *xs: call(kernel, (8,), *xs), *(args or (floats(8),)))

    def loop(x_ref, o_ref):
        @pl.loop(0, 8, step=2)
        def _(i):
            o_ref[i] = x_ref[i]
            o_ref[i + 1] = -x_ref[i]

    def loop_with_carry(x_ref, o_ref):
        @pl.loop(0, 8, init_carry=0.0)
        def total(i, carry):
            return carry + x_ref[i]

        o_ref[...] = x_ref[...] * 0 + total

    def loop_to_a_traced_end(x_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.loop(0, jnp.int32(3) + (x_ref[0] > 0))
        def _(i):
            o_ref[i] = 0.0

    def when(x_ref, o_ref):
        o_ref[...] = x_ref[...]

        @pl.when(x_ref[0] > 100)
        def _():
            o_ref[...] = jnp.zeros(8)

        @pl.when(True)
        def _():
            o_ref[1] = 5.0

    def slices(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        start = pl.multiple_of(x_ref[0].astype(jnp.int32) + 1, 1)
        o_ref[pl.ds(start, 4)] = x_ref[pl.dslice(0, 4)]
        o_ref[pl.ds(0, 3, 2)] = x_ref[5:8]

    def masks(x_ref, o_ref):
        mask = jnp.arange(8) < 3
        o_ref[...] = jnp.zeros(8)
        pltpu.store(o_ref, pltpu.load(x_ref) + 1, mask=mask)
        pltpu.store(o_ref.at[pl.ds(4, 4)], pltpu.load(x_ref.at[pl.ds(0, 4)]), mask=mask[:4])

    for kernel in (loop, loop_with_carry, loop_to_a_traced_end, when, slices, masks):
        add(kernel.__name__, kernel)

    @corpus.program()
    def sizes():
        return (
            [pl.cdiv(n, 3) for n in range(-3, 8)],
            [pl.align_to(n, 4) for n in range(9)],
            [pl.next_power_of_2(n) for n in range(9)],
            pl.strides_from_shape((2, 3, 4)),
            pl.cdiv(jnp.arange(6), 4),
        )


def copies(corpus, kit):
    pl, pltpu, jnp, call = kit.pl, kit.pltpu, kit.jnp, kit.call
    dma, regular = pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR

    def add(name, kernel, *scratch_shapes):
        anywhere = pl.BlockSpec(memory_space=pl.ANY)
        corpus.add(
            f"copies_{name}",
            lambda x: call(
                kernel,
                (8,),
                x,
                in_specs=[anywhere],
                out_specs=anywhere,
                scratch_shapes=scratch_shapes,
            ),
            floats(8),
        )

    def sync(x_ref, o_ref):
        pltpu.sync_copy(x_ref.at[pl.ds(0, 4)], o_ref.at[pl.ds(4, 4)])

    def through_vmem(x_ref, o_ref, buffer, semaphores):
        pltpu.async_copy(x_ref, buffer, semaphores.at[0]).wait()
        buffer[...] = buffer[...] * 2
        out = pltpu.make_async_copy(buffer, o_ref, semaphores.at[1])
        out.start()
        out.wait()

    def counts(x_ref, o_ref, semaphore):
        out = pltpu.make_async_copy(x_ref, o_ref, semaphore)
        out.start()
        started = pl.semaphore_read(semaphore)
        out.wait()
        o_ref[0] = started.astype(jnp.float32)
        o_ref[1] = pl.semaphore_read(semaphore).astype(jnp.float32)

    def signals(x_ref, o_ref, semaphores):
        pl.semaphore_signal(semaphores.at[1], 3)
        pl.semaphore_wait(semaphores.at[1], 1)
        o_ref[...] = x_ref[...] * 0 + pl.semaphore_read(semaphores.at[1])

    add("sync", sync)
    add("through_vmem", through_vmem, pltpu.VMEM((8,), np.float32), dma((2,)))
    add("counts", counts, dma)
    add("signals", signals, regular((2,)))


def batches(corpus, kit):
    jax, pl, pltpu, call = kit.jax, kit.pl, kit.pltpu, kit.call
    spec = pl.BlockSpec((4,), lambda i: i)

    def numbered(x_ref, o_ref):
        o_ref[...] = x_ref[...] + pl.program_id(0) + 10 * pl.num_programs(0)

    def f(x):
        return call(numbered, (8,), x, grid=(2,), in_specs=[spec], out_specs=spec)

    def added(x, y):
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = x_ref[...] + y_ref[...]

        return call(kernel, (4,), x, y)

    corpus.add("batch", jax.vmap(f), floats(3, 8))
    corpus.add("batch_last", jax.vmap(f, in_axes=1, out_axes=1), floats(8, 3))
    corpus.add("batch_one_operand", jax.vmap(added, in_axes=(0, None)), floats(3, 4), floats(4))
    corpus.add(
        "batch_of_batches",
        jax.vmap(jax.vmap(added, in_axes=(0, None)), in_axes=(None, 0)),
        floats(3, 4),
        floats(2, 4),
    )

    def aliased(y, x):
        def kernel(y_ref, x_ref, o_ref):
            o_ref[pl.ds(0, 4)] = x_ref[pl.ds(0, 4)]

        return call(kernel, (8,), y, x, input_output_aliases={0: 0})

    corpus.add("batch_aliased", jax.vmap(aliased, in_axes=(None, 0)), floats(8), floats(3, 8))

    def prefetched(n, x):
        def kernel(n_ref, x_ref, o_ref):
            o_ref[...] = x_ref[...] + n_ref[0]

        return call(kernel, (8,), n, x, grid_spec=pltpu.PrefetchScalarGridSpec(1))

    corpus.add("batch_of_scalars", jax.vmap(prefetched), ints(3, 1), floats(3, 8))
    corpus.add("batch_one_scalar", jax.vmap(prefetched, in_axes=(None, 0)), ints(1), floats(3, 8))

    def sized(n, x):
        return call(copy, (8,), x, grid=(n,), in_specs=[spec], out_specs=spec)

    corpus.add("batch_of_sizes", jax.vmap(sized), np.arange(3, dtype=np.int32), floats(3, 8))

    def scratched(x):
        def kernel(x_ref, o_ref, buffer):
            buffer[...] = x_ref[...]
            o_ref[...] = buffer[...]

        return call(kernel, (4,), x, scratch_shapes=[pltpu.VMEM((4,), np.float32)])

    corpus.add("batch_scratch", jax.vmap(scratched), floats(3, 4))


def tangents(corpus, kit):
    jax, jnp, pl, call = kit.jax, kit.jnp, kit.pl, kit.call
    spec = pl.BlockSpec((4,), lambda i: i)

    def sine(x_ref, o_ref):
        o_ref[...] = jnp.sin(x_ref[...])

    def f(x):
        return call(sine, (8,), x, grid=(2,), in_specs=[spec], out_specs=spec)

    corpus.add("tangent", lambda x: jax.jvp(f, (x,), (x,)), floats(8))
    corpus.add("tangent_of_batch", lambda x: jax.jvp(jax.vmap(f), (x,), (x,)), floats(3, 8))

    @jax.custom_vjp
    def with_rule(x):
        return f(x)

    def backward(x, ct):
        def kernel(x_ref, ct_ref, o_ref):
            o_ref[...] = jnp.cos(x_ref[...]) * ct_ref[...]

        return (call(kernel, (8,), x, ct),)

    with_rule.defvjp(lambda x: (f(x), x), backward)
    corpus.add("gradient_of_rule", jax.grad(lambda x: with_rule(x).sum()), floats(8))
    corpus.add(
        "gradient_of_batch",
        jax.grad(lambda x: jax.vmap(jax.checkpoint(with_rule))(x).sum()),
        floats(2, 8),
    )


def errors(corpus, kit):
    jax, jnp, pl, pltpu, call = kit.jax, kit.jnp, kit.pl, kit.pltpu, kit.call
    x = floats(8)
    one = pl.BlockSpec((4,), lambda i: i)

    def add(name, function, **options):
        corpus.add(f"error_{name}", function, **options)

    def kernel_error(name, kernel, /, **options):
        shape = options.pop("shape", (8,))
        instead = options.pop("instead", None)
        add(name, lambda: call(kernel, shape, x, **options), instead=instead)

    add("compiled_on_a_cpu", lambda: pl.pallas_call(copy, jax.ShapeDtypeStruct((8,), x.dtype))(x))
    add("not_a_shape", lambda: pl.pallas_call(copy, (8,), interpret=True)(x))
    add("program_id_outside", lambda: pl.program_id(0), instead="ValueError")
    add("gradient", lambda: jax.grad(lambda x: call(doubled, (8,), x).sum())(x))
    add("negative_power", lambda: pl.next_power_of_2(-1))
    kernel_error("returned", lambda x_ref, o_ref: 1)
    kernel_error("captured", lambda x_ref, o_ref: o_ref.__setitem__(..., jnp.asarray(x)))
    kernel_error("too_few_parameters", lambda x_ref: None)
    kernel_error("axis", lambda x_ref, o_ref: pl.program_id(1), grid=(2,))
    kernel_error("size_of_axis", lambda x_ref, o_ref: pl.num_programs(1), grid=(2,))
    kernel_error("shape_written", lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[:4]))
    kernel_error("dtype_written", lambda x_ref, o_ref: o_ref.__setitem__(0, 1))
    kernel_error("vector_condition", lambda x_ref, o_ref: pl.when(x_ref[...] > 0)(lambda: None))
    kernel_error("block_rank", copy, in_specs=[pl.BlockSpec((4, 4), lambda: (0, 0))])
    kernel_error("block_entry", copy, in_specs=[pl.BlockSpec(("a",), lambda: 0)])
    kernel_error("block_size", copy, in_specs=[pl.BlockSpec((-4,), lambda: 0)])
    kernel_error("index_rank", copy, in_specs=[pl.BlockSpec((4,), lambda: (0, 0))])
    kernel_error("index_arguments", copy, in_specs=[pl.BlockSpec((4,), lambda: 0)], grid=(2,))
    kernel_error("index_dtype", copy, in_specs=[pl.BlockSpec((8,), lambda: 0.0)])
    kernel_error("index_vector", copy, in_specs=[pl.BlockSpec((8,), lambda: jnp.arange(2))])
    number = jnp.asarray(1)
    kernel_error("index_captures", copy, in_specs=[pl.BlockSpec((8,), lambda: number)])
    kernel_error("specs", copy, in_specs=[one, one], grid=(2,))
    kernel_error("spec_alone", copy, in_specs=one, grid=(2,))
    kernel_error("out_specs", copy, out_specs=[one, one], grid=(2,))
    kernel_error("grid_and_spec", copy, grid=(2,), grid_spec=pl.GridSpec(grid=(2,)))
    kernel_error("grid_of_floats", copy, grid=(2.5,))
    kernel_error("alias_of_a_shape", lambda *_: None, shape=(4,), input_output_aliases={0: 0})
    kernel_error("alias_of_no_operand", copy, input_output_aliases={3: 0})
    kernel_error("alias_of_no_result", copy, input_output_aliases={0: 2})
    kernel_error("name", copy, name=3)
    kernel_error("scratch", lambda *_: None, scratch_shapes=[(8,)], instead="TypeError")
    kernel_error(
        "array_of_semaphores",
        lambda x_ref, o_ref, s: pl.semaphore_signal(s),
        scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))],
    )
    kernel_error("no_semaphore", lambda x_ref, o_ref: pl.semaphore_signal(x_ref))
    kernel_error(
        "semaphore_of_copies",
        lambda x_ref, o_ref, s: pl.semaphore_signal(s),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )
    kernel_error(
        "copy_of_a_shape",
        lambda x_ref, o_ref: pltpu.sync_copy(x_ref.at[pl.ds(0, 4)], o_ref),
        instead="ValueError",
    )
    kernel_error("loop_result", lambda x_ref, o_ref: pl.loop(0, 8)(lambda i: x_ref[i]))
