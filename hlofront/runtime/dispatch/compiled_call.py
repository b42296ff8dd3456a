"""The call of a compiled program, with checks of its arguments against the compiled avals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.bridge import client as bridge
from hlofront.bridge import fast_parts
from hlofront.bridge.client import Sharding
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.bridge.members import device_list_of, device_of
from hlofront.core.trace import Tracer, leaked
from hlofront.runtime.compilation.traced_program import Function, TracedProgram
from hlofront.runtime.dispatch.executable import CallAnswer, Executable
from hlofront.runtime.dispatch.executables import sharded_executables
from hlofront.runtime.dispatch.references import discharged_call
from hlofront.runtime.sharding.device_assignment import first_device, placed
from hlofront.runtime.sharding.placement import put
from hlofront.runtime.sharding.typed import in_memory_of
from hlofront.transforms.flatten import abstract
from hlofront.transforms.reference_checks import check_references

if TYPE_CHECKING:
    from hlofront.runtime.compilation.aot_targets import AbsentExecutable


class CompiledCall:
    """A compiled program's function for C++, without a reference to its stage."""

    __slots__ = ("_executable", "_jitted", "_traced")

    def __init__(
        self,
        jitted: Function,
        traced: TracedProgram,
        executable: "Executable | AbsentExecutable",
    ):
        self._jitted = jitted
        self._traced = traced
        self._executable = executable

    def call(self, *args: object, **kwargs: object) -> CallAnswer:
        """Run the program if C++ cannot; return its result and data for the next C++ call."""
        args, kwargs = self._jitted.plan.dynamic(args, kwargs)
        leaves, in_tree = fast_parts.registry.flatten((args, kwargs))
        self._check(args, kwargs, leaves, in_tree)
        executable, out_tree = self._executable, self._traced.out_tree
        if self._traced.has_references:
            program = self._traced.program
            check_references(program.debug_info, leaves, program.consts)
            call = discharged_call(program, self._traced.donated)
            return out_tree.unflatten(call.run(leaves, executable.run)), None, False
        result = out_tree.unflatten(executable.run(leaves))
        return result, executable.fast_path(out_tree, leaves, result), False

    def _check_shardings(self, names: Sequence[str], leaves: Sequence[object]) -> None:
        """Raise a ValueError if committed arguments do not have the program's shardings."""
        executable = self._executable
        shardings = executable.shardings
        wrong: list[str] = []
        for position, index in enumerate(executable.kept_inputs):
            if index >= len(leaves):  # A reference that the function closes over.
                continue
            leaf = leaves[index]
            actual_sharding = placed(leaf)
            if shardings is not None:
                expected = shardings.inputs[position]
            else:
                expected = in_memory_of(executable.kept_avals[position], executable.sharding)
            if actual_sharding is not None and not (
                actual_sharding == expected
                or (
                    device_list_of(actual_sharding) == device_list_of(expected)
                    and actual_sharding.is_equivalent_to(expected, leaf.ndim)
                )
            ):
                wrong.append(
                    f"Argument {names[index]} of {abstract(leaf).str_short()}: it was passed with "
                    f"{actual_sharding}, and {expected} is required"
                )
        if wrong:
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of "
                f"arguments passed to it. Move them with device_put; here are the {len(wrong)} "
                "mismatches:\n" + "\n".join(wrong)
            )

    @boundary
    def _check(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        leaves: Sequence[object],
        in_tree: PyTreeDef,
    ) -> None:
        """Raise an error if the arguments do not match those that the program was compiled for."""
        traced = self._traced
        if in_tree != traced.in_tree:
            raise TypeError(_structure_message(traced.in_tree, in_tree))
        names = self._jitted.plan.names(args, kwargs) if leaves else ()
        wrong: list[str] = []
        for name, leaf, expected in zip(names, leaves, traced.program.in_avals, strict=True):
            try:
                actual_aval = abstract(leaf)
            except TypeError as error:
                raise TypeError(
                    f"Argument {leaf!r} of type {type(leaf)} is not a valid JAX type: {error}"
                ) from error
            if isinstance(leaf, Tracer):
                raise leaked(leaf) if not leaf._trace.alive else _traced(name, leaf)
            if actual_aval.shape != expected.shape or actual_aval.dtype != expected.dtype:
                wrong.append(
                    f"Argument {name!r} compiled with {expected.str_short()} and called with "
                    f"{actual_aval.str_short()}"
                )
        if wrong:
            raise TypeError(
                "Argument types differ from the types for which this computation was compiled. "
                "Perhaps you are calling the compiled executable with a different enable_x64 "
                "mode than when it was AOT compiled? The mismatches are:\n" + "\n".join(wrong)
            )
        # If the user passes a device to jit, arguments are moved to it.
        shardings = self._jitted.jit_shardings
        moves = self._jitted.backend is not None or (
            shardings is not None and shardings.moves_arguments
        )
        if not moves and not bridge.is_absent(first_device(self._executable.where)):
            self._check_shardings(names, leaves)


def _traced(name: str, tracer: Tracer) -> TypeError:
    return TypeError(
        "Cannot apply JAX transformations to a function lowered and compiled for a particular "
        f"signature: argument {name} is traced, it is {tracer!r}. Transform the function before it "
        "is lowered, or call the jitted function."
    )


def _structure_message(expected: PyTreeDef, passed: PyTreeDef) -> str:
    """Return the error's text for arguments whose tree structure is not the compiled one."""
    reasons = tree.prefix_errors(
        expected.unflatten([0] * expected.num_leaves),
        passed.unflatten([0] * passed.num_leaves),
        name="compiled for",
        full_name="called with",
    )
    text = "\n".join(f"  * {reason}" for reason in reasons[:5])
    return (
        "Function compiled with input pytree does not match the input pytree it was called with: "
        f"it was compiled for (args, kwargs) = {expected} and called with {passed}.\n{text}"
    )


def shard_argument(x: object, sharding: Sharding, layout: object) -> object:
    """Put an argument on its devices, where C++ cannot do so itself."""
    if type(sharding) is bridge.SingleDeviceSharding:
        return put(x, abstract(x), device_of(sharding), True)
    return sharded_executables().split(x, abstract(x), sharding)
