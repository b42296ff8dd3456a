"""Origins of operations: name stacks, and tracebacks of equations that are evaluated again."""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, SupportsIndex, overload

from hlofront.base import source
from hlofront.base.boundary import named_as
from hlofront.base.source import Traceback


class Transformation:
    """A transformation in a name stack, which prints around the scope that follows it."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"Transformation({self.name!r})"


class FrontendAttributes:
    """XLA's frontend attributes of the operations in a scope; paths do not show them.

    They are part of name stacks because they go wherever an operation's scopes go.

    Args:
      pairs: names and values; the value None removes the attribute that an outer scope has set.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[str, str | None]]):
        self.pairs = tuple(pairs)

    def __eq__(self, other: object) -> bool:
        return type(other) is FrontendAttributes and self.pairs == other.pairs

    def __hash__(self) -> int:
        return hash(self.pairs)

    def __repr__(self) -> str:
        return f"FrontendAttributes({self.pairs!r})"


Scope = str | Transformation | FrontendAttributes
# The scopes and transformations around an operation, outermost first.
NameStack = tuple[Scope, ...]

JVP = Transformation("jvp")
TRANSPOSE = Transformation("transpose")
VMAP = Transformation("vmap")

_stack: ContextVar[NameStack] = ContextVar("names", default=())
_replayed: ContextVar[Traceback | None] = ContextVar("replayed_traceback", default=None)

current_name_stack = _stack.get
# The traceback of the equation that is evaluated again; None while user code runs.
replayed_traceback = _replayed.get


@contextmanager
def named_scope(name: str) -> Generator[None, None, None]:
    """Label the operations traced inside with `name`, in HLO metadata and profiles.

    It is also a decorator: `@named_scope("attention")`.

    Args:
      name: the label; a scope within a scope adds its label after a slash.

    Raises:
      TypeError: as the scope is entered, if `name` is not a string.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"named_scope requires a string, got {name!r} of type {type(name).__name__}"
        )
    token = _stack.set((*_stack.get(), name))
    try:
        yield
    finally:
        _stack.reset(token)


def path_of(stack: NameStack) -> str:
    """Return a name stack as a path for profilers: "jit(f)/transpose(jvp(attention))/scores"."""
    path: list[str] = []
    for part in reversed(stack):
        if type(part) is FrontendAttributes:
            continue
        if type(part) is not Transformation:
            path.append(str(part))
        elif path:
            path[-1] = f"{part.name}({path[-1]})"
        else:
            path.append(f"{part.name}()")
    path.reverse()
    return "/".join(path)


def frontend_attributes_of(stack: NameStack) -> dict[str, str]:
    """Return the frontend attributes in a name stack, where inner scopes override outer ones."""
    attributes: dict[str, str | None] = {}
    for part in stack:
        if type(part) is FrontendAttributes:
            attributes.update(part.pairs)
    if not attributes:
        return {}
    return {name: value for name, value in attributes.items() if value is not None}


class PrintedNameStack(tuple[Scope, ...]):
    """A name stack that prints as its path."""

    __slots__ = ()

    @property
    def stack(self) -> NameStack:
        """The scopes and transformations, outermost first."""
        return tuple(self)

    def extend(self, name: str) -> "PrintedNameStack":
        """Return a name stack with one more scope inside."""
        return PrintedNameStack((*self, name))

    def transform(self, transform_name: str) -> "PrintedNameStack":
        """Return a name stack with one more transformation inside."""
        return PrintedNameStack((*self, Transformation(transform_name)))

    def __add__(self, other: NameStack) -> "PrintedNameStack":  # pyright: ignore[reportIncompatibleMethodOverride]
        return PrintedNameStack((*self, *other))

    def __radd__(self, other: NameStack) -> "PrintedNameStack":
        return PrintedNameStack((*other, *self))

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Scope: ...
    @overload
    def __getitem__(self, index: slice, /) -> "PrintedNameStack": ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> "Scope | PrintedNameStack":
        if isinstance(index, slice):
            return PrintedNameStack(self.stack[index])
        return self.stack[index]

    def __str__(self) -> str:
        return path_of(self)


class SourceInfo:
    """The origin of an equation, which is its `source_info`.

    Attributes:
      traceback: the C++ traceback of the call that made the equation; None if it is not known.
      scopes: the named scopes and transformations around the operation, outermost first.
    """

    __slots__ = ("scopes", "traceback")

    def __init__(self, traceback: Traceback | None, name_stack: NameStack):
        self.traceback = traceback
        self.scopes = name_stack

    @property
    def name_stack(self) -> PrintedNameStack:
        """The named scopes around the operation, which print as a path: "jvp(attention)/scores"."""
        return PrintedNameStack(self.scopes)

    def replace(
        self, *, traceback: Traceback | None = None, name_stack: NameStack | None = None
    ) -> "SourceInfo":
        """Return a copy with some fields replaced; None leaves a field unchanged."""
        return SourceInfo(
            self.traceback if traceback is None else traceback,
            self.scopes if name_stack is None else tuple(name_stack),
        )

    def inside(self, *scopes: Scope) -> "SourceInfo":
        """Return a copy with more scopes around its own."""
        return SourceInfo(self.traceback, (*scopes, *self.scopes)) if scopes else self

    def __eq__(self, other: object) -> bool:
        if type(other) is not SourceInfo:
            return NotImplemented
        return self.traceback == other.traceback and self.scopes == other.scopes

    def __hash__(self) -> int:
        return hash((self.traceback, self.scopes))

    def __repr__(self) -> str:
        line = source.summarize(self.traceback)
        return f"SourceInfo({line}, name_stack={str(self.name_stack)!r})"


UNKNOWN_SOURCE = SourceInfo(None, ())


class transformed:
    """A context manager that adds a transformation or scope to the operations' name stack."""

    __slots__ = ("scope", "token")

    def __init__(self, scope: Scope):
        self.scope = scope

    def __enter__(self) -> None:
        self.token = _stack.set((*_stack.get(), self.scope))

    def __exit__(self, *_: object) -> None:
        _stack.reset(self.token)


