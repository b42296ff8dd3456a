"""Operations on how values vary along the manual axes of a mesh: pvary and psum_invariant."""

from collections.abc import Collection, Hashable, Iterable, Sequence

from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core import trace
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.references import AbstractRef
from hlofront.core.rules import batch, infer, subprograms, varying
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.sharding.manual_axes import SAME, ManualAxisType
from hlofront.core.sharding.mesh_context import get_abstract_mesh, vma_enabled
from hlofront.core.trace import Tracer, process
from hlofront.primitives.rules.derivatives import linear

# The identity; the type of its result also varies along the manual axes `axes`.
pvary_p = Primitive("pvary")
# The sum over the manual axes `axes`, along which the result is the same on all devices.
psum_invariant_p = Primitive("psum_invariant")

# Operations whose operands may vary along different axes.
_mixed = {pvary_p, psum_invariant_p}


def may_mix(*primitives: Primitive) -> None:
    """Declare operations whose operands may vary along different manual axes."""
    _mixed.update(primitives)


def pvary(x: ArrayLike, axes: Collection[Hashable]) -> ArrayLike:
    """Return x with a type that also varies along these manual axes of the mesh."""
    missing = frozenset(axes) - typeof(x).manual_axis_type.varying
    return process(pvary_p, (x,), {"axes": _sorted(missing)}) if missing else x


def psum_invariant(x: ArrayLike, axes: Collection[Hashable]) -> ArrayLike:
    """Return the sum of x over manual axes along which it varies."""
    return process(psum_invariant_p, (x,), {"axes": _sorted(axes)}) if axes else x


def manual_among(names: Iterable[Hashable]) -> list[Hashable]:
    """Return the named axes that are manual axes whose variation types track."""
    if not vma_enabled():
        return []
    mesh = get_abstract_mesh()
    manual = mesh.manual_axes
    return mesh.axes_in_types([name for name in names if name in manual])


def varying_along(x: ArrayLike, names: Iterable[Hashable]) -> ArrayLike:
    """Return x with a type that varies along those of the named axes that types track."""
    return pvary(x, manual_among(names))


def varying_as(result: ArrayLike, x: object) -> ArrayLike:
    """Return a value that varies along the manual axes along which x does, if x is an array."""
    kind = getattr(getattr(x, "aval", None), "manual_axis_type", SAME)
    return result if kind is SAME else pvary(result, kind.varying)


def _sorted(axes: Collection[Hashable]) -> tuple[Hashable, ...]:
    return tuple(axes) if len(axes) == 1 else tuple(sorted(axes, key=str))


@infer(pvary_p, psum_invariant_p)
def _(x: ShapedArray, *, axes: tuple[Hashable, ...]) -> ShapedArray:
    return x


@varying(pvary_p)
def _(avals: Avals, *, axes: tuple[Hashable, ...]) -> list[ManualAxisType]:
    kind = avals[0].manual_axis_type
    return [kind.with_varying(kind.varying | frozenset(axes))]


@varying(psum_invariant_p)
def _(avals: Avals, *, axes: tuple[Hashable, ...]) -> list[ManualAxisType]:
    kind = avals[0].manual_axis_type
    missing = frozenset(axes) - kind.varying
    if missing:
        raise ValueError(
            f"psum_invariant sums over axes along which its operand varies: got {avals[0]} and the "
            f"axes {axes}, but it does not vary along {sorted(map(str, missing))}"
        )
    return [kind.with_varying(kind.varying - frozenset(axes))]


def _pvary_transpose(ct: ArrayLike, x: object, *, axes: tuple[Hashable, ...]) -> list[ArrayLike]:
    # A cotangent that starts as a constant, like that of `grad`, does not vary.
    return [psum_invariant(pvary(ct, axes), axes)]


def _psum_transpose(ct: ArrayLike, x: object, *, axes: tuple[Hashable, ...]) -> list[ArrayLike]:
    return [pvary(ct, axes)]


linear(pvary_p, _pvary_transpose)
linear(psum_invariant_p, _psum_transpose)


@batch(pvary_p)
def _(
    values: ArrayLikes, batch_axes: Sequence[int], *, axes: tuple[Hashable, ...]
) -> tuple[ArrayLike, int]:
    return pvary(values[0], axes), batch_axes[0]


