"""Functions of arrays that run eagerly as one executable, and are inlined when traced."""

import copyreg
import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from types import NotImplementedType
from typing import Any, TypeVar, overload

import numpy as np

from hlofront.base import errors
from hlofront.base.boundary import JITTED, boundary
from hlofront.base.code_constants import with_constants
from hlofront.base.module_names import home_of
from hlofront.bridge import client as bridge
from hlofront.bridge import fast_parts, state
from hlofront.core.aval import is_value, typeof
from hlofront.core.trace import Tracer, current_trace, is_eager
from hlofront.runtime.dispatch.compiled_call import shard_argument
from hlofront.runtime.dispatch.executable import CallAnswer
from hlofront.runtime.dispatch.jit import Jitted, cpp_cache
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlofront.transforms.stage import EAGER

F = TypeVar("F", bound=Callable[..., object])

_flatten = fast_parts.registry.flatten
_disable_jit = state.disable_jit


class Operation:
    """A function of arrays with its eager compilation, for `@operation`."""

    __slots__ = ("_jitted", "defers", "fun", "nested", "static_argnames")

    def __init__(
        self,
        fun: Callable[..., object],
        static_argnames: Sequence[str],
        nested: bool,
        defers: bool,
    ):
        self.fun = fun
        self.static_argnames = static_argnames
        self.nested = nested
        self.defers = defers
        self._jitted: Jitted | None = None

    @property
    def jitted(self) -> Jitted:
        # Created on first use: an import defines hundreds of operations, and few are called.
        jitted = self._jitted
        if jitted is None:
            plan = ArgumentPlan(self.fun, static_argnames=self.static_argnames)
            jitted = self._jitted = Jitted(self.fun, plan, traced_for=EAGER)
        return jitted

    @boundary
    def call(self, *args: object, **kwargs: object) -> CallAnswer:
        if self.defers and not all(map(is_operand, args)):
            return deferred(self.fun.__name__, *args), None, False
        if _disable_jit.value:
            return self.fun(*args, **kwargs), None, False
        leaves, tree = _flatten((args, kwargs))
        traced = not is_eager()
        for leaf in leaves:
            if isinstance(leaf, Tracer):
                traced = True
            elif not is_value(leaf) and hasattr(leaf, "__jax_array__"):
                leaves = [x if is_value(x) else _array_behind(x) for x in leaves]
                args, kwargs = tree.unflatten(leaves)
                return self.call(*args, **kwargs)
        if traced and not self.nested:
            # While a program is traced, running the function inlines it.
            return _as_array(self.fun(*args, **kwargs)), None, False
        try:
            return self.jitted.compile_and_call(args, kwargs)
        except (TypeError, ValueError, errors.ShardingTypeError) as error:
            # Static arguments are not operands.
            operands, _ = _flatten(self.jitted.plan.dynamic(args, kwargs))
            _check_fit(self.fun.__name__, operands)
            errors.add_operands(error, self.fun.__name__, operands)
            raise
        except OverflowError:
            # A list is refused, even if it contains only integers.
            if not all(map(is_operand, args)):
                self.fun(*args, **kwargs)
            raise


def is_operand(x: object) -> bool:
    """Return whether x is an array, a scalar, or has the method `__jax_array__`."""
    if type(x) is ShapeDtypeStruct:  # It may be an argument of a trace, but has no operators.
        return False
    return is_value(x) or hasattr(x, "__jax_array__")


def _check_fit(name: str, operands: Sequence[object]) -> None:
    """Raise a TypeError that names the operation if one of its operands is invalid."""
    for x in operands:
        try:
            typeof(x)
        except TypeError as error:
            name = name.strip("_").removesuffix("_operation")
            raise TypeError(f"{name} requires ndarray or scalar arguments: {error}") from None


def deferred(name: str, *operands: object) -> NotImplementedType:
    """Return NotImplemented, an operator's answer to operands that are not arrays.

    Python then calls the other operand's operator, which is wrong for containers: `==` of a list
    is False whatever is in it, and `[1] * x` and `values += x` repeat and extend lists. Subclasses
    of containers may have their own operators, and are allowed.

    Raises:
      TypeError: if an operand is a list, a tuple, a set or a dictionary.
    """
    for x in operands:
        if type(x) in _CONTAINERS:
            types = " and ".join([f"'{type(x).__name__}'" for x in operands])
            raise TypeError(
                f"unsupported operand type(s) for {name}: {types}. A {type(x).__name__} is not an "
                "array: convert it with jnp.asarray(...)."
            )
    return NotImplemented


