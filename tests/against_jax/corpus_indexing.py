"""Reading by ints, slices, arrays and masks, and updating by `.at`."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bools, floats, ints

CUBE = floats(3, 4, 5)
ROWS = np.array([2, 0, 2], np.int32)
INDICES = {
    "int": 1,
    "negative_int": -1,
    "two_ints": (1, 2),
    "all_ints": (0, -1, 2),
    "numpy_int": np.int64(1),
    "slice": slice(1, 3),
    "slice_with_step": slice(None, None, 2),
    "slice_reversed": slice(None, None, -1),
    "slice_reversed_with_step": slice(3, 0, -2),
    "slice_past_the_end": slice(1, 100),
    "slice_empty": slice(2, 1),
    "slices": (slice(1, None), slice(None, -1), slice(0, 4, 3)),
    "int_and_slice": (0, slice(1, 3)),
    "slice_and_int": (slice(1, 3), 0),
    "ellipsis": Ellipsis,
    "ellipsis_then_int": (Ellipsis, 0),
    "int_then_ellipsis": (1, Ellipsis),
    "int_ellipsis_int": (1, Ellipsis, 2),
    "new_axis": None,
    "new_axes": (slice(None), None, 0, None),
    "nothing": (),
    "array": ROWS,
    "array_of_rank_two": ROWS.reshape(3, 1),
    "negative_array": -ROWS,
    "uint8_array": ROWS.astype(np.uint8),
    "int64_array": ROWS.astype(np.int64),
    "two_arrays": (ROWS, ROWS),
    "arrays_that_broadcast": (ROWS[:, None], ROWS[None, :]),
    "array_and_int": (ROWS, 1),
    "array_and_slice": (ROWS, slice(1, 3)),
    "slice_and_array": (slice(1, 3), ROWS),
    "array_slice_array": (ROWS, slice(None), ROWS),
    "slice_array_array": (slice(None), ROWS, ROWS),
    "array_and_new_axis": (ROWS, None, slice(1, 2)),
    "array_ellipsis_array": (ROWS, Ellipsis, ROWS),
    "empty_array": np.zeros((0,), np.int32),
    "array_past_the_end": np.array([0, 7, -9], np.int32),
    "mask": np.array([True, False, True]),
    "mask_of_rank_two": bools(3, 4),
    "mask_of_full_rank": CUBE > 1,
    "mask_and_int": (np.array([True, False, True]), 1),
    "slice_and_mask": (slice(None), np.array([True, False, True, True])),
    "true": True,
    "mask_of_nothing": np.zeros(3, bool),
}


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    for name, index in INDICES.items():
        corpus.add(f"get {name}", lambda x, i=index: jnp.asarray(x)[i], CUBE, modes=("value",))
        added = CUBE[index] if known_to_numpy(index) else 1
        corpus.add(
            f"update {name}",
            lambda x, i=index, y=added: (jnp.asarray(x).at[i].set(7), jnp.asarray(x).at[i].add(y)),
            CUBE,
        )
    updating(corpus, jnp)
    traced_indices(corpus, jnp)
    modes(corpus, jnp)
    eager_only(corpus, jnp)
    return corpus


MODES = (None, "clip", "drop", "fill", "promise_in_bounds", "wrap")
PLACES = {
    "int": 1,
    "int_past_the_end": 7,
    "array": np.array([0, -1, 2]),
    "array_past_the_end": np.array([0, 9, -9], np.int32),
    "mixed": (slice(1, 3), np.array([0, 9]), None),
}


def modes(corpus, jnp):
    """Each mode, with promises and values to fill in: what is read and written, and by what."""
    for mode in MODES:
        for name, place in PLACES.items():
            # What is read there is anything at all.
            outside = mode == "promise_in_bounds" and ("past" in name or name == "mixed")
            # jax knows at once where a number beyond the end is clamped to.
            counted = () if name == "int_past_the_end" else ("equations",)
            corpus.add(
                f"{mode} {name}",
                lambda x, place=place, mode=mode: (
                    jnp.asarray(x).at[place].get(mode=mode),
                    jnp.asarray(x).at[place].set(7, mode=mode),
                    jnp.asarray(x).at[place].add(2, mode=mode),
                ),
                floats(3, 4),
                modes=(("shape" if outside else "jit"), *counted),
            )
    for fill_value in (None, 0, -1.5, np.nan):
        corpus.add(
            f"fill with {fill_value}",
            lambda x, n, value=fill_value: [
                jnp.asarray(a).at[np.array([0, 9])].get(mode="fill", fill_value=value)
                for a in (x, x.astype(np.complex64), *([] if value else [n, n > 0]))
            ],
            floats(3),
            ints(3, dtype=np.uint8),
        )

    @corpus.program(floats(5), np.array([0, 2, 4]), modes=("jit", "equations"))
    def promises(x, i):
        at = jnp.asarray(x).at[i]
        return (
            at.get(indices_are_sorted=True),
            at.get(unique_indices=True),
            at.set(1, indices_are_sorted=True, unique_indices=True),
            at.multiply(2, unique_indices=True, mode="clip"),
            at.max(0, indices_are_sorted=True, mode="drop"),
            at.apply(jnp.sin, unique_indices=True),
        )


def known_to_numpy(index):
    """Whether NumPy itself accepts the index, so that it can say how large an update is."""
    try:
        CUBE[index]
    except IndexError:
        return False
    return True


def updating(corpus, jnp):
    for method in ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max"):
        corpus.add(
            f"at_{method}",
            lambda x, method=method: (
                getattr(jnp.asarray(x).at[1], method)(2.0),
                getattr(jnp.asarray(x).at[ROWS], method)(2.0),
                getattr(jnp.asarray(x).at[:, 1:3], method)(np.float32(3)),
            ),
            np.abs(floats(3, 4)) + 1,
            tolerance=1e-5,
        )

    @corpus.program(floats(5))
    def at_get(x):
        x = jnp.asarray(x)
        i = np.array([0, 9, -1])
        return (
            x.at[i].get(),
            x.at[i].get(mode="fill", fill_value=-1),
            x.at[i].get(mode="clip"),
            x.at[1:3].get(),
        )

    @corpus.program(floats(5))
    def at_modes(x):
        x = jnp.asarray(x)
        i = np.array([0, 9, -1])
        return (
            x.at[i].set(1.0, mode="drop"),
            x.at[i].set(1.0, mode="clip"),
            x.at[ROWS].add(1.0, indices_are_sorted=False, unique_indices=False),
        )

    @corpus.program(floats(5))
    def at_apply(x):
        return jnp.asarray(x).at[ROWS].apply(lambda v: v * 2)

    @corpus.program(ints(5, dtype=np.int8), floats(5))
    def at_casts_what_is_written(n, x):
        return (
            jnp.asarray(n).at[0].set(3),
            jnp.asarray(x).at[1].set(2),
            jnp.asarray(x).at[:2].add(n[:2]),
        )

    @corpus.program(floats(3, 4))
    def at_broadcasts_what_is_written(x):
        x = jnp.asarray(x)
        return x.at[1:].set(np.arange(4, dtype=np.float32)), x.at[:, 0].set(
            np.ones((3,), np.float32)
        )


def traced_indices(corpus, jnp):
    @corpus.program(CUBE, np.int32(2), np.int32(-1))
    def scalars(x, i, j):
        x = jnp.asarray(x)
        return x[i], x[i, j], x[:, i], x[..., j], x.at[i].set(0), x.at[:, j].add(1)

    @corpus.program(CUBE, ROWS)
    def arrays(x, i):
        x = jnp.asarray(x)
        return x[i], x[:, i], x[i, i], x[i, :, i], x.at[i].add(1)

    @corpus.program(CUBE, np.int32(50), np.array([-40, 40]))
    def past_the_end(x, i, many):
        x = jnp.asarray(x)
        return x[i], x[many], x.at[i].set(9), x.at[many].add(1)


def eager_only(corpus, jnp):
    @corpus.program(floats(3, 2), modes=("value",))
    def iteration(x):
        x = jnp.asarray(x)
        return list(x), [row.sum() for row in x], len(x), tuple(x[:, 0])

    @corpus.program(floats(3, 2), modes=("value",))
    def masks_of_arrays(x):
        x = jnp.asarray(x)
        return x[x > 0], x[jnp.array([True, False, True])], x.at[x > 0].set(0), x[x.sum(1) > 0, 0]

    @corpus.program(floats(3), modes=("value",))
    def back_to_python(x):
        x = jnp.asarray(x)
        return (
            x.tolist(),
            x[0].item(),
            int(jnp.int32(3)),
            float(x[1]),
            bool(x[0] > 0),
            complex(x[2]),
        )

    @corpus.program(modes=("value",))
    def as_a_python_index():
        return list(range(10))[jnp.int32(3)], "abc"[jnp.array(1)]
