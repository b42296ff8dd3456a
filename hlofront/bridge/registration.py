"""Registration of jaxlib's custom calls with XLA, here and in worker processes.

This file imports nothing of hlofront: workers load it by its path.
"""

import importlib
import os
from functools import partial
from types import ModuleType
from typing import Any

_GPU_MODULES = ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse")


def register(module: ModuleType, platform: str, xla_client: Any, extension: Any) -> None:
    """Register the custom calls that one of jaxlib's modules with kernels has for a platform.

    Args:
      module: the module, such as `jaxlib.lapack`.
      platform: "cpu", "CUDA" or "ROCM".
      xla_client: the module `jaxlib.xla_client`.
      extension: the module `jaxlib._jax`.
    """
    for name, capsule, api_version in module.registrations().get(platform, ()):
        xla_client.register_custom_call_target(
            name, capsule, platform=platform, api_version=api_version
        )
    # XLA may partition a batch of matrices over devices, so that each device works on its own part.
    if hasattr(module, "batch_partitionable_targets"):
        for name in module.batch_partitionable_targets():
            extension.register_custom_call_as_batch_partitionable(name)


def register_gpu_plugin(
    platform: str, api: object, package: str, xla_client: Any, extension: Any
) -> bool:
    """Register a GPU plugin's custom call handlers, and the custom calls of its kernel package.

    Args:
      platform: XLA's name, "CUDA" or "ROCM".
      api: the API of the loaded plugin.
      package: the kernel package, such as "jax_cuda13_plugin".
      xla_client: the module `jaxlib.xla_client`.
      extension: the module `jaxlib._jax`.

    Returns:
      Whether the package is installed.
    """
    kind = "cuda" if platform == "CUDA" else "rocm"
    try:
        kernels = importlib.import_module(f"{package}.{kind}_plugin_extension")
    except ImportError:
        return False
    xla_client.register_custom_type_handler(platform, partial(kernels.register_custom_type, api))
    xla_client.register_custom_call_handler(
        platform, partial(kernels.register_custom_call_target, api)
    )
    for name, type_id in kernels.ffi_types().items():
        xla_client.register_custom_type(name, type_id, platform=platform)
    for name, kernel in kernels.ffi_handlers().items():
        xla_client.register_custom_call_target(name, kernel, platform=platform, api_version=1)
    for name in _GPU_MODULES:
        register(importlib.import_module(f"jaxlib.{name}"), platform, xla_client, extension)
    # The functions that kernels of Mosaic GPU call, which XLA loads when it compiles one.
    runtime = os.path.join(os.path.dirname(kernels.__file__ or ""), "libmosaic_gpu_runtime.so")
    if os.path.exists(runtime):
        os.environ.setdefault("MOSAIC_GPU_RUNTIME_LIB_PATH", runtime)
    return True
