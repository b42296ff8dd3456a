"""Values with mutable state, which packages define by MutableHiTypes, and operations on them.

No tracer stands for such a value: operations run on an object of the user's class, whose low values
may be tracers. A traced function changes its own copy of the object. If an object comes from
outside the program, its contents are read from and written to mutable references, which `operate`
creates when the program first uses the object.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, cast
from weakref import WeakKeyDictionary, ref

from hlofront.base import tree
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.core.aval import typeof
from hlofront.core.high_types import AvalQDD, MutableHiType, is_mutable, mutable_types_exist
from hlofront.core.trace import Trace, Tracer, current_trace, interpreting_with
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.references import references


def has_state(x: object) -> bool:
    """Return whether operations can change a value."""
    return is_mutable(x) and typeof(cast(Any, x)).has_qdd


def makes_state(type_: object) -> bool:
    """Return whether results of a type are objects of a user's class that may have state."""
    return isinstance(type_, AvalQDD | MutableHiType)


class _Stored(NamedTuple):
    """The references that hold the low values of an object, and its state, which never changes."""

    state: Any
    refs: Sequence[Any]

    def read(self) -> list[Any]:
        return [ref[...] for ref in self.refs]

    def keep(self, type_: Any, state: Any, low: Sequence[Any]) -> bool:
        """Write low values if their state differs only in weak types; return whether it does."""
        types = [(typeof(value).shape, typeof(value).dtype) for value in low]
        if types != [(ref.shape, ref.dtype) for ref in self.refs]:
            return False
        strong = _without_weak_types(low)
        if _state(_raised(type_, state, strong)) != self.state:
            return False
        for each, value in zip(self.refs, strong, strict=True):
            each[...] = value
        return True


def _without_weak_types(low: Sequence[Any]) -> list[Any]:
    return [convert(value, typeof(value).dtype, False) for value in low]


class _Objects:
    """The mutable objects of high types that were made while a trace was the current one.

    Attributes:
      own: the objects, by their ids.
      stored: the objects whose low values are in references, by their ids.
    """

    def __init__(self):
        self.own: dict[int, object] = {}
        self.stored: dict[int, _Stored] = {}


_objects: WeakKeyDictionary[Trace, _Objects] = WeakKeyDictionary()
# Whether operations act on the objects themselves, as while a type's method converts one.
_converting: ContextVar[bool] = ContextVar("converting a value with a state", default=False)


class _Conversion:
    """A context in which operations act on mutable objects rather than on their references."""

    __slots__ = ("token",)

    def __enter__(self) -> None:
        self.token = _converting.set(True)

    def __exit__(self, *_: object) -> None:
        _converting.reset(self.token)


def made(x: object) -> Any:
    """Return a newly made object, and record it for the current trace."""
    trace = current_trace()
    # The engine has no parent, and owns every object that no trace recorded.
    if hasattr(trace, "parent"):
        _objects.setdefault(trace, _Objects()).own[id(x)] = x
    return x


class _Owner:
    """The trace in which an object was made, seen from the current trace.

    Attributes:
      home: the trace in which it was made.
      inside: the traces from the current one to its home, excluding the home.
    """

    def __init__(self, x: object):
        self.x = x
        self.inside: list[Trace] = []
        trace = current_trace()
        while (parent := getattr(trace, "parent", None)) is not None:
            if trace in _objects and id(x) in _objects[trace].own:
                break
            self.inside.append(trace)
            trace = parent
        self.home = trace

    @property
    def stored(self) -> _Stored | None:
        """The references that hold the object's low values, or None."""
        objects = _objects.get(self.home)
        return None if objects is None else objects.stored.get(id(self.x))

    @property
    def is_within(self) -> bool:
        """True if no program is being traced between the object's home and the current trace."""
        return not any(trace.stages for trace in self.inside)

    def store(self) -> _Stored:
        """Store the object's low values in references, unless they are already; return these."""
        stored = self.stored
        if stored is None:
            with interpreting_with(self.home):
                state, low = _read_object(self.x)
                # A reference cannot change its type, so with a weak type all later values would be
                # weak.
                refs = [references.new_ref(value) for value in _without_weak_types(low)]
                state = _state(_raised(_type(self.x), state, [ref[...] for ref in refs]))
                stored = _Stored(state, refs)
            _objects.setdefault(self.home, _Objects()).stored[id(self.x)] = stored
            if not hasattr(self.home, "parent"):
                _keep_while_alive(self.x)
        return stored

    def move_back(self) -> None:
        """Move the low values from references back to the object, to change its structure."""
        stored = self.stored
        if stored is not None:
            del _objects[self.home].stored[id(self.x)]
            _update(self.x, stored.state, stored.read())
            for ref in stored.refs:
                references.free_ref(ref)

    def check(self, values: Sequence[object]) -> None:
        """Check that these values may be stored in the object.

        Raises:
          ValueError: if one has a derivative or is batched, because the object would outlive that.
        """
        for value in values:
            if isinstance(value, Tracer) and value._trace in self.inside:  # pyright: ignore[reportPrivateUsage]
                if value._trace.stages:  # pyright: ignore[reportPrivateUsage]
                    continue
                raise ValueError(
                    f"a value of type {_type(self.x).str_short()} was made outside of a function "
                    "that is differentiated or mapped, which gives it one of its own values, of "
                    f"type {value.aval}. Return the value from the function; "
                    "jax.lax.stop_gradient gives one without derivatives"
                )


