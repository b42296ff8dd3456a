"""Block sizes ranked by static cycles, for functions and for files of StableHLO that jax wrote."""

import io
import json
import pathlib

import pytest

import hlofront as jax
from hlofront.base.errors import TargetError
from hlofront.cli.main import main
from hlofront.cli.tune import values_of
from hlofront.inspect import tune
from hlofront.inspect.target import UsageError
from hlofront.inspect.tuning import Tuning, TuningCandidate
from hlotools.dumps.tpu_kernels import TpuKernel

KERNELS = pathlib.Path(__file__).with_name("texts") / "kernels"
V5E = jax.target("tpu:v5e:1x1")
KERNEL = TpuKernel(
    name="flash",
    operations=("flash",),
    calls=2,
    bundles=100,
    trips=(4,),
    cycles=400,
    slots={"MXU": 0.57, "VALU": 0.5},
    fills=0,
    spills=3,
    vmem=1 << 20,
    smem=0,
    flops=79_000_000_000,
    bytes=1 << 20,
    seconds=1e-6,
    limit="MXU",
    compiler_cycles=None,
    file="model.py",
    line=12,
    path=pathlib.Path("bundles.txt"),
)


def run(*arguments):
    out = io.StringIO()
    status = main([str(each) for each in arguments], out)
    return status, out.getvalue()


def ranked(*candidates):
    return Tuning("attention", V5E.describe(), candidates)


def needs_libtpu():
    try:
        assert V5E.devices
    except RuntimeError as error:
        pytest.skip(str(error))


def test_candidates_are_ranked_by_cycles_of_all_calls():
    few, many = KERNEL._replace(cycles=100, calls=3), KERNEL._replace(cycles=50, calls=4)
    ranking = ranked(TuningCandidate("block=1", (KERNEL,)), TuningCandidate("block=2", (few, many)))
    assert [(each.name, each.cycles) for each in ranking.candidates] == [
        ("block=2", 500),
        ("block=1", 800),
    ]
    _, _, first, second, *_ = ranking.text().splitlines()
    assert "1.58e+11" in first and first.split()[0] == "500" and first.endswith("block=2")
    assert second.split()[0] == "800" and second.endswith("block=1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "kernel flash at model.py:12 (100% of the cycles) is limited by the slot of products "
             "of matrices (MXU), which is 57% full"),
        ({"limit": "latency", "slots": {"MXU": 0.2}},
         "limited by latency: its fullest slot is 20% full"),
        ({"limit": "HBM", "bytes": 819_000_000},
         "memory: 781.1 MiB to and from HBM take 1.00 ms, its cycles 533.33 ns"),
    ],
)  # fmt: skip
def test_the_limit_of_the_best_is_said_in_words(changes, words):
    text = ranked(TuningCandidate("block=1", (KERNEL._replace(**changes),))).text()
    assert words in text and "leave out waits for copies (DMA)" in text


def test_unknown_trips_give_a_lower_bound():
    text = ranked(TuningCandidate("block=1", (KERNEL._replace(trips=(4, None)),))).text()
    assert ">=800" in text and "trips are not constant" in text
    assert ">=" not in ranked(TuningCandidate("block=1", (KERNEL,))).text()


def test_a_better_bound_of_another_candidate_is_named():
    slow = KERNEL._replace(cycles=300, seconds=2e-6, limit="HBM")
    text = ranked(TuningCandidate("block=1", (KERNEL,)), TuningCandidate("block=2", (slow,))).text()
    assert "by the bound, which counts HBM as well, block=1 is the best" in text


def test_without_a_program_that_compiles_there_is_no_best():
    ranking = ranked(TuningCandidate("block=1", (), "VMEM exceeded: 448.0K"))
    assert ranking.best is None
    assert ranking.text().splitlines()[1:] == ["refused: block=1: VMEM exceeded: 448.0K"]


def attention(x, *, block=128, precision=None):
    return x


