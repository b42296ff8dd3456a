"""The search for the smallest part of a program that XLA compiles wrongly."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge import state
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Var
from hlofront.core.programs.subprograms import (
    all_equations,
    branches_of,
    condition_of,
    executed_by,
    inputs_among,
    split_inputs,
)
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.error.references import Float64
from hlofront.inspect.miscompile.bounded_run import BoundedRun, OperationFailed, WrongPart
from hlofront.inspect.miscompile.bounds import Sampled, is_undetermined, stored, wrong_elements
from hlofront.inspect.miscompile.parts import ProgramPart, inlined, part_of, smallest
from hlofront.inspect.miscompile.report import MiscompileReport, WrongValue
from hlofront.inspect.miscompile.trials import Kind, Outcome, Trials
from hlofront.inspect.stepwise.call import names_of
from hlofront.inspect.stepwise.loops import row
from hlofront.inspect.stepwise.operands import typed
from hlofront.inspect.stepwise.report_parts import Inside, OperationStep, facts, source_line_of
from hlofront.inspect.stepwise.run import Level, inside
from hlofront.pjrt.clients import client_for
from hlofront.runtime.checks.program_walk import selected
from hlofront.runtime.dispatch.stages import Traced
from hlofront.runtime.sharding.device_assignment import DeviceAssignment, first_device
from hlofront.transforms.discharge import discharge_program
from hlofront.transforms.simplify import dead_code_program

# The number of samples in the first run, and in the run that confirms a fault.
_SAMPLES = 3
_MORE_SAMPLES = 12
# The number of steps of a loop that are searched.
_MAX_STEPS = 64

Tell = Callable[[str], object]


class Found(NamedTuple):
    """A part of a program that is wrong when it is compiled."""

    part: ProgramPart
    values: Mapping[Atom, Sampled]
    inside: tuple[Inside, ...]
    kind: Kind
    failure: str
    outcome: Outcome
    is_alone: bool = False

    @property
    def operands(self) -> list[ArrayLike]:
        """The values of the part's inputs."""
        return [self.values[var].array for var in self.part.inputs]

    def differs(self, outcome: Outcome) -> list[Var]:
        """Return the part's outputs that are wrong in an outcome."""
        if any(var not in self.values for var in self.part.outputs):
            return []
        return wrong_among(outcome, self.part.outputs, self.values, "values")


def refuse_effects(program: ClosedJaxpr, name: str) -> None:
    """Raise TypeError for a program that cannot run again with the same results."""
    if program.effects:
        effects = ", ".join(sorted(map(str, program.effects)))
        raise TypeError(
            f"{name} runs the program many times, and it has effects ({effects}): leave out "
            "prints, callbacks and writes to references, or pass a function without them"
        )
    for equation in all_equations(program):
        if equation.primitive.name == "rng_uniform":
            raise TypeError(
                f"{name} compares runs of the program, and lax.rng_uniform draws other numbers "
                "in each: use jax.random"
            )


def wrong_among(
    outcome: Outcome, atoms: Sequence[Atom], values: Mapping[Atom, Sampled], kind: Kind
) -> list[Var]:
    """Return the variables that are wrong in an outcome, in the same way as the whole program.

    Args:
      outcome: the outcome of a program.
      atoms: the outputs of the program.
      values: their values operation by operation.
      kind: what is wrong with the program as a whole.
    """
    variables = [atom for atom in atoms if isinstance(atom, Var)]
    if outcome.kind != "values" or kind != "values":
        return variables if outcome.kind == kind else []
    pairs = zip(atoms, outcome.results, strict=True)
    return [
        atom for atom, x in pairs if isinstance(atom, Var) and wrong_elements(x, values[atom]).any()
    ]


