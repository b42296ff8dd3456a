"""Type checks of traced jaxprs, tangents and cotangents under the option jax_enable_checks.

They name the faulty rule: without them, a result of a wrong type is passed on until an unrelated
rule fails. If the option is off, a check does nothing else than read it.
"""

from collections.abc import Sequence
from typing import Any

from hlofront.base.config import options
from hlofront.base.errors import JaxprTypeError
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import Tangent, Zero

_enable_checks = options["jax_enable_checks"]


def checks_are_on() -> bool:
    """Return whether the option jax_enable_checks is on: jaxprs and derivatives are checked."""
    return _enable_checks.value


def checked(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return a newly made program, type-checked if the option jax_enable_checks is on.

    Raises:
      JaxprTypeError: if the program breaks the type rules.
    """
    if _enable_checks.value:
        # Imported here because it also loads the printing of jaxprs.
        from hlofront.core.programs.check import check_jaxpr

        check_jaxpr(program)
    return program


def check_tangents(primitive: Primitive, results: Any, tangents: Any) -> None:
    """Raise JaxprTypeError if a primitive's jvp rule returned tangents of wrong number or types.

    Args:
      primitive: the primitive.
      results: its result, or a sequence of results if `multiple_results`.
      tangents: the tangents of the results, as the rule returned them.
    """
    if not primitive.multiple_results:
        results, tangents = (results,), (tangents,)
    if len(results) != len(tangents):
        raise JaxprTypeError(
            f"the jvp rule of {primitive.name} gives {len(tangents)} tangents for "
            f"{len(results)} results"
        )
    for result, tangent in zip(results, tangents, strict=True):
        aval = typeof(result)
        _check_type(primitive, "jvp", "tangent", "result", aval, tangent)


def check_cotangents(primitive: Primitive, operands: Sequence[Atom], cotangents: Any) -> None:
    """Raise JaxprTypeError if a primitive's transpose rule returned wrong cotangents.

    Args:
      primitive: the primitive.
      operands: the operands of the equation, as atoms of a jaxpr.
      cotangents: per operand its cotangent, as the rule returned it; or None.
    """
    cotangents = list(cotangents)
    if len(operands) != len(cotangents):
        raise JaxprTypeError(
            f"the transpose rule of {primitive.name} gives {len(cotangents)} cotangents for "
            f"{len(operands)} operands"
        )
    for operand, cotangent in zip(operands, cotangents, strict=True):
        if cotangent is not None:
            _check_type(primitive, "transpose", "cotangent", "operand", operand.aval, cotangent)


def _check_type(
    primitive: Primitive, rule: str, derivative: str, value: str, aval: Any, tangent: Tangent
) -> None:
    expected = aval.to_tangent_aval()
    actual = tangent.aval if type(tangent) is Zero else typeof(tangent)
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        raise JaxprTypeError(
            f"the {rule} rule of {primitive.name} gives a {derivative} of type "
            f"{actual.str_short(True)} for its {value} of type {aval.str_short(True)}, expected "
            f"type {expected.str_short(True)}"
        )
