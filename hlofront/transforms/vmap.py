"""The transformation vmap, which maps a function of one example over a batch axis."""

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from hlofront.base import source, tree
from hlofront.base.advice import as_pytree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.tree import PyTree
from hlofront.base.tree_prefixes import flatten_axes
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import ShapedArray, is_value, typeof
from hlofront.core.axes import AxisData, splitting_batches
from hlofront.core.jaxpr import DebugInfo, Value
from hlofront.core.names import VMAP, transformed
from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.sharded_types import common_mesh, entries_of
from hlofront.core.trace import as_result, current_trace
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.rules.batching import move_axis, with_new_axis
from hlofront.transforms import vmappable
from hlofront.transforms.arguments import Signature
from hlofront.transforms.batch import batch_flat
from hlofront.transforms.flatten import check_callable, result_paths
from hlofront.transforms.reference_checks import check_arguments
from hlofront.transforms.vmappable import AxisSize, AxisSpec, from_element, to_element

Wrapper = TypeVar("Wrapper", bound=Callable[..., object])


def vmap(
    fun: Callable[..., PyTree],
    in_axes: int | Sequence[object] | None = 0,
    out_axes: object = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable = None,
    sum_match: bool = False,
) -> Callable[..., PyTree]:
    """Return a function that maps `fun` over an axis of its arguments, as one batched computation.

    Args:
      fun: a function of pytrees of arrays, for one example.
      in_axes: the mapped axis of each positional argument: an int, None for an argument that all
        examples share, or a tuple with an entry per argument, each a pytree prefix of ints and
        None. Negative axes count from the end. Keyword arguments are mapped over axis 0.
      out_axes: the position of the mapped axis in the results: an int, None for a result that does
        not depend on the example, or a pytree prefix of them.
      axis_name: the axis name for collectives such as `psum(x, axis_name)`.
      axis_size: the size of the axis; required if no argument is mapped.
      spmd_axis_name: the mesh axis or axes that the axis is sharded over.
      sum_match: whether a result with out_axes None that depends on the example is summed over
        the examples.

    Returns:
      A function of the arguments of `fun` with the mapped axis, whose results have the axis at
      `out_axes`.

    Raises:
      TypeError: if `fun` cannot be called, or axes are not integers.
      ValueError: if axes are out of range, differ in size, or are not a prefix of the arguments.

    Example:
      >>> matrix, vectors = jnp.eye(2), jnp.arange(6.0).reshape(3, 2)
      >>> jax.vmap(jnp.dot, in_axes=(None, 0))(matrix, vectors)
      Array([[0., 1.],
             [2., 3.],
             [4., 5.]], dtype=float32)
    """
    check_callable(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or type(in_axes) is int or isinstance(in_axes, tuple)) and not (
        vmappable.is_spec(in_axes)
    ):
        raise TypeError(_positional(f"but got {in_axes}."))
    _check_entries("in_axes", in_axes)
    _check_entries("out_axes", out_axes)
    spmd: Any = spmd_axis_name
    spmd = () if spmd is None else spmd if issubclass(type(spmd), tuple) else (spmd,)
    signature = Signature(fun)

    @boundary
    def mapped(*args: object, **kwargs: object) -> PyTree:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                _positional(f"but got len(in_axes)={len(in_axes)}, len(args)={len(args)}")
            )
        is_leaf = vmappable.are_vmappable()
        leaves, in_tree = tree.tree_flatten((args, kwargs), is_leaf)
        axes = flatten_axes("vmap in_axes", in_tree, (in_axes, 0))
        # Arguments and results, by position, that are mapped by rules registered for their type.
        own_axes: dict[int, AxisSpec] = {}
        own_results: dict[int, Value] = {}
        for position, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
            # Arguments that are not mapped may be of any type.
            if axis is not None and not is_value(leaf):
                if is_leaf is not None and is_leaf(leaf):
                    own_axes[position], axes[position] = axis, None
                    continue
                raise _not_an_array(signature, args, kwargs, position, leaf)
        axes = [_in_range(a, x) for a, x in zip(axes, leaves, strict=True)]
        # Values that are mapped by their own rules take part with their shape, if they have one.
        sized = [
            _own_axis(leaves[i], own_axes[i]) if i in own_axes else a for i, a in enumerate(axes)
        ]
        size = _common_size(signature, args, kwargs, leaves, sized, axis_size)
        names = functools.partial(signature.argument_names, (args, kwargs))
        check_arguments(leaves, "vmap", signature.find_where, names)
        out_tree: Any = None

        def flat(*flat_args: Value) -> list[Value]:
            nonlocal out_tree
            trace: Any = current_trace() if is_leaf is not None else None
            if own_axes:
                flat_args = tuple(
                    to_element(trace, size, x, own_axes[i]) if i in own_axes else x
                    for i, x in enumerate(flat_args)
                )
            own_args, own_kwargs = in_tree.unflatten(flat_args)
            results, out_tree = tree.tree_flatten(fun(*own_args, **own_kwargs), is_leaf)
            for position, result in enumerate(results):
                if not is_value(result):
                    if is_leaf is not None and is_leaf(result):
                        spec = flatten_axes("vmap out_axes", out_tree, out_axes)[position]
                        own_results[position] = from_element(trace, size, result, spec)
                        results[position] = 0
                        continue
                    raise TypeError(
                        f"Output from batched function {result!r} with type {type(result)} is "
                        "not a valid JAX type"
                    )
            return results

        axis = AxisData(axis_name, size, spmd, *_mesh_axes(leaves, axes))
        with transformed(VMAP):
            results, result_axes = batch_flat(
                flat, axis, leaves, axes, DebugInfo("vmap", signature.find_where)
            )
            wanted = flatten_axes("vmap out_axes", out_tree, out_axes)
            with splitting_batches(axis):
                # A value that is returned several times is moved once per pair of axes.
                moved: dict[tuple[int, int | None, AxisSpec], Value] = {}
                keys = [(id(x), a, w) for x, a, w in zip(results, result_axes, wanted, strict=True)]
                for i, (x, key) in enumerate(zip(results, keys, strict=True)):
                    if i not in own_results and key not in moved:
                        placed = _placed(x, *key[1:], size, i, out_tree, sum_match)
                        moved[key] = as_result(placed)
                return out_tree.unflatten(
                    [
                        own_results[i] if i in own_results else moved[key]
                        for i, key in enumerate(keys)
                    ]
                )

    return documented(
        mapped,
        fun,
        f"Vectorized version of {signature.name}: it takes similar arguments with an additional "
        "axis, over which the function is mapped.",
    )


