"""Programs of the corpora, which XLA compiles right: `find_miscompile` must say so of each.

    nice python -m tests.inspect.miscompile.corpora --count 200

prints what it says of as many programs, drawn by their names, and a digest of it. RESULTS.md has
that of the last run; the tests run a few of these programs.
"""

import argparse
import hashlib
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.inspect import find_miscompile
from tests.against_jax.describe import Program, load

CORPORA = """
    corpus_arrays corpus_batching corpus_branches corpus_checkpoints corpus_custom
    corpus_derivatives corpus_fft corpus_fuzz_regressions corpus_indexing corpus_jet corpus_lax
    corpus_lax_edge_cases corpus_linalg corpus_loops corpus_loops_derived corpus_minimizers
    corpus_nn corpus_numpy corpus_numpy_edge_cases corpus_numpy_polynomials_and_windows corpus_ode
    corpus_operators corpus_programs corpus_random corpus_references corpus_reported
    corpus_scipy_linalg corpus_singular_points corpus_special corpus_stats corpus_systems
    corpus_ufuncs
""".split()


def drawn() -> Iterator[tuple[str, Program]]:
    """Yield all programs of the corpora that run under jit, in an order drawn by their names."""
    programs = {
        f"{corpus}.{name}": program
        for corpus in CORPORA
        for name, program in load(corpus, jax, jnp, lax).programs.items()
        if {"jit", "value"} & set(program.modes)
    }
    for name in sorted(programs, key=lambda name: zlib.crc32(name.encode())):
        yield name, programs[name]


def verdict(program: Program) -> str:
    """Return "right", "wrong" with the report, or why the program cannot be judged."""
    with jax.enable_x64(program.x64), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = jax.jit(program.function, static_argnums=program.static_argnums)
        try:
            function(*program.operands, **program.keywords)
        except Exception as error:  # Programs of errors are part of the corpora.
            return f"raises {type(error).__name__} under jit"
        try:
            report = find_miscompile(function, isolated=False)(
                *program.operands, **program.keywords
            )
        except TypeError as error:
            if "runs the program many times" in str(error):
                return "has effects"
            raise
    if report:
        return f"wrong\n{report}"
    return "right" + (f", {len(report.undetermined)} unknown" if report.undetermined else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="how many programs are judged")
    parser.add_argument("--only", default="", help="a part of the names")
    options = parser.parse_args()
    lines: list[str] = []
    kinds: Counter[str] = Counter()
    started = time.monotonic()
    for name, program in drawn():
        if options.only not in name:
            continue
        try:
            said = verdict(program)
        except Exception as error:
            said = f"FAILED {type(error).__name__}: {error}"
        kinds[said.split("\n")[0].split(":")[0].split(",")[0]] += 1
        lines.append(f"{name}: {said}")
        print(f"{time.monotonic() - started:6.0f} s  {lines[-1]}", flush=True)
        if kinds["right"] + kinds["wrong"] + kinds["FAILED"] >= options.count:
            break
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    print(f"{dict(kinds)}; digest {digest}")


if __name__ == "__main__":
    main()
