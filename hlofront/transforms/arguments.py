"""A function's arguments: their names, and which are static, donated or program inputs."""

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.advice import as_static
from hlofront.base.tree import PyTree
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.transforms.flatten import abstract

# Parameter kinds that a keyword argument cannot name.
_UNNAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


_unknown = object()


class Signature:
    """A record of a function's name and parameters, for naming arguments in messages.

    The parameters are inspected on first use, because most calls do not need them.
    """

    __slots__ = ("_parameters", "_where", "fun", "name")

    def __init__(self, fun: Callable[..., PyTree]):
        self.fun = fun
        self.name = source.callable_name(fun)
        self._where: str | None = None
        self._parameters: Any = _unknown

    @property
    def where(self) -> str:
        """The function's name and source location, as in "loss at model.py:12"."""
        if self._where is None:
            self._where = source.describe_callable(self.fun)
        return self._where

    def find_where(self) -> str:
        return self.where

    def release_function(self) -> None:
        """Read the function's location and parameters now, and drop the reference to the function.

        Programs that hold the signature then do not keep alive what the function closes over.
        """
        _ = self.where, self.parameters
        del self.fun

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter] | None:
        """The function's parameters by name, or None for builtins without a signature."""
        if self._parameters is _unknown:
            try:
                self._parameters = inspect.signature(self.fun).parameters
            except (TypeError, ValueError):
                self._parameters = None
        return self._parameters

    def positional_names(self) -> list[str]:
        """Return the names of the parameters that take positional arguments."""
        if self.parameters is None:
            return []
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [name for name, p in self.parameters.items() if p.kind in kinds]

    def argument_names(
        self,
        args_and_kwargs: tuple[Sequence[object], Mapping[str, object]],
        positions: Sequence[int] | None = None,
    ) -> tuple[str, ...]:
        """Return a name per pytree leaf of (args, kwargs), such as `x`, `params['w']` or `rest[2]`.

        Args:
          args_and_kwargs: the arguments, or only the dynamic ones.
          positions: the positions in the call of the positional arguments in `args_and_kwargs`.
        """
        args, kwargs = args_and_kwargs
        positions = range(len(args)) if positions is None else positions
        names = self.positional_names()
        rest = "args"
        for parameter in (self.parameters or {}).values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                rest = parameter.name
        argument_names: list[str] = []
        for position, arg in zip(positions, args, strict=True):
            base = names[position] if position < len(names) else f"{rest}[{position - len(names)}]"
            argument_names += [
                base + tree.keystr(path) for path, _ in tree.tree_leaves_with_path(arg)
            ]
        for name in sorted(kwargs):
            argument_names += [
                name + tree.keystr(path) for path, _ in tree.tree_leaves_with_path(kwargs[name])
            ]
        return tuple(argument_names)

    def names_in(self, in_tree: PyTreeDef) -> tuple[str, ...]:
        """Return the names of the leaves of positional arguments whose structure is `in_tree`."""
        return self.argument_names((in_tree.unflatten(range(in_tree.num_leaves)), {}))


