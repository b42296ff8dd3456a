"""Exports programs of the corpora, and calls them in another process that has only the files.

    python -m tests.export.round_trips [--count 200] [--folder FOLDER] [--reader PYTHON ...]

Compared are the results, gradients of first and second order where all inputs and some results are
real floats, the StableHLO of each order, byte by byte, and all fields of the export when it is
serialized again. Programs that cannot be exported are counted by error. A reader is the Python of
an environment with another jaxlib, which reads the files too.
"""

import argparse
import collections
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export, lax
from hlofront.bridge.plugins import jaxlib_version
from hlofront.pjrt import cache_file
from tests.against_jax.describe import load

CORPORA = (
    "corpus_lax",
    "corpus_programs",
    "corpus_loops",
    "corpus_branches",
    "corpus_linalg",
    "corpus_nn",
    "corpus_custom",
    "corpus_fft",
    "corpus_numpy",
)
ORDERS = 2


def is_differentiable(leaves: list[Any]) -> bool:
    """Return whether there are arguments, and all are real floats."""
    return bool(leaves) and all(
        getattr(leaf, "dtype", None) in (np.float32, np.float64) for leaf in leaves
    )


def total(call: Any) -> Any:
    """Return the function of flat arguments that sums the squares of a call's float results."""

    def sums(leaves: list[Any], structure: Any) -> Any:
        results = jax.tree.leaves(call(*structure.unflatten(leaves)))
        floats = [x for x in results if jnp.issubdtype(x.dtype, jnp.floating)]
        return sum((jnp.sum(jnp.sin(x)) for x in floats), start=jnp.float32(0))

    return sums


def outcomes(call: Any, args: tuple[Any, ...], derivatives: bool) -> list[Any]:
    """Return the results of a call as NumPy arrays, with its gradients of both orders."""
    results = [jax.jit(call)(*args)]
    if derivatives:
        leaves, structure = jax.tree.flatten(args)
        gradient = jax.grad(lambda xs: total(call)(xs, structure))

        def second(xs: list[Any]) -> Any:
            return sum(jnp.sum(jnp.cos(x)) for x in gradient(xs))

        results += [jax.jit(gradient)(leaves), jax.jit(jax.grad(second))(leaves)]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(results)]


def modules(exported: Any, orders: int) -> list[bytes]:
    """Return the StableHLO of an export and of its derivatives, as bytes."""
    taken = [exported]
    for _ in range(orders):
        taken.append(taken[-1].vjp())
    return [bytes(each.mlir_module_serialized) for each in taken]


def exported_program(program: Any) -> tuple[bytes, list[bytes], tuple[Any, ...], int]:
    """Return a program's export, its StableHLO, its arguments, and its number of derivatives."""
    args = tuple(jax.tree.map(jnp.asarray, program.operands))
    exported = export.export(jax.jit(program.function))(*args)
    has_floats = any(jnp.issubdtype(aval.dtype, jnp.floating) for aval in exported.out_avals)
    derivatives = has_floats and is_differentiable(jax.tree.leaves(args))
    if derivatives:
        try:
            outcomes(program.function, args, True)
        except Exception:  # Without export it has no second derivative either.
            derivatives = False
    orders = ORDERS if derivatives else 0
    data = bytes(exported.serialize(vjp_order=orders))
    return data, modules(exported, orders), args, orders


def write(
    folder: pathlib.Path, count: int, corpora: Sequence[str] = CORPORA
) -> collections.Counter[str]:
    """Write `count` exported programs with their inputs and results, and count others' errors."""
    refused: collections.Counter[str] = collections.Counter()
    written = 0
    # Some corpora have few programs that can be exported, and others make up for these.
    most = count if len(corpora) == 1 else 1 + count * 5 // (4 * len(corpora))
    for corpus in corpora:
        programs = load(corpus, jax, jnp, lax).programs
        of_corpus = 0
        for name, program in programs.items():
            if written == count or of_corpus == most:
                break
            try:
                data, stablehlo, args, orders = exported_program(program)
                expected = outcomes(program.function, args, bool(orders))
            except Exception as error:
                refused[f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"] += 1
                continue
            (folder / f"{corpus}.{name}.export").write_bytes(data)
            inputs = [np.asarray(leaf) for leaf in jax.tree.leaves(args)]
            record = inputs, stablehlo, orders, expected
            (folder / f"{corpus}.{name}.record").write_bytes(pickle.dumps(record))
            written += 1
            of_corpus += 1
    return refused


def read(folder: pathlib.Path) -> list[str]:
    """Return what comes out otherwise here, by the names of the programs of a folder."""
    wrong: list[str] = []
    for path in sorted(folder.glob("*.export")):
        inputs, stablehlo, orders, expected = pickle.loads(path.with_suffix(".record").read_bytes())
        data = path.read_bytes()
        exported = export.deserialize(data)
        args, kwargs = exported.in_tree.unflatten(map(jnp.asarray, inputs))
        assert not kwargs
        results = outcomes(exported.call, args, bool(orders))
        if modules(exported, orders) != stablehlo:
            wrong.append(f"{path.stem}: other StableHLO")
        if contents(bytes(exported.serialize(vjp_order=orders))) != contents(data):
            wrong.append(f"{path.stem}: other fields when it is serialized again")
        if len(results) != len(expected) or not all(map(agree, results, expected)):
            wrong.append(f"{path.stem}: other results")
    return wrong


def contents(data: bytes) -> list[dict[str, Any]]:
    """Return what an export and its derivatives have, but for the versions that wrote them."""
    fields: dict[str, Any] = cache_file.unpack(data)
    header = json.loads(fields.pop("header"))
    inner = contents(fields.pop("vjp")) if "vjp" in fields else []
    for name in ("jaxlib", "stablehlo"):
        del header[name]
    return [{**fields, **header}, *inner]


def agree(one: Any, other: Any) -> bool:
    """Return whether two results are equal, but for the rounding of sums in another order."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind in "fc":
        return np.allclose(one, other, rtol=2e-4, atol=2e-5, equal_nan=True)
    return np.array_equal(one, other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--reader", action="append", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.read:
        wrong = read(options.folder)
        print(f"  jaxlib {jaxlib_version()}:", *wrong, sep="\n  ")
        sys.exit(bool(wrong))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or pathlib.Path(temporary)
        refused = write(folder, options.count)
        count = len(list(folder.glob("*.export")))
        records = [pickle.loads(path.read_bytes()) for path in folder.glob("*.record")]
        derived = sum(bool(record[2]) for record in records)
        print(f"{jaxlib_version()}: {count} programs, {derived} with two derivatives")
        for error, times in refused.most_common():
            print(f"  {times} not exported: {error}")
        failures = 0
        for python in options.reader:
            command = [python, "-m", "tests.export.round_trips", "--read"]
            outcome = subprocess.run([*command, "--folder", str(folder)], check=False)
            print(f"{python}:", "they differ" if outcome.returncode else "all the same", flush=True)
            failures += bool(outcome.returncode)
        sys.exit(failures)


if __name__ == "__main__":
    main()
