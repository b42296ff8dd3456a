"""Re-exports: bundles, files of programs that start without tracing and compilation.

    bundle.save("step.hlob", jax.jit(step), x, targets=["cpu", "tpu:v5e:2x2"])
    step = bundle.load("step.hlob", trust=True)  # in a process without the function
    step = bundle.attach(jax.jit(step), "step.hlob", trust=True)  # in one with it

`python -m hlofront bundle` does the same at the shell; `runtime/bundle/bundle_file.py` describes
the format.
"""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    later={
        "hlofront.runtime.bundle.bundle_file": "BundleError",
        "hlofront.runtime.bundle.listing": "Listing Verdict ls verify",
        "hlofront.runtime.bundle.loading": "Bundle attach load",
        "hlofront.runtime.bundle.programs": "BundleWarning",
        "hlofront.runtime.bundle.saving": "arguments save",
    },
)
