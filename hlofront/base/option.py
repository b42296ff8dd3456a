"""Options: their kinds, their values per process and thread, and the object `config`."""

import functools
import importlib
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from hlofront.base import source
from hlofront.bridge import state

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import ConfigCell

unset = state.unset

P = ParamSpec("P")
R = TypeVar("R")


# ---- kinds of values ---------------------------------------------------------------------------


class Refused(ValueError):
    """The error that an option kind raises for a value it refuses; Option adds its name."""


class OptionKind:
    """A kind of option values, with its check and its parser of environment variables."""

    __slots__ = ("check", "expected", "parse")

    def __init__(
        self, expected: str, check: Callable[[Any], object], parse: Callable[[str], object]
    ):
        self.expected = expected
        self.check = check
        self.parse = parse


_TRUE = ("1", "true", "t", "yes", "y", "on")
_FALSE = ("0", "false", "f", "no", "n", "off")


def _check_bool(value: object) -> bool:
    # Do not use truth: "False" is true. NumPy's bools also equal 0 or 1.
    if value not in (0, 1):
        raise Refused
    return bool(value)


def _parse_bool(text: str) -> bool:
    text = text.lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise Refused


def _check_int(value: object) -> int:
    if not isinstance(value, int):
        raise Refused
    return int(value)


def _check_float(value: object) -> float:
    if not isinstance(value, int | float):
        raise Refused
    return float(value)


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise Refused
    return value


def _check_pattern(value: object) -> str:
    pattern = _check_text(value)
    try:
        re.compile(pattern)
    except re.error:
        raise Refused from None
    return pattern


def _check_numbers(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"all|\d+( *, *\d+)*", value):
        raise Refused
    return value


def _check_settings(value: object) -> object:
    if isinstance(value, str | dict):
        return cast("object", value)
    raise Refused


def _check_device(value: object) -> object:
    if not isinstance(value, str) and not hasattr(value, "platform"):
        raise Refused
    return value


def _check_axes(value: object) -> frozenset[Any]:
    if not isinstance(value, set | frozenset):
        raise TypeError(  # JAX raises this class.
            f"expected a set or frozenset of names of mesh axes, got {value!r} of type "
            f"{type(value).__name__}"
        )
    return frozenset(cast("set[Any]", value))


