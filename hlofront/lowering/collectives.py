"""Lowering rules of collectives: their named axes are mapped away, and positional ones remain."""

from collections.abc import Callable, Hashable, Sequence

from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.builder import Builder
from hlofront.primitives import collectives as c
from hlofront.primitives.reducing import reduce_max, reduce_min, reduce_sum
from hlofront.primitives.varying import psum_invariant_p, pvary_p

_FOLDS = {c.psum_p: reduce_sum, c.pmax_p: reduce_max, c.pmin_p: reduce_min}


def _reduction(primitive: Primitive, fold: Callable[..., Array]) -> None:
    def rule(
        build: Builder, *args: Value, axes: Sequence[int | Hashable], axis_index_groups: object
    ) -> list[Value]:
        if c.positional(axes) != tuple(axes):
            raise _unbound(primitive, axes)
        return build.by_tracing(lambda *xs: [fold(x, tuple(axes)) for x in xs], args)

    lower(primitive)(rule)


def _unbound(primitive: Primitive, axes: object) -> NameError:
    return NameError(
        f"{primitive} works along the named axis {axes}, which nothing maps where the program is "
        "compiled: call the function inside of vmap(..., axis_name=...)."
    )


for _primitive, _fold in _FOLDS.items():
    _reduction(_primitive, _fold)


def _never(primitive: Primitive) -> None:
    @lower(primitive)
    def rule(build: Builder, *args: Value, axis_name: object, **_: object) -> list[Value]:
        raise _unbound(primitive, axis_name)


for _primitive in (
    c.all_gather_p,
    c.reduce_scatter_p,
    c.all_to_all_p,
    c.ppermute_p,
    c.axis_index_p,
):
    _never(_primitive)


@lower(pvary_p)
def _(build: Builder, x: Value, *, axes: object) -> Value:
    return x


@lower(psum_invariant_p)
def _(build: Builder, x: Value, *, axes: object) -> Value:
    raise _unbound(psum_invariant_p, axes)
