"""Arrays of which devices have maxima or minima of parts: `unreduced_kind` of a PartitionSpec.

Where jaxlib's Shardy knows sums alone (0.10.2), programs with such arrays are refused when they are
lowered; types, and what is refused while tracing, are the same under every jaxlib.
"""

import contextlib
import pickle

import numpy as np
import pytest
from jaxlib.mlir.dialects import sdy

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export, lax
from hlofront.sharding import ManualAxisType, NamedSharding, UnreducedKind
from hlofront.sharding import PartitionSpec as P

MESHES = {
    "two axes": jax.make_mesh((4, 2), ("x", "y")),
    "one axis": jax.make_mesh((8,), ("x",)),
    "three axes": jax.make_mesh((2, 2, 2), ("x", "y", "z")),
}
KINDS = {UnreducedKind.max: (lax.reduce_max, np.max), UnreducedKind.min: (lax.reduce_min, np.min)}
VALUES = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
IS_KNOWN = hasattr(sdy, "ReductionOp")

# What moves elements may be applied to the maxima on devices one by one.
MOVES = {
    "transpose": lambda a, np: np.transpose(np.reshape(a, (2, 2))),
    "reshape": lambda a, np: np.reshape(a, (2, 2)),
    "squeeze": lambda a, np: np.squeeze(np.reshape(a, (4, 1)), 1),
    "slice": lambda a, np: a[:2],
    "concatenate": lambda a, np: np.concatenate([a, a]),
    "stack": lambda a, np: np.stack([a, a]),
}
# What mixes elements, or changes their order, may not.
REFUSED = {
    "add": lambda a: a + a,
    "neg": lambda a: -a,
    "mul": lambda a: a * 2,
    "exp": jnp.exp,
    "max": lambda a: jnp.maximum(a, a),
    "select_n": lambda a: jnp.where(True, a, a),
    "broadcast_in_dim": lambda a: a[None],
    "convert_element_type": lambda a: a.astype(jnp.float16),
    "reduce_sum": lambda a: lax.reduce_sum(a, (0,)),
    "cumsum": jnp.cumsum,
    "dot_general": lambda a: a @ a,
    "gather": lambda a: a[np.array([0, 1])],
    "sort": jnp.sort,
}
a_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


@pytest.fixture(params=MESHES)
def mesh(request):
    with jax.set_mesh(MESHES[request.param]):
        yield MESHES[request.param]


@pytest.fixture(autouse=True)
def _one_mesh(request):
    if "mesh" in request.fixturenames:
        yield
    else:
        with jax.set_mesh(MESHES["two axes"]):
            yield


def rows():
    """Return VALUES, whose rows are split along x."""
    return jax.reshard(VALUES, P("x"))


def extremes(kind, x):
    """Return the maximum or minimum of each column, as devices have it along x."""
    reduce, _ = KINDS[kind]
    return reduce(x, (0,), out_sharding=P(unreduced={"x"}, unreduced_kind=kind))


def runs_if_known():
    """Expect no error if jaxlib's Shardy knows maxima, and else the one that says so."""
    if IS_KNOWN:
        return contextlib.nullcontext()
    return pytest.raises(ValueError, match="need the Shardy of jaxlib")


# ---- types ---------------------------------------------------------------------------------------


def test_the_kind_is_sum_unless_another_is_given():
    assert P().unreduced_kind is None
    assert P(unreduced={"x"}).unreduced_kind is UnreducedKind.sum
    assert P(unreduced={"x"}, unreduced_kind=UnreducedKind.sum) is P(unreduced={"x"})
    assert ManualAxisType(unreduced={"x"}).unreduced_kind is UnreducedKind.sum
    assert ManualAxisType(varying={"x"}).unreduced_kind is None
    assert [kind.value for kind in UnreducedKind] == [1, 2, 3]


@a_kind
def test_specs_and_manual_types_of_another_kind_differ(kind):
    spec = P("y", unreduced={"x"}, unreduced_kind=kind)
    assert spec is not P("y", unreduced={"x"})
    assert repr(spec) == f"P('y', unreduced={{'x'}}, unreduced_kind={kind.name})"
    assert spec.update(partitions=()) is P(unreduced={"x"}, unreduced_kind=kind)
    assert spec.update(unreduced=frozenset()) is P("y")
    assert pickle.loads(pickle.dumps(spec)) is spec
    assert P("z") + spec is P("z", "y", unreduced={"x"}, unreduced_kind=kind)
    manual = ManualAxisType(varying={"y"}, unreduced={"x"}, unreduced_kind=kind)
    assert manual is not ManualAxisType(varying={"y"}, unreduced={"x"})
    assert manual.short_text() == f"{{V:y, U_{kind.name}:x}}"
    assert pickle.loads(pickle.dumps(manual)) is manual


