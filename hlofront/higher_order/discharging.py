"""The discharge of operations that hold programs: references become operands and results."""

from collections.abc import Callable, Sequence

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Value
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.higher_order.calls.jit_call import jit_p
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.selecting import Flags, any_of, three_parts, where, where_not
from hlofront.higher_order.shard_map.shard_map import ShardMapParams, shard_map_p
from hlofront.primitives.references.rules import Discharged
from hlofront.transforms.discharge import discharge_program
from hlofront.transforms.stage import stage


def _new_arrays(written: Flags, arrays: ArrayLikes) -> list[ArrayLike | None]:
    """Return per operand its new array, from those of the written ones."""
    rest = iter(arrays)
    return [next(rest) if is_written else None for is_written in written]


@rules.discharge(jit_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    params = equation.params
    program, written = discharge_program(params["jaxpr"])
    results = jit_p.bind(*operands, **{**params, "jaxpr": program})
    count = len(equation.outvars)
    return _new_arrays(written, results[count:]), results[:count]


@rules.discharge(shard_map_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    params = equation.params
    shared = ShardMapParams(params["mesh"], params["newly_manual_axes"], params["check_vma"])
    with shared.inside():
        program, written = discharge_program(params["jaxpr"])
    specs = (*params["out_specs"], *where(params["in_specs"], written))
    results = shard_map_p.bind(*operands, **{**params, "jaxpr": program, "out_specs": specs})
    count = len(equation.outvars)
    return _new_arrays(written, results[count:]), results[:count]


@rules.discharge(cond_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    branches: Sequence[ClosedJaxpr] = equation.params["branches"]
    written = any_of(discharge_program(branch).written for branch in branches)
    on_arrays = tuple(discharge_program(branch, written).program for branch in branches)
    results = cond_p.bind(*operands, **{**equation.params, "branches": on_arrays})
    count = len(equation.outvars)
    return [None, *_new_arrays(written, results[count:])], results[:count]


@rules.discharge(scan_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    params = equation.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    program, written = discharge_program(params["jaxpr"])
    fixed, _, sliced = three_parts(written, num_consts, num_carry)
    # References that every step writes to become part of the carry.
    consts, carry, xs = three_parts(operands, num_consts, num_carry)
    inputs = three_parts(program.jaxpr.invars, num_consts, num_carry)
    outputs = three_parts(program.jaxpr.outvars, num_carry, len(equation.outvars) - num_carry)
    carried = outputs[2][: sum(fixed)]
    body = program.jaxpr.replace(
        invars=[*where_not(inputs[0], fixed), *inputs[1], *where(inputs[0], fixed), *inputs[2]],
        outvars=[*outputs[0], *carried, *outputs[1], *outputs[2][sum(fixed) :]],
        debug_info=program.jaxpr.origin,
    )
    new = {
        "jaxpr": ClosedJaxpr(body, program.consts),
        "num_consts": fixed.count(False),
        "num_carry": num_carry + sum(fixed),
    }
    results = scan_p.bind(
        *where_not(consts, fixed), *carry, *where(consts, fixed), *xs, **{**params, **new}
    )
    last, arrays, rest = three_parts(results, num_carry, sum(fixed))
    ys = rest[: len(equation.outvars) - num_carry]
    new_arrays = [
        *_new_arrays(fixed, arrays),
        *[None] * num_carry,
        *_new_arrays(sliced, rest[len(ys) :]),
    ]
    return new_arrays, [*last, *ys]


@rules.discharge(while_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    return _Loop(equation).discharged(operands)


class _Loop:
    """A while loop with references as a loop that carries the arrays of written references.

    The same reference may be an operand of the condition and of the body.

    Attributes:
      condition, body: the programs, with the operands that are their constants.
      written: the operands that are references to which one of the programs writes.
    """

    def __init__(self, equation: Equation):
        params = equation.params
        self.invars = equation.invars
        parts = three_parts(equation.invars, params["cond_nconsts"], params["body_nconsts"])
        self.condition = _Program(params["cond_jaxpr"], parts[0])
        self.body = _Program(params["body_jaxpr"], parts[1])
        self.written: list[Atom] = list(
            dict.fromkeys((*self.condition.written, *self.body.written))
        )

    def discharged(self, operands: ArrayLikes) -> Discharged:
        """Bind the loop of arrays; return the new arrays of operands, and the results."""
        arrays: Arrays = dict(zip(self.invars, operands, strict=True))
        carry = list(operands[len(self.condition.consts) + len(self.body.consts) :])
        of_condition = [atom for atom in self.condition.consts if atom not in self.written]
        of_body = [atom for atom in self.body.consts if atom not in self.written]
        # A condition that writes is evaluated by the body, and its result is carried.
        count = len(carry)
        if self.condition.written:
            of_body = list(dict.fromkeys((*of_body, *of_condition)))
            of_condition = []
            carry += self.condition.run(arrays, carry)
        carry += [arrays[atom] for atom in self.written]

        def condition(*inputs: ArrayLike) -> list[ArrayLike]:
            consts, carry, rest = three_parts(inputs, len(of_condition), count)
            if self.condition.written:
                return [rest[0]]
            inside = self._arrays(of_condition, consts, rest)
            return self.condition.run(inside, carry)

        def body(*inputs: ArrayLike) -> list[ArrayLike]:
            consts, carry, rest = three_parts(inputs, len(of_body), count)
            inside = self._arrays(of_body, consts, rest[len(rest) - len(self.written) :])
            new = self.body.run(inside, carry)
            if self.condition.written:
                new = [*new, *self.condition.run(inside, new)]
            return [*new, *(inside[atom] for atom in self.written)]

        results = while_p.bind(
            *[arrays[atom] for atom in (*of_condition, *of_body)],
            *carry,
            cond_jaxpr=self._staged(condition, [arrays[a] for a in of_condition], carry),
            body_jaxpr=self._staged(body, [arrays[a] for a in of_body], carry),
            cond_nconsts=len(of_condition),
            body_nconsts=len(of_body),
        )
        arrays.update(zip(self.written, results[len(results) - len(self.written) :], strict=True))
        new_arrays = [arrays[atom] if atom in self.written else None for atom in self.invars]
        return new_arrays, results[:count]

    def _arrays(self, atoms: Sequence[Atom], consts: ArrayLikes, written: ArrayLikes) -> "Arrays":
        return {
            **dict(zip(atoms, consts, strict=True)),
            **dict(zip(self.written, written, strict=True)),
        }

    def _staged(
        self, function: Callable[..., Sequence[Value]], consts: ArrayLikes, carry: ArrayLikes
    ) -> ClosedJaxpr:
        avals = [typeof(x) for x in (*consts, *carry)]
        return stage(function, avals, self.body.program.jaxpr.origin)


# The array of each operand; for references, the current array.
Arrays = dict[Atom, ArrayLike]


class _Program:
    """The condition or the body of a loop, as a program on arrays.

    Attributes:
      program: the program, whose last outputs are the new arrays of `written`.
      consts: the operands of the loop that are its first inputs.
      written: the references among `consts` to which the program writes.
    """

    def __init__(self, program: ClosedJaxpr, consts: Sequence[Atom]):
        self.consts = consts
        self.program, flags = discharge_program(program)
        self.written = where(consts, flags[: len(consts)])

    def run(self, arrays: Arrays, carry: ArrayLikes) -> list[ArrayLike]:
        """Run the program; return its own outputs, and store new arrays of references."""
        results = jaxpr_as_fun(self.program, *[arrays[atom] for atom in self.consts], *carry)
        count = len(results) - len(self.written)
        arrays.update(zip(self.written, results[count:], strict=True))
        return results[:count]
