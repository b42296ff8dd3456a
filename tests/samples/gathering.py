"""Samples of gather."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.samples._windows import gathered
from tests.support.cases import b1, bf16, c64, f16, f32, i4, i8, i16, i32, u8, u32

G = lax.GatherDimensionNumbers


def named(operand, indices, numbers, slice_sizes, **params):
    """A sample whose name leaves out what makes it too long."""
    shape = f"{indices.dtype}{list(indices.shape)}"
    options = "".join(f", {key}={value}" for key, value in params.items())
    name = f"gather({operand}, {shape}, {'.'.join(map(str, numbers))}, {slice_sizes}{options})"
    sample(
        lax.gather, operand, indices, dimension_numbers=numbers, slice_sizes=slice_sizes,
        name=name, reference=gathered, **params,
    )  # fmt: skip


ROWS = G((1,), (0,), (0,))
ELEMENTS = G((), (0,), (0,))
CORNERS = G((1, 3), (), (1, 0))
PAIRED = G((1,), (), (1,), (0,), (0,))
WITHIN = G((0, 2), (1,), (1,))
CROSSED = G((0,), (), (1,), (0, 2), (1, 0))
for mode in (None, "clip", "fill"):
    beyond = 0 if mode is None else 2
    named(f32[3, 5], i32[4, 1].between(-beyond, 2 + beyond), ROWS, (1, 5), mode=mode)
    named(f32[3, 5], i32[2, 2, 2].between(-beyond, 1 + beyond), CORNERS, (2, 3), mode=mode)
    named(i32[3, 5], i32[3, 1].between(-beyond, 3 + beyond), PAIRED, (1, 2), mode=mode)
    named(f32[2, 5, 3], i32[4, 1].between(-beyond, 4 + beyond), WITHIN, (2, 1, 3), mode=mode)
    named(f32[2, 5, 3], i32[3, 2, 1].between(-beyond, 3 + beyond), CROSSED, (1, 2, 1), mode=mode)
for mode in ("clip", "fill"):
    named(i32[200], i8[9, 1].between(-3, 127), ELEMENTS, (1,), mode=mode)
    named(i32[200], u8[9, 1].between(190, 255), ELEMENTS, (1,), mode=mode)
    named(i32[300], u8[9, 1].between(190, 255), ELEMENTS, (1,), mode=mode)
    named(i32[200], i16[9, 1].between(0, 300), ELEMENTS, (1,), mode=mode)
    named(i32[200], u32[9, 1].between(0, 300), ELEMENTS, (1,), mode=mode)
for dtype in (b1, i8, u8, bf16, f16, c64):
    named(dtype[4], i32[9, 1].between(-3, 6), ELEMENTS, (1,), mode="fill")
named(i4[4], i32[9, 1].between(0, 3), ELEMENTS, (1,), mode="clip")
named(i4[4], i32[9, 1].between(-3, 6), ELEMENTS, (1,), mode="fill", fill_value=1)
named(i8[4], i32[9, 1].between(-3, 6), ELEMENTS, (1,), mode="fill", fill_value=-7)
named(f32[3, 5], i32[0, 1], ROWS, (1, 5), mode="fill")
named(f32[3, 5], np.zeros(0, np.int32), G((0, 1), (), ()), (3, 5), mode="fill")
named(f32[3, 5], np.int32([1]), G((0,), (0,), (0,)), (1, 0))
named(f32[3, 5], np.int64([[1], [-1], [9]]), ROWS, (1, 5), mode="fill")
named(
    f32[3, 5], np.int32([[0], [2]]), ROWS, (1, 5),
    indices_are_sorted=True, unique_indices=True, mode="promise_in_bounds",
)  # fmt: skip

one = (np.int32([-9, 4, 2, -1]),)
two = (np.int32([-1, 4, 0]), np.int32([-6, 7, 2]))
take = lambda x, idxs, axes: x[tuple(i % x.shape[axis] for axis, i in zip(axes, idxs, strict=True))]
sample(lax.index_take, f32[3, 5], one, (0,), name="index_take(one)", reference=take)
sample(lax.index_take, f32[3, 5], two, (0, 1), name="index_take(two)", reference=take)
sample(lax.index_take, i8[3, 5], np.uint8([[1, 200], [4, 9]]), (0, 1), reference=take)