class Search:
    """A search for the smallest part of a program that XLA compiles wrongly."""

    def __init__(self, traced: Traced, arrays: list[ArrayLike], trials: Trials, tell: Tell):
        self.traced = traced
        self.arrays = arrays
        self.trials = trials
        self.tell = tell
        used = (True,) * len(traced.jaxpr.out_avals)
        lean, _ = dead_code_program(traced.jaxpr, used, True)
        self.program = discharge_program(lean).program
        self.samples, self.seed = _SAMPLES, 0
        # The right results, where they are known: an operation may be wrong even on its own.
        self.expected: list[Sampled | None] = [None] * len(self.program.out_avals)
        self.platform = first_device(traced._where).platform
        self.is_on_one_device = type(traced._where) is not DeviceAssignment
        tpu = self.platform == "tpu"
        self.reference = Float64(client_for("cpu").local_devices()[0] if tpu else None)

    def run(self, try_apart: bool) -> tuple[MiscompileReport, Found | None]:
        """Return the report, and the smallest wrong part; None if nothing is wrong.

        Args:
          try_apart: whether a program for a CPU first runs in a separate process.
        """
        # The other process has one CPU.
        if try_apart and self.platform == "cpu" and self.is_on_one_device:
            self._try_apart()
        self.tell("running the program as a whole and operation by operation")
        whole = self.trials.run(self.program, self.arrays)
        program = inlined(self.program)
        run, level, failed = self._run(program, self.arrays, ())
        if failed is not None:
            return self._described(failed, ()), failed
        wrong = wrong_among(whole, program.jaxpr.outvars, level.values, whole.kind)
        if wrong and whole.kind == "values":
            # With more samples, it is known better what rounding explains.
            self.samples, self.seed = _MORE_SAMPLES, 1
            run, level, _ = self._run(program, self.arrays, ())
            wrong = wrong_among(whole, program.jaxpr.outvars, level.values, whole.kind)
        if not wrong and whole.kind == "values":
            if run.wrong is None:
                return self._right(program, level), None
            found = self._of_wrong_part(run.wrong)
            return self._described(found, ()), found
        self.tell("compiling smaller parts of the program")
        found = self._narrowed(program, level, wrong, whole)
        self.expected = [level.values.get(atom) for atom in program.jaxpr.outvars]
        results = () if whole.kind != "values" else self._results(program, level, wrong, whole)
        return self._described(found, results), found

    def _try_apart(self) -> None:
        self.tell("running the program in a process of its own")
        try:
            outcome = self.trials.run_under("current", self.program, self.arrays)
        except NoEnvironment:
            # It calls back to this process.
            return
        self.trials.isolated = outcome.kind in ("crash", "hang")

    def _run(
        self, program: ClosedJaxpr, arrays: ArrayLikes, around: tuple[Inside, ...]
    ) -> "tuple[BoundedRun, Level[Sampled], Found | None]":
        """Run a program operation by operation; an operation that fails is the third result."""
        single = self.trials.run if self.trials.isolated else None
        run = BoundedRun(
            self.reference, self.samples, self.seed, self.platform != "cpu", single,
            self.trials.seconds,
        )  # fmt: skip
        with self.reference.running():
            names = names_of(self.traced.jaxpr)[0]
            labels = names if len(names) == len(arrays) else [""] * len(arrays)
            args = [Sampled(x, name) for x, name in zip(arrays, labels, strict=True)]
            level: Level[Sampled] = Level(program.jaxpr, around)
            try:
                run.record(level, program, args)
            except OperationFailed as error:
                return run, level, self._of_wrong_part(error.part)
        return run, level, None

    def is_right(self, whole: Outcome) -> bool:
        """Return whether the outcome of the whole program is right, as far as that is known."""
        return whole.kind == "values" and not any(
            value is not None and wrong_elements(x, value).any()
            for x, value in zip(whole.results, self.expected, strict=True)
        )

    # ---- smaller parts

    def _narrowed(
        self, program: ClosedJaxpr, level: Level[Sampled], wrong: Sequence[Var], whole: Outcome
    ) -> Found:
        """Return the smallest part of a wrong program that is wrong on its true inputs."""
        part = part_of(program.jaxpr.eqns, wrong)
        found = Found(part, level.values, level.inside, whole.kind, whole.failure, whole)

        def wrong_in(part: ProgramPart) -> Sequence[Var]:
            operands = [level.values[var].array for var in part.inputs]
            outcome = self.trials.run(part.program, operands)
            return wrong_among(outcome, part.outputs, level.values, whole.kind)

        if not part.equations or not wrong_in(part):
            return found._replace(part=ProgramPart((), ()))
        part = smallest(part, wrong_in)
        found = found._replace(part=part)
        found = found._replace(outcome=self.trials.run(part.program, found.operands))
        if len(part.equations) == 1:
            deeper = self._inside(part.equations[0], level)
            return found if deeper is None else deeper
        return found

    def _inside(self, equation: Equation, level: Level[Sampled]) -> Found | None:
        """Return the wrong part inside a branch or loop; None if only the whole is wrong."""
        part = executed_by(equation)
        if part is None or part.role not in ("branch", "body"):
            return None
        operands = [level.values[a].array if isinstance(a, Var) else a.operand
                    for a in equation.invars]  # fmt: skip
        if part.role == "branch":
            branches = branches_of(equation)
            number = selected(operands[0], len(branches))
            chosen = branches[number]
            around = inside(level, equation, chosen.closed, number)
            return self._in_program(chosen.closed, inputs_among(chosen, operands), around)
        *around, here = inside(level, equation, part.closed)
        condition = condition_of(equation)
        consts, carry, xs = split_inputs(part, operands)
        length = part.iterations or _MAX_STEPS
        for time in range(min(length, _MAX_STEPS)):
            index = length - 1 - time if equation.params.get("reverse") else time
            if condition is not None:
                read = split_inputs(condition, operands)[0]
                goes_on = self.trials.run(condition.closed, [*read, *carry]).results
                if not goes_on or not np.asarray(goes_on[0]).any():
                    break
            inputs = [*consts, *carry, *(row(x, index) for x in xs)]
            place = (*around, Inside(here.operation, here.function, here.source_line, index))
            program = inlined(part.closed)
            outcome = self.trials.run(program, inputs)
            _, inner, failed = self._run(program, inputs, place)
            if failed is not None:
                return failed
            wrong = wrong_among(outcome, program.jaxpr.outvars, inner.values, outcome.kind)
            if wrong:
                return self._narrowed(program, inner, wrong, outcome)
            new = [inner.values[a].array if isinstance(a, Var) else a.operand
                   for a in program.jaxpr.outvars]  # fmt: skip
            carry = new[: len(carry)]
        return None

    def _in_program(
        self, program: ClosedJaxpr, arrays: ArrayLikes, around: tuple[Inside, ...]
    ) -> Found | None:
        """Return the wrong part of an inner program; None if the program is right."""
        program = inlined(program)
        outcome = self.trials.run(program, arrays)
        _, level, failed = self._run(program, arrays, around)
        if failed is not None:
            return failed
        wrong = wrong_among(outcome, program.jaxpr.outvars, level.values, outcome.kind)
        return self._narrowed(program, level, wrong, outcome) if wrong else None

    def _of_wrong_part(self, wrong: WrongPart) -> Found:
        """Return the part that was found wrong while the program ran operation by operation."""
        if wrong.program is not None:
            inner = self._in_program(wrong.program, wrong.operands, wrong.inside)
            if inner is not None:
                return inner
        equation = wrong.equation
        values: dict[Atom, Sampled] = {
            atom: Sampled(x, "") for atom, x in zip(equation.invars, wrong.operands, strict=False)
        }
        outputs = equation.outvars[wrong.position : wrong.position + 1]
        if wrong.expected is not None:
            values[outputs[0]] = wrong.expected
        part = ProgramPart((equation,), tuple(outputs))
        failed = Outcome((), wrong.kind, wrong.failure)
        found = Found(part, values, wrong.inside, wrong.kind, wrong.failure, failed, True)
        if wrong.program is not None:
            return found._replace(part=ProgramPart((), ()), is_alone=False)
        if wrong.kind != "values":
            level: Level[Sampled] = Level(part.program.jaxpr, wrong.inside)
            level.values.update(values)
            deeper = self._inside(equation, level)
            return found if deeper is None else deeper
        return found._replace(outcome=self.trials.run(part.program, found.operands))

    # ---- the report

    def _right(self, program: ClosedJaxpr, level: Level[Sampled]) -> MiscompileReport:
        paths = names_of(self.traced.jaxpr)[1]
        undetermined = [
            path
            for path, atom in zip(paths, program.jaxpr.outvars, strict=False)
            if isinstance(atom, Var) and is_undetermined(level.values[atom])
        ]
        return MiscompileReport(
            function=self._function(),
            jaxlib=".".join(map(str, state.jaxlib_version)),
            kind=None,
            undetermined=tuple(undetermined),
            trials=self.trials.count,
        )

    def _function(self) -> str:
        info = self.traced.jaxpr.debug_info
        return info.func_src_info if info else self.traced.fun_name

    def _results(
        self, program: ClosedJaxpr, level: Level[Sampled], wrong: Sequence[Var], whole: Outcome
    ) -> tuple[WrongValue, ...]:
        paths = names_of(self.traced.jaxpr)[1]
        return tuple(
            _wrong_value(path, x, level.values[atom])
            for path, atom, x in zip(paths, program.jaxpr.outvars, whole.results, strict=False)
            if isinstance(atom, Var) and atom in wrong
        )

    def _described(self, found: Found, results: tuple[WrongValue, ...]) -> MiscompileReport:
        part = found.part
        values: list[WrongValue] = []
        if part.equations and found.outcome.kind == "values":
            values = [
                _wrong_value("", x, found.values[var])
                for var, x in zip(part.outputs, found.outcome.results, strict=True)
                if var in found.differs(found.outcome)
            ]
        return MiscompileReport(
            function=self._function(),
            jaxlib=".".join(map(str, state.jaxlib_version)),
            kind=found.kind,
            failure=found.failure,
            results=results,
            operations=tuple(
                OperationStep(e.primitive.name, source_line_of(e.traceback)) for e in part.equations
            ),
            is_alone=found.is_alone,
            inside=found.inside,
            part=tuple(values),
            program=str(part.program.jaxpr) if part.equations else "",
            trials=self.trials.count,
        )


def _wrong_value(name: str, found: ArrayLike, value: Sampled) -> WrongValue:
    wrong = wrong_elements(found, value)
    shape = typed(value.array)[1]
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    index = first[: len(shape)]
    exact = value.samples[0] if value.samples else None
    stepwise = _text(value.array, first)
    float64 = ""
    if exact is not None and typed(exact)[0] != typed(found)[0]:
        float64 = _text(exact, first)
    return WrongValue(
        name,
        facts(name, value.array).type,
        int(wrong.sum()),
        int(wrong.size),
        index,
        _text(found, first),
        stepwise,
        "" if float64 == stepwise else float64,
    )


def _text(x: ArrayLike, index: tuple[int, ...]) -> str:
    host = np.asarray(x) if len(np.shape(x)) == len(index) else stored(x)
    return str(host[index])
