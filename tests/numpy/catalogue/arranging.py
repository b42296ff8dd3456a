"""Shapes, axes, joining and splitting, repeating and turning, inserting, padding."""

import numpy as np

from tests.numpy.catalogue import AN_OBJECT, KINDS, call, each, tried, wrong
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8

# ---- shapes --------------------------------------------------------------------------------------

RESHAPED = [
    *each(KINDS, lambda t: call(t[2, 3], (3, 2))),
    *(call(f32[2, 6], shape) for shape in (-1, 12, (3, -1), (2, -1, 2), [4, 3], (1, 12, 1))),
    call(f32[2, 6], (6, 2), order="F"),
    call(f32[2, 6], -1, "F"),
    call(f32[0, 3], (3, 0, 2)),
    call(f32[()], (1, 1)),
    call(2.0, (1,)),
    call(f32[1], ()),
]
tried("reshape", *RESHAPED)
tried("reshape", call(f32[2, 3], (3, 2), copy=True))
wrong(
    "reshape", call(f32[6], 4), call(f32[6], (-1, -1)), call(f32[6], (4, -1)), call(f32[6], (2.5,))
)
wrong(
    "reshape", call(f32[6], "a"), call([1, 2], (2,)), call(f32[6], (2, 3), order="K"), call(f32[6])
)
wrong(
    "reshape",
    call(f32[6], (2, 3), copy=False),
    call(f32[6], (2, 3), order="A"),
    call(f32[0], (0, -1)),
)
RAVELED = [*each(KINDS, lambda t: call(t[2, 3])), call(f32[2, 3], "F"), call(2.0), call(f32[0, 3])]
tried("ravel", *RAVELED)
wrong("ravel", call(f32[2, 3], "K"), call([1]), call(f32[2], order="x"))
SQUEEZED = [
    *each(KINDS, lambda t: call(t[1, 3, 1])),
    *(call(f32[1, 3, 1], axis=a) for a in (0, -1, (0, 2))),
]
tried("squeeze", *SQUEEZED, call(f32[2], axis=()), call(2.0), call(f32[1, 0]))
wrong(
    "squeeze",
    call(f32[2, 1], 0),
    call(f32[1], 1),
    call(f32[1], "a"),
    call([1]),
    call(f32[1, 1], (0, 0)),
)
EXPANDED = [
    *each(KINDS, lambda t: call(t[2, 3], 1)),
    *(call(f32[3], a) for a in (0, -1, (0, -1), [1, 2], ())),
]
tried("expand_dims", *EXPANDED, call(2.0, 0), call(f32[0], (0, 1)))
wrong(
    "expand_dims",
    call(f32[3], 2),
    call(f32[3], (0, 0)),
    call(f32[3], "a"),
    call([1], 0),
    call(f32[3], None),
)
tried(
    "atleast_1d atleast_2d atleast_3d",
    *each(KINDS, lambda t: call(t[2])),
    call(2.0),
    call(f32[2, 3]),
)
tried(
    "atleast_1d atleast_2d atleast_3d", call(f32[()], 1, i8[2]), call(f32[1, 2, 3, 1]), call(f32[0])
)
tried("atleast_1d", call())
wrong("atleast_1d atleast_2d", call("a"), call(None), call(AN_OBJECT))
BROADCAST = [
    *each(KINDS, lambda t: call(t[3], (2, 3))),
    call(f32[2, 1], (2, 3)),
    call(f32[()], (2,)),
    call(2.0, (2, 2)),
    call(f32[1], (0,)),
    call(f32[1], 4),
    call(f32[1, 3], [2, 2, 3]),
    call(f32[()], ()),
]
tried("broadcast_to", *BROADCAST)
wrong(
    "broadcast_to",
    call(f32[3], (2,)),
    call(f32[2, 3], (3,)),
    call(f32[3], "a"),
    call([1], (2,)),
    call(f32[3], -1),
)
tried(
    "broadcast_arrays",
    call(f32[3], i8[2, 1]),
    call(f32[()], 2.0),
    call(f32[0, 1], f32[3]),
    call(),
    call(b1[2]),
)
wrong("broadcast_arrays", call(f32[2], f32[3]), call("a"), call([1, 2], f32[2]))
tried(
    "broadcast_shapes",
    call((2, 1), (3,)),
    call(()),
    call(),
    call(3, (2, 1)),
    call((0, 1), (1, 3)),
    concrete=True,
)
wrong("broadcast_shapes", call((2,), (3,)), call("a"), call((2, -1)), call(None), call((2.5,)))
tried("shape ndim", *each(KINDS, lambda t: call(t[2, 3])), call(2.0), call(f32[()]), concrete=True)
SIZES = [call(f32[2, 3], 0), call(f32[2, 3], axis=-1), call(f32[2, 3, 4], (0, 2))]
tried("size", *SIZES[:2], call(f32[2, 3]), call(2.0), call(b1[0, 3]), concrete=True)
tried("size", SIZES[2], concrete=True, numpy=lambda x, axis: x.shape[0] * x.shape[2])
wrong("shape ndim size", call("a"), call(None), call([1, 2]), call(AN_OBJECT), call(f32[2], 3))
TURNED = [
    *each(KINDS, lambda t: call(t[2, 3])),
    call(f32[2, 3, 4], (1, 2, 0)),
    call(f32[2, 3, 4], (-1, 0, 1)),
    call(f32[2, 3, 4], [0, 2, 1]),
    call(f32[0, 3], (1, 0)),
]
tried("transpose", *TURNED, call(f32[()]), call(2.0), call(f32[3]), call(f32[2, 3], axes=None))
tried("permute_dims", TURNED[6], TURNED[7], call(u8[2, 3], axes=(1, 0)))
wrong(
    "transpose permute_dims",
    call(f32[2, 3], (0,)),
    call(f32[2, 3], (0, 0)),
    call(f32[2, 3], (0, 2)),
)
wrong(
    "transpose permute_dims",
    call(f32[2, 3], "ab"),
    call([[1]], (1, 0)),
    call(f32[2, 3], 1),
    call(f32[2], (1.5,)),
)
tried(
    "matrix_transpose", *each(KINDS, lambda t: call(t[2, 3])), call(f32[2, 3, 4]), call(f32[0, 3])
)
wrong("matrix_transpose", call(f32[3]), call(f32[()]), call([[1]]))
MOVED = [
    *each(KINDS, lambda t: call(t[2, 3, 4], 0, 2)),
    call(f32[2, 3, 4], -1, 0),
    call(f32[2, 3, 4], (0, 1), (-1, 0)),
    call(f32[2, 3, 4], [0], [1]),
    call(f32[2, 0], 0, 1),
    call(f32[2, 3], (), ()),
]
tried("moveaxis", *MOVED)
tried("swapaxes", *MOVED[:5], call(f32[2, 3], 1, 1))
tried(
    "rollaxis",
    *(call(f32[2, 3, 4], *where) for where in ((0,), (2,), (2, 1), (0, 3), (-1, -2), (1, 1))),
)
wrong(
    "moveaxis",
    call(f32[2, 3], 0, 2),
    call(f32[2, 3], (0, 1), 0),
    call(f32[2, 3], (0, 0), (0, 1)),
    call([1], 0, 0),
)
wrong(
    "swapaxes rollaxis",
    call(f32[2, 3], 2, 0),
    call(f32[2, 3], 0, 5),
    call(f32[2], "a", 0),
    call([[1]], 0, 1),
)

