"""How `import jax` is made to import hlofront: for a block, or for the rest of the process."""

# pyright: strict

import importlib
import importlib.util
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from hlofront.bridge.jax_shims import shims_installed
from hlofront.jax_names import deprecated, naming, private, public, version

# ---- modules under the name jax ------------------------------------------------------------------


if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder


class JaxFinder:
    """The finder of `jax`, its public modules that hlofront has, and the listed private ones.

    A module is created when it is first imported. Modules that are not listed do not exist, even if
    an installed jax has them.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of JAX's names; None for other modules and absent ones."""
        if name in private.MODULES:
            is_package = private.is_package(name)
            return _spec(name, _PrivateLoader(), is_package, private.__file__)
        own = naming.own_name(name)
        if own is not None:
            own_spec = _spec_of(own)
            return own_spec and _spec(name, naming.AliasLoader(own), True, own_spec.origin)
        home = public.home_of(name)
        if home is None:
            return None
        home_spec = _spec_of(home)
        return home_spec and _spec(
            name, _PublicLoader(home), public.is_package(name), home_spec.origin
        )

    def find_distributions(
        self, context: "DistributionFinder.Context | None" = None
    ) -> "Iterable[Distribution]":
        """Return the distribution `jax` if the context requests it, for `importlib.metadata`."""
        from hlofront.jax_names.distribution import distributions

        return distributions(context)


def _spec_of(home: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(home)
    except ModuleNotFoundError:  # JAX has a package here, hlofront a single file.
        return None


def _spec(name: str, loader: object, is_package: bool, origin: str | None) -> ModuleSpec:
    # Loaders need no base class at run time, and importing it would take time.
    spec = ModuleSpec(name, loader, origin=origin, is_package=is_package)  # pyright: ignore[reportArgumentType]
    # The module's `__file__` is that of its home, where its source is.
    spec.has_location = origin is not None
    return spec


class _PublicLoader:
    """The loader of a public module, which fills it with the contents of hlofront's module."""

    def __init__(self, home: str):
        self._home = home

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        naming.rename_all()
        home = importlib.import_module(self._home)
        name = module.__name__
        contents = vars(module)
        moved = public.MOVED.get(name, {})
        former_names = deprecated.DEPRECATED.get(name, {}).keys()
        absent = public.ABSENT.get(name, frozenset()) | moved.keys() | former_names
        listed: Sequence[str] = getattr(home, "__all__", ())
        if "__all__" in vars(home):
            contents["__all__"] = [key for key in listed if key not in absent]
        for key, value in vars(home).items():
            is_public = key in listed if listed else not key.startswith("_")
            if isinstance(value, ModuleType):
                # Modules of jaxlib may be public names; those of hlofront are known by JAX's names.
                is_public = key in listed and value.__name__.startswith("jaxlib.")
            if is_public and key not in absent:
                contents[key] = value
                naming.rename_public(name, key, value)
        module.__doc__ = home.__doc__
        contents["__getattr__"], contents["__dir__"] = _lazy_names(module, home, absent, moved)
        if name == "jax":
            contents["__version__"] = version.__version__
            contents["__version_info__"] = version.__version_info__


def _lazy_names(
    module: ModuleType, home: ModuleType, absent: frozenset[str], moved: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a public module.

    They cover its submodules, the lazy names of `home` except those in `absent`, and the names in
    `moved`, which maps names to the modules that they have moved to.
    """
    name = module.__name__
    replaced, removed = deprecated.DEPRECATED.get(name, {}), deprecated.REMOVED.get(name, {})

    def __getattr__(key: str) -> object:
        missing = AttributeError(f"module {name!r} has no attribute {key!r}")
        if f"{name}.{key}" in private.MODULES or f"{name}.{key}" in public.MODULES:
            return _submodule(f"{name}.{key}", missing)
        if key in moved:
            message = f"{name}.{key} is deprecated: it is {moved[key]}.{key} now"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module(moved[key]), key)
        if key in removed:
            raise AttributeError(f"{name}.{key} {removed[key]}")
        if key in replaced:
            message = f"{name}.{key} is deprecated."
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            former_home, former_key = replaced[key]
            return getattr(importlib.import_module(former_home), former_key)
        if key.startswith("_") or key in absent:
            raise missing
        try:
            value = getattr(home, key)
        except AttributeError as error:
            raise AttributeError(str(error).replace(home.__name__, name)) from None
        if isinstance(value, ModuleType):
            raise missing
        if key in vars(home):
            naming.rename_public(name, key, value)
            setattr(module, key, value)
        return value

    def __dir__() -> list[str]:
        shown = {key for key in dir(home) if not key.startswith("_")} - absent
        for key, value in vars(home).items():
            if isinstance(value, ModuleType) and f"{name}.{key}" not in public.MODULES:
                shown.discard(key)
        return sorted({*vars(module), *shown})

    return __getattr__, __dir__


def _submodule(name: str, missing: AttributeError) -> ModuleType:
    """Import a module of JAX's names; raise the error `missing` if it does not exist."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            raise missing from None
        raise


class _PrivateModule(ModuleType):
    """A private module of JAX. Its names are read from, and set in, the modules that define them.

    Libraries set them to change JAX's behavior by replacing its private functions.
    """

    def __init__(self, name: str):
        super().__init__(name, private.__doc__)
        # Name -> its value before it was set.
        self._replaced: dict[str, object] = {}

    def _home_of(self, key: str) -> tuple[ModuleType, str] | None:
        home = private.MODULES[self.__name__].get(key)
        return None if home is None else (importlib.import_module(home[0]), home[1])

    def __getattr__(self, key: str) -> object:  # pyrefly: ignore[bad-override-param-name]
        missing = AttributeError(f"module {self.__name__!r} has no attribute {key!r}")
        if f"{self.__name__}.{key}" in private.MODULES:
            return _submodule(f"{self.__name__}.{key}", missing)
        home = self._home_of(key)
        if home is None:
            raise missing
        return getattr(*home)

    def __setattr__(self, key: str, value: object) -> None:
        home = self._home_of(key)
        if home is None:
            super().__setattr__(key, value)
        else:
            self._replaced.setdefault(key, getattr(*home))
            setattr(*home, value)

    def __delattr__(self, key: str) -> None:
        home = self._home_of(key)
        if home is None or key not in self._replaced:
            super().__delattr__(key)
        else:
            setattr(*home, self._replaced.pop(key))

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *private.MODULES[self.__name__]})


