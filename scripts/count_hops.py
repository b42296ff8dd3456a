"""Counts how the first call of `jit(f)(x)` passes between files: `python scripts/count_hops.py`.

A hop is a call from a function in one file of hlofront to a function in another, and a climb is a
hop to a higher layer. Frames of other packages between the two are passed over. Each hop counts
each time it happens, and once per pair of files; `--list` prints the pairs. Tracing the function
and lowering its program hop with each operation, so the second line of figures leaves them out. The
cache on disk is an empty folder.
"""

import argparse
import collections
import os
import pathlib
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = f"{ROOT / 'hlofront'}{os.sep}"
sys.path.insert(0, str(ROOT))

from tests.conventions.source import LAYERS, TOP

# The functions under which calls belong to tracing and to lowering.
PHASES = {"stage_tree": "tracing", "lower_program": "lowering"}

Hop = tuple[str, str]


def file_of(frame: types.FrameType) -> str | None:
    """Return a frame's file from the package's folder on; None for frames of other packages."""
    path = frame.f_code.co_filename
    return path.removeprefix(PACKAGE) if path.startswith(PACKAGE) else None


def layer_of(file: str) -> int:
    """Return the layer of a file of hlofront."""
    folder, separator, _ = file.partition("/")
    return LAYERS.get(folder, TOP) if separator else TOP


def is_climb(hop: Hop) -> bool:
    """Return whether a call goes to a file on a higher layer."""
    caller, callee = hop
    return layer_of(callee) > layer_of(caller)


class HopCounter:
    """A profiler, for sys.setprofile, that counts the calls between files of hlofront."""

    def __init__(self) -> None:
        self.everywhere: collections.Counter[Hop] = collections.Counter()
        self.on_the_path: collections.Counter[Hop] = collections.Counter()

    def __call__(self, frame: types.FrameType, event: str, _: object) -> None:
        callee = file_of(frame) if event == "call" else None
        if callee is None:
            return
        caller = None
        in_phase = False
        outer = frame.f_back
        while outer is not None:
            file = file_of(outer)
            caller = caller or file
            in_phase = in_phase or (file is not None and outer.f_code.co_name in PHASES)
            outer = outer.f_back
        if caller is not None and caller != callee:
            self.everywhere[caller, callee] += 1
            if not in_phase:
                self.on_the_path[caller, callee] += 1


def count_first_call() -> HopCounter:
    """Return the hops of the first call of a jitted function, once all modules are loaded."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
        import hlofront as jax
        import hlofront.numpy as jnp

        x = jnp.arange(3.0)
        jax.jit(lambda x: jnp.cos(x) + 1.0)(x)
        function = jax.jit(lambda x: jnp.sin(x) * 2.0 + x)
        counter = HopCounter()
        sys.setprofile(counter)
        function(x)
        sys.setprofile(None)
    return counter


def describe(hops: collections.Counter[Hop]) -> str:
    """Return the figures of some hops in one line."""
    files = {file for hop in hops for file in hop}
    climbs = {hop: count for hop, count in hops.items() if is_climb(hop)}
    return (
        f"{hops.total()} hops ({len(hops)} pairs) between {len(files)} files, "
        f"{sum(climbs.values())} of them climb a layer ({len(climbs)} pairs)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print each pair of files")
    options = parser.parse_args()
    counter = count_first_call()
    print(f"the whole call:           {describe(counter.everywhere)}")
    print(f"without tracing, lowering: {describe(counter.on_the_path)}")
    if options.list:
        for hop, count in counter.on_the_path.most_common():
            print(f"  {count:4d} {'up  ' if is_climb(hop) else '    '}{hop[0]} -> {hop[1]}")


if __name__ == "__main__":
    main()
