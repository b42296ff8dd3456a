"""The table of Mosaic rules, which lower primitives to operations of a TPU's kernel."""

from collections.abc import Callable
from typing import Any, Concatenate

from hlofront.core.rules import RuleTable

# The arguments are a KernelBuilder and the operands: values of MLIR and references (KernelRef).
MosaicRule = Callable[Concatenate[Any, ...], Any]

mosaic: RuleTable[MosaicRule] = RuleTable(
    "mosaic", "pallas/mosaic/", "Which operations of Mosaic is it, in a kernel of a TPU?"
)

_IN_A_LOOP = "write to a reference in a loop, as in ref[pl.ds(i, 1), :] = row"
_BY_PRODUCT = "multiply by a triangular matrix of ones, or loop over the rows of a reference"
_BY_COPIES = (
    "copy between devices by pltpu.make_async_remote_copy, or call it outside of the kernel"
)
_BY_BITS = "make random bits outside of the kernel, or by pltpu.prng_random_bits"
_ON_HOST = "call Python outside of the kernel; pl.debug_print prints in kernels"
# Replacements to suggest for operations that kernels lack.
_INSTEAD: dict[str, str] = {
    **dict.fromkeys(("cumsum", "cumlogsumexp", "cummax", "cummin", "cumprod"), _BY_PRODUCT),
    **dict.fromkeys(("all_gather", "all_to_all", "ppermute", "psum", "reduce_scatter"), _BY_COPIES),
    **dict.fromkeys(("debug_callback", "io_callback", "pure_callback"), _ON_HOST),
    **dict.fromkeys(("random_bits", "random_fold_in", "random_seed", "random_split"), _BY_BITS),
    **dict.fromkeys(("scatter", "scatter-add", "scatter-max", "scatter-min"), _IN_A_LOOP),
    "conv_general_dilated": "add the products of shifted slices, by jnp.dot",
    "dynamic_slice": "read a part of a reference, as in ref[pl.ds(start, 8), :]",
    "dynamic_update_slice": "write to a part of a reference, as in ref[pl.ds(start, 8), :] = x",
    "pallas_call": "call the kernels in sequence, or use pltpu.emit_pipeline",
    "ragged_dot_general": "loop over the groups, and multiply each by jnp.dot",
    "reduce_prod": "multiply slices of the array in a loop",
    "rev": "index the blocks backwards, or copy rows to a reference in a loop",
    "top_k": "take jnp.max and jnp.argmax in a loop",
}


def instead_of(primitive: str) -> str:
    """Return the replacement to suggest for a primitive without a rule."""
    return _INSTEAD.get(primitive, "compute it outside of the kernel, or by others")
