"""Exports and bundles of each release, which are kept, and read under every jaxlib.

    python -m tests.export.releases           reads all of them, under this Python's jaxlib
    python -m tests.export.releases --write   writes those of this release, before it is made

A release has a folder in tests/export/artifacts for each jaxlib that it was written under, with a
file for each kind of program, and the SHA-256 of the StableHLO of each order of derivatives. Values
are compared with NumPy's.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import pathlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import bundle, export
from hlofront.base.version import __version__
from hlofront.bridge.mlir import module_of_artifact
from hlofront.pjrt import cache_file
from hlofront.sharding import Mesh, NamedSharding, PartitionSpec

ARTIFACTS = pathlib.Path(__file__).parent / "artifacts"
DIGESTS = "stablehlo.json"
DEVICES = 2
X = np.linspace(-1.0, 2.0, 6, dtype=np.float32).reshape(2, 3)


class Kind(NamedTuple):
    """A kind of program.

    Attributes:
      export: exports the program.
      orders: the number of derivatives.
      results: gives the results of the program in the hands of a reader, in pairs with NumPy's.
    """

    export: Callable[[], export.Exported]
    orders: int
    results: Callable[[Callable[..., Any]], list[tuple[Any, Any]]]


def spec(shape: Sequence[Any], dtype: str = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


def simple(x, n):
    return {"table": jnp.sin(x) * n, "order": jnp.argsort(x, axis=1), "mean": x.mean()}


def of_simple(call):
    result = call(X, np.int32(3))
    return [
        (result["table"], np.sin(X) * 3),
        (result["order"], np.argsort(X, axis=1)),
        (result["mean"], X.mean()),
    ]


def gradients(x, scale):
    return jnp.sum(jnp.sin(x["a"]) ** 2) * scale


def of_gradients(call):
    value = lambda a: call({"a": a}, np.float32(2))
    slope = jax.grad(value)
    return [
        (value(X), 2 * np.sum(np.sin(X) ** 2)),
        (slope(X), 2 * np.sin(2 * X)),
        (jax.grad(lambda a: jnp.sum(slope(a)))(X), 4 * np.cos(2 * X)),
    ]


def unknown_sizes(x):
    centered = x - x.mean(0)
    return jnp.concatenate([centered[1:], centered[:1]]).reshape(-1) * x.shape[1]


def of_unknown_sizes(call):
    pairs = []
    for rows, columns in ((2, 3), (4, 1), (5, 2)):
        x = np.sin(np.arange(rows * columns, dtype=np.float32)).reshape(rows, columns)
        centered = x - x.mean(0)
        pairs.append((call(x), np.roll(centered, -1, 0).reshape(-1) * columns))
        slope = jax.grad(lambda x: (call(x) ** 2).sum())(x)
        pairs.append((slope, 2 * columns**2 * centered))
    return pairs


def platforms(x):
    return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)


def sharded(x):
    return jnp.cumsum(x, axis=0), x.sum()


def mesh(count: int = DEVICES) -> Mesh:
    return jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))


def export_sharded():
    rows = NamedSharding(mesh(), PartitionSpec("x"))
    return export.export(jax.jit(sharded, in_shardings=rows))(spec((4, 3)))


def of_sharded(call):
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows = NamedSharding(mesh(), PartitionSpec("x"))
    sums, whole = jax.jit(call)(jax.device_put(x, rows))
    return [(sums, np.cumsum(x, 0)), (whole, x.sum())]


def loops(x):
    carried, steps = jax.lax.scan(lambda c, row: (c * 0.5 + row, c), x[0], x)
    halved = jax.lax.while_loop(lambda y: (y > 1).any(), lambda y: y / 2, carried)
    return steps, jax.lax.cond(x.sum() > 0, lambda y: -y, lambda y: y, halved)


def of_loops(call):
    steps, result = call(X)
    carried = X[0] * 0.5 + X[0]
    expected = carried * 0.5 + X[1]
    while (expected > 1).any():
        expected = expected / 2
    return [(steps, np.stack([X[0], carried])), (result, -expected)]


DTYPES = (
    "bool int4 int8 int16 int32 uint4 uint8 uint16 uint32 float16 bfloat16 float32 complex64 "
    "float8_e4m3fn float8_e5m2"
).split()


def of_dtypes(call):
    values = [np.array([1, 0, 1]).astype(jnp.dtype(name)) for name in DTYPES]
    return list(zip(map(np.asarray, call(*values)), values, strict=True))


def exported(function: Any, *specs: Any, **options: Any) -> Callable[[], export.Exported]:
    return lambda: export.export(jax.jit(function), platforms=["cpu"], **options)(*specs)


KINDS = {
    "simple": Kind(exported(simple, spec((2, 3)), spec((), "int32")), 0, of_simple),
    "gradients": Kind(exported(gradients, {"a": spec((2, 3))}, spec(())), 2, of_gradients),
    "unknown_sizes": Kind(
        exported(unknown_sizes, spec(export.symbolic_shape("b, n", constraints=["b >= 2"]))),
        1,
        of_unknown_sizes,
    ),
    "platforms": Kind(
        lambda: export.export(jax.jit(platforms), platforms=["tpu", "cuda", "cpu"])(spec((2, 3))),
        0,
        lambda call: [(call(X), X + 1)],
    ),
    "sharded": Kind(export_sharded, 0, of_sharded),
    "loops": Kind(exported(loops, spec((2, 3))), 0, of_loops),
    "dtypes": Kind(exported(lambda *xs: xs, *(spec((3,), name) for name in DTYPES)), 0, of_dtypes),
}
# The bundle of a release, whose executable runs under the jaxlib and processor that made it.
BUNDLE = "step.hlob"


def modules(program: export.Exported, orders: int) -> list[bytes]:
    """Return the StableHLO of a program and of its derivatives, as bytes."""
    taken = [program]
    for _ in range(orders):
        taken.append(taken[-1].vjp())
    return [bytes(each.mlir_module_serialized) for each in taken]


def digests(program: export.Exported, orders: int) -> list[str]:
    return [hashlib.sha256(module).hexdigest() for module in modules(program, orders)]


# ---- written -------------------------------------------------------------------------------------


def write(folder: pathlib.Path) -> None:
    """Write the artifacts of this release.

    Raises:
      FileExistsError: if the folder is there: what a release has written stays as it is.
    """
    folder.mkdir(parents=True)
    record = {}
    for name, kind in KINDS.items():
        program = kind.export()
        (folder / name).write_bytes(program.serialize(vjp_order=kind.orders))
        record[name] = digests(program, kind.orders)
    (folder / DIGESTS).write_text(json.dumps(record, indent=1) + "\n")
    bundle.save(folder / BUNDLE, jax.jit(simple), spec((2, 3)), spec((), "int32"))


# ---- read ----------------------------------------------------------------------------------------


def wrong(folder: pathlib.Path) -> list[str]:
    """Return what of a release comes out otherwise here."""
    problems: list[str] = []
    record = json.loads((folder / DIGESTS).read_text())
    for name, expected in record.items():
        kind = KINDS[name]
        data = (folder / name).read_bytes()
        program = export.deserialize(data)
        if digests(program, kind.orders) != expected:
            problems.append(f"{name} has other StableHLO")
        for module in modules(program, kind.orders):
            module_of_artifact(module).operation.verify()
        again = cache_file.unpack(bytes(program.serialize(vjp_order=kind.orders)))
        if again["module"] != cache_file.unpack(data)["module"]:
            problems.append(f"{name} has other StableHLO when it is written again")
        problems += differing(name, kind.results(program.call))
    bundle.verify(folder / BUNDLE)
    for trust in (False, True):
        with warnings.catch_warnings():
            # Another jaxlib or processor than that which made the executable compiles.
            warnings.simplefilter("ignore" if trust else "error", bundle.BundleWarning)
            step = bundle.load(folder / BUNDLE, trust=trust)
            problems += differing(f"{BUNDLE}, trust={trust}", of_simple(step))
    return problems


def differing(name: str, pairs: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return the results of a program that are not NumPy's."""
    problems: list[str] = []
    for number, (result, expected) in enumerate(pairs):
        one, other = np.asarray(result), np.asarray(expected)
        exact = one.dtype.kind not in "fc"
        tolerances = {"rtol": 0 if exact else 2e-6, "atol": 0 if exact else 2e-6}
        if one.shape != other.shape or not np.allclose(
            one.astype(np.complex64), other.astype(np.complex64), **tolerances
        ):
            problems.append(f"{name} has {one} as result {number}, and NumPy has {other}")
    return problems


def folder_of_this_release(jaxlib: str) -> pathlib.Path:
    """Return the folder of what this release writes under a version of jaxlib."""
    return ARTIFACTS / f"hlofront-{__version__}-jaxlib-{jaxlib}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the artifacts of this release")
    options = parser.parse_args()
    if len(jax.devices()) < DEVICES:
        # One of the programs is for two devices, whose number is set before the first use.
        own = [sys.executable, "-m", "tests.export.releases", *sys.argv[1:]]
        os.execve(sys.executable, own, {**os.environ, **ENVIRONMENT})
    if options.write:
        write(folder_of_this_release(importlib.metadata.version("jaxlib")))
        return
    folders = sorted(path for path in ARTIFACTS.glob("hlofront-*") if path.is_dir())
    problems = [f"{path.name}: {each}" for path in folders for each in wrong(path)]
    print(*problems, f"{len(folders)} folders, {len(problems)} problems", sep="\n")
    sys.exit(bool(problems))


ENVIRONMENT = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(DEVICES)}

if __name__ == "__main__":
    main()
