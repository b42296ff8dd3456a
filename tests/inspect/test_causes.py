"""What differs in what the compiler was given comes first in a diff, with what follows under it."""

import json
import pathlib
import re

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.inspect import diff
from hlofront.pjrt.targets import install_hint, target
from hlotools.matching.arguments import numbered_pairs

FILE = pathlib.Path(__file__).name


def f32(*sizes):
    return jax.ShapeDtypeStruct(sizes, "float32")


X = f32(32, 64)
W = f32(64, 64)


def line_of(text):
    lines = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
    return 1 + next(n for n, line in enumerate(lines) if text in line)


def layer(x, w):
    hidden = jnp.tanh(x @ w)
    return lax.sort(hidden) * 2


def other_layer(x, w):
    hidden = jnp.tanh(x @ w)  # The diff shall not name this line: it is as in `layer`.
    return lax.sort(hidden) * jnp.cos(x) + 1  # Here are the cosine and the sum.


def causes_of(difference):
    return [change for change in difference.changes if change.is_cause]


def test_operations_of_one_line_are_one_cause():
    difference = diff((layer, X, W), (other_layer, X, W))
    (cause,) = causes_of(difference)
    assert cause.sentence == "added cosine, add"
    assert f"{FILE}:{line_of('cosine and the sum.')}" in cause.sources
    assert all(not part.is_cause for part in cause.parts)


def test_several_causes_have_the_changes_of_their_lines():
    def before(x, y):
        first = jnp.sin(x).sum(0)
        return first, lax.sort(y)

    def after(x, y):
        first = jnp.cumsum(jnp.sin(x), 0).sum(0)
        return first, lax.sort(y)

    difference = diff((before, X, f32(8, 128)), (after, X, f32(8, 256)))
    causes = causes_of(difference)
    assert {re.sub(r"added .*", "added", cause.sentence) for cause in causes} == {
        "argument y: f32[8,128] -> f32[8,256]",
        "added",
    }
    of_argument = next(cause for cause in causes if cause.kind == "argument")
    assert of_argument.parts
    assert all("sin" not in part.sentence for part in of_argument.parts)
    every = [id(part) for change in difference.changes for part in change.parts]
    assert len(every) == len(set(every))


def test_an_argument_in_the_middle_is_named_and_not_those_behind_it():
    def before(x, mask, w):
        return x @ w * mask

    def after(x, w):
        return x @ w

    for stage in ("stablehlo", "hlo"):
        told = diff((before, X, X, W), (after, X, W), stage=stage)
        sentences = [change.sentence for change in told.changes]
        assert not any("[64,64]" in sentence for sentence in sentences), sentences
    (cause,) = causes_of(told)
    assert cause.sentence == "removed multiply (with the argument mask)"


def test_arguments_pair_by_name_before_number():
    staged = [jax.jit(f).lower(*args).as_text("hlo", debug_info=True) for f, args in (
        (lambda x, mask, w: (x @ w, mask), (X, X, W)),
        (lambda mask, x, w: (x @ w, mask), (X, X, W)),
    )]  # fmt: skip
    modules = [jax.inspect.parse(text) for text in staged]
    pairs = numbered_pairs(modules[0].entry, modules[1].entry)
    assert pairs is None or sorted(pairs) == [(0, 1), (1, 0), (2, 2)]


def test_equal_programs_have_no_causes_but_their_flags():
    staged = jax.jit(layer).lower(X, W)
    options = {"xla_cpu_enable_fast_math": False}
    difference = diff(staged.compile(), staged.compile(compiler_options=options))
    assert difference.equal
    (cause,) = causes_of(difference)
    assert cause.kind == "flag" and cause.parts == ()


def test_a_single_change_that_follows_is_counted_as_one():
    narrow = lambda x, w: jnp.tanh(x.astype(jnp.bfloat16) @ w).sum()
    difference = diff(
        (lambda x, w: jnp.tanh(x @ w).sum(), f32(8, 64), f32(64, 32)),
        (narrow, f32(8, 64), f32(64, 32)),
    )
    counts = [len(cause.parts) for cause in causes_of(difference)]
    text = difference.markdown()
    assert counts == [1] and "(with 1 change that follows)" in text


def test_json_and_pages_have_the_effects_under_their_cause():
    difference = diff((layer, X, W), (layer, f32(16, 64), W))
    (told,) = json.loads(difference.json())["changes"]
    assert told["is_cause"] and told["kind"] == "argument" and told["parts"]
    assert not any(part["is_cause"] for part in told["parts"])
    assert "argument x: f32[32,64] -\\u003e f32[16,64]" in difference.html()
    assert "argument x" in difference._repr_html_()
    assert "argument x" in difference.markdown()
    assert "1 cause" in difference.title