class coming_from:
    """A context manager that sets the traceback of operations and extends their name stack."""

    __slots__ = ("name_stack", "tokens", "traceback")

    def __init__(self, name_stack: NameStack, traceback: Traceback | None):
        self.name_stack = name_stack
        self.traceback = traceback

    def __enter__(self) -> None:
        stack = _stack.get()
        self.tokens = (_stack.set((*stack, *self.name_stack)), _replayed.set(self.traceback))

    def __exit__(self, *_: object) -> None:
        _stack.reset(self.tokens[0])
        _replayed.reset(self.tokens[1])


class coming_from_here:
    """A context manager that gives the operations inside the traceback of where it is entered.

    It is for rules, all of whose operations come from one line of the user's code. When an equation
    is evaluated again, the operations keep the equation's traceback.
    """

    __slots__ = ("token",)

    token: Token[Traceback | None] | None

    def __enter__(self) -> None:
        again = _replayed.get() is not None
        self.token = None if again else _replayed.set(source.current())

    def __exit__(self, *_: object) -> None:
        if self.token is not None:
            _replayed.reset(self.token)


class scopes_replaced:
    """A context manager that replaces the name stack of the operations traced inside."""

    __slots__ = ("name_stack", "token")

    def __init__(self, name_stack: NameStack):
        self.name_stack = name_stack

    def __enter__(self) -> None:
        self.token = _stack.set(self.name_stack)

    def __exit__(self, *_: object) -> None:
        _stack.reset(self.token)


class in_own_program:
    """A context manager for tracing a separate program, which starts with an empty name stack.

    Frontend attributes stay, because they apply to the program's operations as well.
    """

    __slots__ = ("tokens",)

    def __enter__(self) -> None:
        stack = _stack.get()
        if stack:
            stack = tuple(part for part in stack if type(part) is FrontendAttributes)
        self.tokens = (_stack.set(stack), _replayed.set(None))

    def __exit__(self, *_: object) -> None:
        _stack.reset(self.tokens[0])
        _replayed.reset(self.tokens[1])


def named_call(fun: Callable[..., object], *, name: str | None = None) -> Callable[..., Any]:
    """Return a function whose operations are labeled, in HLO metadata and profiles.

    Args:
      fun: the function.
      name: the label, by default the name of the function.

    Raises:
      TypeError: if `fun` is not callable; from the call, if `name` is not a string.
    """
    if not callable(fun):
        raise TypeError(f"named_call requires a function, got {source.shortened(repr(fun))}")
    label = source.callable_name(fun) if name is None else name

    def named(*args: object, **kwargs: object) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    return named_as(named, fun)
