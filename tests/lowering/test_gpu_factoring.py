"""Factorizations for devices that are not here: what they call, and the programs spelt for them."""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, lower
from hlofront.lowering import rules
from hlofront.lowering.linalg import spectral_gpu, spectral_tpu
from hlofront.lowering.linalg.spectral_division import eigh_by_division
from hlofront.primitives.linalg import factoring, solving

linalg = lax.linalg
rng = np.random.default_rng(7)


def text(function, *args, platform="cuda"):
    """The text of a verified module: an invalid one is not made."""
    return jax.jit(function).trace(*args).lower(lowering_platforms=(platform,)).as_text()


def calls(module):
    return re.findall(r"custom_call @(\w+)", module)


def of(*shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


# ---- calls ---------------------------------------------------------------------------------------

SQUARE, BATCH = of(5, 5), of(3, 6, 4, dtype=np.complex64)
CALLED = {
    "cholesky": (linalg.cholesky, SQUARE, ["{solver}_potrf_ffi"]),
    "lu": (linalg.lu, BATCH, ["{solver}_getrf_ffi", "{own}_lu_pivots_to_permutation"]),
    "qr": (linalg.qr, BATCH, ["{solver}_geqrf_ffi", "{solver}_orgqr_ffi"]),
    "eigh": (linalg.eigh, SQUARE, ["{solver}_syevd_ffi"]),
    "svd": (linalg.svd, BATCH, ["{solver}_gesvdj_ffi"]),
    "svd_large": (linalg.svd, of(4, 1100), ["{solver}_gesvd_ffi"]),
    "tridiagonal": (linalg.tridiagonal, SQUARE, ["{solver}_sytrd_ffi"]),
}


@pytest.mark.parametrize("name", CALLED)
def test_gpus_have_kernels(name):
    function, x, wanted = CALLED[name]
    for platform, names in {
        "cuda": {"solver": "cusolver", "own": "cu"},
        "rocm": {"solver": "hipsolver", "own": "hip"},
    }.items():
        module = text(function, x, platform=platform)
        assert calls(module) == [each.format(**names) for each in wanted]
        # What fails is NaN, and these are of the same layout as LAPACK's.
        assert module.count("stablehlo.select") >= ("qr" != name)
        assert "dense<[0, 1]>" in module or "dense<[1, 2, 0]>" in module or "[1, 0]" in module


def test_options():
    module = text(lambda x: linalg.eigh(x, lower=False, implementation="jacobi"), SQUARE)
    assert "{algorithm = 2 : ui8, lower = false}" in module
    module = text(lambda x: linalg.svd(x, algorithm="QR", full_matrices=False), of(4, 6))
    assert "{compute_uv = true, full_matrices = false, transposed = true}" in module
    # Stored by rows it is the transposed matrix that cuSOLVER takes.
    assert "operand_layouts = [dense<[1, 0]> : tensor<2xindex>]" in module
    module = text(lambda x: linalg.qr(x, pivoting=True, use_magma=False), of(4, 6))
    assert '{magma = "off"}' in module


def test_options_of_the_process():
    key = of(2, dtype=np.uint32)

    def bits(key):
        return jax.random.bits(key, (2, 3))

    assert not calls(text(bits, key))
    with options["jax_threefry_gpu_kernel_lowering"](True):
        for platform, wanted in {
            "cuda": ["cu_threefry2x32_ffi"],
            "rocm": ["hip_threefry2x32_ffi"],
            "tpu": [],
        }.items():
            assert calls(text(bits, key, platform=platform)) == wanted
    with options["jax_use_magma"]("on"):
        module = text(lambda x: (linalg.eig(x), linalg.qr(x, pivoting=True)), SQUARE)
    assert module.count('magma = "on"') == 2


@pytest.mark.parametrize(("version", "wanted"), [(0, "cuhybrid_eig"), (11701, "cusolver_geev_ffi")])
def test_eigenvalues_are_found_on_the_gpu_where_its_library_can(monkeypatch, version, wanted):
    monkeypatch.setattr(spectral_gpu, "cusolver_version", lambda: version)
    for dtype in (np.float32, np.complex64):
        x = of(2, 5, 5, dtype=dtype)
        for right in (True, False):
            options = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": right}
            (called,) = calls(text(lambda x, o=options: linalg.eig(x, **o), x))
            assert called.startswith(wanted)
        # Left ones it cannot find.
        assert calls(text(lambda x: linalg.eig(x), x))[0].startswith("cuhybrid_eig")
    error = NotImplementedError if version else RuntimeError
    with pytest.raises(error, match="omit implementation"):
        text(lambda x: linalg.eig(x, implementation=linalg.EigImplementation.CUSOLVER), of(5, 5))


def test_nothing_is_called_for_nothing():
    empty = of(3, 0, 0)
    for function in (linalg.cholesky, linalg.lu, linalg.qr, linalg.eigh, linalg.svd, linalg.eig):
        for platform in ("cuda", "tpu"):
            if (function, platform) != (linalg.eig, "tpu"):
                assert not calls(text(function, empty, platform=platform))


def test_derivatives_and_batches_go_by_the_same_kernels():
    def total(x):
        q, r = jnp.linalg.qr(x)
        return (q * 2).sum() + r.sum() + jnp.linalg.svd(x, compute_uv=False).sum()

    module = text(jax.vmap(jax.grad(total)), of(2, 5, 5))
    assert {"cusolver_geqrf_ffi", "cusolver_gesvdj_ffi"} <= set(calls(module))


def test_one_module_for_several_platforms():
    traced = jax.jit(linalg.lu).trace(SQUARE)
    module = traced.lower(lowering_platforms=("cpu", "cuda", "tpu")).as_text()
    assert {"lapack_sgetrf_ffi", "cusolver_getrf_ffi", "LuDecomposition"} <= set(calls(module))


REFUSED = {
    "schur": (linalg.schur, SQUARE, "cuda"),
    "hessenberg": (linalg.hessenberg, SQUARE, "rocm"),
    "pivoted_qr": (lambda x: linalg.qr(x, pivoting=True), SQUARE, "tpu"),
    "eig": (linalg.eig, SQUARE, "tpu"),
    "tridiagonal": (linalg.tridiagonal, SQUARE, "tpu"),
    "qdwh": (lambda x: linalg.eigh(x, implementation="qdwh"), SQUARE, "cuda"),
    "qr_of_eigh": (lambda x: linalg.eigh(x, implementation="qr"), SQUARE, "tpu"),
    "divide": (lambda x: linalg.svd(x, algorithm="divide_and_conquer"), SQUARE, "cuda"),
    "svd_by_qr": (lambda x: linalg.svd(x, algorithm="QR"), SQUARE, "tpu"),
    "some": (lambda x: linalg.eigh(x, subset_by_index=(0, 2)), SQUARE, "cuda"),
    "half": (linalg.lu, of(5, 5, dtype=jnp.bfloat16), "cuda"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_device_lacks_is_refused_with_advice(name):
    function, x, platform = REFUSED[name]
    with pytest.raises(NotImplementedError, match=r"cpu|CPU|TPUs have|GPUs have|have QR|astype"):
        text(function, x, platform=platform)


# ---- programs ------------------------------------------------------------------------------------


def general(primitive):
    """The operation as it is lowered for devices that have no kernel, run on this one."""
    assert rules is not None
    twin = Primitive(f"general_{primitive.name}")
    infer(twin)(infer[primitive])
    lower(twin)(lower[primitive])
    return twin


def random(*shape, dtype=np.float32):
    x = rng.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def test_tridiagonal_elimination():
    twin = general(solving.tridiagonal_solve_p)
    solve = jax.jit(lambda *xs: twin.bind(*xs, perturb_singular=False))
    for dtype in (np.float32, np.complex64):
        below, middle, above = (random(2, 5, dtype=dtype) for _ in range(3))
        middle += 4
        right = random(2, 5, 3, dtype=dtype)
        wanted = linalg.tridiagonal_solve(below, middle, above, right)
        np.testing.assert_allclose(solve(below, middle, above, right), wanted, rtol=2e-5, atol=1e-6)
    one = np.float32([2]), np.float32([4]), np.float32([3]), np.float32([[8, 2]])
    np.testing.assert_array_equal(solve(*one), [[2, 0.5]])


def test_reflections_one_by_one():
    twin = general(factoring.ormqr_p)
    reflectors, scales = factoring.geqrf(random(2, 6, 4, dtype=np.complex64))
    for left in (True, False):
        c = random(2, *((6, 3) if left else (3, 6)), dtype=np.complex64)
        for transpose in (True, False):
            options = {"left": left, "transpose": transpose}
            wanted = factoring.ormqr(reflectors, scales, c, **options)
            found = jax.jit(lambda *xs, o=options: twin.bind(*xs, **o))(reflectors, scales, c)
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_eigenvectors_from_pairs():
    x = np.array([[0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0]], np.float64)
    x[3, 3], x[0, 3], x[2, 1] = 5, 2, 1
    values, vectors = np.linalg.eig(np.kron(np.eye(1), x))
    order = [list(values).index(value) for value in values]
    packed = np.array(vectors[:, order].real)
    for i, value in enumerate(values):
        if value.imag < 0:
            packed[:, i] = vectors[:, i - 1].imag
    with jax.enable_x64(True):
        found = jax.jit(spectral_gpu._from_pairs)(values, packed)
    np.testing.assert_allclose(found, vectors, atol=1e-14)


@pytest.fixture(scope="module")
def divide():
    return jax.jit(lambda x: eigh_by_division(x, 8))


def hermitian(x):
    return (x + x.conj().T) / 2


SPECTRA = {
    "random": hermitian(random(20, 20)),
    "equal": np.eye(20, dtype=np.float32) * 3,
    "zeros": np.zeros((20, 20), np.float32),
    "one_apart": np.diag(np.r_[np.ones(19), 0]).astype(np.float32),
    "two_values": np.ones((20, 20), np.float32) - np.eye(20, dtype=np.float32),
    "laplacian": (2 * np.eye(20) - np.eye(20, k=1) - np.eye(20, k=-1)).astype(np.float32),
    "graded": np.diag(2.0 ** -np.arange(20)).astype(np.float32),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SPECTRA)
def test_division_of_the_spectrum(divide, name):
    x = SPECTRA[name]
    vectors, values = map(np.asarray, divide(x))
    exact = np.linalg.eigvalsh(x.astype(np.float64))
    bound = 20 * np.finfo(np.float32).eps * max(np.abs(exact).max(), 1)
    assert np.abs(np.sort(values) - exact).max() < bound
    assert np.abs(x @ vectors - vectors * values).max() < bound
    assert np.abs(vectors.T @ vectors - np.eye(20)).max() < 4e-6


def test_division_of_what_is_no_number(divide):
    vectors, values = divide(np.where(np.eye(20, dtype=np.float32) > 0, np.nan, SPECTRA["random"]))
    assert np.isnan(values).all() and np.isnan(vectors).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "full"),
    [((2, 9, 6), np.complex64, True), ((4, 7), np.float32, False), ((5, 5), np.float32, True)],
)
def test_singular_values_by_the_polar_factor(shape, dtype, full):
    x = random(*shape, dtype=dtype)
    x[..., -1] = x[..., 0]
    x[..., -1, :] = x[..., 0, :]
    svd = jax.jit(lambda x: spectral_tpu._svd(x, full=full, compute_uv=True, part=None))
    values, left, right = map(np.asarray, svd(x))
    wanted = np.linalg.svd(x, compute_uv=False)
    np.testing.assert_allclose(values, wanted, atol=1e-5)
    k = min(shape[-2:])
    product = (left[..., :k] * values[..., None, :]) @ right[..., :k, :]
    np.testing.assert_allclose(product, x, atol=1e-5)
    for vectors in (left, np.swapaxes(right.conj(), -1, -2)):
        gram = np.swapaxes(vectors.conj(), -1, -2) @ vectors
        np.testing.assert_allclose(
            gram, np.broadcast_to(np.eye(gram.shape[-1]), gram.shape), atol=5e-6
        )


def test_large_matrices_of_tpus_are_divided():
    module = text(linalg.eigh, of(300, 300), platform="tpu")
    assert set(calls(module)) == {
        "Eigh",
        "Qr",
        "ProductOfElementaryHouseholderReflectors",
    }
    assert "tensor<256x256xf32>" in module
    part = text(
        lambda x: linalg.eigh(x, subset_by_index=(1, 3)),
        of(2, 260, 260, dtype=jnp.bfloat16),
        platform="tpu",
    )
    assert "tensor<2x260x2xbf16>" in part
