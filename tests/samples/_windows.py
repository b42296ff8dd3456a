"""gather and scatter in NumPy, one window after another: references for samples."""

import itertools

import numpy as np

FILL = {"i": lambda d: np.iinfo(d).min, "u": lambda d: np.iinfo(d).max, "b": lambda d: True}


def windows(shape, sizes, indices, index_map, operand_batching, indices_batching):
    """For each vector of indices: its place, and where its slice begins."""
    for place in itertools.product(*map(range, indices.shape[:-1])):
        start = [0] * len(shape)
        for axis, index in zip(index_map, indices[place], strict=True):
            start[axis] = int(index)
        for axis, of_indices in zip(operand_batching, indices_batching, strict=True):
            start[axis] = place[of_indices]
        yield place, start


def gathered(operand, indices, dimension_numbers, slice_sizes, mode=None, fill_value=None, **_):
    """Slice by slice."""
    numbers = dimension_numbers
    if fill_value is None:
        fill_value = FILL.get(operand.dtype.kind, lambda _: np.nan)(operand.dtype)
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = [size for axis, size in enumerate(slice_sizes) if axis not in left_out]
    result = np.empty((*indices.shape[:-1], *window), operand.dtype)
    for place, start in windows(operand.shape, slice_sizes, indices, *numbers[2:]):
        last = [whole - size for whole, size in zip(operand.shape, slice_sizes, strict=True)]
        within = all(0 <= s <= e for s, e in zip(start, last, strict=True))
        if mode == "fill" and not within:
            result[place] = fill_value
        else:
            start = np.clip(start, 0, last)
            part = operand[tuple(map(slice, start, start + slice_sizes))]
            result[place] = part.reshape(window)
    return np.moveaxis(result, range(indices.ndim - 1, result.ndim), numbers.offset_dims)


def scattered(combine):
    def reference(operand, indices, updates, dimension_numbers, mode=None, **_):
        numbers = dimension_numbers
        result = np.array(operand)
        left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        updates = np.moveaxis(
            updates, numbers.update_window_dims, range(indices.ndim - 1, updates.ndim)
        )
        window = iter(updates.shape[indices.ndim - 1 :])
        sizes = [1 if axis in left_out else next(window) for axis in range(operand.ndim)]
        last = [whole - size for whole, size in zip(operand.shape, sizes, strict=True)]
        for place, start in windows(operand.shape, sizes, indices, *numbers[2:]):
            if mode == "clip":
                start = np.clip(start, 0, last)
            elif not all(0 <= s <= e for s, e in zip(start, last, strict=True)):
                continue
            part = tuple(slice(s, s + n) for s, n in zip(start, sizes, strict=True))
            result[part] = combine(result[part], updates[place].reshape(sizes))
        return result

    return reference
