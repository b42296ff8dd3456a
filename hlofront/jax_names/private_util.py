"""The small functions on sequences of `jax._src.util`, which libraries import from there."""

# pyright: strict

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

from hlofront.transforms.wrapped_arguments import safe_map as safe_map

T = TypeVar("T")


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the list of tuples of elements of iterables of equal lengths.

    Raises:
      ValueError: if the lengths differ.
    """
    return list(zip(*args, strict=True))


def foreach(f: Callable[..., object], *args: Iterable[Any]) -> None:
    """Call a function with elements of iterables of equal lengths."""
    safe_map(f, *args)


def unzip2(xys: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the tuple of the first and the tuple of the second elements of pairs."""
    pairs = list(xys)
    return tuple([x for x, _ in pairs]), tuple([y for _, y in pairs])


def unzip3(
    xyzs: Iterable[tuple[Any, Any, Any]],
) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    """Return the tuples of the first, second and third elements of triples."""
    triples = list(xyzs)
    first, second, third = ([triple[i] for triple in triples] for i in range(3))
    return tuple(first), tuple(second), tuple(third)


def subvals(lst: Sequence[T], replace: Iterable[tuple[int, T]]) -> tuple[T, ...]:
    """Return a sequence as a tuple, with the values at some positions replaced."""
    values = list(lst)
    for position, value in replace:
        values[position] = value
    return tuple(values)


def split_list(args: Sequence[T], ns: Sequence[int]) -> list[list[T]]:
    """Split a sequence into lists of the given lengths, and one of the remaining elements."""
    parts: list[list[T]] = []
    rest = list(args)
    for length in ns:
        parts.append(rest[:length])
        rest = rest[length:]
    return [*parts, rest]


def partition_list(bs: Sequence[bool], l: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the elements of `l` where `bs` is false, and those where it is true."""
    if len(bs) != len(l):
        raise ValueError(f"there are {len(bs)} booleans for {len(l)} elements")
    false = [value for flag, value in zip(bs, l, strict=True) if not flag]
    return false, [value for flag, value in zip(bs, l, strict=True) if flag]


def merge_lists(bs: Sequence[bool], l0: Sequence[T], l1: Sequence[T]) -> list[T]:
    """Undo `partition_list`: take elements of `l1` where `bs` is true, else of `l0`."""
    if len(l0) + len(l1) != len(bs) or len(l1) != sum(map(bool, bs)):
        raise ValueError(
            f"{len(l0)} and {len(l1)} elements do not fit {len(bs)} booleans, {sum(map(bool, bs))} "
            "of them true"
        )
    false, true = iter(l0), iter(l1)
    return [next(true if flag else false) for flag in bs]


def concatenate(xs: Iterable[Sequence[T]]) -> list[T]:
    """Return the list of the elements of several sequences."""
    return [x for sequence in xs for x in sequence]


def tuple_insert(t: tuple[T, ...], idx: int, val: T) -> tuple[T, ...]:
    """Return a tuple with one more element at a nonnegative position."""
    return (*t[:idx], val, *t[idx:])


def tuple_delete(t: tuple[T, ...], idx: int) -> tuple[T, ...]:
    """Return a tuple without the element at a nonnegative index."""
    return (*t[:idx], *t[idx + 1 :])


def tuple_update(t: tuple[T, ...], idx: int, val: T) -> tuple[T, ...]:
    """Return a tuple with the element at a nonnegative position replaced."""
    return (*t[:idx], val, *t[idx + 1 :])


def canonicalize_axis(axis: Any, num_dims: int) -> int:
    """Return an axis as a nonnegative number, counted from the first.

    Raises:
      ValueError: if it is out of range.
    """
    index = operator.index(axis)
    if not -num_dims <= index < num_dims:
        raise ValueError(f"axis {index} is out of bounds for array of dimension {num_dims}")
    return index % num_dims if num_dims else index


def ceil_of_ratio(x: int, y: int) -> int:
    """Return the quotient of integers, rounded up."""
    return -(-x // y)


def wraps(
    wrapped: Callable[..., object], namestr: str | None = None, docstr: str | None = None, **_: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that gives a function the name and the docstring of another one.

    Args:
      wrapped: the other function; its names may be missing.
      namestr, docstr: templates with "{fun}" and "{doc}" for the name and the docstring.
    """

    def decorate(fun: Callable[..., Any]) -> Callable[..., Any]:
        name = getattr(wrapped, "__name__", "<unnamed function>")
        doc = getattr(wrapped, "__doc__", "") or ""
        present = [
            key
            for key in functools.WRAPPER_ASSIGNMENTS
            if isinstance(getattr(wrapped, key, None), str | dict)
        ]
        functools.update_wrapper(fun, wrapped, assigned=present, updated=())
        fun.__name__ = name if namestr is None else namestr.format(fun=name)
        fun.__doc__ = doc if docstr is None else docstr.format(fun=name, doc=doc)
        return fun

    return decorate


def curry(f: Callable[..., T]) -> Callable[..., Callable[..., T]]:
    """Return a function of some arguments that returns a function of the others."""
    return functools.wraps(f)(lambda *args, **kwargs: functools.partial(f, *args, **kwargs))


def fun_name(f: object, default_name: str = "<unnamed function>") -> str:
    """Return the name of a function or of a partial one."""
    while isinstance(f, functools.partial):
        f = cast("functools.partial[Any]", f).func
    return getattr(f, "__name__", default_name)


class HashableFunction:
    """A function that equals another one with the same code and an equal `closure`."""

    def __init__(self, f: Callable[..., Any], closure: object):
        self.f = f
        self.closure = closure

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashableFunction):
            return NotImplemented
        return self.f.__code__ == other.f.__code__ and self.closure == other.closure

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<hashable {self.f.__name__} with closure={self.closure}>"


def as_hashable_function(closure: object) -> Callable[[Callable[..., Any]], HashableFunction]:
    """Return a decorator that makes a function equal to others with an equal `closure`."""
    return lambda f: HashableFunction(f, closure)


class HashablePartial:
    """A function with its first arguments; it equals another with the same code and arguments."""

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any):
        self.f = f
        self.args = args
        self.kwargs = kwargs

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is HashablePartial
            and self.f.__code__ == other.f.__code__
            and (self.args, self.kwargs) == (other.args, other.kwargs)
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.args, tuple(sorted(self.kwargs.items()))))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


def set_module(module: str) -> Callable[[T], T]:
    """Return a decorator that sets the `__module__` of a function or class."""

    def decorate(value: T) -> T:
        value.__module__ = module
        return value

    return decorate
