"""The operators and methods of sparse arrays, which are those of dense ones, sparsified."""

from collections.abc import Callable, Iterator
from typing import Any

from hlofront.base.typing import Array
from hlofront.numpy.elementwise import logic, powers, ufuncs
from hlofront.numpy.products import contraction
from hlofront.sparse import rules as rules  # The rules are registered when it is imported.
from hlofront.sparse.bcoo import BCOO
from hlofront.sparse.bcoo_roles import bcoo_update_layout
from hlofront.sparse.bcsr import BCSR
from hlofront.sparse.sparsify import SparseArray, SparseOrDense, sparsify


def _swapped(
    function: Callable[[SparseOrDense, SparseOrDense], object],
) -> Callable[[SparseOrDense, SparseOrDense], object]:
    def swapped(x: SparseOrDense, y: SparseOrDense) -> object:
        return function(y, x)

    swapped.__name__ = f"r{getattr(function, '__name__', 'operator')}"
    return swapped


def _of_dense(name: str) -> Callable[..., SparseArray | Array]:
    """Return the method of sparse arrays that applies a method of dense arrays to them.

    The arguments, such as indices, are passed on unchanged: only the array is sparse.
    """

    def method(self: SparseArray, *args: object, **kwargs: object) -> SparseArray | Array:
        return sparsify(lambda x: getattr(x, name)(*args, **kwargs))(self)

    method.__name__ = name
    method.__doc__ = f"Return the result of the method `{name}` of dense arrays, for a sparse one."
    return method


def _iterate(array: BCOO) -> Iterator[BCOO | Array]:
    """Return an iterator over the elements along axis 0."""
    return (array[i] for i in range(array.shape[0]))


def _update_layout(
    self: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """Return the array with other numbers of batch and dense axes.

    Args:
      n_batch: the number of batch axes of the result; None for that of the array.
      n_dense: the number of dense axes of the result; None for that of the array.
      on_inefficient: what to do if the result takes more memory than it needs, because sparse axes
        become batch or dense axes: "error", "warn", or None for nothing.

    Raises:
      ValueError: if there are too few axes, or `on_inefficient` is something else.
      SparseEfficiencyError: if the result takes too much memory, for "error".
    """
    return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


_BINARY = {
    "add": ufuncs.add,
    "sub": ufuncs.subtract,
    "mul": ufuncs.multiply,
    "truediv": ufuncs.divide,
    "pow": powers.power,
    "matmul": contraction.matmul,
}
_COMPARISONS = {
    "eq": logic.equal,
    "ne": logic.not_equal,
    "lt": logic.less,
    "le": logic.less_equal,
    "gt": logic.greater,
    "ge": logic.greater_equal,
}
_MEMBERS: dict[str, Callable[..., Any]] = {
    "__abs__": sparsify(ufuncs.abs),
    "__neg__": sparsify(ufuncs.negative),
    "__pos__": sparsify(ufuncs.positive),
    "__getitem__": _of_dense("__getitem__"),
    "__iter__": _iterate,
    "sum": _of_dense("sum"),
    "reshape": _of_dense("reshape"),
    "astype": _of_dense("astype"),
    "update_layout": _update_layout,
}
for _name, _function in _BINARY.items():
    _MEMBERS[f"__{_name}__"] = sparsify(_function)
    _MEMBERS[f"__r{_name}__"] = sparsify(_swapped(_function))
for _name, _function in _COMPARISONS.items():
    _MEMBERS[f"__{_name}__"] = sparsify(_function)
for _name, _member in _MEMBERS.items():
    setattr(BCOO, _name, _member)
for _name in ("__matmul__", "__rmatmul__", "__getitem__"):
    setattr(BCSR, _name, _MEMBERS[_name])
