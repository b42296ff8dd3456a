"""Shapes and axes as users give them."""

import numpy as np
import pytest

import hlofront
from hlofront.core.sizes.dimensions import canonical_axes, canonical_axis, canonical_shape, integers


@pytest.mark.parametrize(
    "given", [(2, 3), [2, 3], np.array([2, 3]), (np.int8(2), np.uint64(3)), range(2, 4)]
)
def test_shapes_are_tuples_of_ints(given):
    shape = canonical_shape(given)
    assert shape == (2, 3)
    assert type(shape) is tuple and {type(size) for size in shape} == {int}
    assert integers(given, "it") == (2, 3)


def test_a_tuple_of_ints_is_itself():
    shape = (2, 3)
    assert canonical_shape(shape) is shape


def test_one_integer_is_a_shape_of_one_axis():
    assert canonical_shape(5) == canonical_shape(np.int32(5)) == (5,)


@pytest.mark.parametrize("given", [(2.0, 3), "ab", None, 2.5, [[1, 2]], np.ones(2), (None,)])
def test_other_things_are_no_shapes(given):
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values of int"):
        canonical_shape(given)


def test_traced_sizes_are_explained():
    @hlofront.jit
    def f(count):
        return hlofront.lax.full((count, 2), 1.0)

    with pytest.raises(TypeError, match="of integer type, got") as caught:
        f(3)
    message = str(caught.value)
    assert "static_argnums" in message
    assert "count" in message, "the argument that it came from is named"


def test_axes():
    assert [canonical_axis(axis, 3) for axis in (0, 2, -1, -3, np.int8(1))] == [0, 2, 2, 0, 1]
    assert canonical_axes((-1, 0), 2) == (1, 0)
    assert canonical_axes(-1, 2) == (1,)
    for axis in (3, -4):
        for class_ in (ValueError, IndexError):
            with pytest.raises(class_, match=f"axis {axis} is out of bounds for array of dimen"):
                canonical_axis(axis, 3)
    with pytest.raises(TypeError):
        canonical_axis(1.0, 3)
    with pytest.raises(TypeError, match="dimensions of rev must be a sequence of integers, got 1"):
        integers(1, "dimensions of rev")
