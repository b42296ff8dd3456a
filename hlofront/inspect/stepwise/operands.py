"""The operand elements from which an element of an operation's result is computed, also as text."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import ArrayLike, ArrayLikes, DType, NumPyArray, Shape
from hlofront.core.jaxpr import Equation

# A NumPy scalar: one element of an array.
Element = np.generic

# Elementwise operations: their operands have one shape, or are scalars, or have sizes of one.
ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil
    clamp complex conj convert_element_type copy copy_p cos cosh digamma div erf erf_inv erfc exp
    exp2 expm1 floor igamma igamma_grad_a igammac imag integer_pow lgamma log log1p log2 logistic
    max min mul name neg nextafter one_minus_square polygamma polynomial pow random_gamma_grad real
    reduce_precision regularized_incomplete_beta rem round rsqrt select_n sign sin sinh sqrt square
    stop_gradient sub tan tanh zeta
    """.split()
)
_SIGNS = {
    "add": "+",
    "add_any": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "rem": "%",
    "pow": "**",
}


def typed(array: ArrayLike) -> tuple[DType, Shape]:
    """Return the dtype and shape of an array or scalar."""
    dtype = getattr(array, "dtype", None)
    return (np.asarray(array).dtype if dtype is None else dtype), tuple(np.shape(array))


def elements_of(equation: Equation, arrays: ArrayLikes, index: Shape) -> list[Element | None]:
    """Return the element of each operand that made one element of the result, or None for several.

    For an elementwise operation it is the element at `index`; for a matrix product the elements
    are the first two whose product is not finite.
    """
    name = equation.primitive.name
    nothing: list[Element | None] = [None] * len(arrays)
    if any(isinstance(typed(x)[0], ExtendedDType) for x in arrays):
        return nothing
    hosts = [np.asarray(x) for x in arrays]
    if name in ELEMENTWISE or not any(x.shape for x in hosts):
        return [_at(x, index) for x in hosts]
    if name == "dot_general":
        return _factors(equation, hosts, index) or nothing
    return nothing


def _at(array: NumPyArray, index: Shape) -> Element | None:
    """Return the element of an array at an index into the shape that it is broadcast to."""
    if array.ndim > len(index):
        return None
    trailing = index[len(index) - array.ndim :]
    return array[tuple(0 if n == 1 else i for i, n in zip(trailing, array.shape, strict=True))]


def _factors(
    equation: Equation, hosts: Sequence[NumPyArray], index: Shape
) -> list[Element | None] | None:
    """Return the first two factors of a matrix product's element whose product is not finite."""
    (left_sums, right_sums), (left_batch, right_batch) = equation.params["dimension_numbers"]
    batch = index[: len(left_batch)]
    rest = list(index[len(left_batch) :])
    rows: list[NumPyArray] = []
    for host, sums, batched in zip(hosts, (left_sums, right_sums), (left_batch, right_batch)):
        free = [i for i in range(host.ndim) if i not in sums and i not in batched]
        here = dict(zip(batched, batch, strict=True)) | {i: rest.pop(0) for i in free}
        summed = [i for i in range(host.ndim) if i in sums]
        row = host[tuple(here.get(i, slice(None)) for i in range(host.ndim))]
        rows.append(np.transpose(row, [summed.index(i) for i in sums]).reshape(-1))
    products = rows[0] * rows[1]
    wrong = ~np.isfinite(products)
    if not wrong.any():
        return None
    first = int((np.isnan(products) if np.isnan(products).any() else wrong).argmax())
    return [row[first] for row in rows]


def expression_of(
    equation: Equation, arrays: ArrayLikes, elements: Sequence[Element | None]
) -> str:
    """Return an operation on elements as text, such as "log(-0.3)" or "0.0 / 0.0"."""
    name = equation.primitive.name
    if elements and all(x is not None for x in elements):
        texts = [_text(x) for x in elements]
        if name in _SIGNS and len(texts) == 2:
            return f"{texts[0]} {_SIGNS[name]} {texts[1]}"
        if name == "integer_pow":
            return f"{texts[0]} ** {equation.params['y']}"
        if name == "dot_general":
            return f"dot_general(... + {texts[0]} * {texts[1]} + ...)"
        if name == "convert_element_type":
            return f"{name}({texts[0]}, {np.dtype(equation.params['new_dtype'])})"
        return f"{name}({', '.join(texts)})"
    return f"{name}({', '.join(map(_whole, arrays))})"


def _text(element: ArrayLike | Element | None) -> str:
    return str(np.asarray(element)[()])


def _whole(array: ArrayLike) -> str:
    """Return an array as text for an expression: its type and its counts of NaNs and infinities."""
    dtype, shape = typed(array)
    if not shape and not isinstance(dtype, ExtendedDType):
        return _text(array)
    text = f"{dtype}[{','.join(map(str, shape))}]"
    if isinstance(dtype, ExtendedDType) or not issubdtype(dtype, np.inexact):
        return text
    host = np.asarray(array)
    wrong = host[~np.isfinite(host)]
    if not wrong.size:
        return text
    values = list(dict.fromkeys(map(_text, wrong[:1000])))[:3]
    return f"{text} with {' and '.join(values)}"
