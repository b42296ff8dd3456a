"""The twelve programs of examples/ learn or solve what they say, in a short form and in their own.

They run in this process, whose modules and device are there already. Those that take long to
compile are left for `./check rest`.
"""

import importlib.util
import runpy
import tempfile

import numpy as np
import pytest

from tests.conventions.source import ROOT

EXAMPLES = ROOT / "examples"
NAMES = (
    "diffusion", "digits", "flash_attention", "gpt", "hmc", "kalman", "kernels", "neural_ode",
    "pde", "ppo", "transformer_sharded", "vae",
)  # fmt: skip


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs a program's `main`: what it returns, and what it prints."""

    def run(name, *arguments):
        if name in ("digits", "diffusion", "vae", "hmc"):
            pytest.importorskip("sklearn")
        # Pages and logs go to the test's own folder.
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        result = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](*arguments)
        return result, capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_short_and_says_what_it_is(name):
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert text.count("\n") < 150
    docstring = " ".join(text.split('"""')[1].split())
    assert f"python examples/{name}.py [" in docstring
    assert "at the end" in docstring.lower()
    assert f"[{name}.py]({name}.py)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")


def test_pde_is_near_the_exact_solution(run):
    error, text = run("pde", 800)
    assert error < 0.01
    assert "-52.2%" in text and "dtype complex<f32> -> f32 of u: 5 × fft" in text


@pytest.mark.long
def test_kernels_compute_what_numpy_does(run):
    differences, text = run("kernels", 256)
    assert sorted(differences) == ["matmul", "rms_norm", "softmax"]
    assert max(differences.values()) < 1e-5
    if importlib.util.find_spec("libtpu"):
        assert "jit_softmax on TPU v5e" in text and "softmax.1, 1 call" in text


@pytest.mark.long
def test_flash_attention_has_the_values_and_gradients_of_the_formula(run):
    differences, text = run("flash_attention", 256)
    assert max(differences) < 1e-5
    if importlib.util.find_spec("libtpu"):
        assert "textbook: 1,024 MiB" in text and "attention: 32 MiB" in text


@pytest.mark.long
def test_ppo_keeps_the_pole_up(run):
    length, text = run("ppo", 12)
    assert length > 100
    assert "wall time: " in text


@pytest.mark.long
def test_hmc_samples_the_exact_posterior(run):
    (off, spread, agreed), text = run("hmc", 200)
    assert off < 0.2 and spread < 0.1 and agreed < 1.05
    assert "compiled  hmc.py" in text


@pytest.mark.long
def test_digits_learns(run, tmp_path):
    accuracy, text = run("digits", 3)
    assert accuracy > 0.94
    assert (tmp_path / "digits_step.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "confused: " in text


@pytest.mark.long
def test_gpt_learns_more_than_pairs_of_characters(run):
    (tested, pairs), text = run("gpt", 160)
    assert 1 < tested < pairs < 2.6
    assert "--- written" in text and "total: " in text


@pytest.mark.long
def test_diffusion_draws_what_is_asked_for(run):
    right, text = run("diffusion", 1500)
    assert right > 0.8
    assert "digit: i32[] strongly typed -> i32[] weakly typed" in text


@pytest.mark.long
def test_vae_bounds_the_likelihood(run):
    (tested, of_pixels), text = run("vae", 500)
    assert of_pixels + 4 < tested < -15
    assert "image * jnp.log(p) + (1 - image) * jnp.log(1 - p)" in text and "NaN in " in text


@pytest.mark.long
def test_kalman_is_consistent_and_finds_the_noise(run):
    (errors, consistency, found), text = run("kalman")
    assert errors["smooth"] < 0.7 * errors["filter"] < 0.7 * errors["measured"]
    assert abs(consistency - 4) < 0.2
    assert abs(found["push"] - 0.3) < 0.02 and abs(found["blur"] - 2) < 0.05
    assert "cancellation: sub" in text and "joseph:\nNo result of" in text


@pytest.mark.long
def test_neural_ode_learns_a_pendulum(run):
    error, text = run("neural_ode", 200)
    assert error < 0.15
    assert text.count("^ peak") == 2


def test_drawings_have_a_row_of_characters_for_each_row_of_pixels():
    pytest.importorskip("sklearn")
    for name, dark in (("diffusion", -1.0), ("vae", 0.0)):
        text = runpy.run_path(str(EXAMPLES / f"{name}.py"))["as_text"](np.full((3, 64), dark))
        assert text.splitlines() == ["  ".join([" " * 8] * 3)] * 8
