"""Holds the bounds of fifty programs against a compiler's own figures, and prints the ratios.

    python -m tests.inspect.bounds TARGET...

The exit status is 1 if a bound is above the compiler's figure.
"""

import statistics
import sys

from tests.inspect.bounds.holding import held_of
from tests.inspect.bounds.programs import PROGRAMS


def kind_of(held):
    return "time of an operation" if held.figure.startswith("time of") else held.figure


def main(targets):
    above = 0
    for target in targets:
        rows = []
        for name, program in PROGRAMS.items():
            rows += held_of(name, program, target)
        print(f"{target}: {len(PROGRAMS)} programs")
        for kind in dict.fromkeys(map(kind_of, rows)):
            ratios = sorted(row.ratio for row in rows if kind_of(row) == kind)
            tenths = statistics.quantiles(ratios, n=10) if len(ratios) > 1 else ratios * 9
            shown = " ".join(f"{tenths[n]:.2f}" for n in (0, 4, 8))
            print(
                f"  {kind:<22} {len(ratios):>4} figures, deciles 1, 5, 9: {shown}, "
                f"greatest {ratios[-1]:.3f}"
            )
        for row in rows:
            if not row.is_bound:
                above += 1
                print(
                    f"  ABOVE: {row.program}, {row.figure}: {row.bound:.6g} for "
                    f"{row.figure_of_compiler:.6g} ({row.ratio:.3f})"
                )
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["cpu", "cuda:h100", "tpu:v5e:1x1"]))
