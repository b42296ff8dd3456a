"""The reasons of recompilation: a call's differences from the earlier calls of a function."""

import contextlib
import functools
import sys
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from hlofront.base import errors, events, source
from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import state
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import ShapedArray
from hlofront.runtime.compilation import run_log
from hlofront.transforms.arguments import StaticValue

_first_warning = options["hlofront_warn_recompiles"]
_explain = options["jax_explain_cache_misses"]

# The number of programs that a new one is compared with, and of functions and sites recorded.
_MAX_COMPARED = 32
_MAX_CODES = 1024
_MAX_SITES = 2048


class TraceKey(NamedTuple):
    """The key of one traced program: two calls share a program if their keys are equal."""

    names: tuple[str, ...]
    positional: tuple[str, ...]
    in_tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    statics: tuple[StaticValue, ...]
    context: tuple[object, ...]


class TraceHistory:
    """The programs of the functions that share one code object, with the function of each."""

    __slots__ = ("kinds",)

    def __init__(self):
        self.kinds: list[tuple[int, TraceKey]] = []


_lock = threading.Lock()
# Keyed by file and code: code objects of equal text and line in two files are equal.
_seen: OrderedDict[tuple[str, types.CodeType], TraceHistory] = OrderedDict()
# The number of recompilations per call site.
_sites: OrderedDict[tuple[str, int], int] = OrderedDict()
_of_thread = threading.local()


# ---- differences ---------------------------------------------------------------------------------


def differences(before: TraceKey, now: TraceKey) -> list[str]:
    """Return the differences from an earlier call, in clauses such as "n: f32[3] -> f32[4]"."""
    differences: list[str] = []
    if before.in_tree != now.in_tree:
        differences += _tree_differences(before, now)
    else:
        differences += [
            f"{name}: {_described(old, new)} -> {_described(new, old)}"
            for name, old, new in zip(now.names, before.avals, now.avals, strict=True)
            if old is not new and old != new
        ]
    differences += _static_differences(before, now)
    if before.context != now.context:
        differences += _context_differences(before.context, now.context)
    return differences


def _described(aval: ShapedArray, other: ShapedArray) -> str:
    """Return an aval as text, with its weak type if it differs from `other` only in that."""
    text = aval.str_short(short_dtypes=True)
    if text == other.str_short(short_dtypes=True) and aval.weak_type != other.weak_type:
        text += " weakly typed" if aval.weak_type else " strongly typed"
    return text


def _static_differences(before: TraceKey, now: TraceKey) -> Iterator[str]:
    old, new = ({static.where: static for static in kind.statics} for kind in (before, now))
    for where in {**old, **new}:
        difference = _static_difference(old.get(where), new.get(where))
        if difference:
            name: int | str = where
            if isinstance(where, int):
                known = where < len(now.positional)
                name = now.positional[where] if known else f"argument {where}"
            yield f"static {name}: {difference}"


def _static_difference(old: StaticValue | None, new: StaticValue | None) -> str:
    """Return the difference of two values of a static argument; empty if they are one key.

    Keys are the same if they are equal and have equal hashes. The methods are the user's, so their
    errors are reported as differences: the call itself may not use these methods.
    """
    before, now = (
        "not given" if value is None else source.shortened(shown_static(value.value))
        for value in (old, new)
    )
    change = f"{before} -> {now}"
    if old is None or new is None:
        return change
    try:
        is_equal = old == new
        # StaticValue keeps the hash that the value had at its call.
        has_changed = hash((old.where, old.value)) != hash(old)
    except Exception as error:
        return f"{change}, which cannot be compared: {type(error).__name__}: {error}"
    if is_equal and hash(old) == hash(new):
        return ""
    if is_equal and old.value is new.value:
        return (
            f"{now} is the object of an earlier call, and its hash has changed since: do not "
            "change a static argument between calls, and let `__hash__` return the same number"
        )
    if is_equal:
        return (
            f"{now} equals the value of an earlier call, and its hash differs: values that are "
            "equal by `__eq__` must have equal hashes by `__hash__`"
        )
    if has_changed and type(old.value) is type(new.value):
        return f"{change}, where the earlier value has another hash now than at its call"
    if before != now:
        return change
    return f"{change}, {_unequal_of_one_text(old.value, new.value)}"


def _have_equal_statics(before: TraceKey, now: TraceKey) -> bool:
    try:
        return before.statics == now.statics
    except Exception:  # The user's `__eq__` raises, which `differences` reports.
        return False


def _unequal_of_one_text(old: object, new: object) -> str:
    """Return why two values are unequal that have the same text."""
    names = [f"{type(value).__module__}.{type(value).__qualname__}" for value in (old, new)]
    if names[0] != names[1]:
        return f"of the types {names[0]} and {names[1]}"
    if type(old) is not type(new):
        return f"of two classes of the name {names[0]}: define it once"
    if type(new).__eq__ is object.__eq__:
        return f"two objects of {names[0]}, which defines no `__eq__` to compare them by"
    return "which are unequal by `__eq__`"


