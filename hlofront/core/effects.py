"""Effects of operations, such as printing, apart from their results."""

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
    in_control_flow = False
    # Whether programs that are compiled may have it.
    lowerable = False
    # Whether equations that `checkpoint` recomputes in the backward pass may have it.
    in_checkpoint = True
    # Whether extra executions are harmless: under vmap all branches of a cond run for each
    # example, and a loop continues for examples that have ended.
    repeatable = True


class OwnEffect(Effect):
    """The base class of this package's effects, which are allowed in all programs."""

    __slots__ = ()
    in_control_flow = True
    lowerable = True


class EffectTypes:
    """The classes of effects that something may have; other packages may add classes.

    Args:
      attribute: the name of the attribute of these classes that is True.
    """

    def __init__(self, attribute: str):
        self._attribute = attribute

    def add_type(self, effect_type: type[Effect]) -> None:
        """Allow effects of a class and of its subclasses."""
        setattr(effect_type, self._attribute, True)

    def contains(self, eff: Effect) -> bool:
        """Return whether this set allows the class of an effect."""
        return getattr(eff, self._attribute, False)

    def filter_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return the effects whose classes this set allows."""
        return [effect for effect in effects if self.contains(effect)]

    def filter_not_in(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return the effects whose classes this set does not allow."""
        return [effect for effect in effects if not self.contains(effect)]


control_flow_allowed_effects = EffectTypes("in_control_flow")
lowerable_effects = EffectTypes("lowerable")

Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def ordered_effects(effects: Iterable[Effect]) -> tuple[Effect, ...]:
    """Return the ordered effects of a set, sorted in the order of their tokens."""
    return tuple(sorted((effect for effect in effects if effect.ordered), key=str))
