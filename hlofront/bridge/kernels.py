"""LAPACK's and cuSOLVER's routines as XLA calls them: jaxlib's targets, made known to it."""

import functools
import importlib
from types import ModuleType

from hlofront.bridge.client import xla_client
from hlofront.bridge.state import extension

_GPU_MODULES = ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse")


@functools.cache
def load_lapack() -> None:
    """Make the targets `lapack_*_ffi` known to XLA's CPU backend, before their first use.

    This loads SciPy's LAPACK: programs without linear algebra do not wait for it.
    """
    lapack = importlib.import_module("jaxlib.lapack")
    _register(lapack)
    lapack._lapack.initialize()


@functools.cache
def load_gpu_kernels() -> None:
    """Make the targets of installed GPU plugins known: matrices, sparse ones, and random bits.

    The handlers for custom calls of the plugins' backends must be registered before, which
    plugins.py does.
    """
    for name in _GPU_MODULES:
        _register(importlib.import_module(f"jaxlib.{name}"))


@functools.cache
def load_hybrid_kernels() -> None:
    """Give LAPACK to the kernels of GPUs that hand their matrices to the host, before first use."""
    importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()


def load_host_kernels() -> None:
    """Load all kernels that use LAPACK."""
    load_lapack()
    load_hybrid_kernels()


def _register(module: ModuleType) -> None:
    for platform, targets in module.registrations().items():
        for name, capsule, api_version in targets:
            xla_client.register_custom_call_target(
                name, capsule, platform=platform, api_version=api_version
            )
    # XLA may split a batch of such matrices over devices, each of which works on its own part.
    if hasattr(module, "batch_partitionable_targets"):
        for name in module.batch_partitionable_targets():
            extension.register_custom_call_as_batch_partitionable(name)


@functools.cache
def cusolver_version() -> int:
    """Return the version of cuSOLVER, 11701 for 11.7.1: 0 where no plugin for CUDA is installed.

    Without a GPU it is the version that the plugin was built with, and the least that it takes.
    """
    plugin_support = importlib.import_module("jaxlib.plugin_support")
    versions: ModuleType | None = plugin_support.import_from_plugin("cuda", "_versions")
    if versions is None:
        return 0
    try:
        return versions.cusolver_get_version()
    except RuntimeError:
        return versions.cusolver_build_version()
