"""Checks of what is exported: custom calls whose meaning is stable, and host functions."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlofront.bridge.mlir import ir

_OF_EACH_DTYPE = {
    "s": "lapack_s{}_ffi",
    "d": "lapack_d{}_ffi",
    "c": "lapack_c{}_ffi",
    "z": "lapack_z{}_ffi",
}
_LAPACK = "potrf geqrf geev gesdd getrf gehrd gees trsm gtsv".split()
# The names of the real and of the complex routine, where they differ.
_LAPACK_BY_KIND = {"orgqr": "ungqr", "syevd": "heevd", "sytrd": "hetrd"}
_CUSOLVER = "getrf geqrf orgqr potrf syevd gesvd gesvdj sytrd".split()
_HIPSOLVER = "getrf geqrf orgqr potrf syevd gesvd gesvdj gesdd".split()

# The targets of custom calls that mean the same in later versions of jaxlib: JAX's list.
STABLE_TARGETS = frozenset(
    {
        *[pattern.format(name) for name in _LAPACK for pattern in _OF_EACH_DTYPE.values()],
        *[
            pattern.format(real if kind in "sd" else other)
            for real, other in _LAPACK_BY_KIND.items()
            for kind, pattern in _OF_EACH_DTYPE.items()
        ],
        *[f"cusolver_{name}_ffi" for name in _CUSOLVER],
        *[f"hipsolver_{name}_ffi" for name in _HIPSOLVER],
        "cu_lu_pivots_to_permutation",
        "hip_lu_pivots_to_permutation",
        "cusparse_gtsv2_ffi",
        "cu_threefry2x32_ffi",
        "hip_threefry2x32_ffi",
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "Eigh",
        "Qr",
        "ProductOfElementaryHouseholderReflectors",
        "LuDecomposition",
        "ApproxTopK",
        "stablehlo.dynamic_approx_top_k",
        "tf.call_tf_function",
        "tpu_custom_call",
        "AllocateBuffer",
        "mosaic_gpu_v2",
        "stablehlo.dynamic_reduce_window",
        "stablehlo.dynamic_rng_bit_generator",
        "stablehlo.dynamic_top_k",
        "shape_assertion",
    }
)


class DisabledSafetyCheck:
    """A check that an export, or a call of an exported program, leaves out.

    Example:
      >>> checks = [DisabledSafetyCheck.custom_call("my_kernel"), DisabledSafetyCheck.platform()]
      >>> spec = jax.ShapeDtypeStruct((3,), "float32")
      >>> exported = jax.export.export(jax.jit(jnp.sin), disabled_checks=checks)(spec)
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """Return the check that a program runs on a platform that it was exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """Return the check that custom calls of this target mean the same in later versions.

        The name "ALL" stands for all targets.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the target of the custom calls that are allowed; None for another check."""
        matched = re.match("custom_call:(.+)$", self._impl)
        return matched and matched.group(1)

    def __repr__(self) -> str:
        return self._impl

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    def __hash__(self) -> int:
        return hash(self._impl)


def check_custom_calls(module: "ir.Module", disabled: Iterable[DisabledSafetyCheck]) -> None:
    """Raise a ValueError if a module has custom calls whose meaning may change.

    Args:
      module: the module.
      disabled: the disabled checks; each may allow the target of one custom call.
    """
    from hlofront.bridge.mlir import ir

    allowed = {check.is_custom_call() for check in disabled}
    if "ALL" in allowed:
        return
    refused: dict[str, str] = {}
    for operation in _operations(module.operation):
        if operation.name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            if target not in STABLE_TARGETS and target not in allowed:
                refused.setdefault(target, f"{operation} at {operation.location}")
    if refused:
        names = ", ".join(map(repr, refused))
        checks = ", ".join(f"DisabledSafetyCheck.custom_call({name!r})" for name in refused)
        examples = "\n".join(refused.values())
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility "
            f"guarantees: {names}. Where it is known that they mean the same wherever the program "
            f"is loaded, pass disabled_checks=[{checks}] to export. Examples are:\n{examples}"
        )


def _operations(operation: "ir.Operation") -> "Iterator[ir.Operation]":
    """Yield all operations inside of one."""
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                inner = op.operation
                yield inner
                if len(inner.regions):
                    yield from _operations(inner)
