"""What jax gives at the points: run under a Python that has it, with the path to write to.

Functions of which jax's loops do not end for all points at once are asked point by point, in a
process that may be ended. (exp1, expi and expn end at each point alone: what goes round for ever is
the vectorized loop, whose rounding differs.)
"""

import importlib
import multiprocessing
import pickle
import queue
import sys
import warnings

import numpy as np

from tests.against_jax.accuracy.points import POINTS, answers

# Seconds for a function in a dtype: for all points, for the first alone, and for each further one.
LIMIT, FIRST_LIMIT, NEXT_LIMIT = 30, 30, 4
MODULES = ("jax", "jax.lax", "jax.scipy.special", "jax.scipy.stats")


def work(name, dtype, asked, found):
    """Answer by parts of the points, until ended; points alone share one compiled program."""
    warnings.simplefilter("ignore")
    jax, lax, *_ = map(importlib.import_module, MODULES)
    while True:
        found.put(answers(name, dtype, jax, lax, asked.get()))


class JaxProcess:
    """A process with jax, which is started again where it does not answer in time."""

    def __init__(self, name, dtype):
        self.work = name, dtype
        self.process = None

    def answer(self, part, limit):
        """The answers, or None where there is none in time."""
        if self.process is None:
            self.questions, self.answers = multiprocessing.Queue(), multiprocessing.Queue()
            queues = (self.questions, self.answers)
            self.process = multiprocessing.Process(target=work, args=(*self.work, *queues))
            self.process.start()
            limit = max(limit, FIRST_LIMIT)
        self.questions.put(part)
        try:
            return self.answers.get(timeout=limit)
        except queue.Empty:
            self.end()
            return None

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process = None


def ask(name, dtype):
    """The answers at all points: NaN where there is none."""
    process = JaxProcess(name, dtype)
    try:
        together = process.answer(slice(None), LIMIT)
        if together is not None:
            return together
        count = len(POINTS[name][0](dtype)[0])
        alone = [process.answer(slice(k, k + 1), NEXT_LIMIT) for k in range(count)]
        return np.concatenate([np.array([np.nan]) if one is None else one for one in alone])
    finally:
        process.end()


def main(path, names):
    multiprocessing.set_start_method("spawn")
    found = {
        (name, dtype): ask(name, dtype) for name in names or POINTS for dtype in POINTS[name][1]
    }
    with open(path, "wb") as file:
        pickle.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
