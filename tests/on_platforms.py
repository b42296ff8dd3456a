"""The tests that run on each platform: `pytest -m gpu` runs them on this machine's GPU.

They are the same functions: each gets a twin in which the GPU is the default device. Elsewhere the
twins are skipped, with the reason. Tests of these files that are about CPUs are marked `cpu`.

With HLOFRONT_TEST_STAND_IN=1 JAX_NUM_CPU_DEVICES=2 a second CPU device stands in for the GPU: it
shows which tests do not use the default device.
"""

import contextlib
import functools
import os

import numpy as np
import pytest

import hlofront
from tests.systematic import trials
from tests.systematic.unsupported import why_not

FILES = (
    "tests/nn/test_cudnn_attention.py",
    "tests/random/test_keys.py",
    "tests/random/test_samplers.py",
    "tests/runtime/test_callbacks.py",
    "tests/runtime/test_each_platform.py",
    "tests/runtime/test_jit.py",
    "tests/runtime/test_disk_cache.py",
    "tests/runtime/test_protocols.py",
    "tests/smoke/test_smoke.py",
    "tests/systematic/test_batching.py",
    "tests/systematic/test_derivatives.py",
    "tests/systematic/test_samples.py",
)
STAND_IN = os.environ.get("HLOFRONT_TEST_STAND_IN") == "1"

# How far off results may be, in multiples of what is allowed on CPUs. NVIDIA's functions are off by
# some units in the last place, and sums are of another order.
_SLACK = {"cpu": 1, "gpu": 16}
# What is asked for by name is given: products of 10 bits, where a CPU computes with all.
_OF_FEW_BITS = ("'default'", "tensorfloat32", "'high'", "Precision.HIGH,", "Precision.HIGH)")
_FEW_BITS_SLACK = {"cpu": 1, "gpu": 256}
# Known up to signs, of which each kernel has its own choice; and batches have another kernel.
_UP_TO_SIGNS = {"eig", "eigh", "qr", "svd"}
# Samples whose results are not said on GPUs, or that their compiler refuses when it is attached.
_NOT_ON_GPUS = {
    "conv_general_dilated(int": "cuDNN convolves no integers but bytes, to floats",
    "conv(int": "as above",
    "conv(uint": "as above",
    "symmetric_product(": "cuBLAS writes one triangle",
    "scatter(float32[3,5], int32[4, 1], float32[4,": "the last of equal indices is not known",
}
_current = "cpu"


def generate(metafunc):
    """The hook of pytest: twins of the tests of these files, if `-m` selects some."""
    path = metafunc.definition.path.as_posix()
    expression = metafunc.config.option.markexpr
    asked = "gpu" in expression and "not gpu" not in expression
    if not asked or not path.endswith(FILES) or metafunc.definition.get_closest_marker("cpu"):
        return
    gpu = pytest.param("gpu", marks=pytest.mark.gpu)
    metafunc.parametrize("platform", ["cpu", gpu], indirect=True, scope="function")


@functools.cache
def device_of(platform):
    """Its first device, or why there is none."""
    if platform == "gpu" and STAND_IN:
        return hlofront.devices("cpu")[1], ""
    try:
        return hlofront.devices(platform)[0], ""
    except RuntimeError as error:
        return None, str(error)


def skip_unsupported(platform, test, params):
    """Skip a sample that the platform's compiler refuses, or a test that is too demanding."""
    if platform == "gpu" and {"file", "place"} <= params.keys():
        sample = trials.load()[params["file"]][params["place"]]
        why = why_not(sample, "cuda")
        if not STAND_IN:
            why = why or next((w for part, w in _NOT_ON_GPUS.items() if part in sample.name), None)
        if not why and sample.function.__name__ in _UP_TO_SIGNS and not STAND_IN:
            if test in ("test_vmap_is_a_loop", "test_derivatives_of_batches"):
                why = "batches have a kernel of their own, and so other signs"
        if why:
            pytest.skip(f"{sample.name}: {why}")


@contextlib.contextmanager
def on(platform):
    """Run what is inside on a platform, and its products of matrices in whole float32."""
    global _current
    device, missing = device_of(platform)
    if device is None:
        pytest.skip(f"no {platform.upper()} here: {missing}")
    before = _current
    with hlofront.default_device(device), hlofront.default_matmul_precision("highest"):
        _current = platform
        try:
            yield device
        finally:
            _current = before


def current():
    return _current


def slack():
    return _SLACK[_current]


def slack_of(sample):
    """How far off its results may be from those in all bits, as slack() is."""
    few = any(part in sample.name for part in _OF_FEW_BITS)
    return (_FEW_BITS_SLACK if few else _SLACK)[_current] / slack()


def near(found, wanted):
    """Equal; on a GPU, where multiplications and additions are fused as they come, nearly so."""
    if _current == "cpu" or STAND_IN:
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def cached(function):
    """A cache of what is computed, per platform."""
    found = functools.cache(lambda platform, *args: function(*args))

    @functools.wraps(function)
    def call(*args):
        return found(_current, *args)

    return call
