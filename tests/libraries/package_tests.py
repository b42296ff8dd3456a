"""Runs the tests that libraries bring under jax and under hlofront, and compares which pass.

    python tests/libraries/package_tests.py NAME [--python PYTHON] [--only TEXT] [--limit SECONDS]
                                            [--sample FILES | --shuffled [--seed NUMBER]]
                                            [--keep FOLDER | --failures]

NAME is a library of PATHS. PYTHON, or HLOFRONT_LIBRARIES_PYTHON, is a Python with jax, pytest and
the packages of requirements.txt. Where tests are in the source distribution alone, pip fetches it
into a folder of the environment. Each file of tests runs in a process of its own on each side. A
process that takes longer than the limit is ended; tests that either side did not reach for that
reason count on neither. One line per file says how many tests pass, and one per test that passes
under jax only how it fails here. The exit status is 1 if more than one test in a hundred that
passes under jax fails here.

`--sample` draws that many files evenly from the list. `--shuffled` runs all files in one process
per side, in a random order that is the same on both, so that those which both sides reach within
the limit are a random sample of all tests. `--keep` writes what jax's tests did into a
folder, and reads it from there the next time, so that only hlofront's side runs again.
`--failures` runs hlofront's side first, and jax's on what does not pass there alone, which takes
half the time; what passes here is then taken to pass under jax. XLA_FLAGS
apply to both sides; those of tests/support/quick_code.py halve the time of most suites.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
# Library -> the name of its distribution, and its tests: in the installed package, or in the source
# distribution where they begin with "sdist:".
PATHS = {
    "blackjax": ("blackjax", "sdist:tests/**/test_*.py"),
    "brax": ("brax", "brax/**/*_test.py"),
    "chex": ("chex", "chex/**/*_test.py"),
    "distrax": ("distrax", "distrax/**/*_test.py"),
    "dm-pix": ("dm-pix", "dm_pix/**/*_test.py"),
    "dynamax": ("dynamax", "dynamax/**/*_test.py"),
    "e3nn-jax": ("e3nn-jax", "sdist:tests/**/*test*.py"),
    "einops": ("einops", "einops/tests/test_*.py"),
    "flax": ("flax", "sdist:tests/**/*_test.py"),
    "flowjax": ("flowjax", "sdist:tests/**/test_*.py"),
    "gpjax": ("gpjax", "sdist:tests/**/test_*.py"),
    "haiku": ("dm-haiku", "haiku/**/*_test.py"),
    "interpax": ("interpax", "sdist:tests/**/test_*.py"),
    "jax-md": ("jax-md", "sdist:tests/*_test.py"),
    "jraph": ("jraph", "jraph/**/*_test.py"),
    "keras": ("keras", "keras/src/**/*_test.py"),
    "mctx": ("mctx", "mctx/**/*_test.py"),
    "mujoco-mjx": ("mujoco-mjx", "mujoco/mjx/_src/*_test.py"),
    "numpyro": ("numpyro", "sdist:test/**/test_*.py"),
    "optax": ("optax", "optax/**/*_test.py"),
    "penzai": ("penzai", "sdist:tests/**/*_test.py"),
    "quax": ("quax", "sdist:tests/**/test_*.py"),
    "rlax": ("rlax", "rlax/**/*_test.py"),
    "tinygp": ("tinygp", "sdist:**/test_*.py"),
}
OUTCOME = re.compile(r"^(\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
REASON = re.compile(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - (.*))?$")
UNREAD = re.compile(r"^ERROR (\S+\.py)(?: - .*)?$")


def files_of(python: str, library: str) -> list[pathlib.Path]:
    """Return the files of a library's tests, fetched if they are not installed with it."""
    distribution, pattern = PATHS[library]
    command = (
        f"import importlib.metadata as m; d = m.distribution({distribution!r}); "
        "print(d.locate_file(''), d.version, sep='\\n')"
    )
    text = subprocess.run([python, "-c", command], capture_output=True, text=True, check=True)
    packages, version = text.stdout.splitlines()
    if not pattern.startswith("sdist:"):
        return sorted(pathlib.Path(packages).glob(pattern))
    folder = pathlib.Path(python).parents[1] / "sources" / library
    if not folder.exists():
        folder.mkdir(parents=True)
        options = ["--no-deps", "--no-binary", distribution, "-q", "-d", str(folder)]
        wanted = f"{distribution}=={version}"
        subprocess.run([python, "-m", "pip", "download", *options, wanted], check=True)
        for archive in folder.glob("*.tar.gz"):
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return sorted(source.glob(pattern.removeprefix("sdist:")))


@dataclasses.dataclass(frozen=True)
class Outcomes:
    """What the tests of a file did on one side."""

    outcome: dict[str, str]
    """Each test that ended, with its outcome as pytest prints it."""
    reason: dict[str, str]
    """Each test that failed, with the first line of its error."""
    complete: bool
    """Whether the process ended within the time limit."""
    unread: list[str]
    """The files that could not be imported."""