# ---- joining and splitting -----------------------------------------------------------------------

JOINED = [
    *each(KINDS, lambda t: call([t[2, 3], t[2, 3]])),
    call((f32[2, 3], i8[2, 3]), axis=1),
    call([f32[2, 3], bf16[2, 3], f16[2, 3]], axis=-1),
    call([f32[2, 3]]),
    call(f32[2, 3, 2]),
    call([f32[0, 3], f32[0, 3]]),
]
tried("concatenate concat stack", *JOINED)
MORE = [call([f32[2], f32[0], f32[3]]), call([f32[1, 3], f32[2, 3]], axis=0)]
tried("concatenate concat", *MORE, call([f32[2, 3], i8[2]], axis=None))
tried(
    "concatenate stack",
    call([f32[2], f32[2]], dtype=np.float16),
    call((i8[2], u8[2]), dtype=np.float32),
)
tried("stack", call([f32[()], 2.0]), call([f32[2, 3]] * 2, axis=-3), call([f32[2, 3]] * 2, 2))
wrong(
    "concatenate concat stack",
    call([]),
    call(f32[()]),
    call([f32[2], f32[2]], axis=3),
    call(3),
    call([f32[2], "a"]),
)
wrong(
    "concatenate concat stack",
    call([f32[2, 3], f32[3, 2]]),
    call([f32[2], [1, 2]]),
    call([f32[2], None]),
)
wrong("concatenate", call([f32[2], f32[2, 2]]), call([f32[()], f32[()]]), call([f32[2]], dtype="q"))
wrong("stack", call([f32[2], f32[3]]), call([f32[2]], out=1))
STACKED = [
    *each(KINDS, lambda t: call([t[2, 3], t[2, 3]])),
    call((f32[3], i8[3])),
    call([f32[()], 2.0]),
    call(f32[2, 3]),
    call([f32[0], f32[0]]),
]
tried("vstack hstack dstack", *STACKED)
tried("vstack hstack", call([f32[2], f32[2]], dtype=np.float16))
tried("dstack", call([f32[2], f32[2]], dtype=np.float16), numpy=lambda x, dtype: np.dstack(x))
tried("column_stack", *STACKED[:-3], STACKED[-1], call([f32[2], f32[2, 3]]), call([f32[()], 2.0]))
wrong(
    "vstack hstack dstack column_stack",
    call([]),
    call(3),
    call([f32[2], f32[3, 2]]),
    call([f32[2], "a"]),
    call([[1], [2]]),
)
APPENDED = [
    *each(KINDS, lambda t: call(t[2, 3], t[3])),
    call(f32[2, 3], f32[1, 3], axis=0),
    call(f32[2, 3], i8[2, 1], 1),
    call(f32[3], 1),
    call(2.0, 3.0),
    call(f32[0], f32[0]),
]
tried("append", *APPENDED)
wrong(
    "append",
    call(f32[2, 3], f32[3], axis=0),
    call([1], 2),
    call(f32[2], "a"),
    call(f32[2, 3], f32[1, 3], axis=2),
)
BLOCKS = [
    call([f32[2], f32[3]]),
    call([[f32[2, 2], f32[2, 1]], [i32[1, 2], f32[1, 1]]]),
    call([[1, 2.0], [f32[()], 4]]),
    call(f32[2, 3]),
    call(2.0),
    call([[[f32[2]]]]),
]
tried("block", *BLOCKS)
wrong(
    "block",
    call([]),
    call([[1], 2]),
    call([f32[2, 2], f32[3, 3]]),
    call(["a"]),
    call((f32[2], f32[2])),
    call([[]]),
)
SPLIT = [
    *each(KINDS, lambda t: call(t[4, 2], 2)),
    call(f32[4, 3], 3, axis=1),
    call(f32[4, 3], [1, 3]),
    call(f32[4, 3], (1, 2), -1),
    call(f32[4], np.array([2, 2, 3])),
    call(f32[0, 2], 2),
]
tried("split array_split", *SPLIT)
tried("array_split", call(f32[5], 3), call(f32[2, 5], 3, 1), call(f32[2], 4))
tried(
    "hsplit", call(f32[4], 2), call(f32[2, 4], 2), call(f32[2, 4, 2], [1]), call(i8[2, 3], [1, 2])
)
tried("vsplit", call(f32[4, 2], 2), call(f32[4, 2], [1, 3]), call(c64[2, 0], 2))
tried("dsplit", call(f32[1, 2, 4], 2), call(b1[1, 2, 4], (1, 3)))
tried(
    "unstack",
    *each(KINDS, lambda t: call(t[2, 3])),
    call(f32[2, 3], axis=-1),
    call(f32[0, 3]),
    numpy=lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)),
)
wrong(
    "split",
    call(f32[5], 2),
    call(f32[5], 0),
    call(f32[()], 1),
    call([1, 2], 2),
    call(f32[4], "a"),
    call(f32[4], 2.5),
)
wrong(
    "split array_split",
    call(f32[4], [2, 9]),
    call(f32[4], np.array([2, -1])),
    call(f32[4], 2, axis=1),
    call(f32[4], -1),
    call(f32[4], None),
    call("a", 2),
)
wrong("vsplit dsplit hsplit", call(f32[4], 2), call(f32[()], 1), call(f32[3, 3, 3], 2))
wrong("unstack", call(f32[()]), call(f32[2], axis=1), call([1, 2]))

