"""The table of replacements for XLA's operations on particular platforms.

A row is a function, registered by `@replaces(primitive)`, that is called once for each equation of
the primitive. It returns a function that emits the replacement, or None to keep XLA's operation.
The replacement is a private function of the module, called where the operation would be. The sizes
from which replacements are profitable are in min_sizes.py. `python -m hlofront replacements` prints
the table.

Rules needed for correct results are not rows here, because no option may turn them off.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.jaxpr import Atom, Equation, Var
from hlofront.core.primitive import Primitive
from hlofront.core.rules import LoweringRule, lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import NumPyDType
from hlofront.primitives.elementwise.elementwise import AccuracyMode

# `emit(builder, *operands)` returns a value, or a sequence of them.
Emit = Callable[..., Any]


class Candidate:
    """An equation that may be replaced, with its operands' makers and its results' readers."""

    def __init__(self, build: Builder):
        self._build = build
        self.avals_in: Avals = build.avals_in
        self.avals_out: Avals = build.avals_out
        self.params: Mapping[str, Any] = build.current.params
        self.primitive: Primitive = build.primitive
        self.operands: Sequence[Atom] = build.current.invars

    def maker(self, atom: Atom) -> Equation | None:
        """Return the equation whose result is an atom, if it is in the same program."""
        program = self._build.program
        return program.maker(atom) if program is not None else None

    @property
    def environment(self) -> Mapping[Var, Value]:
        """Return the values of the operands of this equation and of earlier ones."""
        program = self._build.program
        return program.environment if program is not None else {}


Match = Callable[[Candidate], Emit | None]


class Replacement(NamedTuple):
    """A row of the table.

    Attributes:
      primitive: the primitive whose equations may be replaced.
      platform: the platform for which they are replaced.
      form: the name of the dtype of the results, or of the form of the replacement; "" if there are
        several.
      home: the name of the module that defines the replacement.
      sizes: the key of its minimum sizes in min_sizes.py.
      match: returns the function that emits the replacement of an equation, or None.
    """

    primitive: Primitive
    platform: str
    form: str
    home: str
    sizes: str
    match: Match

    @property
    def description(self) -> str:
        """The first line of the docstring of the row's function."""
        return (self.match.__doc__ or "").partition("\n")[0]


# All rows whose modules have been imported; `rules.import_all()` imports the others.
REPLACEMENTS: list[Replacement] = []


def replaces(
    *primitives: Primitive,
    platform: str = "cpu",
    form: str = "",
    home: str = "",
    sizes: str = "",
    needs_barriers: bool = False,
    splits: bool = False,
    in_place: bool = False,
) -> Callable[[Match], Match]:
    """Return a decorator that adds a row to the table for each of some primitives.

    The option `hlofront_cpu_formulas` switches the rows for CPUs off. Their barriers and loops
    cannot be in the regions of reductions and scatters, which keep XLA's operations. If a primitive
    has several rows, the last one is tried first.

    Args:
      platform: the platform whose equations are replaced.
      form: the name of the only dtype of results that the row is for, or of its only form in
        min_sizes.py; "" if there are several.
      home: the name of the module that has the replacement; "" for that of the decorated function.
      sizes: the key of the minimum sizes in min_sizes.py; "" for the name of the primitive.
      needs_barriers: whether the replacement is slow or wrong without its optimization barriers, so
        that modules whose barriers may be dropped keep XLA's operation.
      splits: whether the replacement is split over devices without communication, like XLA's
        operation, and is correct for symbolic sizes.
      in_place: whether the replacement is emitted where the equation is, not in a function.
    """

    def register(match: Match) -> Match:
        def rule_of(build: Builder) -> LoweringRule | None:
            module = build.module
            if module.is_scalar_region or not (splits or build.is_undivided):
                return None
            if platform == "cpu" and not module.cpu_settings.formulas:
                return None
            if needs_barriers and not module.keeps_barriers:
                return None
            equation = Candidate(build)
            emit = match(equation)
            if emit is None:
                return None

            def emit_call(build: Builder, *operands: Value, **params: Any) -> Any:
                if in_place:
                    return emit(build, *operands)
                return build.as_function(emit_body, operands, params, key=match)

            def emit_body(build: Builder, *operands: Value, **_: object) -> Any:
                return emit(build, *operands)

            return emit_call

        for primitive in primitives:
            lower.match(primitive, platform=platform, first=True)(rule_of)
            row = Replacement(
                primitive,
                platform,
                form,
                home or match.__module__,
                sizes or primitive.name,
                match,
            )
            REPLACEMENTS.append(row)
        return match

    return register


def traced(function: Callable[..., Array | Sequence[Array]], is_stored: bool = False) -> Emit:
    """Return what emits the operations of a function of arrays.

    Args:
      function: takes the operands of an equation as arrays, and returns its results.
      is_stored: whether XLA has to store the results, as it stores those of its own operation, and
        not to compute them again in each fusion that reads them.
    """

    def emit(build: Builder, *operands: Value) -> Any:
        results = build.by_tracing(function, operands)
        if is_stored:
            results = build.barrier(results, build.avals_out)
        return results if build.primitive.multiple_results else results[0]

    return emit


def is_large(aval: ShapedArray, min_size: int) -> bool:
    """Return whether an array is known to have at least this many elements."""
    return not has_symbolic_size(aval.shape) and aval.size >= min_size


def has_default_accuracy(equation: Candidate) -> bool:
    """Return whether an elementwise function has the default accuracy."""
    return equation.params.get("accuracy") in (None, AccuracyMode.DEFAULT)


def computed_in(dtype: NumPyDType) -> NumPyDType:
    """Return the dtype in which results of a dtype are computed: at least float32 for floats."""
    return np.dtype(np.float32) if is_narrow_float(dtype) else dtype


def is_narrow_float(dtype: NumPyDType) -> bool:
    """Return whether a dtype is one of real floats of at most 32 bits."""
    return issubdtype(dtype, np.floating) and dtype.itemsize <= np.dtype(np.float32).itemsize