def documented(wrapper: Wrapper, fun: object, summary: str) -> Wrapper:
    """Set the name and docstring of a transformed function, and return it.

    Args:
      wrapper: the transformed function.
      fun: the original, whose docstring follows the summary.
      summary: describes the transformed function.
    """
    named_as(wrapper, fun)
    original = getattr(fun, "__doc__", None)
    own = original if isinstance(original, str) and fun.__class__.__doc__ is not original else None
    wrapper.__doc__ = f"{summary}\n\nOriginal documentation:\n\n{own}" if own else summary
    return wrapper


def _positional(rest: str) -> str:
    return (
        "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional "
        f"arguments passed to the function, {rest}"
    )


def _check_entries(name: str, axes: object) -> None:
    for entry in tree.tree_leaves(axes):
        if (not isinstance(entry, int) or isinstance(entry, bool)) and not vmappable.is_spec(entry):
            try:
                operator.index(entry)
            except TypeError:
                raise TypeError(
                    f"vmap {name} must be an int, None, or (nested) container with those types as "
                    f"leaves, but got {axes}."
                ) from None


def _not_an_array(
    signature: Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    position: int,
    leaf: object,
) -> TypeError:
    name = signature.argument_names((args, kwargs))[position]
    return TypeError(
        f"Argument {name} of {signature.where} is {source.shortened(repr(leaf))} of type "
        f"{type(leaf)}, which is not a valid JAX type for vmap. Close over it, or map a function "
        f"of arrays. {as_pytree(leaf, name)}"
    )


def _in_range(axis: AxisSpec, x: ArrayLike) -> int | None:
    if axis is None:
        return None
    axis = operator.index(axis)
    rank = typeof(x).ndim
    if -rank <= axis < rank:
        return axis % rank
    needed = axis + 1 if axis >= 0 else -axis
    raise ValueError(
        f"vmap was requested to map its argument along axis {axis}, which implies that its rank "
        f"should be at least {needed}, but is only {rank} (its shape is {typeof(x).shape})"
    )


def _own_axis(x: object, spec: object) -> int | None:
    """Return the mapped axis of a value of a registered type, or None if it has none."""
    shape = getattr(x, "shape", ())
    return spec if type(spec) is int and -len(shape) <= spec < len(shape) else None


def _shape_of(x: Value) -> Sequence[AxisSize]:
    return x.shape if vmappable.is_vmappable(x) else typeof(x).shape


