"""Reductions with a user's function as StableHLO."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.higher_order import reduce as r
from hlofront.lowering.builder import large_constants
from hlofront.lowering.reducing import Body, emit_reduce
from hlofront.lowering.windowed import emit_reduce_window, emit_select_and_scatter
from hlofront.primitives.windowed import Windows


def body_of(jaxpr: Any, consts: Sequence[Any]) -> Body:
    """A program as a region. Its constants are made inside: a region sees no values around it."""
    program = ClosedJaxpr(jaxpr, consts)

    def body(inner, *scalars):
        inner.hoisted = {
            id(value): inner.constant(np.asarray(value), aval.dtype)
            for value, aval in large_constants(program)
        }
        return inner.inline(jaxpr, consts, scalars)

    return body


@lower(r.reduce_p)
def _(build, *args, computation, jaxpr, dimensions):
    half = len(args) // 2
    ndim = build.avals_in[0].ndim
    axes = [axis + ndim if axis < 0 else axis for axis in dimensions]
    body = body_of(jaxpr.jaxpr, jaxpr.consts)
    return emit_reduce(build, args[:half], args[half:], build.avals_out, axes, body)


@lower(r.reduce_window_p)
def _(build, *args, jaxpr, consts, **windows):
    half = len(args) // 2
    operands, inits = args[:half], args[half:]
    body = body_of(jaxpr, consts)
    return emit_reduce_window(build, operands, inits, build.avals_out, Windows(**windows), body)


@lower(r.select_and_scatter_p)
def _(
    build,
    *operands,
    select_jaxpr,
    select_consts,
    scatter_jaxpr,
    scatter_consts,
    window_dimensions,
    window_strides,
    padding,
):
    return emit_select_and_scatter(
        build,
        operands,
        build.avals_out[0],
        (window_dimensions, window_strides, padding),
        body_of(select_jaxpr, select_consts),
        body_of(scatter_jaxpr, scatter_consts),
    )
