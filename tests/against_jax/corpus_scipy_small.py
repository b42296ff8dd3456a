"""The smaller parts of scipy against the reference: signals, grids, minima, systems, rotations."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

T = 1e-4


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.scipy.{name}")

    convolutions(corpus, door("signal"))
    spectra(corpus, door("signal"))
    coordinates(corpus, jax, jnp, door("ndimage"))
    minima(corpus, jnp, door("optimize"))
    systems(corpus, jax, door("sparse.linalg"))
    grids(corpus, jax, jnp, door("interpolate"))
    codes(corpus, door("cluster.vq"), door("integrate"))
    rotations(corpus, jax, jnp, door("spatial.transform"))
    return corpus


def convolutions(corpus, signal):
    x, y, plane, kernel = draw(20), draw(5), draw(5, 8), draw(2, 3)
    for name in ("convolve", "correlate"):
        f = getattr(signal, name)

        def lines(x, y, f=f):
            return [
                f(a, b, mode) for mode in ("full", "same", "valid") for a, b in ((x, y), (y, x))
            ]

        def planes(x, y, f=f):
            return [f(x, y, mode) for mode in ("full", "same", "valid")]

        corpus.add(f"{name}_lines", lines, x, y, tolerance=T)
        corpus.add(f"{name}_planes", planes, plane, kernel, tolerance=T)
        corpus.add(f"{name}_fft", lambda x, y, f=f: f(x, y, method="fft"), x, y, tolerance=T)
        corpus.add(f"{name}_complex", lambda x, y, f=f: f(x, y * 1j, "same"), x, y, tolerance=T)
        corpus.add(f"{name}_integers", f, np.arange(4), np.arange(3), tolerance=T)
        corpus.add(f"{name}_mode", lambda x, y, f=f: f(x, y, "other"), x, y)
        corpus.add(f"{name}_method", lambda x, y, f=f: f(x, y, method="other"), x, y)
        corpus.add(f"{name}_ranks", f, plane, y)
        corpus.add(f"{name}_nothing", f, x[:0], y)
        corpus.add(f"{name}_neither", lambda a, b, f=f: f(a, b, "valid"), plane[:2], plane[:, :2])
    for name in ("convolve2d", "correlate2d"):
        f = getattr(signal, name)

        def sizes(x, y, f=f):
            pairs = ((x, y), (y, x))
            return [f(a, b, mode) for mode in ("full", "same", "valid") for a, b in pairs]

        corpus.add(f"{name}_modes", sizes, plane, kernel, tolerance=T)
        corpus.add(f"{name}_boundary", lambda x, y, f=f: f(x, y, boundary="wrap"), plane, kernel)
        corpus.add(f"{name}_lines", f, x, y)

    def by_fft(x, y):
        found = [signal.fftconvolve(x, y, mode) for mode in ("full", "same", "valid")]
        return found, signal.fftconvolve(x, x[:, :3], axes=1)

    corpus.add("fftconvolve_modes", by_fft, plane, kernel, tolerance=T)
    corpus.add("fftconvolve_axes", lambda x, y: signal.fftconvolve(x, y, axes=0), plane, kernel)
    corpus.add("fftconvolve_ranks", signal.fftconvolve, plane, y)
    corpus.add("fftconvolve_mode", lambda x, y: signal.fftconvolve(x, y, "other"), x, y)
    corpus.add("fftconvolve_nothing", signal.fftconvolve, x[:0], y)


def spectra(corpus, signal):
    x, y, plane = draw(40), draw(41)[:40], draw(5, 8)

    def trends(x, plane):
        return (
            signal.detrend(x),
            signal.detrend(plane, 0, "constant"),
            signal.detrend(plane, 1, bp=[3]),
        )

    corpus.add("detrend", trends, x, plane, tolerance=T)
    corpus.add("detrend_type", lambda x: signal.detrend(x, type="other"), x)
    corpus.add("detrend_places", lambda x: signal.detrend(x, bp=50), x)
    corpus.add("detrend_in_place", lambda x: signal.detrend(x, overwrite_data=True), x)
    for name, options in {
        "plain": {"nperseg": 16},
        "long": {"nperseg": 100},
        "median": {"nperseg": 8, "average": "median"},
        "spectrum": {"nperseg": 16, "scaling": "spectrum", "return_onesided": False, "nfft": 20},
        "kaiser": {"nperseg": 16, "window": ("kaiser", 3.0), "detrend": "linear", "fs": 10.0},
        "weights": {"nperseg": 16, "window": np.ones(16, np.float32), "detrend": False},
        "scaling": {"scaling": "other"},
        "average": {"nperseg": 16, "average": "other"},
        "overlap": {"nperseg": 16, "noverlap": 16},
        "short": {"nperseg": 16, "nfft": 8},
        "window": {"nperseg": 16, "window": "other"},
    }.items():
        corpus.add(f"csd_{name}", lambda x, y, o=options: signal.csd(x, y, **o), x, y, tolerance=T)
    corpus.add("csd_ranks", signal.csd, plane, x)
    corpus.add(
        "csd_of_integers", lambda: signal.csd(np.arange(20), np.arange(20), nperseg=8), tolerance=T
    )
    corpus.add("welch", lambda x: signal.welch(x, nperseg=16), x, tolerance=T)
    corpus.add("welch_axis", lambda x: signal.welch(x, nperseg=4, axis=0), plane, tolerance=T)
    corpus.add("welch_complex", lambda x: signal.welch(x * 1j, nperseg=16), x, tolerance=T)
    for name, options in {
        "plain": {"nperseg": 16},
        "bare": {"nperseg": 16, "boundary": None, "padded": False, "detrend": "constant"},
        "even": {"nperseg": 16, "boundary": "even"},
        "odd": {"nperseg": 16, "boundary": "odd"},
        "constant": {"nperseg": 12, "boundary": "constant", "noverlap": 3},
        "boundary": {"boundary": "other"},
    }.items():
        corpus.add(f"stft_{name}", lambda x, o=options: signal.stft(x, **o), x, tolerance=T)
    corpus.add(
        "stft_axis",
        lambda x: signal.stft(x, nperseg=4, axis=0, return_onesided=False),
        plane,
        tolerance=T,
    )

    def back(x, **options):
        return signal.istft(signal.stft(x, nperseg=16)[2], **options)

    corpus.add("istft", back, x, tolerance=T)
    corpus.add("istft_window", lambda x: back(x, window="boxcar", noverlap=8), x, tolerance=T)
    corpus.add("istft_bare", lambda x: back(x, boundary=False)[1][8:-8], x, tolerance=T)
    corpus.add("istft_long", lambda x: back(x, nperseg=100), x)
    corpus.add("istft_axes", lambda x: back(x, time_axis=0, freq_axis=0), x)
    corpus.add("istft_line", signal.istft, x)


def coordinates(corpus, jax, jnp, ndimage):
    plane = draw(5, 8)
    places = [np.array(p, np.float32) for p in ([0.3, 1.7, -0.6, 4.4], [0.0, 2.5, 7.8, -3.5])]
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):

        def both(x, *places, m=mode):
            return [ndimage.map_coordinates(x, places, n, m, cval=2.0) for n in (0, 1)]

        corpus.add(f"map_coordinates_{mode}", both, plane, *places, tolerance=1e-5)
    f = ndimage.map_coordinates
    numbers = np.arange(40).reshape(5, 8)
    corpus.add("map_coordinates_integers", lambda x: [f(x, places, n) for n in (0, 1)], numbers)
    corpus.add("map_coordinates_order", lambda x: f(x, places, 2), plane)
    corpus.add("map_coordinates_mode", lambda x: f(x, places, 1, "other"), plane)
    corpus.add("map_coordinates_count", lambda x: f(x, places[:1], 1), plane)
    corpus.add("map_coordinates_lists", lambda: f([[1.0, 2.0]], [[0.0], [0.25]], 1))
    corpus.add(
        "map_coordinates_gradients",
        jax.grad(lambda x, p: jnp.sum(f(x, p, 1, "nearest") ** 2), (0, 1)),
        plane,
        places,
        tolerance=T,
    )


def minima(corpus, jnp, optimize):
    def quadratic(x, to=3.0):
        return jnp.sum((x - to) ** 2)

    def himmelblau(x):
        return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2

    def look(fun, x0, *args, **options):
        found = optimize.minimize(fun, x0, args, method="BFGS", **options)
        return found.x, found.success, found.status, found.fun, found.nit

    start = np.zeros(2, np.float32)
    corpus.add("minimum_of_squares", lambda x: look(quadratic, x)[:3], start, tolerance=T)
    corpus.add("minimum_of_arguments", lambda x: look(quadratic, x, 2.0)[:3], start, tolerance=T)
    # In float32 the number of steps depends on the processor's last digits: see minimum_in_x64.
    corpus.add(
        "minimum_of_himmelblau", lambda x: look(himmelblau, x)[:4], start + 1, tolerance=1e-3
    )
    corpus.add(
        "minimum_in_x64", lambda x: look(himmelblau, x), np.ones(2), x64=True, tolerance=1e-5
    )
    for name, call in {
        "method": lambda x: optimize.minimize(quadratic, x, method="other"),
        "arguments": lambda x: optimize.minimize(quadratic, x, 2.0, method="BFGS"),
        "options": lambda x: optimize.minimize(quadratic, x, method="BFGS", options={"a": 1}),
        "planes": lambda x: look(quadratic, x[None]),
        "scalars": lambda x: look(quadratic, x[0]),
        "vectors": lambda x: look(lambda x: x, x),
        "integers": lambda x: look(quadratic, x.astype(np.int32)),
    }.items():
        corpus.add(f"minimum_refuses_{name}", call, start)


def systems(corpus, jax, linalg):
    a, b = draw(5, 5), draw(5)
    p = a @ a.T + 5 * np.eye(5, dtype=np.float32)
    for name in ("cg", "bicgstab", "gmres"):
        f = getattr(linalg, name)
        matrix = np.diag(1 / np.diag(p))

        def solve(p, b, f=f, m=matrix):
            return f(p, b), f(lambda x: p @ x, b, M=m, tol=1e-6), f(p, b, b, atol=1e-6)

        corpus.add(f"{name}_solves", solve, p, b, tolerance=1e-4)
        corpus.add(
            f"{name}_of_trees",
            lambda p, b, f=f: f(lambda d: {"a": p @ d["a"]}, {"a": b}),
            p,
            b,
            tolerance=1e-4,
        )
        corpus.add(
            f"{name}_gradients",
            jax.grad(lambda p, b, f=f: f(p, b, tol=1e-7)[0].sum(), (0, 1)),
            p,
            b,
            tolerance=1e-4,
        )
        corpus.add(f"{name}_complex", lambda p, b, f=f: f(p * (1 + 0j), b * 1j), p, b, tolerance=T)
        corpus.add(f"{name}_zero", lambda p, b, f=f: f(p, b * 0), p, b)
        for label, call in {
            "rectangles": lambda p, b, f=f: f(p[:, :3], b),
            "nothing": lambda p, b, f=f: f(None, b),
            "structures": lambda p, b, f=f: f(p, b, x0=(b,)),
            "preconditioners": lambda p, b, f=f: f(p, b, M=3),
            "functions": lambda p, b, f=f: f(lambda x: x[:2], b),
            "integers": lambda p, b, f=f: f(np.eye(3, dtype=int), np.arange(3)),
        }.items():
            corpus.add(f"{name}_refuses_{label}", call, p, b)
    corpus.add(
        "gmres_steps", lambda a, b: linalg.gmres(a, b, restart=2, maxiter=1), a, b, tolerance=T
    )
    corpus.add(
        "gmres_incremental",
        lambda p, b: linalg.gmres(p, b, solve_method="incremental"),
        p,
        b,
        tolerance=T,
    )
    corpus.add("gmres_method", lambda p, b: linalg.gmres(p, b, solve_method="other"), p, b)


def grids(corpus, jax, jnp, interpolate):
    points = (np.array([0.0, 1, 3], np.float32), np.array([0.0, 2, 4, 5], np.float32))
    values = draw(3, 4)
    at = np.array([[0.5, 1], [2.9, 4.9], [1, 2], [-1, 0], [3, 5]], np.float32)
    f = interpolate.RegularGridInterpolator
    for method in ("linear", "nearest"):

        def both(v, at, m=method):
            return f(points, v, m)(at), f(points, v, m, fill_value=None)(at), f(points, v)(at, m)

        corpus.add(f"grid_{method}", both, values, at, tolerance=1e-5)
    corpus.add("grid_vectors", lambda v, at: f(points, jnp.stack([v, v], -1))(at[None]), values, at)
    corpus.add("grid_tuples", lambda v, at: f(points, v)((at[:, 0], at[:, 1])), values, at)
    corpus.add("grid_gradients", jax.grad(lambda v, at: f(points, v)(at).sum()), values, at[:3])
    for name, call in {
        "method": lambda v, at: f(points, v, "other"),
        "bounds": lambda v, at: f(points, v, bounds_error=True),
        "axes": lambda v, at: f(points, v[0]),
        "points": lambda v, at: f(points, v)(at[:, :1]),
        "fill": lambda v, at: f(points, v, fill_value=1j),
        "lists": lambda v, at: f(([0, 1, 3], [0, 2, 4, 5]), v),
    }.items():
        corpus.add(f"grid_refuses_{name}", call, values, at)


def codes(corpus, vq, integrate):
    x = draw(5, 8)
    corpus.add("vq", vq.vq, x, x[:2] + 0.1, tolerance=1e-5)
    corpus.add("vq_numbers", vq.vq, x[0], x[1, :3], tolerance=1e-5)
    corpus.add("vq_sizes", vq.vq, x, x[:, :3])
    corpus.add("vq_ranks", vq.vq, x, x[0])
    corpus.add("vq_rank", vq.vq, x[None], x[None])
    corpus.add("trapezoid", lambda y: integrate.trapezoid(y, dx=0.5, axis=0), x, tolerance=1e-5)


def rotations(corpus, jax, jnp, transform):
    rotation = transform.Rotation
    quats = np.array([[0.1, 0.2, 0.3, 0.9], [0.5, -0.5, 0.1, 0.2]], np.float32)
    angles = np.array([[0.1, 0.2, 0.3], [1, -0.5, 2]], np.float32)

    def made(quats):
        return rotation.from_quat(quats)

    for name in ("as_matrix", "as_mrp", "as_quat", "as_rotvec", "inv", "magnitude"):
        corpus.add(
            f"rotation_{name}",
            lambda q, name=name: [getattr(made(one), name)() for one in (q, q[0])],
            quats,
            tolerance=1e-5,
        )
    for seq in ("xyz", "XYZ", "zxz", "ZYX"):
        corpus.add(
            f"rotation_euler_{seq}",
            lambda q, a, s=seq: (made(q).as_euler(s, degrees=True), rotation.from_euler(s, a)),
            quats,
            angles,
            tolerance=1e-4,
        )
    corpus.add("rotation_one_axis", lambda: rotation.from_euler("y", 30.0, degrees=True))
    corpus.add(
        "rotation_lock",
        lambda: rotation.from_euler("xyz", np.float32([0.1, np.pi / 2, 0.3])).as_euler("xyz"),
        tolerance=1e-4,
    )
    corpus.add(
        "rotation_matrices",
        lambda q: rotation.from_matrix(made(q).as_matrix()),
        quats,
        tolerance=1e-5,
    )
    corpus.add(
        "rotation_vectors",
        lambda a: (rotation.from_rotvec(a), rotation.from_mrp(a)),
        angles,
        tolerance=1e-5,
    )
    corpus.add("rotation_small", lambda: rotation.from_rotvec(np.float32([1e-5, 0, 0])).as_rotvec())
    corpus.add("rotation_identity", lambda: rotation.identity())
    corpus.add(
        "rotation_products", lambda q: (made(q) * made(q[0]), made(q)[0], len(made(q))), quats
    )
    corpus.add("rotation_joined", lambda q: rotation.concatenate([made(q), made(q)]), quats)
    corpus.add(
        "rotation_applied",
        lambda q, v: (made(q).apply(v), made(q[0]).apply(v, inverse=True), made(q).apply(v[0])),
        quats,
        angles,
        tolerance=1e-5,
    )
    corpus.add(
        "rotation_as_asked",
        lambda q: (made(-q).as_quat(True), made(q).as_quat(scalar_first=True)),
        quats,
    )
    corpus.add(
        "rotation_mean",
        lambda q: made(q).mean(np.float32([1, 3])).as_matrix(),
        quats,
        tolerance=1e-4,
    )
    corpus.add(
        "rotation_gradient", jax.grad(lambda q: made(q).as_rotvec().sum()), quats, tolerance=1e-4
    )
    for name, call in {
        "axes": lambda q: rotation.from_euler("abc", np.zeros(3)),
        "twice": lambda q: rotation.from_euler("xxz", np.zeros(3)),
        "long": lambda q: rotation.from_euler("xyzx", np.zeros(4)),
        "angles": lambda q: rotation.from_euler("xyz", np.zeros(2)),
        "two_axes": lambda q: made(q).as_euler("xy"),
        "len": lambda q: len(made(q[0])),
        "items": lambda q: made(q[0])[0],
        "vectors": lambda q: made(q).apply(np.ones((3, 3))),
    }.items():
        corpus.add(f"rotation_refuses_{name}", call, quats)
    times = np.float32([0, 1])

    def between(q, t):
        return transform.Slerp.init(times, made(q))(t)

    corpus.add("slerp", between, quats, np.float32([0.2, 0.7, -1.0, 0.0]), tolerance=1e-5)
    corpus.add("slerp_one", between, quats, 0.5, tolerance=1e-5)
    corpus.add("slerp_planes", between, quats, np.ones((2, 2)))
    corpus.add("slerp_of_one", lambda q: transform.Slerp.init(times, made(q[0])), quats)
    corpus.add("slerp_of_times", lambda q: transform.Slerp.init(np.arange(3.0), made(q)), quats)
    corpus.add("slerp_of_numbers", lambda q: transform.Slerp.init(times, 3), quats)
