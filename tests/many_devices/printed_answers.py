"""Programs over eight devices, and what they print under jax 0.10.2: names and `printed`.

`printed_programs.txt` has the programs, each under a line "# --- TITLE"; `printed_answers.json` has
what each prints under jax. `tried(call)` prints the call's value, or the class of its error.

`PYTHON tests/many_devices/printed_answers.py jax`, with a Python that has jax, writes the answers
anew; with titles after it, the answers to these programs only.
"""

import contextlib
import importlib
import io
import json
import os
import pathlib
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
PROGRAMS = HERE / "printed_programs.txt"
ANSWERS = HERE / "printed_answers.json"


def programs():
    """From the title of each program to its source."""
    parts = re.split(r"^# --- (.+)\n", PROGRAMS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def answers():
    """From the title of each program to what it prints under jax."""
    return json.loads(ANSWERS.read_text())


def names_for(jax):
    """What the programs may use, made with jax or hlofront."""
    sharding = jax.sharding
    layouts = importlib.import_module(f"{jax.__name__}.experimental.layout")
    kinds = {kind.name[0]: kind for kind in sharding.AxisType}

    def make(sizes, names, types="E"):
        """A mesh whose axes are Explicit, Auto or Manual, by the letters of `types`."""
        types = types * len(names) if len(types) == 1 else types
        return jax.make_mesh(sizes, names, axis_types=tuple(kinds[letter] for letter in types))

    def tried(call, *args):
        try:
            print(call(*args))
        except Exception as error:
            print("ERR", type(error).__name__)

    return {
        "jax": jax,
        "jnp": jax.numpy,
        "lax": jax.lax,
        "random": jax.random,
        "np": np,
        "P": sharding.PartitionSpec,
        "NamedSharding": sharding.NamedSharding,
        "AbstractMesh": sharding.AbstractMesh,
        "AxisType": sharding.AxisType,
        "ManualAxisType": sharding.ManualAxisType,
        "Format": layouts.Format,
        "Layout": layouts.Layout,
        "reshard": sharding.reshard,
        "shard_map": jax.shard_map,
        "S": jax.ShapeDtypeStruct,
        "make": make,
        "tried": tried,
    }


def printed(jax, title, source):
    """What a program prints, without addresses and with the members of sets in order."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(source, title, "exec"), names_for(jax))
        except Exception as error:
            print("RAISED", type(error).__name__)
        finally:
            jax.set_mesh(None)
    text = re.sub(r"0x[0-9a-f]+", "0x", out.getvalue())
    return re.sub(r"frozenset\({(.*?)}\)", _in_order, text)


def _in_order(match):
    return f"frozenset({{{', '.join(sorted(match[1].split(', ')))}}})"


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    sys.path.pop(0)
    module = importlib.import_module(sys.argv[1])
    chosen = sys.argv[2:] or programs()
    known = answers() if sys.argv[2:] else {}
    found = {
        title: printed(module, title, source) if title in chosen else known[title]
        for title, source in programs().items()
    }
    ANSWERS.write_text(json.dumps(found, indent=1) + "\n")
