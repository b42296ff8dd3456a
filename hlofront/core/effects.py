"""Effects: what an operation does beside computing its results."""


class Effect:
    """One kind of side effect; equal effects are one. Subclasses carry what tells them apart."""

    __slots__ = ()


Effects = frozenset[Effect]
no_effects: Effects = frozenset()
