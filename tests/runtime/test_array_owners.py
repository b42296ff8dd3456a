"""Which variables hold the arrays that are alive, and that errors of too little memory say so."""

import inspect
import threading

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.array_lines import line_of
from hlofront.base.config import options
from hlofront.inspect import array_owners
from hlofront.runtime.array import owners

KIB = 1024
keeping_lines = options["hlofront_array_lines"]
in_module = jnp.ones((2, 128))


class Model:
    def __init__(self):
        self.cache = {"keys": [jnp.ones((4, 64)) for _ in range(2)]}


def owner_of(name):
    """The owner of this name among those of all arrays."""
    (owner,) = (owner for owner in array_owners() if owner.name == name)
    return owner


def test_variables_of_functions_and_of_modules():
    params = {"w": jnp.ones((8, 64)), "layers": [jnp.ones(256), (jnp.ones(256),)]}
    owner = owner_of("params")
    assert (owner.count, owner.bytes, owner.largest) == (3, 4 * KIB, "float32[8,64]")
    function = test_variables_of_functions_and_of_modules.__name__
    assert owner.where.startswith(f"{function} at ") and "test_array_owners.py:" in owner.where
    assert (owner_of("in_module").where, owner_of("in_module").bytes) == (
        f"module {__name__}",
        KIB,
    )
    assert len(params) == 2


def test_attributes_of_objects():
    a_model = Model()
    assert owner_of("a_model.cache").bytes == 2 * KIB
    assert a_model.cache


def enclosing(hidden_array):
    return lambda: hidden_array


def test_functions_that_are_called_later_hold_what_they_enclose():
    later = enclosing(jnp.ones((16, 64)))
    assert owner_of("hidden_array, which later encloses").bytes == 4 * KIB
    assert later().shape == (16, 64)


def test_variables_of_other_threads():
    started, done = threading.Event(), threading.Event()

    def work():
        in_the_thread = jnp.ones((3, 7, 11))
        started.set()
        done.wait()
        return in_the_thread

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    try:
        assert "work at " in owner_of("in_the_thread").where
    finally:
        done.set()
        thread.join()


def test_arrays_that_no_variable_holds():
    (owner,) = array_owners([jnp.ones((5, 13))])
    assert (owner.name, owner.where, owner.bytes) == ("(no variable)", "", 260)
    assert array_owners([]) == []


def test_a_computation_that_runs_out_of_memory_says_who_holds_arrays():
    kept = [jnp.ones((64, 256)) for _ in range(3)]
    exhausted = jax.jit(lambda x: jnp.sort(jnp.outer(x, x).reshape(-1))[0])(jnp.ones(1 << 21))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"^RESOURCE_EXHAUSTED: ") as raised:
        exhausted.block_until_ready()
    text = str(raised.value)
    assert "196,608 bytes  kept in test_a_computation_that_runs_out_of_memory_says_" in text
    assert "3 arrays, the largest float32[64,256]" in text
    assert owners.WAYS_OUT in text and len(kept) == 3


def test_only_the_largest_are_listed():
    kept = jnp.ones((512, 512))
    lines = owners.owners_text(most=1).splitlines()
    assert " bytes are held by " in lines[0] and "  kept in " in lines[1]
    assert lines[2].endswith(" others") and len(lines) == 3
    assert kept.size


def place_of(function, text):
    """The place, in a message, of the only line of a function that has a text."""
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + i for i, line in enumerate(lines) if text in line)
    return f"test_array_owners.py:{number}"


def test_the_lines_that_made_arrays():
    double = jax.jit(lambda x: 2 * x)
    double(jnp.ones(2))  # C++ would make the next call, but for the option.
    with keeping_lines(True):
        made = {
            "jit": double(jnp.ones(2)),
            "an operator": -jnp.ones(2),
            "a transfer": jax.device_put(np.ones(2), jax.devices()[0]),
            "a creation": jnp.asarray([1.0, 2.0]),
            "a slice": jnp.ones(2)[:1],
            "a gradient": jax.grad(jnp.sum)(jnp.ones(2)),
        }
        unchanged = jax.device_put(made["jit"])
    for name, array in made.items():
        expected = place_of(test_the_lines_that_made_arrays, f'"{name}": ')
        assert line_of(array).endswith(expected), name
    assert unchanged is made["jit"]
    assert line_of(double(jnp.ones(2))) == ""


def made_in_a_function():
    return jnp.ones((3, 5))


def test_arrays_that_no_variable_holds_are_grouped_by_their_lines():
    with keeping_lines(True):
        (owner,) = array_owners([made_in_a_function(), made_in_a_function()])
    assert owner.made_at.endswith(place_of(made_in_a_function, "return"))
    assert owner.text().endswith(f"largest float32[3,5] made at {owner.made_at}")