def shown_static(value: object) -> str:
    """Return a static argument as text, even if its `__repr__` raises an error."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose `__repr__` raises {type(error).__name__}>"


def _context_differences(before: tuple[object, ...], now: tuple[object, ...]) -> Iterator[str]:
    old, new = map(_options_of, (before, now))
    for name in {**old, **new}:
        unset = _Setting(options[name].default if name in options else None)
        sides = old.get(name, unset), new.get(name, unset)
        if sides[0].value != sides[1].value:
            yield f"config: {name} {sides[0].value!r} -> {sides[1].value!r}"
        elif sides[0] != sides[1]:
            # The value is the same; the programs differ in where it was set.
            yield f"config: {name} {sides[0]} -> {sides[1]}"


class _Setting(NamedTuple):
    """The value of an option, and for whom it was set."""

    value: object
    scopes: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"set for the {' and the '.join(self.scopes)}" if self.scopes else "the default"
        return f"{self.value!r} ({where})"


def _options_of(context: tuple[object, ...]) -> dict[str, _Setting]:
    """Return the options in a trace context, by name."""
    differing: dict[str, _Setting] = {}
    for field, value in zip(state.trace_context_fields, context, strict=True):
        if field in ("process", "thread"):
            for name, set_value in cast("tuple[tuple[str, object], ...]", value):
                scopes = differing[name].scopes if name in differing else ()
                differing[name] = _Setting(set_value, (*scopes, field))
        elif field == "enable_x64":
            differing.setdefault("jax_enable_x64", _Setting(value))
        elif field == "disable_jit":
            differing.setdefault("jax_disable_jit", _Setting(value))
        else:
            differing.setdefault(field.replace("_", " "), _Setting(value))
    return differing


def _tree_differences(before: TraceKey, now: TraceKey) -> list[str]:
    """Return the differences between two calls' argument trees, by the paths of their leaves."""
    old = dict(zip(before.names, before.avals, strict=False))
    new = dict(zip(now.names, now.avals, strict=False))
    gained = [_key_of(name) for name in new if name not in old]
    lost = [_key_of(name) for name in old if name not in new]
    clauses = _members("gained", gained) + _members("lost", lost)
    if not clauses:
        clauses = [f"tree: {before.in_tree} -> {now.in_tree}"]
    return clauses


def _key_of(name: str) -> tuple[str, str]:
    """Split a path: `state['mask']` is ("state", "key 'mask'"), `pair[1]` is ("pair", "[1]")."""
    for opening in ("[", "."):
        where = name.rfind(opening)
        if where > 0:
            member = name[where:]
            if member.startswith(("['", '["')):
                return name[:where], f"key {member[1:-1]}"
            return name[:where], member
    return "", name


def _members(verb: str, members: list[tuple[str, str]]) -> list[str]:
    by_owner: dict[str, list[str]] = {}
    for owner, member in members:
        by_owner.setdefault(owner, []).append(member)
    differences: list[str] = []
    for owner, names in by_owner.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        differences.append(f"tree: {owner or 'the call'} {verb} {shown}")
    return differences


# ---- recording -----------------------------------------------------------------------------------


