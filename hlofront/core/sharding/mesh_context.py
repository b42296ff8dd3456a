"""The mesh in context: the one that PartitionSpecs without a mesh refer to."""

from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.config import options
from hlofront.base.option import Option, OptionKind
from hlofront.bridge import state
from hlofront.core import trace
from hlofront.core.sharding.mesh import AbstractMesh, Mesh

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import ConfigCell

EMPTY = AbstractMesh((), ())
NO_MESH = Mesh(np.array(None, dtype=object), ())

# Values of this thread; programs depend on them, as they do on options.
_abstract = Option(
    "abstract_mesh", EMPTY, OptionKind("an AbstractMesh", lambda value: value, str), "", True
)
_concrete = Option("mesh", None, OptionKind("a Mesh or None", lambda value: value, str), "", True)


def get_abstract_mesh() -> AbstractMesh:
    """Return the mesh in context without its devices; an empty mesh if there is none.

    Inside `shard_map` its axes are of type Manual.
    """
    return _abstract.value


def context_mesh() -> Mesh | None:
    """Return the Mesh that `set_mesh` put in context, or None."""
    return _concrete.value


def get_mesh() -> Mesh:
    """Return the Mesh that `set_mesh` put in context, or an empty one.

    Raises:
      ValueError: while a function is traced, because its program may be for other devices: use
        `get_abstract_mesh` there.
    """
    if not trace.is_eager():
        raise ValueError(
            "`get_mesh` can only be used outside of `jax.jit`. Inside, the mesh without its "
            "devices is `jax.sharding.get_abstract_mesh()`"
        )
    return context_mesh() or NO_MESH


class set_mesh:
    """A function that puts a mesh in context, and a context manager that does so for a block.

    In the context, PartitionSpecs name the axes of the mesh, and computations run on its devices.
    Called as a function, it lasts until the next call; `set_mesh(None)` removes the mesh. It only
    affects the calling thread.

    Args:
      mesh: the Mesh, or None.

    Raises:
      ValueError: if it is not a Mesh, or while a function is traced.

    Example:
      >>> mesh = jax.make_mesh((1,), ("x",))
      >>> with jax.set_mesh(mesh):
      ...     x = jax.device_put(np.ones((8, 4)), jax.P("x"))
      >>> x.sharding.spec
      P('x',)
    """

    __slots__ = ("_before", "mesh")

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if not trace.is_eager():
            raise ValueError(
                "`set_mesh` can only be used outside of `jax.jit`: inside, use_abstract_mesh puts "
                "a mesh without devices in context"
            )
        self.mesh = mesh
        abstract = EMPTY if mesh is None else mesh.abstract_mesh
        self._before = _concrete.set_local(mesh), _abstract.set_local(abstract)

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *_: object) -> None:
        concrete, abstract = self._before
        _concrete.set_local(concrete)
        _abstract.set_local(abstract)


class use_abstract_mesh:
    """A context manager that puts a mesh without devices in context.

    Args:
      mesh: the AbstractMesh.

    Raises:
      ValueError: if it is not an AbstractMesh.
    """

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(
                "use_abstract_mesh takes a jax.sharding.AbstractMesh, such as mesh.abstract_mesh: "
                f"got {mesh!r} of type {type(mesh).__name__}"
            )
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        self._before = _abstract.set_local(self.mesh)
        return self.mesh

    def __exit__(self, *_: object) -> None:
        _abstract.set_local(self._before)


_check_vma = options["check_vma"]


def vma_enabled() -> bool:
    """Return whether types track how values vary along manual axes, as in a checked shard_map."""
    return _check_vma.value


class tracing_manual_axes:
    """A context manager for tracing a function that shard_map maps.

    Args:
      mesh: the mesh, with the axes that are manual inside the function.
      check_vma: whether types track along which of these axes values vary.
    """

    __slots__ = ("_before", "check_vma", "mesh")

    def __init__(self, mesh: AbstractMesh, check_vma: bool):
        self.mesh = mesh
        self.check_vma = check_vma

    def __enter__(self) -> None:
        self._before = _abstract.set_local(self.mesh), _check_vma.set_local(self.check_vma)
        if self.check_vma:
            trace.begin_matching()

    def __exit__(self, *_: object) -> None:
        if self.check_vma:
            trace.end_matching()
        _abstract.set_local(self._before[0])
        _check_vma.set_local(self._before[1])


def thread_local_cells() -> "list[ConfigCell]":
    """Return the cells of what a trace sets in its thread, apart from context variables."""
    return [_abstract.cell, _check_vma.cell, state.named_axes, state.tracing, state.folding]
