"""Mutants of files with programs: each is read, or refused with the documented error.

    nice python -m tests.export.mutants --count 10000 --seed 0

reads mutants without trust, and compiles those that are accepted, in a process that is replaced if
it dies or stays silent. It prints how many had which outcome: "accepted", "refused", or whatever
else, which must not be. `--only NUMBER` tries one, and writes it to the file `mutant`.
`tests/export/test_strangers.py` tries some.
"""

import argparse
import collections
import copy
import json
import math
import pathlib
import random
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import bundle, export
from hlofront.core.sizes.symbolic import value_of
from hlofront.errors import JaxRuntimeError
from hlofront.pjrt import cache_file
from hlofront.runtime.export import exported as exported_programs
from tests.support.mortal_processes import outcomes

_ARTIFACTS = pathlib.Path(__file__).parent / "artifacts"
_SILENT_SECONDS = 150

# ---- the files that mutants are made of ----------------------------------------------------------


def _solved(a, b):
    return jnp.linalg.solve(a @ a.T + jnp.eye(3), b), jnp.linalg.svd(a)[1], jnp.sort(b)


def _loop(x):
    step = lambda carry, y: (carry * 0.5 + jnp.sin(y), carry.sum())
    return jax.lax.scan(step, x[0], x)


def originals() -> dict[str, bytes]:
    """Return files with programs, by name; those of bundles end with ".hlob"."""
    spec = jax.ShapeDtypeStruct
    square, vector = spec((3, 3), "float32"), spec((3,), "float32")
    made = {
        "solved": export.export(jax.jit(_solved))(square, vector).serialize(),
        "loop": export.export(jax.jit(_loop))(square).serialize(vjp_order=1),
        "tree": export.export(jax.jit(lambda d, k: ({"a": d["b"] * 2}, [k["y"], None])))(
            {"b": vector}, {"y": 1}
        ).serialize(),
        "loop in JAX's format": export.export(jax.jit(_loop))(square).serialize(format="jax"),
    }
    files = {name: bytes(data) for name, data in made.items()}
    for path in sorted(_ARTIFACTS.glob("*/*")):
        if path.suffix != ".json":
            files[path.name] = path.read_bytes()
    files["platforms in JAX's format"] = (_ARTIFACTS / "platforms.jax-0.10.2").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/f.hlob"
        jitted = jax.jit(lambda x, n, mode="sin": getattr(jnp, mode)(x) * n, static_argnums=(1, 2))
        bundle.save(path, jitted, bundle.arguments(vector, 2), bundle.arguments(square, 3, "cos"))
        files["static.hlob"] = pathlib.Path(path).read_bytes()
    return files


# ---- mutations -----------------------------------------------------------------------------------


# Lists in lists, by their names among the values: Python's own functions recurse into them.
_DEPTHS = (50, 900, 3000, 100_000)
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 65, 2**31, 2**63, -(2**63), 10**400, 0.5, math.nan, math.inf,
    "", "x", "b", "b, c", "b^9999999", "9^9999999", "b*" * 300 + "b", "(" * 999, "\x1b[31m",
    "\ud800", "cpu", "leaf", "float32", "[[" * 50, "-" * 5000 + "1", "(" * 5000, "1" * 5000,
    [], {}, [[]], [None], ["leaf"], ["tuple", []], ["dict", ["a"], []], ["custom", "x", "!", []],
    {"a": 1}, *[f"deep {depth}" for depth in _DEPTHS],
]  # fmt: skip


