"""Advice, shared by error messages, about values that JAX's functions do not accept."""

# The end of errors about values that are not random keys.
RANDOM_KEY = (
    ". Functions of random numbers take a key as their first argument: key = random.key(0), and "
    "random.split(key) for more keys."
)


def no_item_assignment() -> TypeError:
    """Return the error of `x[0] = 1` for an array."""
    return TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of "
        "x[idx] = y, use x = x.at[idx].set(y) or another .at[] method; instead of x[idx] += y, "
        "x = x.at[idx].add(y)."
    )


def as_pytree(value: object, name: str = "") -> str:
    """Return advice on passing an object of a user's class; "" for values of other types.

    Args:
      value: the object.
      name: the name of the argument, if it is known.
    """
    kind = type(value)
    if kind.__module__ == "builtins":
        return ""
    what = "To jit a method, register its class" if name == "self" else "Register the class"
    return (
        f"{what} {kind.__name__} as a pytree, for example with tree_util.register_dataclass, so "
        "that its arrays are arguments."
    )


def as_static(value: object, name: str = "") -> str:
    """Return advice on passing a value that is not an array to a jitted function.

    Args:
      value: the value.
      name: the name of the argument.
    """
    register = as_pytree(value, name)
    start = f"{register} Or, if nothing in it changes" if register else "If a function needs it"
    return f"{start}, mark the argument as static, with static_argnums or static_argnames of jit."