def test_values_of_options_are_literals_or_words():
    values = values_of(["block=128,256", "precision=high,highest"], attention)
    assert values == {"block": [128, 256], "precision": ["high", "highest"]}
    assert values_of(["block=(1, 2),None"], attention) == {"block": [(1, 2), None]}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "give the values to rank"),
        (["block"], "NAME=VALUES"),
        (["blok=1"], "no parameter 'blok': x, block, precision"),
    ],
)
def test_wrong_values_say_what_is_wanted(texts, message):
    with pytest.raises(UsageError, match=message):
        values_of(texts, attention)


def test_what_cannot_be_ranked_says_so(tmp_path, capsys):
    with pytest.raises(TargetError, match="cuda:h100 is none"):
        tune(attention, over={"block": [1]}, target="cuda:h100")
    with pytest.raises(ValueError, match="nothing to rank"):
        tune([], target=V5E)
    assert run("tune", tmp_path, "--over", "x=1", "--target", "tpu:v5e:1x1")[0] == 2
    assert "--over and --args are for functions" in capsys.readouterr().err
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        tune([tmp_path], target=V5E, folder=tmp_path)


MODEL = """
import hlofront as jax
import hlofront.numpy as jnp

def scores(q, k, *, block, scale):
    assert k.shape[0] % block == 0, f"{block} does not divide {k.shape[0]}"

    def step(total, keys):
        return total + jnp.exp(q @ keys.T) @ keys, None

    return jax.lax.scan(step, scale * q, k.reshape(-1, block, k.shape[1]))[0]
"""


@pytest.mark.long
def test_eight_block_sizes_are_ranked_as_by_the_estimates_of_libtpu(tmp_path):
    needs_libtpu()
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    arguments = ("tune", f"{path}:scores", "--args", "f32[512,128], f32[512,128]")
    blocks = (512, 256, 128, 64, 32, 16, 8, 4)
    mixed = "32,4,128,512,300,8,256,64,16"
    over = ("--over", f"block={mixed}", "--over", "scale=2")
    status, text = run(*arguments, *over, "--target", "tpu:v5e:1x1", "--json")
    answer = json.loads(text)
    assert status == 0
    assert answer["refused"] == [
        {"name": "block=300 scale=2", "problem": "AssertionError: 300 does not divide 512"}
    ]
    rows = answer["candidates"]
    assert [row["name"] for row in rows] == [f"block={block} scale=2" for block in blocks]
    estimates = [sum(k["compiler_cycles"] or 0 for k in row["kernels"]) for row in rows]
    assert estimates == sorted(estimates)
    assert rows[0]["kernels"][0]["file"] == str(path)


@pytest.mark.slow
def test_kernels_of_jax_are_ranked_and_those_that_exceed_vmem_named(tmp_path):
    needs_libtpu()
    small = tmp_path / "small.mlir"
    limit = r"{\22memory_space\22: 1, \22offset\22: 0, \22size\22: 65536}"
    config = r"\22custom_call_config\22"
    text = (KERNELS / "matmul.mlir").read_text()
    assert config in text
    small.write_text(text.replace(config, rf"\22scoped_memory_configs\22: [{limit}], {config}"))
    files = [KERNELS / "matmul.mlir", KERNELS / "matmul_rows.mlir", small]
    dumps = tmp_path / "dumps"
    ranking = tune(files, target=V5E, folder=dumps)
    assert [pathlib.Path(each.name).stem for each in ranking.candidates] == [
        "matmul_rows",
        "matmul",
    ]
    # The grid has 32 and 64 steps.
    assert [each.kernels[0].trips for each in ranking.candidates] == [(32,), (64,)]
    (refused,) = ranking.refused
    assert refused.problem == "VMEM exceeded: matmul.1 needs 448.0K, the limit is 64.0K"
    again = tune([folder for folder in dumps.iterdir() if any(folder.iterdir())], target=V5E)
    assert [each.cycles for each in again.candidates] == [
        each.cycles for each in ranking.candidates
    ]


def test_hlo_is_refused_with_what_to_give(capsys):
    needs_libtpu()
    assert run("tune", KERNELS / "matmul.hlo", "--target", "tpu:v5e:1x1")[0] == 2
    assert "it is HLO: give StableHLO" in capsys.readouterr().err
