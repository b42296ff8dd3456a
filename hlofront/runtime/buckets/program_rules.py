"""Rules of operations that hold programs, on padded operands: calls, branches and loops."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import Value
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Equation
from hlofront.core.programs.subprograms import (
    Program,
    branches_of,
    called_by,
    condition_of,
    equation_count,
    executed_by,
    inputs_among,
    with_program,
)
from hlofront.core.sharding.mesh_context import NO_MESH
from hlofront.higher_order.calls.call_primitive import call_p
from hlofront.higher_order.calls.jit_call import closed_call_p, jit_p, split_captured
from hlofront.higher_order.checkpoint.checkpoint import remat_p
from hlofront.higher_order.control_flow.cond import cond_p, switch, with_shared_constants
from hlofront.higher_order.control_flow.scan import scan, scan_p
from hlofront.higher_order.control_flow.while_loop import while_loop, while_p
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_rules.custom_vjp_call import custom_vjp_call_p
from hlofront.higher_order.custom_rules.custom_vmap import custom_vmap_call_p
from hlofront.higher_order.selecting import three_parts
from hlofront.primitives.arrays import dynamic_slicing, shaping
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.elementwise.compare import lt
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import add, bitwise_and, sub
from hlofront.runtime.buckets.bounding import Bounded, rule, symbolic
from hlofront.transforms.stage import stage

# The number of equations, including those of calls inside, above which a call is not inlined:
# functions that call one another twice at each level have 2**levels equations in all.
_MAX_INLINED = 200


@rule(call_p, closed_call_p, custom_jvp_call_p, custom_vjp_call_p, custom_vmap_call_p, jit_p)
def _(bounded: Bounded, equation: Equation, *operands: Value) -> Sequence[Value]:
    """Run the program itself: when jit compiles, derivative rules are no longer needed."""
    part = called_by(equation)
    assert part is not None
    inputs = inputs_among(part, operands)
    if equation_count(part.jaxpr) <= _MAX_INLINED:
        results = bounded.run(part.program, inputs)
    else:
        name = str(equation.params.get("name", equation.primitive))
        results = _call_of_bounded(bounded, part.program, inputs, name)
    return results if part.results is None else [results[index] for index in part.results]


def _call_of_bounded(
    bounded: Bounded, program: Program, inputs: Sequence[Value], name: str
) -> list[Any]:
    """Call the bounded program of a program, which is made once for all calls of it."""
    names = tuple(bounded.lengths)
    operands = [*bounded.lengths.values(), *inputs]
    if id(program) not in bounded.made:

        def run(*values: Value) -> list[Any]:
            lengths = dict(zip(names, values, strict=False))
            inner = Bounded(bounded.sizes, lengths, bounded.masked, bounded.made)
            return inner.run(program, values[len(names) :])

        bounded.made[id(program)] = program, stage(run, list(map(typeof, operands)))
    made, captured = split_captured(bounded.made[id(program)][1])
    return jit_p.bind(
        *captured,
        *operands,
        name=name,
        jaxpr=made,
        donated_invars=(False,) * len(made.in_avals),
        keep_unused=False,
        inline=False,
        compiler_options_kvs=(),
        ctx_mesh=NO_MESH,
    )


@rule(remat_p)
def _(bounded: Bounded, equation: Equation, *operands: Value) -> Sequence[Value]:
    part = called_by(equation)
    assert part is not None
    program = stage(lambda *values: bounded.run(part.program, values), [*map(typeof, operands)])
    program, captured = split_captured(program)
    params = with_program(equation.params, part, program)
    cse = equation.params["prevent_cse"]
    if not isinstance(cse, bool):
        params["prevent_cse"] = (*[False] * len(captured), *cse)
    return remat_p.bind(*captured, *operands, **params)


@rule(cond_p)
def _(bounded: Bounded, equation: Equation, index: Value, *operands: Value) -> Sequence[Value]:
    programs = [part.program for part in branches_of(equation)]
    branches = [lambda *values, p=program: bounded.run(p, values) for program in programs]
    return switch(index, branches, *operands)


@rule(while_p)
def _(bounded: Bounded, equation: Equation, *operands: Value) -> Sequence[Value]:
    params = equation.params
    condition, body = condition_of(equation), executed_by(equation)
    assert condition is not None and body is not None
    cond_consts, body_consts, carry = three_parts(
        operands, params["cond_nconsts"], params["body_nconsts"]
    )

    def goes_on(*values: Value) -> list[Value]:
        (result,) = bounded.run(condition.program, values)
        aval = condition.jaxpr.out_avals[0]
        # Under vmap there is a condition per example; those of padding must end the loop.
        inside = bounded.inside(result, aval.shape, range(aval.ndim))
        return [result if inside is None else bitwise_and(result, inside)]

    def advanced(*values: Value) -> list[Value]:
        return bounded.run(body.program, values)

    first = [*map(typeof, carry)]
    conditions = stage(goes_on, [*map(typeof, cond_consts), *first])
    bodies = stage(advanced, [*map(typeof, body_consts), *first])
    (conditions,), captured = with_shared_constants([conditions])
    (bodies,), captured_by_body = with_shared_constants([bodies])
    return while_p.bind(
        *captured,
        *cond_consts,
        *captured_by_body,
        *body_consts,
        *carry,
        cond_jaxpr=conditions,
        body_jaxpr=bodies,
        cond_nconsts=len(captured) + len(cond_consts),
        body_nconsts=len(captured_by_body) + len(body_consts),
    )


@rule(scan_p)
def _(bounded: Bounded, equation: Equation, *operands: Value) -> Sequence[Value]:
    params = equation.params
    consts, carried = params["num_consts"], params["num_carry"]
    constants, first = operands[:consts], list(operands[consts : consts + carried])
    scanned = list(operands[consts + carried :])
    body = executed_by(equation)
    assert body is not None

    def step(carry: Sequence[Value], elements: Sequence[Value]) -> tuple[list[Any], list[Any]]:
        results = bounded.run(body.program, [*constants, *carry, *elements])
        return results[:carried], results[carried:]

    if symbolic(params["length"]):
        return _scan_of_length(bounded, equation, step, first, scanned)
    carry, stacked = scan(
        step,
        first,
        scanned,
        length=params["length"],
        reverse=params["reverse"],
        unroll=params["unroll"],
    )
    return [*carry, *stacked]


def _scan_of_length(
    bounded: Bounded, equation: Equation, step: Any, first: list[Any], scanned: list[Any]
) -> Sequence[Value]:
    """Scan over a padded axis by a loop of as many iterations as the true length."""
    length = convert_element_type(bounded.length(equation.params["length"]), np.int32)
    reverse = equation.params["reverse"]
    avals = [var.aval for var in equation.outvars[len(first) :]]
    stacked = [full(bounded.known(aval.shape), 0, aval.dtype) for aval in avals]

    def goes_on(state: Any) -> Any:
        return lt(state[0], length)

    def advanced(state: Any) -> Any:
        count, carry, stacked = state
        at = sub(sub(length, count), np.int32(1)) if reverse else count
        carry, results = step(carry, [_element(x, at) for x in scanned])
        stacked = [_with_element(x, y, at) for x, y in zip(stacked, results, strict=True)]
        return add(count, np.int32(1)), carry, stacked

    carry, stacked = while_loop(goes_on, advanced, (np.int32(0), first, stacked))[1:]
    return [*carry, *stacked]


def _element(x: Any, index: Any) -> Any:
    aval = typeof(x)
    starts = [index, *[np.int32(0)] * (aval.ndim - 1)]
    part = dynamic_slicing.dynamic_slice(
        x, starts, (1, *aval.shape[1:]), allow_negative_indices=False
    )
    return shaping.squeeze(part, (0,))


def _with_element(x: Any, element: Any, index: Any) -> Any:
    starts = [index, *[np.int32(0)] * (typeof(x).ndim - 1)]
    row = shaping.expand_dims(element, (0,))
    return dynamic_slicing.dynamic_update_slice(x, row, starts, allow_negative_indices=False)
