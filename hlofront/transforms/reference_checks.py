"""The check that a function does not receive the same mutable reference twice."""

from collections.abc import Callable, Sequence

from hlofront.core.aval import typeof
from hlofront.core.jaxpr import DebugInfo, Value
from hlofront.core.references import is_reference


def check_arguments(
    leaves: Sequence[object],
    traced_for: str,
    where: Callable[[], str],
    names: Callable[[], tuple[str, ...]],
) -> None:
    """Raise ValueError if a reference is passed twice to a function.

    Args:
      leaves: the flat arguments.
      traced_for: the transformation that traces the function, such as "jit".
      where: returns the function's name and source line.
      names: returns the names of the flat arguments.
    """
    if sum(is_reference(getattr(leaf, "aval", None)) for leaf in leaves) > 1:
        check_references(DebugInfo(traced_for, where, names), leaves)


def check_references(
    info: DebugInfo | None, leaves: Sequence[object], captured: Sequence[Value] = ()
) -> None:
    """Raise ValueError if a reference is passed twice, or is passed and closed over.

    A function would see under one name what it writes under another.

    Args:
      info: the debug info of the function's program, with the names of its arguments.
      leaves: the flat arguments.
      captured: the values that the function closes over.
    """
    what = f"{info.func_src_info} for {info.traced_for}" if info else "a function"
    names = (info.arg_names if info else None) or ()
    positions: dict[int, int] = {}

    def name_of(position: int) -> str:
        return names[position] if position < len(names) else f"args[{position}]"

    for position, leaf in enumerate(leaves):
        aval = getattr(leaf, "aval", None)
        if not is_reference(aval):
            continue
        first = positions.setdefault(id(leaf), position)
        if first != position:
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to a function, "
                f"but when tracing {what} the mutable array reference of type {aval} appeared at "
                f"both {name_of(first)} and {name_of(position)}."
            )
    for value in captured:
        if id(value) in positions:
            raise ValueError(
                f"when tracing {what}, a mutable array reference of type {typeof(value)} was both "
                f"closed over and passed as the argument {name_of(positions[id(value)])}"
            )
