"""JAX's own kernels for TPUs, traced by both libraries: their values, bundles, and times.

    python benchmarks/pallas_kernels.py --jax PYTHON [--target tpu:v5e:1x1 ...] [KERNEL ...]

The files of `jax/experimental/pallas/ops/tpu` are those of the jax of that Python, unchanged; with
hlofront they import it under jax's names. Printed are, per kernel: the greatest relative difference
between the values of both libraries in interpret mode (for two kernels that jax does not interpret,
or wrongly, between ours and what they are to compute); per target, the ratio of hlofront's to jax's
static bundles, of all kernels of the program, and jax's number; and the ratio of the times of
tracing and lowering, each the best of five, of new functions, in one process per library.
"""

import argparse
import contextlib
import functools
import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

OPS = "jax.experimental.pallas.ops.tpu"
TARGETS = ("tpu:v5e:1x1", "tpu:v5p:2x2x1", "tpu:v6e:1x1", "tpu:7x:2x2x1")
# The kernel that runs on several devices, which only the interpreters of TPUs model. jax's leaves
# some of its values NaN, so the values are compared with the array of which it gathers the parts.
SEVERAL = "all_gather"
# The kernel that jax does not interpret: its reference in the same file has the values.
RAGGED = "ragged_paged_attention"


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def attention(jax, gradient=False):
    module = importlib.import_module(f"{OPS}.flash_attention")
    arrays = [normal(1, 2, 256, 128, seed=i) / 4 for i in range(3)]
    function = functools.partial(module.flash_attention, causal=True)
    if gradient:
        return jax.grad(lambda *qkv: function(*qkv).sum(), (0, 1, 2)), arrays
    return function, arrays


def splash(jax, gradient=False):
    module = importlib.import_module(f"{OPS}.splash_attention.splash_attention_kernel")
    masks = importlib.import_module(f"{OPS}.splash_attention.splash_attention_mask")
    mask = masks.MultiHeadMask([masks.CausalMask((256, 256))] * 2)
    kernel = module.make_splash_mha_single_device(mask)
    arrays = [normal(2, 256, 128, seed=i) / 4 for i in range(3)]
    if gradient:
        return jax.grad(lambda *qkv: kernel(*qkv).sum(), (0, 1, 2)), arrays
    return lambda *qkv: kernel(*qkv), arrays


def paged(jax):
    module = importlib.import_module(f"{OPS}.paged_attention.paged_attention_kernel")
    pages = [normal(2, 8, 16, 128, seed=i) for i in range(2)]
    lengths = np.array([40, 17], np.int32)
    indices = np.array([[0, 2, 4, 6], [1, 3, 5, 7]], np.int32)
    function = functools.partial(module.paged_attention, pages_per_compute_block=2)
    return function, [normal(2, 8, 128) / 8, *pages, lengths, indices]


def ragged_paged(jax, reference=False):
    module = importlib.import_module(f"{OPS}.ragged_paged_attention.kernel")
    sizes = {"num_kv_pages_per_block": 2, "num_queries_per_block": 16}
    function = functools.partial(module.ragged_paged_attention, **sizes)
    if reference:
        function = module.ref_ragged_paged_attention
    integers = ([40, 17], [[0, 2, 4, 6], [1, 3, 5, 7]], [0, 20, 32], [2])
    arrays = [np.array(each, np.int32) for each in integers]
    return function, [normal(32, 8, 128) / 8, normal(8, 16, 4, 128), *arrays]


def grouped(jax, transposed=False):
    module = importlib.import_module(f"{OPS}.megablox.gmm")
    sizes = np.array([100, 28, 0, 128], np.int32)
    if transposed:
        return module.tgmm, [normal(128, 256), normal(256, 128), sizes]
    return module.gmm, [normal(256, 128), normal(4, 128, 128), sizes]


def matmul(jax, dtype=np.float32):
    module = importlib.import_module(f"{OPS}.matmul")
    function = functools.partial(module.matmul, block_shape=(128, 128), block_k=128)
    return function, [normal(256, 256, dtype=dtype), normal(256, 256, dtype=dtype)]


