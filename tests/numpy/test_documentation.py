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
    for name in dir(jnp):
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


def test_what_differs_from_numpy_follows_our_own_words():
    for name in ("sum", "sin", "concatenate", "add", "where"):
        text = inspect.getdoc(getattr(jnp, name))
        own, _, differences = text.partition(f"It follows numpy.{name}, except that ")
        assert "arrays are immutable" in differences and own.splitlines()[0].endswith((".", ":"))


def test_no_text_of_numpy_is_shown():
    """It would describe what does not hold here: `out=`, views, lists as operands."""
    for name, value in functions().items():
        reference = inspect.getdoc(getattr(np, name, None)) or ""
        longest = max(reference.splitlines(), key=len, default="")
        assert len(longest) < 60 or longest not in inspect.getdoc(value), name
    assert len(inspect.getdoc(jnp.einsum).splitlines()) < 60


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
