"""Which variables of the user's hold the arrays that are alive: for errors of too little memory."""

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType, FunctionType, ModuleType
from typing import Any

from hlofront.base import source
from hlofront.base.array_lines import line_of
from hlofront.base.errors import JaxRuntimeError
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import state
from hlofront.pjrt.clients import clients

# How many containers a variable and an array in it may have between them.
_DEPTH = 8
_WIDTH = 14
_NOTHING: frozenset[int] = frozenset()
WAYS_OUT = (
    "To use less memory: delete arrays that are not needed (`del`, or x.delete()) and donate "
    "arguments (donate_argnames); recompute in derivatives (jax.checkpoint); or take smaller "
    "batches, or more devices."
)
_UNKNOWN = "(no variable)"


class ArrayOwner(NamedTuple):
    """A variable, and the arrays that it holds, alone or inside of containers.

    Attributes:
      name: the variable, such as "params", or "self.cache".
      where: what it belongs to: "main at train.py:31", or "module train".
      count: the number of arrays.
      bytes: the bytes of all of them, on all of their devices.
      largest: the type of the largest, such as "float32[1024,1024]".
      made_at: the line that made the largest, such as "train.py:31"; "" unless the option
        `hlofront_array_lines` was on at that time.
    """

    name: str
    where: str
    count: int
    bytes: int
    largest: str
    made_at: str = ""

    def text(self, width: int = 0) -> str:
        """Return the owner as a line, whose number of bytes is as wide as `width`."""
        arrays = "1 array" if self.count == 1 else f"{self.count} arrays, the largest"
        where = f" in {self.where}" if self.where else ""
        made = f" made at {self.made_at}" if self.made_at else ""
        return f"{self.bytes:>{width},} bytes  {self.name}{where}: {arrays} {self.largest}{made}"


def array_owners(arrays: Sequence[Any] | None = None) -> list[ArrayOwner]:
    """Return which variables hold arrays, those of the most bytes first.

    These are variables of functions that run, in any thread, of modules, and that functions
    enclose; the array may be in lists, dictionaries and objects in it. An array that several hold
    is the nearest one's, those of the innermost function first and those of modules last. Arrays
    that no variable holds are grouped by the lines that made them. These lines are recorded while
    `jax.config.update("hlofront_array_lines", True)` is set, which makes calls slower.

    Args:
      arrays: arrays; by default all that are alive on all devices.

    Example:
      >>> from hlofront.inspect import array_owners
      >>> params = {"w": jnp.ones((512, 512)), "b": jnp.ones(512)}
      >>> [owner.bytes for owner in array_owners(list(params.values())) if owner.name == "params"]
      [1050624]
    """
    if arrays is None:
        arrays = _alive()
    sizes = {id(x): _size(x) for x in arrays}
    names = _names_of(arrays)
    owned: dict[tuple[str, str, str], list[Any]] = {}
    for x in arrays:
        name, where = names.get(id(x), (_UNKNOWN, ""))
        owned.setdefault((name, where, line_of(x) if name == _UNKNOWN else ""), []).append(x)
    rows = []
    for (name, where, _), held in owned.items():
        largest = max(held, key=lambda x: sizes[id(x)])
        total = sum(sizes[id(x)] for x in held)
        shape = ",".join(map(str, largest.shape))
        kind = f"{largest.dtype}[{shape}]"
        rows.append(ArrayOwner(name, where, len(held), total, kind, line_of(largest)))
    return sorted(rows, key=lambda row: -row.bytes)


def owners_text(most: int = 6) -> str:
    """Return a table of who holds the arrays of all devices, or "" if there are none."""
    arrays = _alive()
    rows = array_owners(arrays)
    if not rows:
        return ""
    total = sum(row.bytes for row in rows)
    lines = [f"{total:,} bytes are held by {len(arrays)} arrays:"]
    lines += [row.text(_WIDTH) for row in rows[:most]]
    if rows[most:]:
        rest = sum(row.bytes for row in rows[most:])
        lines.append(f"{rest:>{_WIDTH},} bytes  by {len(rows) - most} others")
    return "\n".join(lines)


