"""The references of an error search: the same operations in float64, or on another device."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hlofront.base.config import default_device, enable_x64
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.sharding.mesh_context import NO_MESH
from hlofront.higher_order.calls.jit_call import jit_p
from hlofront.inspect.error.widening import bind_widened, keeps_dtypes, widen, widened_program
from hlofront.pjrt.devices import Device
from hlofront.runtime.array.transfer import device_put


class Reference(ABC):
    """Another way of computing a program's operations, against which results are compared."""

    label: str
    """The name of the reference, as in "float64"."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Set the options under which a search with this reference runs."""
        yield

    @abstractmethod
    def lift(self, x: ArrayLike) -> ArrayLike:
        """Return an array of the program as an operand of the reference."""

    @abstractmethod
    def bind(self, equation: Equation, operands: ArrayLikes) -> ArrayLikes:
        """Run an equation on operands of the reference, and return its results."""

    @abstractmethod
    def call(self, program: ClosedJaxpr, operands: ArrayLikes) -> ArrayLikes:
        """Run a whole program, compiled, on operands of the reference; return its results."""

    def keeps_dtypes(self, equation: Equation) -> bool:
        """Return whether the reference can compute an equation only in the program's dtypes."""
        return False


class Float64(Reference):
    """The program's operations, with all floating-point dtypes widened to float64 and complex128.

    TPUs have no float64: for them it runs on the CPU.
    """

    label = "float64"

    def __init__(self, host: Device | None):
        # The device that the operations run on; None for the program's own.
        self.host = host

    @contextmanager
    def running(self) -> Iterator[None]:
        with enable_x64(True):
            yield

    def lift(self, x: ArrayLike) -> ArrayLike:
        return widen(x if self.host is None else device_put(np.asarray(x), self.host))

    def bind(self, equation: Equation, operands: ArrayLikes) -> ArrayLikes:
        return bind_widened(equation, operands)

    def call(self, program: ClosedJaxpr, operands: ArrayLikes) -> ArrayLikes:
        return compiled_call(widened_program(program), operands)

    def keeps_dtypes(self, equation: Equation) -> bool:
        return keeps_dtypes(equation)


class OtherDevice(Reference):
    """The program's operations, in its dtypes, on another device."""

    def __init__(self, device: Device):
        self.device = device
        self.label = str(device)

    def lift(self, x: ArrayLike) -> ArrayLike:
        return device_put(x, self.device)

    def bind(self, equation: Equation, operands: ArrayLikes) -> ArrayLikes:
        with default_device(self.device):
            results = equation.primitive.bind(*operands, **equation.params)
        return results if equation.primitive.multiple_results else (results,)

    def call(self, program: ClosedJaxpr, operands: ArrayLikes) -> ArrayLikes:
        with default_device(self.device):
            return compiled_call(program, operands)


def compiled_call(program: ClosedJaxpr, operands: ArrayLikes) -> ArrayLikes:
    """Return the results of a program, compiled as a whole and with no argument donated."""
    return jit_p.bind(
        *operands,
        name="step",
        jaxpr=program,
        donated_invars=(False,) * len(operands),
        keep_unused=False,
        inline=False,
        compiler_options_kvs=(),
        ctx_mesh=NO_MESH,
    )
