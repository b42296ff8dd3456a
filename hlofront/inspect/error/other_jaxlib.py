"""The reference of an error search that runs under another version of jaxlib."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from hlofront.base.config import default_device, options
from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import ArrayLike, ArrayLikes, DType, NumPyArray
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.inspect.comparison.columns import Artifact
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.comparison.sessions import JaxlibSession
from hlofront.inspect.error.references import Reference
from hlofront.inspect.error.widening import is_foreign
from hlofront.inspect.jitted import jitted
from hlofront.inspect.stepwise.report_parts import source_line_of, written
from hlofront.pjrt.clients import client_for
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert_element_type
from hlofront.random.keys import key_data, wrap_key_data
from hlofront.transforms.flatten import ShapeDtypeStruct

# Each operation is compiled as a function of its own.
_warn_recompiles = options["hlofront_warn_recompiles"]


def jaxlib_version(against: object) -> str | None:
    """Return the version in a text such as "jaxlib 0.8.3"; None for other texts."""
    name, _, version = against.partition(" ") if isinstance(against, str) else ("", "", "")
    return version.strip() or None if name == "jaxlib" else None


class OtherJaxlib(Reference):
    """The program's operations, in its dtypes, under another version of jaxlib, on a CPU.

    Args:
      version: the version of jaxlib, as in "0.8.3".
    """

    def __init__(self, version: str):
        self.version = version
        self.label = f"jaxlib {version}"
        self.host = client_for("cpu").local_devices()[0]
        self._session: JaxlibSession | None = None
        # By key: the lowered program, and its owner, whose id is part of the key.
        self._programs: dict[object, tuple[int, Artifact, object]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        with default_device(self.host), _warn_recompiles(False):
            with JaxlibSession(self.version) as self._session:
                self.label = f"jaxlib {self._session.jaxlib}"
                yield
        self._programs.clear()

    def lift(self, x: ArrayLike) -> ArrayLike:
        return x

    def keeps_dtypes(self, equation: Equation) -> bool:
        return is_foreign(equation)

    def bind(self, equation: Equation, operands: ArrayLikes) -> ArrayLikes:
        def operation(*operands: ArrayLike) -> list[ArrayLike]:
            results = equation.primitive.bind(*operands, **equation.params)
            return list(results) if equation.primitive.multiple_results else [results]

        at = written(source_line_of(equation.traceback))
        name = equation.primitive.name + (f" at {at}" if at else "")
        avals = [variable.aval for variable in equation.outvars]
        return self._run(equation, operation, operands, avals, name)

    def call(self, program: ClosedJaxpr, operands: ArrayLikes) -> ArrayLikes:
        def whole(*operands: ArrayLike) -> list[ArrayLike]:
            return list(jaxpr_as_fun(program, *operands))

        return self._run(program, whole, operands, program.out_avals, "a program")

    def _run(
        self,
        owner: Equation | ClosedJaxpr,
        function: Callable[..., list[ArrayLike]],
        operands: ArrayLikes,
        avals: Sequence[AbstractValue],
        name: str,
    ) -> list[ArrayLike]:
        """Return the results of an equation or a program under the other jaxlib.

        Raises:
          NoEnvironment: if that jaxlib cannot run it; the message has the name.
        """
        assert self._session is not None
        types = [typeof(x) for x in operands]
        key = id(owner), tuple((aval.shape, aval.dtype) for aval in types)
        known = self._programs.get(key)
        try:
            if known is None:
                lowered = jitted(lambda *xs: list(map(storable, function(*xs)))).lower(
                    *(ShapeDtypeStruct(aval.shape, aval.dtype) for aval in types)
                )
                known = self._programs[key] = len(self._programs), Artifact(lowered), owner
            number, artifact, _ = known
            results = self._session.run(number, artifact, list(map(host_array, operands)))
        except (NoEnvironment, ValueError) as error:
            raise NoEnvironment(
                f"find_error cannot run {name} under {self.label}: {error}"
            ) from error
        return [restored(x, aval.dtype) for x, aval in zip(results, avals, strict=True)]


def host_array(x: ArrayLike) -> NumPyArray:
    """Return an array as a NumPy array, random keys as the numbers that represent them."""
    dtype = typeof(x).dtype
    if isinstance(dtype, ExtendedDType):
        return np.asarray(key_data(x))
    # A literal is a Python number, which NumPy would make an array of 64 bits.
    return np.asarray(x).astype(dtype, copy=False)


def storable(x: ArrayLike) -> ArrayLike:
    """Return an array in a dtype of NumPy that holds all of its values."""
    dtype = typeof(x).dtype
    if isinstance(dtype, ExtendedDType):
        return key_data(x)
    if dtype.isbuiltin == 1:
        return x
    if not issubdtype(dtype, np.floating):
        return convert_element_type(x, np.dtype(np.int8))
    if dtype.name.startswith(("bfloat16", "float8")):
        return bitcast_convert_type(x, _bits(dtype))
    return convert_element_type(x, np.dtype(np.float32))


def _bits(dtype: DType) -> DType:
    return np.dtype(f"uint{8 * dtype.itemsize}")


def restored(x: NumPyArray, dtype: DType) -> ArrayLike:
    """Return an array in the dtype that it had before `storable`."""
    if isinstance(dtype, ExtendedDType):
        return wrap_key_data(x, dtype=dtype)
    if dtype.isbuiltin != 1 and x.dtype == _bits(dtype):
        return x.view(dtype)
    return x.astype(dtype, copy=False)
