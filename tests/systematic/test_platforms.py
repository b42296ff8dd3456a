"""Each sample, its derivatives and vmap, lowered for every platform, apart and together.

A module that is not valid is refused where it is made. What compiles for those platforms is in
tests/pjrt; what runs there is in tests marked `gpu`.
"""

import pytest

import hlofront
from tests.systematic import batching, differentiating, trials

SAMPLES = trials.load()
PLATFORMS = ("cuda", "rocm", "tpu")
TOGETHER = ("cpu", *PLATFORMS)
# What has no lowering there, here or in JAX, for want of a kernel.
REFUSED = {
    "cuda": {"schur", "hessenberg"},
    "rocm": {"schur", "hessenberg"},
    # Of tridiagonal_solve only that with perturb_singular.
    "tpu": {"schur", "hessenberg", "eig", "geqp3", "tridiagonal", "tridiagonal_solve"},
}
CALLBACKS = {"pure_callback", "debug_callback"}


def refusals(function, *arguments, x64):
    """What is refused, with the platform, when a function is lowered for all of them."""
    found = set()
    with trials.quiet(), hlofront.enable_x64(x64):
        traced = hlofront.jit(function).trace(*arguments)
        for platforms in (*((name,) for name in PLATFORMS), TOGETHER):
            try:
                traced.lower(lowering_platforms=platforms)
            except NotImplementedError as error:
                found.add(("+".join(platforms), str(error)))
    return found


def check(function, *arguments, x64):
    """That nothing is refused but what is listed; returns the operations."""
    operations = set()
    for platforms, message in refusals(function, *arguments, x64=x64):
        listed = REFUSED.get(platforms)
        if listed is None:
            listed = CALLBACKS.union(*REFUSED.values())
        words = message.replace(":", " ").split()
        named = listed.intersection(words)
        assert named, f"{platforms}: {message}"
        operations |= named
    return operations


@pytest.mark.parametrize("file", SAMPLES)
def test_each_sample(file):
    for sample in SAMPLES[file]:
        call, traced = trials.split(sample, sample.operand_values())
        refused = check(lambda *x: call(*x), *traced, x64=sample.needs_x64())
        assert not refused or file in ("callbacks", "factoring", "solving", "spectral"), sample


@pytest.mark.parametrize("file", SAMPLES)
def test_derivatives_and_vmap(file):
    for place in batching.chosen(SAMPLES[file]):
        sample = SAMPLES[file][place]
        if "vmap" not in sample.refused:
            stacks = batching.Stacks(sample, hlofront)
            way = stacks.ways()[0]
            mapped = hlofront.vmap(stacks.call, in_axes=way[0], out_axes=way[1])
            check(mapped, *stacks.mapped(way), x64=sample.needs_x64())
        if "jvp" not in sample.refused and differentiating.is_candidate(sample):
            problem = differentiating.Problem(sample, False, hlofront)
            check(
                differentiating.first_order(problem, hlofront), *problem.arguments, x64=problem.x64
            )


@pytest.mark.long
def test_what_is_refused_is_listed_rightly():
    """Each entry of the list is met, so that none outlives its reason."""
    for platform, wanted in REFUSED.items():
        met = set()
        for sample in SAMPLES["factoring"] + SAMPLES["solving"] + SAMPLES["spectral"]:
            call, traced = trials.split(sample, sample.operand_values())
            for name, message in refusals(lambda *x: call(*x), *traced, x64=sample.needs_x64()):
                if name == platform:
                    met |= wanted.intersection(message.replace(":", " ").split())
        assert met == wanted
