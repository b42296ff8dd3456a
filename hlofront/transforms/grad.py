"""Derivatives of functions of pytrees: jvp, linearize, vjp, grad and value_and_grad."""

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import float0
from hlofront.base.elements import host_number
from hlofront.base.tree import PyTree
from hlofront.base.typing import is_tuple_or_list
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.jaxpr import DebugInfo, Value
from hlofront.core.names import JVP, transformed
from hlofront.core.sharding.requested_shardings import cotangent_sharding
from hlofront.core.symbolic_zeros import Zero
from hlofront.core.trace import Tracer, as_array, as_result
from hlofront.core.typed_scalars import typed
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.primitives.sharding.resharding import bind_reshard
from hlofront.transforms.arguments import Signature
from hlofront.transforms.differentiated_dtypes import (
    check_holomorphic,
    check_output,
    check_real_or_complex,
)
from hlofront.transforms.flatten import check_callable, result_paths
from hlofront.transforms.jvp import jvp_flat
from hlofront.transforms.linear_function import LinearFunction, LinearFunctionSpec, as_returned
from hlofront.transforms.linearize import Linearized, linearize_flat
from hlofront.transforms.pullback import (
    Pullback,
    PullbackSpec,
    flags_of_leaves,
    residuals_by_source,
)
from hlofront.transforms.simplify import dead_code, without_unused_constants
from hlofront.transforms.vmap import documented

# Stands for a traced leaf of an auxiliary value.
_TRACED = object()


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class FlatCall:
    """A function of pytrees as a function of flat leaves; a call sets `out_tree`."""

    fun: Callable[..., PyTree]
    signature: Signature
    in_tree: PyTreeDef
    has_aux: bool = False
    out_tree: Any = dataclasses.field(init=False, default=None)
    aux: Any = dataclasses.field(init=False, default=None)

    def __call__(self, *leaves: Value) -> list[Value]:
        results = self.fun(*self.in_tree.unflatten(leaves))
        traced: list[Value] = []
        if self.has_aux:
            if not is_tuple_or_list(results) or len(results) != 2:
                raise TypeError(
                    "expected function with aux output to return a two-element tuple, but got "
                    f"type {type(results)} with value {source.shortened(repr(results))}"
                )
            results, aux = results
            leaves_of_aux, aux_tree = tree.tree_flatten(aux)
            traced = [x for x in leaves_of_aux if isinstance(x, Tracer)]
            # Tracers are not kept: a search for leaks would find them here.
            known = [_TRACED if isinstance(x, Tracer) else x for x in leaves_of_aux]
            self.aux = known, aux_tree
        outputs, self.out_tree = tree.tree_flatten(results)
        for i, x in enumerate(outputs):
            if not is_value(x):
                path = result_paths(self.out_tree)[i].removeprefix("result")
                raise TypeError(
                    f"function {self.signature.where} returned a value of type {type(x)}"
                    f"{' at output component ' + path if path else ''}, which is not a valid JAX "
                    "type"
                )
        return [*outputs, *traced] if self.has_aux else outputs

    def split(self, outputs: Sequence[Value]) -> tuple[PyTree, PyTree]:
        """Return (result, auxiliary value) as pytrees, from the flat outputs of a call."""
        count = self.out_tree.num_leaves
        result = self.out_tree.unflatten(map(as_returned, outputs[:count]))
        if not self.has_aux:
            return result, None
        # Leaves of the auxiliary value that are not traced are returned unchanged.
        leaves, aux_tree = self.aux
        traced = iter(outputs[count:])
        aux = [as_result(next(traced)) if x is _TRACED else x for x in leaves]
        return result, aux_tree.unflatten(aux)


def _check_values(signature: Signature, args: tuple[object, ...], leaves: Sequence[object]) -> None:
    for position, leaf in enumerate(leaves):
        if not is_value(leaf):
            name = signature.argument_names((args, {}))[position]
            raise TypeError(
                f"Argument {source.shortened(repr(leaf))} of type {type(leaf)} is not a valid JAX "
                f"type: it was passed as {name} to {signature.where}, which is to be "
                "differentiated. Close over it, or choose other argnums."
            )


# ---- forward -------------------------------------------------------------------------------------


