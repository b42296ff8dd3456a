"""Operations stand at the user's line, under the name of the user's primitive, whatever is emitted.

Rules for CPUs emit many operations for one, of arrays of many elements; here of any size.
"""

import re

import pytest

import hlofront
import hlotools
from hlofront.core.programs.subprograms import subjaxprs
from hlofront.core.rules import lower
from hlotools.ir.stablehlo_parser import read_stablehlo
from tests.systematic import trials
from tests.systematic.line_programs import PROGRAMS
from tests.systematic.selected import PAIRS
from tests.systematic.test_formulas import formulas_for_arrays_of_any_size

pytestmark = [pytest.mark.cpu, pytest.mark.slow]
__all__ = ["formulas_for_arrays_of_any_size"]

FILES = trials.load()
SAMPLES = [sample for samples in FILES.values() for sample in samples]
MARKED = re.compile(r'func\.func private @"?([^"(\s]+)"?\(.*\bhlofront\.primitive = "([^"]+)"')

# Operations that XLA adds by itself, and those that compute nothing.
OF_XLA = {
    "bitcast",
    "broadcast",  # of constants
    "constant",
    "convert",  # around operations that have no narrow floats
    "convolution",  # whose metadata XLA drops
    "copy",
    "get-tuple-element",
    "pad",  # of windows
    "parameter",
    "transpose",  # of operands of products
    "tuple",
}


def primitives_in(jaxpr):
    names = {equation.primitive.name for equation in jaxpr.eqns}
    return names.union(*map(primitives_in, subjaxprs(jaxpr)))


def traced(sample):
    """A sample's function and its operands, and the names of the primitives in its program."""
    call, operands = trials.split(sample, sample.operand_values())
    program = hlofront.jit(lambda *xs: call(*xs)).trace(*operands)
    return call, operands, program, primitives_in(program.jaxpr.jaxpr)


def is_of_user(source):
    """Whether a source line is one of a sample, not one that lowers it."""
    return source is not None and bool(source.file) and not source.file.endswith("test_lines.py")


def names_of(operation):
    """The last parts of the names of an operation; one that stands for several has several."""
    return {name.rpartition("/")[2] for name in operation.op_name.split(";")}


def is_scalar_region(computation):
    """Whether a computation is the function of a reduction or a sort, which a line calls."""
    return all(parameter.shape.size == 1 for parameter in computation.parameters) and not (
        computation.is_entry
    )


# ---- StableHLO -----------------------------------------------------------------------------------


@pytest.mark.each_part
@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_each_operation_of_stablehlo_is_at_the_users_line(platform):
    """Operations of the functions that stand for one get the location of each call from XLA."""
    wrong = []
    with_functions = set()
    for file, place in PAIRS:
        sample = FILES[file][place]
        with trials.quiet(), hlofront.enable_x64(sample.needs_x64()):
            _, _, program, known = traced(sample)
            try:
                lowered = program.lower(lowering_platforms=(platform,))
            except NotImplementedError:
                continue  # It cannot be lowered for this platform.
        text = lowered.as_text(debug_info=True)
        functions = dict(MARKED.findall(text))
        with_functions.update(functions.values())
        for operation in read_stablehlo(text).instructions():
            where = operation.computation
            if operation.opcode in ("constant", "get-tuple-element", "parameter", "tuple"):
                continue
            if is_of_user(operation.source) and names_of(operation) <= known:
                continue
            is_inside = where.name in functions or is_scalar_region(where) or "%" in where.name
            if operation.op_name or not is_inside:
                wrong.append(f"{sample.name}: {operation} in {where} at {operation.op_name}")
    assert not wrong, "\n".join(wrong)
    assert len(with_functions) >= (20 if platform == "cpu" else 5)


# ---- optimized HLO -------------------------------------------------------------------------------


def chosen(x64):
    """Samples with private functions for each primitive with a rule for CPUs, two of each."""
    rules = (*lower.on_platform, *lower.matches)
    on_cpus = {primitive.name for primitive, platform in rules if platform == "cpu"}
    counts = dict.fromkeys(on_cpus, 0)
    found = []
    for sample in [*PROGRAMS, *SAMPLES]:
        if sample.needs_x64() is not x64:
            continue
        call, operands, program, known = traced(sample)
        wanted = {name for name in on_cpus & known if counts[name] < 2}
        if wanted:
            text = program.lower(lowering_platforms=("cpu",)).as_text()
            wanted &= {primitive for _, primitive in MARKED.findall(text)}
        if wanted or sample in PROGRAMS:
            found.append((sample.name, call, operands, known))
            counts.update({name: counts[name] + 1 for name in wanted})
    return found


@pytest.mark.long
@pytest.mark.parametrize(("x64", "least"), [(False, 45), (True, 4)])
def test_each_operation_of_optimized_hlo_is_at_the_users_line(x64, least):
    with trials.quiet(), hlofront.enable_x64(x64):
        cases = chosen(x64)

        def together(all_operands):
            results = []
            for number, ((_, call, _, _), operands) in enumerate(
                zip(cases, all_operands, strict=True)
            ):
                with hlofront.named_scope(f"case{number}"):
                    results.append(call(*operands))
            return results

        lowered = hlofront.jit(together).lower([operands for _, _, operands, _ in cases])
        text = lowered.compile(compiler_options=trials.COMPILES_FAST).as_text()
    assert len(cases) >= least
    seen = set()
    wrong = []
    for operation in hlotools.parse(text).instructions():
        number = re.search(r"/case(\d+)/", operation.op_name)
        if number is not None and is_of_user(operation.source):
            seen.add(int(number[1]))
            known = cases[int(number[1])][-1]
            # Loops have parts with names of their own, as in JAX.
            if names_of(operation) <= known or "/while" in operation.op_name:
                continue
        if not is_of_xla(operation):
            wrong.append(f"{operation} in {operation.computation.name} at {operation.op_name!r}")
    assert not wrong, "\n".join(wrong)
    # XLA may compute a case while it compiles.
    assert len(cases) - len(seen) <= 2


def is_of_xla(operation):
    """Whether XLA added an operation, or it is in the function of a reduction."""
    fused = operation.fused
    operation = operation if fused is None else fused.root
    computation = operation.computation
    return (
        operation.opcode in OF_XLA
        or is_scalar_region(computation)
        or is_step_of_scatter(computation)
    )


def is_step_of_scatter(computation):
    """Whether a computation is a step of the loop that XLA makes of a scatter, without names.

    The fusion that calls it has the line and the name.
    """
    is_update = computation.root.opcode == "dynamic-update-slice"
    return is_update and not any(each.op_name for each in computation)
