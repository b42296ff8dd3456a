"""Fourier and cosine transforms against the reference; segments, and trees as vectors."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def draw(*shape, dtype=np.float32):
    generator = np.random.default_rng(sum(shape))
    values = generator.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.normal(size=shape)
    return values.astype(dtype)


C = np.complex64


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    along_one_axis(corpus, jnp.fft)
    along_several_axes(corpus, jnp.fft)
    frequencies(corpus, jnp.fft)
    cosines(corpus, door("scipy.fft"))
    derivatives(corpus, jax, jnp, lax)
    segments(corpus, jax, jnp, door("ops"))
    vectors(corpus, jax, jnp, door("flatten_util").ravel_pytree)
    refused(corpus, jax, jnp, lax, door)
    return corpus


def along_one_axis(corpus, fft):
    real, whole = draw(3, 4), draw(3, 4, dtype=C)
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        function = getattr(fft, name)
        x = real if name in ("rfft", "ihfft") else whole
        for label, options in (
            ("plain", {}),
            ("short", {"n": 3}),
            ("long", {"n": 7, "axis": 0}),
            ("ortho", {"norm": "ortho"}),
            ("forward", {"norm": "forward"}),
        ):
            corpus.add(
                f"{name}_{label}", lambda x, f=function, o=options: f(x, **o), x, tolerance=1e-5
            )
        corpus.add(f"{name}_of_integers", function, np.arange(4), tolerance=1e-5)
        corpus.add(f"{name}_of_booleans", function, np.array([True, False, True]), tolerance=1e-5)
    corpus.add("fft_of_halves", fft.fft, draw(4).astype(np.float16), tolerance=1e-3)
    corpus.add("fft_of_nothing", fft.fft, np.zeros((0,), np.float32))
    corpus.add("fft_x64", fft.fft, draw(5).astype(np.float64), x64=True)


def along_several_axes(corpus, fft):
    real, whole = draw(2, 3, 4), draw(2, 3, 4, dtype=C)
    for name in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"):
        function = getattr(fft, name)
        x = real if name.startswith("rfft") else whole
        for label, options in (
            ("plain", {}),
            ("sizes", {"s": (4, 3)}),
            ("axes", {"axes": (2, 0), "norm": "ortho"}),
        ):
            corpus.add(
                f"{name}_{label}", lambda x, f=function, o=options: f(x, **o), x, tolerance=1e-5
            )
    for name in ("fftn", "ifftn", "rfftn", "irfftn"):
        x = draw(2, 3, 2, 2, 3, dtype=np.float32 if name == "rfftn" else C)
        corpus.add(f"{name}_of_many_axes", getattr(fft, name), x, tolerance=1e-5)


def frequencies(corpus, fft):
    corpus.add(
        "frequencies",
        lambda: (
            fft.fftfreq(5),
            fft.fftfreq(4, 0.5),
            fft.rfftfreq(5),
            fft.rfftfreq(6, 2),
            fft.fftfreq(0),
            fft.fftfreq(5, dtype=np.float16),
        ),
    )
    corpus.add("frequencies_of_a_traced_spacing", lambda d: fft.fftfreq(4, d), np.float32(0.5))
    corpus.add(
        "shifts",
        lambda x: (
            fft.fftshift(x),
            fft.ifftshift(x),
            fft.fftshift(x, 1),
            fft.ifftshift(x, axes=(0,)),
        ),
        draw(3, 4),
    )


def cosines(corpus, fft):
    x = draw(3, 5)
    for name in ("dct", "idct"):
        function = getattr(fft, name)
        for label, options in (
            ("plain", {}),
            ("ortho", {"norm": "ortho", "axis": 0}),
            ("short", {"n": 4}),
            ("long", {"n": 6, "norm": "backward"}),
            ("one", {"n": 1}),
        ):
            corpus.add(
                f"{name}_{label}", lambda x, f=function, o=options: f(x, **o), x, tolerance=1e-5
            )
        corpus.add(f"{name}_of_complex", function, draw(4, dtype=C), tolerance=1e-5)
        corpus.add(f"{name}_of_integers", function, np.arange(4), tolerance=1e-5)
    for name in ("dctn", "idctn"):
        function = getattr(fft, name)
        for label, options in (
            ("plain", {}),
            ("ortho", {"norm": "ortho", "axes": (1,)}),
            ("sizes", {"s": (4, 4)}),
        ):
            corpus.add(
                f"{name}_{label}", lambda x, f=function, o=options: f(x, **o), x, tolerance=1e-5
            )


def derivatives(corpus, jax, jnp, lax):
    fft = jnp.fft

    def energy(function):
        return lambda x: sum(
            (abs(part) ** 2 * jnp.arange(part.size).reshape(part.shape)).sum()
            for part in [function(x)]
        )

    for name, function, x in (
        ("fft", fft.fft, draw(4)),
        ("rfft_even", fft.rfft, draw(6)),
        ("rfft_odd", fft.rfft, draw(5)),
        ("irfft_even", fft.irfft, draw(4, dtype=C)),
        ("irfft_odd", lambda x: fft.irfft(x, 5), draw(3, dtype=C)),
        ("rfft2", fft.rfft2, draw(3, 4)),
        ("irfft2", fft.irfft2, draw(3, 3, dtype=C)),
        ("ifftn", fft.ifftn, draw(2, 3, dtype=C)),
        ("hfft", fft.hfft, draw(3, dtype=C)),
    ):
        corpus.add(f"grad_of_{name}", jax.grad(energy(function)), x, tolerance=1e-4, modes=("jit",))
    corpus.add("vmap_of_fft", jax.vmap(fft.fft, 1, 1), draw(4, 3), tolerance=1e-5)
    corpus.add(
        "jvp_of_rfft",
        lambda x: jax.jvp(fft.rfft, (x,), (x * 2,)),
        draw(5),
        modes=("value", "equations"),
        tolerance=1e-5,
    )
    corpus.add(
        "vjp_of_lax_irfft",
        lambda x: jax.vjp(lambda x: lax.fft(x, "irfft", (6,)), x)[1](jnp.ones(6)),
        draw(4, dtype=C),
        modes=("value", "equations"),
        tolerance=1e-5,
    )


def segments(corpus, jax, jnp, ops):
    data, ids = draw(5), np.array([0, 2, 2, -1, 9])
    for name in ("sum", "prod", "max", "min"):
        function = getattr(ops, f"segment_{name}")
        corpus.add(
            f"segment_{name}",
            lambda x, ids, f=function: (
                f(x, ids, 4),
                f((x * 3).astype(jnp.int32), ids, 4),
                f(x[:, None] * jnp.ones(2), ids, 3),
                f(x, ids, 4, mode="clip"),
                f(x, jnp.sort(ids), 3, indices_are_sorted=True, bucket_size=2),
                f(x * 1j, ids, 4),
            ),
            data,
            ids,
        )
        corpus.add(f"segment_{name}_of_known_ids", function, data[:3], np.array([0, 2, 2]))
    corpus.add(
        "grad_of_segment_sum",
        jax.grad(lambda x: (ops.segment_sum(x, np.array([0, 1, 1, 0, 2]), 3) ** 2).sum()),
        data,
        modes=("value", "jit"),
    )


def vectors(corpus, jax, jnp, ravel):
    for name, tree in (
        ("dict", {"a": np.ones((2, 2), np.float32), "b": 1}),
        ("integers", (1, 2)),
        ("mixed", (np.ones(2, np.float32), np.arange(2))),
        ("nothing", (None, ())),
        ("complex", (1j, np.float32(2))),
        ("booleans", (True, 1)),
        ("halves", (np.float16(1), np.float32(2))),
    ):

        def there_and_back(tree=tree):
            flat, unravel = ravel(tree)
            return flat, unravel(flat)

        corpus.add(f"ravel_{name}", there_and_back)
    corpus.add(
        "grad_through_ravel",
        jax.grad(lambda x: (ravel({"a": x, "b": x[0]})[0] ** 2).sum()),
        draw(3),
        modes=("jit",),
    )


def refused(corpus, jax, jnp, lax, door):
    fft, cosine, ops = jnp.fft, door("scipy.fft"), door("ops")
    x = draw(4)
    for name, function, *args in (
        ("no_elements", lambda x: fft.fft(x, 0), x),
        ("negative", lambda x: fft.irfft(x, -1), x),
        ("axis", lambda x: fft.fft(x, axis=3), x),
        ("hfft_axis", lambda x: fft.hfft(x, axis=3), x),
        ("norm", lambda x: fft.rfft(x, norm="x"), x),
        ("a_list", fft.fft, [1.0, 2.0]),
        ("half_an_element", lambda x: fft.fft(x, 2.5), x),
        ("axes_as_one", lambda x: fft.fft(x, axis=[0]), x),
        ("a_number", fft.fft, 1.0),
        ("rfft_of_complex", fft.rfft, draw(3, dtype=C)),
        ("rfft_of_halves", fft.rfft, x.astype(np.float16)),
        ("fft2_of_a_vector", fft.fft2, x),
        ("fft2_axes", lambda x: fft.fft2(x, axes=(0,)), draw(2, 2)),
        ("repeated_axes", lambda x: fft.fftn(x, axes=(0, 0)), draw(2, 2)),
        ("sizes_and_axes", lambda x: fft.fftn(x, s=(1, 2), axes=(0,)), draw(2, 2)),
        ("frequency_list", lambda: fft.fftfreq([3])),
        ("spacing_list", lambda: fft.fftfreq(3, [1.0])),
        ("dct_type", lambda x: cosine.dct(x, type=3), x),
        ("dct_norm", lambda x: cosine.dct(x, norm="forward"), x),
        ("idct_axis", lambda x: cosine.idct(x, axis=2), x),
        ("lax_kind", lambda x: lax.fft(x, "foo", (4,)), x),
        ("lax_lengths", lambda x: lax.fft(x, "fft", (3,)), x),
        ("lax_rank", lambda x: lax.fft(x, "fft", (1, 4)), x),
        ("lax_rfft_of_complex", lambda x: lax.fft(x, "rfft", (3,)), draw(3, dtype=C)),
        ("negative_segments", lambda x: ops.segment_sum(x, np.arange(4), -1), x),
        ("float_ids", lambda x: ops.segment_sum(x, x, 3), x),
        ("segments_of_a_list", ops.segment_sum, [1.0], [0], 1),
        ("traced_segments", jax.jit(ops.segment_max), x, np.arange(4)),
        ("segments_of_booleans", ops.segment_sum, x > 0, np.arange(4), 4),
        ("lengths_of_segments", ops.segment_sum, x, np.arange(3), 4),
    ):
        corpus.add(f"refused_{name}", function, *args)