@pytest.mark.parametrize("make", [P, ManualAxisType])
def test_a_kind_needs_unreduced_axes_and_a_name(make):
    with pytest.raises(ValueError, match="no unreduced axes"):
        make(unreduced_kind=UnreducedKind.max)
    with pytest.raises(TypeError, match="UnreducedKind or None"):
        make(unreduced={"x"}, unreduced_kind="max")


def test_specs_of_two_kinds_are_not_joined():
    with pytest.raises(TypeError, match="one unreduced_kind"):
        P(unreduced={"x"}) + P(unreduced={"y"}, unreduced_kind=UnreducedKind.max)


@a_kind
def test_types_are_printed_with_the_kind(kind, mesh):
    program = jax.make_jaxpr(lambda x: extremes(kind, x))(rows())
    assert str(program.out_avals[0]) == f"float32[4]{{U_{kind.name}:x}}"
    assert f":f32[4]{{U_{kind.name}:x}} = reduce_{kind.name}[" in str(program)


# ---- operations, in explicit mode ----------------------------------------------------------------


@a_kind
def test_devices_keep_the_extremes_of_their_parts(kind, mesh):
    with runs_if_known():
        result = jax.jit(lambda x: extremes(kind, x))(rows())
        parts = VALUES.reshape(mesh.shape["x"], -1, 4)
        expected = KINDS[kind][1](parts, 1).repeat(8 // mesh.shape["x"], axis=0)
        np.testing.assert_array_equal([s.data for s in result.addressable_shards], expected)
        np.testing.assert_array_equal(jax.reshard(result, P()), KINDS[kind][1](VALUES, 0))
        on_one = jax.device_put(result, jax.devices()[1])
        np.testing.assert_array_equal(on_one, KINDS[kind][1](VALUES, 0))


@a_kind
@pytest.mark.parametrize("move", MOVES)
def test_moves_of_elements_keep_the_kind(kind, move, mesh):
    moved = lambda x: MOVES[move](extremes(kind, x), jnp)
    spec = jax.typeof(jax.eval_shape(moved, rows())).sharding.spec
    assert (spec.unreduced, spec.unreduced_kind) == ({"x"}, kind)
    with runs_if_known():
        combined = jax.jit(lambda x: jax.reshard(moved(x), P()))(rows())
        expected = MOVES[move](KINDS[kind][1](VALUES, 0), np)
        np.testing.assert_array_equal(combined, expected)
        np.testing.assert_array_equal(jax.reshard(jax.jit(moved)(rows()), P()), expected)


@a_kind
@pytest.mark.parametrize("operation", REFUSED)
def test_other_operations_are_refused(kind, operation):
    with pytest.raises(
        ValueError, match=f"{operation} does not accept an operand with unreduced_kind="
    ):
        jax.eval_shape(lambda x: REFUSED[operation](extremes(kind, x)), rows())


@a_kind
def test_the_extreme_of_extremes_is_one_of_the_same_kind(kind, mesh):
    both = lambda x: KINDS[kind][0](extremes(kind, x), (0,))
    assert str(jax.make_jaxpr(both)(rows()).out_avals[0]) == f"float32[]{{U_{kind.name}:x}}"
    with runs_if_known():
        total = jax.reshard(jax.jit(both)(rows()), P())
        np.testing.assert_array_equal(total, KINDS[kind][1](VALUES))
    (other,) = KINDS.keys() - {kind}
    with pytest.raises(ValueError, match=f"reduce_{other.name} does not accept an operand"):
        jax.eval_shape(lambda x: KINDS[other][0](extremes(kind, x), (0,)), rows())


@a_kind
def test_the_kind_that_is_asked_for_is_the_one_that_is_made(kind):
    (other,) = KINDS.keys() - {kind}
    for wrong in (P(unreduced={"x"}), P(unreduced={"x"}, unreduced_kind=other)):
        with pytest.raises(jax.errors.ShardingTypeError, match="unreduced_kind does not match"):
            KINDS[kind][0](rows(), (0,), out_sharding=wrong)
    asked = P(unreduced={"x"}, unreduced_kind=kind)
    for make in (
        lambda: lax.reduce_sum(rows(), (0,), out_sharding=asked),
        lambda: jnp.zeros(4, out_sharding=asked),
        lambda: jnp.dot(rows().T, rows(), out_sharding=asked),
        lambda: rows().reshape(32, out_sharding=asked),
    ):
        with pytest.raises(jax.errors.ShardingTypeError, match="unreduced_kind does not match"):
            jax.eval_shape(make)
    with pytest.raises(jax.errors.ShardingTypeError, match=r"none of the axes \(1,\)"):
        KINDS[kind][0](rows(), (1,), out_sharding=asked)


@a_kind
def test_resharding_makes_no_extremes_and_changes_no_kind(kind):
    asked = P(unreduced={"x"}, unreduced_kind=kind)
    (other,) = KINDS.keys() - {kind}
    for x, spec in (
        (lambda: rows(), asked),
        (lambda: extremes(kind, rows()), P(unreduced={"x"})),
        (lambda: extremes(kind, rows()), P(unreduced={"x"}, unreduced_kind=other)),
        (lambda: extremes(kind, rows()), P(unreduced={"x", "y"}, unreduced_kind=kind)),
        (lambda: lax.reduce_sum(rows(), (0,), out_sharding=P(unreduced={"x"})), asked),
    ):
        with pytest.raises(ValueError, match="reshard cannot turn an array"):
            jax.eval_shape(lambda: jax.reshard(x(), spec))
    with pytest.raises(ValueError, match="reshard cannot turn an array"):
        jax.device_put(VALUES, NamedSharding(MESHES["two axes"], asked))


@a_kind
def test_fewer_axes_are_left_by_resharding(kind):
    def some(x):
        spec = P(unreduced={"x", "y"}, unreduced_kind=kind)
        both = KINDS[kind][0](x, (0, 1), out_sharding=spec)
        return jax.reshard(both, P(unreduced={"y"}, unreduced_kind=kind))

    split = jax.reshard(VALUES, P("x", "y"))
    with runs_if_known():
        result = jax.jit(some)(split)
        assert result.sharding.spec == P(unreduced={"y"}, unreduced_kind=kind)
        assert jax.reshard(result, P()) == KINDS[kind][1](VALUES)


@a_kind
def test_results_of_control_flow_have_the_kind(kind):
    def controlled(x):
        first = extremes(kind, x)
        (looped, _) = lax.scan(lambda carry, _: (carry, None), first, None, length=2)
        return lax.cond(x.sum() > 0, lambda a: a, lambda a: a, looped)

    with runs_if_known():
        result = jax.reshard(jax.jit(controlled)(rows()), P())
        np.testing.assert_array_equal(result, KINDS[kind][1](VALUES, 0))


# ---- derivatives ---------------------------------------------------------------------------------


@a_kind
def test_extremes_on_devices_have_no_derivatives(kind):
    whole = lambda x: jax.reshard(extremes(kind, x), P()).sum()
    for derivative in (jax.grad(whole), lambda x: jax.jvp(whole, (x,), (x,))):
        with pytest.raises(ValueError, match="has no derivative"):
            jax.eval_shape(derivative, rows())
    constant = lambda x: x.sum() + whole(lax.stop_gradient(x))
    with runs_if_known():
        np.testing.assert_array_equal(jax.grad(constant)(rows()), np.ones_like(VALUES))


@a_kind
def test_cotangents_of_extremes_are_refused(kind):
    with pytest.raises(ValueError, match="have no cotangents"):
        jax.eval_shape(
            lambda x: jax.vjp(lambda a: jax.reshard(a, P()), extremes(kind, x))[1](jnp.ones(4)),
            rows(),
        )


@a_kind
def test_results_that_are_split_otherwise_have_derivatives(kind):
    split = jax.reshard(VALUES, P("x", "y"))
    moved = lambda x: KINDS[kind][0](x, (0,), out_sharding=P("x"))
    result, tangent = jax.jvp(moved, (split,), (split * 2,))
    assert str(jax.typeof(result)) == str(jax.typeof(tangent)) == "float32[4@x]"
    expected = KINDS[kind][1](VALUES, 0)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(tangent, 2 * expected)
    gradient = jax.grad(lambda x: moved(x).sum())(split)
    np.testing.assert_array_equal(gradient, (VALUES == expected).astype(np.float32))
    batched = jax.vmap(moved)(jax.reshard(np.stack([VALUES, -VALUES]), P(None, "x", "y")))
    assert str(jax.typeof(batched)) == "float32[2,4@x]"
    np.testing.assert_array_equal(batched[0], expected)


# ---- shard_map -----------------------------------------------------------------------------------


def combined(kind, axis="x"):
    return {UnreducedKind.max: lax.pmax, UnreducedKind.min: lax.pmin}[kind], axis


@a_kind
def test_pmax_and_pmin_combine_extremes_in_shard_map(kind, mesh):
    combine, axis = combined(kind)

    @jax.shard_map(in_specs=P(unreduced={"x"}, unreduced_kind=kind), out_specs=P())
    def whole(part):
        assert str(jax.typeof(part)) == f"float32[4]{{U_{kind.name}:x}}"
        return combine(part, axis)

    program = jax.make_jaxpr(lambda x: whole(extremes(kind, x)))(rows())
    assert f"unreduced_p{kind.name}[axes=('x',)]" in str(program)
    with runs_if_known():
        result = jax.jit(lambda x: whole(extremes(kind, x)))(rows())
        np.testing.assert_array_equal(result, KINDS[kind][1](VALUES, 0))
        eager = whole(jax.jit(lambda x: extremes(kind, x))(rows()))
        np.testing.assert_array_equal(eager, KINDS[kind][1](VALUES, 0))
        batched = jax.vmap(whole, out_axes=1)(jnp.stack([extremes(kind, rows())] * 2))
        np.testing.assert_array_equal(batched[:, 1], KINDS[kind][1](VALUES, 0))


@a_kind
def test_shard_map_returns_extremes(kind, mesh):
    spec = P(unreduced={"x"}, unreduced_kind=kind)
    turned = jax.shard_map(lambda a: a.reshape(2, 2).T, in_specs=spec, out_specs=spec)
    with runs_if_known():
        result = jax.jit(lambda x: turned(extremes(kind, x)))(rows())
        assert str(jax.typeof(result)) == f"float32[2,2]{{U_{kind.name}:x}}"
        expected = KINDS[kind][1](VALUES, 0).reshape(2, 2).T
        np.testing.assert_array_equal(jax.reshard(result, P()), expected)


@a_kind
def test_collectives_of_another_kind_are_refused(kind):
    spec = P(unreduced={"x"}, unreduced_kind=kind)
    other = lax.pmin if kind is UnreducedKind.max else lax.pmax
    for collective in (
        lambda a: lax.psum(a, "x"),
        lambda a: other(a, "x"),
        lambda a: lax.psum_scatter(a, "x", tiled=True),
        lambda a: a + 1,
    ):
        mapped = jax.shard_map(collective, in_specs=spec, out_specs=P())
        with pytest.raises(ValueError, match=f"unreduced_kind=|U_{kind.name}"):
            jax.eval_shape(lambda x: mapped(extremes(kind, x)), rows())


@a_kind
def test_specs_of_another_kind_than_the_types_are_refused(kind):
    summands = P(unreduced={"x"})
    own = P(unreduced={"x"}, unreduced_kind=kind)
    wrong_input = jax.shard_map(lambda a: a, in_specs=summands, out_specs=summands)
    with pytest.raises(ValueError, match="does not match the type"):
        jax.eval_shape(lambda x: wrong_input(extremes(kind, x)), rows())
    wrong_result = jax.shard_map(lambda a: a, in_specs=own, out_specs=summands)
    with pytest.raises(ValueError, match="another unreduced_kind"):
        jax.eval_shape(lambda x: wrong_result(extremes(kind, x)), rows())
    varying = jax.shard_map(lambda a: a.max(0), in_specs=P("x"), out_specs=own)
    with pytest.raises(ValueError, match="out_specs of another type"):
        jax.eval_shape(varying, rows())


# ---- exports -------------------------------------------------------------------------------------


@a_kind
def test_exports_keep_the_kind(kind, mesh):
    first = jax.jit(lambda x: extremes(kind, x))
    with runs_if_known():
        made = export.export(first)(rows())
        loaded = export.deserialize(made.serialize())
        assert loaded.out_avals == made.out_avals
        assert loaded.out_splits[0].spec == P(None, unreduced={"x"}, unreduced_kind=kind)
        result = loaded.call(rows())
        assert str(jax.typeof(result)) == f"float32[4]{{U_{kind.name}:x}}"
        np.testing.assert_array_equal(jax.reshard(result, P()), KINDS[kind][1](VALUES, 0))
        second = export.export(jax.jit(lambda a: jax.reshard(a, P())))(first(rows()))
        whole = export.deserialize(second.serialize()).call(first(rows()))
        np.testing.assert_array_equal(whole, KINDS[kind][1](VALUES, 0))
        with pytest.raises(ValueError, match="JAX's format has no shardings"):
            made.serialize(format="jax")
