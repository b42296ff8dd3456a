"""Values derived from a program are computed once, and live as long as the program."""

import gc
import weakref

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.core.aval import ShapedArray
from hlofront.core.programs.program_cache import DerivedCache, once_per_program
from hlofront.primitives.elementwise.elementwise import sin
from hlofront.transforms.stage import stage


def program_of_sin():
    return stage(lambda x: [sin(x)], [ShapedArray((3,), np.dtype("float32"))])


def test_a_value_is_computed_once_per_program_and_key():
    computed = []

    @once_per_program
    def derived(program, count):
        computed.append(count)

    program, other = program_of_sin(), program_of_sin()
    for each in (program, program, other):
        derived(each, 1)  # of which the value is None
    derived(program, 2)
    assert computed == [1, 1, 2]


def test_two_caches_keep_their_values_apart():
    program = program_of_sin()
    first, second = DerivedCache(), DerivedCache()
    assert first.get_or_compute(program, "key", lambda: "of the first") == "of the first"
    assert second.get_or_compute(program, "key", lambda: "of the second") == "of the second"
    assert list(first.of(program).values()) == ["of the first"]


def test_a_cache_with_a_limit_drops_its_oldest_values():
    program = program_of_sin()
    cache = DerivedCache(limit=2)
    for key in range(4):
        cache.get_or_compute(program, key, lambda key=key: f"value {key}")
    assert list(cache.of(program).values()) == ["value 2", "value 3"]


def test_options_that_tracing_depends_on_have_values_of_their_own():
    computed = []

    @once_per_program
    def derived(program):
        computed.append(enable_x64.value)

    program, cache = program_of_sin(), DerivedCache()
    for x64 in (False, True, False, True):
        with enable_x64(x64):
            derived(program)
            assert cache.get_or_compute(program, "key", lambda x64=x64: x64) is x64
    assert computed == [False, True]


def test_a_value_goes_with_its_program():
    class Value:
        pass

    cache = DerivedCache()
    program = program_of_sin()
    value = weakref.ref(cache.get_or_compute(program, (), Value))
    del program
    gc.collect()
    assert value() is None
