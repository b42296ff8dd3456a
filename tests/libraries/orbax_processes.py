"""Writes a checkpoint by orbax over four processes, and restores it over four, two and one.

    PYTHON tests/libraries/orbax_processes.py

PYTHON has the packages of requirements.txt and jax; hlofront stands in for jax. It prints a line
per group of processes, and its exit status is 1 if a group fails or restores other values.
"""

import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]


def state_of(jax, np, mesh):
    """Return the state that is written, with arrays that are split, replicated and scalar."""
    P = jax.sharding.PartitionSpec
    weights = np.arange(64, dtype=np.float32).reshape(8, 8)

    def put(value, *spec):
        split = jax.sharding.NamedSharding(mesh, P(*spec))
        return jax.make_array_from_callback(value.shape, split, lambda index: value[index])

    return {
        "rows": put(weights, "x"),
        "columns": put(weights.astype(jax.numpy.bfloat16), None, "x"),
        "same": put(np.arange(5)),
        "step": 7,
    }


def work(folder: str, writes: bool) -> None:
    """Write or restore the checkpoint in each process of a group."""
    import numpy as np

    importlib.import_module("hlofront.as_jax")  # It comes before whatever imports jax.
    ocp = importlib.import_module("orbax.checkpoint")
    jax = importlib.import_module("jax")
    multihost_utils = importlib.import_module("jax.experimental.multihost_utils")

    if "JAX_NUM_PROCESSES" in os.environ:
        jax.distributed.initialize()
    auto = (jax.sharding.AxisType.Auto,)
    state = state_of(jax, np, jax.make_mesh((jax.device_count(),), ("x",), auto))
    with ocp.CheckpointManager(folder) as manager:
        if writes:
            manager.save(3, args=ocp.args.StandardSave(state))
            manager.wait_until_finished()
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        restored = manager.restore(3, args=ocp.args.StandardRestore(abstract))
    for name, value in state.items():
        mine = multihost_utils.process_allgather(restored[name], tiled=True)
        wanted = multihost_utils.process_allgather(value, tiled=True)
        assert np.array_equal(mine, wanted), (name, mine, wanted)
        if isinstance(value, jax.Array):
            assert restored[name].sharding == value.sharding, name
    multihost_utils.sync_global_devices("restored")
    print(f"restored over {jax.process_count()} processes, {jax.device_count()} devices")


def main() -> int:
    """Run the groups; return the exit status."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for processes in (4, 2, 1):
            own = [str(pathlib.Path(__file__)), f"{folder}/steps", str(processes == 4)]
            group = ["-m", "hlofront", "run", "--processes", str(processes), "--devices", "2"]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            result = subprocess.run(
                [sys.executable, *([] if processes == 1 else group), *own],
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            lines = [line for line in result.stdout.splitlines() if "restored over" in line]
            print(processes, "processes:", len(lines), "have restored it:", lines[:1])
            if result.returncode or len(lines) != processes:
                failed = True
                print(result.stdout[-3000:], result.stderr[-3000:])
    return int(failed)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1], sys.argv[2] == "True")
    else:
        sys.exit(main())