# ---- repeating and turning -----------------------------------------------------------------------

TILED = [
    *each(KINDS, lambda t: call(t[2, 3], 2)),
    *(call(f32[2, 3], reps) for reps in ((2, 1), (2, 1, 2), [0, 1], (), np.array([1, 2]))),
    call(2.0, 3),
    call(f32[0], 2),
]
tried("tile", *TILED)
wrong(
    "tile", call(f32[2], -1), call(f32[2], "a"), call(f32[2], 1.5), call([1], 2), call(f32[2], None)
)
REPEATED = [
    *each(KINDS, lambda t: call(t[2, 3], 2)),
    call(f32[2, 3], 2, axis=0),
    call(f32[2, 3], np.array([1, 0, 2]), axis=1),
    call(f32[3], np.array([2, 1, 0])),
    call(f32[2, 3], 0, axis=-1),
    call(2.0, 3),
    call(f32[0], 2),
    call(f32[2, 3], np.array([2]), 0),
]
tried("repeat", *REPEATED)
LENGTH = [
    call(f32[3], i32[3].between(0, 2), total_repeat_length=4),
    call(f32[2, 3], i32[()].between(1, 2), 1, total_repeat_length=5),
]
tried("repeat", *LENGTH, numpy="a static length is only jax's")
wrong(
    "repeat",
    call(f32[3], [2, 1, 0]),
    call(f32[3], i32[3]),
    call(f32[3], np.array([1, 2])),
    call(f32[3], "a"),
    call([1], 2),
    call(f32[3], 2, axis=1),
)
wrong(
    "repeat",
    call(f32[3], [2, 1, 0]),
    call(f32[3], 1.5),
    call(f32[3], -1),
    call(f32[3], np.ones((2, 2), int)),
    call(f32[3], None),
)
RESIZED = [
    call(f32[2, 3], (3, 3)),
    call(f32[2, 3], 4),
    call(i8[3], (2, 0)),
    call(f32[0], (2,)),
    call(2.0, (2, 2)),
]
tried("resize", *RESIZED)
wrong("resize", call(f32[3], -1), call(f32[3], "a"), call([1, 2], (2,)), call(f32[3], (1.5,)))
FLIPPED = [
    *each(KINDS, lambda t: call(t[2, 3])),
    *(call(f32[2, 1, 3], axis=a) for a in (0, -1, (0, 2), (), None)),
]
tried("flip", *FLIPPED, call(f32[()]), call(f32[0]))
tried("fliplr flipud", *each(KINDS, lambda t: call(t[2, 3])), call(f32[2, 3, 4]), call(f32[0, 2]))
tried("flipud", call(f32[3]))
wrong(
    "flip fliplr flipud",
    call(f32[()], 0),
    call(f32[3], axis=1),
    call([1, 2]),
    call(f32[3], (0, 0)),
    call(f32[()]),
)
wrong("fliplr", call(f32[3]))
ROLLED = [
    *each(KINDS, lambda t: call(t[2, 3], 1)),
    call(f32[2, 3], -2, axis=1),
    call(f32[2, 3], (1, 1), axis=(0, 1)),
    call(f32[2, 3], 1, (0, 1)),
    call(f32[2, 3], (1, 2), 1),
    call(f32[3], i32[()]),
    call(f32[2, 3], i32[2], axis=(0, 1)),
    call(f32[0, 3], 1, 0),
    call(f32[()], 1),
    call(f32[3], 100),
]
tried("roll", *ROLLED)
wrong(
    "roll",
    call(f32[3], 1.5),
    call(f32[3], 1, axis=1),
    call([1], 1),
    call(f32[3], "a"),
    call(f32[2, 3], (1, 2, 3), (0, 1)),
)
wrong("roll", call(f32[3], f32[()]), call(f32[3], (1, 2)), call(f32[3], None))
TURNS = [
    *each(KINDS, lambda t: call(t[2, 3])),
    *(call(f32[2, 3], k) for k in (0, 2, 3, -1, 5)),
    call(f32[2, 3, 4], 1, (1, 2)),
    call(f32[2, 3, 4], k=1, axes=(2, 0)),
]
tried("rot90", *TURNS, call(f32[0, 2]))
wrong(
    "rot90",
    call(f32[3]),
    call(f32[2, 2], axes=(0, 0)),
    call(f32[2, 2], axes=(0, 2)),
    call(f32[2, 2], 1.5),
    call([[1]]),
    call(f32[2, 2], axes=(0,)),
)
TRIMMED = np.float32([0, 0, 1, 2, 0, 3, 0])
tried(
    "trim_zeros",
    call(TRIMMED),
    call(TRIMMED, "f"),
    call(TRIMMED, trim="b"),
    call(np.zeros(3, np.int8)),
    call(f32[0]),
    concrete=True,
)
wrong("trim_zeros", call([0, 1]), call(f32[3], "x"), call("a"), call(f32[3], axis=1), call(f32[3]))

