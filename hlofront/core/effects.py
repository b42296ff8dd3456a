"""Effects: what an operation does beside computing its results."""

from collections.abc import Iterable


class Effect:
    """One kind of side effect; equal effects are one. Subclasses carry what tells them apart.

    What operations with the effect are subject to is said by the class, not by the instance.
    """

    __slots__ = ()

    # Whether such operations keep their order: within a program, and from one call to the next.
    # A program with an ordered effect takes a token for it and returns one.
    ordered = False
    # Whether it happens on the host while the program runs, so that effects_barrier waits for it.
    on_host = False
    # Whether branches and bodies of loops may have it.
    in_control_flow = True
    # Whether what `checkpoint` runs again on the way back may have it.
    in_checkpoint = True
    # Whether doing it more often than the user wrote is harmless: under vmap all branches of a
    # cond run for each example, and a loop goes on for those that have ended.
    repeatable = True


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def ordered_effects(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return the ordered effects of a set, always in one order, which is that of their tokens."""
    return tuple(sorted((effect for effect in effects if effect.ordered), key=str))
