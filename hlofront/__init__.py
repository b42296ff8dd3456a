"""hlofront: NumPy-like Python traced to jaxprs, lowered to StableHLO, run by XLA through PJRT."""

from hlofront.base.caches import clear_caches as clear_caches
from hlofront.base.config import checking_leaks as checking_leaks
from hlofront.base.config import config as config
from hlofront.base.config import debug_infs as debug_infs
from hlofront.base.config import debug_nans as debug_nans
from hlofront.base.config import default_device as default_device
from hlofront.base.config import default_matmul_precision as default_matmul_precision
from hlofront.base.config import disable_jit as disable_jit
from hlofront.base.config import enable_checks as enable_checks
from hlofront.base.config import enable_x64 as enable_x64
from hlofront.base.config import log_compiles as log_compiles
from hlofront.base.config import numpy_dtype_promotion as numpy_dtype_promotion
from hlofront.base.config import numpy_rank_promotion as numpy_rank_promotion
from hlofront.base.version import __version__ as __version__
from hlofront.bridge.fast_parts import Array as Array
from hlofront.core.aval import typeof as typeof
from hlofront.core.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from hlofront.core.names import named_scope as named_scope
from hlofront.runtime import array as _array  # noqa: F401  (arrays get their methods)
from hlofront.runtime import engine as _engine  # noqa: F401  (plugs in the engine)
from hlofront.runtime import rules as _rules  # noqa: F401
from hlofront.runtime.jit import jit as jit
from hlofront.transforms.flatten import ShapeDtypeStruct as ShapeDtypeStruct
from hlofront.transforms.make_jaxpr import closure_convert as closure_convert
from hlofront.transforms.make_jaxpr import eval_shape as eval_shape
from hlofront.transforms.make_jaxpr import make_jaxpr as make_jaxpr
