"""Programs compile for a GPU and a TPU that are not here; skipped without their plugins."""

import re

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront.pjrt import targets

linalg = lax.linalg


def compiled(target, function, *args):
    missing = targets.install_hint(target.partition(":")[0])
    if missing:
        pytest.skip(f"compiling for {target} takes `{missing}`")
    with jax.target(target):
        return jax.jit(function).lower(*args).compile().as_text()


def called(module):
    return set(re.findall(r'custom_call_target="([^"]+)"', module))


def of(*shape, dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def factored(x):
    """By every kernel that takes one matrix, of any dtype."""
    square = x[..., :4, :4]
    values_only = {"compute_left_eigenvectors": False}
    return (
        linalg.cholesky(square),
        linalg.lu(x),
        linalg.qr(x),
        linalg.qr(x, pivoting=True),
        linalg.eigh(square),
        linalg.eig(square),
        linalg.eig(square, **values_only),
        linalg.svd(x),
        linalg.svd(x, algorithm="QR"),
        linalg.svd(lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)), algorithm="QR"),
        linalg.svd(x, algorithm="polar"),
        linalg.tridiagonal(square),
        linalg.tridiagonal_solve(*[x[..., 0]] * 3, x),
        linalg.tridiagonal_solve(*[x[..., 0]] * 3, x, perturb_singular=True),
    )


OF_CUDA = set(
    (
        "cu_lu_pivots_to_permutation cu_tridiagonal_solve_perturbed cusparse_gtsv2_ffi "
        "cuhybrid_geqp3 cusolver_geev_ffi cusolver_geqrf_ffi cusolver_gesvd_ffi "
        "cusolver_gesvdj_ffi cusolver_gesvdp_ffi cusolver_getrf_ffi cusolver_orgqr_ffi "
        "cusolver_potrf_ffi cusolver_syevd_ffi cusolver_sytrd_ffi"
    ).split()
)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "dtype"), [((6, 4), np.float32), ((2, 6, 4), np.complex64)])
def test_each_kernel_compiles_for_an_absent_gpu(shape, dtype):
    module = compiled("cuda:h100", factored, of(*shape, dtype=dtype))
    hybrid = "cuhybrid_eig_comp" if dtype == np.complex64 else "cuhybrid_eig_real"
    assert OF_CUDA | {hybrid} <= called(module)


def test_kernels_of_real_numbers_compile_for_an_absent_gpu():
    def function(x, y):
        return linalg.cholesky_update(x, y), linalg.symmetric_product(x, x)

    found = called(compiled("cuda:h100", function, of(5, 5), of(5)))
    assert found == {"cu_cholesky_update_ffi", "cusolver_syrk_ffi"}


def test_nothing_to_factor_compiles_for_an_absent_gpu():
    def function(x):
        return linalg.cholesky(x), linalg.lu(x), linalg.qr(x), linalg.eigh(x), linalg.svd(x)

    assert not called(compiled("cuda:h100", function, of(3, 0, 0)))


@pytest.mark.slow
def test_factorizations_compile_for_an_absent_tpu():
    def function(x, d, b):
        square = x[:4]
        return (
            linalg.cholesky(square),
            linalg.lu(x),
            linalg.qr(x),
            linalg.eigh(square),
            linalg.svd(x, full_matrices=False),
            linalg.tridiagonal_solve(d, d, d, b),
        )

    module = compiled("tpu:v5e:1x1", function, of(6, 4), of(5), of(5, 2))
    assert {"EighTpu", "LuRealDecompositionBlock"} <= called(module)


def _at_constant_starts(x, update):
    return lax.dynamic_update_slice(x, update, (7, -9))


def _at_starts_of_steps(x, update):
    def step(i, x):
        return lax.dynamic_update_slice(x, update * i, (i + 1, 3))

    return lax.fori_loop(0, 9, step, x)


@pytest.mark.parametrize("program", [_at_constant_starts, _at_starts_of_steps])
def test_updates_on_gpus_stay_inside_of_their_array(program):
    """XLA copies an update to an offset in bytes, and does not look at the size of the array."""
    x, update = np.zeros((3, 4), np.float32), np.ones((1, 2), np.float32)
    text = compiled("cuda:h100", program, x, update)
    configs = re.findall(r'"byte_offset":"(-?\d+)","byte_stride":"(-?\d+)"', text)
    for offset, stride in configs:
        assert 0 <= int(offset) and int(offset) + 8 * int(stride) + update.nbytes <= x.nbytes
    np.testing.assert_array_equal(
        jax.jit(_at_constant_starts)(x, update), [[0] * 4, [0] * 4, [1, 1, 0, 0]]
    )
