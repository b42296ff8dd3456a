"""What programs call on devices that are not here: the kernels of CUDA and ROCm, XLA's own of TPUs.

Each is lowered, and compared are the custom calls of its module: targets, options, layouts, types.
"""

import re

import numpy as np

from tests.against_jax.describe import Corpus

PLATFORMS = ("cuda", "rocm", "tpu")


def programs(jax, jnp, lax):
    corpus = Corpus(("repr",))
    add = Adder(corpus, jax)
    factorizations(add, jax, lax)
    spectra(add, lax)
    solutions(add, lax)
    others(add, jax, jnp, lax)
    return corpus


class Adder:
    """Adds a program for each platform: the text of its custom calls."""

    def __init__(self, corpus, jax):
        self.corpus = corpus
        self.jax = jax

    def __call__(self, name, function, *types, platforms=PLATFORMS, **options):
        for platform in platforms:

            def calls(function=function, platform=platform):
                args = [self.jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]
                traced = self.jax.jit(function).trace(*args)
                return Calls(traced.lower(lowering_platforms=(platform,)).as_text())

            self.corpus.add(f"{name}_{platform}", calls, x64=True, **options)


class Calls:
    """The custom calls of a module; equal ones once."""

    def __init__(self, text):
        lines = text.splitlines()
        found = {_described(line) for line in lines if "custom_call @" in line}
        found |= {
            re.sub(r"%\w+( = )?", "", line.strip()) for line in lines if "chlo.ragged" in line
        }
        self.text = "\n".join(sorted(found))

    def __repr__(self):
        return self.text


def _described(line):
    """A custom call without the names of values, and the two ways to write typed options as one."""
    line = re.sub(r", sdy.sharding_rule = #sdy.op_sharding_rule<.*?, custom>", "", line)
    target = re.search(r"custom_call @([\w.$]+)", line).group(1)
    found = re.search(r"(?:mhlo\.)?backend_config = (\{[^{}]*\})", line)
    if found is None:
        found = re.search(r'backend_config = ("[^"]*")', line)
    options = found.group(1) if found else '""'
    parts = [target, options]
    for name in ("operand_layouts", "result_layouts"):
        found = re.search(name + r" = \[(.*?)\](?=[,}])(?!>| :)", line)
        parts.append(f"{name} {found.group(1) if found else ''}")
    aliases = re.findall(r"output_tuple_indices = \[(\d*)\], operand_index = (\d+)", line)
    parts.append(f"aliases {sorted(aliases)}")
    parts.append(line.rpartition("} : ")[2])
    return "; ".join(parts)


def f32(*shape):
    return shape, np.float32


def c64(*shape):
    return shape, np.complex64


def f64(*shape):
    return shape, np.float64


def c128(*shape):
    return shape, np.complex128


def i32(*shape):
    return shape, np.int32


def factorizations(add, jax, lax):
    linalg = lax.linalg
    add("cholesky", linalg.cholesky, f32(5, 5))
    add("cholesky_batched", linalg.cholesky, c128(3, 5, 5))
    add("lu", linalg.lu, f32(5, 5))
    add("lu_tall_batched", linalg.lu, c64(2, 6, 4))
    add("pivots", lambda p: linalg.lu_pivots_to_permutation(p, 7), i32(3, 5))
    for form, shape in {"tall": (6, 4), "wide": (2, 4, 6)}.items():
        for full in (False, True):
            name = f"qr_{form}_{'full' if full else 'reduced'}"
            add(name, lambda x, full=full: linalg.qr(x, full_matrices=full), f64(*shape))
    add("qr_of_nothing", linalg.qr, f32(3, 0, 4))
    for magma in (None, True, False):
        name = f"qr_pivoting_magma_{magma}"
        add(name, lambda x, m=magma: linalg.qr(x, pivoting=True, use_magma=m), c64(6, 4))
    add("householder_product", linalg.householder_product, c64(2, 6, 4), c64(2, 4))
    add("cholesky_update", linalg.cholesky_update, f64(5, 5), f64(5))
    add("symmetric_product", linalg.symmetric_product, f32(6, 4), f32(6, 6))
    scaled = jax.vmap(lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=3.0))
    add("symmetric_product_batched", scaled, f64(3, 6, 4), f64(3, 6, 6))
    add("tridiagonal", linalg.tridiagonal, f32(5, 5))
    add("tridiagonal_upper", lambda x: linalg.tridiagonal(x, lower=False), c64(2, 5, 5))
    add("hessenberg", linalg.hessenberg, f32(5, 5))
    add("schur", linalg.schur, f32(5, 5))


