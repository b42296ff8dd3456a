"""The examples run as a user would run them."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=EXAMPLES.parent,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent), **environment},
        check=True,
        timeout=300,
    ).stdout


@pytest.mark.long
def test_kmeans_clusters_as_well_as_scikit_learn():
    pytest.importorskip("sklearn")
    text = run(str(EXAMPLES / "kmeans.py"))
    ours, theirs = (float(x) for x in re.findall(r"\b(?:0?\.\d+|\d+\.\d+)\b", text)[:2])
    assert 0.6 < (ours / 100 if ours > 1 else ours) <= 1.0
    assert abs(ours - theirs) < (8 if ours > 1 else 0.08)


@pytest.mark.long
@pytest.mark.parametrize(("devices", "exchanged"), [("8", "{'all-reduce': 2}"), ("1", "{}")])
def test_sharded_learns_on_any_number_of_devices(devices, exchanged):
    text = run(str(EXAMPLES / "sharded.py"), JAX_NUM_CPU_DEVICES=devices, JAX_PLATFORMS="cpu")
    split, alone = re.search(r"first loss is ([\d.]+), and ([\d.]+) on one", text).groups()
    assert abs(float(split) - float(alone)) < 1e-4
    assert float(re.findall(r"loss (0\.\d+)$", text, re.MULTILINE)[-1]) < 0.2
    assert f"they exchange {exchanged} per step" in text


@pytest.mark.long
@pytest.mark.parametrize(("example", "most"), [("transformer_sharded", 0.3), ("pipeline", 0.15)])
def test_examples_on_eight_devices_learn(example, most):
    text = run(str(EXAMPLES / f"{example}.py"), JAX_NUM_CPU_DEVICES="8", JAX_PLATFORMS="cpu")
    assert float(re.findall(r"loss (\d+\.\d+)$", text, re.MULTILINE)[-1]) < most
    if first := re.search(r"first loss is ([\d.]+), and ([\d.]+) on one", text):
        assert abs(float(first[1]) - float(first[2])) < 1e-4


@pytest.mark.long
@pytest.mark.parametrize(("example", "epochs", "most"), [("generate", "8", 4), ("ragged", "2", 5)])
def test_examples_with_many_lengths_have_few_programs(example, epochs, most):
    text = run(str(EXAMPLES / f"{example}.py"), epochs)
    for lengths, programs in re.findall(
        r"(\d+) (?:lengths|numbers of steps)\D+(\d+) programs", text
    ):
        assert int(programs) <= most < int(lengths)
    assert "programs" in text


@pytest.mark.long
def test_the_server_has_the_file_alone(tmp_path):
    path = str(tmp_path / "model.hlob")
    script = str(EXAMPLES / "server.py")
    listing = run(script, "build", path)
    assert "x: float32[1,64]" in listing and "x: float32[16,64]" in listing
    single, many = ([{"id": n, "x": n / 10} for n in range(count)] for count in (1, 20))
    requests = "\n".join(map(json.dumps, (single, many)))
    served = subprocess.run(
        [sys.executable, "-W", "error", script, "serve", path],
        input=requests,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parent)},
        check=True,
    )
    answers = list(map(json.loads, served.stdout.splitlines()))
    assert [answer["id"] for answer in answers] == [0, *range(20)]
    assert answers[0]["mean"] == pytest.approx(0) and answers[20]["mean"] != 0
    assert "first answers after" in served.stderr


@pytest.mark.long
def test_showing_the_example():
    pytest.importorskip("sklearn")
    text = run("-m", "hlofront", "show", "examples/kmeans.py:step")
    for part in ("def step(", "{ lambda ;", "module @jit_step", "HloModule jit_step", "bytes of"):
        assert part in text
    assert "\x1b" not in text