# ---- inserting and deleting ----------------------------------------------------------------------

DELETED = [
    *each(KINDS, lambda t: call(t[2, 3], 1, axis=0)),
    call(f32[2, 3], 2),
    call(f32[2, 3], -1, axis=1),
    call(f32[2, 4], np.array([0, 2]), 1),
    call(f32[2, 4], np.array([0, 0, -1]), axis=1),
    call(f32[5], slice(1, 4, 2)),
    call(f32[5], np.array([True, False, True, False, False])),
    call(f32[5], np.array([], int)),
    call(f32[2, 3], slice(None), axis=0),
]
tried("delete", *DELETED)
tried(
    "delete",
    call(f32[5], i32[1].between(-2, 2), assume_unique_indices=True),
    numpy=lambda x, places, **_: np.delete(x, places),
)
wrong("delete", call(f32[5], i32[()]))
wrong(
    "delete",
    call(f32[5], i32[2]),
    call(f32[3], 3),
    call(f32[3], "a"),
    call(f32[3], 1.5),
    call([1, 2], 0),
    call(f32[3], 0, axis=1),
)
INSERTED = [
    *each(KINDS, lambda t: call(t[3], 1, t[()])),
    call(f32[2, 3], 1, 9.0),
    call(f32[2, 3], 1, f32[3], axis=0),
    call(f32[2, 3], -1, f32[2], axis=1),
    call(f32[2, 3], np.array([0, 2]), f32[2, 2], axis=1),
    call(f32[4], np.array([1, 1, 3]), f32[3]),
    call(f32[4], np.array([3, 0]), 7),
    call(f32[4], slice(0, 2), 5.0),
    call(f32[3], 3, f32[2]),
    call(i8[3], 1, 2.5),
]
tried("insert", *INSERTED)
wrong(
    "insert",
    call(f32[3], 4, 1),
    call(f32[3], "a", 1),
    call(f32[3], 1.5, 1),
    call([1], 0, 1),
    call(f32[3], 0, 1, axis=1),
)
wrong(
    "insert",
    call(f32[3], 0, "a"),
    call(f32[2, 3], 0, f32[2], axis=0),
    call(f32[3], -9, 1),
    call(f32[3], [[0, 1]], 1),
)

