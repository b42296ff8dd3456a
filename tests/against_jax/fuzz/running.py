"""What comes out of a drawn program under one of the two, as plain data."""

import contextlib
from typing import Any

import numpy as np

from tests.against_jax import describe
from tests.against_jax.fuzz import generating
from tests.against_jax.fuzz.machine import Machine
from tests.support.outcomes import Leaf, own_name

SCALARS = (bool, int, float, complex, str, bytes)


def described(program: dict[str, Any], jax: Any) -> dict[str, Any]:
    """mode -> what came out, as describe.describe has it."""

    def call(*args):
        return function(*args)

    machine = Machine(jax, program.get("nudge"))
    try:
        with jax.enable_x64(program["x64"]):
            function, args = generating.build(machine, program)
    except Exception as error:
        failure = error

        def function():
            raise failure

        args = ()
    one = describe.Program(
        function=call, operands=tuple(args), modes=tuple(program["modes"]), x64=program["x64"]
    )
    found = describe.describe(one, jax)
    for modes in found.values():
        if "leaves" in modes:
            modes["leaves"] = [of_plain_data(leaf) for leaf in modes["leaves"]]
    return found


def of_plain_data(leaf: Leaf) -> Leaf:
    """The description of a leaf without classes of jax, which the other side cannot unpickle.

    jax gives back some Python scalars as instances of subclasses of its own, of which users see
    the type of scalar; and an array of objects may hold anything.
    """
    kind, text, value = leaf
    if kind == "python":
        scalar = next(scalar for scalar in SCALARS if isinstance(value, scalar))
        return kind, scalar.__name__, scalar(value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return kind, text, own_name(str(value.tolist()))
    return leaf


def answers(_: str, questions: dict[str, Any], jax: Any, *__: Any) -> dict[str, Any]:
    """What the worker says: name -> what came out."""
    found = {name: described(program, jax) for name, program in questions.items()}
    for modes in found.values():
        for one in modes.values():
            one.pop("traceback", None)
    return found


def calls_of(program: dict[str, Any], jax: Any) -> str:
    """The program's calls as text: those it makes while it is written down."""
    machine = Machine(jax)
    machine.said = []
    with contextlib.suppress(Exception), jax.enable_x64(program["x64"]):
        function, args = generating.build(machine, program)
        machine.said.append(f"called with {machine.shown(tuple(args))}")
        if program["modes"] == ["value"]:
            function(*args)
        else:
            jax.make_jaxpr(function)(*args)
    return "\n".join(machine.said)