def _parse_axes(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


BOOL = OptionKind("True or False", _check_bool, _parse_bool)
INT = OptionKind("an integer", _check_int, int)
FLOAT = OptionKind("a number", _check_float, float)
TEXT = OptionKind("a string", _check_text, str)
PATTERN = OptionKind("a regular expression", _check_pattern, _check_pattern)
NUMBERS = OptionKind("'all', or numbers with commas between", _check_numbers, _check_numbers)
AXES = OptionKind("a set of names of mesh axes", _check_axes, _parse_axes)
SETTINGS = OptionKind("a string of name:value pairs or a dict", _check_settings, str)
DEVICE = OptionKind(
    "a device, such as devices()[0], or a platform such as 'cpu'", _check_device, str
)


def choice(*choices: str) -> OptionKind:
    """Return the kind of an option whose value is one of several strings."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise Refused
        return choices[choices.index(value)]

    return OptionKind("one of " + ", ".join(map(repr, choices)), check, check)


def words(*known: str) -> OptionKind:
    """Return the kind of an option whose value is a comma-separated list of known words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or not set(value.split(",")) <= {*known, ""}:
            raise Refused
        return value

    return OptionKind("words with commas between, of " + ", ".join(map(repr, known)), check, check)


def optional(kind: OptionKind) -> OptionKind:
    """Return a kind of option that also accepts None, for "not set"."""

    def check(value: object) -> object:
        return None if value is None else kind.check(value)

    return OptionKind(f"{kind.expected}, or None", check, kind.parse)


# ---- options -----------------------------------------------------------------------------------

options: dict[str, "Option"] = {}

_OPTION_DOC = """The option {option.name}: it {option.doc}.

`with option(value):` sets it for this thread until the block ends, and the decorator
`@option(value)` sets it for the calls of a function. For the process it is set by
`config.update("{option.name}", value)`, or before the process starts by
the environment variable {option.environment}.

Args:
  new_val: {option.kind.expected}. The default of the option is {option.default!r}.

Returns:
  A context manager that is also a decorator.

Raises:
  ValueError: if the option does not accept the value.
  TypeError: if no value is given, and the option is not one of True and False.
"""


class Option:
    """An option, with a value for the process, and one for a block within a thread.

    `option.value` reads it. `with option(True):` sets it for this thread until the block ends; the
    decorator `@option(True)` sets it for the calls of a function.
    """

    # The `__dict__` holds the `__doc__` of one option, which `help` shows.
    __slots__ = (
        "affects_trace",
        "cell",
        "default",
        "doc",
        "environment",
        "kind",
        "name",
        "_hooks",
        "__dict__",
    )

    def __init__(
        self,
        name: str,
        default: object,
        kind: OptionKind,
        doc: str,
        affects_trace: bool,
        cell: "ConfigCell | None" = None,
    ):
        self.name = name
        self.default = default
        self.kind = kind
        self.doc = doc
        self.affects_trace = affects_trace
        self.environment: str = name.upper()
        self.__doc__ = _OPTION_DOC.format(option=self)
        self._hooks: tuple[Callable[[Any, bool], None], ...] = ()
        # A C++ cell holds a value for the process and one per thread, and reads quickly.
        self.cell: ConfigCell = cell or state.Config(
            name, default, include_in_jit_key=False, include_in_trace_context=False
        )

    @property
    def value(self) -> Any:
        """The current value of the option: this thread's if set, else the process's."""
        return self.cell.value

    def get_global(self) -> Any:
        """Return the option's value for the process, ignoring this thread's."""
        return self.cell.get_global()

    def get_local(self) -> object:
        """Return the option's value for this thread, or `unset`."""
        return self.cell.get_local()

    def check(self, value: object) -> object:
        """Return a value as this option stores it.

        Raises:
          ValueError: if the option does not accept the value.
        """
        try:
            return self.kind.check(value)
        except Refused:
            # JAX lets most options be set to None; here that restores the default.
            if value is None and self.kind in (BOOL, INT, FLOAT, TEXT):
                return self.default
            raise ValueError(
                f"option {self.name} takes {self.kind.expected}, got {value!r} "
                f"of type {type(value).__name__}. It {self.doc}."
            ) from None

    def set(self, value: object) -> None:
        """Set the option for the process; threads inside `with option(...)` are not affected."""
        value = self.check(value)
        for hook in self._hooks:
            hook(value, False)
        self.cell.set_global(value)
        if self.affects_trace and self.cell.name not in _OWN_CELLS:
            _fold_process(self, value)

    def set_local(self, value: object) -> object:
        """Set the option for this thread, or end that with `unset`; return the previous value."""
        if value is not unset:
            value = self.check(value)
        for hook in self._hooks:
            hook(value, True)
        if self.affects_trace and self.cell.name not in _OWN_CELLS:
            fold_thread(self.name, value)
        return self.cell.swap_local(value)

    def watch(self, hook: Callable[[Any, bool], None]) -> None:
        """Register `hook(value, local)`, which is called before each change of the option.

        It is called immediately if the process has a value other than the default. `local` says
        whether only this thread's value changes; then it may be `unset`. A hook may refuse the
        value by raising an error.
        """
        if self.cell.get_global() != self.default:
            hook(self.cell.get_global(), False)
        self._hooks = (*self._hooks, hook)

    def __call__(self, new_val: object = unset) -> "Override":
        if new_val is unset:
            if self.kind is not BOOL:
                raise TypeError(
                    f"{self.name} as a context manager needs its new value: {self.kind.expected}"
                )
            new_val = True
        return Override(self, self.check(new_val))

    def __bool__(self) -> NoReturn:
        raise TypeError(f"the truth of the option {self.name} itself is meaningless: read .value")

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"


class Override:
    """A context manager and decorator that sets an option for this thread."""

    __slots__ = ("_option", "_previous", "_value")

    def __init__(self, option: Option, value: object):
        self._option = option
        self._value = value
        self._previous: list[object] = []

    def __enter__(self) -> None:
        self._previous.append(self._option.set_local(self._value))

    def __exit__(self, *exception: object) -> None:
        self._option.set_local(self._previous.pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        option, value = self._option, self._value

        @functools.wraps(function)
        def overridden(*args: P.args, **kwargs: P.kwargs) -> R:
            # A new Override per call: calls may overlap in several threads.
            with Override(option, value):
                return function(*args, **kwargs)

        return overridden


# The C++ jit key contains every option that affects tracing or compiling. Two have cells of their
# own; the others share two cells, each a sorted tuple of (name, value) pairs: of the options that
# the process has set to values other than their defaults, and of those that this thread has set.
_OWN_CELLS: dict[str, "ConfigCell"] = {
    "enable_x64": state.enable_x64,
    "disable_jit": state.disable_jit,
}


def _fold_process(option: Option, value: object) -> None:
    entries = dict(state.process_options.get_global())
    if value == option.default:
        entries.pop(option.name, None)
    else:
        entries[option.name] = value
    state.process_options.set_global(tuple(sorted(entries.items(), key=_first)))


def fold_thread(name: str, value: object) -> None:
    """Make a value part of the keys of this thread's programs; `unset` ends that."""
    entries = dict(state.thread_options.value)
    if value is unset:
        entries.pop(name, None)
    else:
        entries[name] = value
    state.thread_options.set_local(tuple(sorted(entries.items(), key=_first)) or unset)


def _first(pair: tuple[str, object]) -> str:
    return pair[0]


def changed_options(candidates: Iterable[Option]) -> tuple[tuple[str, object], ...]:
    """Return (name, value) of each option whose value is not its default, for a cache key.

    Args:
      candidates: options that affect tracing; () is returned quickly if none is set.
    """
    if not state.process_options.value and not state.thread_options.value:
        return ()
    return tuple(
        (option.name, option.value) for option in candidates if option.value != option.default
    )


def add_option(
    name: str, default: object, kind: OptionKind, doc: str, affects_trace: bool = False
) -> Option:
    """Add an option to the table, with its environment variable's value if that is set.

    Args:
      name: the flag, `jax_...` or `hlofront_...`; in capitals, its environment variable.
      default: its value when nothing sets it.
      kind: BOOL, INT, FLOAT, TEXT, choice(...), optional(...).
      doc: the effect of the option, to follow the word "It".
      affects_trace: whether traced or compiled programs depend on it; jit then caches one
        program per value, and values must be hashable.

    Raises:
      ValueError: if the option exists, or its environment variable's value is not valid.
    """
    if name in options:
        raise ValueError(f"there is already an option {name}")
    option = Option(name, default, kind, doc, affects_trace, _OWN_CELLS.get(name[4:]))
    cell = option.cell
    text = os.environ.get(option.environment)
    if text is not None:
        try:
            option.set(kind.parse(text))
        except ValueError:
            raise ValueError(
                f"environment variable {option.environment} takes {kind.expected}, but is {text!r}"
            ) from None
    options[name] = option
    setattr(Config, name, property(lambda _: cell.value))
    return option


# ---- the config object -------------------------------------------------------------------------


class Config:
    """The object for reading and setting options, as in `config.update(flag, value)`."""

    __slots__ = ()

    def update(self, name: str, value: object) -> None:
        """Set an option for the process, as in `config.update("jax_enable_x64", True)`.

        Raises:
          AttributeError: if there is no such option.
          ValueError: if the option does not accept this value.
        """
        _option(name).set(value)

    def read(self, name: str) -> Any:
        """Return the current value of an option: this thread's if set, else the process's."""
        return _option(name).value

    @property
    def x64_enabled(self) -> bool:
        """The current value of the option jax_enable_x64, which enables 64-bit dtypes."""
        return state.enable_x64.value

    @property
    def values(self) -> dict[str, object]:
        """The current values of all options, by flag."""
        return {name: option.value for name, option in options.items()}

    def config_with_absl(self) -> None:
        """Make each option a command-line flag of absl-py, which `absl.app.run` sets.

        Call it before `absl.app.run`; `python script.py --jax_enable_x64` then sets an option.

        Raises:
          ModuleNotFoundError: if absl-py is not installed.
        """
        _define_flags()
        _absl("app").call_after_init(_set_from_flags)

    def parse_flags_with_absl(self) -> None:
        """Set options from this process's arguments that begin with `--jax`, using absl-py.

        It is for programs that do not call `absl.app.run`; others call `config_with_absl`.

        Raises:
          ModuleNotFoundError: if absl-py is not installed.
        """
        before_dashes = itertools.takewhile(lambda argument: argument != "--", sys.argv)
        mine = [argument for argument in before_dashes if argument.startswith("--jax")]
        self.config_with_absl()
        _absl("flags").FLAGS(["", *mine], known_only=True)
        _set_from_flags()

    def __getattr__(self, name: str) -> Any:
        raise _no_option(name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"set an option with config.update({name!r}, {value!r})")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *options})

    def __repr__(self) -> str:
        changed = [
            f"{name}={option.value!r}"
            for name, option in options.items()
            if option.value != option.default
        ]
        return f"<config of {len(options)} options; changed: {', '.join(changed) or 'none'}>"