# ---- padding -------------------------------------------------------------------------------------

WIDTHS = (2, (1, 2), ((1, 0), (0, 2)), ((1, 2),), np.array([[0, 1], [2, 0]]))
MODES = (
    "edge",
    "reflect",
    "symmetric",
    "wrap",
    "maximum",
    "minimum",
    "mean",
    "median",
    "linear_ramp",
    "empty",
)
PADDED = [
    *each((b1, u8, bf16, f16, f64, c64), lambda t: call(t[2, 3], 1)),
    *(call(f32[2, 3], width) for width in WIDTHS),
    call(f32[3], 2, constant_values=7),
    call(f32[2, 3], 1, "constant", constant_values=((1, 2), (3, 4))),
    call(i32[2, 3], 1, constant_values=(1.5, 2)),
    *(call(f32[3, 4], ((1, 2), (3, 0)), mode=mode) for mode in MODES[:-1]),
    *(call(i32[4], 9, mode) for mode in ("edge", "reflect", "symmetric", "wrap", "maximum")),
    call(f32[4], 3, "reflect", reflect_type="odd"),
    call(f32[4], 3, "symmetric", reflect_type="odd"),
    call(f32[5], 2, "maximum", stat_length=2),
    call(f32[2, 5], 2, "minimum", stat_length=((1, 2), (3, 1))),
    call(f32[2, 5], 1, "linear_ramp", end_values=((1, 2), (3, 4))),
    call(f32[0, 2], ((0, 1), (0, 0))),
    call(f32[1, 3], 2, "reflect"),
]
tried("pad", *PADDED)
tried("pad", call(f32[3], {0: (1, 2)}), unlike_jax="there it is refused")
tried("pad", call(i32[5], 2, "mean"), call(i8[3], 2, "linear_ramp"), call(i32[4], 1, "median"))
tried("pad", call(f32[2, 3], 1, "empty"), numpy="what is in them is not said")


wrong(
    "pad",
    call(f32[3], -1),
    call(f32[3], "a"),
    call(f32[3], 1, "x"),
    call(f32[3], 1, stat_length=1),
    call([1], 1),
)
wrong(
    "pad",
    call(f32[3], 1.5),
    call(f32[2, 3], ((1, 2, 3),)),
    call(f32[0], 1, "edge"),
    call(f32[3], 1, "edge", constant_values=1),
)
wrong(
    "pad",
    call(f32[3], None),
    call(f32[3], 1, "mean", stat_length=0),
    call(f32[3], 1, "reflect", reflect_type="x"),
)
wrong(
    "pad",
    call(f32[2, 3], [1, 2, 3]),
    call(f32[3], 1, constant_values="a"),
    call(f32[0], 1, "maximum"),
)
