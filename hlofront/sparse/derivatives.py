"""Derivatives of functions of sparse arrays, with respect to their stored elements."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hlofront.base import tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.sparse.arrays import JAXSparse
from hlofront.sparse.bcoo import BCOO
from hlofront.transforms import grad as dense_gradients
from hlofront.transforms import jacobian as dense_jacobians

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def _is_sparse(x: object) -> "TypeIs[JAXSparse]":
    return isinstance(x, JAXSparse)


def _with_data(x: JAXSparse | ArrayLike, data: ArrayLike) -> JAXSparse | ArrayLike:
    """Return a sparse array with other data; for a dense array, return `data` itself."""
    if not _is_sparse(x):
        return data
    leaves, structure = tree.tree_flatten(x)
    return structure.unflatten([data, *leaves[1:]])


def _jacobian_of(x: JAXSparse | ArrayLike, data: PyTree) -> PyTree:
    """Return the Jacobian with respect to a sparse array, sparse if it is BCOO."""
    if not isinstance(x, BCOO):
        return data

    def like(derivative: Array) -> BCOO:
        new_axes = derivative.ndim - x.data.ndim
        batch = derivative.shape[:new_axes]
        target = (*batch, *x.indices.shape)
        indices = broadcast_in_dim(x.indices, target, range(new_axes, len(target)))
        info = x._info._replace(shape=(*batch, *x.shape))
        return BCOO((derivative, indices), **info._asdict())

    return tree.tree_map(like, data)


@tree.register_pytree_node_class
class _Data:
    """The data of all arguments, as a pytree node of a class that users cannot pass."""

    def __init__(self, *arrays: ArrayLike):
        self.arrays = arrays

    def tree_flatten(self) -> tuple[tuple[ArrayLike, ...], None]:
        return self.arrays, None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: ArrayLikes) -> "_Data":
        return cls(*children)


class _Split:
    """The arguments of a call, split into the data of sparse arrays and everything else."""

    def __init__(self, fun: Callable[..., PyTree], args: tuple[PyTree, ...], argnums: Any):
        self.fun = fun
        self.args = args
        self.single = isinstance(argnums, int)
        numbers = (argnums,) if self.single else tuple(argnums)
        self.numbers = [number % len(args) for number in numbers]
        chosen = [args[number] for number in self.numbers]
        self.leaves, self.structure = tree.tree_flatten(chosen, _is_sparse)
        self.data = _Data(*[x.data if _is_sparse(x) else x for x in self.leaves])

    def call(self, data: _Data, **kwargs: PyTree) -> PyTree:
        """Call the function with other data in the arguments that are differentiated."""
        pairs = zip(self.leaves, data.arrays, strict=True)
        chosen = self.structure.unflatten([_with_data(x, d) for x, d in pairs])
        args = list(self.args)
        for number, value in zip(self.numbers, chosen, strict=True):
            args[number] = value
        return self.fun(*args, **kwargs)

    def joined(self, derivatives: _Data, make: Callable[[Any, Any], PyTree]) -> PyTree:
        """Return derivatives in the structure of the arguments."""
        pairs = zip(self.leaves, derivatives.arrays, strict=True)
        chosen = self.structure.unflatten([make(x, d) for x, d in pairs])
        return chosen[0] if self.single else tuple(chosen)


@boundary
def value_and_grad(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: Any,
) -> Callable[..., tuple[PyTree, PyTree]]:
    """Return a function that computes the result of `fun` and its gradient.

    The gradient with respect to a sparse array has its format and positions.

    Args:
      fun: a function of pytrees of arrays and sparse arrays, whose result is a scalar.
      argnums: the positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair (result, auxiliary data).
      **kwargs: further arguments of `hlofront.value_and_grad`.
    """

    def value_and_gradient(*args: PyTree, **keywords: PyTree) -> tuple[PyTree, PyTree]:
        split = _Split(fun, args, argnums)
        derive = dense_gradients.value_and_grad(split.call, has_aux=has_aux, **kwargs)
        value, derivatives = derive(split.data, **keywords)
        return value, split.joined(derivatives, _with_data)

    return named_as(value_and_gradient, fun)


@boundary
def grad(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: Any,
) -> Callable[..., PyTree]:
    """Return a function that computes the gradient of `fun`, whose result is a scalar.

    The gradient with respect to a sparse array has its format and positions.

    Args:
      fun: a function of pytrees of arrays and sparse arrays.
      argnums: the positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns a pair (result, auxiliary data).
      **kwargs: further arguments of `hlofront.grad`.

    Example:
      >>> from hlofront.experimental import sparse
      >>> m = sparse.BCOO.fromdense(jnp.eye(3))
      >>> sparse.grad(lambda m, x: (m @ x).sum())(m, jnp.arange(3.)).data
      Array([0., 1., 2.], dtype=float32)
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    def gradient(*args: PyTree, **keywords: PyTree) -> PyTree:
        value, derivative = both(*args, **keywords)
        return (derivative, value[1]) if has_aux else derivative

    return named_as(gradient, fun)


def _jacobian(derive: Callable[..., Callable[..., PyTree]]) -> Callable[..., Callable[..., PyTree]]:
    """Return a Jacobian transformation for sparse arrays, made from one for dense arrays."""

    def jacobian_of(
        fun: Callable[..., PyTree],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        **kwargs: Any,
    ) -> Callable[..., PyTree]:
        """Return a function that computes the Jacobian of `fun`.

        The Jacobian with respect to a BCOO array is a BCOO array, in which the axes of the
        result are batch axes.

        Args:
          fun: a function of pytrees of arrays and sparse arrays.
          argnums: the positions of the arguments to differentiate with respect to.
          has_aux: whether `fun` returns a pair (result, auxiliary data).
          **kwargs: further arguments of the function for dense arrays.
        """

        def jacobian_function(*args: PyTree, **keywords: PyTree) -> PyTree:
            split = _Split(fun, args, argnums)
            result = derive(split.call, has_aux=has_aux, **kwargs)(split.data, **keywords)
            derivatives, aux = result if has_aux else (result, None)
            joined = tree.tree_map(
                lambda of_result: split.joined(of_result, _jacobian_of),
                derivatives,
                is_leaf=lambda x: isinstance(x, _Data),
            )
            return (joined, aux) if has_aux else joined

        return named_as(jacobian_function, fun)

    return jacobian_of


jacfwd = _jacobian(dense_jacobians.jacfwd)
jacfwd.__name__ = jacfwd.__qualname__ = "jacfwd"
jacrev = jacobian = _jacobian(dense_jacobians.jacrev)
jacrev.__name__ = jacrev.__qualname__ = "jacrev"
