"""diff --fail-on: limits of what totals may grow by, and functions compiled for a target."""

import io
import pathlib

import pytest

from hlofront.cli.main import main
from hlofront.pjrt.targets import whats_missing
from hlotools import diff

MODEL = """\
import hlofront as jax
import hlofront.numpy as jnp

def before(x):
    return jnp.tanh(x @ x).sum()

def after(x):
    y = jnp.tanh(x @ x)
    return jnp.sort(y, axis=0).sum() + y.sum()

def solved(x):
    return jnp.linalg.cholesky(x).sum()

example_args = (jax.ShapeDtypeStruct((64, 64), "float32"),)
"""
TEXTS = pathlib.Path(__file__).with_name("texts")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "model.py"
    path.write_text(MODEL)
    return path


def run(*arguments):
    out = io.StringIO()
    return main(["diff", *map(str, arguments)], out), out.getvalue()


def test_a_limit_fails_where_a_total_grew_by_more(model, capsys):
    sides = f"{model}:before", f"{model}:after"
    assert run(*sides)[0] == 1
    assert run(*sides, "--fail-on", "bytes>100000%")[0] == 0
    assert run(*sides, "--fail-on", "bytes>1%", "--fail-on", "peak>0")[0] == 1
    said = capsys.readouterr().err
    assert "bytes>1%: exceeded" in said and "peak>0: exceeded" in said
    # The other way round both are less.
    assert run(*sides[::-1], "--fail-on", "bytes>0", "--fail-on", "peak>0")[0] == 0


@pytest.mark.parametrize("limit", ["bytes", "bytes>", "bytes>-1", "bytes>1MB", ">3", "weight>1"])
def test_what_is_no_limit_is_refused(model, limit, capsys):
    assert run(f"{model}:before", f"{model}:after", "--fail-on", limit)[0] == 2
    said = capsys.readouterr().err
    assert limit in said and ("is written as" in said or "the totals are" in said)


def test_limits_of_text_programs():
    difference = diff(TEXTS / "gpt_block.before.hlo", TEXTS / "gpt_block.hlo")
    before, after = difference.totals
    grown = [key for key in before if after[key] > before[key]]
    assert difference.exceeded([f"{key}>0" for key in before]) == [f"{key}>0" for key in grown]
    exact = [f"{key}>{after[key] - before[key]}" for key in grown]
    assert grown and difference.exceeded(exact) == []
    jaxprs = diff(
        "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }",
        "{ lambda ; a:f32[]. let b:f32[] = cos a in (b,) }",
    )
    with pytest.raises(ValueError, match="no totals to limit"):
        jaxprs.exceeded(["bytes>0"])


@pytest.mark.skipif(bool(whats_missing("cuda")), reason="the compiler for GPUs is not here")
def test_functions_are_compiled_for_a_target(model):
    status, text = run(f"{model}:before", f"{model}:solved", "--target", "cuda:h100")
    assert status == 1
    assert "custom-call cusolver_potrf_ffi(" in text
    same = f"{model}:before"
    assert run(same, same, "--target", "cuda:h100")[0] == 0
    path = TEXTS / "layer.hlo"
    assert run(path, path, "--target", "cuda:h100")[0] == 2
