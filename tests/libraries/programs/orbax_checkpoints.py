"""orbax.checkpoint: trees of arrays and scalars, saved and restored, by steps and at once."""

import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

parameters = {"layer": {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16)}}
state = {
    "parameters": parameters,
    "optimizer": optax.adam(0.1).init(parameters),
    "step": 7,
    "rate": 0.5,
    "numpy": np.arange(3),
    "empty": {},
}
abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(root / "standard", state)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(root / "standard", abstract)
    print("restored", restored["parameters"]["layer"]["w"], restored["step"], restored["rate"])
    print("types", sorted({type(leaf).__name__ for leaf in jax.tree.leaves(restored)}))
    print("equal", jax.tree.all(jax.tree.map(np.array_equal, state, restored)))
    print("dtype", restored["parameters"]["layer"]["b"].dtype)
    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=2)
    with ocp.CheckpointManager(root / "steps", options=options) as manager:
        for step in range(6):
            values = jax.tree.map(lambda x: x + step, parameters)
            manager.save(step, args=ocp.args.StandardSave(values))
        manager.wait_until_finished()
        print("steps", manager.all_steps(), manager.latest_step())
        latest = manager.restore(4, args=ocp.args.StandardRestore(parameters))
        print("latest", latest["layer"]["w"])
        metadata = manager.item_metadata(4)
        print("metadata", metadata["layer"]["w"].shape, metadata["layer"]["w"].dtype)
    handler = ocp.PyTreeCheckpointHandler()
    with ocp.AsyncCheckpointer(handler) as checkpointer:
        checkpointer.save(root / "tree", args=ocp.args.PyTreeSave(parameters))
        checkpointer.wait_until_finished()
        narrow = jax.tree.map(lambda x: ocp.ArrayRestoreArgs(dtype=jnp.float16), parameters)
        tree = checkpointer.restore(root / "tree", args=ocp.args.PyTreeRestore(restore_args=narrow))
    print("narrowed", tree["layer"]["w"], tree["layer"]["b"].dtype)
    try:
        ocp.StandardCheckpointer().restore(root / "absent")
    except (FileNotFoundError, ValueError) as error:
        print("refused", type(error).__name__)
