"""The step of examples/sharded.py over all devices of this process, for the command line."""

import pathlib
import sys

import hlofront as jax

sys.path.append(str(pathlib.Path(__file__).parents[2] / "examples"))

from sharded import jitted, mesh_of, shapes

step = jitted(mesh_of(jax.devices()))
example_args = shapes
