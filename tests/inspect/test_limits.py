"""diff and compare in CI: limits of what totals may grow by, Markdown, and absent targets."""

import io
import pathlib
import re
import shlex

import pytest

from hlofront.cli.main import main, parser
from hlofront.pjrt.targets import Description, install_hint
from hlotools import diff
from hlotools.matching.changes import Effect
from hlotools.matching.difference import Side, diff_of_sides
from hlotools.matching.limits import limit_of
from hlotools.matching.markdown import code

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


def test_changes_are_ranked_by_their_effect():
    difference = diff(TEXTS / "gpt_block.before.hlo", TEXTS / "gpt_block.hlo")
    causes = [bool(change.parts) for change in difference.changes]
    assert any(causes) and causes == sorted(causes, reverse=True)
    removed = [each for each in difference.changes if each.kind == "removed"]
    computing = [each.effect for each in removed if each.effect.operations]
    assert computing == sorted(computing, key=lambda each: each.bytes + each.operations)
    lines = difference.text().splitlines()
    assert any("subtract(" in line and "[-24 KiB, -2.05 kFLOP]" in line for line in lines)


@pytest.mark.parametrize(
    ("effect", "shown"),
    [
        (Effect(0, 0), ""),
        (Effect(-999, 1_000), "-999 B, +1 kFLOP"),
        (Effect(1_048_000, 0), "+0.999 MiB"),
        (Effect(0, -(10**16)), "-1e+04 TFLOP"),
        (Effect(1024, 0, 1.5e-6), "+1.5 us, +1 KiB"),
        (Effect(0, 0, -2000.0), "-2e+03 s"),
    ],
)
def test_effects_have_units(effect, shown):
    assert str(effect) == shown


def test_an_operation_in_a_fusion_counts_as_the_fusion_and_once():
    before = """
HloModule f, is_scheduled=true

fused {
  p = f32[1000]{0} parameter(0)
  e = f32[1000]{0} exponential(p)
  ROOT n = f32[1000]{0} negate(e)
}

ENTRY main {
  x = f32[1000]{0} parameter(0)
  ROOT fusion = f32[1000]{0} fusion(x), kind=kLoop, calls=fused
}
"""
    after = before.replace("exponential(p)", "tanh(p)").replace("negate(e)", "abs(e)")
    effects = [change.effect for change in diff(before, after).changes]
    assert effects and all(effect == (0, 0, None) for effect in effects)
    # An operation that is added inside counts as the fusion's growth, not as the fusion.
    longer = before.replace(
        "ROOT n = f32[1000]{0} negate(e)",
        """n = f32[1000]{0} negate(e)
  ROOT a = f32[1000]{0} add(n, n)""",
    )
    for sides, growth in (((before, longer), 1000), ((longer, before), -1000)):
        effects = {change.effect for change in diff(*sides).changes if change.what != "operands"}
        assert effects == {Effect(0, growth)}
    doubled = before.replace("1000", "2000")
    assert sum(change.effect.bytes for change in diff(before, doubled).changes) >= 8_000


def test_changes_have_times_and_are_ranked_by_them_where_the_devices_are_known():
    # The two added operations are of one rank; the one that computes more moves less.
    before = """
HloModule f, is_scheduled=true

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  y = f32[100000]{0} parameter(1)
  ROOT t = (f32[64,64]{1,0}, f32[100000]{0}) tuple(x, y)
}
"""
    after = before.replace(
        "  ROOT t",
        "  n = f32[100000]{0} negate(y)\n"
        "  d = f32[64,64]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "  ROOT t",
    ).replace("tuple(x, y)", "tuple(d, n)")
    slow = Description("x", "a device", "cpu", 1, None, 1e12, {"float32": 1e9}, "", ())

    def added(rates, other_rates):
        sides = Side("hlo", "a", before, rates=rates), Side("hlo", "b", after, rates=other_rates)
        changes = diff_of_sides(*sides).changes
        return [change for change in changes if change.kind == "added"]

    product, negation = added(slow, slow)
    assert product.b[0].name == "d" and product.effect.seconds == pytest.approx(2 * 64**3 / 1e9)
    assert negation.effect.seconds == pytest.approx(800_000 / 1e12)
    assert "us" in str(product.effect) and product.as_dict()["effect"]["seconds"]
    for rates in ((None, None), (slow, None)):
        changes = added(*rates)
        assert [change.b[0].name for change in changes] == ["n", "d"]
        assert all(change.effect.seconds is None for change in changes)


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


def test_markdown_has_the_totals_and_the_changes(model):
    status, text = run(f"{model}:before", f"{model}:after", "--markdown")
    assert status == 1
    title, _, sides, _, heads, rule, *rest = text.splitlines()
    assert title.startswith("### HLO: ")
    assert sides == f"`{model}:before` → `{model}:after`"
    assert heads == "| total | before | after | change |  |"
    assert rule == "| --- | --: | --: | --: | --: |"
    assert any(line.startswith("| peak bytes | ") for line in rest)
    (sort,) = [line for line in rest if line.startswith("- ") and "sort" in line]
    assert sort.endswith(" at `model.py:9`")
    same, text = run(f"{model}:before", f"{model}:before", "--markdown")
    assert same == 0 and text.startswith("### HLO: the same program\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("add.1", "`add.1`"),
        ("a `b` c", "`` a `b` c ``"),
        ("@team <b>|</b>\n*x*", "`@team <b>¦</b> *x*`"),
        ("x" * 500, f"`{'x' * 400} ...`"),
    ],
)
def test_texts_of_programs_are_code(text, shown):
    assert code(text) == shown


@pytest.mark.long
def test_compare_has_limits_and_markdown(model, capsys):
    out = io.StringIO()
    base = ["compare", f"{model}:before", "--target", "cpu", "--jaxlib", "current", "--no-run"]
    assert main([*base, "--markdown", "--fail-on", "flops>0"], out) == 0
    assert out.getvalue().startswith("## `before`\n\n|  | `jaxlib current` | `cpu` |\n| --- |")
    assert main([*base, "--fail-on", "weight"], io.StringIO()) == 2
    assert "is written as" in capsys.readouterr().err


def test_the_workflow_in_the_documentation_calls_commands_that_exist():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "howto" / "pull_requests.md").read_text()
    (workflow,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (command,) = re.findall(r"python -m hlofront (.*?) > comment.md", workflow, re.DOTALL)
    command = command.replace("${{ github.base_ref }}", "main")
    options = parser().parse_args(shlex.split(command))
    assert options.command == "compare" and options.at == ["origin/main", "HEAD"]
    assert options.markdown and [limit_of(text).total for text in options.fail_on]


@pytest.mark.skipif(bool(install_hint("cuda")), reason="the compiler for GPUs is not here")
def test_functions_are_compiled_for_a_target(model):
    status, text = run(f"{model}:before", f"{model}:solved", "--target", "cuda:h100")
    assert status == 1
    assert "custom-call cusolver_potrf_ffi(" in text
    assert re.search(r"\[[+-][\d.e+]+ (ns|us|ms), ", text), "a change has its time on this device"
    same = f"{model}:before"
    assert run(same, same, "--target", "cuda:h100")[0] == 0
    path = TEXTS / "layer.hlo"
    assert run(path, path, "--target", "cuda:h100")[0] == 2
