"""Runs a scenario for a time, and then tells what its operations leave behind."""

import collections
import gc
import itertools
import random
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterator
from typing import NamedTuple

import hlofront as jax
from tests.support import memory

# Makes operations for ever; yields how many it has made.
Scenario = Callable[[random.Random], Iterator[int]]
MOST_FINDS = 10
# What may be left by each operation of a burst, and by all of a short burst, in bytes and objects.
BYTES_EACH, BYTES_OF_ALL = 16, 64 << 10
OBJECTS_EACH, OBJECTS_OF_ALL = 0.05, 300
# Of the time: before anything is measured, and each of the bursts at the end.
WARM_UP, BURST = 0.25, 0.1


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
      operations: how many it made.
      resident: by how many bytes an operation the process grew after it was warm.
      regions: by how many mapped regions the process grew after it was warm.
      finds: what was wrong, each as a text.
    """

    operations: int
    resident: float
    regions: int
    finds: list[str]


class Held(NamedTuple):
    """What a process holds: counts of arrays and of objects by type, bytes by line of code."""

    arrays: int
    objects: collections.Counter[str]
    lines: collections.Counter[str]


class _Run:
    def __init__(self, scenario: Scenario, seed: int, alive: Callable[[], None]):
        self.scenario, self.seed, self.alive = scenario, seed, alive
        self.steps = scenario(random.Random(seed))
        self.finds: list[str] = []

    def until(self, is_over: Callable[[int], bool]) -> int:
        """Make operations until it is over; return how many."""
        count = 0
        while not is_over(count) and len(self.finds) < MOST_FINDS:
            self.alive()
            try:
                count += next(self.steps)
            except Exception as error:
                self.finds.append(_described(error))
                self.seed += 1
                self.steps = self.scenario(random.Random(self.seed))
        return count

    def for_seconds(self, seconds: float) -> int:
        end = time.monotonic() + seconds
        return self.until(lambda count: time.monotonic() > end)

    def for_operations(self, most: int) -> int:
        return self.until(lambda count: count >= most)


def _described(error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})"
    return " ".join(text.split())[:600]


def run(
    scenario: Scenario, seconds: float, seed: int = 0, alive: Callable[[], None] = lambda: None
) -> Outcome:
    """Run a scenario for about so many seconds; `alive` is called before each operation."""
    run = _Run(scenario, seed, alive)
    count = run.for_seconds(WARM_UP * seconds)
    gc.collect()
    resident, regions = memory.resident_bytes(), memory.mapped_regions()
    warm = run.for_seconds((1 - WARM_UP - 3 * BURST) * seconds)
    gc.collect()
    resident, regions = memory.resident_bytes() - resident, memory.mapped_regions() - regions
    tracemalloc.start(1)
    try:
        burst = max(run.for_seconds(BURST * seconds), 1)
        snapshots = [held()]
        for _ in range(2):
            run.for_operations(burst)
            snapshots.append(held())
    finally:
        tracemalloc.stop()
    finds = [*run.finds, *grown(snapshots, burst)]
    return Outcome(count + warm + 3 * burst, resident / max(warm, 1), regions, finds)


def held() -> Held:
    """Return what this process holds now."""
    for _ in range(3):
        gc.collect()
    snapshot = tracemalloc.take_snapshot().filter_traces(
        (tracemalloc.Filter(False, tracemalloc.__file__), tracemalloc.Filter(False, __file__))
    )
    lines: collections.Counter[str] = collections.Counter()
    for each in snapshot.statistics("lineno"):
        lines[str(each.traceback)] += each.size
    objects = collections.Counter(type(each).__name__ for each in gc.get_objects())
    return Held(len(jax.live_arrays()), objects, lines)


def grown(snapshots: list[Held], operations: int) -> list[str]:
    """Say what each of equal bursts of operations adds to what is held."""

    def least(counts: list[int]) -> int:
        return min(after - before for before, after in itertools.pairwise(counts))

    found = []
    arrays = least([each.arrays for each in snapshots])
    if arrays > 0:
        found.append(f"{arrays} arrays are left by {operations} operations")
    most = max(OBJECTS_EACH * operations, OBJECTS_OF_ALL)
    for name in snapshots[-1].objects:
        more = least([each.objects[name] for each in snapshots])
        if more > most:
            found.append(f"{more} objects of {name} are left by {operations} operations")
    most = max(BYTES_EACH * operations, BYTES_OF_ALL)
    for line in snapshots[-1].lines:
        more = least([each.lines[line] for each in snapshots])
        if more > most:
            found.append(f"{more} bytes of {line} are left by {operations} operations")
    return found
