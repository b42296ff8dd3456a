"""Effects in files: by the name of their class, which has one instance up to equality."""

from collections.abc import Iterator

from hlofront.core.effects import Effect


def effect_name(effect: Effect) -> str:
    """Return the name of an effect's class, which has one instance up to equality.

    Raises:
      NotImplementedError: if its class cannot be called without arguments to give an equal effect.
    """
    kind = type(effect)
    try:
        alike = kind() == effect
    except TypeError:
        alike = False
    if not alike:
        raise NotImplementedError(  # JAX raises this class.
            f"Effect {effect} must have a nullary class constructor that produces an equal effect "
            "object to be serializable."
        )
    return str(kind)


def effect_named(name: str) -> Effect:
    """Return the effect whose class has this name.

    Raises:
      NotImplementedError: if no such class is imported.
    """
    for kind in _classes_below(Effect):
        if str(kind) == name:
            return kind()
    raise NotImplementedError(  # JAX raises this class.
        f"cannot deserialize effect type {name}: import the module that defines it first"
    )


def _classes_below(kind: type[Effect]) -> Iterator[type[Effect]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _classes_below(subclass)
