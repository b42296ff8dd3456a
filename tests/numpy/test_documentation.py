"""Every public function says what it does, what it takes, and of which types."""

import inspect
import pydoc
from typing import Any

import numpy as np
import pytest

import hlofront.numpy as jnp

# Parameters that may be anything at all.
ANYTHING = {("promote_types", "a"), ("promote_types", "b")}


def functions():
    """Name -> function, of those that are our own."""
    found = {}
    for name in sorted(vars(jnp)):
        value = getattr(jnp, name)
        if name.startswith("_") or inspect.isclass(value) or not callable(value):
            continue
        if (getattr(value, "__module__", None) or "").partition(".")[0] == "hlofront":
            found[name] = value
    return found


def test_there_are_many():
    assert len(functions()) > 280


def test_each_is_documented():
    undocumented = [
        name for name, value in functions().items() if not (value.__doc__ or "").strip()
    ]
    assert not undocumented


def test_our_own_words_come_first_and_numpys_last():
    for name in ("sum", "sin", "concatenate", "add", "where"):
        text = inspect.getdoc(getattr(jnp, name))
        assert text is not None
        own, _, borrowed = text.partition(f"The documentation of numpy.{name}:")
        assert "Arrays are immutable" in own and own.splitlines()[0].endswith((".", ":"))
        assert inspect.getdoc(getattr(np, name)).splitlines()[-1].strip() in borrowed


def test_each_parameter_and_result_has_a_type():
    untyped = []
    for name, value in functions().items():
        signature = inspect.signature(value)
        if signature.return_annotation is signature.empty:
            untyped.append((name, "its result"))
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.annotation in (parameter.empty, Any, "Any"):
                untyped.append((name, parameter.name))
    assert not sorted(set(untyped) - ANYTHING)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sin", "(x: 'ArrayLike', /) -> 'Array'"),
        ("argmax", "(a: 'ArrayLike', axis: 'Axis' = None, out: 'None' = None, keepdims: "
         "'bool | None' = None) -> 'Array'"),
        ("add", "(x1: 'ArrayLike', x2: 'ArrayLike', /, *, out: None = None, where: None = None) "
         "-> 'Array'"),
        ("divmod", "(x1: 'ArrayLike', x2: 'ArrayLike', /) -> 'tuple[Array, Array]'"),
    ],
)  # fmt: skip
def test_signatures_read_well(name, text):
    assert str(inspect.signature(getattr(jnp, name))) == text


def test_help_shows_signature_and_text():
    text = pydoc.plain(pydoc.render_doc(jnp.sum))
    assert "sum(a: 'ArrayLike'" in text and "the sum over axes" in text
    assert "elementwise sum" in pydoc.plain(pydoc.render_doc(jnp.add))
    assert "reduce" in pydoc.plain(pydoc.render_doc(jnp.ufunc))


def test_numpys_functions_are_left_alone():
    assert not getattr(np.sin, "__annotations__", None)
    assert "axis" not in getattr(np.can_cast, "__annotations__", {})
