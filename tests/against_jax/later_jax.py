"""Which programs of the corpora another jax answers differently from the jax whose answers we keep.

    python -m tests.against_jax.later_jax PYTHON [CORPUS ...]

PYTHON has that other jax, such as 0.12.0.1; all corpora are asked by default. It prints a line for
each program with another answer: its corpus, its name and the first difference. What was decided
about them is in docs/explanation/differences.md.
"""

import argparse
from collections.abc import Iterator

from tests.against_jax.answers import FOLDER, Shelf, unlike
from tests.against_jax.describe import names_of
from tests.against_jax.oracle import Oracle
from tests.against_jax.test_corpora import CORPORA


def differences(oracle: Oracle, corpus: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a corpus's programs that are answered differently, and how."""
    kept = Shelf(FOLDER / f"{corpus}.jsonl.xz")
    known = [name for name in names_of(corpus) if name in kept.lines]
    try:
        answers = oracle.ask("corpus", corpus, {name: name for name in known})
    except RuntimeError as error:
        # The file uses a name that the other jax lacks.
        yield "(all programs)", str(error).strip().splitlines()[-1]
        return
    for name in known:
        if difference := unlike(kept.answer(name), answers[name]):
            yield name, difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("python", metavar="PYTHON")
    parser.add_argument("corpora", metavar="CORPUS", nargs="*")
    options = parser.parse_args()
    oracle = Oracle(options.python)
    try:
        print("jax", oracle.ask("version"))
        asked = found = 0
        for corpus in options.corpora or CORPORA:
            asked += len(names_of(corpus))
            for name, difference in differences(oracle, corpus):
                found += 1
                print(f"{corpus}: {name}: {difference}"[:600], flush=True)
        print(f"{found} of {asked} programs have another answer")
    finally:
        oracle.close()


if __name__ == "__main__":
    main()
