"""Samples of scatter and its combining kin."""

import itertools

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.samples._windows import scattered
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8, u32

S = lax.ScatterDimensionNumbers
NOT_UNIQUE = (NotImplementedError, "unique_indices=True")
NO_PROGRAM = (NotImplementedError, "scatter_apply")


def named(function, operand, indices, updates, numbers, reference, **params):
    """A sample whose name leaves out what makes it too long."""
    shape = f"{indices.dtype}{list(indices.shape)}"
    options = "".join(f", {key}={value}" for key, value in params.items())
    shown = f"{operand}, {shape}, {updates}, {'.'.join(map(str, numbers))}{options}"
    name = f"{function.__name__}({shown})"
    refused = function is lax.scatter_mul and not params.get("unique_indices")
    sample(
        function, operand, indices, updates, dimension_numbers=numbers, name=name,
        reference=reference, not_differentiable=NOT_UNIQUE if refused else None, **params,
    )  # fmt: skip


ROWS = S((1,), (0,), (0,))
ELEMENTS = S((), (0,), (0,))
CORNERS = S((0, 2), (), (1, 0))
PAIRED = S((1,), (), (1,), (0,), (0,))
PLACES = S((), (0, 1), (0, 1))
WITHIN = S((0, 2), (1,), (1,))
CROSSED = S((0,), (), (1,), (0, 2), (1, 0))
ONCE = np.int32([[2], [0]])
AGAIN = np.int32([[2], [0], [2], [9]])
put, add = scattered(lambda old, new: new), scattered(np.add)
for function, reference in (
    (lax.scatter, put),
    (lax.scatter_add, add),
    (lax.scatter_sub, scattered(np.subtract)),
    (lax.scatter_mul, scattered(np.multiply)),
    (lax.scatter_min, scattered(np.minimum)),
    (lax.scatter_max, scattered(np.maximum)),
):
    named(function, f32[3, 5], ONCE, f32[2, 5], ROWS, reference)
    named(function, f32[3, 5], ONCE, f32[2, 5], ROWS, reference, unique_indices=True)
    named(function, f32[3, 5], AGAIN, f32[4, 5], ROWS, reference)
    named(function, f32[3, 5], AGAIN, f32[4, 3], ROWS, reference, mode="clip")
    named(function, f32[3, 5], i32[2, 3, 2].between(0, 2), f32[2, 3], PLACES, reference)
    named(function, f32[2, 5, 3], ONCE, f32[2, 2, 3], WITHIN, reference)
    named(function, f32[2, 5, 3], i32[3, 2, 1].between(0, 3), f32[2, 3, 2], CROSSED, reference)
    named(function, u8[3, 5], ONCE, u8[2, 3], ROWS, reference)
    named(function, bf16[3, 5], ONCE, bf16[2, 5], ROWS, reference)
    if function is not lax.scatter:
        named(function, i32[4], i32[9, 1].between(-3, 6), i32[9], ELEMENTS, reference)
    if function in (lax.scatter, lax.scatter_min, lax.scatter_max):
        named(function, b1[3, 5], ONCE, b1[2, 5], ROWS, reference)
    if function not in (lax.scatter_min, lax.scatter_max):
        named(function, c64[3, 5], ONCE, c64[2, 5], ROWS, reference)

for mode in ("clip", "fill", "drop", "promise_in_bounds"):
    beyond = 0 if mode == "promise_in_bounds" else 2
    rows, corners = i32[4, 1], i32[4, 2].between(-beyond, 1 + beyond)
    rows, pairs = rows.between(-beyond, 2 + beyond), i32[3, 1].between(-beyond, 3 + beyond)
    named(lax.scatter_add, i32[3, 5], rows, i32[4, 4], ROWS, add, mode=mode)
    named(lax.scatter_add, i32[3, 5], corners, i32[2, 4, 3], CORNERS, add, mode=mode)
    named(lax.scatter_add, i32[3, 5], pairs, i32[3, 2], PAIRED, add, mode=mode)
for mode, size in itertools.product(("clip", "fill"), (200, 300)):
    for indices in (
        i8[9, 1].between(-3, 127),
        u8[9, 1].between(100, 255),
        u32[9, 1].between(100, 300),
    ):
        named(lax.scatter_add, i32[size], indices, i32[9], ELEMENTS, add, mode=mode)
named(lax.scatter_add, f64[3, 5], np.int64([[1], [-1], [9]]), f64[3, 5], ROWS, add)
named(lax.scatter_add, f16[3, 5], ONCE, f16[2, 5], ROWS, add)
named(lax.scatter_add, f32[3, 5], i32[0, 1], f32[0, 5], ROWS, add, mode="clip")
named(lax.scatter_add, f32[0, 5], i32[2, 1], f32[2, 5], ROWS, add)
named(lax.scatter_add, f32[5], np.int32([2]), f32[()], ELEMENTS, add)
named(
    lax.scatter, f32[3, 5], np.int32([[0], [2]]), f32[2, 5], ROWS, put,
    indices_are_sorted=True, unique_indices=True,
)  # fmt: skip
named(lax.scatter_max, c64[3, 5], ONCE, c64[2, 5], ROWS, None)

sine = scattered(lambda old, new: np.sin(old))


def applied(x, indices, func, dimension_numbers, update_shape, mode=None):
    """The function on each window, once for each index that names it."""
    return sine(x, indices, np.zeros(update_shape, x.dtype), dimension_numbers, mode=mode)


sample(
    lax.scatter_apply, f32[3, 5], ONCE, func=lax.sin, dimension_numbers=ROWS, update_shape=(2, 5),
    reference=applied, name="scatter_apply(once)", not_differentiable=NO_PROGRAM,
)  # fmt: skip
sample(
    lax.scatter_apply, f32[3, 5], i32[9, 1], func=lax.sin, dimension_numbers=ROWS,
    update_shape=(9, 2), mode="clip", reference=applied, name="scatter_apply(often)",
    not_differentiable=NO_PROGRAM,
)  # fmt: skip
