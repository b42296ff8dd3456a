"""Layouts: the order of elements in memory that a Format requests from device_put and jit."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.layout import Format, Layout, with_layout_constraint
from hlofront.experimental.serialize_executable import deserialize_and_load, serialize

ONE = jax.sharding.SingleDeviceSharding(jax.devices()[0])
BY_COLUMNS = Format(Layout((1, 0)), ONE)
BY_ROWS = Format(Layout((0, 1)), ONE)
CHOSEN = Format(Layout.AUTO, ONE)
VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def order(x):
    return x.format.layout.major_to_minor


@pytest.fixture
def columns():
    return jax.device_put(VALUES, BY_COLUMNS)


def twice(x):
    return x * 2


def test_device_put_lays_elements_out(columns):
    assert order(columns) == (1, 0)
    assert columns.format == Format(Layout((1, 0), ()), ONE)
    np.testing.assert_array_equal(columns, VALUES)
    assert order(jax.device_put(columns, BY_ROWS)) == (0, 1)
    assert order(jax.device_put(columns, ONE)) == (1, 0)


@pytest.mark.parametrize(
    "use",
    [
        twice,
        lambda x: x[0],
        lambda x: x.T,
        lambda x: x.sum(0),
        lambda x: x @ x.T,
        jax.grad(lambda x: (x**3).sum()),
        jax.vmap(jnp.cumsum),
        jax.jit(twice),
        jax.jit(lambda x: jax.lax.scan(lambda c, r: (c + r, r), jnp.zeros(3), x)),
        lambda x: jax.jit(twice).lower(VALUES).compile()(x),
        lambda x: jnp.stack([x, VALUES]),
    ],
)
def test_operations_on_other_layouts_give_the_same(use, columns):
    for _ in range(3):  # The later calls are C++'s.
        jax.tree.map(np.testing.assert_array_equal, use(columns), use(jnp.asarray(VALUES)))


def test_calls_of_one_function_with_both_layouts_are_told_apart(columns):
    f = jax.jit(twice)
    for x in (VALUES, jnp.asarray(VALUES), columns, columns, jnp.asarray(VALUES), columns):
        np.testing.assert_array_equal(f(x), 2 * VALUES)


def test_other_dtypes_have_layouts():
    for dtype in ("int4", "bool", "bfloat16", "complex64"):
        x = jnp.asarray(VALUES).astype(dtype)
        put = jax.device_put(x, BY_COLUMNS)
        assert order(put) == (1, 0)
        assert (put == x).all()
    keys = jax.random.split(jax.random.key(0), (2, 3))
    put = jax.device_put(keys, BY_COLUMNS)
    assert order(jax.random.key_data(put)) in ((1, 0, 2), (0, 1, 2))
    assert (put == keys).all()


@pytest.mark.parametrize("x", [VALUES, "rows", "columns"])
def test_jit_takes_and_gives_layouts(x, columns):
    x = {"rows": jnp.asarray(VALUES), "columns": columns}.get(x, x) if isinstance(x, str) else x
    f = jax.jit(twice, in_shardings=BY_COLUMNS, out_shardings=BY_COLUMNS)
    for _ in range(3):
        result = f(x)
        assert order(result) == (1, 0)
        np.testing.assert_array_equal(result, 2 * VALUES)
    assert order(jax.jit(twice, in_shardings=BY_COLUMNS)(x)) == (0, 1)


def test_trees_of_formats_are_prefixes(columns):
    f = jax.jit(
        lambda t, y: {"a": t["a"] + y, "b": y},
        in_shardings=({"a": BY_COLUMNS}, None),
        out_shardings={"a": BY_COLUMNS, "b": None},
    )
    result = f({"a": columns}, 1.0)
    assert order(result["a"]) == (1, 0)
    np.testing.assert_array_equal(result["a"], VALUES + 1)


def test_xla_chooses_layouts_where_it_is_asked():
    f = jax.jit(lambda x: x.T, in_shardings=CHOSEN, out_shardings=CHOSEN)
    compiled = f.lower(VALUES).compile()
    ((taken,), _), given = compiled.input_formats, compiled.output_formats
    assert taken.layout.major_to_minor == given.layout.major_to_minor[::-1]
    np.testing.assert_array_equal(compiled(VALUES), VALUES.T)
    np.testing.assert_array_equal(f(jax.device_put(VALUES, BY_COLUMNS)), VALUES.T)
    assert f.lower(VALUES).as_text().count('layout_mode = "auto"') == 2


def test_stages_say_the_layouts_and_programs_convert_what_they_take(columns):
    compiled = jax.jit(twice, in_shardings=BY_COLUMNS).lower(VALUES).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (1, 0)
    for x in (VALUES, columns, jnp.asarray(VALUES)):
        np.testing.assert_array_equal(compiled(x), 2 * VALUES)
    loaded = deserialize_and_load(*serialize(compiled))
    for x in (VALUES, columns, jnp.asarray(VALUES), VALUES):
        np.testing.assert_array_equal(loaded(x), 2 * VALUES)


def test_a_description_of_an_argument_may_have_a_format(columns):
    described = jax.ShapeDtypeStruct((2, 3), np.float32, sharding=BY_COLUMNS)
    assert (described.sharding, described.format) == (ONE, BY_COLUMNS)
    assert described.update(shape=(3, 2)).format == BY_COLUMNS
    compiled = jax.jit(twice).lower(described).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(compiled(columns), 2 * VALUES)


def test_donation_and_keywords(columns):
    f = jax.jit(twice, in_shardings=BY_COLUMNS, out_shardings=BY_COLUMNS, donate_argnums=0)
    np.testing.assert_array_equal(f(columns), 2 * VALUES)
    assert columns.is_deleted()
    made = jax.make_array_from_callback((2, 3), BY_COLUMNS, lambda index: VALUES[index])
    assert order(made) == (1, 0)


def test_programs_with_ordered_effects_take_layouts(columns, capfd):
    def show(x):
        jax.debug.print("{}", x[0, 1], ordered=True)
        return x * 2

    for options in ({}, {"in_shardings": BY_COLUMNS}):
        f = jax.jit(show, **options)
        for x in (columns, jnp.asarray(VALUES), VALUES):
            np.testing.assert_array_equal(f(x), 2 * VALUES)
    jax.effects_barrier()
    assert capfd.readouterr().out == "1.0\n" * 6
    with pytest.raises(ValueError, match="has effects, and XLA does not say"):
        jax.jit(show, in_shardings=CHOSEN)(VALUES)


def by_columns(x):
    return with_layout_constraint(x, Layout((1, 0)))


def test_a_constraint_lays_values_out_inside_of_programs():
    f = jax.jit(lambda x: by_columns(x) * 2)
    text = f.lower(VALUES).as_text()
    assert "@LayoutConstraint" in text
    assert "dense<[0, 1]>" in text
    np.testing.assert_array_equal(f(VALUES), 2 * VALUES)
    assert order(by_columns(VALUES)) == (1, 0)
    tree = with_layout_constraint(
        {"a": VALUES, "b": VALUES}, {"a": Layout((1, 0)), "b": Layout((0, 1))}
    )
    assert (order(tree["a"]), order(tree["b"])) == ((1, 0), (0, 1))


def test_a_constraint_is_its_own_derivative_and_maps():
    program = jax.make_jaxpr(jax.grad(lambda x: by_columns(x).sum()))(VALUES)
    assert [e.primitive.name for e in program.eqns].count("layout_constraint") == 2
    for axis, wanted in ((0, (0, 2, 1)), (2, (2, 1, 0))):
        mapped = jax.make_jaxpr(jax.vmap(by_columns, in_axes=axis))(np.zeros((2, 3, 4)))
        assert mapped.eqns[0].params["layout"] == Layout(wanted)
    np.testing.assert_array_equal(jax.vmap(by_columns)(np.ones((4, 2, 3))), np.ones((4, 2, 3)))
    keys = jax.random.split(jax.random.key(0), (2, 3))
    assert (jax.jit(by_columns)(keys) == keys).all()
    assert (by_columns(keys) == keys).all()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Format(Layout((1, 0))), ValueError, "Sharding has to be concrete"),
        (lambda: Format("rows"), TypeError, r"the layout of a Format is None, Layout\.AUTO"),
        (lambda: Format(None, "x"), TypeError, "the sharding of a Format"),
        (
            lambda: jax.device_put(VALUES, CHOSEN),
            ValueError,
            "XLA chooses layouts only for programs",
        ),
        (
            lambda: jax.device_put(VALUES, Format(Layout((0,)), ONE)),
            ValueError,
            "incompatible with its layout annotation",
        ),
        (
            lambda: jax.jit(twice, in_shardings=Format(Layout((0, 0)), ONE))(VALUES),
            ValueError,
            r"the argument of jit at \[0\] is incompatible .* with each axis once",
        ),
        (lambda: with_layout_constraint(VALUES, BY_ROWS), ValueError, "must be of type `Layout`"),
        (lambda: with_layout_constraint(VALUES, Layout((0,))), ValueError, "is incompatible"),
        (
            lambda: jax.jit(twice, out_shardings=Format(Layout((0,)), ONE))(VALUES),
            ValueError,
            "the result of jit at its root is incompatible",
        ),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()