def _key_of_code(fun: Callable[..., object]) -> tuple[str, types.CodeType] | None:
    """Return the file and code object that all functions of one `def` share; None without code."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = getattr(fun, "__wrapped__", fun)
    fun = getattr(fun, "__func__", fun)
    code = getattr(fun, "__code__", None) or getattr(type(fun).__call__, "__code__", None)
    return (code.co_filename, code) if isinstance(code, types.CodeType) else None


def reason(fun: Callable[..., object], maker: int, kind: TraceKey) -> str | None:
    """Explain why a program is traced although the function has an earlier one.

    Args:
      fun: the user's function.
      maker: the number of the table of programs, unique among functions of equal code.
      kind: the key of the new program: its arguments and options.

    Returns:
      The reason, or None if this is the first program.
    """
    with _lock:
        seen = _seen.get(_key_of_code(fun))  # pyright: ignore[reportArgumentType]
        if seen is None:
            return None
        kinds = list(reversed(seen.kinds))
    same_maker = [before for number, before in kinds if number == maker]
    new_object = not same_maker
    compared = [
        (differences(before, kind), before)
        for before in same_maker or [before for _, before in kinds]
    ]
    if not compared:
        return None
    # Of equally similar programs, one whose static arguments are equal, but not their hashes.
    nearest, _ = min(
        compared, key=lambda pair: (len(pair[0]), not _have_equal_statics(pair[1], kind))
    )
    if new_object and not nearest:
        return "a new function object each call: define it outside the loop"
    if not nearest:
        return "its program was forgotten: caches were cleared, or it has too many"
    text = "; ".join(nearest[:4]) + (f" and {len(nearest) - 4} more" if len(nearest) > 4 else "")
    return f"{text}, and a new function object" if new_object else text


def note(fun: Callable[..., object], maker: int, kind: TraceKey) -> None:
    """Record that a program was traced, for the explanations of later ones.

    Args:
      fun: the user's function.
      maker: the number of the table of programs, unique among functions of equal code.
      kind: the key of the program: its arguments and options.
    """
    key = _key_of_code(fun)
    if key is None:
        return
    with _lock:
        seen = _seen[key] = _seen.pop(key, None) or TraceHistory()
        while len(_seen) > _MAX_CODES:
            _seen.popitem(last=False)
        seen.kinds.append((maker, kind))
        del seen.kinds[:-_MAX_COMPARED]


def report(name: str, why: str | None) -> None:
    """Report that a top-level call compiles a program, or raise if a guard forbids it.

    Args:
      name: the name of the function.
      why: the reason of the recompilation, or None if the program is the function's first.

    Raises:
      RecompilationError: inside of `no_recompile` or `max_compiles`, if it is one too many.
    """
    frame = source.calling_frame()
    source_line = shown_line = "an unknown line"
    if frame is not None:
        source_line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        shown_line = source.shown_line(frame.f_code.co_filename, frame.f_lineno)
    line = (
        f"{shown_line}: {name} is compiled again: {why}"
        if why
        else f"{shown_line}: {name} is compiled"
    )
    for guard in getattr(_of_thread, "guards", ()):
        guard.check(line, why is not None)
    if run_log.current is not None:
        event = "first" if why is None else "recompile"
        run_log.current.record(event, name, line=source_line, why=why)
    if why is None:
        return
    events.record_event("/hlofront/recompile", fun_name=name)
    if _explain.value:
        events.logger.warning("%s", line)
    every = _first_warning.value
    if every <= 0 or frame is None:
        return
    site = (frame.f_code.co_filename, frame.f_lineno)
    with _lock:
        count = _sites[site] = _sites.pop(site, 0) + 1
        while len(_sites) > _MAX_SITES:
            _sites.popitem(last=False)
    # Warn at the Nth recompilation, and then at doubling counts.
    if count >= every and count % every == 0 and (count // every).bit_count() == 1:
        print(
            f"hlofront: {shown_line}: {name} is compiled again, for the {_ordinal(count)} time "
            f"here: {why} (HLOFRONT_WARN_RECOMPILES=0 silences this)",
            file=sys.stderr,
            flush=True,
        )


def _ordinal(count: int) -> str:
    ending = "th" if 10 <= count % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count}{ending}"


# ---- guards --------------------------------------------------------------------------------------


class _Guard:
    """A context manager that limits the number of compilations inside of its block."""

    __slots__ = ("again_only", "count", "limit", "lines")

    def __init__(self, limit: int, again_only: bool):
        self.limit = limit
        self.again_only = again_only
        self.count = 0
        self.lines: list[str] = []

    def check(self, line: str, again: bool) -> None:
        if self.again_only and not again:
            return
        self.count += 1
        self.lines.append(line)
        if self.count > self.limit:
            raise errors.RecompilationError(self._message(line))

    def _message(self, line: str) -> str:
        if self.again_only:
            return f"nothing may be compiled again here. {line}"
        before = "".join(f"\n  {earlier}" for earlier in self.lines[:-1][-8:])
        listed = f" The earlier ones:{before}" if before else ""
        return f"at most {self.limit} programs may be compiled here. {line}.{listed}"


@contextlib.contextmanager
def _guarded(limit: int, again_only: bool) -> Iterator[None]:
    guard = _Guard(limit, again_only)
    before: Sequence[_Guard] = getattr(_of_thread, "guards", ())
    _of_thread.guards = (*before, guard)
    try:
        yield
    finally:
        _of_thread.guards = before


def no_recompile() -> "contextlib._GeneratorContextManager[None]":
    """Forbid recompilation of jitted functions: a context manager, and a decorator.

    The first compilation of a function is allowed; another one, for arguments of another kind or
    because each call makes a new function object, raises the error before it is traced. It
    applies to this thread, and to calls from outside of traced functions.

    Raises:
      RecompilationError: from the call that would compile, with its file, line and differences.
    """
    return _guarded(0, True)


def max_compiles(n: int) -> "contextlib._GeneratorContextManager[None]":
    """Limit the programs compiled for jitted functions to `n`: a context manager, and a decorator.

    All programs that are traced in this thread count, including first ones, but not those of eager
    operations or of functions that are called inside of traced ones.

    Args:
      n: the greatest number of programs, not negative.

    Raises:
      ValueError: if n is negative.
      RecompilationError: from the call that would compile one too many.
    """
    if n < 0:
        raise ValueError(f"max_compiles takes how many programs may be compiled, got {n}")
    return _guarded(n, False)
