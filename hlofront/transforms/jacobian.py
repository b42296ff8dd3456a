"""Jacobians and Hessians: jvp or vjp, vmapped over a basis of the tangent space."""

from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import float0, issubdtype
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes, NumPyArray
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import DebugInfo, Value
from hlofront.core.names import JVP, VMAP, transformed
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.arrays.slicing import split
from hlofront.primitives.elementwise.compare import eq
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.rules.batching import move_axis, to_front
from hlofront.transforms import differentiated_dtypes
from hlofront.transforms import grad as gradients
from hlofront.transforms.batch import batch_flat
from hlofront.transforms.flatten import check_callable
from hlofront.transforms.jvp import jvp_flat
from hlofront.transforms.vmap import documented


def jacfwd(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., PyTree]:
    """Return a function that computes the Jacobian of `fun` in forward mode, column by column.

    Forward mode suits functions with fewer inputs than outputs.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the position, or positions, of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.
      holomorphic: whether `fun` is holomorphic, with complex arguments and a complex result.

    Returns:
      A function of the arguments of `fun` that returns, per leaf of the result, a pytree like the
      argument (a tuple of them for a sequence of argnums) of arrays of shape
      (*result.shape, *argument.shape). The Jacobian of an integer result is zero, in its dtype.

    Raises:
      TypeError: if arguments are not real (not complex, if holomorphic).

    Example:
      >>> jax.jacfwd(lambda x: jnp.array([x[0] * x[1], x[0] ** 2]))(jnp.array([2.0, 3.0]))
      Array([[3., 2.],
             [4., 0.]], dtype=float32)
    """
    check_callable(fun)
    argnums = gradients.argument_numbers(argnums)

    @boundary
    def jacobian_fun(*args: object, **kwargs: object) -> PyTree:
        chosen, partial = gradients.at_positions(fun, args, kwargs, argnums, ValueError)
        leaves, in_tree = tree.tree_flatten(chosen)
        for leaf in leaves:
            _check_forward_input(leaf, holomorphic)
        signature = gradients.Signature(fun)
        call = gradients.FlatCall(partial, signature, in_tree, has_aux)
        avals = [typeof(leaf) for leaf in leaves]
        basis, size = _basis(avals)
        outputs: list[Value] = []

        info = DebugInfo("jacfwd", signature.find_where)

        def push(*tangents: Value) -> list[Value]:
            with transformed(JVP):
                primals, tangents_out = jvp_flat(call, leaves, tangents, info)
            outputs.extend(primals)
            count = call.out_tree.num_leaves
            return [gradients.instantiate(t) for t in tangents_out[:count]]

        with transformed(VMAP):
            columns, axes = batch_flat(push, AxisData(None, size), basis, [0] * len(basis))
            columns = [to_front(x, a, size) for x, a in zip(columns, axes, strict=True)]
        result, aux = call.split(outputs)
        for leaf in tree.tree_leaves(result):
            if holomorphic:
                differentiated_dtypes.check_output("jacfwd", typeof(leaf), True)
        results = outputs[: len(columns)]
        jacobian = call.out_tree.unflatten(
            [
                _in_structure([_last(x) for x in _parts(column, avals, 0)], in_tree, avals, argnums)
                for column in map(_like_result, columns, results)
            ]
        )
        return (jacobian, aux) if has_aux else jacobian

    return documented(jacobian_fun, fun, _summary(fun, argnums))


def jacrev(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., PyTree]:
    """Return a function that computes the Jacobian of `fun` in reverse mode, row by row.

    Reverse mode suits functions with fewer outputs than inputs; `jacfwd` suits the others.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the position, or positions, of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.
      holomorphic: whether `fun` is holomorphic, with complex arguments and a complex result.
      allow_int: whether to allow integer and boolean arguments, whose derivatives have dtype
        float0.

    Returns:
      A function of the arguments of `fun` that returns, per leaf of the result, a pytree like the
      argument (a tuple of them for a sequence of argnums) of arrays of shape (*result.shape,
      *argument.shape); with `has_aux` the pair (Jacobian, auxiliary data).

    Raises:
      TypeError: from the call, if an argument's dtype cannot be differentiated.

    Example:
      >>> jax.jacrev(lambda x: x ** 2)(jnp.arange(3.0))
      Array([[0., 0., 0.],
             [0., 2., 0.],
             [0., 0., 4.]], dtype=float32)
    """
    check_callable(fun)
    argnums = gradients.argument_numbers(argnums)

    @boundary
    def jacobian_fun(*args: object, **kwargs: object) -> PyTree:
        chosen, partial = gradients.at_positions(fun, args, kwargs, argnums, ValueError)
        for leaf in tree.tree_leaves(chosen):
            if holomorphic:
                _check_forward_input(leaf, True, "jacrev")
            else:
                differentiated_dtypes.check_real_or_complex("jacrev", leaf, allow_int)
        result, pullback, aux = gradients.pull_back(partial, chosen, has_aux, "jacrev")
        leaves, out_tree = tree.tree_flatten(result)
        avals = [typeof(leaf) for leaf in leaves]
        for aval in avals:
            differentiated_dtypes.check_output("jacrev", aval, holomorphic)
        basis, size = _basis(avals)
        axis = AxisData(None, size)
        with transformed(VMAP):
            rows, axes = batch_flat(lambda *ct: pullback.flat(ct), axis, basis, [0] * len(basis))
            rows = [x if _is_float0(x) else to_front(x, a, size) for x, a in zip(rows, axes)]
        in_tree = pullback.in_tree
        # Per leaf of the argument, the derivatives of each leaf of the result: the transposed
        # order.
        by_input = [
            [np.zeros((*a.shape, *x.shape), x.dtype) for a in avals]
            if _is_float0(x)
            else [
                _typed_like(reshape(part, (*aval.shape, *typeof(x).shape[1:])), typeof(argument))
                for part, aval in zip(_parts(x, avals, 0), avals, strict=True)
            ]
            for x, argument in zip(rows, tree.tree_leaves(chosen), strict=True)
        ]
        jacobian = out_tree.unflatten(
            [
                _chosen(in_tree.unflatten([parts[i] for parts in by_input]), argnums)
                for i in range(len(avals))
            ]
        )
        return (jacobian, aux) if has_aux else jacobian

    return documented(jacobian_fun, fun, _summary(fun, argnums))