def _alive() -> list[Any]:
    return [x for client in clients().values() for x in client.live_arrays()]


def with_owners(error: JaxRuntimeError) -> JaxRuntimeError:
    """Return the error of a computation that ran out of memory, with who holds memory then."""
    owners = owners_text()
    told = f" When its result was waited for, {owners}\n{WAYS_OUT}" if owners else ""
    return JaxRuntimeError(f"{error}{told}")


def _size(array: Any) -> int:
    """Return the bytes of an array on all of its devices."""
    shard = array.sharding.shard_shape(array.shape)
    count = len(array.sharding.device_set)
    size = array.dtype.itemsize * count
    for length in shard:
        size *= length
    return size


# ---- from arrays to variables --------------------------------------------------------------------


def _names_of(arrays: Sequence[Any]) -> dict[int, tuple[str, str]]:
    """Return the variable that holds each array, and what it belongs to, by the array's id.

    The search goes from arrays to what refers to them, one pass over all objects for each step.
    """
    variables = _variables()
    found: dict[int, tuple[str, str]] = {}
    # The objects that hold arrays, by id: what they hold, and the ids of these arrays.
    held = {id(x): {id(x)} for x in arrays}
    objects = [x for x in gc.get_objects() if not isinstance(x, FrameType)]
    # What each object was seen to hold: it may be reached by ways of several lengths.
    seen: dict[int, set[int]] = {}
    own = {id(arrays), id(objects)}
    for _ in range(_DEPTH):
        for holder, inner in held.items():
            if holder in variables:
                for array in inner:
                    found.setdefault(array, variables[holder])
            seen.setdefault(holder, set()).update(inner)
        held = {key: inner - found.keys() for key, inner in held.items()}
        held = {key: inner for key, inner in held.items() if inner}
        if not held:
            break
        above: dict[int, set[int]] = {}
        for holder in objects:
            if id(holder) in own or isinstance(holder, ModuleType):
                continue
            for each in gc.get_referents(holder):
                new = held.get(id(each), _NOTHING) - seen.get(id(holder), _NOTHING)
                if new:
                    above.setdefault(id(holder), set()).update(new)
        held = above
    return found


def _variables() -> dict[int, tuple[str, str]]:
    """Return the variables of all functions that run and of all modules, by their values' ids."""
    found: dict[int, tuple[str, str]] = {}
    for frame in _user_frames():
        line = source.shown_line(frame.f_code.co_filename, frame.f_lineno)
        where = f"{frame.f_code.co_qualname} at {line}"
        for name, value in _with_attributes(frame.f_locals.items()):
            found.setdefault(id(value), (name, where))
    for name, module in list(sys.modules.items()):
        if type(module) is not ModuleType:
            continue
        file = vars(module).get("__file__")
        if file is None or source.is_user_file(str(file)):
            for key, value in _with_attributes(list(vars(module).items())):
                found.setdefault(id(value), (key, f"module {name}"))
    return found


def _with_attributes(variables: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield variables, the attributes of objects, and what functions enclose."""
    for name, value in variables:
        # Not `isinstance`, which lets proxies of a user's compute what they stand for.
        kind: type = type(value)
        if name.startswith("__") or issubclass(kind, type | ModuleType):
            continue
        if kind is FunctionType:
            for key, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                try:
                    yield f"{key}, which {name} encloses", cell.cell_contents
                except ValueError:  # It is not assigned yet.
                    continue
            continue
        yield name, value
        try:
            attributes = object.__getattribute__(value, "__dict__")
        except AttributeError:
            continue
        if type(attributes) is dict and kind is not state.ArrayImpl:
            for key, inner in list(attributes.items()):
                yield f"{name}.{key}", inner


def _user_frames() -> Iterator[FrameType]:
    """Yield the frames of the user's functions, of this thread first, the innermost first."""
    current = sys._getframe()
    others = [frame for frame in sys._current_frames().values() if frame is not current]
    for frame in (current, *others):
        at: FrameType | None = frame
        while at is not None:
            if source.is_user_file(at.f_code.co_filename):
                yield at
            at = at.f_back