def test_texts_have_the_causes_that_they_hold():
    before, after = (jax.jit(f).lower(X, W).compile() for f in (layer, other_layer))
    (cause,) = causes_of(diff(before, after))
    (of_texts,) = causes_of(diff(before.as_text(), after.as_text()))
    assert cause.kind == of_texts.kind == "operations"
    donating = jax.jit(layer, donate_argnums=0).lower(X, jax.ShapeDtypeStruct((64, 64), "float32"))
    keeping = jax.jit(layer).lower(X, jax.ShapeDtypeStruct((64, 64), "float32"))
    texts = [each.compile().as_text() for each in (keeping, donating)]
    assert diff(*texts).changes[0].sentence == "argument x: now donated"
    larger = jax.jit(layer).lower(f32(16, 64), W).compile().as_text()
    changes = diff(before.as_text(), larger).changes
    assert changes[0].sentence == "argument x: f32[32,64] -> f32[16,64]" and changes[0].parts


def test_arguments_of_stablehlo_come_first_by_name():
    first = jax.jit(layer).lower(X, W)
    second = jax.jit(layer, donate_argnums=0).lower(jax.ShapeDtypeStruct((32, 64), "bfloat16"), W)
    said = [change.sentence for change in diff(first, second).changes]
    assert said[:2] == [
        "argument x: f32[32,64] -> bf16[32,64]",
        "argument x: now donated",
    ]
    # What is of the argument alone is said once.
    assert not any("%arg0" in each for each in said)


def test_a_constant_of_a_text_is_under_no_cause_of_another():
    def scaled(x, w, by):
        return jnp.tanh(x @ w) * by, x * 2

    def texts(by, **options):
        staged = jax.jit(lambda x, w: scaled(x, w, by), **options)
        return staged.lower(X, W).compile().as_text()

    changes = diff(texts(3.0), texts(5.0, donate_argnums=0)).changes
    assert changes[0].sentence == "argument x: now donated"
    assert [c.what for c in changes if not c.is_cause] == ["constant"]


def test_dumps_of_xla_have_flags_and_sources_beside_them(tmp_path):
    for name, function in (("a", layer), ("b", other_layer)):
        staged = jax.jit(function).lower(X, W)
        module = tmp_path / name / "module_0001.jit_f"
        module.parent.mkdir()
        module.with_name(module.name + ".before_optimizations.txt").write_text(
            staged.as_text("hlo")
        )
        optimized = module.with_name(module.name + ".cpu_after_optimizations.txt")
        optimized.write_text(staged.compile().as_text())
    for name, options in (("a", ""), ("b", 'xla_fast: true\nxla_dump_to: "/tmp"\n')):
        (tmp_path / name / "module_0001.jit_f.debug_options").write_text(options)
    first, second = (
        tmp_path / name / "module_0001.jit_f.cpu_after_optimizations.txt" for name in "ab"
    )
    flag, *others = causes_of(diff(first, second))
    assert flag.sentence == "flag xla_fast: not set -> true"
    assert [each.sentence for each in others] == ["added cosine, add"]


@pytest.mark.skipif(bool(install_hint("cuda")), reason="a compiler for GPUs is needed")
def test_of_programs_for_two_devices_the_compiler_is_a_cause():
    staged = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(0))
    here = staged.lower(X, W).compile()
    with target("cuda:h100"):
        there = staged.lower(X, W).compile()
        larger = staged.lower(f32(16, 64), W).compile()
    (cause,) = causes_of(diff(here, there))
    assert cause.sentence == "compiler: cpu -> cuda:h100" and cause.parts
    first, second = causes_of(diff(here, larger))
    assert first.kind == "compiler" and second.sentence.startswith("argument x")


def test_a_change_inside_a_loop_is_the_cause():
    def before(x, ws):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)[0]

    def after(x, ws):
        return lax.scan(lambda h, w: (jnp.sin(h @ w), None), x, ws)[0]

    (cause,) = causes_of(diff((before, X, f32(4, 64, 64)), (after, X, f32(4, 64, 64))))
    assert cause.sentence == "opcode of tanh -> sine: tanh -> sine"


def test_the_size_in_a_call_follows_from_the_argument():
    @jax.jit
    def inner(x):
        return jnp.cumsum(x, 1) / x.shape[0]

    def outer(x):
        return inner(x).mean()

    (cause,) = causes_of(diff((outer, X), (outer, f32(64, 64))))
    assert cause.sentence == "argument x: f32[32,64] -> f32[64,64]"
