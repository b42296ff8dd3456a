"""Re-exports: bundles, files of programs that start without tracing and compilation.

    bundle.save("step.hlob", jax.jit(step), x, targets=["cpu", "tpu:v5e:2x2"])
    step = bundle.load("step.hlob", trust=True)  # in a process without the function
    step = bundle.attach(jax.jit(step), "step.hlob", trust=True)  # in one with it

`python -m hlofront bundle` does the same at the shell; `runtime/bundle/bundle_file.py` describes
the format.
"""

from hlofront.base.lazy import lazy as _lazy

# The names are imported on first use: calls of saved programs need neither MLIR nor lowering.
__getattr__, __dir__ = _lazy(
    __name__,
    (),
    {
        "Bundle": "hlofront.runtime.bundle.loading",
        "BundleError": "hlofront.runtime.bundle.bundle_file",
        "BundleWarning": "hlofront.runtime.bundle.programs",
        "Listing": "hlofront.runtime.bundle.listing",
        "Verdict": "hlofront.runtime.bundle.listing",
        "arguments": "hlofront.runtime.bundle.saving",
        "attach": "hlofront.runtime.bundle.loading",
        "load": "hlofront.runtime.bundle.loading",
        "ls": "hlofront.runtime.bundle.listing",
        "save": "hlofront.runtime.bundle.saving",
        "verify": "hlofront.runtime.bundle.listing",
    },
)
del _lazy
