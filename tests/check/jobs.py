"""The jobs of `./check`: processes that lint, check types and run tests, two at a time."""

import importlib.util
import os
from collections.abc import Sequence
from typing import NamedTuple

from tests.check.affected_tests import affected_tests, words_of

SAMPLES = "tests/against_jax/test_samples.py"
CORPORA = "tests/against_jax/test_corpora.py"
HISTORY = "tests/lowering/test_history.py"
LOWERING = "tests/lowering"
# Builds the documentation's site, which needs the extra `docs`: `./check docs`.
SITE = "tests/site"
# These run the code that users get: tests of memory, caches and processes, of numbers and texts.
RUNTIME = ("tests/smoke", "tests/runtime", "tests/processes", "tests/pjrt")
PROGRAMS = (
    "tests/inspect",
    "tests/examples",
    "tests/seeds",
    "tests/random/test_keys.py",
    "tests/against_jax/test_accuracy.py",
    "tests/against_jax/test_memory.py",
)
USERS_CODE = (*RUNTIME, *PROGRAMS)
QUICK_CODE = ("-p", "tests.support.quick_code")


class Job(NamedTuple):
    """A process of `./check`.

    Attributes:
      name: what the report calls it.
      arguments: what follows `python -m`.
      work: about how many seconds of processor time it takes, to say how much time is left.
      part: which tests it runs; see tests/support/parts.py.
      ends_at: in how many seconds after the start of `./check` it begins its last test.
    """

    name: str
    arguments: tuple[str, ...]
    work: float
    part: str = "all"
    ends_at: float | None = None

    @property
    def is_pytest(self) -> bool:
        return self.arguments[0] == "pytest"

    @property
    def plugins(self) -> tuple[str, ...]:
        """The arguments of pytest that a single test of this job needs as well."""
        return QUICK_CODE if QUICK_CODE[1] in self.arguments else ()


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_parallel(count: int) -> tuple[str, ...]:
    """Return the arguments by which pytest uses the cores that two jobs at a time leave idle."""
    if count < 4 or importlib.util.find_spec("xdist") is None:
        return ()
    return "-n", str(count // 2), "--dist", "worksteal"


def linters() -> list[Job]:
    """Return the jobs that take seconds, and come first."""
    return [
        Job("ruff check", ("ruff", "check", "--output-format", "concise", "."), 1),
        Job("ruff format", ("ruff", "format", "--check", "--output-format", "concise", "."), 1),
        Job("pyrefly", ("tests.check.types",), 10),
    ]


def pyright() -> Job:
    """Return the job that checks types a second time, as editors do."""
    return Job("pyright", ("tests.check.types", "pyright"), 95)


def conventions(*more: str) -> Job:
    """Return the job of the rules for the source itself."""
    return Job("conventions", ("pytest", "-q", "tests/conventions", *more), 18)


def whole(part: str, *options: str) -> list[Job]:
    """Return the jobs of `./check` for a part of all tests: lint, types, tests and conventions."""
    own = in_parallel(cores())
    others = [*tests_of(part, *options), conventions(*own, *options)]
    if part == "all":
        others.append(pyright())
    return [*linters(), *longest_first(others)]


def rest(*options: str) -> list[Job]:
    """Return the jobs of what `./check` leaves out."""
    return [pyright(), *tests_of("rest", *options)]


def longest_first(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs in an order in which no core waits long at the end."""
    return sorted(jobs, key=lambda job: -job.work)


def tests_of(part: str, *options: str) -> list[Job]:
    """Return the jobs of a part of all tests, the longest first.

    Tests that need the same compiled programs are in one job.
    """
    options = (*in_parallel(cores()), *options)
    elsewhere = (
        "tests/conventions",
        "tests/systematic",
        "tests/numpy",
        LOWERING,
        SAMPLES,
        CORPORA,
        SITE,
        *USERS_CODE,
    )
    is_first = part == "first"
    lowering = (LOWERING, *(f"--ignore={path}" for path in (HISTORY, *PROGRAMS)))
    chosen = {
        "programs": PROGRAMS,
        "layers": (*QUICK_CODE, "tests", *(f"--ignore={path}" for path in elsewhere)),
        "runtime": RUNTIME,
        "corpora and numpy": (*QUICK_CODE, CORPORA, "tests/numpy"),
        "samples": (*QUICK_CODE, "tests/systematic", SAMPLES, HISTORY),
        "lowering": (*QUICK_CODE, *lowering) if is_first else lowering,
    }
    # Of all tests, and of the first part.
    work = {
        "programs": (530, 105),
        "layers": (920, 155),
        "runtime": (500, 80),
        "corpora and numpy": (600, 80),
        "samples": (510, 100),
        "lowering": (400, 27),
    }
    # What `./check` has run as quick code, `./check rest` runs as the code that users get.
    parts = {"lowering": part if is_first else "all"}
    jobs = [
        Job(
            name,
            ("pytest", "-q", *arguments, *options),
            work[name][is_first],
            parts.get(name, part),
        )
        for name, arguments in chosen.items()
    ]
    return longest_first(jobs)


def docs() -> list[Job]:
    """Return the job that builds the documentation's site and tries its pages in a browser."""
    return [Job("docs", ("pytest", "-q", "-rs", SITE), 150)]


def named(arguments: Sequence[str]) -> list[Job]:
    """Return the jobs of `./check tests/numpy -k sort`."""
    return [*linters(), Job("tests", ("pytest", *arguments), 100), conventions()]


def quick(files: Sequence[str]) -> list[Job]:
    """Return the jobs that find in 90 seconds what a change of these files most likely broke."""
    stops = ("-p", "tests.check.time_limit", "-p", "no:cacheprovider")
    jobs = linters()
    tests, words = affected_tests(files), " or ".join(words_of(files))
    if tests:
        arguments = ("pytest", "-q", "-x", *stops, *tests)
        jobs.append(Job("tests of the changed files", arguments, 50, "first", 55))
    jobs.append(
        Job(
            "smoke and conventions",
            ("pytest", "-q", *stops, "tests/smoke", "tests/conventions"),
            50,
            ends_at=75,
        )
    )
    if words:
        where = ("tests/systematic/test_samples.py", CORPORA)
        arguments = ("pytest", "-q", "-x", *stops, *QUICK_CODE, "-k", words, *where)
        jobs.append(Job("samples and corpora", arguments, 25, ends_at=80))
    return jobs