def paths_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, each in items:
        yield from paths_in(each, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def changed_json(data: bytes, chance: random.Random) -> bytes:
    """Return a JSON header with a value that is replaced, dropped, repeated or exchanged."""
    header = json.loads(data)
    for _ in range(chance.choice((1, 1, 1, 2))):
        *_, last = path = chance.choice([path for path in paths_in(header) if path])
        holder = _at(header, path[:-1])
        way = chance.randrange(6)
        if way == 0:
            del holder[last]
        elif way == 1 and isinstance(holder, list):
            holder.insert(last, copy.deepcopy(holder[last]))
        elif way == 2:
            other = chance.choice([each for each in paths_in(header) if each])
            holder[last] = copy.deepcopy(_at(header, other))
        elif way == 3 and isinstance(holder[last], int):
            holder[last] += chance.choice((-1, 1, 1000))
        elif way == 4 and isinstance(holder[last], str) and holder[last]:
            index = chance.randrange(len(holder[last]))
            holder[last] = (
                holder[last][:index] + chance.choice("aZ0 ,(*^\x00é") + holder[last][index:]
            )
        else:
            holder[last] = copy.deepcopy(chance.choice(_VALUES))
    return encoded(header)


def encoded(header: Any) -> bytes:
    """Return a header as JSON, with lists of any depth in place of their names."""
    text = json.dumps(header)
    for depth in _DEPTHS:
        text = text.replace(f'"deep {depth}"', "[" * depth + "]" * depth)
    return text.encode()


def changed_bytes(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Return bytes of which some are changed, cut out, repeated, or replaced by those of others."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        if not changed:
            break
        start = chance.randrange(len(changed))
        stop = min(len(changed), start + chance.choice((1, 2, 4, 16, 100)))
        way = chance.randrange(7)
        if way == 0:
            changed[start] ^= 1 << chance.randrange(8)
        elif way == 1:
            changed[start] = chance.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, chance.randrange(256)))
        elif way == 2:  # Lengths are numbers of several bytes.
            changed[start:stop] = bytes([chance.choice((0, 0xFF))] * (stop - start))
        elif way == 3:
            del changed[start:stop]
        elif way == 4:
            changed[start:start] = changed[start:stop]
        elif way == 5:
            other = chance.choice(others)
            at = chance.randrange(len(other))
            changed[start:stop] = other[at : at + stop - start]
        elif chance.randrange(4) == 0:
            del changed[start:]
    return bytes(changed)


def mutant(name: str, files: dict[str, bytes], chance: random.Random) -> bytes:
    """Return a changed file, whose checksum is right."""
    data, others = files[name], list(files.values())
    if not data.startswith(cache_file.MAGIC):
        return changed_bytes(data, others, chance)
    return _changed_file(data, others, chance)


def _changed_file(data: bytes, others: list[bytes], chance: random.Random) -> bytes:
    fields = cache_file.unpack(data)
    field = chance.choice([*["header"] * 2 * ("header" in fields), *fields])
    value = fields[field]
    if chance.randrange(40) == 0:
        del fields[field]
    elif value.startswith(cache_file.MAGIC):
        fields[field] = _changed_file(value, others, chance)
    elif field in ("header", "key", "about") and chance.randrange(5):
        fields[field] = changed_json(value, chance)
    else:
        fields[field] = changed_bytes(value, others, chance)
    return cache_file.pack(fields)


# Whether accepted exports are run: a loop without end is no fault of what has read it.
_runs = False

# ---- outcomes ------------------------------------------------------------------------------------


def outcome(name: str, data: bytes, folder: str) -> str:
    """Read a file without trust, and compile its programs; return what came of it."""
    # They are not files of this process.
    exported_programs._own_modules.clear()
    try:
        return _read_bundle(data, folder) if name.endswith(".hlob") else _read_export(data)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]!r}"


def _read_export(data: bytes) -> str:
    try:
        exported = export.deserialize(data)
        while exported is not None:
            exported.mlir_module()
            _compile(exported)
            exported = exported.vjp() if exported.has_vjp() else None
    except (ValueError, JaxRuntimeError) as error:
        return _refused(error)
    return "accepted"