def _keep_while_alive(x: object) -> None:
    """Drop the references of an object that the engine owns when the object is deleted."""
    home = _Owner(x).home
    key = id(x)
    objects = _objects[home]

    def forget(_: object) -> None:
        objects.stored.pop(key, None)
        objects.own.pop(key, None)

    try:
        objects.own[key] = ref(cast(Any, x), forget)
    except TypeError:  # The object's class has no __weakref__.
        objects.own[key] = x


# ---- methods of types ----------------------------------------------------------------------------


def _type(x: object) -> Any:
    return typeof(cast(Any, x))


def _state(x: Any) -> Any:
    with _Conversion():
        return x.cur_qdd()


def _read_object(x: object) -> tuple[Any, list[Any]]:
    with _Conversion():
        state = cast(Any, x).cur_qdd()
        return state, list(_type(x).read_loval(state, x))


def _update(x: object, state: object, low: Sequence[object]) -> None:
    with _Conversion():
        _type(x).update_from_loval(state, x, *low)


def _raised(type_: Any, state: Any, low: Sequence[Any]) -> Any:
    with _Conversion():
        return made(type_.new_from_loval(state, *low))


# ---- operations ----------------------------------------------------------------------------------


def cur_qdd(x: Any) -> Any:
    """Return the current state of a value: the types and structure of its low values."""
    if not has_state(x) or _converting.get():
        return x.cur_qdd()
    stored = _Owner(x).stored
    return x.cur_qdd() if stored is None else stored.state


def read(x: object) -> tuple[Any, list[Any]]:
    """Return the state of a value, and the low values that it holds."""
    owner = _Owner(x)
    if owner.stored is None and owner.is_within:
        return _read_object(x)
    stored = owner.store()
    return stored.state, stored.read()


def write(x: object, state: object, low: Sequence[object]) -> None:
    """Set the state and the low values of a value.

    Raises:
      TypeError: if a program changes the state of a value that comes from outside the program.
      ValueError: if a low value has a derivative or is batched, and the object is from outside.
    """
    owner = _Owner(x)
    owner.check(low)
    stored = owner.stored
    if stored is None and not owner.is_within:
        stored = owner.store()
    if stored is not None and stored.keep(_type(x), state, low):
        return
    if owner.is_within:
        owner.move_back()
        _update(x, state, low)
        return
    raise TypeError(
        f"a traced function changes the state of a value of type {_type(x).str_short()} that it "
        f"closes over, from {cast(_Stored, stored).state} to {state}: its types and structure must "
        "stay the same. Pass the value as an argument of a jitted function, which may change them"
    )


def operate(
    run: Callable[..., object], primitive: object, args: Sequence[object], params: dict[str, Any]
) -> Any:
    """Run an operation on values, some of which have state, and store their new states.

    Args:
      run: the operation, which takes operands and parameters.
      primitive: the primitive, for messages.
      args: the operands.
      params: the parameters.
    """
    copies: list[tuple[object, object, Any, list[Any]]] = []
    operands: list[Any] = []
    for x in args:
        if not has_state(x) or _converting.get():
            operands.append(x)
            continue
        owner = _Owner(x)
        if owner.stored is None and owner.is_within:
            owner.check([arg for arg in args if not has_state(arg)])
            operands.append(x)
            continue
        state, low = read(x)
        copy = _raised(_type(x), state, low)
        copies.append((x, copy, state, low))
        operands.append(copy)
    result = run(*operands, **params)
    for x, copy, state, low in copies:
        state_after, low_after = _read_object(copy)
        same = len(low) == len(low_after) and all(map(_is, low, low_after))
        if state_after != state or not same:
            write(x, state_after, low_after)
    return result


