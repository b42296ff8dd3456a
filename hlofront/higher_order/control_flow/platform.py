"""The functions platform_dependent (one branch per platform) and composite (a named operation)."""

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from hlofront.base import errors, source, tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.hashable import HashableArray
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import Array, ArrayLikes, Value, is_numpy_array
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import calls
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand, Tangents
from hlofront.core.trace import Tracer, is_eager
from hlofront.higher_order.calls.jit_call import run_by_program, typed_by_program
from hlofront.higher_order.control_flow.bodies import written_once
from hlofront.higher_order.control_flow.cond import Branches, trace_function, with_shared_constants
from hlofront.transforms.flatten import check_hashable

# ---- platform_dependent --------------------------------------------------------------------------

# Parameter `platforms`: tuples of platforms, or None for all platforms. The result is the index of
# the first member that includes the platform for which the program is compiled.
platform_index_p = Primitive("platform_index")
Platforms = Sequence[tuple[str, ...] | None]


@rules.infer(platform_index_p)
def _(*, platforms: Platforms) -> ShapedArray:
    return ShapedArray((), np.dtype(np.int32))


def number_for(platform: str, platforms: Platforms) -> int:
    """Return the index of the first branch that names a platform or is the default.

    Raises:
      NotImplementedError: if there is no branch for the platform.
    """
    for number, names in enumerate(platforms):
        if names is None or platform in names:
            return number
    named = ", ".join(name for names in platforms for name in names or ())
    raise NotImplementedError(  # JAX raises this class.
        f"platform_dependent has no branch for the platform {platform!r}, for which the program is "
        f"compiled: it has some for {named}. Give a `default` for all others."
    )


@boundary
def platform_dependent(
    *args: object,
    default: Callable[..., PyTree] | None = None,
    **per_platform: Callable[..., PyTree],
) -> PyTree:
    """Call the function for the platform for which the program is compiled.

    Inside a traced function, all functions are traced and one is compiled; outside, the function
    for the default device's platform is called.

    Args:
      args: pytrees of arrays.
      default: the function for all other platforms; if None, compiling for another platform is an
        error.
      per_platform: functions of `args` by platform: cpu, cuda, rocm, tpu. Their results have equal
        structures and types.

    Returns:
      The function's result.

    Raises:
      TypeError: if there are no functions, they cannot be called, or their results differ in
        structure or types.
      ValueError: for `gpu`, which means both cuda and rocm.
      NotImplementedError: if compiled for a platform that has no function.
    """
    if "gpu" in per_platform:
        raise ValueError("Use 'cuda' or 'rocm' for lax.platform_dependent.")
    # A function for several platforms is one branch.
    functions: dict[int, tuple[Callable[..., PyTree], list[str]]] = {}
    for platform, function in per_platform.items():
        functions.setdefault(id(function), (function, []))[1].append(platform)
    chosen = [function for function, _ in functions.values()]
    platforms: list[tuple[str, ...] | None] = [tuple(names) for _, names in functions.values()]
    if default is not None:
        chosen.append(default)
        platforms.append(None)
    if not chosen:
        raise TypeError(
            "platform_dependent requires at least one function: one by the name of a platform, or "
            "`default`."
        )
    for function in chosen:
        if not callable(function):
            raise TypeError(
                "lax.platform_dependent: the branches must be callable, got "
                f"{source.shortened(repr(function))}."
            )
    names = [
        "the default" if for_ is None else f"the function for {', '.join(for_)}"
        for for_ in platforms
    ]
    index: Value = platform_index_p.bind(platforms=tuple(platforms))
    if not isinstance(index, Tracer):
        return chosen[int(index)](*args)
    check_hashable(*chosen)
    branches = Branches("platform_dependent", chosen, names, args)
    order = range(len(chosen))
    return branches.bind(index, order, branches_platforms=tuple(platforms))


# ---- composite -----------------------------------------------------------------------------------

# Operands: the constants of the decomposition, and the arguments.
composite_p = Primitive("composite", multiple_results=True, carries_programs=True)
rules.subprograms(composite_p)(calls("jaxpr"))
typed_by_program(composite_p, "jaxpr")
run_by_program(composite_p, "jaxpr")


