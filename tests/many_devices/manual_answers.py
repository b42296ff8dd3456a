"""Programs of shard_map and pmap over eight devices, and what jax 0.10.2 gives for them.

`PYTHON tests/many_devices/manual_answers.py jax`, with a Python that has jax, writes the answers to
the lines of `manual_programs.txt` anew. A line is a function of one matrix; its answer has the
following, without the jaxpr for those after "value: ", which jax writes in another order.

  value: the result outside of jit and under jit, or the builtin classes of the errors;
  jaxpr: a digest of the program's text;
  collectives: the communication in its StableHLO, with the groups of devices.
"""

import hashlib
import importlib
import json
import os
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
ANSWERS = HERE / "manual_answers.json"
_COLLECTIVE = re.compile(
    r"stablehlo\.(all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|partition_id)"
    r"(.*?(?:replica_groups|source_target_pairs) = dense<(.*?)>)?"
)


def programs():
    """The programs, one per line."""
    lines = (HERE / "manual_programs.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def _jaxpr(jax, function, matrix):
    """The digest of a jaxpr's text, without what depends on the order of sets in jax."""
    text = re.sub(r"np\.int64\((\d+)\)", r"\1", str(jax.make_jaxpr(function)(matrix)))

    def in_order(match):
        return f"frozenset({{{', '.join(sorted(match[1].split(', ')))}}})"

    text = " ".join(re.sub(r"frozenset\({(.*?)}\)", in_order, text).split())
    text = text.replace("[ ", "[").replace(" ]", "]")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def names_for(jax):
    """What programs may use, made with jax or hlofront on eight devices."""
    sharding = jax.sharding
    mesh = sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"))

    def sm(function, in_specs, out_specs, **options):
        return jax.shard_map(
            function, **{"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs, **options}
        )

    def smf(function, in_specs, out_specs, **options):
        return sm(function, in_specs, out_specs, check_vma=False, **options)

    def in_context(call):
        with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
            return call()

    typed = jax.make_mesh((2, 4), ("x", "y"))

    def explicit(function):
        return lambda matrix: function(jax.reshard(matrix, sharding.PartitionSpec("x", "y")))

    def put(array):
        return jax.device_put(array, sharding.NamedSharding(mesh, sharding.PartitionSpec()))

    return {
        "explicit": explicit,
        "typed": typed,
        "in_context": in_context,
        "put": put,
        "jax": jax,
        "jnp": jax.numpy,
        "lax": jax.lax,
        "np": np,
        "P": sharding.PartitionSpec,
        "mesh": mesh,
        "sm": sm,
        "smf": smf,
    }


def answer(program, names):
    """What a program gives: its value, its jaxpr and its collectives."""
    jax = names["jax"]
    if "explicit(" in program:
        with jax.set_mesh(names["typed"]):
            return _answer(jax, program, names)
    return _answer(jax, program, names)


def _answer(jax, program, names):
    matrix = np.arange(32, dtype=np.float32).reshape(4, 8) / 7
    with_jaxpr = not program.startswith("value: ")
    try:
        function = eval(program.removeprefix("value: "), names)
    except Exception as error:
        return {"value": _class(error)}
    value = _tried(lambda: _value(jax, function(matrix)))
    under_jit = _tried(lambda: _value(jax, jax.jit(function)(matrix)))
    if isinstance(value, str) and isinstance(under_jit, str):
        return {"value": value, "under jit": under_jit}
    lowered = jax.jit(function).lower(matrix).as_text()
    found = [[match[0], match[2]] for match in _COLLECTIVE.findall(lowered)]
    return {
        "value": value,
        "under jit": under_jit,
        "jaxpr": _jaxpr(jax, function, matrix) if with_jaxpr else "",
        "collectives": sorted(found),
    }


def _value(jax, result):
    leaves = jax.tree_util.tree_leaves(result)
    return [[str(np.asarray(x).dtype), np.shape(x), _text(x)] for x in leaves]


def _text(x):
    return np.array2string(np.asarray(x), precision=4, threshold=4096, suppress_small=True)


def _tried(call):
    try:
        return json.loads(json.dumps(call()))
    except Exception as error:
        return _class(error)


def _class(error):
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    sys.path.pop(0)
    known = names_for(importlib.import_module(sys.argv[1]))
    if len(sys.argv) > 2:
        print(known["jax"].make_jaxpr(eval(sys.argv[2], known))(np.ones((4, 8), np.float32)))
    else:
        answers = {program: answer(program, known) for program in programs()}
        lines = [f"{json.dumps(key)}: {json.dumps(each)}" for key, each in answers.items()]
        ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
