"""The calls of the catalogue that belong to a part of all tests; see tests/support/parts.py.

It is a file of its own, as jax's kept answers are those of the catalogue's files.
"""

from tests.numpy import catalogue
from tests.support import parts


def of_part(chapter: str) -> list[catalogue.Call]:
    """Return the calls of a chapter in the part that runs: of each function, one is first."""
    calls = catalogue.of_chapter(chapter)
    return parts.select(calls, parts.SAMPLES, lambda one: one.name, lambda one: [one.function])
