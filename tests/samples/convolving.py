"""Samples of convolutions."""

import math

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.samples._sliding import filled, windows
from tests.support.cases import b1, bf16, c64, f8, f16, f32, i4, i8, i32, u8


def plain(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
):
    """A convolution as products of patches and kernels, one group at a time."""
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    wide = bool if lhs.dtype == bool else np.complex128 if lhs.dtype.kind == "c" else np.float64
    x = lhs.transpose(numbers.lhs_spec).astype(wide)
    k = rhs.transpose(numbers.rhs_spec).astype(wide)
    one = (1, 1)
    window, strides, padding, base, holes = filled(
        x, (*one, *k.shape[2:]), (*one, *window_strides),
        padding if isinstance(padding, str) else ((0, 0), (0, 0), *padding),
        lhs_dilation and (*one, *lhs_dilation), rhs_dilation and (*one, *rhs_dilation),
    )  # fmt: skip
    seen = windows(x, window, strides, padding, base, holes, 0)
    k = k.reshape(*k.shape[:2], math.prod(k.shape[2:]))
    groups = max(feature_group_count, batch_group_count)
    axis = 1 if feature_group_count > 1 else 0
    parts = [
        np.einsum("nc...k,ock->no...", patches, kernels)
        for patches, kernels in zip(
            np.split(seen, groups, axis) if groups > 1 else [seen],
            np.split(k, groups, 0),
            strict=True,
        )
    ]
    result = np.concatenate(parts, 1).transpose(np.argsort(numbers.out_spec))
    dtype = np.dtype(preferred_element_type or lhs.dtype)
    return result.astype(np.int64).astype(dtype) if dtype.kind in "iu" else result


CHANNELS_LAST = ("NHWC", "HWIO", "NHWC")
for lhs, rhs, strides, padding, params in (
    (f32[2, 3, 7, 8], f32[4, 3, 2, 3], (1, 2), "SAME", {}),
    (f32[2, 3, 7, 8], f32[4, 3, 2, 3], (2, 1), "SAME_LOWER", {"rhs_dilation": (1, 2)}),
    (f32[2, 3, 5, 6], f32[4, 3, 2, 3], (1, 1), "VALID", {}),
    (f32[2, 3, 5, 6], f32[4, 3, 2, 3], (2, 1), ((1, 1), (0, 2)), {"lhs_dilation": (1, 2)}),
    (f32[2, 3, 5, 6], f32[4, 3, 2, 3], [1, 1], [[-1, 0], [0, -1]], {}),
    (f32[2, 5, 6, 3], f32[2, 3, 3, 4], (1, 1), "SAME", {"dimension_numbers": CHANNELS_LAST}),
    (
        f32[5, 2, 6, 3], f32[3, 4, 2, 3], (2, 1), "VALID",
        {"dimension_numbers": ("HNWC", "IOHW", "CWNH")},
    ),
    (
        f32[2, 3, 5], f32[4, 3, 2], (1,), "SAME",
        {"dimension_numbers": lax.ConvDimensionNumbers((0, 1, 2), [0, 1, 2], (0, 2, 1))},
    ),
    (f32[2, 6, 5], f32[4, 3, 2], (1,), "SAME", {"feature_group_count": 2}),
    (f32[2, 3, 5], f32[6, 1, 2], (1,), "SAME", {"feature_group_count": 3}),
    (f32[4, 3, 5], f32[4, 3, 2], (1,), "SAME", {"batch_group_count": 2}),
    (
        f32[5, 2, 6, 4], f32[2, 4, 2, 3], (2, 1), ((1, 1), (2, 0)),
        {"dimension_numbers": ("HNWC", "IOHW", "CWNH"), "feature_group_count": 2,
         "rhs_dilation": (2, 1)},
    ),
    (
        f32[5, 4, 6, 3], f32[3, 4, 2, 3], (2, 1), ((1, 1), (2, 0)),
        {"dimension_numbers": ("HNWC", "IOHW", "CWNH"), "batch_group_count": 2,
         "lhs_dilation": (2, 1)},
    ),
    (f32[2, 3, 7], f32[4, 3, 2], (5,), "VALID", {}),
    (f32[2, 3, 5], f32[4, 3, 2], (1,), "SAME", {"precision": "highest"}),
    (f32[2, 3, 5], f32[4, 3, 2], (1,), "SAME", {"precision": ("high", "default")}),
    (f32[2, 3, 3, 4, 5], f32[4, 3, 2, 2, 1], (1, 2, 1), "SAME", {}),
    (f32[2, 3], f32[4, 3], (), (), {}),
    (f32[0, 3, 5], f32[4, 3, 2], (1,), "SAME", {}),
    (f32[2, 0, 5], f32[4, 0, 2], (1,), "SAME", {}),
    (f32[2, 3, 0], f32[4, 3, 2], (1,), ((1, 1),), {}),
    (f32[2, 3, 1], f32[4, 3, 2], (1,), "VALID", {}),
    (c64[2, 0, 5], c64[4, 0, 2], (1,), "SAME", {}),
    (i8[2, 3, 5], i8[4, 3, 2], (1,), "SAME", {"preferred_element_type": np.int32}),
    (i4[2, 3, 5].between(0, 2), i4[4, 3, 2].between(0, 2), (1,), "SAME",
     {"preferred_element_type": np.int32}),
    (bf16[2, 3, 5], bf16[4, 3, 2], (1,), "SAME", {"preferred_element_type": np.float32}),
):  # fmt: skip
    sample(lax.conv_general_dilated, lhs, rhs, strides, padding, **params, reference=plain)
