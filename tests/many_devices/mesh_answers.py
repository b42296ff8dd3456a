"""Programs over meshes of each type of axes, and what jax 0.10.2 gives for them.

A line of `mesh_programs.txt` is an expression of x, y and w, matrices of 8 by 8, and the vector b,
which are split over a mesh of 2 by 4 devices. Each is compiled for a mesh whose axes are Explicit,
or Auto, or one of each, and as the body of a shard_map in which one axis is Manual.

The answer has the types of the results, two sums of the elements of each, and the collectives of
the compiled program with their groups of devices; or the class of the error.

`PYTHON tests/many_devices/mesh_answers.py jax`, with a Python that has jax, writes the answers of
jax anew to the lines of `mesh_answers.json`.
"""

import importlib
import json
import os
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
ANSWERS = HERE / "mesh_answers.json"
KINDS = ("explicit", "auto", "mixed", "manual")
_COLLECTIVE = re.compile(
    r" (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
    r".*?(?:replica_groups|source_target_pairs)=(.*?), (?!device_ids)[a-z_]+="
)


def programs():
    """The expressions, one per line."""
    lines = (HERE / "mesh_programs.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


class MeshOperands:
    """The operands over a mesh of some type of axes, made with jax or hlofront."""

    def __init__(self, jax, kind):
        self.jax, self.kind = jax, kind
        types = jax.sharding.AxisType
        auto, explicit = types.Auto, types.Explicit
        self.mesh = jax.make_mesh(
            (2, 4),
            ("x", "y"),
            axis_types={"explicit": (explicit,) * 2, "mixed": (auto, explicit)}.get(
                kind, (auto,) * 2
            ),
        )
        spec = jax.sharding.PartitionSpec
        numbers = np.random.default_rng(0).random((3, 8, 8), np.float32)
        arrays = {"x": numbers[0], "y": numbers[1], "w": numbers[2], "b": numbers[0, 0]}
        specs = {"x": spec("x", "y"), "y": spec("x", "y"), "w": spec("x"), "b": spec()}
        self.operands = [
            jax.device_put(arrays[name], jax.sharding.NamedSharding(self.mesh, specs[name]))
            for name in arrays
        ]
        self.names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax}

    def function(self, program):
        function = eval(f"lambda x, y, w, b: {program}", self.names)
        if self.kind != "manual":
            return function
        jax, spec = self.jax, self.jax.sharding.PartitionSpec

        def stacked(*operands):
            return jax.tree_util.tree_map(lambda x: x[None], function(*operands))

        rows = spec("x")
        return jax.shard_map(
            stacked, in_specs=(rows, rows, spec(), spec()), out_specs=rows, axis_names={"x"}
        )

    def answer(self, program):
        with self.jax.set_mesh(self.mesh):
            try:
                lowered = self.jax.jit(self.function(program)).trace(*self.operands)
                types = [aval.str_short() for aval in lowered.jaxpr.out_avals]
                compiled = lowered.lower().compile()
                results = self.jax.tree_util.tree_leaves(compiled(*self.operands))
            except Exception as error:
                return {"error": type(error).__name__}
        return {
            "types": types,
            "sums": [_sums(result) for result in results],
            "collectives": sorted(map(list, _COLLECTIVE.findall(compiled.as_text()))),
        }


def _sums(result):
    """Two sums of an array's elements, of which one tells their order."""
    elements = np.asarray(result).astype(np.float64).ravel()
    sums = elements.sum(), elements @ np.cos(np.arange(elements.size))
    return [float(f"{each:.6g}") for each in sums]


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    os.environ["JAX_NUM_CPU_DEVICES"] = "8"
    side = importlib.import_module(sys.argv[1])
    cases = [MeshOperands(side, kind) for kind in KINDS]
    answers = {
        f"{case.kind}: {program}": case.answer(program) for case in cases for program in programs()
    }
    lines = [f"{json.dumps(key)}: {json.dumps(each)}" for key, each in answers.items()]
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ANSWERS
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
