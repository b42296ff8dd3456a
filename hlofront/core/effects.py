"""Effects of operations, such as printing, beside computing their results."""

from collections.abc import Iterable


class Effect:
    """A kind of side effect, whose class defines how transformations and programs treat it.

    Subclasses define `__eq__` if instances differ.
    """

    __slots__ = ()

    # Whether operations with the effect are ordered, within a program and between calls. A
    # program with an ordered effect takes a token for it and returns one.
    ordered = False
    # Whether it happens on the host while the program runs, so that effects_barrier waits for it.
    on_host = False
    # Whether branches and loop bodies may have it.
    in_control_flow = True
    # Whether equations that `checkpoint` recomputes in the backward pass may have it.
    in_checkpoint = True
    # Whether extra executions are harmless: under vmap all branches of a cond run for each
    # example, and a loop continues for examples that have ended.
    repeatable = True


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def ordered_effects(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return the ordered effects of a set, sorted in the order of their tokens."""
    return tuple(sorted((effect for effect in effects if effect.ordered), key=str))
