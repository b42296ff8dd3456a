"""The base class of sparse arrays, whose pytree leaves are their buffers."""

import abc
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self

from hlofront.base import tree
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Params, Shape
from hlofront.core.trace import Tracer, process
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.sparse.elements import todense_p


def _refused(name: str) -> Callable[..., Any]:
    """Return an operator that raises an error, for formats of sparse arrays that do not have it."""

    def method(self: "JAXSparse", *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(  # JAX raises this class.
            f"{self.__class__}.{name}: this format has no such operation; convert the array to "
            "BCOO, which has most, or to a dense one with .todense()"
        )

    method.__name__ = name
    method.__qualname__ = f"JAXSparse.{name}"
    return method


class JAXSparse(abc.ABC):
    """The base class of sparse arrays.

    Its subclasses are pytrees: functions of them are transformed and compiled like others.

    Attributes:
      shape: the shape of the array.
    """

    data: Array
    shape: Shape

    def __init__(self, args: ArrayLikes, *, shape: Sequence[int]):
        self.shape = tuple(shape)

    @property
    @abc.abstractmethod
    def nse(self) -> int:
        """The number of stored elements."""

    @property
    @abc.abstractmethod
    def dtype(self) -> DType:
        """The dtype of the elements."""

    @abc.abstractmethod
    def todense(self) -> Array:
        """Return the dense array."""

    @abc.abstractmethod
    def transpose(self, axes: Sequence[int] | None = None) -> "JAXSparse":
        """Return the array with its axes permuted, or reversed for None."""

    @abc.abstractmethod
    def tree_flatten(self) -> tuple[tuple[Array, ...], Params]:
        """Return the buffers as children, and the shape and other static fields."""

    @classmethod
    def tree_unflatten(cls, aux_data: Params, children: Sequence[Array]) -> "JAXSparse":
        """Rebuild the array from buffers and the static fields that `tree_flatten` returned."""
        raise NotImplementedError(  # JAX raises this class.
            f"{cls.__name__}.tree_unflatten: a subclass of JAXSparse must define it, as well as "
            "tree_flatten"
        )

    @property
    def size(self) -> int:
        """The number of elements of the dense array."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> "JAXSparse":
        """The array with its axes reversed."""
        return self.transpose()

    def block_until_ready(self) -> "JAXSparse":
        """Wait until the buffers are computed, and return the array."""
        for buffer in tree.tree_leaves(self):
            buffer.block_until_ready()
        return self

    def _extent(self) -> str:
        """Return the part of the array's text that follows its shape, such as "nse=3"."""
        return f"nse={self.nse}"

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype.name}{list(self.shape)}, {self._extent()})"
        except (AttributeError, TypeError):
            # Pytree functions may put any object instead of a buffer, and errors print it.
            return f"{name}(<invalid>)"
        if isinstance(self.data, Tracer):
            text = f"{type(self.data).__name__}[{text}]"
        return text

    def __len__(self) -> int:
        return self.shape[0]

    # Sparse arrays are compared element by element, as dense ones are.
    __hash__ = None  # type: ignore[assignment]

    __neg__ = _refused("__neg__")
    __pos__ = _refused("__pos__")
    __matmul__ = _refused("__matmul__")
    __rmatmul__ = _refused("__rmatmul__")
    __mul__ = _refused("__mul__")
    __rmul__ = _refused("__rmul__")
    __add__ = _refused("__add__")
    __radd__ = _refused("__radd__")
    __sub__ = _refused("__sub__")
    __rsub__ = _refused("__rsub__")
    __getitem__ = _refused("__getitem__")
    sum = _refused("sum")


class SparseFormat(JAXSparse):
    """The base class of the formats of this package, whose buffers are attributes."""

    # The names of the buffers, the stored elements first, and the buffers.
    _buffer_names: ClassVar[tuple[str, ...]]
    _bufs: ClassVar[property]

    def __init_subclass__(cls) -> None:
        if "_buffer_names" in cls.__dict__:
            cls._bufs = property(operator.attrgetter(*cls._buffer_names))

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self.data.dtype

    def tree_flatten(self) -> tuple[tuple[Array, ...], Params]:
        return self._bufs, {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: Params, children: Sequence[Array]) -> Self:
        mat = object.__new__(cls)
        mat.__dict__.update(zip(cls._buffer_names, children, strict=True))
        mat.__dict__.update(aux_data)
        return mat


_LEAF = tree.tree_structure(0)


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """Return the dense array of a sparse one; dense arrays are returned unchanged.

    In a function that `sparsify` transforms, arguments that are sparse become dense here.

    Args:
      arr: a sparse array such as BCOO, or a dense array or scalar.

    Returns:
      An array of the shape and dtype of `arr`.
    """
    if isinstance(arr, JAXSparse):
        return arr.todense()
    return tree.tree_map(lambda x: process(todense_p, (asarray(x),), {"tree": _LEAF}), arr)