@batch(psum_invariant_p)
def _(
    values: ArrayLikes, batch_axes: Sequence[int], *, axes: tuple[Hashable, ...]
) -> tuple[ArrayLike, int]:
    return psum_invariant(values[0], axes), batch_axes[0]


# ---- operands that vary along the same axes ------------------------------------------------------


def matched(
    primitive: Primitive, args: tuple[ArrayLike, ...], params: Params
) -> tuple[ArrayLike, ...]:
    """Return operands that all vary along every manual axis along which any of them varies.

    The operands of an operation that holds programs vary along the axes of the programs' inputs.
    """
    if primitive.carries_programs:
        return _matched_to_inputs(primitive, args, params)
    if len(args) < 2 or primitive in _mixed:
        return args
    if primitive.ref_primitive:
        return _matched_to_reference(primitive, args)
    first, second = args[:2]
    if len(args) == 2 and isinstance(first, Tracer) and isinstance(second, Tracer):
        # Usually the operands vary along the same axes, and manual axis types are interned.
        if first.aval.manual_axis_type is second.aval.manual_axis_type:
            return args
    # Host values and arrays are the same on all devices.
    kinds = [x.aval.manual_axis_type if isinstance(x, Tracer) else SAME for x in args]
    if kinds.count(kinds[0]) == len(kinds):
        return args
    union = frozenset[Hashable]().union(*[kind.varying for kind in kinds])
    return tuple(
        [
            x if kind.varying == union else pvary(x, union)
            for x, kind in zip(args, kinds, strict=True)
        ]
    )


def _matched_to_inputs(
    primitive: Primitive, args: tuple[ArrayLike, ...], params: Params
) -> tuple[ArrayLike, ...]:
    """Return operands that vary along all manual axes along which the programs' inputs vary.

    They may not, because rules of loops and branches instantiate zeros and start sums of cotangents
    that are the same on all devices.
    """
    if primitive not in subprograms:
        return args
    wanted: dict[int, frozenset[Hashable]] = {}
    for subprogram in subprograms[primitive](**params):
        if subprogram.role in ("manual", "alternative") or subprogram.operands is None:
            continue
        for operand, var in zip(subprogram.operands, subprogram.jaxpr.invars, strict=True):
            axes = getattr(var.aval, "manual_axis_type", SAME).varying
            wanted[operand] = wanted.get(operand, axes) | axes
    missing = {
        operand: axes
        for operand, axes in wanted.items()
        if not axes <= _kind(args[operand]).varying
    }
    if not missing:
        return args
    return tuple([pvary(x, missing[i]) if i in missing else x for i, x in enumerate(args)])


def _matched_to_reference(
    primitive: Primitive, args: tuple[ArrayLike, ...]
) -> tuple[ArrayLike, ...]:
    """Return a reference, and the other operands as values that vary like the reference.

    Raises:
      ValueError: if the written value, or an index, varies along other axes than the reference.
    """
    aval: AbstractValue = typeof(args[0])
    if not isinstance(aval, AbstractRef) or primitive.name == "get":
        return args
    own = aval.inner_aval.manual_axis_type.varying
    rest = frozenset[Hashable]().union(*[_kind(x).varying for x in args[1:]])
    if not rest <= own:
        listed = ", ".join(sorted(map(repr, rest - own)))
        raise ValueError(
            f"{primitive} on a reference of type {aval.str_short()}, which is the same on all "
            f"devices along the mesh axis {listed}, was given values or indices that vary along "
            "it. Name the axis in the spec of the reference in in_specs of shard_map; or sum over "
            "it, as by jax.lax.psum; or, if the values are the same, pass check_vma=False."
        )
    return (args[0], *[x if _kind(x).varying == own else pvary(x, own) for x in args[1:]])


def _kind(x: ArrayLike) -> ManualAxisType:
    # Values that no program computes are the same on all devices.
    return getattr(x.aval, "manual_axis_type", SAME) if isinstance(x, Tracer) else SAME


trace.plug_in_matching(matched)


communicating(psum_invariant_p)
