"""What comes out of a drawn program under one of the two, as plain data."""

import contextlib
from typing import Any

from tests.against_jax import describe
from tests.against_jax.fuzz import generating
from tests.against_jax.fuzz.machine import Machine


def described(program: dict[str, Any], jax: Any) -> dict[str, Any]:
    """mode -> what came out, as describe.describe has it."""

    def call(*args):
        return function(*args)

    machine = Machine(jax)
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
    return describe.describe(one, jax)


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
