"""jax.extend.core: programs, primitives and tracing, for packages that read or write programs."""

from hlofront.base.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from hlofront.base.errors import JaxprTypeError as JaxprTypeError
from hlofront.base.lazy import lazy as _lazy
from hlofront.core.aval import AbstractToken as AbstractToken
from hlofront.core.axes import mapped_aval as mapped_aval
from hlofront.core.axes import unmapped_aval as unmapped_aval
from hlofront.core.effects import Effect as Effect
from hlofront.core.effects import Effects as Effects
from hlofront.core.effects import no_effects as no_effects
from hlofront.core.jaxpr import ClosedJaxpr as ClosedJaxpr
from hlofront.core.jaxpr import DebugInfo as DebugInfo
from hlofront.core.jaxpr import DropVar as DropVar
from hlofront.core.jaxpr import Equation as JaxprEqn
from hlofront.core.jaxpr import Jaxpr as Jaxpr
from hlofront.core.jaxpr import Literal as Literal
from hlofront.core.jaxpr import Var as Var
from hlofront.core.primitive import Primitive as Primitive
from hlofront.core.programs.as_function import jaxpr_as_fun as jaxpr_as_fun
from hlofront.core.programs.check import check_jaxpr as check_jaxpr
from hlofront.core.programs.extension import array_types as array_types
from hlofront.core.programs.extension import concrete_or_error as concrete_or_error
from hlofront.core.programs.extension import gensym as gensym
from hlofront.core.programs.extension import jaxprs_in_params as jaxprs_in_params
from hlofront.core.programs.extension import new_jaxpr_eqn as new_jaxpr_eqn
from hlofront.core.programs.extension import (
    primal_dtype_to_tangent_dtype as primal_dtype_to_tangent_dtype,
)
from hlofront.core.programs.extension import valid_jaxtype as valid_jaxtype
from hlofront.core.programs.subprograms import subjaxprs as subjaxprs
from hlofront.higher_order.call_primitive import CallPrimitive as CallPrimitive
from hlofront.higher_order.call_primitive import call_impl as call_impl
from hlofront.higher_order.call_primitive import create_call_primitive as create_call_primitive
from hlofront.higher_order.call_primitive import eval_jaxpr_transpose as eval_jaxpr_transpose
from hlofront.higher_order.call_primitive import (
    register_call_primitive_rules as register_call_primitive_rules,
)
from hlofront.primitives.calls.barriers import Token as Token
from hlofront.transforms.trace_state import TraceTag as TraceTag
from hlofront.transforms.trace_state import find_top_trace as find_top_trace
from hlofront.transforms.trace_state import get_opaque_trace_state as get_opaque_trace_state
from hlofront.transforms.trace_state import nonempty_axis_env as nonempty_axis_env_DO_NOT_USE
from hlofront.transforms.trace_state import set_current_trace as set_current_trace
from hlofront.transforms.trace_state import take_current_trace as take_current_trace
from hlofront.transforms.trace_state import (
    unsafe_am_i_under_a_jit as unsafe_am_i_under_a_jit_DO_NOT_USE,
)
from hlofront.transforms.trace_state import (
    unsafe_am_i_under_a_vmap as unsafe_am_i_under_a_vmap_DO_NOT_USE,
)
from hlofront.transforms.trace_state import (
    unsafe_get_axis_names as unsafe_get_axis_names_DO_NOT_USE,
)

__all__ = [
    "AbstractToken",
    "CallPrimitive",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Token",
    "TraceTag",
    "Var",
    "array_types",
    "call_impl",
    "check_jaxpr",
    "concrete_or_error",
    "create_call_primitive",
    "eval_jaxpr_transpose",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "register_call_primitive_rules",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

__getattr__, __dir__ = _lazy(__name__, ("primitives",))