def _read_bundle(data: bytes, folder: str) -> str:
    path = f"{folder}/mutant.hlob"
    pathlib.Path(path).write_bytes(data)
    try:
        bundle.ls(path)
        bundle.verify(path)
        loaded = bundle.load(path)
    except bundle.BundleError as error:
        return _refused(error)
    try:
        for number, _ in enumerate(loaded.signatures):
            exported = loaded.exported(number)
            args, kwargs = exported.in_tree.unflatten(_specs(exported))
            args = list(args)
            for where, value in loaded._function.programs[number].entry.static:
                args.insert(int(where), value)
            loaded.lower(*args, **kwargs).compile()
    except (ValueError, TypeError, JaxRuntimeError) as error:
        return _refused(error)
    return "accepted"


def _specs(exported: export.Exported) -> list[Any]:
    sizes = dict.fromkeys(exported.unknown_sizes.values if exported.unknown_sizes else (), 6)
    return [
        jax.ShapeDtypeStruct([value_of(size, sizes) for size in aval.shape], aval.dtype)
        for aval in exported.in_avals
    ]


def _compile(exported: export.Exported) -> None:
    args, kwargs = exported.in_tree.unflatten(_specs(exported))
    compiled = jax.jit(exported.call).lower(*args, **kwargs).compile()
    if _runs:
        args, kwargs = jax.tree.map(lambda spec: jnp.ones(spec.shape, spec.dtype), (args, kwargs))
        jax.block_until_ready(compiled(*args, **kwargs))


def _refused(error: Exception) -> str:
    """Return the outcome of a refusal: whether it is XLA's own, or the worker's end."""
    if isinstance(error, JaxRuntimeError):
        return "refused by XLA"
    if "ends the process" in str(error):
        late = "longer than" in str(error)
        return (
            f"refused, as it {'takes endless time' if late else 'ends the process'} that reads it"
        )
    return "refused"


# ---- the command ---------------------------------------------------------------------------------


def mutants_from(start: int, stop: int, seed: int) -> Iterator[tuple[int, str, bytes]]:
    """Yield the number, the file and the bytes of each mutant."""
    files = originals()
    names = list(files)
    for number in range(start, stop):
        chance = random.Random(f"{seed} {number}")
        name = names[number % len(names)]
        yield number, name, mutant(name, files, chance)


def _try(start: int, stop: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, name, data in mutants_from(start, stop, seed):
            print(f"{number}\t{outcome(name, data, folder)}", flush=True)


def _command(start: int, stop: int, seed: int) -> list[str]:
    command = ["-m", "tests.export.mutants", "--from", str(start), "--count", str(stop - start)]
    return [sys.executable, *command, "--seed", str(seed), "--here", *["--run"] * _runs]


def main() -> None:
    """Try the mutants that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="start", type=int, default=0)
    parser.add_argument("--run", action="store_true", help="run the exports that are accepted")
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--only", type=int, help="show one mutant's outcome, with its traceback")
    options = parser.parse_args()
    global _runs
    _runs = options.run
    if options.only is not None:
        for _, name, data in mutants_from(options.only, options.only + 1, options.seed):
            pathlib.Path("mutant").write_bytes(data)
            with tempfile.TemporaryDirectory() as folder:
                print(name, outcome(name, data, folder))
        return
    if options.here:
        _try(options.start, options.start + options.count, options.seed)
        return
    counts: collections.Counter[str] = collections.Counter()
    numbers = range(options.start, options.start + options.count)
    command = lambda start, stop: _command(start, stop, options.seed)
    for number, said in outcomes(command, numbers, _SILENT_SECONDS):
        kind = said if said.startswith(("accepted", "refused")) else "ANYTHING ELSE"
        counts[kind] += 1
        if kind == "ANYTHING ELSE":
            print(number, said, flush=True)
        if sum(counts.values()) % 500 == 0:
            print(dict(counts), flush=True)
    print(dict(counts))
    sys.exit(counts["ANYTHING ELSE"] > 0)


if __name__ == "__main__":
    main()
