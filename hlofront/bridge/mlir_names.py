"""The public names of jaxlib's modules of MLIR, for modules with the same names."""

import importlib
from types import ModuleType


def homes_of(name: str) -> dict[str, str]:
    """Map each public name of a module to the name of the module.

    Args:
      name: a module of jaxlib, such as "jaxlib.mlir.ir".
    """
    module: ModuleType = importlib.import_module(name)
    listed = getattr(module, "__all__", None) or vars(module)
    return {key: name for key in listed if not key.startswith("_")}
