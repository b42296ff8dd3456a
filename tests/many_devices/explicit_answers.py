"""Programs over meshes with explicit axes, and what jax 0.10.2 gives for them: names and `ask`.

A line of `explicit_programs.txt` is a call, under a line "# in CONTEXT" that says which mesh is in
context; the line below a call in `explicit_answers.txt` is jax's answer, as text without line
breaks: the jaxpr, the sharding, or the class of the error.

`PYTHON tests/many_devices/explicit_answers.py jax`, with a Python that has jax, writes the answers
anew.
"""

import contextlib
import importlib
import os
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "explicit_programs.txt"
ANSWERS = HERE / "explicit_answers.txt"


def names_for(jax):
    """What the calls may use, made with jax or hlofront on eight devices."""
    sharding = jax.sharding
    kinds = sharding.AxisType
    mesh, auto, mixed = (
        sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("x", "y"), axis_types=types)
        for types in ((kinds.Explicit,) * 2, (kinds.Auto,) * 2, (kinds.Auto, kinds.Explicit))
    )
    spec = sharding.PartitionSpec
    host = np.arange(64, dtype=np.float32).reshape(8, 8)

    def described(*entries, shape=(8, 8), dtype="float32", over=mesh):
        held = sharding.NamedSharding(over, spec(*entries))
        return jax.ShapeDtypeStruct(shape, dtype, sharding=held)

    def put(*entries, over=mesh):
        return jax.device_put(host, sharding.NamedSharding(over, spec(*entries)))

    return {
        "jax": jax,
        "jnp": jax.numpy,
        "lax": jax.lax,
        "random": jax.random,
        "np": np,
        "P": spec,
        "NamedSharding": sharding.NamedSharding,
        "reshard": sharding.reshard,
        "auto_axes": sharding.auto_axes,
        "explicit_axes": sharding.explicit_axes,
        "get_abstract_mesh": sharding.get_abstract_mesh,
        "J": jax.make_jaxpr,
        "S": described,
        "put": put,
        "mesh": mesh,
        "auto": auto,
        "mixed": mixed,
        "host": host,
        "key": jax.random.key(0),
    }


def ask(call, context, names):
    """The answer to a call, as text: its value, or the class of the error it raises."""
    jax = names["jax"]
    with contextlib.ExitStack() as stack:
        if context in ("mesh", "auto", "mixed"):
            stack.enter_context(jax.set_mesh(names[context]))
        elif context == "abstract":
            stack.enter_context(jax.sharding.use_abstract_mesh(names["mesh"].abstract_mesh))
        try:
            text = str(eval(call, names))
        except Exception as error:
            return f"!! {type(error).__name__}"
    text = re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)
    text = " ".join(re.sub(r"0x[0-9a-f]+", "0x", text).split())
    return "-> " + text.replace("[ ", "[").replace(" ]", "]")


def programs():
    """The pairs of a call and the name of the mesh in its context."""
    context, pairs = "", []
    for line in PROGRAMS.read_text().splitlines():
        if line.startswith("# in "):
            context = line.removeprefix("# in ")
        elif line and not line.startswith("#"):
            pairs.append((line, context))
    return pairs


def answers():
    """From (call, context) to jax's answer."""
    lines = ANSWERS.read_text().splitlines()
    return dict(zip(programs(), lines[1::2], strict=True))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    sys.path.pop(0)
    known = names_for(importlib.import_module(sys.argv[1]))
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ANSWERS
    text = "".join(f"{call}\n    {ask(call, where, known)}\n" for call, where in programs())
    target.write_text(text)
