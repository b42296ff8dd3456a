"""The files that jax_dump_ir_to requests: which there are, and what is in them."""

import gzip
import json

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.bridge.state import extension

x = np.ones(3, np.float32)


@pytest.fixture
def dumped(tmp_path):
    """Dump in these modes to a new folder; what is called gives the files there, by name."""
    folder = tmp_path / "dumps" / "new"

    def files():
        if not folder.exists():
            return {}
        # Every process and test counts on: the number of a file says only their order.
        named = {path.name.split("_", 2)[2]: path for path in sorted(folder.iterdir())}
        assert len(named) == len(list(folder.iterdir()))
        return named

    def start(modes="stablehlo"):
        jax.config.update("jax_dump_ir_to", str(folder))
        jax.config.update("jax_dump_ir_modes", modes)
        return files

    yield start
    for name in ("jax_dump_ir_to", "jax_dump_ir_modes", "jax_include_debug_info_in_dumps"):
        jax.config.update(name, options[name].default)


def wave(x):
    return jnp.sin(x) + jnp.cos(x)


def test_a_compiled_module_is_written(dumped):
    files = dumped()
    jax.jit(lambda x: wave(x))(x)
    lowered = jax.jit(wave).lower(x)
    assert set(files()) == {"jit__lambda_compile.mlir"}
    lowered.compile()
    assert set(files()) == {"jit__lambda_compile.mlir", "jit_wave_compile.mlir"}
    assert files()["jit_wave_compile.mlir"].read_text() == lowered.as_text(debug_info=True)


def test_source_lines_can_be_left_out(dumped):
    files = dumped()
    jax.config.update("jax_include_debug_info_in_dumps", False)
    lowered = jax.jit(lambda x: wave(x)).lower(x)
    lowered.compile()
    assert files()["jit__lambda_compile.mlir"].read_text() == lowered.as_text()


def test_operations_outside_of_jit_are_written(dumped):
    files = dumped()
    jnp.expm1(x[:2])
    assert "jit_expm1_compile.mlir" in files()


def test_a_program_from_the_disk_cache_is_written(dumped, tmp_path):
    with options["hlofront_cache"](True), options["hlofront_cache_dir"](str(tmp_path / "cache")):
        jax.clear_caches()
        jax.jit(wave)(x)
        jax.clear_caches()
        files = dumped()
        f = jax.jit(wave)
        f(x)
        assert f.timings().load > 0
        assert "jit_wave_compile.mlir" in files()
    jax.clear_caches()


def test_jaxprs_are_written_when_they_are_lowered(dumped):
    files = dumped("jaxpr")
    traced = jax.jit(lambda x: wave(x)).trace(x)
    assert not files()
    traced.lower().compile()
    assert set(files()) == {"lambda.jaxpr.txt"}
    assert files()["lambda.jaxpr.txt"].read_text() == str(traced.jaxpr.jaxpr)


def test_a_profile_counts_the_equations_of_each_line(dumped):
    files = dumped("eqn_count_pprof,stablehlo")

    @jax.jit
    def inner(x):
        return jnp.sin(jnp.sin(x))

    def outer(x):
        return inner(x) + inner(x)

    jax.jit(outer).lower(x)
    assert set(files()) == {"outer.eqn_count_pprof"}
    profile = json.loads(
        extension.pprof_profile_to_json(
            gzip.decompress(files()["outer.eqn_count_pprof"].read_bytes())
        )
    )
    text = profile["stringTable"]
    assert text[int(profile["sampleType"][0]["type"])] == "equations"
    counts = {}
    for sample in profile["sample"]:
        primitive = text[int(sample["label"][0]["str"])]
        counts[primitive] = counts.get(primitive, 0) + int(sample["value"][0])
    assert counts == {"jit": 2, "sin": 2, "add": 1}
    assert {text[int(function["filename"])] for function in profile["function"]} >= {__file__}


def test_nothing_is_written_without_a_folder(dumped, tmp_path):
    files = dumped()
    jax.config.update("jax_dump_ir_to", "")
    jax.jit(lambda x: wave(x))(x)
    assert not files()


def test_unknown_modes_are_refused(dumped):
    with pytest.raises(ValueError, match=r"'stablehlo', 'jaxpr', 'eqn_count_pprof', .*jaxpr_html"):
        dumped("jaxpr,jaxpr_html")


def test_sponge_is_the_folder_of_a_test_of_bazel(dumped, monkeypatch, tmp_path):
    dumped()
    jax.config.update("jax_dump_ir_to", "sponge")
    monkeypatch.delenv("TEST_UNDECLARED_OUTPUTS_DIR", raising=False)
    with pytest.raises(ValueError, match="TEST_UNDECLARED_OUTPUTS_DIR"):
        jax.jit(lambda x: wave(x))(x)
    monkeypatch.setenv("TEST_UNDECLARED_OUTPUTS_DIR", str(tmp_path))
    jax.jit(lambda x: wave(x))(x)
    assert list(tmp_path.glob("*_jit__lambda_compile.mlir"))
