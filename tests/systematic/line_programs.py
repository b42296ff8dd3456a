"""Programs of primitives that no sample has, for tests of the lines that operations are at."""

import numpy as np

import hlofront
from hlofront import lax


def scan_of_scalars(xs):
    return lax.scan(lambda c, x: (c * 0.5 + x, c), np.float32(0), xs)


def random_numbers(seed):
    return hlofront.random.normal(hlofront.random.key(seed), (100,))


class Program:
    """A function in place of a sample."""

    def __init__(self, function, *operands):
        self.name, self.call, self.operands = function.__name__, function, operands

    def operand_values(self):
        return list(self.operands)

    def needs_x64(self):
        return False


PROGRAMS = [
    Program(scan_of_scalars, np.ones(512, np.float32)),
    Program(random_numbers, np.uint32(3)),
]
