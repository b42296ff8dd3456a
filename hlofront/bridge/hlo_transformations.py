"""jaxlib's table of functions that XLA calls with HLO modules during compilation."""

import importlib
import importlib.util
from typing import Any

_TABLE = "jaxlib._xla"


def table() -> Any:
    """Return jaxlib's module with the table.

    Raises:
      RuntimeError: if this jaxlib has none.
    """
    if importlib.util.find_spec(_TABLE) is None:
        raise RuntimeError("transformations of HLO modules need a jaxlib with the module _xla")
    return importlib.import_module(_TABLE)
