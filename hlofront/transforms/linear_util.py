"""Transformations of wrapped functions, as in `jax.linear_util`, for JAX's extensions.

A `WrappedFun` is a function with a stack of transformations around it. Equal ones have equal keys,
so that results can be stored in a `cache`. hlofront's own interpreters call functions directly;
this module serves packages that write transformations in JAX's older style.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, Generic, TypeVar

from hlofront.base import source
from hlofront.base.caches import weak_keyed
from hlofront.base.config import explain_cache_misses
from hlofront.base.tree import PyTree
from hlofront.base.typing import Params
from hlofront.core.jaxpr import DebugInfo

Value = TypeVar("Value")
# A function of arrays, pytrees or whatever a transformation passes to it.
Function = Callable[..., PyTree]
Result = TypeVar("Result")

# A step calls the function it transforms: step(fun, *static_arguments, *args, **kwargs).
Step = Function
# A generator step yields the arguments for the function, receives its result and yields its own.
StepGenerator = Callable[..., Generator[PyTree, PyTree, None]]


class StoreException(Exception):
    """The error for reading an empty store, or writing to a full one."""


class AuxiliaryStore(Generic[Value]):
    """A store for one auxiliary value, which a transformation writes when its function runs."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        # Empty, or a list of one value, which may be None.
        self._values: list[Value] = []

    def store(self, val: Value) -> None:
        """Write a value to the auxiliary store.

        Raises:
          StoreException: if the store has a value already.
        """
        if self._values:
            raise StoreException("Store occupied")
        self._values.append(val)

    @property
    def val(self) -> Value:
        """The stored value; reading raises StoreException if the store is empty."""
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]

    def reset(self) -> None:
        """Empty the auxiliary store."""
        self._values.clear()

    def __bool__(self) -> bool:
        return bool(self._values)


class EqualAuxiliaryStore(AuxiliaryStore[Value]):
    """An auxiliary store that accepts an equal value again, for functions that run twice."""

    __slots__ = ()

    def store(self, val: Value) -> None:
        """Write a value to the auxiliary store.

        Raises:
          StoreException: if the store has a different value already.
        """
        if not self._values:
            self._values.append(val)
        elif self._values[0] != val:
            raise StoreException(
                f"Store occupied: a transformed function gave {val!r} after {self._values[0]!r}"
            )


