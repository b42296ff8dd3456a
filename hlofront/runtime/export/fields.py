"""The fields of an exported program, which its file formats write and read."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hlofront.base.tree import PyTreeDef
from hlofront.bridge.client import NamedSharding
from hlofront.core.aval import ShapedArray
from hlofront.core.effects import Effect
from hlofront.core.sizes.equations import Solution
from hlofront.higher_order.calls.exported_call import unknown_sizes_of
from hlofront.runtime.export.checks import DisabledSafetyCheck

# The calling conventions of modules: JAX's versions, which its documentation describes. The first
# argument of a module for several platforms is the platform's index, tokens of ordered effects
# come next, and then the arguments that `module_kept_var_idx` lists.
minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


@dataclass(frozen=True, eq=False, repr=False)
class ExportedFields:
    """A function lowered to StableHLO, with the types and the structure of its arguments.

    Attributes:
      fun_name: the function's name.
      in_tree: the structure of (args, kwargs), without static arguments.
      in_avals: the type of each flat argument.
      out_tree: the structure of the result.
      out_avals: the type of each flat result.
      in_shardings_hlo, out_shardings_hlo: the shardings in the exports of older versions of JAX;
        None for others.
      nr_devices: the number of devices that it was lowered for.
      platforms: the platforms that it was lowered for.
      ordered_effects, unordered_effects: its effects.
      disabled_safety_checks: the checks that were disabled.
      mlir_module_serialized: the module, a StableHLO portable artifact.
      calling_convention_version: the version of the convention of the module's arguments.
      module_kept_var_idx: the positions of the flat arguments that the module takes.
      uses_global_constants: whether the module takes a platform index, or calls one that does.
      is_foreign: whether it was read without trust, so that another process reads its module first.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    # How each argument and result is split, over meshes without devices; None where XLA decides.
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Any], Any] | None
    # Whether it is from a file that is not trusted: another process reads its module.
    is_foreign: bool = False

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    # ---- what the lowering of a call reads

    @property
    def in_splits(self) -> tuple[NamedSharding | None, ...]:
        """The split of each argument over devices; None where XLA decides."""
        return self._in_named_shardings

    @property
    def out_splits(self) -> tuple[NamedSharding | None, ...]:
        """The split of each result over devices; None where XLA decides."""
        return self._out_named_shardings

    @property
    def taken_inputs(self) -> tuple[int, ...]:
        """The positions of the flat arguments that the module takes."""
        return self.module_kept_var_idx

    @functools.cached_property
    def unknown_sizes(self) -> Solution | None:
        """The size variables as functions of the arguments' sizes; None if all sizes are known."""
        return unknown_sizes_of(self.in_avals, self.in_tree)

    @property
    def any_platform(self) -> bool:
        """True if the program may run on platforms that it was not exported for."""
        return DisabledSafetyCheck.platform() in self.disabled_safety_checks

    # ---- derivatives

    def has_vjp(self) -> bool:
        """Return whether the export includes the program's reverse-mode derivative."""
        return self._get_vjp is not None

    def vjp(self) -> Self:
        """Return the exported derivative, a function of the flat arguments and then cotangents.

        Its cotangents are one for each flat result, and its results one for each flat argument.

        Raises:
          ValueError: if it was not serialized with the program.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for {self.fun_name}: serialize it with vjp_order=1, or 2 for "
                "derivatives of derivatives"
            )
        known: Self | None = self.__dict__.get("_vjp")
        if known is None:
            known = self._get_vjp(self)
            object.__setattr__(self, "_vjp", known)
        return known
