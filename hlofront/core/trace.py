"""Traces, tracers and the context variable that holds the current trace."""

import operator
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from hlofront.base import errors
from hlofront.base.dtypes import NumPyDType
from hlofront.base.elements import float0
from hlofront.base.typing import Params, Shape, Value
from hlofront.bridge import fast_parts, state
from hlofront.core.aval import ShapedArray, register_value_type, typeof
from hlofront.core.operators import ArrayOperators
from hlofront.core.sharding.manual_axes import ManualAxisType

# A Primitive, whose module imports this one.
AnyPrimitive = Any
# A function of flat values, such as a WrappedFun.
FlatFunction = Callable[..., Any]


class Trace:
    """An interpreter of operations; subclasses in other packages define its `process_` methods.

    Operations that call a function, with or without custom derivative rules, have methods of their
    own, which receive the function as a `WrappedFun` of flat values; `process_primitive` handles
    all other operations. Operands that are not tracers of this trace are constants to it.
    """

    __slots__ = ("__weakref__", "alive")

    # False once its function has returned: tracers used after that have leaked.
    alive: bool
    # Whether operations on constants are written to a jaxpr instead of run.
    stages: ClassVar[bool] = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        trace = super().__new__(cls)
        trace.alive = True
        return trace

    @property
    def main(self) -> object:
        """The identity of the transformation, by which libraries recognize its tracers."""
        return self

    def invalidate(self) -> None:
        """Mark the traced function as returned, after which use of its tracers is an error."""
        self.alive = False

    def is_valid(self) -> bool:
        """Return whether the traced function is still running."""
        return self.alive

    def full_raise(self, x: Value) -> Value:
        """Return a value as an operand of this trace, which is the value itself."""
        return x

    def process(self, primitive: AnyPrimitive, args: tuple[Value, ...], params: Params) -> Value:
        """Interpret an operation with the method for its primitive."""
        return primitive.bind_with_trace(self, args, [typeof(x) for x in args], params)

    def process_as_current(
        self, primitive: AnyPrimitive, args: tuple[Value, ...], params: Params
    ) -> Value:
        """Interpret an operation forwarded by an outer trace that owns none of its operands.

        This becomes the current trace, so operations of rules run under it as well.
        """
        with interpreting_with(self):
            return self.process(primitive, args, params)

    def run_compiled(
        self, primitive: AnyPrimitive, args: tuple[Value, ...], params: Params
    ) -> Value:
        """Run an operation on arrays as a compiled program, whatever function its `impl` is."""
        raise self._undefined("run_compiled", "compiled programs")

    def process_primitive(
        self, primitive: AnyPrimitive, tracers: Sequence[Value], params: Params, /
    ) -> Value:
        """Interpret an operation, and return its result, or a list if its primitive has several."""
        raise self._undefined("process_primitive", "primitives")

    def process_call(
        self,
        call_primitive: AnyPrimitive,
        f: FlatFunction,
        tracers: Sequence[Value],
        params: Params,
        /,
    ) -> Value:
        """Interpret a call of a function on flat values, and return the list of its results."""
        raise self._undefined("process_call", "call primitives")

    def process_custom_jvp_call(
        self,
        primitive: AnyPrimitive,
        fun: FlatFunction,
        jvp: FlatFunction,
        tracers: Sequence[Value],
        /,
        *,
        symbolic_zeros: bool,
    ) -> Value:
        """Interpret a call of a function with a jvp rule, and return the list of its results.

        Args:
          primitive: `bind(*operands, subfuns=(fun, jvp), symbolic_zeros=...)` passes the call on.
          fun: the function of flat values.
          jvp: its rule: (*primals, *tangents) -> (*results, *tangents of the results).
          tracers: the operands.
          symbolic_zeros: whether the rule takes `SymbolicZero`s.
        """
        raise self._undefined("process_custom_jvp_call", "custom_jvp primitives")

    def process_custom_vjp_call(
        self,
        primitive: AnyPrimitive,
        fun: FlatFunction,
        fwd: FlatFunction,
        bwd: FlatFunction,
        tracers: Sequence[Value],
        /,
        *,
        out_trees: Callable[[], Sequence[object]],
        symbolic_zeros: bool,
    ) -> Value:
        """Interpret a call of a function with vjp rules, and return the list of its results.

        Args:
          primitive: `bind(*operands, subfuns=(fun, fwd, bwd), out_trees=..., symbolic_zeros=...)`
            passes the call on.
          fun: the function of flat values.
          fwd: its forward rule. It takes each operand and then whether it is perturbed, and returns
            (*residuals, *results).
          bwd: its backward rule: (*residuals, *cotangents) -> cotangents of the operands.
          tracers: the operands.
          out_trees: returns, after `fwd` has run, the tree definitions of results and residuals,
            and for each residual the index of the operand that it equals, or None. `fwd` does not
            return residuals that are operands.
          symbolic_zeros: whether the backward rule takes `SymbolicZero`s.
        """
        raise self._undefined("process_custom_vjp_call", "custom_vjp primitives")

    def _undefined(self, method: str, operations: str) -> NotImplementedError:
        return NotImplementedError(  # JAX raises this class.
            f"{type(self)} must override {method} to handle {operations}"
        )

    def lift(self, x: Value) -> Value:
        """Return a Python or NumPy scalar or a NumPy array as an array or tracer for users."""
        return _engine.lift(x)

    def lift_tangent(self, x: Value) -> Value:
        """Return a known tangent as an operand of operations on tangents."""
        return x

    def snapshot(self, x: np.ndarray) -> np.ndarray:
        """Return a copy of a NumPy array, so that later changes to the array have no effect."""
        parent: Trace | None = getattr(self, "parent", None)
        return x.copy() if parent is None else parent.snapshot(x)


