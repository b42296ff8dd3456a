"""The public names of jaxlib's MLIR modules, for modules with the same names."""

import importlib
from types import ModuleType


def names_of(name: str) -> dict[str, str]:
    """Return a row for `base.lazy.exports`: the name of a module, and its public names.

    Args:
      name: a module of jaxlib, such as "jaxlib.mlir.ir".
    """
    module: ModuleType = importlib.import_module(name)
    listed = getattr(module, "__all__", None) or vars(module)
    return {name: " ".join([key for key in listed if not key.startswith("_")])}
