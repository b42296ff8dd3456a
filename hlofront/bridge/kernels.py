"""LAPACK's and cuSOLVER's kernels: registration of jaxlib's custom call targets with XLA."""

import functools
import importlib
from types import ModuleType

from hlofront.bridge.client import xla_client
from hlofront.bridge.registration import register
from hlofront.bridge.state import extension


@functools.cache
def load_lapack() -> None:
    """Register the targets `lapack_*_ffi` with XLA's CPU backend, before their first use.

    This loads SciPy's LAPACK, for which programs without linear algebra should not wait.
    """
    lapack = importlib.import_module("jaxlib.lapack")
    register(lapack, "cpu", xla_client, extension)
    lapack._lapack.initialize()


@functools.cache
def load_hybrid_kernels() -> None:
    """Register LAPACK with the GPU kernels that compute on the host, before their first use."""
    importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()


def load_kernels_of(target: str) -> None:
    """Register the kernels that have a custom call's target, if they are loaded on first use."""
    if target.startswith(("lapack_", "tridiagonal_solve_perturbed_")):
        load_lapack()


def load_host_kernels() -> None:
    """Load all kernels that use LAPACK."""
    load_lapack()
    load_hybrid_kernels()


@functools.cache
def cusolver_version() -> int:
    """Return the version of cuSOLVER, 11701 for 11.7.1; 0 if no CUDA plugin is installed.

    Without a GPU it is the version with which the plugin was built, the oldest that it accepts.
    """
    plugin_support = importlib.import_module("jaxlib.plugin_support")
    versions: ModuleType | None = plugin_support.import_from_plugin("cuda", "_versions")
    if versions is None:
        return 0
    try:
        return versions.cusolver_get_version()
    except RuntimeError:
        return versions.cusolver_build_version()
