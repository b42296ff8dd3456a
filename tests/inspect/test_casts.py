"""What differs because of another dtype has that as its cause, in the direction that it went."""

import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront.inspect import diff

PARAMS = {
    "w1": jnp.zeros((64, 128)), "b1": jnp.zeros(128), "w2": jnp.zeros((128, 10)),
}  # fmt: skip
X = jnp.zeros((32, 64))


def model(params, x):
    h = jax.nn.gelu(x @ params["w1"] + params["b1"])
    return h @ params["w2"] * 2.0


def cast(dtype, inputs=True):
    def cast_model(params, x):
        params = {name: value.astype(dtype) for name, value in params.items()}
        return model(params, x.astype(dtype) if inputs else x)

    return cast_model


def gradient(function):
    return jax.grad(lambda params, x: function(params, x).astype(jnp.float32).sum())


def compared(f, g, args=(PARAMS, X), others=None):
    a, b = jax.jit(f).lower(*args), jax.jit(g).lower(*(others or args))
    return diff(a.compile(), b.compile())


def causes(difference):
    return [change.sentence for change in difference.changes if change.is_cause]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16], ids=["bf16", "f16"])
@pytest.mark.parametrize("of", [lambda f: f, gradient], ids=["values", "gradients"])
def test_casts_of_arguments_are_the_cause_of_operations_in_another_dtype(dtype, of):
    name = {jnp.bfloat16: "bf16", jnp.float16: "f16"}[dtype]
    there = causes(compared(of(model), of(cast(dtype))))
    back = causes(compared(of(cast(dtype)), of(model)))
    assert len(there) == len(back) == 1
    before, _, after = there[0].partition(": ")
    names = before.removeprefix(f"dtype f32 -> {name} of ")
    assert {"params['w1']", "params['w2']"} <= set(names.split(" and ")[0].split(", "))
    # Operations that both have are told once, not as removed and added.
    assert after.startswith(f"{2 if of is not gradient else 4} × dot_general")
    assert "removed" not in after and "added" not in after
    assert back[0].startswith(f"dtype {name} -> f32 of ")
    assert back[0].partition(": ")[2].startswith(after.split(",")[0])


def test_casts_of_weights_that_products_undo_are_converts():
    difference = compared(model, cast(jnp.bfloat16, inputs=False))
    sentence = causes(difference)[0]
    assert sentence.startswith("dtype f32 -> bf16 of params['b1'], params['w1'], params['w2']: ")
    assert "convert added" in sentence
    back = causes(compared(cast(jnp.bfloat16, inputs=False), model))[0]
    assert back.startswith("dtype bf16 -> f32 of params['b1'], params['w1'], params['w2']: ")


def test_arguments_of_another_dtype_are_the_cause_themselves():
    lower = {name: value.astype(jnp.bfloat16) for name, value in PARAMS.items()}
    difference = compared(model, model, others=(lower, X.astype(jnp.bfloat16)))
    assert causes(difference) == [
        "arguments params['b1'], params['w1'], params['w2'], x: dtype f32 -> bf16"
    ]


def test_another_change_next_to_a_cast_is_another_cause():
    def other(params, x):
        return jnp.sort(cast(jnp.bfloat16)(params, x), axis=0)

    found = causes(compared(model, other))
    assert found[0].startswith("dtype f32 -> bf16 of params")
    assert any("sort" in sentence for sentence in found[1:])


def test_lowered_programs_and_texts_tell_the_dtype_first():
    a, b = (jax.jit(f).lower(PARAMS, X) for f in (model, cast(jnp.bfloat16)))
    for difference in (diff(a, b), hlotools.diff(a.as_text(), b.as_text())):
        first = difference.changes[0].sentence
        assert first.startswith("dtype f32 -> bf16")
        # The operations are in this change, not among those that were added and removed.
        assert "dot_general" not in "".join(c.sentence for c in difference.changes[1:])
    texts = a.compile().as_text(), b.compile().as_text()
    assert hlotools.diff(*texts).changes[0].sentence.startswith("dtype f32 -> bf16")
    assert hlotools.diff(*texts[::-1]).changes[0].sentence.startswith("dtype bf16 -> f32")


def test_sizes_and_precisions_are_causes():
    wider = causes(compared(model, model, others=(PARAMS, jnp.zeros((64, 64)))))
    assert wider == ["argument x: f32[32,64] -> f32[64,64]"]

    def precise(params, x):
        with jax.default_matmul_precision("highest"):
            return model(params, x)

    found = causes(compared(model, precise))
    assert found and all(sentence.startswith("precision of dot_general") for sentence in found)
