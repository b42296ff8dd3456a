"""Prints what a diff says first of each planted change, and how much it says.

    JAX_NUM_CPU_DEVICES=2 python -m tests.inspect.scoreboard [TARGET...]

The exit status is 1 if a cause is not the first finding, or a diff is longer than a screen.
"""

import sys
import time

from tests.inspect.scoreboard.planted import PLANTED, TARGETS
from tests.inspect.scoreboard.scoring import score_of


def main(targets):
    failures = 0
    for target in targets:
        started = time.process_time()
        scores = [score_of(case, target) for case in PLANTED]
        for case, score in zip(PLANTED, scores, strict=True):
            print(f"{target}  {case.name}: {score}")
        right = sum(score.is_right for score in scores)
        failures += len(scores) - right
        print(f"{target}: {right} of {len(scores)}, in {time.process_time() - started:.1f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or TARGETS))