class RuleTrace(Trace):
    """The base class of this package's interpreters, which have rules for all operations and calls.

    Subclasses define `process`, to which all `process_` methods lead.
    """

    __slots__ = ()

    def process(self, primitive: AnyPrimitive, args: tuple[Value, ...], params: Params) -> Value:
        raise TypeError(f"{type(self).__name__} does not say how to process {primitive}")

    def lift(self, x: Value) -> Value:
        raise TypeError(f"{type(self).__name__} does not say how to lift {x!r}")

    def process_primitive(
        self, primitive: AnyPrimitive, tracers: Sequence[Value], params: Params, /
    ) -> Value:
        with interpreting_with(self):
            return self.process(primitive, tuple(tracers), params)

    def process_call(
        self,
        call_primitive: AnyPrimitive,
        f: FlatFunction,
        tracers: Sequence[Value],
        params: Params,
        /,
    ) -> Value:
        return self._bind(call_primitive, tracers, {"subfuns": (f,), **params})

    def process_custom_vjp_call(
        self, primitive: AnyPrimitive, /, *args: Any, **params: Any
    ) -> Value:
        *subfuns, tracers = args
        return self._bind(primitive, tracers, {"subfuns": tuple(subfuns), **params})

    process_custom_jvp_call = process_custom_vjp_call

    def _bind(self, primitive: AnyPrimitive, tracers: Sequence[Value], params: Params) -> Value:
        with interpreting_with(self):
            return primitive.bind(*tracers, **params)


