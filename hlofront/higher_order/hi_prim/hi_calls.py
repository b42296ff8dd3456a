"""The primitives of equations that call HiPrims; the rules are in the files of that class."""

from hlofront.core.primitive import Primitive

# The parameter `_prim` is a HiPrim. The operands and results are the low values of the HiPrim's.
call_hi_primitive_p = Primitive("call_hi_primitive", multiple_results=True, carries_programs=True)
# The derivative in programs: from primals and tangents to results and their tangents.
call_hi_primitive_jvp_p = Primitive(
    "call_hi_primitive_jvp", multiple_results=True, carries_programs=True
)
# The linear part of the derivative: from residuals and tangents to tangents.
call_hi_primitive_linearized_p = Primitive(
    "call_hi_primitive_linearized", multiple_results=True, carries_programs=True
)
