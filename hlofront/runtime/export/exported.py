"""Exported: a program as a StableHLO artifact, with all that its calls in other processes need."""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, overload

from hlofront.base.tree import PyTree
from hlofront.bridge import foreign
from hlofront.bridge.client import NamedSharding
from hlofront.bridge.kernels import load_host_kernels
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.higher_order.calls.exported_call import call_of
from hlofront.runtime.export import format as own_format
from hlofront.runtime.export import jax_format
from hlofront.runtime.export.fields import ExportedFields

if TYPE_CHECKING:
    from hlofront.bridge.mlir import ir


_FORMATS = {"hlofront": own_format, "jax": jax_format}
# The digests of the modules that this process has made and serialized, which it reads with trust.
_own_modules: set[bytes] = set()


def is_own(artifact: bytes) -> bool:
    """Return whether this process has made and serialized a module."""
    return bool(_own_modules) and hashlib.sha256(artifact).digest() in _own_modules


class Exported(ExportedFields):
    """A function lowered to StableHLO, with the types and the structure of its arguments.

    `ExportedFields` says what its attributes are.
    """

    @overload
    def mlir_module(self, serialized: Literal[True] = True) -> str: ...
    @overload
    def mlir_module(self, serialized: bool) -> "str | ir.Module": ...
    def mlir_module(self, serialized: bool = True) -> "str | ir.Module":
        """Return the StableHLO module as text, or as jaxlib's object if not `serialized`."""
        module = self.ir_module()
        if not serialized:
            return module
        return str(module.operation.get_asm(enable_debug_info=True, large_elements_limit=None))

    def ir_module(self) -> "ir.Module":
        """Return a new copy of the module, which is as it is compiled.

        Raises:
          ValueError: if jaxlib does not read the module, or it is untrusted and contains what
              untrusted modules must not.
        """
        # Loads MLIR, which a call of an executable does not need.
        from hlofront.bridge.mlir import module_of_artifact, module_of_bytecode

        if self.is_foreign:
            return module_of_bytecode(self.checked_bytecode())
        return module_of_artifact(self.mlir_module_serialized)

    def checked_bytecode(self) -> bytes:
        """Return the module of a program that was read without trust, as another process wrote it.

        Raises:
          ValueError: as `ir_module`.
        """
        targets = foreign.registered_targets()
        known: tuple[frozenset[str], bytes] | None = self.__dict__.get("_checked")
        if known is None or not known[0] <= targets:
            try:
                artifact, count = self.mlir_module_serialized, self.nr_devices
                known = targets, foreign.verified(artifact, targets, count)
            except foreign.ForeignProgramError as error:
                raise ValueError(f"the program {self.fun_name} is refused: {error}") from None
            object.__setattr__(self, "_checked", known)
        return known[1]

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[NamedSharding | None, ...]:
        """Return the sharding of each flat argument over a mesh; None where XLA decides.

        Args:
          mesh: a mesh with the axes of the mesh that the program was exported for.

        Raises:
          ValueError: if its axes differ from those of the mesh at export.
        """
        return tuple(_over(sharding, mesh) for sharding in self._in_named_shardings)

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[NamedSharding | None, ...]:
        """Return the sharding of each flat result over a mesh; None where XLA decides.

        Args:
          mesh: a mesh with the axes of the mesh that the program was exported for.

        Raises:
          ValueError: if its axes differ from those of the mesh at export.
        """
        return tuple(_over(sharding, mesh) for sharding in self._out_named_shardings)

    def serialize(
        self, vjp_order: int = 0, *, format: Literal["hlofront", "jax"] = "hlofront"
    ) -> bytearray:
        """Return the program as bytes, for `deserialize` in any process.

        Args:
          vjp_order: how many reverse-mode derivatives to include: 1 for `grad`, 2 for `grad` of
            `grad`.
          format: "hlofront", which `runtime/export/format.py` describes, or "jax", which JAX reads
            too; that one has no checksum and no weak types.

        Raises:
          ValueError: if a container's class is not registered for serialization, the derivative is
            not there, or there is no such format.
          TypeError: if a dictionary has keys that are not strings.
        """
        if format not in _FORMATS:
            raise ValueError(f"Unknown format: {format!r}. Wanted 'hlofront' or 'jax'.")
        blob = bytearray(_FORMATS[format].serialized(self, vjp_order))
        derivative = self
        for order in range(vjp_order + 1):
            derivative = derivative.vjp() if order else self
            if not derivative.is_foreign:
                _own_modules.add(hashlib.sha256(derivative.mlir_module_serialized).digest())
        return blob

    def call(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Call the program, which may be traced, differentiated in reverse mode, and batched.

        Args:
          args, kwargs: arguments of the structure, shapes and dtypes that it was exported for.

        Returns:
          The function's result, on the devices of the arguments.

        Raises:
          ValueError: if an argument has another structure, rank, shape or dtype, the program was
            not exported for this platform, or it was for another number of devices; or it was read
            without trust, and is damaged, calls code outside of it, or ends the compiler.
        """
        known: Callable[..., PyTree] | None = self.__dict__.get("_call")
        if known is None:
            if self.is_foreign:
                # Here, and not while it is lowered, when other threads wait.
                self.checked_bytecode()
            if "cpu" in self.platforms:
                load_host_kernels()
            known = call_of(self)
            object.__setattr__(self, "_call", known)
        return known(*args, **kwargs)


def _over(sharding: NamedSharding | None, mesh: Mesh | AbstractMesh) -> NamedSharding | None:
    if sharding is None:
        return None
    actual, expected = mesh.abstract_mesh, sharding.mesh
    if (actual.shape_tuple, actual.axis_types) != (expected.shape_tuple, expected.axis_types):
        raise ValueError(
            f"NamedSharding new mesh {mesh} does not match the mesh used for export {expected}."
        )
    return sharding.update(mesh=mesh)