def _common_size(
    signature: Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    leaves: ArrayLikes,
    axes: Sequence[int | None],
    axis_size: int | None,
) -> int:
    sizes = [None if a is None else _shape_of(x)[a] for x, a in zip(leaves, axes, strict=True)]
    mapped = [size for size in sizes if size is not None]
    if axis_size is not None:
        if not mapped:
            return operator.index(axis_size)
        if all(size == axis_size for size in mapped):
            return mapped[0]
    elif not leaves:
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an array or "
            f"axis_size must be specified, got empty *args={args} and **kwargs={kwargs}"
        )
    elif not mapped:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes or axis_size must be specified"
        )
    elif all(size == mapped[0] for size in mapped):
        return mapped[0]
    raise _inconsistent(signature, args, kwargs, leaves, axes, sizes, axis_size)


def _mesh_axes(
    leaves: Sequence[Value], axes: Sequence[int | None]
) -> tuple[tuple[Any, ...], AbstractMesh | None]:
    """Return the explicit axes that all mapped axes are split along, and their mesh.

    Raises:
      ValueError: if mapped axes are split differently, or unmapped values are split along the same
        mesh axes.
    """
    avals = [typeof(x) if is_value(x) else None for x in leaves]
    if all(aval is None or aval.spec is None for aval in avals):
        return (), None
    whole = [aval for aval in avals if isinstance(aval, ShapedArray)]
    pairs = [
        (aval, entries_of(aval)[a])
        for aval, a in zip(avals, axes, strict=True)
        if isinstance(aval, ShapedArray) and a is not None
    ]
    entries = {entry for _, entry in pairs}
    if len(entries) > 1:
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the same. Got "
            f"inconsistent axis specs: {' vs '.join(str(entry) for _, entry in pairs)}, of "
            f"{', '.join(aval.str_short() for aval, _ in pairs)}. Reshard some of them first."
        )
    names = entries.pop() if entries else ()
    for aval, a in zip(avals, axes, strict=True):
        if a is None and isinstance(aval, ShapedArray) and aval.spec is not None:
            if not set(names).isdisjoint(aval.spec.names()):
                raise ValueError(
                    "Unmapped values passed to vmap cannot be sharded along the mesh axis you are "
                    f"vmapping over. Got type: {aval.str_short(True)}, in_axes: None and vmapped "
                    f"mesh axes {names}. Reshard it first."
                )
    return names, common_mesh(whole)


def _inconsistent(
    signature: Signature,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    leaves: Sequence[Value],
    axes: Sequence[int | None],
    sizes: Sequence[AxisSize],
    axis_size: int | None,
) -> ValueError:
    """Return the ValueError for inconsistent axis sizes, which lists arguments by size."""
    names = signature.argument_names((args, kwargs))
    groups: dict[AxisSize, list[str]] = {}
    for name, leaf, a, size in zip(names, leaves, axes, sizes, strict=True):
        if size is not None:
            kind = repr(leaf) if vmappable.is_vmappable(leaf) else typeof(leaf).str_short()
            where = f"axis {a} of argument {name} of type {kind}"
            groups.setdefault(size, []).append(where)
    lines = [] if axis_size is None else [f"the `axis_size` argument was {axis_size}"]
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for rank, (size, members) in enumerate(ordered):
        if len(members) == 1:
            lines.append(f"one axis had size {size}: {members[0]}")
        else:
            share = "most" if rank == 0 and len(ordered) > 1 else "some"
            lines.append(
                f"{share} axes ({len(members)} of them) had size {size}, e.g. {members[0]}"
            )
    return ValueError(
        "vmap got inconsistent sizes for array axes to be mapped:\n"
        + ";\n".join(f"  * {line}" for line in lines)
    )


def _placed(
    x: ArrayLike,
    axis: int | None,
    wanted: AxisSpec,
    size: int,
    position: int,
    out_tree: PyTreeDef,
    sum_match: bool,
) -> ArrayLike:
    """Return a result of vmap with its batch axis at position `wanted`, or None for no axis."""
    if wanted is None:
        if axis is None:
            return x
        if sum_match:
            return reduce_sum(x, (axis,))
        path = result_paths(out_tree)[position]
        raise ValueError(
            f"at vmap out_axes{path.removeprefix('result')}, got axis spec None but output was "
            f"batched on axis {axis}. Give an axis there, or return what does not depend on the "
            "mapped arguments."
        )
    rank = typeof(x).ndim + (axis is None)
    wanted = operator.index(wanted)
    if not -rank <= wanted < rank:
        raise ValueError(f"axis {wanted} is out of bounds for array of dimension {rank}")
    wanted %= rank
    return with_new_axis(x, size, wanted) if axis is None else move_axis(x, axis, wanted)
