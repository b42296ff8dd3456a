"""Indices of every kind, drawn by Hypothesis: reads and updates are NumPy's, also under jit."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import errors
from tests.systematic.trials import COMPILES_FAST, quiet

SHAPE = (3, 4, 5)
CUBE = (np.arange(60, dtype=np.float32).reshape(SHAPE) % 17) - 8
# Without shrinking, which would compile again and again: an index is small enough.
few = settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
)


def integers(size):
    return st.integers(-size, size - 1)


@st.composite
def slices(draw, size):
    ends = st.none() | st.integers(-size - 2, size + 2)
    step = draw(st.sampled_from([None, 1, 2, -1, -2, 3]))
    return slice(draw(ends), draw(ends), step)


@st.composite
def arrays(draw, size):
    """Integers within bounds; the shapes of all of them broadcast."""
    shape = draw(st.sampled_from([(2,), (2,), (1,), (3, 1), (3, 2), ()]))
    dtype = draw(st.sampled_from([np.int32, np.int8, np.int64]))
    count = int(np.prod(shape))
    values = draw(st.lists(integers(size), min_size=count, max_size=count))
    return np.array(values, dtype).reshape(shape)


@st.composite
def masks(draw, shape, true=None):
    values = np.zeros(int(np.prod(shape)), bool)
    places = draw(st.permutations(range(values.size)))
    count = draw(st.integers(0, values.size)) if true is None else true
    values[list(places[:count])] = True
    return values.reshape(shape)


@st.composite
def indices(draw):
    """An index of CUBE: for each axis an entry, and more; or fewer, with an ellipsis maybe."""
    entries = []
    axis = 0
    has_mask = False
    while axis < len(SHAPE):
        size = SHAPE[axis]
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "array", "mask", "all", "new", "end"])
        )
        if kind == "end":
            break
        if kind == "new":
            if sum(entry is None for entry in entries) < 2:
                entries.append(None)
            continue
        if kind == "mask":
            # As many true ones as broadcast with the arrays; one mask, of one axis or of two.
            if has_mask:
                continue
            has_mask = True
            count = draw(st.integers(1, 2)) if axis + 1 < len(SHAPE) else 1
            entries.append(draw(masks(SHAPE[axis : axis + count], true=2)))
            axis += count
            continue
        strategy = {"int": integers, "slice": slices, "array": arrays}
        entries.append(slice(None) if kind == "all" else draw(strategy[kind](size)))
        axis += 1
    if draw(st.booleans()):
        # It stands for the axes that are left: as many as the entries behind it leave.
        entries.insert(
            len(entries) if axis < len(SHAPE) else draw(st.integers(0, len(entries))), ...
        )
    return entries[0] if len(entries) == 1 and draw(st.booleans()) else tuple(entries)


def split(index):
    """The arrays of integers of an index, which jit may trace, and how they are put back."""
    entries = index if isinstance(index, tuple) else (index,)
    traced = [
        entry for entry in entries if isinstance(entry, np.ndarray) and entry.dtype != np.bool_
    ]

    def put_back(arrays):
        waiting = iter(arrays)
        found = tuple(
            next(waiting) if isinstance(entry, np.ndarray) and entry.dtype != np.bool_ else entry
            for entry in entries
        )
        return found if isinstance(index, tuple) else found[0]

    return traced, put_back


def is_right(index):
    try:
        CUBE[index]
    except (IndexError, ValueError):
        return False
    return True


many = st.lists(indices().filter(is_right), min_size=25, max_size=25)


@few
@given(many)
def test_reads_are_numpys(some):
    parts = [split(index) for index in some]

    def read(x, all_arrays):
        return [x[put_back(mine)] for (_, put_back), mine in zip(parts, all_arrays, strict=True)]

    jitted = jax.jit(read, compiler_options=COMPILES_FAST)
    found = jitted(jnp.asarray(CUBE), [traced for traced, _ in parts])
    for index, result in zip(some, found, strict=True):
        np.testing.assert_array_equal(result, CUBE[index], err_msg=repr(index), strict=True)
    for index in some[:3]:
        np.testing.assert_array_equal(jnp.asarray(CUBE)[index], CUBE[index], strict=True)


UPDATES = {
    "set": None,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def updated_by_numpy(index, method, value):
    result = CUBE.copy()
    if method == "set":
        result[index] = value
    else:
        # Counts an index as often as it is given.
        UPDATES[method].at(result, index, value)
    return result


@few
@given(many)
def test_updates_are_numpys(some):
    parts = [split(index) for index in some]
    methods = [list(UPDATES)[i % len(UPDATES)] for i in range(len(some))]
    # One value where an index may be given twice: which one is set is not said.
    values = [
        np.float32(2)
        if method == "set"
        else (np.arange(CUBE[index].size, dtype=np.float32) % 3 + 1).reshape(CUBE[index].shape)
        for index, method in zip(some, methods, strict=True)
    ]

    def update(x, all_arrays, values):
        return [
            getattr(x.at[put_back(mine)], method)(value)
            for (_, put_back), method, mine, value in zip(
                parts, methods, all_arrays, values, strict=True
            )
        ]

    jitted = jax.jit(update, compiler_options=COMPILES_FAST)
    with quiet():
        found = jitted(jnp.asarray(CUBE), [traced for traced, _ in parts], values)
    for index, method, value, result in zip(some, methods, values, found, strict=True):
        wanted = updated_by_numpy(index, method, value)
        np.testing.assert_array_equal(result, wanted, err_msg=f"{method} {index!r}", strict=True)


@few
@given(st.lists(st.integers(-12, 12), min_size=4, max_size=4), st.integers(-12, 12))
def test_out_of_bounds_by_mode(places, place):
    """Clamped, filled or dropped: the same for arrays as for each place alone."""
    x = np.arange(5, dtype=np.float32)
    inside = [-5 <= i < 5 for i in places]
    nearest = [min(max(i + 5 if i < 0 else i, 0), 4) for i in places]
    several = jnp.asarray(x).at[jnp.array(places)]
    clipped = x[nearest]
    filled = np.where(inside, clipped, -1)
    np.testing.assert_array_equal(several.get(mode="clip"), clipped)
    np.testing.assert_array_equal(jnp.asarray(x)[jnp.array(places)], clipped)
    np.testing.assert_array_equal(several.get(mode="fill", fill_value=-1), filled)
    dropped, clamped = x.copy(), x.copy()
    np.add.at(dropped, [n for n, ok in zip(nearest, inside, strict=True) if ok], 1)
    np.add.at(clamped, nearest, 1)
    for mode in (None, "drop", "fill"):
        np.testing.assert_array_equal(several.add(1, mode=mode), dropped)
    np.testing.assert_array_equal(several.add(1, mode="clip"), clamped)
    alone = jnp.asarray(x)[place]
    assert alone == x[min(max(place + 5 if place < 0 else place, 0), 4)]


def operations(function, *args):
    """The names of a program's operations, those of the programs in it too."""
    found = []

    def visit(jaxpr):
        for equation in jaxpr.eqns:
            found.append(equation.primitive.name)
            for value in equation.params.values():
                if hasattr(value, "jaxpr"):
                    visit(value.jaxpr)

    visit(jax.make_jaxpr(function)(*args).jaxpr)
    return set(found)


static = st.one_of(st.just(None), st.just(...), slices(4), integers(3))


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(st.lists(static, min_size=1, max_size=3).filter(lambda entries: entries.count(...) < 2))
def test_what_is_static_is_sliced_and_not_gathered(entries):
    index = tuple(entries)
    assert operations(lambda x: x[index], CUBE) <= set(
        "slice squeeze rev broadcast_in_dim reshape copy copy_p".split()
    )


def test_masks_select():
    mask = CUBE > 0
    for change in (
        lambda x, m: x.at[m].set(0),
        lambda x, m: x.at[m].add(1),
        lambda x, m: x.at[..., m[0, 0]].set(2),
    ):
        names = operations(change, CUBE, mask)
        assert "select_n" in names
        assert not {name for name in names if name.startswith(("scatter", "gather"))}


def test_traced_masks_are_refused_with_advice():
    for read in (lambda x, m: x[m], lambda x, m: x[0, m[0, :, 0]], lambda x, m: x.at[m].get()):
        with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"jnp\.where"):
            jax.make_jaxpr(read)(CUBE, CUBE > 0)
