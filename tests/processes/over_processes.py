"""Collectives and training steps over several processes, compared with one process's.

    python tests/processes/over_processes.py [PROCESSES ...]

By default over 2, 4 and 8 processes of this machine, which share eight devices. It prints what
differs, and its exit status is 1 if something does. test_over_processes.py runs a part of it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
DEVICES = 8


def collectives():
    """Yield the name, the function of a block of each device, and the spec of each result."""
    import hlofront as jax
    import hlofront.numpy as jnp
    from hlofront import lax

    P, n = jax.P, DEVICES
    around = [(i, (i + 3) % n) for i in range(n)]
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    for name in ("psum", "pmean", "pmax", "pmin"):
        function = getattr(lax, name)
        yield name, lambda x, f=function: f(x, "x"), P()
        yield f"{name} of groups", lambda x, f=function: f(x, "x", axis_index_groups=groups), P("x")
    yield "all_gather", lambda x: lax.all_gather(x, "x"), P("x")
    yield "all_gather tiled", lambda x: lax.all_gather(x, "x", axis=1, tiled=True), P("x")
    yield "all_to_all", lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x")
    yield "ppermute", lambda x: lax.ppermute(x, "x", around), P("x")
    yield "ppermute of some", lambda x: lax.ppermute(x, "x", around[:3]), P("x")
    yield "pshuffle", lambda x: lax.pshuffle(x, "x", [*range(1, n), 0]), P("x")
    yield (
        "psum_scatter",
        lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True),
        P("x"),
    )
    yield "pbroadcast", lambda x: lax.pbroadcast(x, "x", 5), P("x")
    yield "axis_index", lambda x: lax.axis_index("x") + 0 * x, P("x")

    def ragged(x):
        # Each device sends one row to each device.
        ones, rows = jnp.ones(n, "int32"), jnp.arange(n, dtype="int32")
        output = jnp.zeros((n, x.shape[1]), x.dtype)
        at = jnp.full(n, lax.axis_index("x"), "int32")
        sent = jnp.tile(x[:1], (n, 1)) + rows[:, None].astype(x.dtype)
        return lax.ragged_all_to_all(sent, output, rows, ones, at, ones, axis_name="x")

    yield "ragged_all_to_all", ragged, P("x")
    yield "gradient of psum", lambda x: jax.grad(lambda y: (lax.psum(y, "x") ** 2).sum())(x), P("x")
    yield "batched psum", lambda x: jax.vmap(lambda r: lax.psum(r, "x"))(x), P()


def results(parts):
    """Return the results by name; `parts` names what is run: dtypes of collectives, steps."""
    import hlofront as jax
    from hlofront.experimental.multihost_utils import process_allgather

    whole = {}
    mesh = jax.make_mesh((DEVICES,), ("x",), (jax.sharding.AxisType.Auto,))
    split = jax.NamedSharding(mesh, jax.P("x"))
    dtypes = [np.dtype(name) for name in ("float32", "int32") if name in parts]
    for dtype in dtypes:
        values = np.arange(16 * 8).reshape(16, 8).astype(dtype)
        for name, function, spec in collectives():
            if dtype == np.int32 and name.startswith(("gradient", "pmean")):
                continue
            x = jax.make_array_from_callback(values.shape, split, lambda index: values[index])
            mapped = jax.jit(
                jax.shard_map(
                    function, mesh=mesh, in_specs=jax.P("x"), out_specs=spec, check_vma=False
                )
            )
            try:
                result = process_allgather(mapped(x), tiled=True)
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                whole[f"{name} {dtype}"] = np.array(text[:300])
            else:
                whole[f"{name} {dtype}"] = np.asarray(result)
    if "steps" in parts:
        from tests.many_devices import training_steps

        class Everywhere(training_steps.Here):
            """The devices of all processes; arrays are made of what each process has."""

            def put(self, arrays, mesh, spec):
                sharding = jax.NamedSharding(mesh, spec)
                return jax.tree.map(
                    lambda x: jax.make_array_from_callback(
                        np.shape(x), sharding, lambda index: np.asarray(x)[index]
                    ),
                    arrays,
                )

        for way in STEPS:
            function = getattr(training_steps, way)
            gathered = jax.tree.leaves(process_allgather(function(Everywhere()), tiled=True))
            whole |= {f"{way} {n}": np.asarray(leaf) for n, leaf in enumerate(gathered)}
    return whole


STEPS = ("data_parallel", "fully_sharded", "tensor_parallel", "tensor_parallel_by_hand")


def work(parts, path):
    import hlofront as jax

    if "JAX_NUM_PROCESSES" in os.environ:
        jax.distributed.initialize()
    whole = results(parts)
    if jax.process_index() == 0:
        np.savez(path, **whole)
    if jax.process_count() > 1:
        from hlofront.experimental.multihost_utils import sync_global_devices

        sync_global_devices("all is written")


def compared(processes, parts, folder, known=None):
    """Return the results of some processes, and the names of those that differ from `known`."""
    path = pathlib.Path(folder) / f"of{processes}.npz"
    own = [str(pathlib.Path(__file__)), "--work", ",".join(parts), str(path)]
    group = ["-m", "hlofront", "run", "--processes", str(processes)]
    command = own if processes == 1 else [*group, "--devices", str(DEVICES // processes), *own]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_NUM_CPU_DEVICES": str(DEVICES)}
    ran = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-4000:]
    with np.load(path) as file:
        whole = dict(file)
    known = known or whole
    differing = [name for name in known if not _close(known[name], whole[name])]
    return whole, differing


def _close(x, y):
    if x.dtype.kind == "U" or y.dtype.kind == "U":
        return x.dtype.kind == y.dtype.kind
    return x.shape == y.shape and np.allclose(x, y, rtol=2e-5, atol=2e-6)


def main(counts):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        parts = ("float32", "int32", "steps")
        known, _ = compared(1, parts, folder)
        for name, value in known.items():
            if value.dtype.kind == "U":
                print("one process:", name, value)
        for count in counts:
            whole, differing = compared(count, parts, folder, known)
            print(count, "processes:", len(whole), "results,", len(differing), "differ", differing)
            failed |= bool(differing)
    return int(failed)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if "--work" in sys.argv:
        work(sys.argv[2].split(","), sys.argv[3])
    else:
        sys.exit(main([int(text) for text in sys.argv[1:]] or [2, 4, 8]))
