"""Sliding windows in NumPy: references for samples."""

import numpy as np

from hlofront import lax


def with_holes(x, dilation, padding, filling):
    """x with holes between its elements and padding around it, both filled."""
    shape = [0 if n == 0 else 1 + d * (n - 1) for n, d in zip(x.shape, dilation, strict=True)]
    holes = np.full(shape, filling, x.dtype)
    holes[tuple(slice(None, None, d) for d in dilation)] = x
    for axis, (low, high) in enumerate(padding):
        ends = [(max(low, 0), max(high, 0)) if i == axis else (0, 0) for i in range(x.ndim)]
        holes = np.pad(holes, ends, constant_values=filling)
        kept = slice(max(-low, 0), holes.shape[axis] - max(-high, 0))
        holes = holes[(slice(None),) * axis + (kept,)]
    return holes


def windows(x, sizes, strides, padding, base_dilation, window_dilation, filling):
    """The elements of each window, along a new last axis."""
    x = with_holes(x, base_dilation, padding, filling)
    extents = [1 + d * (n - 1) for n, d in zip(sizes, window_dilation, strict=True)]
    if any(extent > size for extent, size in zip(extents, x.shape, strict=True)):
        counts = [
            max(0, (n - e) // s + 1) for n, e, s in zip(x.shape, extents, strides, strict=True)
        ]
        return np.zeros((*counts, 1), x.dtype)
    views = np.lib.stride_tricks.sliding_window_view(x, extents)
    views = views[tuple(slice(None, None, s) for s in strides)]
    views = views[(..., *(slice(None, None, d) for d in window_dilation))]
    return views.reshape(*views.shape[: x.ndim], -1)


def filled(x, window, strides=None, padding="VALID", base_dilation=None, window_dilation=None):
    ones = (1,) * x.ndim
    strides, base_dilation = strides or ones, base_dilation or ones
    window_dilation = window_dilation or ones
    if isinstance(padding, str):
        extents = [1 + d * (n - 1) for n, d in zip(window, window_dilation, strict=True)]
        padding = lax.padtype_to_pads(x.shape, extents, strides, padding)
    return window, strides, padding, base_dilation, window_dilation