def double(jax):
    return importlib.import_module(f"{OPS}.example_kernel").double, [normal(8, 128)]


def random_bits(jax, name="philox", function="philox_random_bits"):
    module = importlib.import_module(f"{OPS}.random.{name}")
    key = np.array([1, 2], np.uint32)
    return lambda key: getattr(module, function)(key, 32, (256, 256)), [key]


def all_gather(jax):
    module = importlib.import_module(f"{OPS}.all_gather")
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]), ("x",))
    return functools.partial(module.all_gather, mesh=mesh, axis_name="x"), [normal(32, 128)]


KERNELS = {
    "flash_attention": attention,
    "flash_attention_grad": functools.partial(attention, gradient=True),
    "splash_attention": splash,
    "splash_attention_grad": functools.partial(splash, gradient=True),
    "paged_attention": paged,
    RAGGED: ragged_paged,
    "gmm": grouped,
    "tgmm": functools.partial(grouped, transposed=True),
    "matmul": matmul,
    "matmul_int8": functools.partial(matmul, dtype=np.int8),
    "double": double,
    "philox": random_bits,
    "threefry": functools.partial(random_bits, name="threefry", function="plthreefry_random_bits"),
    SEVERAL: all_gather,
}


# ---- one library -------------------------------------------------------------------------------


def library(name, folder):
    """Import a library as jax, with the kernels of the folder of an installed jax."""
    if name == "hlofront":
        importlib.import_module("hlofront.as_jax")
        importlib.import_module(OPS).__path__.insert(0, folder)
        # hlofront has its own splash attention, under the same names.
        splash_attention = ["", "_mask", "_mask_info", "_kernel"]
        for part in splash_attention:
            load(f"{OPS}.splash_attention", folder, f"splash_attention{part}" if part else "")
    return importlib.import_module("jax")


def load(package, folder, part):
    """Import a package of jax's kernels, without running it, or a module of it, from its file."""
    name = f"{package}.{part}" if part else package
    file = os.path.join(folder, package.rpartition(".")[2], f"{part or '__init__'}.py")
    spec = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if part:
        spec.loader.exec_module(module)
        setattr(sys.modules[package], part, module)
    else:
        module.__path__ = [os.path.dirname(file)]


def lowered(jax, name):
    """Return the StableHLO of a kernel, for TPUs, traced anew."""
    function, arrays = KERNELS[name](jax)
    with context(jax, name):
        traced = jax.jit(lambda *args: function(*args)).trace(*arrays)
        return traced.lower(lowering_platforms=("tpu",)).as_text()


def context(jax, name):
    """Return the context of a TPU that is traced for, which one kernel asks for its facts."""
    if name != RAGGED:
        return contextlib.nullcontext()
    device = jax.sharding.AbstractDevice("TPU v5e", 1, "tpu")
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
    return jax.sharding.use_abstract_mesh(mesh)


def interpreted(jax, name, side):
    """Return the values of a kernel, interpreted."""
    if side == "jax" and name == RAGGED:
        function, arrays = ragged_paged(jax, reference=True)
        return [np.asarray(function(*arrays), np.float64)]
    if side == "jax" and name == SEVERAL:
        return [all_gather(jax)[1][0].astype(np.float64)]
    pallas = importlib.import_module("jax.experimental.pallas")
    tpu = importlib.import_module("jax.experimental.pallas.tpu")
    compiled = pallas.pallas_call
    way = {"interpret": tpu.InterpretParams() if name == SEVERAL else True}
    pallas.pallas_call = lambda *args, **options: compiled(*args, **{**options, **way})
    # The kernel may have been traced for TPUs.
    jax.clear_caches()
    try:
        function, arrays = KERNELS[name](jax)
        with context(jax, name):
            leaves = jax.tree.leaves(jax.jit(lambda *args: function(*args))(*arrays))
        return [np.asarray(each, np.float64) for each in leaves]
    finally:
        pallas.pallas_call = compiled