def _absl(name: str) -> Any:
    """Import a module of absl-py, which only programs that use its flags need."""
    return importlib.import_module(f"absl.{name}")


def _define_flags() -> None:
    flags = _absl("flags")
    for name, option in options.items():
        if name not in flags.FLAGS:
            define = flags.DEFINE_bool if option.kind is BOOL else flags.DEFINE_string
            define(name, None, f"{option.kind.expected}: it {option.doc}")


def _set_from_flags() -> None:
    """Set the options whose flags are on the command line."""
    flags = _absl("flags").FLAGS
    for name, option in options.items():
        if flags[name].present:
            value = flags[name].value
            option.set(value if option.kind is BOOL else option.kind.parse(value))


def _option(name: str) -> Option:
    try:
        return options[name]
    except (KeyError, TypeError):
        raise _no_option(name) from None


def _no_option(name: object) -> AttributeError:
    import difflib

    candidates: list[str] = (
        [name, f"jax_{name}", f"hlofront_{name}"] if isinstance(name, str) else []
    )
    near = [
        match
        for candidate in candidates
        for match in difflib.get_close_matches(candidate, options, n=1, cutoff=0.75)
    ]
    hint = f": did you mean {near[0]}?" if near else "; config.values has them all"
    return AttributeError(f"Unrecognized config option: {name}{hint}")


