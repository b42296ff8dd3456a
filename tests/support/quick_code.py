"""A plugin of pytest that lets XLA write code quickly: `pytest -p tests.support.quick_code`.

Most tests compile thousands of programs of a few operations, each run once, to test what hlofront
says to XLA. Without LLVM's optimizations such a compilation takes two thirds of the time. `check`
names the tests that run the code that users get. XLA's older emitters,
`--xla_cpu_use_fusion_emitters=false`, would be faster still, but they write out of bounds for one
of the samples of scatter_add. Code without fusions, `--xla_disable_hlo_passes=fusion,
fusion-wrapper`, would take a fifth of the time for dots and convolutions, but has wrong results for
samples of comparisons, and takes seven times as long for polynomials.
"""

import os

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
)

# XLA reads the variable once, when the first client starts.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS]).strip()
