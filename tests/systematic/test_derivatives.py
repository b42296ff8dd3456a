"""Derivatives of each sample: as differences, transposed, of derivatives, of batches, outside jit.

Operands are drawn anew, in 64 bits where the function takes them, so that differences tell much.
"""

import numpy as np
import pytest

import hlofront
from tests.on_platforms import cached, slack
from tests.systematic import differentiating, trials
from tests.systematic.selected import SAMPLES, SELECTED
from tests.systematic.trials import AT_ONCE


def problems_of(file):
    """The samples to differentiate: one of those that differ by the bits of floats alone."""
    chosen = {}
    for place, sample in enumerate(SAMPLES[file]):
        if differentiating.is_candidate(sample):
            chosen.setdefault(differentiating.key(sample), place)
    return [place for place in chosen.values() if place in SELECTED[file]]


CHOSEN = {file: problems_of(file) for file in SAMPLES}


def few_of(file):
    """One of the chosen for each function: derivatives of derivatives take long to compile."""
    found = {}
    for place in CHOSEN[file]:
        sample = SAMPLES[file][place]
        if sample.function.__name__ in differentiating.LONG:
            continue
        if not {"jvp", "vjp", "twice", "vmap"} & set(sample.refused):
            found.setdefault(sample.function, place)
    refused = [p for p in CHOSEN[file] if {"twice", "vmap"} & set(SAMPLES[file][p].refused)]
    return sorted({*found.values(), *refused})


FEW = {file: few_of(file) for file in SAMPLES}


def cases(wanted, chosen=CHOSEN):
    """Parametrize by the chosen samples for which `wanted` holds."""
    pairs = [
        (file, place)
        for file, places in chosen.items()
        for place in places
        if wanted(SAMPLES[file][place])
    ]
    names = [f"{file}-{SAMPLES[file][place].name}" for file, place in pairs]
    return pytest.mark.parametrize(("file", "place"), pairs, ids=names)


@cached
def problem(file, place, variant=0):
    return differentiating.make_problem(SAMPLES[file][place], hlofront, variant)


class Batch:
    """Programs of the problems of a file, some at once, and what they give at several points."""

    def __init__(self, file, places, make):
        self.problems = {place: problem(file, place) for place in places}
        self.programs = []
        for x64 in (True, False):
            group = [place for place in places if self.problems[place].x64 is x64]
            functions = [make(self.problems[place], hlofront) for place in group]
            self.programs.append((group, trials.Together(functions, x64, hlofront)))

    def __call__(self, arguments):
        """place -> what the program gives of the arguments of that place."""
        found = {}
        for group, program in self.programs:
            results = program([arguments[place] for place in group])
            found.update(zip(group, hlofront.device_get(results), strict=True))
        return found


def batches(file, *refusals):
    """The places of a file's problems that are not refused, so many at once."""
    chosen = FEW if {"twice", "vmap"} & set(refusals) else CHOSEN
    places = [p for p in chosen[file] if not set(refusals) & set(SAMPLES[file][p].refused)]
    return [places[i : i + AT_ONCE] for i in range(0, len(places), AT_ONCE)]


def batch_with(file, place, *refusals):
    return next(i for i, batch in enumerate(batches(file, *refusals)) if place in batch)


@cached
def first_orders(file, batch):
    return Batch(file, batches(file, "jvp")[batch], differentiating.first_order)


def result(found):
    """What a program gave, where it did not raise."""
    if isinstance(found, Exception):
        raise found
    return found


# ---- the first order -----------------------------------------------------------------------------


def step_of(one):
    """How far to go, and how far off differences then may be, by the digits of the dtypes."""
    if one.precision < 1e-10:
        return 1e-4, 1e-6
    return (1e-2, 5e-3) if one.precision < 1e-5 else (0.25, 0.2)


@cached
def at_points(file, batch, order="directions"):
    """For each place: what the first order gives at the point, and a step before and after it."""
    program = first_orders(file, batch)
    found = []
    for sign in (0, 1, -1):
        arguments = {}
        for place, one in program.problems.items():
            moved = one.moved(sign * step_of(one)[0], getattr(one, order))
            arguments[place] = (moved, one.directions, one.cotangents)
        found.append(program(arguments))
    return {place: [each[place] for each in found] for place in program.problems}


def differentiated(file, place):
    return at_points(file, batch_with(file, place, "jvp"))[place]


