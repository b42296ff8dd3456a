"""The options of JAX as attributes, each with a `value`: the contents of `jax._src.config`."""

# pyright: strict

from hlofront.base.config import options
from hlofront.base.option import Option

_PREFIX = "jax_"
OPTIONS = {
    name.removeprefix(_PREFIX): option
    for name, option in options.items()
    if name.startswith(_PREFIX)
}


def __getattr__(name: str) -> Option:
    if name in OPTIONS:
        return OPTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
