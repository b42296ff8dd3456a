"""The bounds of a program beside the compiler's own figures: none may be above them."""

from typing import NamedTuple

import hlofront as jax
from hlofront.inspect import costs, parse
from hlofront.pjrt.targets import target as find_target
from hlotools.cost.peak import assigned_bytes

# How far a figure may be above the compiler's. Times are bounds, but for rounding. Bytes are
# counted in another way, and a peak follows from the schedule of the text, which does not say
# where XLA shares the buffers of a loop.
_MARGINS = {"bytes": 1.005, "peak": 1.02}
_ROUNDING = 1.001

# Counts in which XLA's is less, by platform, program and figure: not times, and why.
_LIBRARY = "XLA counts no bytes for cuDNN's convolutions"
OTHER_COUNTS = {
    ("cuda", "convolution", "bytes"): _LIBRARY,
    ("cuda", "strided_convolution", "bytes"): _LIBRARY,
    ("cuda", "convolution_gradient", "bytes"): _LIBRARY,
    ("cuda", "depthwise_convolution", "bytes"): _LIBRARY,
    ("cuda", "strided_convolution", "flops"): "the library multiplies padding that XLA leaves out",
    ("tpu", "softmax", "flops"): "libtpu counts no sums for a window that covers whole rows",
    ("tpu", "segments", "bytes"): "libtpu counts no bytes for the updates of its scatter kernel",
    ("tpu:v6e", "counts", "flops"): "libtpu counts no sums for what runs on the sparse cores",
}


class Held(NamedTuple):
    """A bound and the compiler's figure."""

    program: str
    figure: str
    bound: float
    figure_of_compiler: float

    @property
    def ratio(self):
        return self.bound / self.figure_of_compiler

    @property
    def is_bound(self):
        margin = _MARGINS.get(self.figure, _ROUNDING)
        return self.bound <= self.figure_of_compiler * margin


def held_of(name, program, target_name):
    """Return the bounds of a program for a target, each with the compiler's figure."""
    with find_target(target_name) as target:
        asked = {"xla_gpu_collect_cost_model_stats": True} if target.platform == "cuda" else {}
        compiled = jax.jit(program.function).lower(*program.args).compile(compiler_options=asked)
    report = costs(compiled, target)
    rows = [
        Held(name, f"time of {row.name}", row.seconds, row.compiler_seconds)
        for row in report.instructions
        if row.compiler_seconds and row.seconds
    ]
    if rows:
        estimated = [row for row in report.instructions if row.compiler_seconds is not None]
        if len(estimated) == len(report.instructions):
            rows.append(
                Held(name, "time", report.total["seconds"], report.total["compiler_seconds"])
            )
    theirs = compiled.cost_analysis()
    # XLA counts one step of a loop.
    for figure, key in (("flops", "flops"), ("bytes", "bytes accessed")):
        ours = sum((getattr(row, figure) or 0) / (row.runs or 1) for row in report.instructions)
        is_known = theirs.get(key, -1) > 0 and not report.total["unknown"]
        kinds = (target.platform, target_name.rpartition(":")[0])
        if is_known and not any((kind, name, figure) in OTHER_COUNTS for kind in kinds):
            rows.append(Held(name, figure, ours, theirs[key]))
    from_text = costs(parse(compiled.as_text())).peak_bytes
    rows.append(Held(name, "peak", from_text, assigned_bytes(compiled.memory_analysis())))
    return rows