def spectra(add, lax):
    linalg = lax.linalg
    add("eigh", linalg.eigh, f32(5, 5))
    add("eigh_batched", linalg.eigh, c64(2, 40, 40))
    for way in ("QR", "JACOBI", "QDWH"):
        member = getattr(linalg.EighImplementation, way)
        add(f"eigh_{way}", lambda x, w=member: linalg.eigh(x, implementation=w), f64(5, 5))
    upper = {"lower": False, "symmetrize_input": False, "sort_eigenvalues": False}
    add("eigh_upper_unsorted", lambda x: linalg.eigh(x, **upper), f64(3, 5, 5))
    gpus = PLATFORMS[:2]
    part = {"subset_by_index": (0, 2)}
    add("eigh_part", lambda x: linalg.eigh(x, **part), f32(5, 5), platforms=gpus)
    add("svd_part", lambda x: linalg.svd(x, full_matrices=False, **part), f32(5, 5), platforms=gpus)
    for name, shape in {
        "small": (6, 4),
        "wide": (2, 4, 6),
        "square": (33, 33),
        "jacobi": (1024, 1024),
        "large": (1025, 4),
    }.items():
        for full in (False, True):
            title = f"svd_{name}_{'full' if full else 'reduced'}"
            function = lambda x, full=full: linalg.svd(x, full_matrices=full)
            add(title, function, c64(*shape), platforms=gpus)
        values = lambda x: linalg.svd(x, compute_uv=False)
        add(f"svd_{name}_values", values, f32(*shape), platforms=gpus)
    for way in ("DEFAULT", "QR", "JACOBI", "POLAR", "DIVIDE_AND_CONQUER"):
        member = getattr(linalg.SvdAlgorithm, way)
        for uv in (True, False):
            name = f"svd_{way}_{'vectors' if uv else 'values'}"
            options = {"algorithm": member, "compute_uv": uv, "full_matrices": False}
            function = lambda x, o=options: linalg.svd(x, **o)
            platforms = gpus if way in ("DEFAULT", "POLAR") else PLATFORMS
            add(name, function, f64(2, 4, 6), platforms=platforms)
    # Without left vectors the default depends on the version of cuSOLVER that is installed.
    add("eig", linalg.eig, f32(5, 5))
    for way in ("MAGMA", "LAPACK"):
        for left, right in ((True, True), (False, True), (False, False)):
            title = f"eig_{way}_{left:d}{right:d}"
            options = {"compute_left_eigenvectors": left, "compute_right_eigenvectors": right}
            options["implementation"] = getattr(linalg.EigImplementation, way)
            function = lambda x, o=options: linalg.eig(x, **o)
            add(title, function, f64(3, 5, 5) if left else c64(5, 5))


def solutions(add, lax):
    linalg = lax.linalg
    system = [f32(3, 5)] * 3 + [f32(3, 5, 2)]
    add("tridiagonal_solve", linalg.tridiagonal_solve, *system)
    add("tridiagonal_solve_alone", linalg.tridiagonal_solve, *[c64(5)] * 3, c64(5, 2))
    add("tridiagonal_solve_of_two", linalg.tridiagonal_solve, *[f64(2)] * 3, f64(2, 2))
    perturbed = lambda *xs: linalg.tridiagonal_solve(*xs, perturb_singular=True)
    add("tridiagonal_solve_perturbed", perturbed, *system)
    add("triangular_solve", linalg.triangular_solve, c64(5, 5), c64(5, 5))


def others(add, jax, jnp, lax):
    add("random_bits", lambda key: jax.random.bits(key, (8,)), ((2,), np.uint32))
    add("uniform", lambda key: jax.random.uniform(key, (3, 5)), ((2,), np.uint32))
    add("split", jax.random.split, ((2,), np.uint32))
    add("top_k", lambda x: lax.top_k(x, 3), f32(2, 10))
    # On GPUs the reference names a call that XLA spells out as the sort that ours are.
    tpu = PLATFORMS[2:]
    add("approx_max_k", lambda x: lax.approx_max_k(x, 3), f32(2, 100), platforms=tpu)
    add("approx_min_k", lambda x: lax.approx_min_k(x, 3), f32(2, 100), platforms=tpu)
    add("sort", lax.sort, f32(10))
    add("cumsum", jnp.cumsum, f32(10))
    add("fft", jnp.fft.fft, c64(10))
    add("erf_inv", lax.erf_inv, f32(10))
    add("igamma", lax.igamma, f32(10), f32(10))
    add("bessel_i1e", lax.bessel_i1e, f32(10))
    add("det", jnp.linalg.det, f32(4, 4))
    add("inv", jnp.linalg.inv, f32(4, 4))
    add("solve", jnp.linalg.solve, f32(4, 4), f32(4))
    add("lstsq", jnp.linalg.lstsq, f32(6, 4), f32(6), platforms=PLATFORMS[:2])
    add("pinv", jnp.linalg.pinv, f32(6, 4), platforms=PLATFORMS[:2])
    add("matrix_rank", jnp.linalg.matrix_rank, f32(6, 4), platforms=PLATFORMS[:2])
    ragged = f32(8, 4), f32(2, 4, 3), i32(2)
    add("ragged_dot", lax.ragged_dot, *ragged)
    total = lambda *xs: lax.ragged_dot(*xs, precision="highest").sum()
    add("ragged_dot_gradient", jax.grad(total, (0, 1)), *ragged)
    # Which of the others XLA's compilers know is decided in lowering/ops/ragged_dot.py.
