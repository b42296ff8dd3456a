"""make_user_context, and what the environment is reported as."""

import threading

import pytest

import hlofront


def test_jit_traces_anew_for_each_value_of_a_user_context():
    context = hlofront.make_user_context("low")
    traced = []

    @hlofront.jit
    def f(x):
        traced.append(context.value)
        return x * (2 if context.value == "high" else 1)

    for _ in range(2):
        assert f(3.0) == 3.0
        with context("high"):
            assert f(3.0) == 6.0
            with context(None):
                assert context.value is None
            assert context.value == "high"
    assert traced == ["low", "high"]
    other = hlofront.make_user_context(default_value=3)
    assert other.value == 3
    with other(4):
        f(3.0)
    assert traced == ["low", "high", "low"]


def test_a_user_context_of_the_process_and_of_a_thread():
    context = hlofront.make_user_context()
    context.set_global("all")
    seen = []
    with context("here"):
        thread = threading.Thread(target=lambda: seen.append(context.value))
        thread.start()
        thread.join()
        assert context.value == "here"
        assert context.get_global() == "all"
    assert seen == ["all"]
    context.set_global(None)


def test_values_of_a_user_context_are_hashable():
    with pytest.raises(TypeError, match="hashable"):
        hlofront.make_user_context([1])
    context = hlofront.make_user_context()
    with pytest.raises(TypeError, match="hashable"):
        context([1])


def test_print_environment_info(capsys, monkeypatch):
    monkeypatch.setenv("JAX_SOMETHING", "7")
    text = hlofront.print_environment_info(return_string=True)
    assert capsys.readouterr().out == ""
    for part in ("hlofront:", "jaxlib:", "numpy:", "device info: cpu-", "JAX_SOMETHING=7"):
        assert part in text
    assert hlofront.print_environment_info() is None
    assert capsys.readouterr().out == text + "\n"