@boundary
def jvp(
    fun: Callable[..., PyTree], primals: PyTree, tangents: PyTree, has_aux: bool = False
) -> PyTree:
    """Return the value of a function, and its directional derivative along `tangents`.

    Args:
      fun: a function of pytrees of arrays.
      primals: the arguments, as a tuple or list.
      tangents: a pytree with the structure, shapes and dtypes of `primals`; float0 for integers.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.

    Returns:
      (result, tangent of the result), or with `has_aux` (result, tangent, auxiliary data).

    Raises:
      TypeError: if structures or dtypes differ.
      ValueError: if shapes differ.

    Example:
      >>> value, tangent = jax.jvp(jnp.sin, (jnp.array(0.0),), (jnp.array(2.0),))
      >>> value, tangent
      (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    if not is_tuple_or_list(primals) or not is_tuple_or_list(tangents):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}."
        )
    leaves, in_tree = tree.tree_flatten(primals)
    tangent_leaves, tangent_tree = tree.tree_flatten(tangents)
    if in_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals "
            f"have tree structure {in_tree} whereas tangents have tree structure {tangent_tree}."
        )
    signature = Signature(fun)
    _check_values(signature, tuple(primals), leaves)
    for leaf, leaf_tangent in zip(leaves, tangent_leaves, strict=True):
        _check_tangent(typeof(leaf), typeof(leaf_tangent))
    call = FlatCall(fun, signature, in_tree, has_aux)
    with transformed(JVP):
        outputs, tangents_out = jvp_flat(
            call, leaves, tangent_leaves, DebugInfo("jvp", signature.find_where)
        )
    result, aux = call.split(outputs)
    # A tangent that was passed in is returned unchanged; zeros made by rules are NumPy arrays too.
    handed_in = set(map(id, tangent_leaves))
    tangent = call.out_tree.unflatten(
        [
            as_array(instantiate(t))
            if type(t) is Zero
            else (as_returned if id(t) in handed_in else as_result)(t)
            for t in tangents_out[: call.out_tree.num_leaves]
        ]
    )
    return (result, tangent, aux) if has_aux else (result, tangent)


def _check_tangent(primal: ShapedArray, tangent: ShapedArray) -> None:
    expected = primal.to_tangent_aval()
    if tangent.dtype != expected.dtype:
        shown = expected.dtype if expected.dtype != float0 else "float0"
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{primal.dtype} and so expected tangent dtype {shown}, but got tangent dtype "
            f"{tangent.dtype} instead."
        )
    if tangent.shape != expected.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; got primal shape "
            f"{primal.shape} and tangent shape {tangent.shape}."
        )


@boundary
def linearize(
    fun: Callable[..., PyTree], *primals: object, has_aux: bool = False, in_nzs: PyTree = None
) -> PyTree:
    """Return the value of a function, and its derivative as a linear function of tangents.

    Args:
      fun: a function of pytrees of arrays.
      primals: the arguments at which to linearize.
      has_aux: whether `fun` returns (result, auxiliary data).
      in_nzs: which arguments may have a nonzero tangent: a boolean, or a tuple with an entry per
        argument, either a boolean or a pytree prefix of the argument in which tuples stand for any
        container. None if all may.

    Returns:
      (result, f_jvp), or with `has_aux` (result, f_jvp, auxiliary data). `f_jvp(*tangents)`
      returns the tangent of the result without evaluating `fun` again; it is a pytree of its
      residuals.

    Raises:
      TypeError: if an argument or a result is not an array.

    Example:
      >>> value, push_forward = jax.linearize(jnp.sin, jnp.array(0.0))
      >>> push_forward(1.0), push_forward(2.0)
      (Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    linearized, call = _linearize(fun, primals, has_aux, "linearize", in_nzs)
    result, aux = call.split(linearized.outputs)
    count = call.out_tree.num_leaves
    # f_jvp holds its residuals and may be called many times, so remove dead code.
    smaller, _ = dead_code(linearized.program.jaxpr, True, True)
    program = without_unused_constants(smaller, linearized.program)
    f_jvp = LinearFunction(
        program.consts,
        LinearFunctionSpec(
            jaxpr=program.jaxpr,
            in_tree=call.in_tree,
            out_tree=call.out_tree,
            in_avals=tuple(linearized.in_avals),
            has_tangent=tuple(linearized.has_tangent),
            present=tuple(linearized.present[:count]),
            out_avals=tuple([typeof(x) for x in linearized.outputs[:count]]),
        ),
    )
    return (result, f_jvp, aux) if has_aux else (result, f_jvp)


def _linearize(
    fun: Callable[..., PyTree],
    primals: tuple[object, ...],
    has_aux: bool,
    traced_for: str,
    in_nzs: PyTree = None,
) -> tuple[Linearized, FlatCall]:
    leaves, in_tree = tree.tree_flatten(primals)
    nonzero = None if in_nzs is None else flags_of_leaves(in_nzs, in_tree, "in_nzs", traced_for)
    signature = Signature(fun)
    _check_values(signature, primals, leaves)
    if traced_for != "linearize":
        leaves = list(map(typed, leaves))
    call = FlatCall(fun, signature, in_tree, has_aux)
    info = DebugInfo(traced_for, signature.find_where, lambda: signature.names_in(in_tree))
    return linearize_flat(call, leaves, info, traced_for == "linearize", nonzero), call


# ---- reverse -------------------------------------------------------------------------------------


@boundary
def vjp(
    fun: Callable[..., PyTree],
    *primals: object,
    has_aux: bool = False,
    reduce_axes: Sequence[object] = (),
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
) -> PyTree:
    """Return the value of a function, and its vector-Jacobian product as a linear function.

    Args:
      fun: a function of pytrees of arrays.
      primals: the arguments at which to differentiate.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.
      reduce_axes: () only.
      saveable_args: which arguments f_vjp may hold for the backward pass: a boolean, or a tuple
        with an entry per argument, either a boolean or a pytree prefix of the argument in which
        tuples stand for any container. Where it is False, `f_vjp.args_res` has NotSaveable()
        instead of an array that the backward pass reads, and the caller must set that entry before
        calling f_vjp. Values computed from arguments are always held.
      in_nzs: which arguments may have a nonzero tangent, in the same form; None if all may. The
        cotangents of the others are zero, and `f_vjp.out_nzs` says which results depend on an
        argument that may.

    Returns:
      (result, f_vjp), or with `has_aux` (result, f_vjp, auxiliary data). `f_vjp(cotangent)`
      takes a cotangent like the result and returns a tuple of cotangents like the primals; those of
      integers have dtype float0. f_vjp is a pytree of its residuals.

    Raises:
      TypeError: if an argument or a result is not an array.

    Example:
      >>> value, pull_back = jax.vjp(lambda x, y: x * y, jnp.array(2.0), jnp.array(3.0))
      >>> pull_back(1.0)
      (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable(fun)
    refuse_reduce_axes("vjp", reduce_axes)
    result, pullback, aux = pull_back(fun, primals, has_aux, "vjp", saveable_args, in_nzs)
    return (result, pullback, aux) if has_aux else (result, pullback)


def pull_back(
    fun: Callable[..., PyTree],
    primals: tuple[object, ...],
    has_aux: bool,
    traced_for: str,
    saveable_args: PyTree = True,
    in_nzs: PyTree = None,
) -> tuple[PyTree, "Pullback", PyTree]:
    """Return (result, pullback, auxiliary value or None) of `fun` at `primals`."""
    linearized, call = _linearize(fun, primals, has_aux, traced_for, in_nzs)
    result, aux = call.split(linearized.outputs)
    count = call.out_tree.num_leaves
    saveable = None
    if saveable_args is not True:
        saveable = flags_of_leaves(saveable_args, call.in_tree, "saveable_args", traced_for)
    args_res, opaque_residuals, sources = residuals_by_source(
        linearized.program.consts, call.in_tree, tree.tree_leaves(primals), saveable
    )
    pullback = Pullback(
        args_res,
        opaque_residuals,
        PullbackSpec(
            jaxpr=linearized.program.jaxpr,
            in_tree=call.in_tree,
            out_tree=call.out_tree,
            in_avals=tuple(linearized.in_avals),
            has_tangent=tuple(linearized.has_tangent),
            present=tuple(linearized.present),
            out_avals=tuple([typeof(x) for x in linearized.outputs[:count]]),
            signature=call.signature,
            sources=sources,
        ),
    )
    return result, pullback, aux


def refuse_reduce_axes(name: str, reduce_axes: object) -> None:
    """Raise NotImplementedError if `reduce_axes`, an option that JAX has removed, is not empty."""
    if reduce_axes:
        raise NotImplementedError(  # JAX raises this class.
            f"reduce_axes argument to {name} is deprecated: give () or leave it out"
        )


def grad(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[..., PyTree]:
    """Return a function that computes the gradient of `fun`, whose result is a scalar.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the position, or positions, of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.
      holomorphic: whether `fun` is holomorphic, with complex arguments and a complex result.
      allow_int: whether to allow integer and boolean arguments, whose gradients are of float0.
      reduce_axes: () only.

    Returns:
      A function of the arguments of `fun` that returns the gradient, in the structure of the
      argument, or a tuple of gradients for a sequence of argnums; with `has_aux` the pair
      (gradient, auxiliary data).

    Raises:
      TypeError: if the result is not a scalar, or arguments or result are not of dtypes that have
        gradients.

    Example:
      >>> loss = lambda w, x: jnp.sum((w * x - 1) ** 2)
      >>> jax.grad(loss)(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]))
      Array([ 0., 30.], dtype=float32)
      >>> jax.grad(jnp.sin)(0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    value_and_grad_fun = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @boundary
    def grad_fun(*args: object, **kwargs: object) -> PyTree:
        value, gradient = value_and_grad_fun(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    name = source.callable_name(fun)
    return documented(
        grad_fun,
        fun,
        f"Gradient of {name} with respect to positional argument(s) {argnums}: it takes the "
        "same arguments, and returns what has the shape of the arguments at these positions.",
    )


def value_and_grad(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[..., PyTree]:
    """Return a function that computes the result of `fun`, a scalar, and its gradient.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the position, or positions, of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns (result, auxiliary data), the latter not differentiated.
      holomorphic: whether `fun` is holomorphic, with complex arguments and a complex result.
      allow_int: whether to allow integer and boolean arguments, whose gradients are of float0.
      reduce_axes: () only.

    Returns:
      A function of the arguments of `fun` that returns (result, gradient), or with `has_aux`
      ((result, auxiliary data), gradient).

    Raises:
      TypeError: if the result is not a scalar, or arguments or result are not of dtypes that have
        gradients.

    Example:
      >>> loss = lambda w: (jnp.sum(w**2), {"largest": w.max()})
      >>> (value, facts), gradient = jax.value_and_grad(loss, has_aux=True)(jnp.array([1.0, 2.0]))
      >>> value, facts["largest"], gradient
      (Array(5., dtype=float32), Array(2., dtype=float32), Array([2., 4.], dtype=float32))
    """
    check_callable(fun)
    refuse_reduce_axes("value_and_grad", reduce_axes)
    argnums = argument_numbers(argnums)
    check_input = check_holomorphic if holomorphic else check_real_or_complex

    @boundary
    def value_and_grad_fun(*args: object, **kwargs: object) -> PyTree:
        chosen, partial = at_positions(fun, args, kwargs, argnums)
        for leaf in tree.tree_leaves(chosen):
            check_input("grad", leaf, allow_int)
        result, pullback, aux = pull_back(partial, chosen, has_aux, "grad")
        _check_scalar(result)
        aval = typeof(result)
        check_output("grad", aval, holomorphic)
        one = host_number(1, aval.dtype)
        if aval.weak_type and typeof(one.item()) == aval:
            # A user's backward rule reads the shape and dtype of its cotangent.
            one = as_array(one.item())
        sharding = cotangent_sharding(aval)
        if sharding is not None and sharding.mesh.explicit_axes:
            # The cotangent is on the mesh, where it may be unreduced.
            one = bind_reshard(one, sharding)
        gradients = pullback.in_tree.unflatten(map(as_array, pullback.flat([one])))
        gradient = gradients[0] if isinstance(argnums, int) else gradients
        return ((result, aux), gradient) if has_aux else (result, gradient)

    name = source.callable_name(fun)
    return documented(
        value_and_grad_fun,
        fun,
        f"Value and gradient of {name} with respect to positional argument(s) {argnums}: it "
        "takes the same arguments, and returns the value and what has the shape of the arguments "
        "at these positions.",
    )


def argument_numbers(argnums: Any) -> int | tuple[int, ...]:
    """Return argument positions as an int or a tuple of ints.

    Raises:
      TypeError: if they are not integers.
    """
    if is_tuple_or_list(argnums):
        return tuple(map(operator.index, argnums))
    return operator.index(argnums)


def at_positions(
    fun: Callable[..., PyTree],
    args: tuple[PyTree, ...],
    kwargs: dict[str, object],
    argnums: int | Sequence[int],
    too_few: type[Exception] = TypeError,
) -> tuple[tuple[PyTree, ...], Callable[..., PyTree]]:
    """Return the arguments at `argnums`, and `fun` as a function of only these arguments.

    Raises:
      too_few: if a position is beyond the last argument.
      ValueError: for a negative position out of range.
    """
    positions = (argnums,) if isinstance(argnums, int) else argnums
    if any(not -len(args) <= n < len(args) for n in positions):
        most = max(n + 1 if n >= 0 else -n for n in positions)
        beyond = max(positions) >= len(args)
        raise (too_few if beyond else ValueError)(
            f"differentiating with respect to argnums={argnums} requires at least {most} "
            f"positional arguments to be passed by the caller, but got only {len(args)} "
            "positional arguments."
        )
    positions = tuple([n % len(args) for n in positions])
    if not kwargs and positions == tuple(range(len(args))):
        return args, fun
    rest = list(args)
    for n in positions:
        rest[n] = None

    def partial(*chosen: object) -> PyTree:
        whole = list(rest)
        for n, x in zip(positions, chosen, strict=True):
            whole[n] = x
        return fun(*whole, **kwargs)

    partial.__wrapped__ = fun  # type: ignore[attr-defined]
    partial.__name__ = source.callable_name(fun)
    return tuple([args[n] for n in positions]), partial


def _check_scalar(result: Value) -> None:
    message = "Gradient only defined for scalar-output functions. Output "
    if not is_value(result):
        raise TypeError(
            f"{message}was {source.shortened(repr(result))}. To return other values with the "
            "scalar, return a pair (scalar, values) and give has_aux=True."
        )
    if typeof(result).shape:
        raise TypeError(
            f"{message}had shape: {typeof(result).shape}. Make it a scalar, as by its sum or mean, "
            "or compute the Jacobian, by jacrev or jacfwd."
        )