def assert_differences(results, before, after, tangents, one):
    """Of floats, where they are finite; what is filled in elsewhere does not change."""
    step, tolerance = step_of(one)
    for value, first, last, tangent in zip(results, before, after, tangents, strict=True):
        if tangent is None:
            np.testing.assert_array_equal(first, last)
            continue
        type_ = np.complex128 if tangent.dtype.kind == "c" else np.float64
        finite = np.isfinite(value)
        wanted = (last[finite].astype(type_) - first[finite].astype(type_)) / (2 * step)
        scale = max(1.0, np.max(np.abs(wanted), initial=0.0))
        np.testing.assert_allclose(
            tangent[finite].astype(type_), wanted, rtol=tolerance, atol=tolerance * scale
        )


@cases(lambda sample: "jvp" not in sample.refused)
def test_jvp_is_differences(file, place):
    point, after, before = map(result, differentiated(file, place))
    results, tangents = point[:2]
    one = problem(file, place)
    for found, wanted in zip(results, one.results, strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if not SAMPLES[file][place].not_smooth:
        assert_differences(results, before[0], after[0], tangents, one)


def dot(cotangents, tangents):
    """The real part of the sum of products, and how large its terms are."""
    products = [
        np.asarray(c).astype(np.complex128) * np.asarray(t).astype(np.complex128)
        for c, t in zip(cotangents, tangents, strict=True)
        if c is not None
    ]
    total = sum(float(np.sum(p).real) for p in products)
    return total, float(np.sqrt(sum(np.sum(np.abs(p) ** 2) for p in products)))


def assert_dots_agree(first, second, precision, what):
    (one, size), (other, other_size) = first, second
    if np.isnan(size):  # The results are infinite, and so have no derivatives.
        return
    allowed = max(precision * 64 * slack(), 1e-9) * max(1.0, size, other_size)
    assert abs(one - other) <= allowed, f"{what}: {one} and {other}, allowed {allowed:.3g}"


@cases(lambda sample: not {"jvp", "vjp"} & set(sample.refused))
def test_vjp_is_jvp_transposed(file, place):
    results, tangents, again, cotangents = result(differentiated(file, place)[0])
    one = problem(file, place)
    for found, wanted in zip(again, results, strict=True):
        allowed = 1e-6 * slack()
        np.testing.assert_allclose(
            *(np.asarray(x).astype(np.complex128) for x in (found, wanted)),
            rtol=allowed,
            atol=allowed,
        )
    assert_dots_agree(
        dot(one.cotangents, tangents),
        dot(cotangents, one.directions),
        one.precision,
        "along the result, and along the operands",
    )


@cases(lambda sample: "jvp" in sample.refused)
def test_jvp_is_refused(file, place):
    assert_refused("jvp", file, place, differentiating.forward, "directions")


@cases(lambda sample: "vjp" in sample.refused)
def test_vjp_is_refused(file, place):
    assert_refused("vjp", file, place, differentiating.backward, "cotangents")


def assert_refused(what, file, place, derivative, along):
    one = problem(file, place)
    class_, words = SAMPLES[file][place].refused[what]

    def traced(operands, directions):
        return derivative(one.call, operands, directions, hlofront)

    with trials.quiet(), hlofront.enable_x64(one.x64), pytest.raises(class_, match=words):
        hlofront.eval_shape(traced, one.operands, getattr(one, along))


def one_of_each_function():
    """The first problem of each function: to compute outside of jit is slow."""
    seen = set()

    def wanted(sample):
        new = sample.function not in seen and "jvp" not in sample.refused
        seen.add(sample.function)
        return new

    return wanted


@cases(one_of_each_function())
def test_derivatives_outside_jit(file, place):
    one = problem(file, place)
    with trials.quiet(), hlofront.enable_x64(one.x64):
        found = differentiating.first_order(one, hlofront)(*one.arguments)
    wanted = result(differentiated(file, place)[0])
    assert_alike(found, wanted, one.precision)


def assert_alike(found, wanted, precision):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, list | tuple):
            assert_alike(one, other, precision)
        elif other is None:
            assert one is None
        else:
            one = np.asarray(one)
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            type_ = np.complex128 if other.dtype.kind == "c" else np.float64
            allowed = max(precision * 64 * slack(), 1e-9) if differentiating.moves(other) else 0
            scale = max(1.0, np.max(np.abs(np.nan_to_num(other.astype(type_))), initial=0.0))
            np.testing.assert_allclose(
                one.astype(type_), other.astype(type_), rtol=allowed, atol=allowed * scale
            )