class _PrivateLoader:
    """The loader of a private module, which looks up each name when it is used."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _PrivateModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


_TOP = "jax"
_lock = threading.RLock()
_finder = JaxFinder()


def open_names() -> None:
    """Make `import jax`, and the imports of its submodules, import hlofront from now on.

    No module of jax is imported and no device is used before the program needs one. Nothing happens
    if the names are already open.

    Raises:
      ImportError: if another module named jax is imported already.
    """
    with _lock:
        if _finder in sys.meta_path:
            return
        # jaxlib's C++ imports some of these modules, which are now hlofront's.
        with shims_installed.excluded():
            if _TOP in sys.modules:
                raise ImportError(
                    "hlofront can be imported as jax only before jax is: a module jax is imported "
                    "already. Put `import hlofront.as_jax` before all imports that use jax, or "
                    "start the program by `python -m hlofront as-jax SCRIPT`."
                )
            shims_installed.needed = False
            sys.meta_path.insert(0, _finder)  # pyright: ignore[reportArgumentType]


def _close_names() -> None:
    with _lock, shims_installed.excluded():
        sys.meta_path.remove(_finder)  # pyright: ignore[reportArgumentType]
        for name in [*sys.modules]:
            if name.partition(".")[0] == _TOP:
                del sys.modules[name]
        naming.restore_all()
        shims_installed.needed = True


@contextmanager
def as_jax() -> Generator[ModuleType]:
    """Make `import jax` import hlofront inside a `with` block, for tests; yield the module `jax`.

    Modules that are imported in the block keep their references to hlofront afterwards. The block
    has no effect in a process that has imported `hlofront.as_jax`.

    Example:
      >>> with as_jax() as jax:
      ...     import jax.numpy as jnp

    Raises:
      ImportError: if another module named jax is imported already.
    """
    with _lock:
        was_open = _finder in sys.meta_path
    open_names()
    try:
        yield importlib.import_module(_TOP)
    finally:
        if not was_open:
            _close_names()
