"""Samples whose lowering differs by platform, compiled for a TPU and a GPU that are not there.

One of each function. All samples were compiled once by hand; what was refused then is listed in
tests/systematic/unsupported.py. Skipped where the plugin that compiles is not installed.
"""

import pytest

import hlofront
from hlofront.core.programs.subprograms import subjaxprs
from hlofront.core.rules import lower
from hlofront.lowering import rules
from hlofront.pjrt import targets
from tests.systematic import trials
from tests.systematic.unsupported import why_not

SAMPLES = trials.load()
rules.import_all()
SPECIAL = lower.on_some | lower.on_each
# Found by hand to end the process or to be refused, and mended since.
MENDED = (
    "argmax(int4",
    "clamp(False",
    "clamp(np.complex64",
    "preferred_element_type=float32",
    "rng_uniform(bfloat16",
    "ragged",
    "scatter_to_extremes",
    "sort(int4",
)
# They take seconds each.
LONG = {"eigh", "svd", "betainc", "igamma", "igammac", "random_gamma_grad", "householder_product"}


def primitives_of(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive
    for inner in subjaxprs(jaxpr):
        yield from primitives_of(inner)


def chosen(platform):
    """The samples, each as a function and its operands."""
    seen, found = set(), []
    for samples in SAMPLES.values():
        for sample in samples:
            is_mended = any(part in sample.name for part in MENDED)
            if sample.needs_x64() or why_not(sample, platform):
                continue
            if sample.function in seen and not is_mended:
                continue
            call, traced = trials.split(sample, sample.operand_values())
            with trials.quiet():
                program = hlofront.make_jaxpr(call)(*traced)
            differs = SPECIAL.intersection(primitives_of(program.jaxpr))
            if not is_mended and (not differs or sample.function.__name__ in LONG):
                continue
            seen.add(sample.function)
            if is_lowered(call, traced, platform):
                found.append((call, traced))
    return found


def is_lowered(call, traced, platform):
    """What is not is listed in tests/systematic/test_platforms.py."""
    try:
        with trials.quiet():
            program = hlofront.jit(lambda *operands: call(*operands)).trace(*traced)
            program.lower(lowering_platforms=(platform,))
    except NotImplementedError:
        return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("name", ["tpu:v5e:1x1", "cuda:h100"])
def test_what_differs_by_platform_compiles(name):
    target = hlofront.target(name)
    missing = targets.install_hint(target.platform)
    if missing:
        pytest.skip(f"compiling for {target.platform} takes `{missing}`")
    samples = chosen(target.platform)
    assert len(samples) > 40

    def together(all_operands):
        return [call(*xs) for (call, _), xs in zip(samples, all_operands, strict=True)]

    with trials.quiet(), target:
        compiled = hlofront.jit(together).lower([traced for _, traced in samples]).compile()
    assert "ENTRY" in compiled.as_text()
