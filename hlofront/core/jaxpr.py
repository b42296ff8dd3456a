"""The jaxpr: a typed program of first-order equations."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hlofront.base.config import enable_x64
from hlofront.base.source import Traceback
from hlofront.base.typing import Params, is_numpy_value
from hlofront.base.typing import Value as Value
from hlofront.bridge import state
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.effects import Effects, no_effects
from hlofront.core.names import UNKNOWN_SOURCE, NameStack, SourceInfo
from hlofront.core.primitive import Primitive
from hlofront.core.programs import print as printing
from hlofront.core.trace import as_array

_x64 = state.enable_x64


class Var:
    """A variable of a jaxpr: it equals only itself, and has an aval."""

    __slots__ = ("__weakref__", "aval")

    aval: AbstractValue

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """A variable for an unused result; it prints as `_`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "_"


class Literal:
    """A constant written in the equation itself: by default, a scalar.

    With the option `jax_use_simplified_jaxpr_constants` it may be an array.
    """

    __slots__ = ("_x64", "aval", "val")

    val: Value
    aval: AbstractValue
    # Whether 64-bit dtypes were on when the literal was made.
    _x64: bool

    def __init__(self, val: Value, aval: AbstractValue | None = None):
        self.val = val
        self.aval = typeof(val) if aval is None else aval
        self._x64 = _x64.value

    @property
    def operand(self) -> Value:
        """The value as an operand of this literal's type, whether or not 64-bit dtypes are on now.

        Scalars of Python and NumPy have other types with 64-bit dtypes on and off.
        """
        if _x64.value is self._x64 or typeof(self.val) == self.aval:
            return self.val
        with enable_x64(self._x64):
            return as_array(self.val)

    def __repr__(self) -> str:
        scalar = is_numpy_value(self.val) and not self.val.shape
        return f"Literal({self.val.item() if scalar else self.val})"


Atom = Var | Literal
# The parameters of an equation.
ParamDict = Params
Names = tuple[str, ...] | Callable[[], tuple[str, ...] | None] | None


class DebugInfo:
    """A record of the function that a jaxpr was traced from: name, purpose and argument names."""

    __slots__ = ("_arg_names", "_func_src_info", "_result_paths", "traced_for")

    def __init__(
        self,
        traced_for: str,
        func_src_info: str | Callable[[], str],
        arg_names: Names = None,
        result_paths: Names = None,
    ):
        self.traced_for = traced_for
        # Each may be a function that computes the value on first use: most values are never read.
        self._func_src_info = func_src_info
        self._arg_names = arg_names
        self._result_paths = result_paths

    @property
    def func_src_info(self) -> str:
        """The function's name and source line, as in "loss at model.py:12"."""
        if callable(self._func_src_info):
            self._func_src_info = self._func_src_info()
        return self._func_src_info

    @property
    def arg_names(self) -> tuple[str, ...] | None:
        if callable(self._arg_names):
            self._arg_names = self._arg_names()
        return self._arg_names

    @property
    def result_paths(self) -> tuple[str, ...] | None:
        if callable(self._result_paths):
            self._result_paths = self._result_paths()
        return self._result_paths

    def without_names(self) -> "DebugInfo":
        """Return a copy without argument and result names, for a program with other ones."""
        return DebugInfo(self.traced_for, self._func_src_info)

    @property
    def func_name(self) -> str:
        return self.func_src_info.split(" at ")[0]

    def __repr__(self) -> str:
        return f"DebugInfo({self.func_src_info!r} traced for {self.traced_for})"


class EquationContext:
    """An equation's `ctx`, for interpreters in other packages that enter its `manager`.

    It holds no options, because all that affects an equation here is in its parameters.
    """

    __slots__ = ()

    compute_type = None
    xla_metadata = None

    @property
    def manager(self) -> AbstractContextManager[None]:
        """A context manager that has no effect, as there are no options to enter."""
        return nullcontext()


