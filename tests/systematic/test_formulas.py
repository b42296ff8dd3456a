"""Formulas for CPUs give what XLA's operations give: of each sample, its derivatives, its batches.

Formulas are for large arrays, and samples are small. Here they are for arrays of any size.
"""

import numpy as np
import pytest

import hlofront
from hlofront.base.config import options
from hlofront.lowering import rules
from hlofront.lowering.min_sizes import MIN_SIZES
from tests.on_platforms import cached
from tests.support.closeness import assert_within
from tests.systematic import batching, trials
from tests.systematic.differentiating import Problem, moves

pytestmark = [pytest.mark.cpu, pytest.mark.slow]

with_formulas = options["hlofront_cpu_formulas"]
SAMPLES = trials.load()
rules.import_all()
# Reductions are left out: lines of samples are too short for the formula.
FILES = ("contracting", "convolving", "cumulative", "elementwise", "sorting", "windowed")


@pytest.fixture(autouse=True)
def formulas_for_arrays_of_any_size(monkeypatch):
    for of_primitive in MIN_SIZES.values():
        for kind in of_primitive:
            monkeypatch.setitem(of_primitive, kind, 0)


def lowered(function, *arguments):
    return hlofront.jit(function).trace(*arguments).lower(lowering_platforms=("cpu",)).as_text()


def has_formula(sample):
    call, operands = trials.split(sample, sample.operand_values())
    with trials.quiet(), hlofront.enable_x64(sample.needs_x64()):
        texts = []
        for formulas in (True, False):
            with with_formulas(formulas):
                texts.append(lowered(lambda *operands: call(*operands), *operands))
    return texts[0] != texts[1]


@cached
def samples_of(file):
    """The samples of a file that are lowered to formulas."""
    return [sample for sample in SAMPLES[file] if has_formula(sample)]


def derivatives(problem):
    """A function of a sample's operands: results, their tangents, the cotangents of operands."""
    call, refused = problem.call, problem.sample.refused
    moving = [i for i, x in enumerate(problem.operands) if moves(x)]
    cotangents = [ct for ct, x in zip(problem.cotangents, problem.results, strict=True) if moves(x)]

    def function(*operands):
        def of_moving(*moved):
            each = dict(zip(moving, moved, strict=True))
            return [x for x in call(*map(each.get, range(len(operands)), operands)) if moves(x)]

        results = [call(*operands)]
        points = [operands[i] for i in moving]
        if moving and cotangents and "jvp" not in refused:
            directions = [problem.directions[i] for i in moving]
            results.append(hlofront.jvp(of_moving, points, directions)[1])
            if "vjp" not in refused:
                results.append(hlofront.vjp(of_moving, *points)[1](cotangents))
        return results

    return function


def batches(sample):
    """The function that maps a sample's function in every way, and its arguments."""
    stacks = batching.Stacks(sample, hlofront)
    return batching.in_every_way(stacks, hlofront), [stacks.mapped(way) for way in stacks.ways()]


def both(samples, functions, all_arguments, x64):
    """What the functions give with formulas, and without, as flat lists of arrays."""
    found = []
    for formulas in (True, False):
        with with_formulas(formulas):
            program = trials.Together(list(functions), x64, hlofront)
            found.append(program(all_arguments))
            names = [samples[i].name for i in program.errors]
            assert not program.errors, f"{names}: {program.errors}"
    return [[hlofront.tree.leaves(results) for results in side] for side in found]


def assert_alike(samples, functions, all_arguments, x64):
    pairs = zip(*both(samples, functions, all_arguments, x64), strict=True)
    for sample, (found, wanted) in zip(samples, pairs, strict=True):
        for one, other in zip(found, wanted, strict=True):
            try:
                assert_within(np.asarray(one), np.asarray(other), sample.ulps or 40)
            except AssertionError as error:
                raise AssertionError(f"{sample.name}: {error}") from None


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_values_and_derivatives(file, x64):
    samples = [sample for sample in samples_of(file) if sample.needs_x64() is x64]
    problems = [Problem(sample, False, hlofront) for sample in samples]
    functions = [derivatives(problem) for problem in problems]
    assert_alike(samples, functions, [problem.operands for problem in problems], x64)


@pytest.mark.long
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_batches(file, x64):
    chosen = {SAMPLES[file][i].name for i in batching.chosen(SAMPLES[file])}
    samples = [
        sample
        for sample in samples_of(file)
        if sample.needs_x64() is x64 and sample.name in chosen and "vmap" not in sample.refused
    ]
    pairs = [batches(sample) for sample in samples]
    functions = [lambda *operands, f=function: f(*operands) for function, _ in pairs]
    assert_alike(samples, functions, [arguments for _, arguments in pairs], x64)


def test_many_samples_have_formulas():
    counts = {file: len(samples_of(file)) for file in FILES}
    assert all(count > 5 for count in counts.values()), counts
