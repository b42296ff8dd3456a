"""The transposition of linear functions of pytrees: linear_transpose."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLikes
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Value
from hlofront.core.names import TRANSPOSE, transformed
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.core.trace import as_array
from hlofront.primitives.rules.derivatives import zeros_of
from hlofront.transforms.arguments import Signature
from hlofront.transforms.differentiated_dtypes import dtype_name
from hlofront.transforms.flatten import abstract, check_callable, stage_tree
from hlofront.transforms.grad import refuse_reduce_axes
from hlofront.transforms.linear_util import wrap_init
from hlofront.transforms.partial_values import PartialVal, trace_to_jaxpr_nounits
from hlofront.transforms.transpose import transpose_jaxpr


def linear_transpose(
    fun: Callable[..., PyTree], *primals: object, reduce_axes: Sequence[object] = ()
) -> Callable[..., PyTree]:
    """Return the transpose of a linear function.

    Args:
      fun: a function that is linear in all its arguments, pytrees of arrays.
      primals: example arguments: arrays, or objects with a shape and dtype.
      reduce_axes: () only.

    Returns:
      A function from a cotangent like the result to a tuple of cotangents like the arguments; it
      is a pytree of the values that `fun` closes over.

    Raises:
      TypeError: if arguments and results are neither all inexact nor all integers, or the
        structure, shape or dtype of a cotangent is not that of the result.

    Example:
      >>> backward = jax.linear_transpose(lambda x: x[:2] * 3, jnp.zeros(3))
      >>> backward(jnp.array([1.0, 2.0]))
      (Array([3., 6., 0.], dtype=float32),)
    """
    check_callable(fun)
    refuse_reduce_axes("linear_transpose", reduce_axes)
    no_keywords: dict[str, object] = {}
    leaves, in_tree = tree.tree_flatten((primals, no_keywords))
    avals = [abstract(leaf) for leaf in leaves]
    signature = Signature(fun)
    program, out_tree = stage_tree(
        fun, in_tree, avals, DebugInfo("linear_transpose", signature.find_where)
    )
    kinds = {dtype_name(aval.dtype) for aval in (*avals, *program.out_avals)}
    all_float = all(issubdtype(a.dtype, np.inexact) for a in (*avals, *program.out_avals))
    all_int = all(issubdtype(a.dtype, np.integer) for a in (*avals, *program.out_avals))
    if not all_float and not all_int:
        raise TypeError(
            "linear_transpose only supports [float or complex] -> [float or complex], and integer "
            f"-> integer functions, but got dtypes {sorted(kinds)}."
        )

    jaxpr, consts = _with_known_part_run(program, avals)
    return tree.Partial(_Transposed(jaxpr, in_tree, out_tree, tuple(avals)), consts)


def _with_known_part_run(program: ClosedJaxpr, avals: Avals) -> tuple[Jaxpr, tuple[Value, ...]]:
    """Run the equations of a program that read none of its inputs, once and for all calls.

    Returns:
      The jaxpr of the other equations, and its constants.
    """

    def run(*args: Value) -> Sequence[Value]:
        return eval_jaxpr(program.jaxpr, program.consts, *args)

    unknown = [PartialVal.unknown(aval) for aval in avals]
    fun = wrap_init(run, debug_info=program.jaxpr.debug_info)
    jaxpr, _, consts = trace_to_jaxpr_nounits(fun, unknown, instantiate=True)
    return jaxpr, consts


class _Transposed:
    """The transpose of a linear jaxpr, as a callable of its constants and a cotangent."""

    __slots__ = ("avals", "in_tree", "jaxpr", "out_tree")

    def __init__(
        self, jaxpr: Jaxpr, in_tree: PyTreeDef, out_tree: PyTreeDef, avals: tuple[ShapedArray, ...]
    ):
        self.jaxpr = jaxpr
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.avals = avals

    @boundary
    def __call__(self, consts: ArrayLikes, cotangent: PyTree) -> tuple[PyTree, ...]:
        leaves, tree_of_leaves = tree.tree_flatten(cotangent)
        if tree_of_leaves != self.out_tree:
            raise TypeError(
                "cotangent tree does not match function output, expected "
                f"{self.out_tree} but got {tree_of_leaves}"
            )
        for x, aval in zip(leaves, self.jaxpr.out_avals, strict=True):
            actual = typeof(x)
            if actual.shape != aval.shape or actual.dtype != aval.dtype:
                raise TypeError(
                    f"cotangent type does not match function output, expected {aval.str_short()} "
                    f"but got {actual.str_short()}"
                )
        linear = [UndefinedPrimal(aval) for aval in self.avals]
        with transformed(TRANSPOSE):
            cotangents = transpose_jaxpr(self.jaxpr, consts, linear, leaves)
        results = [
            as_array(zeros_of(aval) if type(c) is Zero else c)
            for c, aval in zip(cotangents, self.avals, strict=True)
        ]
        return self.in_tree.unflatten(results)[0]