class Equation:
    """An equation of a jaxpr: `outvars = primitive[params] invars`.

    Args:
      invars: the operands.
      outvars: the variables of the results.
      primitive: the operation.
      params: the parameters of the operation.
      effects: the effects of the operation.
      source_info: the origin of the equation; None for an unknown one.
      ctx: an EquationContext, or None: neither has options.
    """

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source_info")

    primitive: Primitive
    invars: Sequence[Atom]
    outvars: Sequence[Var]
    params: Params
    effects: Effects
    source_info: SourceInfo

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: Params,
        effects: Effects = no_effects,
        source_info: SourceInfo | None = None,
        ctx: EquationContext | None = None,
    ):
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.effects = effects
        self.source_info = UNKNOWN_SOURCE if source_info is None else source_info

    @property
    def traceback(self) -> Traceback | None:
        """The C++ traceback of the call that made the equation, or None.

        base/source.py reads the user's lines from it.
        """
        return self.source_info.traceback

    @property
    def name_stack(self) -> NameStack:
        """The named scopes and transformations around the operation, outermost first."""
        return self.source_info.scopes

    @property
    def ctx(self) -> EquationContext:
        """The options of the equation, under JAX's name: an EquationContext, which holds none."""
        return EquationContext()

    def replace(self, **changes: Any) -> "Equation":
        """Return a copy of the equation with some of its constructor's arguments replaced."""
        fields = {name: getattr(self, name) for name in _EQUATION_FIELDS}
        return Equation(**{**fields, **changes})

    def __repr__(self) -> str:
        return printing.print_equation(self)


_EQUATION_FIELDS = ("invars", "outvars", "primitive", "params", "effects", "source_info")


class Jaxpr:
    """A program: equations from constants and inputs to outputs."""

    __slots__ = (
        "__weakref__",
        "constvars",
        "debug_info",
        "derived",
        "effects",
        "eqns",
        "invars",
        "live",
        "outvars",
    )

    constvars: tuple[Var, ...]
    invars: tuple[Var, ...]
    outvars: tuple[Atom, ...]
    eqns: tuple[Equation, ...]
    effects: Effects
    debug_info: DebugInfo | None
    # The equations that outputs or effects depend on, cached on first use.
    live: tuple[Equation, ...] | None
    # The values derived from this program, by cache and key: see core/programs/program_cache.py.
    derived: dict[object, dict[Any, Any]]

    def __init__(
        self,
        constvars: Iterable[Var],
        invars: Iterable[Var],
        outvars: Iterable[Atom],
        eqns: Iterable[Equation],
        effects: Effects = no_effects,
        debug_info: DebugInfo | None = None,
    ):
        self.constvars = tuple(constvars)
        self.invars = tuple(invars)
        self.outvars = tuple(outvars)
        self.eqns = tuple(eqns)
        self.effects = effects
        self.debug_info = debug_info
        self.live = None
        self.derived = {}

    @property
    def in_avals(self) -> list[Any]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        return [v.aval for v in self.outvars]

    @property
    def origin(self) -> DebugInfo | None:
        """The debug info, without argument names, for a program that is derived from this one."""
        info = self.debug_info
        return None if info is None else info.without_names()

    def replace(self, **changes: Any) -> "Jaxpr":
        """Return a copy of the jaxpr with some fields replaced."""
        fields = {name: getattr(self, name) for name in _JAXPR_FIELDS}
        return Jaxpr(**{**fields, **changes})

    def _repr_html_(self) -> str:
        return printing.jaxpr_html(self)

    def pretty_print(self, **options: Any) -> str:
        return printing.print_jaxpr(self, **options)

    def __str__(self) -> str:
        return printing.print_jaxpr(self)

    __repr__ = __str__


_JAXPR_FIELDS = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")


class ClosedJaxpr:
    """A jaxpr with the values of its constants."""

    __slots__ = ("__weakref__", "consts", "derived", "jaxpr")

    jaxpr: Jaxpr
    consts: list[Value]
    # The values derived from this program, by cache and key: see core/programs/program_cache.py.
    derived: dict[object, dict[Any, Any]]

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Value] = ()):
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(
                f"a jaxpr of {len(jaxpr.constvars)} constants was given {len(consts)} values"
            )
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.derived = {}

    @property
    def in_avals(self) -> list[Any]:
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[Any]:
        return self.jaxpr.out_avals

    @property
    def eqns(self) -> tuple[Equation, ...]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def literals(self) -> list[Value]:
        return self.consts

    @property
    def debug_info(self) -> DebugInfo | None:
        return self.jaxpr.debug_info

    def replace(
        self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Value] | None = None
    ) -> "ClosedJaxpr":
        """Return a copy of the closed jaxpr with its jaxpr or its constants replaced."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts
        )

    def pretty_print(self, **options: Any) -> str:
        return printing.print_jaxpr(self.jaxpr, **options)

    def _repr_html_(self) -> str:
        return printing.jaxpr_html(self.jaxpr)

    def __str__(self) -> str:
        return printing.print_jaxpr(self.jaxpr)

    __repr__ = __str__