# Environment variables that are not options: some are read at startup, others by hlofront's tests.
_OTHER_VARIABLES = (
    "HLOFRONT_AS_JAX",
    "HLOFRONT_ALL_MESHES",
    "HLOFRONT_ASK_JAX",
    "HLOFRONT_CHROMIUM",
    "HLOFRONT_LIBRARIES_PYTHON",
    "HLOFRONT_ORACLE_PYTHON",
    "HLOFRONT_TEST_STAND_IN",
)


def warn_of_unknown_variables() -> None:
    """Warn about environment variables that begin with HLOFRONT_ but are never read."""
    for name in os.environ:
        if not name.startswith("HLOFRONT_") or name in _OTHER_VARIABLES:
            continue
        known = [option.environment for option in options.values()]
        if name not in known:
            import difflib

            # Compare without the common prefix, which would make all names similar.
            start = len("HLOFRONT_")
            names = [
                variable[start:]
                for variable in (*known, "HLOFRONT_AS_JAX")
                if "HLOFRONT_" in variable
            ]
            near = difflib.get_close_matches(name[start:], names, n=1)
            hint = (
                f"did you mean HLOFRONT_{near[0]}?" if near else "config.values lists the options"
            )
            source.warn(
                f"the environment variable {name} has no effect, as hlofront has no such option: "
                f"{hint}"
            )


config = Config()