@dataclasses.dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class WrappedFun:
    """A function, its keyword parameters, and the transformations around it.

    Attributes:
      f: the innermost function.
      f_transformed: `f` with all transformations around it.
      transforms: pairs (step, static arguments), the outermost first.
      stores: per transformation the `AuxiliaryStore` of its auxiliary value, or None.
      params: keyword arguments of `f`, as sorted pairs.
      in_type: the types of its arguments, or None.
      debug_info: the names of the function and of its arguments, for messages.
    """

    f: Function
    f_transformed: Function
    transforms: tuple[tuple[Step, tuple[Hashable, ...]], ...]
    stores: "tuple[AuxiliaryStore[PyTree] | None, ...]"
    params: tuple[tuple[str, Hashable], ...]
    in_type: Hashable
    debug_info: DebugInfo

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(
        self,
        gen: Step,
        gen_static_args: tuple[Hashable, ...],
        out_store: "AuxiliaryStore[PyTree] | None",
    ) -> "WrappedFun":
        """Return this function with another transformation around it.

        Args:
          gen: the step, called with the function, the store if there is one, the static
            arguments, and the arguments of the call.
          gen_static_args: hashable static arguments of the step.
          out_store: the store of the step's auxiliary value, or None.
        """
        stored = gen_static_args if out_store is None else (out_store, *gen_static_args)
        return WrappedFun(
            self.f,
            functools.partial(gen, self.f_transformed, *stored),
            ((gen, gen_static_args), *self.transforms),
            (out_store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def call_wrapped(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Call the function through all of its transformations, and return its result."""
        return self.f_transformed(*args, **kwargs)

    def populate_stores(self, stores: "Sequence[AuxiliaryStore[PyTree] | None]") -> None:
        """Copy auxiliary values into this function's stores from an equal function that has run."""
        for own, other in zip(self.stores, stores, strict=True):
            if own is not None and other is not None:
                own.store(other.val)

    def replace_debug_info(self, debug_info: DebugInfo) -> "WrappedFun":
        """Return this function with its debug info replaced."""
        return WrappedFun(
            self.f,
            self.f_transformed,
            self.transforms,
            self.stores,
            self.params,
            self.in_type,
            debug_info,
        )

    def with_unknown_names(self) -> "WrappedFun":
        """Return this function with debug info that names neither arguments nor results."""
        return self.replace_debug_info(self.debug_info.without_names())

    def _key(self) -> tuple[object, ...]:
        return (self.f, self.transforms, self.params, self.in_type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WrappedFun):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        steps = [
            f"{i:<4}: {source.callable_name(step)}   {' '.join(map(repr, static_arguments))}"
            for i, (step, static_arguments) in enumerate(self.transforms)
        ]
        return "\n".join(["Wrapped function:", *steps, f"Core: {source.callable_name(self.f)}", ""])


def wrap_init(
    f: Function,
    params: Params | None = None,
    *,
    debug_info: DebugInfo | None = None,
) -> WrappedFun:
    """Return a function as a `WrappedFun`, without transformations.

    Args:
      f: the function.
      params: keyword arguments added to each call.
      debug_info: names for messages; by default those of `f`.
    """
    if debug_info is None:
        debug_info = DebugInfo("wrap_init", functools.partial(source.describe_callable, f))
    with_params = functools.partial(f, **params) if params else f
    items = tuple(sorted((params or {}).items()))
    return WrappedFun(f, with_params, (), (), items, None, debug_info)


def _transformation2(gen: Step, fun: WrappedFun, *gen_static_args: Hashable) -> WrappedFun:
    """Return a wrapped function transformed by a step.

    Args:
      gen: `gen(fun, *gen_static_args, *args, **kwargs)` calls `fun` and returns a result.
      fun: the function to transform.
      gen_static_args: hashable values, the step's first arguments after `fun`.
    """
    return fun.wrap(gen, gen_static_args, None)


def _transformation_with_aux2(
    gen: Step,
    fun: WrappedFun,
    *gen_static_args: Hashable,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Callable[[], PyTree]]:
    """Return a wrapped function transformed by a step that stores an auxiliary value.

    Args:
      gen: `gen(fun, store, *gen_static_args, *args, **kwargs)` calls `fun`, calls
        `store.store(value)` and returns a result.
      fun: the function to transform.
      gen_static_args: hashable values, the step's arguments after the store.
      use_eq_store: whether the step may run again and store an equal value.
      unk_names: whether the names of arguments and results are no longer those of `fun`.

    Returns:
      The transformed function, and a function that returns the auxiliary value; it raises
      StoreException before the transformed function has run.
    """
    store: AuxiliaryStore[PyTree] = EqualAuxiliaryStore() if use_eq_store else AuxiliaryStore()
    wrapped = fun.wrap(gen, gen_static_args, store)
    return wrapped.with_unknown_names() if unk_names else wrapped, lambda: store.val


def _run_generator(fun: Function, gen: StepGenerator, *args: PyTree, **kwargs: PyTree) -> PyTree:
    """Run a generator step: call `fun` with its first yield, send the result, return the last."""
    generator = gen(*args, **kwargs)
    inner_args, inner_kwargs = next(generator)
    last_yield = generator.send(fun(*inner_args, **inner_kwargs))
    generator.close()
    return last_yield


def _run_generator_with_aux(
    fun: Function,
    store: AuxiliaryStore[PyTree],
    gen: StepGenerator,
    *args: PyTree,
    **kwargs: PyTree,
) -> PyTree:
    result, aside = _run_generator(fun, gen, *args, **kwargs)
    store.store(aside)
    return result


def _transformation(gen: StepGenerator, fun: WrappedFun, *gen_static_args: Hashable) -> WrappedFun:
    """Return a wrapped function transformed by a generator step.

    Args:
      gen: `gen(*gen_static_args, *args, **kwargs)` yields (args, kwargs) for `fun`, receives the
        result of `fun`, and yields its own result.
      fun: the function to transform.
      gen_static_args: hashable values, the generator's first arguments.
    """
    return fun.wrap(_run_generator, (gen, *gen_static_args), None)


def _transformation_with_aux(
    gen: StepGenerator, fun: WrappedFun, *gen_static_args: Hashable
) -> tuple[WrappedFun, Callable[[], PyTree]]:
    """Return a wrapped function transformed by a generator that also yields an auxiliary value.

    Args:
      gen: `gen(*gen_static_args, *args, **kwargs)` yields (args, kwargs) for `fun`, receives the
        result of `fun`, and yields a pair: its own result, and the auxiliary value.
      fun: the function to transform.
      gen_static_args: hashable values, the generator's first arguments.

    Returns:
      The transformed function, and a function that returns the auxiliary value after a call.
    """
    return _transformation_with_aux2(_run_generator_with_aux, fun, gen, *gen_static_args)


# Decorators of steps and generators: `@transformation`, then `step(fun, *static_args)`.
Decorator = Callable[..., Any]
transformation: Decorator = functools.partial(functools.partial, _transformation)
transformation2: Decorator = functools.partial(functools.partial, _transformation2)
transformation_with_aux: Decorator = functools.partial(functools.partial, _transformation_with_aux)
transformation_with_aux2: Decorator = functools.partial(
    functools.partial, _transformation_with_aux2
)


def cache(
    call: Callable[..., Result], *, explain: Callable[..., None] | None = None
) -> Callable[..., Result]:
    """Cache the results of `call(wrapped_fun, *args)` by wrapped function and arguments.

    The innermost function is held weakly. On a cache hit, the stores of the wrapped function are
    filled as they were when the result was computed.

    Args:
      call: a function of a `WrappedFun` and hashable arguments.
      explain: called with (wrapped_fun, in_cache, entries, key, seconds) on a cache miss if the
        option `jax_explain_cache_misses` is set.

    Returns:
      A function with the arguments of `call` and the methods `cache_clear()` and
      `evict_function(f)`, which drops the results of wrapped functions of `f`.
    """

    # The cached results per innermost function, which is held weakly.
    @weak_keyed(in_context=True)
    def entries_of(f: Function) -> dict[object, PyTree]:
        return {}

    @functools.wraps(call)
    def cached(fun: WrappedFun, *args: PyTree) -> PyTree:
        entries = entries_of(fun.f)
        key = (fun.transforms, fun.params, fun.in_type, args)
        entry = entries.get(key)
        if entry is not None:
            result, stores = entry
            fun.populate_stores(stores)
            return result
        start = time.perf_counter()
        result = call(fun, *args)
        if explain is not None and explain_cache_misses.value:
            explain(fun, False, entries, key, time.perf_counter() - start)
        entries[key] = result, fun.stores
        return result

    def evict_function(f: Function) -> None:
        entries_of(f).clear()

    result: Any = cached
    result.cache_clear = entries_of.cache_clear
    result.evict_function = evict_function
    return result


def merge_linear_aux(aux1: Callable[[], PyTree], aux2: Callable[[], PyTree]) -> tuple[bool, PyTree]:
    """Return the auxiliary value of the one of two transformed functions that has run.

    Args:
      aux1, aux2: functions that return an auxiliary value, or raise StoreException.

    Returns:
      (True, value) if it is of `aux1`, (False, value) if it is of `aux2`.

    Raises:
      StoreException: if both or neither have a value.
    """
    try:
        value = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, value
    raise StoreException("both stores occupied")