def outcomes(
    python: str,
    files: Sequence[pathlib.Path],
    limit: float,
    *options: str,
    tests: Sequence[str] = (),
) -> Outcomes:
    """Run the tests of files, or some of them by name, in one process, on one side.

    Tests of several files run in a random order.
    """
    folder = pathlib.Path(os.path.commonpath([file.parent for file in files]))
    command = [python, "-m", "pytest", "-v", "-rfE", "-p", "no:cacheprovider", "-W", "ignore"]
    command += ["-c", os.devnull, "--rootdir", str(folder), *conftests(folder)]
    if len(files) > 1:
        command += ["-p", "random_order", "--continue-on-collection-errors"]
    # pytest prints the names of tests relative to the folder where it runs, and takes them so.
    command += [*options, *(tests or map(str, files))]
    paths = [str(ROOT)] if options else []
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, str(HERE)]),
        "COLUMNS": "400",
        "EINOPS_TEST_BACKENDS": "numpy,jax",
        "KERAS_BACKEND": "jax",
    }
    with subprocess.Popen(
        command,
        env=environment,
        cwd=pathlib.Path(python).parents[1],  # A folder without modules that hide Python's own.
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        complete = True
        try:
            text, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            complete = False
            process.kill()
            text, _ = process.communicate()
    lines = text.splitlines()
    ended = (OUTCOME.match(line) for line in lines)
    failed = (REASON.match(line) for line in lines)
    unread = (UNREAD.match(line) for line in lines)
    return Outcomes(
        {match[1]: match[2] for match in ended if match},
        {match[1]: match[2] or "" for match in failed if match},
        complete,
        [match[1] for match in unread if match],
    )


def conftests(folder: pathlib.Path) -> list[str]:
    """Return the option that lets pytest read the conftest.py files of the folders above one."""
    highest = folder
    while (highest.parent / "conftest.py").exists() or (highest.parent / "__init__.py").exists():
        highest = highest.parent
    return ["--confcutdir", str(highest)]


def jax_outcomes(
    python: str,
    name: str,
    files: Sequence[pathlib.Path],
    limit: float,
    folder: pathlib.Path | None,
) -> Outcomes:
    """Return what jax's side of files does, from the folder if it is kept there by that name."""
    if folder is None:
        return outcomes(python, files, limit)
    kept = folder / f"{name}.json"
    if kept.exists():
        return Outcomes(**json.loads(kept.read_text()))
    ended = outcomes(python, files, limit)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(dataclasses.asdict(ended), indent=0))
    return ended


def outcomes_of_failures(
    python: str, files: Sequence[pathlib.Path], limit: float, ours: Outcomes
) -> Outcomes:
    """Return what jax's side of files does, run where hlofront's does not pass, and else equal."""
    passed = {name: "PASSED" for name, outcome in ours.outcome.items() if outcome == "PASSED"}
    others = [*(name for name in ours.outcome if name not in passed), *ours.unread]
    if passed and not others:
        return Outcomes(passed, {}, ours.complete, [])
    ended = outcomes(python, files, limit, tests=others)
    return dataclasses.replace(ended, outcome=passed | ended.outcome)


def compare(
    python: str,
    name: str,
    files: Sequence[pathlib.Path],
    limit: float,
    folder: pathlib.Path | None,
    failures: bool,
) -> tuple[int, int]:
    """Run files on both sides and print the difference; return how many pass here and there."""
    if failures:
        ours = outcomes(python, files, limit, "-p", "hlofront.as_jax")
        theirs = outcomes_of_failures(python, files, limit, ours)
    else:
        theirs = jax_outcomes(python, name, files, limit, folder)
        ours = outcomes(python, files, limit, "-p", "hlofront.as_jax")
    passed = [name for name, outcome in theirs.outcome.items() if outcome == "PASSED"]
    if not ours.complete:
        passed = [name for name in passed if name in ours.outcome]
    lost = [name for name in passed if ours.outcome.get(name) != "PASSED"]
    here, there = len(passed) - len(lost), len(passed)
    late = " and ".join(
        side for side, ended in (("jax", theirs), ("hlofront", ours)) if not ended.complete
    )
    print(
        f"{name:44} {here}/{there} pass, of {len(theirs.outcome)}",
        *([f"(time limit: {late})"] if late else []),
        flush=True,
    )
    for test in lost:
        outcome = ours.outcome.get(test, "not run")
        print(f"    {test}: {outcome} {ours.reason.get(test, '')}"[:400], flush=True)
    return here, there


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library", choices=sorted(PATHS))
    parser.add_argument("--python", default=os.environ.get("HLOFRONT_LIBRARIES_PYTHON"))
    parser.add_argument("--only", default="", metavar="TEXT", help="only files with TEXT in them")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for a file and side")
    parser.add_argument("--sample", type=int, metavar="FILES", help="only so many files")
    parser.add_argument("--shuffled", action="store_true", help="all files in a random order")
    parser.add_argument("--seed", type=int, default=0, help="another random order")
    parser.add_argument("--failures", action="store_true", help="jax runs what fails here alone")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="jax's outcomes")
    options = parser.parse_args()
    if options.python is None:
        parser.error("give --python, or HLOFRONT_LIBRARIES_PYTHON: a Python with the libraries")
    os.environ["RANDOM_ORDER_SEED"] = str(options.seed)
    files = [
        file for file in files_of(options.python, options.library) if options.only in str(file)
    ]
    if options.sample is not None:
        count = min(options.sample, len(files))
        files = [files[(2 * index + 1) * len(files) // (2 * count)] for index in range(count)]
    groups = (
        {"all files": files}
        if options.shuffled
        else {"_".join(file.parts[-4:]): [file] for file in files}
    )
    counts = [
        compare(options.python, name, group, options.limit, options.keep, options.failures)
        for name, group in groups.items()
    ]
    here, there = (sum(column) for column in zip(*counts, strict=True))
    print(
        f"{options.library}: {here} of {there} tests that pass under jax pass, {len(files)} files"
    )
    return 0 if here >= 0.99 * there > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
