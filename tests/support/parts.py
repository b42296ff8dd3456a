"""Which tests run: all of them, a fixed part that `./check` runs, or the rest.

The environment variable TEST_PART says it: "first", "rest", or "all", the default. The first part
has all tests that stand for themselves, but for those marked `long`. Of tests with many cases, and
of samples, it has the first ones of each stratum (a test function, a corpus, a primitive, the dtype
of a file of samples), and of the others as many as `Share` says, chosen by a digest of their names;
and each test that has found a planted fault. So the part is the same on each machine, and a new
case changes at most which one is the first. Tests marked `each_part` run files of tests in another
process, which selects those of the part by itself.

With any text in TEST_HALF, such as the name of a commit, only half of the cases and samples outside
of the first part run: those that a digest of their names and this text selects. CI gives the
commit, so that each case runs within a few commits, and a fault that shows in several cases is
found at once. Tests that stand for themselves, `long` ones included, all run.
"""

import hashlib
import os
import pathlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    import pytest

PART = os.environ.get("TEST_PART", "all")
if PART not in ("all", "first", "rest"):
    raise ValueError(f"TEST_PART is {PART!r}: expected 'all', 'first' or 'rest'")
HALF = os.environ.get("TEST_HALF", "")

# The tests that found a planted fault the last time: `python -m tests.planted` lists them.
FOUND_A_FAULT = frozenset(
    found.replace("\\|", "|")
    for found in re.findall(
        r"\| `(tests/.*)` \|",
        pathlib.Path(__file__).parents[1].joinpath("planted/RESULTS.md").read_text("utf-8"),
    )
)

T = TypeVar("T")


class Share(NamedTuple):
    """How much of a stratum belongs to the first part: `first` cases, and then one in `one_in`."""

    first: int
    one_in: int


ALL = Share(first=1000, one_in=1)
SAMPLES = Share(first=1, one_in=60)
# By the beginning of a test's path: the longest one decides. All cases run where they take
# milliseconds, and where each is a file of tests or a command that follows another.
CASES = {
    "": Share(first=1, one_in=16),
    "tests/against_jax/": Share(first=2, one_in=24),
    "tests/base/": ALL,
    "tests/core/": ALL,
    "tests/examples/": ALL,
    "tests/examples/test_docstrings.py": Share(first=1, one_in=8),
    "tests/export/": Share(first=2, one_in=4),
    "tests/extension/": ALL,
    "tests/higher_order/": Share(first=2, one_in=4),
    "tests/conventions/": ALL,
    "tests/image/": ALL,
    "tests/lowering/": Share(first=1, one_in=20),
    "tests/many_devices/test_": ALL,
    "tests/nn/": ALL,
    "tests/planted/": ALL,
    "tests/primitives/": ALL,
    "tests/runtime/": Share(first=2, one_in=8),
    "tests/scipy/": Share(first=1, one_in=20),
    "tests/smoke/": ALL,
    "tests/transforms/": ALL,
}


def select(
    items: Iterable[T],
    share: Share,
    name_of: Callable[[T], str],
    strata_of: Callable[[T], Iterable[Hashable]],
    part: str = PART,
    is_first_always: Callable[[T], bool] = lambda item: False,
    half: str = HALF,
) -> list[T]:
    """Return the items of a part.

    Args:
      share: how many of each stratum the first part has.
      name_of: returns a name whose digest decides on items that are not the first of a stratum.
      strata_of: returns the strata of an item. To be the first of one of them is enough.
      is_first_always: returns whether an item belongs to the first part in any case.
      half: if not empty, what selects one half of the items that are not in the first part.
    """
    counts: Counter[Hashable] = Counter()
    chosen = []
    for item in items:
        strata = list(strata_of(item))
        is_first = any(counts[stratum] < share.first for stratum in strata)
        counts.update(strata)
        is_first = is_first or zlib.crc32(name_of(item).encode()) % share.one_in == 0
        is_first = is_first or is_first_always(item)
        is_in_half = is_first or not half or _is_in_half(name_of(item), half)
        if is_in_half and (part == "all" or is_first == (part == "first")):
            chosen.append(item)
    return chosen


def _is_in_half(name: str, half: str) -> bool:
    # Not by crc32: of names of one length, two texts would select the same half, or opposite ones.
    return hashlib.blake2b(f"{half} {name}".encode(), digest_size=1).digest()[0] % 2 == 0


def share_of(path: str) -> Share:
    """Return how many cases of a test in this file belong to the first part."""
    return CASES[max((start for start in CASES if path.startswith(start)), key=len)]


def select_tests(items: Sequence["pytest.Item"], part: str = PART) -> list["pytest.Item"]:
    """Return the tests of a part. Samples were selected before they became tests."""

    def strata_of(item: "pytest.Item") -> list[Hashable]:
        function = item.nodeid.partition("[")[0]
        params = params_of(item)
        # A corpus holds programs of one subject, a chapter of the catalogue calls of one kind.
        return [(function, params.get("corpus"), params.get("chapter"))]

    chosen = set()
    by_share: dict[Share, list[pytest.Item]] = {}
    for item in items:
        params = params_of(item)
        if item.get_closest_marker("long"):
            is_chosen = part != "first"
        elif {"file", "place"} <= params.keys() or item.get_closest_marker("each_part"):
            is_chosen = True
        elif not params:
            is_chosen = part != "rest"
        else:
            by_share.setdefault(share_of(item.nodeid), []).append(item)
            continue
        if is_chosen:
            chosen.add(item)
    for share, cases in by_share.items():
        chosen.update(
            select(
                cases,
                share,
                lambda item: item.nodeid,
                strata_of,
                part,
                lambda item: item.nodeid in FOUND_A_FAULT,
            )
        )
    return [item for item in items if item in chosen]


def params_of(item: "pytest.Item") -> dict[str, object]:
    """Return the parameters of a test that is run for several cases, by name."""
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}
