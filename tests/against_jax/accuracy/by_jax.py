"""What jax gives at the points: run under a Python that has it, with the path to write to.

Functions of which jax's loops do not end for some points are asked in pieces, each in a process
that may be ended.
"""

import importlib
import multiprocessing
import pickle
import queue
import sys
import warnings

import numpy as np

from tests.against_jax.accuracy.points import POINTS, answers

# Seconds for a function in a dtype, and how many points a piece has beyond.
LIMIT, PIECE = 60, 16
MODULES = ("jax", "jax.lax", "jax.scipy.special", "jax.scipy.stats")


def work(name, dtype, part, found):
    jax, lax, *_ = map(importlib.import_module, MODULES)
    found.put(answers(name, dtype, jax, lax, part))


def ask(name, dtype, part):
    """The answers, or None where there is none in time."""
    found = multiprocessing.Queue()
    process = multiprocessing.Process(target=work, args=(name, dtype, part, found))
    process.start()
    try:
        return found.get(timeout=LIMIT)
    except queue.Empty:
        return None
    finally:
        process.kill()


def main(path, names):
    warnings.simplefilter("ignore")
    multiprocessing.set_start_method("spawn")
    found = {}
    for name in names or POINTS:
        for dtype in POINTS[name][1]:
            count = len(POINTS[name][0](dtype)[0])
            found[name, dtype] = ask(name, dtype, slice(None))
            if found[name, dtype] is None:
                pieces = [slice(k, min(k + PIECE, count)) for k in range(0, count, PIECE)]
                parts = [ask(name, dtype, part) for part in pieces]
                filled = [
                    np.full(part.stop - part.start, np.nan) if values is None else values
                    for part, values in zip(pieces, parts, strict=True)
                ]
                found[name, dtype] = np.concatenate(filled)
    with open(path, "wb") as file:
        pickle.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
