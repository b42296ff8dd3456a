"""Padding, windows and convolutions of integers by NumPy, with their cotangents, and by hlofront.

Each works by the positions in a window: one at a time, it meets a strided slice of the whole array.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hlofront import lax

Integers = "np.ndarray[Any, Any]"
Edges = Sequence[tuple[int, int, int]]


# ---- padding -------------------------------------------------------------------------------------


def padded_size(size: int, edges: tuple[int, int, int]) -> int:
    """Return the size of an axis after padding before, after and between its elements."""
    low, high, between = edges
    return size + low + high + max(size - 1, 0) * between


def _inside(shape: Sequence[int], edges: Edges) -> tuple[Any, Any]:
    """Return the indices of the elements that padding keeps, and their indices in its result."""
    sources, targets = [], []
    for size, (low, high, between) in zip(shape, edges, strict=True):
        targets_of_all = low + np.arange(size) * (between + 1)
        inside = (0 <= targets_of_all) & (targets_of_all < padded_size(size, (low, high, between)))
        sources.append(np.flatnonzero(inside))
        targets.append(targets_of_all[inside])
    return np.ix_(*sources), np.ix_(*targets)


def padded(x: Integers, edges: Edges, value: int = 0) -> Integers:
    """Return x with elements of a value around and between its own, or without some of them."""
    result = np.full([padded_size(*each) for each in zip(x.shape, edges, strict=True)], value)
    sources, targets = _inside(x.shape, edges)
    result[targets] = x[sources]
    return result


def padded_back(ct: Integers, shape: Sequence[int], edges: Edges) -> Integers:
    """Return the cotangent of an operand of this shape that was padded."""
    result = np.zeros(shape, np.int64)
    sources, targets = _inside(shape, edges)
    result[sources] = ct[targets]
    return result


# ---- windows -------------------------------------------------------------------------------------


class Windows(NamedTuple):
    """The windows along some axes: sizes, strides, padding, and dilations of operand and window."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    @property
    def edges(self) -> Edges:
        return [(*pad, step - 1) for pad, step in zip(self.padding, self.dilation, strict=True)]

    def counts(self, shape: Sequence[int]) -> list[int]:
        """Return the number of windows along each axis; it may be below 1."""
        return [
            (padded_size(size, edges) - (width - 1) * hole - 1) // stride + 1
            for size, edges, width, hole, stride in zip(
                shape, self.edges, self.sizes, self.window_dilation, self.strides, strict=True
            )
        ]

    def slices(self, shape: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yield each position in a window, and the slice of a padded array that it meets."""
        counts = self.counts(shape)
        for position in itertools.product(*map(range, self.sizes)):
            starts = [i * hole for i, hole in zip(position, self.window_dilation, strict=True)]
            yield (
                position,
                tuple(
                    slice(start, start + (count - 1) * stride + 1, stride)
                    for start, count, stride in zip(starts, counts, self.strides, strict=True)
                ),
            )


# Less than each sum; what is less than LEAST is LEAST in results.
_BELOW_ALL, LEAST = -(2**40), -7


def reduced_windows(x: Integers, windows: Windows, combine: Callable[..., Any]) -> Integers:
    """Return the sum or the maximum of each window."""
    whole = padded(x, windows.edges, 0 if combine is np.add else _BELOW_ALL)
    total = None
    for _, part in windows.slices(x.shape):
        total = whole[part] if total is None else combine(total, whole[part])
    return np.maximum(total, LEAST) if combine is np.maximum else total


def summed_windows_back(ct: Integers, shape: Sequence[int], windows: Windows) -> Integers:
    """Return the cotangent of an operand of this shape whose windows were summed."""
    whole = padded(np.zeros(shape, np.int64), windows.edges)
    for _, part in windows.slices(shape):
        whole[part] += ct
    return padded_back(whole, shape, windows.edges)


def traced_windows(x: Any, windows: Windows, combine: Callable[..., Any]) -> Any:
    """Return the sums or the maxima of an array of hlofront's."""
    is_sum = combine is lax.add
    least = -np.inf if np.dtype(x.dtype).kind not in "iu" else np.iinfo(x.dtype).min
    start = np.array(0 if is_sum else least).astype(x.dtype)
    sizes, strides, padding, dilation, window_dilation = windows
    found = lax.reduce_window(x, start, combine, sizes, strides, padding, dilation, window_dilation)
    return found if is_sum else lax.max(found, np.array(LEAST).astype(x.dtype))


# ---- convolutions --------------------------------------------------------------------------------


class Convolution(NamedTuple):
    """The windows of a convolution, the groups of its features or its batch, and its layouts.

    A layout names the axes of the operand, the kernel and the result in their order: N for the
    batch, C for features, O and I for the kernel's, digits for the spatial axes.
    """

    windows: Windows
    groups: int
    batch_groups: int
    layouts: tuple[str, str, str]


def _ordered(x: Integers, layout: str, first: str) -> Integers:
    """Return an array with the two axes that are not spatial first."""
    return x.transpose([layout.index(axis) for axis in first + _spatial(layout)])


def _restored(x: Integers, layout: str, first: str) -> Integers:
    return x.transpose([(first + _spatial(layout)).index(axis) for axis in layout])


def _spatial(layout: str) -> str:
    return "".join(sorted(axis for axis in layout if axis.isdigit()))


def _grouped(x: Integers, kernel: Integers, c: Convolution) -> tuple[Integers, Integers]:
    """Return both operands by group: as (batch, groups, features, ...) and (groups, O, I, ...)."""
    x = _ordered(x, c.layouts[0], "NC")
    kernel = _ordered(kernel, c.layouts[1], "OI")
    batch, features, *space = x.shape
    if c.batch_groups > 1:
        x = x.reshape(c.batch_groups, batch // c.batch_groups, features, *space).swapaxes(0, 1)
    else:
        x = x.reshape(batch, c.groups, features // c.groups, *space)
    groups = max(c.groups, c.batch_groups)
    return x, kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])


def convolved(x: Integers, kernel: Integers, c: Convolution) -> Integers:
    """Return a convolution of integers."""
    x, kernel = _grouped(x, kernel, c)
    space = x.shape[3:]
    edges = [(0, 0, 0)] * 3 + [*c.windows.edges]
    whole = padded(x, edges)
    shape = (len(x), *kernel.shape[:2], *c.windows.counts(space))
    total = np.zeros(shape, np.int64)
    for position, part in c.windows.slices(space):
        factors = kernel[(..., *position)]
        total += np.einsum("ngc...,goc->ngo...", whole[(..., *part)], factors)
    result = total.reshape(len(x), -1, *shape[3:])
    return _restored(result, c.layouts[2], "NC")


def convolved_back(
    ct: Integers, x: Integers, kernel: Integers, c: Convolution
) -> tuple[Integers, Integers]:
    """Return the cotangents of the operand and the kernel of a convolution."""
    inputs, kernels = _grouped(x, kernel, c)
    space = inputs.shape[3:]
    edges = [(0, 0, 0)] * 3 + [*c.windows.edges]
    whole = padded(inputs, edges)
    ct = _ordered(ct, c.layouts[2], "NC")
    ct = ct.reshape(len(inputs), *kernels.shape[:2], *ct.shape[2:])
    whole_ct, kernel_ct = np.zeros_like(whole), np.zeros_like(kernels)
    for position, part in c.windows.slices(space):
        here = (..., *position)
        whole_ct[(..., *part)] += np.einsum("ngo...,goc->ngc...", ct, kernels[here])
        pairs = (array.reshape(*array.shape[:3], -1) for array in (ct, whole[(..., *part)]))
        kernel_ct[here] = np.einsum("ngop,ngcp->goc", *pairs)
    x_ct = padded_back(whole_ct, inputs.shape, edges)
    if c.batch_groups > 1:
        x_ct = x_ct.swapaxes(0, 1)
    x_ct = x_ct.reshape(_ordered(x, c.layouts[0], "NC").shape)
    kernel_ct = kernel_ct.reshape(_ordered(kernel, c.layouts[1], "OI").shape)
    return _restored(x_ct, c.layouts[0], "NC"), _restored(kernel_ct, c.layouts[1], "OI")


def traced_convolution(x: Any, kernel: Any, c: Convolution) -> Any:
    """Return a convolution of arrays of hlofront's."""
    _, strides, padding, dilation, window_dilation = c.windows
    return lax.conv_general_dilated(
        x,
        kernel,
        strides,
        padding,
        dilation,
        window_dilation,
        c.layouts,
        c.groups,
        c.batch_groups,
    )
