"""Choices that a seed makes."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class Draw:
    """Draws numbers and members of sequences, always the same ones for the same seed."""

    def __init__(self, *seed: int):
        self.first = seed[0]
        self.generator = np.random.default_rng(seed)

    def below(self, limit: int) -> int:
        return int(self.generator.integers(limit))

    def between(self, low: int, high: int) -> int:
        """Both ends included."""
        return int(self.generator.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def of(self, choices: Sequence[Any]) -> Any:
        return choices[self.below(len(choices))]

    def some(self, choices: Sequence[Any], least: int, most: int) -> list[Any]:
        """Several, each at most once, in any order."""
        count = min(self.between(least, most), len(choices))
        places = self.generator.permutation(len(choices))[:count]
        return [choices[place] for place in places]

    def recent(self, choices: Sequence[Any]) -> Any:
        """One, those at the end rather than those before."""
        return choices[len(choices) - 1 - int(len(choices) * self.generator.random() ** 2)]

    def seed(self) -> int:
        return int(self.generator.integers(1 << 30))
