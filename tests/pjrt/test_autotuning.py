"""Autotuning results that XLA loads for NVIDIA GPUs, here for an H100 that is not there."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import hlofront as jax
from hlofront.base.config import options
from hlofront.pjrt import targets
from hlofront.pjrt.compile import compile_options

ROOT = pathlib.Path(__file__).parents[2]
# XLA keeps the results for the life of a process.
SCRIPT = """
import json, re, sys
import hlofront as jax, hlofront.numpy as jnp
from hlofront.pjrt.cache_key import compiler_fields
from hlofront.pjrt.compile import compile_options
shape = jax.ShapeDtypeStruct((512, 512), "bfloat16")
target = jax.target("cuda:h100")
with target:
    text = jax.jit(lambda x, w: jnp.tanh(x @ w)).lower(shape, shape).compile().as_text()
refused = ""
try:
    jax.config.update("hlofront_autotune_results", "other")
except RuntimeError as error:
    refused = str(error)
devices = target.devices[:1]
fields = compiler_fields(devices, compile_options(devices, numbers=[0]), {})
warps = re.findall(r'"num_warps":"(\\d+)"', text)
print(json.dumps([warps, fields["options"], fields.get("autotuning results"), refused]))
"""
MODEL = """
import hlofront as jax, hlofront.numpy as jnp

def step(x, w):
    return jnp.tanh(x @ w)

example_args = (jax.ShapeDtypeStruct((512, 512), "bfloat16"),) * 2
"""
# How XLA logs the key of a result that it does not have.
MISSED = re.compile(r"key = <key model='(.*?)', hlo='(.*?)', version=(\d+)>", re.DOTALL)
RESULT = """
results {{
  device: {device}
  hlo: {hlo}
  version: {version}
  result {{
    run_time {{ nanos: 1000 }}
    triton {{
      block_m: 64 block_n: 32 block_k: 64 split_k: 1 num_stages: 3 num_warps: {warps} num_ctas: 1
    }}
  }}
}}
"""


def compiled(file, **variables):
    """The warps of the product's kernel, what is in the cache key, and all that XLA logs."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HLOFRONT_CACHE": "0",
            "HLOFRONT_AUTOTUNE_RESULTS": str(file),
            **variables,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return *json.loads(done.stdout), done.stderr


@pytest.mark.long
def test_a_file_of_results_chooses_kernels_and_is_in_the_key(tmp_path):
    missing = targets.install_hint("cuda")
    if missing:
        pytest.skip(missing)
    file = tmp_path / "results.textproto"
    file.write_text("version: 3\n")
    logged = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "autotuner_cache=10"}
    warps, options, digest, refused, log = compiled(file, **logged)
    assert "XLA has loaded the autotuning results of" in refused
    (key,) = {key for key in MISSED.findall(log) if " dot(" in key[1]}
    results = {}
    for name, chosen in (("a", 8), ("b", 8), ("c", 4)):
        device, hlo, version = json.dumps(key[0]), json.dumps(key[1]), key[2]
        text = RESULT.format(device=device, hlo=hlo, version=version, warps=chosen)
        other = tmp_path / f"{name}.textproto"
        other.write_text("version: 3\n" + text)
        results[name] = compiled(other)[:3]
    assert warps != ["8"] and warps != ["4"]
    assert [results[name][0] for name in "abc"] == [["8"], ["8"], ["4"]]
    # The same contents in another file give the same key.
    assert results["a"] == results["b"]
    assert len({digest, results["a"][2], results["c"][2]}) == 3
    assert options == results["a"][1]
    # `compare` shows what another file changes.
    model = tmp_path / "model.py"
    model.write_text(MODEL)
    command = [
        sys.executable,
        "-m",
        "hlofront",
        "compare",
        f"{model}:step",
        "--target",
        "cuda:h100",
    ]
    for name in "ac":
        command += ["--autotuning", str(tmp_path / f"{name}.textproto")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    compared = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
    assert "autotuning results" in compared and "num_warps" in compared, compared


def test_what_xla_finds_is_kept_in_the_folder_of_the_cache(tmp_path):
    missing = targets.install_hint("cuda")
    if missing:
        pytest.skip(missing)
    devices = targets.target("cuda:h100").devices[:1]
    folder, kernels = "xla_gpu_per_fusion_autotune_cache_dir", "xla_gpu_kernel_cache_file"

    def flags(**options):
        return dict(compile_options(devices, **options).env_option_overrides)

    assert folder not in flags()
    with options["jax_compilation_cache_dir"](str(tmp_path)):
        assert flags()[folder] == str(tmp_path / folder) and kernels not in flags()
        # The key of a cached program does not depend on the folder; a path of the user's stays.
        assert folder not in flags(numbers=[0])
        assert flags(overrides={folder: "/other"})[folder] == "/other"
        with options["jax_persistent_cache_enable_xla_caches"]("all"):
            assert flags()[kernels] == str(tmp_path / kernels)
        with options["jax_persistent_cache_enable_xla_caches"]("none"):
            assert folder not in flags()
        with pytest.raises(ValueError, match=r"is all, none, or a list of .*: got 'other'"):
            options["jax_persistent_cache_enable_xla_caches"]("other").__enter__()
        shape = jax.ShapeDtypeStruct((64, 64), "bfloat16")
        with jax.target("cuda:h100"):
            assert jax.jit(lambda x: x @ x).lower(shape).compile().as_text()


@pytest.mark.long
def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    missing = targets.install_hint("cuda")
    if missing:
        pytest.skip(missing)
    with pytest.raises(AssertionError, match="ValueError: hlofront_autotune_results is a file"):
        compiled(tmp_path / "none")