# ---- derivatives of derivatives ------------------------------------------------------------------


@cached
def second_orders(file, batch):
    places = batches(file, "jvp", "vjp", "twice")[batch]
    program = Batch(file, places, differentiating.second_order)
    return program({p: (*one.arguments, one.seconds) for p, one in program.problems.items()})


@cases(lambda sample: not {"jvp", "vjp", "twice"} & set(sample.refused), FEW)
def test_second_order(file, place):
    one = problem(file, place)
    batch = batch_with(file, place, "jvp", "vjp", "twice")
    forward_forward, forward_back, back_forward, back_back = result(
        second_orders(file, batch)[place]
    )
    points = at_points(file, batch_with(file, place, "jvp"), "seconds")[place]
    values, before, after = result(points[0])[0], result(points[2])[1], result(points[1])[1]
    if not SAMPLES[file][place].not_smooth:
        moving = [i for i, tangent in enumerate(before) if tangent is not None]
        values, before, after = ([x[i] for i in moving] for x in (values, before, after))
        assert_differences(values, before, after, forward_forward, one)
    directions = [d for d in one.directions if d is not None]
    seconds = [s for s in one.seconds if s is not None]
    wanted = dot([c for c in one.cotangents if c is not None], forward_forward)
    for what, found in (
        ("jvp of vjp", dot(directions, forward_back)),
        ("vjp of jvp", dot(back_forward, seconds)),
        ("vjp of vjp", dot(back_back, seconds)),
    ):
        assert_dots_agree(wanted, found, one.precision, f"jvp of jvp, {what}")


@cases(lambda sample: "twice" in sample.refused)
def test_second_order_is_refused(file, place):
    one = problem(file, place)
    class_, words = SAMPLES[file][place].refused["twice"]
    derivative = differentiating.second_order(one, hlofront)
    with trials.quiet(), hlofront.enable_x64(one.x64), pytest.raises(class_, match=words):
        hlofront.eval_shape(derivative, *one.arguments, one.seconds)


# ---- derivatives of batches, batches of derivatives ----------------------------------------------


def stacked(file, place):
    """The arguments of two points, one after the other."""
    pairs = [problem(file, place, variant).arguments for variant in (0, 1)]
    return hlofront.tree.map(lambda *both: np.stack(both), *pairs)


@cached
def of_batches(file, batch):
    places = batches(file, "jvp", "vjp", "vmap")[batch]
    program = Batch(file, places, differentiating.derivatives_of_batches)
    return program({place: stacked(file, place) for place in places})


@cached
def at_variants(file, batch, first_only):
    """For each place, what the first order gives at either point."""
    program = first_orders(file, batch)
    found = []
    for variant in (0, 1):
        arguments = {}
        for place, one in program.problems.items():
            other = problem(file, place, variant)
            operands = other.operands
            if first_only:
                operands = [*other.operands[:1], *one.operands[1:]]
            arguments[place] = (operands, other.directions, other.cotangents)
        found.append(program(arguments))
    return {place: [each[place] for each in found] for place in program.problems}


@cases(lambda sample: not {"jvp", "vjp", "vmap"} & set(sample.refused), FEW)
def test_derivatives_of_batches(file, place):
    one = problem(file, place)
    batch = batch_with(file, place, "jvp", "vjp", "vmap")
    of_mapped, mapped, pulled_of_mapped, mapped_pulled, of_first = result(
        of_batches(file, batch)[place]
    )
    batch = batch_with(file, place, "jvp")
    pairs = [result(found) for found in at_variants(file, batch, False)[place]]
    stack = lambda i: hlofront.tree.map(lambda *both: np.stack(both), *[x[i] for x in pairs])
    tangents, cotangents = stack(1), stack(3)
    for found, wanted in (
        (of_mapped, tangents),
        (mapped, tangents),
        (pulled_of_mapped, cotangents),
        (mapped_pulled, cotangents),
    ):
        assert_alike(found, wanted, one.precision)
    # Those of operands that are not mapped add up.
    pairs = [result(found)[3] for found in at_variants(file, batch, True)[place]]
    wanted = [
        None if first is None else np.stack([first, second]) if i == 0 else first + second
        for i, (first, second) in enumerate(zip(*pairs, strict=True))
    ]
    assert_alike(of_first, wanted, one.precision)