class ArgumentPlan:
    """The division of a function's arguments into static ones, donated ones and program inputs.

    Raises:
      ValueError: if a position or name is not one of the function's, or is static and donated.
      TypeError: if positions are not integers or names are not strings.
    """

    __slots__ = (
        "_counts_from_the_end",
        "_static_names",
        "_static_positions",
        "donate_argnames",
        "donate_argnums",
        "signature",
        "static_argnames",
        "static_argnums",
    )

    def __init__(
        self,
        fun: Callable[..., PyTree],
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None,
        what: str = "Jitted function",
    ):
        self.signature = Signature(fun)
        self.static_argnums, self.static_argnames = self._complete(
            what, "static", static_argnums, static_argnames
        )
        self.donate_argnums, self.donate_argnames = self._complete(
            what, "donate", donate_argnums, donate_argnames
        )
        both = set(self.static_argnames) & set(self.donate_argnames)
        if both or set(self.static_argnums) & set(self.donate_argnums):
            raise ValueError(
                "static_argnames and donate_argnames cannot intersect. Argument names "
                f"{both or set(self.static_argnums)} appear in both static_argnames and "
                "donate_argnames"
            )
        # Negative positions count from the last argument of each call, as in JAX.
        self._counts_from_the_end = any(n < 0 for n in (*self.static_argnums, *self.donate_argnums))
        self._static_positions = frozenset(self.static_argnums)
        self._static_names = frozenset(self.static_argnames)

    def _complete(
        self,
        what: str,
        kind: str,
        argnums: int | Sequence[int] | None,
        argnames: str | Iterable[str] | None,
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Return the positions and names of static or donated arguments; None is inferred."""
        nums = () if argnums is None else _integers(argnums)
        names = () if argnames is None else _strings(argnames)
        parameters = self.signature.parameters
        if parameters is None:
            if names and kind == "donate":
                raise ValueError(
                    f"the signature of {source.shortened(repr(self.signature.fun))} is not known: "
                    "pass donate_argnums instead of donate_argnames"
                )
            return nums, names
        positional = self.signature.positional_names()
        takes_rest = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())
        takes_any_name = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        if nums and not takes_rest:
            accepted = range(-len(positional), len(positional))
            if any(n not in accepted for n in nums):
                raise ValueError(
                    f"{what} has {kind}_argnums={nums}, but only accepts {len(positional)} "
                    "positional arguments."
                )
        unknown = {name for name in names if name not in parameters}
        if unknown and not takes_any_name:
            raise ValueError(
                f"{what} has invalid argnames {unknown} in {kind}_argnames. "
                "Function does not take these args."
            )
        named = [name for name in names if name in parameters]
        without = {name for name in named if parameters[name].kind in _UNNAMED}
        if without:
            raise ValueError(
                f"{what} has invalid argnames {without} in {kind}_argnames. These are "
                f"positional-only: name their positions in {kind}_argnums."
            )
        if argnums is None:
            nums = tuple(i for i, name in enumerate(positional) if name in names)
        elif argnames is None:
            keyword = [
                n
                for n in nums
                if 0 <= n < len(positional)
                and parameters[positional[n]].kind is not inspect.Parameter.POSITIONAL_ONLY
            ]
            names = tuple(positional[n] for n in keyword)
        return nums, names

    def _static_of(self, count: int) -> frozenset[int]:
        """Return the static positions of a call with `count` positional arguments.

        Raises:
          ValueError: if a negative position is out of range.
        """
        if not self._counts_from_the_end:
            return self._static_positions
        return frozenset(_from_the_start(self.static_argnums, count))

    def static_values(
        self, args: tuple[object, ...], kwargs: dict[str, object], required: bool = True
    ) -> Any:
        """Return a hashable key of a call's static arguments, for caches.

        Raises:
          ValueError: if a static argument is unhashable and `required`; if not required, the key is
            None.
        """
        if not self._static_positions and not self._static_names:
            return ()
        argnums = self.static_argnums
        if self._counts_from_the_end:
            argnums = _from_the_start(argnums, len(args))
        values = [(i, args[i]) for i in argnums if i < len(args)]
        named = [(n, kwargs[n]) for n in self.static_argnames if n in kwargs]
        for where, value in (*values, *named):
            try:
                hash(value)
            except TypeError as error:
                if not required:
                    return None
                raise ValueError(
                    f"Non-hashable static arguments are not supported: {self._name_of(where)} is "
                    f"{value!r} of type {type(value)}. Pass something that can be hashed and "
                    "compared, such as a tuple instead of a list."
                ) from error
        return tuple(StaticValue(where, value) for where, value in (*values, *named))

    def _name_of(self, where: int | str) -> str:
        if isinstance(where, str):
            return f"argument {where!r}"
        names = self.signature.positional_names()
        return f"argument {names[where]!r}" if where < len(names) else f"argument number {where}"

    @property
    def has_statics(self) -> bool:
        """Return whether calls may have static arguments."""
        return bool(self._static_positions or self._static_names)

    def dynamic(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return the args and kwargs of a call without its static arguments."""
        if self._static_positions:
            static = self._static_of(len(args))
            args = tuple(x for i, x in enumerate(args) if i not in static)
        if self._static_names and not self._static_names.isdisjoint(kwargs):
            kwargs = {n: x for n, x in kwargs.items() if n not in self._static_names}
        return args, kwargs

    def dynamic_positions(self, count: int) -> list[int]:
        """Return the positions of dynamic arguments in a call with `count` positional arguments."""
        static = self._static_of(count)
        return [i for i in range(count) if i not in static]

    def with_statics(
        self, fun: Callable[..., PyTree], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Callable[..., PyTree]:
        """Return `fun` as a function of its dynamic arguments, with the static ones bound."""
        if not self.has_statics:
            return fun
        count = len(args)
        fixed = {i: args[i] for i in self._static_of(count) if i < count}
        named = {n: kwargs[n] for n in self._static_names if n in kwargs}

        def of_dynamic(*dynamic_args: object, **dynamic_kwargs: object) -> PyTree:
            rest = iter(dynamic_args)
            whole = [fixed[i] if i in fixed else next(rest) for i in range(count)]
            return fun(*whole, **named, **dynamic_kwargs)

        return of_dynamic

    def donated(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[bool, ...]:
        """Return per leaf of the dynamic arguments whether its buffer is donated."""
        if not self.donate_argnums and not self.donate_argnames:
            return ()
        static, donate = self._static_of(len(args)), self.donate_argnums
        if self._counts_from_the_end:
            donate = _from_the_start(donate, len(args))
        flags: list[bool] = []
        for i, x in enumerate(args):
            if i not in static:
                flags += [i in donate] * tree.tree_structure(x).num_leaves
        for name in sorted(kwargs):
            if name not in self._static_names:
                leaves = tree.tree_structure(kwargs[name]).num_leaves
                flags += [name in self.donate_argnames] * leaves
        return tuple(flags)

    def names(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[str, ...]:
        """Return the names of the leaves of a call's dynamic arguments, such as `params['w']`."""
        dynamic_args, dynamic_kwargs = self.dynamic(args, kwargs)
        return self.signature.argument_names(
            (dynamic_args, dynamic_kwargs), self.dynamic_positions(len(args))
        )

    def bad_argument(
        self, args: tuple[object, ...], kwargs: dict[str, object], leaves: Sequence[object]
    ) -> TypeError | OverflowError:
        """Return the error that names the first argument that is not an array, or is too large."""
        where = self.signature.where
        for name, leaf in zip(self.names(args, kwargs), leaves, strict=False):
            try:
                abstract(leaf)
            except OverflowError as error:
                return OverflowError(f"{error}\nIt is the argument {name} of {where}.")
            except TypeError as error:
                return TypeError(
                    f"Error interpreting argument to {where} as an abstract array. The problematic "
                    f"value is {source.shortened(repr(leaf))} of type {type(leaf)} and was passed "
                    f"to the function at path {name}.\n{error}\n"
                    f"{as_static(leaf, name)}"
                )
        return TypeError(f"an argument of {where} is not an array")


class StaticValue:
    """A static argument as a hashable key, equal only within one type (1, 1.0 and True differ)."""

    __slots__ = ("_hash", "value", "where")

    def __init__(self, where: int | str, value: object):
        self.where = where
        self.value = value
        self._hash = hash((where, value))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is StaticValue
            and self.where == other.where
            and type(self.value) is type(other.value)
            and (self.value is other.value or bool(self.value == other.value))
        )


def _integers(values: Any) -> tuple[int, ...]:
    if hasattr(values, "__index__"):
        return (operator.index(values),)
    return tuple(map(operator.index, values))


def _from_the_start(argnums: Sequence[int], count: int) -> tuple[int, ...]:
    """Return argument positions as nonnegative ints, counting negative ones from the end.

    Raises:
      ValueError: if a negative position is out of range.
    """
    if any(n < -count for n in argnums):
        raise ValueError(
            "Positional argument indices, e.g. for `static_argnums`, must have value greater than "
            f"or equal to -len(args) and less than len(args), but got {min(argnums)} for a call "
            f"with {count} positional arguments."
        )
    return tuple(n + count if n < 0 else n for n in argnums)


def _strings(values: str | Iterable[str]) -> tuple[str, ...]:
    names = (values,) if isinstance(values, str) else tuple(values)
    for name in names:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"argument names must be strings, got {name!r} of type {type(name)}")
    return names