def _is(a: object, b: object) -> bool:
    return a is b


# ---- arguments of functions ----------------------------------------------------------------------


class PassedState:
    """A value with a state as an argument or result of a program: its low values.

    Attributes:
      type: the value's type.
      state: its state.
      low: the low values.
    """

    __slots__ = ("low", "state", "type")

    def __init__(self, type_: Any, state: Any, low: Sequence[Any]):
        self.type = type_
        self.state = state
        self.low = low


tree.register_pytree_node(
    PassedState,
    lambda passed: (tuple(passed.low), (passed.type, passed.state)),
    lambda kind, low: PassedState(kind[0], kind[1], low),
)


def _passed(x: object) -> PassedState:
    return PassedState(_type(x), *read(x))


def passed_states(args: PyTree) -> tuple[PyTree, list[object]]:
    """Return arguments with PassedStates instead of values with state, and these values.

    Raises:
      ValueError: if the same value is passed twice.
    """
    objects: list[object] = []
    if mutable_types_exist():
        objects = [x for x in tree.tree_leaves(args) if has_state(x)]
    if not objects:
        return args, objects
    if len(set(map(id, objects))) < len(objects):
        raise ValueError(
            f"a value of type {_type(objects[0]).str_short()} is passed twice to one function, "
            "which would see through one name what it changes through another: pass it once"
        )

    def passed(x: object) -> Any:
        return _passed(x) if has_state(x) else x

    return tree.tree_map(passed, args), objects


def on_passed_states(fun: Callable[..., PyTree]) -> Callable[..., tuple[PyTree, list[PassedState]]]:
    """Return a function of PassedStates that returns the result and the states after the call."""

    def on_passed(*args: PyTree, **kwargs: PyTree) -> tuple[PyTree, list[PassedState]]:
        objects: list[Any] = []

        def raised(x: object) -> Any:
            if type(x) is not PassedState:
                return x
            objects.append(_raised(x.type, x.state, x.low))
            return objects[-1]

        args, kwargs = tree.tree_map(raised, (args, kwargs), is_leaf=_is_passed)
        result = fun(*args, **kwargs)
        return result, [_passed(x) for x in objects]

    return on_passed


def keep_states(objects: Sequence[object], left: Sequence[PassedState]) -> None:
    """Set values to the states that a function returned."""
    for x, passed in zip(objects, left, strict=True):
        write(x, passed.state, list(passed.low))


class _Held:
    """An argument that is not an array; its identity is part of the arguments' structure."""

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is _Held and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


tree.register_static(_Held)


def _is_held(x: object) -> bool:
    return type(x) is _Held


def _is_passed(x: object) -> bool:
    return type(x) is PassedState


def closing_over_states(
    functions: Sequence[Callable[..., PyTree]], operands: tuple[PyTree, ...]
) -> tuple[Sequence[Callable[..., PyTree]], tuple[PyTree, ...]]:
    """Return functions that close over operands with state, and the remaining operands."""
    if not (mutable_types_exist() and any(map(has_state, tree.tree_leaves(operands)))):
        return functions, operands

    def held(x: object) -> Any:
        return _Held(x) if has_state(x) else x

    def released(x: object) -> Any:
        return x.value if type(x) is _Held else x

    operands = tree.tree_map(held, operands)

    def closing_over(fun: Callable[..., PyTree]) -> Callable[..., PyTree]:
        def closed(*args: PyTree) -> PyTree:
            return fun(*tree.tree_map(released, args, is_leaf=_is_held))

        return closed

    return [closing_over(fun) for fun in functions], operands


def refuse_states(avals: Sequence[object]) -> None:
    """Raise TypeError if a program has an input whose type has state."""
    for aval in avals:
        if isinstance(aval, MutableHiType):
            raise TypeError(
                f"a value of type {aval.str_short()} has a state, and is neither carried by loops "
                "nor an argument of a function that is lowered ahead of time: let the function "
                "close over it, or pass the arrays that it holds"
            )
