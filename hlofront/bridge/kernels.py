"""LAPACK's and cuSOLVER's routines as XLA calls them: jaxlib's targets, made known to it."""

import functools
from typing import Any

from hlofront.bridge.client import xla_client
from hlofront.bridge.state import extension


@functools.cache
def load_lapack() -> None:
    """Make the targets `lapack_*_ffi` known to XLA's CPU backend, before their first use.

    Late, because it loads SciPy's LAPACK: programs without linear algebra do not wait for it.
    """
    from jaxlib import lapack

    _register(lapack)
    lapack._lapack.initialize()  # pyright: ignore[reportPrivateImportUsage]


@functools.cache
def load_gpu_kernels() -> None:
    """Make those of the installed GPU plugins known: of matrices, sparse ones, and random bits.

    Their backends must have been told before how to take them. See plugins.py.
    """
    from jaxlib import gpu_linalg, gpu_prng, gpu_solver, gpu_sparse

    for module in (gpu_linalg, gpu_prng, gpu_solver, gpu_sparse):
        _register(module)


@functools.cache
def load_hybrid_kernels() -> None:
    """Give LAPACK to the kernels of GPUs that hand their matrices to the host, before first use."""
    from jaxlib import gpu_solver

    gpu_solver.initialize_hybrid_kernels()


def load_host_kernels() -> None:
    """Load all kernels that use LAPACK."""
    load_lapack()
    load_hybrid_kernels()


def _register(module: Any) -> None:
    for platform, targets in module.registrations().items():
        for name, capsule, api_version in targets:
            xla_client.register_custom_call_target(
                name, capsule, platform=platform, api_version=api_version
            )
    # Those that XLA may run on the parts of a batch, on each device its own.
    if hasattr(module, "batch_partitionable_targets"):
        for name in module.batch_partitionable_targets():
            extension.register_custom_call_as_batch_partitionable(name)


@functools.cache
def cusolver_version() -> int:
    """Return the version of cuSOLVER, 11701 for 11.7.1: 0 where no plugin for CUDA is installed.

    Without a GPU it is the version that the plugin was built with, and the least that it takes.
    """
    from jaxlib import plugin_support

    versions: Any = plugin_support.import_from_plugin("cuda", "_versions")
    if versions is None:
        return 0
    try:
        return versions.cusolver_get_version()
    except RuntimeError:
        return versions.cusolver_build_version()