class Tracer(ArrayOperators):
    """A stand-in for an array while a function is being interpreted."""

    __slots__ = ("__weakref__", "_trace", "aval")

    _trace: Trace
    aval: Any

    def __init__(self, trace: Trace, aval: object):
        self._trace = trace
        self.aval = aval

    # jaxlib calls this for isinstance(x, Array), which is False for a reference.
    def _is_traced_array(self) -> bool:
        return isinstance(self.aval, ShapedArray)

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> NumPyDType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def mat(self) -> ManualAxisType:
        """The ManualAxisType: the manual mesh axes along which the value varies, and how."""
        return self.aval.mat

    @property
    def itemsize(self) -> int:
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.aval.size * self.aval.dtype.itemsize

    # Higher than that of arrays, so that NumPy defers operations with both to the tracer.
    __array_priority__ = 1000

    # JAX's attribute for tracers that stand for symbolic sizes, which no tracer here does.
    dimension_as_value = None

    def to_concrete_value(self) -> Value:
        """Return the array behind this tracer, or None if there is none."""
        return None

    def computed_value(self) -> Value:
        """Return the scalar behind this tracer, for Python control flow, or None if there is none.

        The scalar may have to be computed.
        """
        return self.to_concrete_value()

    def full_lower(self) -> Value:
        """Return this tracer, which has no simpler form."""
        return self

    def get_referent(self) -> Value:
        """Return the value that this tracer stands for, which is the tracer itself."""
        return self

    def _known_scalar(self) -> Value:
        """Return the scalar literal that this tracer stands for, or None; for subclasses."""
        return None

    def _origin_message(self) -> str:
        """Return how this value came to be a tracer, for errors; for subclasses."""
        return ""

    def _origin_arguments(self) -> list[str]:
        """Return the user arguments that this value depends on, as "x of f"; for subclasses."""
        return []

    def _traced_function(self) -> str:
        """Return the traced function, as "f at model.py:12 for jit"; for subclasses."""
        return ""

    def __len__(self) -> int:
        if not self.aval.shape:
            raise TypeError("len() of unsized object")
        return self.aval.shape[0]

    def __hash__(self) -> int:
        raise TypeError(
            f"unhashable type: {type(self).__name__}. Traced arrays compare elementwise, so they "
            "cannot be keys of dictionaries or members of sets."
        )

    # Whether a conversion to a Python float or complex number, or a NumPy array, loses a
    # derivative. Bools and integers have none to lose.
    has_derivative: ClassVar[bool] = False

    def _concrete_or_raise(self, error: Callable[..., Exception], *context: object) -> Any:
        value = self.computed_value()
        if value is None:
            raise error(self, *context)
        return value

    def _underived_or_raise(self, error: Callable[..., Exception], *context: object) -> Any:
        value = None if self.has_derivative else self.to_concrete_value()
        if value is None:
            raise error(self, *context)
        return value

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ambiguous_truth(self.aval)
        return bool(self._concrete_or_raise(errors.TracerBoolConversionError))

    def __int__(self) -> int:
        return int(self._concrete_or_raise(errors.ConcretizationTypeError, _scalar_advice("int")))

    def __float__(self) -> float:
        return float(
            self._underived_or_raise(errors.ConcretizationTypeError, _scalar_advice("float"))
        )

    def __complex__(self) -> complex:
        return complex(
            self._underived_or_raise(errors.ConcretizationTypeError, _scalar_advice("complex"))
        )

    def __index__(self) -> int:
        return operator.index(self._concrete_or_raise(errors.TracerIntegerConversionError))

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        value = self._underived_or_raise(errors.TracerArrayConversionError)
        return value.__array__(*args, **kwargs)

    def tolist(self) -> object:
        return self._underived_or_raise(
            errors.ConcretizationTypeError, "The tolist() method was called on a traced array."
        ).tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self._underived_or_raise(
            errors.ConcretizationTypeError, "The tobytes() method was called on a traced array."
        ).tobytes(order)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if spec:
            # Python's own words, and what to do.
            raise TypeError(
                f"unsupported format string passed to {type(self).__name__}.__format__: the value "
                f"of a traced array is not known while tracing. To print it whenever the compiled "
                f'function runs, use jax.debug.print("{{x:{spec}}}", x=x); f"{{x}}" shows its type.'
            )
        return str(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __getstate__(self) -> NoReturn:
        raise errors.ConcretizationTypeError(
            self, "A traced array has no value to pickle or serialize."
        )


def ambiguous_truth(aval: ShapedArray) -> ValueError:
    """Return the error for `if x:` with an array that does not have exactly one element."""
    if not aval.size:
        return ValueError(
            "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that "
            "an array is not empty."
        )
    return ValueError(
        "The truth value of an array with more than one element is ambiguous. Use a.any() or "
        f"a.all(). The array is {aval.str_short()}."
    )


def leaked(tracer: Tracer) -> errors.UnexpectedTracerError:
    """Return the error for a tracer that was used after its function had returned."""
    return errors.leaked_tracer(tracer, tracer._traced_function())  # pyright: ignore[reportPrivateUsage]


def _scalar_advice(kind: str) -> str:
    return f"The problem arose with the `{kind}` function, which needs the array's value."


def _needs_value(name: str, *, called: bool) -> Value:
    """Return a member of tracers that raises ConcretizationTypeError without a concrete value.

    `called` says whether the member is a method or a property.
    """

    def member(self: Tracer, *args: object) -> Value:
        value = self.computed_value() if name == "item" else self.to_concrete_value()
        if value is None or (self.has_derivative and name != "item"):
            what = f"the {name}() method was called" if called else f"{name!r} was requested"
            raise errors.ConcretizationTypeError(self, f"The problem: {what} on a traced array.")
        is_scalar = isinstance(value, int | float | complex)
        attribute = getattr(np.asarray(value) if is_scalar else value, name)
        return attribute(*args) if called else attribute

    member.__name__ = member.__qualname__ = name
    return member if called else property(member)


for _name in (
    "devices",
    "item",
    "delete",
    "is_deleted",
    "unsafe_buffer_pointer",
    "on_device_size_in_bytes",
    "addressable_data",
):
    setattr(Tracer, _name, _needs_value(_name, called=True))
for _name in (
    "committed",
    "addressable_shards",
    "global_shards",
    "traceback",
    "is_fully_addressable",
    "is_fully_replicated",
):
    setattr(Tracer, _name, _needs_value(_name, called=False))

fast_parts.set_tracer_class(Tracer)
register_value_type(Tracer, lambda tracer: tracer.aval)


class _NoEngine(RuleTrace):
    __slots__ = ()

    def process(self, primitive: AnyPrimitive, args: tuple[Value, ...], params: Params) -> Value:
        raise errors.NoEngineError(
            f"cannot run {primitive}: import hlofront, which plugs in the engine"
        )


# The interpreter without transformations, set by the runtime.
_engine: Trace = _NoEngine()
_current: ContextVar[Trace | None] = ContextVar("trace", default=None)
_get = _current.get
_swap_flag = state.tracing.swap_local
_set_flag = state.tracing.set_local
_unset = state.unset
_Array = fast_parts.Array


def plug_in_engine(trace: Trace) -> None:
    """Make `trace` run concrete values from now on; runtime/dispatch/engine.py calls this once."""
    global _engine
    _engine = trace


def engine() -> Trace:
    """Return the engine, the interpreter at the bottom, which runs concrete values."""
    return _engine


def current_trace() -> Trace:
    """Return the interpreter of the next operation."""
    return _get() or _engine


def is_eager() -> bool:
    """Return whether the next operation runs immediately, without an interpreter."""
    return _get() is None


def as_array(x: Value) -> Value:
    """Return a value as an array or tracer, which has the methods of arrays, for users' rules.

    Arrays of float0 stay NumPy's: no device has them.
    """
    if isinstance(x, _Array) or getattr(x, "dtype", None) == float0:
        return x
    return (_get() or _engine).lift(x)


def as_result(x: Value) -> Value:
    """Return a value as an array or tracer, but leave a Python scalar unchanged."""
    if isinstance(x, (int, float, complex)) and not isinstance(x, np.generic):
        return x
    return as_array(x)


def process(primitive: AnyPrimitive, args: tuple[Value, ...], params: Params) -> Value:
    if _matching:
        args = _match(primitive, args, params)
    return (_get() or _engine).process(primitive, args, params)


# The number of functions being traced, in all threads, whose types vary along manual axes, and the
# function that makes the operands of an operation vary along the same axes.
_matching = 0
_matching_lock = threading.Lock()
_Match = Callable[[AnyPrimitive, tuple[Value, ...], Params], tuple[Value, ...]]
_match: _Match = lambda primitive, args, params: args


def plug_in_matching(match: _Match) -> None:
    """Set the function that makes operands vary alike: for primitives/collectives/varying.py."""
    global _match
    _match = match


def begin_matching() -> None:
    """Make `process` match operands until the corresponding `end_matching`."""
    global _matching
    with _matching_lock:
        _matching += 1


def end_matching() -> None:
    """End the effect of one `begin_matching`."""
    global _matching
    with _matching_lock:
        _matching -= 1


class interpreting_with:
    """A context manager that sends operations to `trace`."""

    __slots__ = ("before", "token", "trace")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        trace = self.trace
        # The flag is part of the C++ jit key: while tracing, even a jitted function that is called
        # with only arrays must be traced, not run.
        eager = trace is _engine
        self.token = _current.set(None if eager else trace)
        self.before = _swap_flag(_unset if eager else True)
        return trace

    def __exit__(self, *_: object) -> None:
        _set_flag(self.before)
        _current.reset(self.token)