for dtype in (f16, bf16, i8, u8, i32, b1, c64):
    sample(lax.conv, dtype[2, 3, 5], dtype[4, 3, 2], (2,), "SAME", reference=plain)
sample(lax.conv, f8[2, 3, 5].between(0, 1), f8[4, 3, 2].between(0, 1), (1,), "VALID")
sample(
    lax.conv_with_general_padding,
    f32[2, 3, 5, 6],
    f32[4, 3, 2, 3],
    (1, 1),
    ((0, 0), (1, 1)),
    (1, 2),
    (2, 1),
    reference=plain,
)
sample(lax.conv_with_general_padding, f32[2, 3, 5], f32[4, 3, 2], (2,), "SAME", None, None)


def scattered(lhs, rhs, strides, padding, **_):
    """A transposed convolution N..C, ..IO of "VALID" padding: each element adds a kernel."""
    spatial = lhs.shape[1:-1]
    kernel = rhs[tuple(slice(None, None, -1) for _ in strides)].astype(np.float64)
    sizes = [
        (n - 1) * s + max(k, s) for n, s, k in zip(spatial, strides, rhs.shape[:-2], strict=True)
    ]
    result = np.zeros((lhs.shape[0], *sizes, rhs.shape[-1]))
    for place in np.ndindex(*spatial):
        starts = [i * s for i, s in zip(place, strides, strict=True)]
        at = tuple(slice(i, i + k) for i, k in zip(starts, rhs.shape[:-2], strict=True))
        elements = lhs[(slice(None), *place)].astype(np.float64)
        result[(slice(None), *at)] += np.einsum("ni,...io->n...o", elements, kernel)
    return result


for lhs, rhs, strides in (
    (f32[2, 4, 5, 3], f32[2, 3, 3, 4], (2, 2)),
    (f32[2, 4, 3], f32[3, 3, 4], (1,)),
    (f32[2, 4, 3], f32[2, 3, 4], (3,)),
    (f32[1, 2, 3, 2, 2], f32[2, 2, 1, 2, 3], (2, 1, 2)),
):
    sample(lax.conv_transpose, lhs, rhs, strides, "VALID", reference=scattered)
    sample(lax.conv_transpose, lhs, rhs, strides, "SAME")
sample(lax.conv_transpose, f32[2, 3], f32[3, 4], (), "SAME", reference=lambda x, y, *_: x @ y)
sample(
    lax.conv_transpose,
    f32[2, 4, 3],
    f32[2, 4, 3],
    (2,),
    "VALID",
    transpose_kernel=True,
    reference=lambda x, k, *args, **_: scattered(x, k[::-1].swapaxes(1, 2), *args),
)
EXPLICIT = (
    f32[2, 3, 4, 5],
    f32[4, 3, 2, 3],
    (2, 2),
    [(1, 1), (0, 1)],
    (2, 1),
    ("NCHW", "OIHW", "NCHW"),
)
sample(lax.conv_transpose, *EXPLICIT)
sample(lax.conv_transpose, *EXPLICIT, use_consistent_padding=True, precision="high")


def patches(lhs, filter_shape, window_strides, padding, **_):
    size = np.prod(filter_shape)
    kernel = np.eye(size).reshape(size, 1, *filter_shape)
    kernel = np.tile(kernel, (lhs.shape[1], *[1] * (len(filter_shape) + 1)))
    return plain(lhs, kernel, window_strides, padding, feature_group_count=lhs.shape[1])


PATCHES = lax.conv_general_dilated_patches
sample(PATCHES, f32[2, 3, 4, 5], (2, 3), (1, 2), "SAME", reference=patches)
sample(PATCHES, i32[2, 3, 6], (2,), (1,), "VALID", reference=patches)
sample(PATCHES, c64[2, 3, 6], (2,), (2,), ((1, 1),))
sample(PATCHES, f32[2, 4, 5, 3], (2, 3), (1, 1), "SAME", None, (1, 2), ("NHWC", "HWIO", "NCHW"))
sample(PATCHES, f32[2, 3, 6], (2,), (1,), "VALID", precision=lax.Precision.HIGHEST,
       preferred_element_type=np.float32, reference=patches)  # fmt: skip


def locally(lhs, rhs, window_strides, padding, filter_shape):
    seen = patches(lhs, filter_shape, window_strides, padding)
    return np.einsum("nk...,ok...->no...", seen, rhs.astype(np.float64))


LOCAL = lax.conv_general_dilated_local
sample(LOCAL, f32[2, 3, 6], f32[4, 6, 5], (1,), "VALID", (2,), reference=locally)
sample(LOCAL, f32[2, 5, 6, 3], f32[5, 3, 18, 4], (1, 2), "SAME", (2, 3),
       dimension_numbers=CHANNELS_LAST, precision="highest")  # fmt: skip
