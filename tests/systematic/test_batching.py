"""vmap of each sample is a Python loop: over each operand alone, over all, along either end."""

import numpy as np
import pytest

import hlofront
from tests.on_platforms import cached
from tests.support.closeness import assert_within
from tests.systematic import batching, trials
from tests.systematic.selected import SAMPLES, SELECTED
from tests.systematic.trials import AT_ONCE

CHOSEN = {
    file: [place for place in batching.chosen(samples) if place in SELECTED[file]]
    for file, samples in SAMPLES.items()
}
IN_ALL_WAYS = {file: batching.in_all_ways(samples) for file, samples in SAMPLES.items()}


def cases(wanted):
    """Parametrize by the samples for which `wanted` holds."""
    pairs = [
        (file, place)
        for file, places in CHOSEN.items()
        for place in places
        if wanted(SAMPLES[file][place])
    ]
    names = [f"{file}-{SAMPLES[file][place].name}" for file, place in pairs]
    return pytest.mark.parametrize(("file", "place"), pairs, ids=names)


@cached
def stacks_of(file, place):
    sample = SAMPLES[file][place]
    return batching.Stacks(sample, hlofront, sample.name in IN_ALL_WAYS[file])


def batches(file, x64):
    """The places of a file's samples that are not refused, so many at once."""
    places = [
        place
        for place in CHOSEN[file]
        if "vmap" not in SAMPLES[file][place].refused and SAMPLES[file][place].needs_x64() is x64
    ]
    return [places[i : i + AT_ONCE] for i in range(0, len(places), AT_ONCE)]


def described(results):
    """(shape, dtype, weak, value) of each array, or the error in their place."""
    if isinstance(results, Exception):
        return results
    return trials.describe(results, hlofront)


@cached
def mapped(file, x64, batch):
    """place -> what each way of mapping gives."""
    places = batches(file, x64)[batch]
    all_stacks = [stacks_of(file, place) for place in places]
    program = trials.Together(
        [batching.in_every_way(stacks, hlofront) for stacks in all_stacks], x64, hlofront
    )
    results = program([[s.mapped(way) for way in s.ways()] for s in all_stacks])
    return {
        place: each if isinstance(each, Exception) else [described(one) for one in each]
        for place, each in zip(places, results, strict=True)
    }


@cached
def looped(file, x64, batch):
    """place -> for each way of mapping, what each turn of a loop gives."""
    places = batches(file, x64)[batch]
    all_stacks = [stacks_of(file, place) for place in places]
    program = trials.Together([stacks.call for stacks in all_stacks], x64, hlofront)
    found = {place: [] for place in places}
    for number in range(max(len(stacks.ways()) for stacks in all_stacks)):
        # Those with fewer ways go through one of theirs again.
        ways = [stacks.ways()[number % len(stacks.ways())] for stacks in all_stacks]
        entries = [stacks.entries(way) for stacks, way in zip(all_stacks, ways, strict=True)]
        turns = [program([entry[turn] for entry in entries]) for turn in range(batching.SIZE)]
        for i, place in enumerate(places):
            found[place].append([described(results[i]) for results in turns])
    return found


def batch_of(file, place):
    x64 = SAMPLES[file][place].needs_x64()
    return file, x64, next(i for i, b in enumerate(batches(file, x64)) if place in b)


@cases(lambda sample: "vmap" not in sample.refused)
def test_vmap_is_a_loop(file, place):
    where = batch_of(file, place)
    found = mapped(*where)[place]
    if isinstance(found, Exception):
        raise found
    wanted = looped(*where)[place]
    sample, ways = SAMPLES[file][place], stacks_of(file, place).ways()
    # A batch of samples is run in as many ways as the one with most of them has.
    count = len(ways)
    for way, results, turns in zip(ways, found[:count], wanted[:count], strict=True):
        for i, (shape, dtype, weak, value) in enumerate(results):
            axis = way[1] % len(shape)
            loop = np.stack([turn[i][3] for turn in turns], axis)
            assert (dtype, weak) == turns[0][i][1:3], way
            if not sample.unlike_loop:
                assert shape == loop.shape, way
                assert_within(value, loop, sample.ulps or 40)


@cases(lambda sample: "vmap" in sample.refused)
def test_vmap_is_refused(file, place):
    sample, stacks = SAMPLES[file][place], stacks_of(file, place)
    class_, words = sample.refused["vmap"]
    way = stacks.ways()[0]
    with trials.quiet(), hlofront.enable_x64(sample.needs_x64()):
        with pytest.raises(class_, match=words):
            hlofront.eval_shape(hlofront.vmap(stacks.call), *stacks.mapped(way))


def one_of_each_function():
    """The first sample of each function: to compute outside of jit is slow."""
    seen = set()

    def wanted(sample):
        new = sample.function not in seen and "vmap" not in sample.refused
        seen.add(sample.function)
        return new

    return wanted


@cases(one_of_each_function())
def test_vmap_outside_jit(file, place):
    sample, stacks = SAMPLES[file][place], stacks_of(file, place)
    way = stacks.ways()[0]
    with trials.quiet(), hlofront.enable_x64(sample.needs_x64()):
        found = hlofront.vmap(stacks.call, in_axes=way[0])(*stacks.mapped(way))
    wanted = mapped(*batch_of(file, place))[place][0]
    for one, other in zip(described(found), wanted, strict=True):
        assert one[:3] == other[:3]
        assert_within(one[3], other[3], sample.ulps or 40)
