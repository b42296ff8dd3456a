"""The digest of a function changes with its code and with all that it refers to, and not else."""

import textwrap

import pytest

from hlofront.runtime.bundle.function_digest import function_digest

HELPER = """
    SCALE = 2

    class Model:
        depth = 3

        def __init__(self, width):
            self.width = width

        def apply(self, x):
            return self.inner(x) * self.width

        def inner(self, x):
            return x + self.depth

    def helper(x):
        return x * SCALE
"""
MAIN = """
    import enum
    import functools
    import numpy as np
    import user_helper
    from user_helper import Model, helper

    class Mode(enum.Enum):
        A = 1
        B = 2

    TABLE = np.arange(4)
    NAMES = {"a": 1, "b": (2, 3.0)}
    MODE = Mode.A
    UNREAD = 1

    def nested(y):
        return y - 1

    def made(n):
        def inner(x, *, rate=0.5):
            # a comment
            total = helper(x) + user_helper.helper(x) + nested(x)
            picked = [t for t in (x,) if t in {"one", "two"}]
            return total * rate + n + TABLE.sum() + NAMES["a"], MODE, picked, model.apply(x)
        return inner

    model = Model(5)
    function = made(7)
    partial = functools.partial(function, rate=0.25)
    method = model.apply
    lambdas = functools.lru_cache(lambda x: nested(x) + TABLE[0])
"""


def digest_of(monkeypatch, tmp_path, main=MAIN, helper=HELPER, name="function"):
    import importlib
    import sys

    from hlofront.runtime.bundle import function_digest as module

    module._is_library.cache_clear()
    for each, text in (("user_helper", helper), ("user_main", main)):
        (tmp_path / f"{each}.py").write_text(textwrap.dedent(text))
        sys.modules.pop(each, None)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    function = getattr(importlib.import_module("user_main"), name)
    try:
        return function_digest(function)
    finally:
        for each in ("user_helper", "user_main"):
            sys.modules.pop(each, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("helper(x) + user", "helper(x) - user"),
        ("made(7)", "made(8)"),
        ("rate=0.5", "rate=0.75"),
        ("y - 1", "y - 2"),
        ("np.arange(4)", "np.arange(5)"),
        ("np.arange(4)", "np.arange(4.0)"),
        ("(2, 3.0)", "(2, 3)"),
        ("MODE = Mode.A", "MODE = Mode.B"),
        ('{"one", "two"}', '{"one", "three"}'),
        ("Model(5)", "Model(6)"),
        ("total * rate", "total / rate"),
    ],
)
def test_changes_of_the_function_and_its_file(monkeypatch, tmp_path, old, new):
    assert MAIN.count(old) == 1
    before = digest_of(monkeypatch, tmp_path)
    assert digest_of(monkeypatch, tmp_path, MAIN.replace(old, new)) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2", "SCALE = 3"),
        ("depth = 3", "depth = 4"),
        ("x * SCALE", "x + SCALE"),
        ("x + self.depth", "x - self.depth"),
    ],
)
def test_changes_of_another_module(monkeypatch, tmp_path, old, new):
    before = digest_of(monkeypatch, tmp_path)
    assert digest_of(monkeypatch, tmp_path, helper=HELPER.replace(old, new)) != before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another comment\n"),
        ("UNREAD = 1", "UNREAD = 2"),
        ("    import enum\n", "\n\n    import enum\n"),
    ],
)
def test_what_is_no_change(monkeypatch, tmp_path, old, new):
    before = digest_of(monkeypatch, tmp_path)
    assert digest_of(monkeypatch, tmp_path, MAIN.replace(old, new)) == before


@pytest.mark.parametrize("name", ["partial", "method", "lambdas"])
def test_other_callables(monkeypatch, tmp_path, name):
    before = digest_of(monkeypatch, tmp_path, name=name)
    assert digest_of(monkeypatch, tmp_path, name=name) == before
    changes = {
        "partial": ("rate=0.25", "rate=0.125"),
        "method": ("Model(5)", "Model(6)"),
        "lambdas": ("y - 1", "y - 2"),
    }
    changed = MAIN.replace(*changes[name])
    assert digest_of(monkeypatch, tmp_path, changed, name=name) != before


def test_functions_that_packages_wrap():
    import hlofront as jax

    def of(constant):
        def inner(x):
            return x * constant

        return jax.checkpoint(jax.vmap(jax.jit(inner)))

    assert function_digest(of(2)) == function_digest(of(2))
    assert function_digest(of(2)) != function_digest(of(3))


def test_custom_derivatives_count():
    import hlofront as jax

    def of(constant):
        @jax.custom_vjp
        def call(x):
            return x

        call.defvjp(lambda x: (x, None), lambda _, ct: (ct * constant,))
        return lambda x: call(x)

    assert function_digest(of(2)) == function_digest(of(2))
    assert function_digest(of(2)) != function_digest(of(3))


def test_values_that_refer_to_each_other():
    shared = []
    shared.append(shared)

    def recursive(x):
        return recursive(x - 1) if x else shared

    assert function_digest(recursive) == function_digest(recursive)


def test_another_process_computes_the_same(tmp_path):
    """Hashes of strings, and so the orders of sets, differ from process to process."""
    import os
    import subprocess
    import sys

    for each, text in (("user_helper", HELPER), ("user_main", MAIN)):
        (tmp_path / f"{each}.py").write_text(textwrap.dedent(text))
    script = "import user_main; from hlofront.runtime.bundle.function_digest import *; "
    script += "print(function_digest(user_main.function))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}",
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
