"""`python -m hlofront bundle` writes, lists and checks bundles."""

import io

import numpy as np
import pytest

from hlofront import bundle
from hlofront.cli import main
from tests.pjrt.needed import need

MODEL = """
import hlofront.numpy as jnp

def step(x, n=2):
    return jnp.tanh(x).sum(0) * n

def example_args():
    return (jnp.ones((4, 3)),)
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def run(*argv):
    out = io.StringIO()
    return main.main(["bundle", *map(str, argv)], out), out.getvalue()


def test_two_sizes_are_written_listed_and_checked(model, tmp_path):
    path = tmp_path / "step.hlob"
    sizes = "--args", "f32[1,3]", "--args", "f32[8,3]"
    code, text = run(f"{model}:step", *sizes, "--target", "cpu", "--vjp-order", "1", "-o", path)
    assert code == 0 and "x: float32[8,3]" in text
    assert run("ls", path) == (0, text)
    code, text = run("verify", path)
    assert code == 0 and text.count("can be used here") == 2
    assert text.endswith(f"{path} is whole\n")
    loaded = bundle.load(path, trust=True)
    result = loaded(np.ones((8, 3), np.float32))
    np.testing.assert_allclose(result, np.full(3, 16 * np.tanh(1)), rtol=1e-6)
    assert loaded.exported().has_vjp()


def test_a_target_that_is_not_here(model, tmp_path):
    need("tpu")
    path = tmp_path / "step.hlob"
    code, text = run(f"{model}:step", "--target", "cpu", "--target", "tpu:v5e:2x2", "-o", path)
    assert code == 0 and "StableHLO for cpu, tpu" in text and "executable for tpu:v5e:2x2" in text
    code, text = run("verify", path)
    assert code == 0 and "for cpu: can be used here" in text
    assert "for tpu:v5e:2x2: it is for 1 x TPU v5 lite, which this process does not have" in text


def test_wrong_command_lines_and_files(model, tmp_path, capsys):
    path = tmp_path / "step.hlob"
    path.write_bytes(b"no bundle")
    for argv, message in (
        ((f"{model}:step",), "give the file to write"),
        (("ls",), "expected `bundle ls FILE`"),
        (("ls", tmp_path / "none"), "cannot be read: No such file"),
        (("verify", path), "is not a bundle: it starts otherwise"),
        ((f"{model}:step", path), "or ls or verify before"),
        ((f"{model}:none", "-o", path), "has no function 'none'"),
    ):
        code, text = run(*argv)
        assert (code, text) == (2, "")
        assert message in capsys.readouterr().err
    assert path.read_bytes() == b"no bundle"
