"""An error of a rule names the line of the operation, whichever transformation asks for it."""

import numpy as np
import pytest

import hlofront as jax
from hlofront.core import rules
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import no_subprograms
from hlofront.experimental import checkify
from hlofront.primitives.rules.derivatives import linear

x = np.ones(3, np.float32)


# Each transforms a program that was traced before: the rule of this table fails.
TRANSFORMATIONS = {
    "vmap": ("batch", lambda f: jax.vmap(f)(x)),
    "jvp": ("jvp", lambda f: jax.jvp(f, (x,), (x,))),
    "linearize": ("jvp", lambda f: jax.linearize(f, x)),
    "linear_transpose": ("transpose", lambda f: jax.linear_transpose(f, x)(x)),
    "grad": ("transpose", lambda f: jax.make_jaxpr(jax.grad(lambda x: f(x).sum()))(x)),
    "checkify": ("infer", lambda f: checkify.checkify(f, checkify.all_checks)(x)),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_an_error_of_a_rule_names_the_user_s_line(name):
    table, transform = TRANSFORMATIONS[name]
    broken = False
    # The results of `infer` are not kept for operations that hold programs.
    failing_p = Primitive("failing", carries_programs=True)
    rules.subprograms(failing_p)(no_subprograms)
    linear(failing_p, lambda cotangent, x: [cotangent])
    rules.batch(failing_p)(lambda values, axes: (values[0], axes[0]))

    @rules.infer(failing_p)
    def _(x):
        if broken and table == "infer":
            raise ArithmeticError("the rule fails")
        return x

    if table != "infer":

        def fails(*_, **__):
            raise ArithmeticError("the rule fails")

        getattr(rules, table)[failing_p] = fails

    @jax.jit
    def traced_before(x):
        return failing_p.bind(x)  # the user's line

    traced_before.trace(x)
    jax.make_jaxpr(traced_before)(x)
    broken = True
    with pytest.raises(ArithmeticError) as caught:
        transform(traced_before)
    (note,) = [note for note in caught.value.__notes__ if note.startswith("While transforming")]
    assert "test_user_lines.py" in note
    assert "in traced_before:  return failing_p.bind(x)" in note