def hessian(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., PyTree]:
    """Return a function that computes the Hessian of `fun`, as `jacfwd(jacrev(fun))`.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the position, or positions, of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.
      holomorphic: whether `fun` is holomorphic, with complex arguments and a complex result.

    Returns:
      A function of the arguments of `fun` that returns, per leaf of the result, a pytree of pytrees
      like the argument, of arrays of shape (*result.shape, *argument.shape, *argument.shape).

    Raises:
      TypeError: if arguments are not real (not complex, if holomorphic).

    Example:
      >>> jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([2.0, 3.0]))
      Array([[6., 4.],
             [4., 0.]], dtype=float32)
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def _summary(fun: Callable[..., PyTree], argnums: object) -> str:
    name = source.callable_name(fun)
    return (
        f"Jacobian of {name} with respect to positional argument(s) {argnums}: it takes the same "
        "arguments, and returns the derivatives of the result with respect to them."
    )


def _check_forward_input(x: Value, holomorphic: bool, name: str = "jacfwd") -> None:
    dtype = differentiated_dtypes.dtype_of_argument(x)
    if holomorphic:
        differentiated_dtypes.check_complex(name, dtype)
    elif not issubdtype(dtype, np.floating):
        raise TypeError(
            f"{name} requires real-valued inputs (input dtype that is a sub-dtype of "
            f"np.floating), but got {differentiated_dtypes.dtype_name(dtype)}. For holomorphic "
            "differentiation, pass holomorphic=True. For differentiation of non-holomorphic "
            "functions involving complex inputs or integer inputs, use jax.jvp directly."
        )


def _basis(avals: Avals) -> tuple[list[ArrayLike], int]:
    """Return the standard basis of values of these avals along a new axis 0, and its size."""
    size = sum(aval.size for aval in avals)
    if not avals:
        return [], 0
    index = np.dtype(np.int32)
    unit = eq(broadcasted_iota(index, (size, size), 0), broadcasted_iota(index, (size, size), 1))
    columns = split(unit, [aval.size for aval in avals], 1) if len(avals) > 1 else [unit]
    return [
        reshape(convert(column, aval.dtype, aval.weak_type), (size, *aval.shape))
        if aval.ndim != 1
        else convert(column, aval.dtype, aval.weak_type)
        for column, aval in zip(columns, avals, strict=True)
    ], size


def _parts(x: ArrayLike, avals: Avals, axis: int) -> ArrayLikes:
    """Split an array along an axis into pieces of the avals' sizes."""
    return split(x, [aval.size for aval in avals], axis) if len(avals) > 1 else [x]


def _like_result(column: ArrayLike, result: Value) -> ArrayLike:
    """Return a column of a Jacobian: for an integer result, zeros of the result's dtype."""
    aval = typeof(column)
    if aval.dtype != float0:
        return _typed_like(column, typeof(result))
    return full_like(result, 0, shape=aval.shape)


def _typed_like(x: ArrayLike, expected: ShapedArray) -> ArrayLike:
    """Return derivatives with the weak types of `expected`, which has their dtypes."""
    aval = typeof(x)
    return convert(x, aval.dtype, expected.weak_type) if aval.dtype == expected.dtype else x


def _last(x: ArrayLike) -> ArrayLike:
    with transformed(VMAP):
        return move_axis(x, 0, typeof(x).ndim - 1)


def _in_structure(
    parts: Sequence[Value], in_tree: PyTreeDef, avals: Avals, argnums: int | tuple[int, ...]
) -> PyTree:
    """Return Jacobian columns as a pytree like the arguments, with their shapes as last axes."""
    shaped = [
        part if aval.ndim == 1 else reshape(part, (*typeof(part).shape[:-1], *aval.shape))
        for part, aval in zip(parts, avals, strict=True)
    ]
    return _chosen(in_tree.unflatten(shaped), argnums)


def _chosen(trees: tuple[PyTree, ...], argnums: int | tuple[int, ...]) -> PyTree:
    return trees[0] if isinstance(argnums, int) else trees


def _is_float0(x: Value) -> TypeGuard[NumPyArray]:
    return issubclass(type(x), np.ndarray) and x.dtype == gradients.float0