@rules.jvp(composite_p)
def _(primals: ArrayLikes, tangents: Tangents, *, name: str, **_: object) -> NoReturn:
    raise ValueError(
        f"JVP rule for composite not implemented: {name!r} is one operation to whom it is meant "
        "for, and nothing says which its derivative is. Use custom_jvp or custom_vjp around it, "
        "with a derivative that may be a composite too."
    )


@rules.transpose(composite_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand, name: str, **_: object) -> NoReturn:
    raise ValueError(
        f"Transpose rule for composite not implemented: nothing says what {name!r} is backwards. "
        "Use custom_vjp around it."
    )


@rules.batch(composite_p)
def _(values: ArrayLikes, axes: BatchAxes, *, name: str, **_: object) -> NoReturn:
    raise NotImplementedError(  # JAX raises this class.
        f"Batching rule for 'composite' not implemented: {name!r} is not defined for a batch of "
        "examples. Use custom_batching.custom_vmap around it, or lax.map instead of vmap."
    )


def composite(
    decomposition: Callable[..., PyTree], name: str, version: int = 0
) -> Callable[..., PyTree]:
    """Return a function that lowers to a named operation that compilers may implement themselves.

    In StableHLO it is a `stablehlo.composite` with a decomposition, which compilers that do not
    know the name use instead.

    Args:
      decomposition: the implementation: a function of pytrees of arrays, and of attributes by
        keyword. It must not close over tracers.
      name: a namespace, a dot and a name, such as "my_library.gelu".
      version: the version of the decomposition's semantics.

    Returns:
      A function of the decomposition's arguments. Keyword arguments are attributes of the
      operation: numbers, strings, NumPy arrays and dtypes, and lists, tuples and dicts of those.

    Raises:
      UnexpectedTracerError: at the call, if an attribute is traced or `decomposition` closes over
        a traced value.
    """
    if not callable(decomposition):
        raise TypeError(
            "the first argument must be callable; composite got "
            f"{source.shortened(repr(decomposition))}"
        )

    @boundary
    def decomposed(*args: object, **kwargs: object) -> PyTree:
        leaves, args_tree = tree.tree_flatten(args)
        avals = tuple([typeof(leaf) for leaf in leaves])
        attributes = tuple([_attribute(name, key, value) for key, value in kwargs.items()])
        kinds = tuple([tuple(map(type, leaves)) for _, leaves, _ in attributes])
        key = ("composite", args_tree, avals, attributes, kinds)
        traced = written_once(
            decomposition,
            key,
            lambda: trace_function(decomposition, "composite", args_tree, avals, kwargs),
        )
        if any(isinstance(const, Tracer) for const in traced.consts):
            raise errors.UnexpectedTracerError(
                f"Found a JAX Tracer as a constant in the decomposition for the composite op "
                f"'{name}': it closes over a traced value. Pass that value as an argument."
            )
        (program,), consts = with_shared_constants([traced.program])
        params = {"name": name, "attributes": attributes, "version": version, "jaxpr": program}
        return traced.out_tree.unflatten(composite_p.bind(*consts, *leaves, **params))

    return named_as(decomposed, decomposition)


def _attribute(name: str, key: str, value: object) -> tuple[str, tuple[object, ...], PyTreeDef]:
    """Convert an attribute of a composite to hashable form: (key, leaves, tree definition).

    Args:
      name: the name of the composite, for messages.
      key: the name of the attribute.
      value: a pytree of numbers, strings, dtypes and arrays.

    Raises:
      UnexpectedTracerError: if a leaf is traced.
      TypeError: if a leaf is an array on a device while a function is being traced.
    """
    leaves, structure = tree.tree_flatten(value)
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            raise errors.UnexpectedTracerError(
                f"Found a JAX Tracer as an attribute in the decomposition for the composite op "
                f"'{name}': {key}={leaf}. Attributes are part of the program: give numbers or "
                "NumPy arrays, and what is computed as an argument by position."
            )
        if isinstance(leaf, Array) and not is_eager():
            raise TypeError(
                f"attribute {key} of the composite op '{name}' is an array on a device: give a "
                "NumPy array, as numpy.asarray(x)."
            )
    wrapped = [
        HashableArray(np.asarray(leaf)) if isinstance(leaf, Array) or is_numpy_array(leaf) else leaf
        for leaf in leaves
    ]
    return key, tuple(wrapped), structure
