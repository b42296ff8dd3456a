"""Taylor mode of each function of the samples: jet gives the derivatives that nested jvp gives."""

from hlofront.experimental.jet import jet
from tests.systematic import differentiating
from tests.systematic.test_derivatives import (
    FEW,
    SAMPLES,
    Batch,
    assert_alike,
    cached,
    cases,
    problem,
    result,
)
from tests.systematic.trials import AT_ONCE

ORDER = 3


def is_chosen(file, place):
    """Whether derivatives of a sample can be compared: they are of 64-bit floats, and smooth."""
    sample = SAMPLES[file][place]
    return (
        not {"jvp", "twice"} & set(sample.refused)
        and not sample.not_smooth
        and problem(file, place).precision < 1e-10
    )


CHOSEN = {file: [p for p in places if is_chosen(file, p)] for file, places in FEW.items()}


def derivatives_along_a_curve(one, jax):
    """A function of operands and directions: the results of jet, and of nested jvp."""
    places = [i for i, direction in enumerate(one.directions) if direction is not None]

    def function(operands, directions, seconds):
        def at(*moving):
            whole = list(operands)
            for place, x in zip(places, moving, strict=True):
                whole[place] = x
            return [x for x in one.call(*whole) if differentiating.moves(x)]

        def on_curve(t):
            return at(
                *[
                    operands[i] + t * directions[i] + t**2 / 2 * seconds[i] + t**3 / 6 * operands[i]
                    for i in places
                ]
            )

        series = [[directions[i], seconds[i], operands[i]] for i in places]
        _, terms = jet(at, [operands[i] for i in places], series)
        nested, derivative = [], on_curve
        for _ in range(ORDER):
            derivative = slope(derivative, jax)
            nested.append(derivative(0.0))
        return [[own[k] for own in terms] for k in range(ORDER)], nested

    return function


def slope(function, jax):
    return lambda t: jax.jvp(function, (t,), (1.0,))[1]


@cached
def along_curves(file, batch):
    places = CHOSEN[file][batch * AT_ONCE : (batch + 1) * AT_ONCE]
    program = Batch(file, places, derivatives_along_a_curve)
    return program(
        {
            place: (one.operands, one.directions, one.seconds)
            for place, one in program.problems.items()
        }
    )


@cases(lambda sample: True, CHOSEN)
def test_jet_is_nested_jvp(file, place):
    terms, nested = result(along_curves(file, CHOSEN[file].index(place) // AT_ONCE)[place])
    assert_alike(terms, nested, 1e-13)
