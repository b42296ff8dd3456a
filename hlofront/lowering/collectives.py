"""Operations along named axes, where only axes of the arrays are left of them."""

from hlofront.core.rules import lower
from hlofront.primitives import collectives as c
from hlofront.primitives.reducing import reduce_max, reduce_min, reduce_sum

_FOLDS = {c.psum_p: reduce_sum, c.pmax_p: reduce_max, c.pmin_p: reduce_min}


def _reduction(primitive, fold):
    def rule(build, *args, axes, axis_index_groups):
        if c.positional(axes) != tuple(axes):
            raise _unbound(primitive, axes)
        return build.by_tracing(lambda *xs: [fold(x, tuple(axes)) for x in xs], args)

    lower(primitive)(rule)


def _unbound(primitive, axes):
    return NameError(
        f"{primitive} works along the named axis {axes}, which nothing maps where the program is "
        "compiled: call the function inside of vmap(..., axis_name=...)."
    )


for _primitive, _fold in _FOLDS.items():
    _reduction(_primitive, _fold)


def _never(primitive):
    @lower(primitive)
    def rule(build, *args, axis_name, **_):
        raise _unbound(primitive, axis_name)


for _primitive in (
    c.all_gather_p,
    c.reduce_scatter_p,
    c.all_to_all_p,
    c.ppermute_p,
    c.axis_index_p,
):
    _never(_primitive)