def run(side, ops, folder, names):
    """Write the module, values and time of kernels, traced by one library, to a folder."""
    jax = library(side, ops)
    for name in names:
        try:
            times = []
            for _ in range(6):
                jax.clear_caches()
                start = time.perf_counter()
                text = lowered(jax, name)
                times.append(time.perf_counter() - start)
            pathlib.Path(folder, f"{name}.mlir").write_text(text, encoding="utf-8")
            pathlib.Path(folder, f"{name}.time").write_text(str(min(times[1:])))
            np.savez(os.path.join(folder, name), *interpreted(jax, name, side))
        except Exception as error:
            print(f"{side}: {name}: {type(error).__name__}: {error}"[:600], file=sys.stderr)


# ---- both --------------------------------------------------------------------------------------


def bundles(path, target):
    """Return the static bundles of all kernels of a module, compiled for a target."""
    import hlofront
    from hlofront.inspect.dumps import dump_tpu_kernels, tpu_kernels

    with tempfile.TemporaryDirectory() as folder:
        dump_tpu_kernels(path.read_text(encoding="utf-8"), hlofront.target(target), folder)
        return sum(each.bundles for each in tpu_kernels(folder).kernels)


def difference(ours, theirs):
    """Return the greatest difference of values, relative to the greatest value."""
    pairs = [(ours[key], theirs[key]) for key in theirs.files]
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs)


def row(name, folders, targets):
    """Return the figures of a kernel as text."""
    ours, theirs = folders
    figures = []
    values = [folder / f"{name}.npz" for folder in folders]
    if all(path.exists() for path in values):
        figures.append(f"{difference(*map(np.load, values)):.1e}")
    else:
        figures.append("-")
    for target in targets:
        if name == SEVERAL:
            target = target.replace(":1x1", ":2x2")
        try:
            counts = [bundles(folder / f"{name}.mlir", target) for folder in folders]
            figures.append(f"{counts[0] / counts[1]:.3f} of {counts[1]}")
        except Exception as error:
            print(f"{name} {target}: {type(error).__name__}: {error}"[:300], file=sys.stderr)
            figures.append("-")
    times = [float((folder / f"{name}.time").read_text()) for folder in (ours, theirs)]
    return [*figures, f"{times[0] / times[1]:.2f} of {times[1] * 1000:.0f} ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jax", required=True, help="a Python with jax")
    parser.add_argument("--target", action="append", help="a TPU that is absent")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    args = parser.parse_args()
    names = args.kernels or list(KERNELS)
    if args.run:
        return run(*args.run, names)
    targets = args.target or TARGETS
    find = "import jax, os; print(os.path.dirname(jax.__file__))"
    where = subprocess.run([args.jax, "-c", find], check=True, capture_output=True, text=True)
    ops = os.path.join(where.stdout.strip(), "experimental", "pallas", "ops", "tpu")
    devices = "--xla_force_host_platform_device_count=4"
    with tempfile.TemporaryDirectory() as work:
        folders = [pathlib.Path(work, side) for side in ("hlofront", "jax")]
        for python, folder in zip((sys.executable, args.jax), folders, strict=True):
            folder.mkdir()
            command = [python, __file__, "--jax", args.jax, "--run", folder.name, ops, str(folder)]
            environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices}
            if folder.name == "hlofront":
                environment |= {"JAX_NUM_CPU_DEVICES": "4", "HLOFRONT_WARN_RECOMPILES": "0"}
            subprocess.run([*command, *names], check=True, env=environment)
        print(f"{'kernel':24}{'values':>10}", *[f"{each:>18}" for each in targets], "trace + lower")
        for name in names:
            if all((folder / f"{name}.mlir").exists() for folder in folders):
                values, *rest = row(name, folders, targets)
                print(f"{name:24}{values:>10}", *[f"{each:>18}" for each in rest], flush=True)


if __name__ == "__main__":
    main()
