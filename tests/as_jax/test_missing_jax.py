"""`import jax` next to hlofront, where no jax is installed: the error says what to do."""

import importlib
import importlib.util
import sys

import pytest

import hlofront  # noqa: F401

WAYS = r"`import hlofront.as_jax` before .* `python -m hlofront as-jax PROGRAM`"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library on top of jax, which uses it if it is there."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "needs_jax.py").write_text("import jax.numpy as jnp\n")
    (tmp_path / "may_use_jax.py").write_text(
        "try:\n    from jax import Array\nexcept ImportError as error:\n    absent = error\n"
    )
    yield
    for name in ("needs_jax", "may_use_jax"):
        sys.modules.pop(name, None)


def test_an_import_of_jax_says_how_hlofront_takes_its_place():
    with pytest.raises(ModuleNotFoundError, match=WAYS) as caught:
        importlib.import_module("jax")
    assert caught.value.name == "jax"
    assert str(caught.value).startswith("No module named 'jax'")


def test_an_import_of_a_library_that_needs_jax_says_so_too(library):
    with pytest.raises(ModuleNotFoundError, match=WAYS):
        importlib.import_module("needs_jax")


def test_a_library_that_can_do_without_jax_is_imported(library):
    assert importlib.import_module("may_use_jax").absent.name == "jax"


def test_who_asks_whether_there_is_a_jax_gets_no_error():
    assert importlib.util.find_spec("jax") is None


def test_other_modules_that_are_not_there_are_reported_by_python():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'jaxx'$"):
        importlib.import_module("jaxx")
