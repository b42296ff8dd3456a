"""What kernels say and ask about references: select_ref, annotate, has_memory_space, tags."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from hlofront.bridge.mosaic import has_operation, load_dialect
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.mosaic_modules import ANYWHERE, X, call, on_tpu
from tests.pallas.test_mosaic import config_of

MODELED = pltpu.InterpretParams(detect_races=True)
modes = pytest.mark.parametrize("interpret", [True, MODELED], ids=["interpreted", "modeled"])
m = np.arange(32, dtype=np.float32).reshape(4, 8)
load_dialect()
needs_annotate = pytest.mark.skipif(
    not has_operation("tpu.annotate"), reason="this jaxlib's Mosaic has no tpu.annotate"
)


# ---- select_ref ----------------------------------------------------------------------------------


def copy_one(number, x_ref, y_ref, o_ref):
    source = pl.select_ref(number[0], x_ref, y_ref.at[...])
    pltpu.sync_copy(source, o_ref)


def copied(number, interpret):
    specs = [pl.BlockSpec(memory_space=pltpu.SMEM), ANYWHERE, ANYWHERE]
    function = pl.pallas_call(copy_one, m, in_specs=specs, out_specs=ANYWHERE, interpret=interpret)
    return function(np.array([number], np.int32), m, m + 100)


@modes
def test_a_copy_is_from_the_reference_that_is_selected(interpret):
    np.testing.assert_array_equal(copied(0, interpret), m)
    np.testing.assert_array_equal(copied(1, interpret), m + 100)


@modes
def test_a_copy_is_to_a_part_of_the_reference_that_is_selected(interpret):
    def kernel(x_ref, o_ref, p_ref, sem):
        o_ref[...] = p_ref[...] = jnp.zeros((4, 8))
        for row in range(4):
            target = pl.select_ref(jnp.int32(row % 2), o_ref, p_ref).at[pl.ds(row, 1)]
            assert target.shape == (1, 8) and target.dtype == jnp.float32
            pltpu.async_copy(x_ref.at[pl.ds(row, 1)], target, sem).wait()

    scratch = [pltpu.SemaphoreType.DMA]
    call = pl.pallas_call(kernel, (m, m), scratch_shapes=scratch, interpret=interpret)
    even = np.arange(4)[:, None] % 2 == 0
    np.testing.assert_array_equal(call(m), (np.where(even, m, 0), np.where(even, 0, m)))


def test_a_selection_is_a_branch_of_mosaic():
    text = call(
        copy_one,
        jax.ShapeDtypeStruct((1,), jnp.int32),
        X,
        X,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), ANYWHERE, ANYWHERE],
        out_specs=ANYWHERE,
    )
    assert text.count("scf.if") == 2 and text.count("tpu.enqueue_dma") == 2


@pytest.mark.parametrize(
    ("index", "count", "part", "error", "message"),
    [
        (0, 1, 4, ValueError, "At least two refs are required for pl.select_ref: got 1"),
        (0, 2, 2, TypeError, r"different types: float32\[4, 8\], float32\[2, 8\].*ref.at"),
        (np.zeros(2, np.int32), 2, 4, ValueError, r"takes a scalar index, got int32\[2\]"),
    ],
)
def test_a_wrong_selection_is_refused(index, count, part, error, message):
    def kernel(x_ref, o_ref):
        pl.select_ref(index, *[x_ref, o_ref.at[:part]][:count])

    with pytest.raises(error, match=message):
        pl.pallas_call(kernel, m, interpret=True)(m)


# ---- annotate ------------------------------------------------------------------------------------


def through_annotations(x_ref, o_ref):
    seen = pltpu.annotate(x_ref.at[pl.ds(0, 8)], no_store=True)
    seen = pltpu.annotate(seen, no_bank_conflict=True)
    written = pltpu.annotate(o_ref, no_hazard=True)
    written[pl.ds(0, 8)] = seen[...] * 2
    written[pl.ds(8, 8)] = seen[...]
    assert repr(seen).endswith("{annotate(no_bank_conflict, no_store)})")


IN_VMEM = {
    "in_specs": [pl.BlockSpec(memory_space=pltpu.VMEM)],
    "out_specs": pl.BlockSpec(memory_space=pltpu.VMEM),
}


@modes
def test_annotations_do_not_change_values(interpret):
    x = np.arange(16.0 * 128, dtype=np.float32).reshape(16, 128)
    result = pl.pallas_call(through_annotations, X, interpret=interpret, **IN_VMEM)(x)
    np.testing.assert_array_equal(result, np.concatenate([x[:8] * 2, x[:8]]))


@modes
def test_what_is_annotated_is_copied(interpret):
    def kernel(x_ref, o_ref):
        pltpu.sync_copy(pltpu.annotate(x_ref, no_store=True), o_ref)

    np.testing.assert_array_equal(pl.pallas_call(kernel, m, interpret=interpret)(m), m)


@needs_annotate
def test_annotations_are_operations_of_mosaic():
    text = call(through_annotations, X, **IN_VMEM)
    assert "tpu.annotate" in text and "no_bank_conflict = true, no_store = true" in text
    assert "no_hazard = true" in text


@pytest.mark.skipif(has_operation("tpu.annotate"), reason="this jaxlib's Mosaic has tpu.annotate")
def test_an_older_mosaic_has_no_annotations():
    with pytest.raises(NotImplementedError, match=r"no operation tpu\.annotate: use jaxlib 0\.12"):
        call(through_annotations, X, **IN_VMEM)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (("no_store", "no_hazard"), ValueError, "no_hazard, no_store exclude one another"),
        (("no_hazard", "no_hazard_no_deps"), ValueError, "exclude one another"),
        (("no_hazard",), ValueError, "only valid for VMEM references, but got memory space: any"),
    ],
)
def test_wrong_annotations_are_refused(names, error, message):
    def kernel(x_ref, o_ref):
        pltpu.annotate(x_ref, **dict.fromkeys(names, True))

    with pytest.raises(error, match=message):
        pl.pallas_call(kernel, m, in_specs=[ANYWHERE], interpret=True)(m)
    with pytest.raises(TypeError, match="ref must be a reference"):
        pltpu.annotate(m, no_store=True)


# ---- has_memory_space ----------------------------------------------------------------------------


def ask(x_ref, o_ref):
    o_ref[0] = pltpu.has_memory_space(x_ref, pltpu.HBM).astype(jnp.int32)
    o_ref[1] = pltpu.has_memory_space(x_ref.at[0], pltpu.VMEM).astype(jnp.int32)


ASKED = {
    "in_specs": [ANYWHERE],
    "out_specs": pl.BlockSpec(memory_space=pltpu.SMEM),
}


@modes
def test_a_reference_in_any_memory_is_in_hbm_where_a_kernel_is_interpreted(interpret):
    out = jax.ShapeDtypeStruct((2,), jnp.int32)
    result = pl.pallas_call(ask, out, interpret=interpret, **ASKED)(m)
    np.testing.assert_array_equal(result, [1, 0])


@pytest.mark.skipif(
    not has_operation("tpu.memref_memory_space_is"), reason="this jaxlib's Mosaic has no question"
)
def test_a_question_about_memory_is_one_of_mosaic():
    text = call(ask, X, out=jax.ShapeDtypeStruct((2,), jnp.int32), **ASKED)
    assert text.count("tpu.memref_memory_space_is") == 2
    assert "<hbm>" in text and "<vmem>" in text


def test_only_references_in_any_memory_are_asked_about():
    def kernel(asked, x_ref, o_ref):
        pltpu.has_memory_space(x_ref, asked)

    for spec, asked, message in (
        (pl.BlockSpec(memory_space=pltpu.VMEM), pltpu.HBM, "must have pl.ANY .* but got vmem"),
        (ANYWHERE, pl.ANY, "Please specify a concrete memory space"),
    ):
        with pytest.raises(ValueError, match=message):
            pl.pallas_call(
                lambda *refs, asked=asked: kernel(asked, *refs), m, in_specs=[spec], interpret=True
            )(m)


# ---- tags of barriers ----------------------------------------------------------------------------


def meeting(tag):
    def kernel(x_ref, o_ref):
        barrier = pltpu.get_barrier_semaphore(tag)
        pl.semaphore_signal(barrier, 1)
        pl.semaphore_wait(barrier, 1)
        o_ref[...] = x_ref[...]

    return kernel


def ids_of(*tags, number=0):
    """The collective_ids of kernels with a tag each, after one with the collective_id `number`."""

    def function(x):
        params = pltpu.CompilerParams(collective_id=number)
        x = pl.pallas_call(meeting(None), x, compiler_params=params, name="numbered")(x)
        for tag in tags:
            x = pl.pallas_call(meeting(tag), x, name="tagged")(x)
        return x

    text = on_tpu(function, X).as_text()
    calls = [line for line in text.splitlines() if "tpu_custom_call" in line]
    return [config_of(each)["custom_call_config"]["collective_id"] for each in calls]


def test_kernels_with_the_same_tag_have_the_same_barrier():
    assert ids_of("a", "b", ("a", 1), "a") == [0, 1, 2, 3, 1]
    assert ids_of("a", "b", number=1) == [1, 0, 2]


def test_a_kernel_has_one_tag_and_no_number():
    def two(x_ref, o_ref):
        meeting("a")(x_ref, o_ref)
        meeting("b")(x_ref, o_ref)

    params = pltpu.CompilerParams(collective_id=1)
    for kernel, options, message in (
        (two, {}, "Cannot specify multiple distinct barrier semaphore tags within a single kernel"),
        (meeting("a"), {"compiler_params": params}, "Conflicting collective_id .* has 1 but"),
    ):
        with pytest.raises(ValueError, match=message):
            on_tpu(lambda x, k=kernel, o=options: pl.pallas_call(k, x, **o)(x), X)


# ---- lower_as_mlir -------------------------------------------------------------------------------


def test_a_function_with_kernels_becomes_text_for_tpus():
    def double(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    def function(x, times):
        for _ in range(times):
            x = pl.pallas_call(double, x)(x)
        return x

    text = pl.lower_as_mlir(function, X, times=2, static_argnames="times")
    assert text.count("tpu_custom_call") == 2
    text = pl.lower_as_mlir(jnp.sin, X, platforms=["cpu"])
    assert "stablehlo.sine" in text or "stablehlo" in text
    for options in ({"dynamic_shapes": True}, {"device": jax.devices()[0]}):
        with pytest.raises(ValueError, match="Give platforms="):
            pl.lower_as_mlir(jnp.sin, X, **options)


def test_names_of_options():
    def with_options(params: pl.CompilerParams) -> pl.CompilerParams:
        return params

    assert with_options(pltpu.CompilerParams(collective_id=1)).collective_id == 1
    assert pltpu.Tiling.COMPACT.shape == (8, 128) and pltpu.Tiling.SPARSE_CORE.shape == (8,)


# ---- with_memory_space_constraint ----------------------------------------------------------------

COPY = {"in_specs": [ANYWHERE], "out_specs": ANYWHERE, "scratch_shapes": [pltpu.SemaphoreType.DMA]}
constrained = pltpu.with_memory_space_constraint


def copied_whole(x, out=X, **options):
    def kernel(x_ref, o_ref, sem):
        pltpu.async_copy(x_ref, o_ref, sem).wait()

    return pl.pallas_call(kernel, out, **COPY, **options)(x)


def memories_of(function):
    """The options for the memories of operands and of results, as libtpu gets them."""
    config = config_of(on_tpu(function, X).as_text())["custom_call_config"]
    return [config.get(f"{end}_memory_space_colors", []) for end in ("input", "output")]


# As those of jax 0.12.0.1 for the same programs. Its numbers: 0 is HBM, 1 is VMEM.
CASES = {
    "hbm": (lambda x: copied_whole(constrained(x, pltpu.HBM)), [(0, 0)], []),
    "vmem": (lambda x: copied_whole(constrained(x, pltpu.VMEM)), [(0, 1)], []),
    "smem": (lambda x: copied_whole(constrained(x, pltpu.SMEM)), [], []),
    "any": (lambda x: copied_whole(constrained(x, pl.ANY)), [], []),
    "jit": (lambda x: jax.jit(copied_whole)(constrained(x, pltpu.VMEM)), [(0, 1)], []),
    "result": (lambda x: copied_whole(x, pltpu.VMEM(X.shape, X.dtype)), [], [1]),
    "alias": (
        lambda x: copied_whole(constrained(x, pltpu.HBM), input_output_aliases={0: 0}),
        [(0, 0)],
        [0],
    ),
    "alias of a result": (
        lambda x: copied_whole(x, pltpu.VMEM(X.shape, X.dtype), input_output_aliases={0: 0}),
        [(0, 1)],
        [1],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operands_and_results_are_in_the_memories_that_they_are_given(name):
    function, of_operands, of_results = CASES[name]
    inputs, outputs = memories_of(function)
    assert [(each["operand_index"], each["color"]) for each in inputs] == of_operands
    assert [each["color"] for each in outputs] == of_results


def test_a_result_in_vmem_is_the_operand_of_the_next_kernel_on_a_tpu():
    def both(x):
        return copied_whole(copied_whole(constrained(x, pltpu.HBM), pltpu.VMEM(X.shape, X.dtype)))

    assert on_tpu(both, X).compile().as_text().count("tpu_custom_call") >= 2


def test_a_result_in_a_memory_has_the_block_of_any_other_result():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    double = lambda x: pl.pallas_call(kernel, pltpu.HBM(X.shape, X.dtype))(x)
    assert memories_of(double)[1] == [{"color": 0}]


def test_constraints_of_both_ends_of_an_alias_agree():
    out = pltpu.VMEM(X.shape, X.dtype)
    with pytest.raises(ValueError, match="in another memory than result 0"):
        on_tpu(
            lambda x: copied_whole(constrained(x, pltpu.HBM), out, input_output_aliases={0: 0}), X
        )


def test_a_constraint_changes_no_value_and_has_derivatives_and_batches():
    def total(x):
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        return pl.pallas_call(kernel, m, interpret=True)(constrained(x, pltpu.VMEM))

    np.testing.assert_array_equal(jax.jit(total)(m), 2 * m)
    np.testing.assert_array_equal(jax.vmap(total)(m[None]), 2 * m[None])
    np.testing.assert_array_equal(
        jax.grad(lambda x: constrained(x, pltpu.VMEM).sum())(m), m * 0 + 1
    )
    np.testing.assert_array_equal(constrained(m, pl.HOST), m)


def test_a_constraint_to_a_memory_that_kernels_lack_is_refused():
    with pytest.raises(NotImplementedError, match="only supports HBM, VMEM, SMEM, and HOST"):
        constrained(m, pltpu.CMEM)


def test_a_result_of_a_program_has_no_memory_of_a_kernel():
    program = jax.jit(lambda x: constrained(x, pltpu.VMEM))
    y = program(m)
    np.testing.assert_array_equal(y + jnp.asarray(m), 2 * m)
    exported = export.export(program)(m)
    for format in ("hlofront", "jax"):
        loaded = export.deserialize(exported.serialize(format=format))
        np.testing.assert_array_equal(loaded.call(m), m)
