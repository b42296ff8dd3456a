"""Symbolic sizes as values of programs."""

from hlofront.base.dtypes import default_dtype
from hlofront.base.typing import Value
from hlofront.core.aval import ShapedArray, host_values, register_value_type
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, run
from hlofront.core.sizes.symbolic import SizeExpression

# Returns the symbolic size `dim`, a parameter, as a scalar; it has no operands.
dim_as_value_p = Primitive("dim_as_value")


def size_aval(size: object = None) -> ShapedArray:
    """Return the aval of a size as a value: a scalar of the default integer dtype, weakly typed."""
    return ShapedArray((), default_dtype("i"), True)


@infer(dim_as_value_p)
def _(*, dim: SizeExpression) -> ShapedArray:
    return size_aval()


def _refuse(dim: SizeExpression) -> Value:
    raise NotImplementedError(  # JAX raises this class.
        f"the symbolic size '{dim}' has no value outside of a program that is traced for "
        "hlofront.export: use it inside of the function that is exported"
    )


@run(dim_as_value_p)
def _(*, dim: SizeExpression) -> Value:
    return _refuse(dim)


register_value_type(SizeExpression, size_aval)
host_values[SizeExpression] = _refuse
