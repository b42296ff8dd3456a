"""Samples of sliding windows."""

import itertools

import numpy as np

import hlofront
from hlofront import lax
from tests.samples import sample
from tests.samples._sliding import filled, windows
from tests.support.cases import b1, bf16, c64, f8, f16, f32, i8, i32


def reduce_window(x, start, function, *args):
    return lax.reduce_window(x, start, getattr(lax, function), *args)


FUNCTIONS = {"add": (np.sum, 0.0), "max": (np.max, -np.inf), "min": (np.min, np.inf)}
FUNCTIONS["mul"] = (np.prod, 1.0)


def reference(x, start, function, *args):
    wide = x.astype(np.float64) if x.dtype.kind in "fV" else x
    seen = windows(wide, *filled(x, *args), start)
    return FUNCTIONS[function][0](seen, axis=-1).astype(x.dtype)


PLACES = (
    ((2, 3),),
    ((2, 3), (1, 2), "SAME"),
    ((2, 3), (2, 1), "SAME_LOWER"),
    ((2, 2), (1, 2), ((0, 1), (1, 0)), (1, 2), (2, 1)),
    ((2, 2), None, ((-1, 1), (2, -1))),
    ((2, 3), (1, 2), "SAME", None, (2, 1)),
)
FORWARD_ONLY = (ValueError, "cannot be differentiated in reverse mode")
NO_HOLES = (NotImplementedError, "window dilation")
for (function, (_, start)), place in itertools.product(FUNCTIONS.items(), PLACES):
    refusal = None
    if function == "mul":
        refusal = FORWARD_ONLY
    elif function != "add" and len(place) == 5:
        refusal = NO_HOLES
    sample(
        reduce_window,
        f32[4, 6],
        start,
        function,
        *place,
        reference=reference,
        not_transposed=refusal,
    )
for operand, *place in (
    (f32[5], (2,)),
    (f32[2, 3, 4], (1, 2, 2), (1, 1, 2)),
    (f32[()], ()),
    (f32[0, 3], (1, 2)),
    (f32[2, 3], (3, 1)),
    (bf16[6], (3,)),
    (f16[6], (3,)),
    (f8[6].between(0, 1), (3,)),
    (c64[6], (3,)),
):
    sample(reduce_window, operand, 0.0, "add", *place, reference=reference)
sample(reduce_window, i8[6], 0, "add", (3,), None, "SAME", reference=reference)
sample(
    reduce_window, i32[6], np.iinfo(np.int32).min, "max", (3,), None, "SAME", reference=reference
)
sample(reduce_window, b1[2, 6], False, "max", (1, 3), None, "SAME", reference=reference)
sample(reduce_window, c64[6], -np.inf, "max", (3,))
sample(reduce_window, c64[6], np.inf, "min", (3,), (2,), "SAME")
sample(reduce_window, f32[4, 6], 2.0, "add", (2, 2), not_transposed=FORWARD_ONLY)


def norms(x):
    total = lambda a, b: lax.add(a, lax.mul(b, b))
    return lax.reduce_window(x, np.float32(0), total, (1, 3), (1, 3))


def windows_of_pairs(x, y):
    def both(a, b):
        return lax.add(a[0], b[0]), lax.max(a[1], b[1])

    return lax.reduce_window((x, y), (np.float32(0), np.int32(-9)), both, (2, 2))


# With one element per window, and otherwise zeros, the order of combining is of no account.
sample(
    norms,
    np.float32([[0, 3, 0, 2, 0, 0]]),
    reference=lambda x: np.float32([[9, 4]]),
    not_transposed=FORWARD_ONLY,
)
sample(
    windows_of_pairs, f32[3, 4], i32[3, 4],
    reference=lambda x, y: [reference(x, 0.0, "add", (2, 2)), reference(y, -9, "max", (2, 2))],
    not_transposed=FORWARD_ONLY,
)  # fmt: skip


# ---- what follows the extreme element of a window ------------------------------------------------


def gather_extremes(tangents, x, which, *place):
    windows, strides, padding, base, holes = filled(x, *place)
    return lax.select_and_gather_add_p.bind(
        tangents, x, select_prim=getattr(lax, which), window_dimensions=windows,
        window_strides=strides, padding=tuple(padding), base_dilation=base, window_dilation=holes,
    )  # fmt: skip


def gathered(tangents, x, which, *place):
    start, find = {"ge_p": (-np.inf, np.argmax), "le_p": (np.inf, np.argmin)}[which]
    seen = windows(x, *filled(x, *place), start)
    index = find(seen, axis=-1)[..., None]
    return np.take_along_axis(windows(tangents, *filled(x, *place), 0), index, -1)[..., 0]


def scatter_to_extremes(source, x, which, size, strides, padding):
    return lax.select_and_scatter_add_p.bind(
        source, x, select_prim=getattr(lax, which), window_dimensions=size, window_strides=strides,
        padding=padding,
    )  # fmt: skip


def scattered(source, x, which, size, strides, padding):
    """By the windows' places: what a window sees of the elements' numbers says which it chose."""
    numbers = np.arange(x.size).reshape(x.shape)
    chosen = gathered(numbers, x, which, size, strides, padding)
    result = np.zeros(x.size)
    np.add.at(result, chosen.ravel(), source.ravel())
    return result.reshape(x.shape)


for which in ("ge_p", "le_p"):
    for place in PLACES[:1] + PLACES[3:]:
        sample(
            gather_extremes,
            f32[4, 6],
            f32[4, 6],
            which,
            *place,
            reference=gathered,
            not_transposed=NO_HOLES if len(place) == 5 else None,
        )
    for shape, *place in (
        ((3, 4), (2, 3), (1, 1), ((0, 0), (0, 0))),
        ((4, 3), (2, 3), (1, 2), ((0, 1), (0, 1))),
        ((3, 3), (2, 2), (2, 3), ((1, 1), (1, 1))),
    ):
        sample(
            scatter_to_extremes,
            f32[shape],
            f32[4, 6].between(1, 9),
            which,
            *place,
            reference=scattered,
        )


def scatter_products(source, x, start):
    select = hlofront.make_jaxpr(lax.ge)(np.float32(0), np.float32(0)).jaxpr
    scatter = hlofront.make_jaxpr(lax.mul)(np.float32(0), np.float32(0)).jaxpr
    return lax.select_and_scatter_p.bind(
        x, source, start, select_jaxpr=select, select_consts=(), scatter_jaxpr=scatter,
        scatter_consts=(), window_dimensions=(2,), window_strides=(2,), padding=((0, 0),),
    )  # fmt: skip


PEAKS = np.float32([1, 5, 2, 0])
sample(
    scatter_products, np.float32([3, 4]), PEAKS, np.float32(2),
    reference=lambda *_: np.float32([2, 6, 8, 2]),
    not_differentiable=(NotImplementedError, "select_and_scatter"),
    not_batched=(NotImplementedError, "select_and_scatter"),
)  # fmt: skip
