"""A plugin of pytest that lets XLA write code quickly: `pytest -p tests.support.quick_code`.

The corpora compile some ten thousand programs of a few operations, each run once, and compare
what hlofront said to XLA. LLVM's expensive passes and the emitter of fusions take two thirds of the
time of such a compilation. All other tests run the code that users get.
"""

import os

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
)

# XLA reads the variable once, when the first client starts.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS]).strip()
