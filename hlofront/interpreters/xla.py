"""Names for rules of other packages: canonicalization of dtypes, and eager calls of primitives."""

from hlofront.bridge.client import Client as Backend
from hlofront.core.aval import host_values as canonicalize_dtype_handlers
from hlofront.runtime.dispatch.engine import apply_primitive as apply_primitive

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]
