"""What is timed on eight CPU devices, written once for both, as in cases.py.

python benchmarks/devices.py hlofront|jax     prints {case: [seconds per call, ...]} as JSON
"""

import json
import os
import sys

import models
import numpy as np
from cases import once, per_call

os.environ["JAX_NUM_CPU_DEVICES"] = "8"
# Each array of the trees, float32; in a model these are the weights of 20 layers.
SHAPES = [(64, 64), (64,), (64, 256), (256,), (256, 64)] * 20


def cases(jax):
    sharding = jax.sharding
    mesh = sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    rows = sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))
    others = sharding.NamedSharding(mesh, sharding.PartitionSpec("y"))

    add = jax.jit(lambda arrays: [array + 1 for array in arrays])
    for count in (1, 10, 100):
        arrays = [jax.device_put(np.ones((8, 4), np.float32), rows) for _ in range(count)]

        def call(arrays=arrays):
            jax.block_until_ready(add(arrays))

        name = f"8 devices: jit call, {count} array{'s' if count > 1 else ''}"
        yield name, per_call(call, 1000 // count + 20)

    array = jax.device_put(np.ones((8, 4), np.float32), rows)
    total = jax.jit(lambda array: array.sum())
    yield (
        "8 devices: jit call, with a sum over devices",
        per_call(lambda: total(array).block_until_ready(), 200),
    )

    tree = {f"weight{i}": np.ones(shape, np.float32) for i, shape in enumerate(SHAPES)}
    on_one = jax.device_put(tree)
    split = jax.device_put(tree, rows)
    for name, weights, target in (
        ("a tree of NumPy arrays", tree, rows),
        ("a tree of arrays", on_one, rows),
        ("a split tree, split otherwise", split, others),
    ):

        def put(weights=weights, target=target):
            jax.block_until_ready(jax.device_put(weights, target))

        yield f"8 devices: device_put of {name}", per_call(put, 5)

    step, arguments = models.gpt(jax, 12, batch=8)
    replicated, split_rows = sharding.PartitionSpec(), sharding.PartitionSpec("x")

    def new_step():
        def mean_step(*args):
            return jax.tree.map(lambda x: jax.lax.pmean(x, "x"), step(*args))

        in_specs = (*[replicated] * (len(arguments) - 1), split_rows)
        return jax.jit(jax.shard_map(mean_step, mesh=mesh, in_specs=in_specs, out_specs=replicated))

    yield (
        "8 devices: trace and lower a shard_map GPT",
        once(new_step, lambda function: function.trace(*arguments).lower()),
    )


def main():
    if sys.argv[1] == "hlofront":
        import hlofront as jax
    else:
        import jax
    print(json.dumps(dict(cases(jax))))


if __name__ == "__main__":
    main()
