# Written by scripts/write_stubs.py from the running package: do not edit.

from typing import Any

class RegularGridInterpolator(Any): ...