_CONTAINERS = (list, tuple, set, dict)
_OF_HOST = (bool, int, float, complex, np.ndarray, np.generic)


def _as_array(result: object) -> Any:
    """Return a result that is a scalar or a NumPy array as an array or a tracer.

    A function that returns an argument unchanged may return one, but its callers expect an array.
    """
    lift = getattr(current_trace(), "lift", None) if isinstance(result, _OF_HOST) else None
    return result if lift is None else lift(result)


def _array_behind(x: object) -> Any:
    """Return the result of a value's `__jax_array__`; a value without that method unchanged."""
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


@overload
def operation(
    fun: F, *, static_argnames: Sequence[str] = (), nested: bool = False, defers: bool = False
) -> F: ...
@overload
def operation(
    fun: None = None,
    *,
    static_argnames: Sequence[str] = (),
    nested: bool = False,
    defers: bool = False,
) -> Callable[[F], F]: ...
def operation(
    fun: Callable[..., object] | None = None,
    *,
    static_argnames: Sequence[str] = (),
    nested: bool = False,
    defers: bool = False,
) -> Any:
    """Speed up a function of arrays outside of jit: `@operation(static_argnames=("axis",))`.

    Eagerly it is one cached executable behind jaxlib's C++ call path; a transformation sees its
    primitives, without a nested program. Its arguments are arrays except the static ones, which
    must be hashable.

    Args:
      fun: the function; without it, operation returns a decorator.
      static_argnames: the names of its static arguments, Python values.
      nested: whether under a transformation it is one nested program, as a jitted function is.
      defers: whether it returns NotImplemented for operands that are neither arrays nor scalars,
        as the methods behind Python's operators do.
    """
    if fun is None:
        return partial(operation, static_argnames=static_argnames, nested=nested, defers=defers)
    code = fun.__code__
    positional = code.co_varnames[: code.co_argcount]
    behind = Operation(fun, static_argnames, nested, defers)
    call = bridge.pjit(
        fun.__name__,
        fun,
        behind.call,
        tuple([i for i, name in enumerate(positional) if name in static_argnames]),
        tuple(static_argnames),
        "operation",
        fast_parts.call_registry,
        shard_argument,
        cpp_cache,
    )
    update_wrapper(call, fun)
    call._jitted = behind
    if "axis" in static_argnames:
        call = _taking_lists_of_axes(call, positional.index("axis") if "axis" in positional else 99)
    # The function that a tracer's method of this name is, without a wrapper.
    call.when_traced = call if nested else fun
    return call


def _reduced(call: fast_parts.PjitFunction) -> Any:
    """Return what a pickle of a jitted function contains: for a module's operation, its name.

    Users' functions keep the class of C++.
    """
    module = sys.modules.get(home_of(call))
    if isinstance(getattr(call, JITTED, None), Operation):
        name: str = call.__qualname__
        if getattr(module, name, None) is call:
            return name
    return type(call).__reduce_ex__(call, 4)


copyreg.pickle(fast_parts.PjitFunction, _reduced)


def _taking_lists_of_axes(call: Callable[..., object], position: int) -> Any:
    """Wrap an operation so that its axis, the argument at this position, may be a list or array."""
    wrapper = with_constants(_with_axes, call=call, position=position)
    return update_wrapper(wrapper, call)


def _with_axes(*args: object, **kwargs: object) -> object:
    call: Any = "$call"
    position: Any = "$position"
    try:
        return call(*args, **kwargs)
    except ValueError:
        by_name = "axis" in kwargs
        if by_name and len(args) > position:
            raise TypeError(
                f"{call.__name__}() got multiple values for argument 'axis': by name, and as "
                f"argument {position}."
            ) from None
        by_position = args[position] if len(args) > position else None
        axis = kwargs["axis"] if by_name else by_position
        plain = _plain_axes(axis)
        if plain is axis:
            raise
    if by_name:
        return call(*args, **{**kwargs, "axis": plain})
    return call(*args[:position], plain, *args[position + 1 :], **kwargs)


def _plain_axes(axis: object) -> object:
    """Convert axes in a list or in arrays to a tuple of integers; return others unchanged."""
    if isinstance(axis, list | tuple | set):
        plain = tuple([_plain_axes(one) for one in axis])
        unchanged = isinstance(axis, tuple) and all(map(operator.is_, plain, axis))
        return axis if unchanged else plain
    if isinstance(axis, np.ndarray | fast_parts.Array) and not isinstance(axis, Tracer):
        axes = np.asarray(axis).tolist()
        return tuple(axes) if isinstance(axes, list) else axes
    return axis
