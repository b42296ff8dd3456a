"""hlofront: NumPy-like Python traced to jaxprs, lowered to StableHLO, run by XLA through PJRT."""

from hlofront.runtime import array as _array  # noqa: F401  (arrays get their methods)
from hlofront.runtime import engine as _engine  # noqa: F401  (plugs in the engine)
from hlofront.runtime import rules as _rules  # noqa: F401
from hlofront.runtime.jit import jit as jit
