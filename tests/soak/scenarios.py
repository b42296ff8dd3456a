"""What is done again and again in one process: see `processes.py` for those that start others."""

import contextlib
import random
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core.trace import current_trace, engine
from tests.soak import processes
from tests.soak.running import Scenario

Function = Callable[[Any], Any]
MESH = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
WHOLE = jax.sharding.PartitionSpec()


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), expected, 1e-4, 1e-5)


# ---- eager calls ---------------------------------------------------------------------------------

_EAGER = (
    "add multiply subtract maximum arctan2 hypot logaddexp sin exp tanh sqrt abs floor sum mean "
    "cumsum sort argsort flip ravel max prod any outer dot where"
).split()


def eager(chance: random.Random) -> Iterator[int]:
    """Calls outside of jit, of which some are compared with NumPy."""
    numbers = np.random.default_rng(chance.randrange(2**32))
    given = [numbers.uniform(0.1, 2, 5).astype(dtype) for dtype in ("float32", "int32") * 4]
    ours = [jnp.asarray(x) for x in given]
    of_two = {name for name in _EAGER if getattr(getattr(np, name), "nin", 1) == 2} | {
        "outer",
        "dot",
    }
    while True:
        name, places = chance.choice(_EAGER), chance.choices(range(len(given)), k=3)
        count = 3 if name == "where" else 2 if name in of_two else 1
        found = getattr(jnp, name)(*[ours[place] for place in places[:count]])
        if chance.randrange(20) == 0:
            close(found, getattr(np, name)(*[given[place] for place in places[:count]]))
        yield 1


# ---- traces and compilations ---------------------------------------------------------------------


def fresh(number: float, steps: int = 4) -> Function:
    """A function that nothing has seen before: x * number**steps, and a sine."""

    def function(x: Any) -> Any:
        for _ in range(steps):
            x = x * number
        return jnp.sin(x)

    return function


def expected(number: float, x: np.ndarray, steps: int = 4) -> np.ndarray:
    return np.sin(x * number**steps)


def _gradient(function: Function) -> Function:
    return jax.grad(lambda x: function(x).sum())


def _loop(function: Function) -> Function:
    return lambda x: lax.scan(lambda c, _: (function(c), None), x, None, length=3)[0]


def _branch(function: Function) -> Function:
    return lambda x: lax.cond(jnp.sum(x) > 0, function, lambda x: x, x)


def _with_rule(function: Function) -> Function:
    wrapped = jax.custom_vjp(function)
    wrapped.defvjp(lambda x: (function(x), x), lambda x, ct: (ct * x,))
    return wrapped


def _as_manual(function: Function) -> Function:
    return jax.shard_map(function, mesh=MESH, in_specs=WHOLE, out_specs=WHOLE)


WRAPPERS: dict[str, Callable[[Function], Function]] = {
    "jit": jax.jit,
    "grad": _gradient,
    "vmap": jax.vmap,
    "scan": _loop,
    "cond": _branch,
    "checkpoint": jax.checkpoint,
    "custom_vjp": _with_rule,
    "jvp": lambda function: lambda x: jax.jvp(function, (x,), (x,))[1],
    "linearize": lambda function: lambda x: jax.linearize(function, x)[1](x),
    "shard_map": _as_manual,
    "x64": lambda function: lambda x: _in_x64(function, x),
}


def _in_x64(function: Function, x: Any) -> Any:
    with jax.enable_x64(True):
        return function(x)


VECTOR = np.linspace(0.5, 1, 4, dtype=np.float32)


def traces(chance: random.Random) -> Iterator[int]:
    """Jaxprs of functions and of what transformations make of them, which all die at once."""
    while True:
        function = fresh(chance.random(), chance.randrange(1, 6))
        for name in chance.sample(list(WRAPPERS), chance.randrange(3)):
            function = WRAPPERS[name](function)
        if chance.random() < 0.5:
            jaxpr = jax.make_jaxpr(function)(VECTOR)
            assert jaxpr.out_avals[0].shape == (4,), jaxpr
        else:
            assert jax.eval_shape(function, VECTOR).shape == (4,)
        yield 1


def compilations(chance: random.Random) -> Iterator[int]:
    """Functions that are compiled, run and forgotten."""
    while True:
        number, steps = chance.random(), chance.randrange(1, 6)
        function = jax.jit(fresh(number, steps))
        if chance.random() < 0.3:
            function = function.lower(VECTOR).compile()
        close(function(VECTOR), expected(number, VECTOR, steps))
        yield 1


# ---- errors --------------------------------------------------------------------------------------


class PlannedError(Exception):
    """What functions raise on purpose."""


_SINE = jax.jit(jnp.sin)


def check_clean() -> None:
    """Raise unless nothing is being traced, options are as before, and programs run."""
    assert current_trace() is engine(), "a trace has not ended"
    assert not jax.config.jax_enable_x64, "an option was not set back"
    close(_SINE(VECTOR), np.sin(VECTOR))
    assert jnp.arange(2.0).dtype == np.float32


def failing(function: Function, steps: int) -> Function:
    """A function that raises after so many steps."""

    def fails(x: Any) -> Any:
        for _ in range(steps):
            x = function(x)
        raise PlannedError("in a trace")

    return fails


def exceptions(chance: random.Random) -> Iterator[int]:
    """Errors in the middle of traces, under several transformations."""
    while True:
        function = failing(fresh(chance.random()), chance.randrange(5))
        # Without any of them twice: a shard_map in one over the same mesh is an error of its own.
        names = chance.sample(list(WRAPPERS), chance.randrange(1, 4))
        for name in names:
            function = WRAPPERS[name](function)
        try:
            function(VECTOR)
        except PlannedError:
            pass
        else:
            raise AssertionError(f"no error of {names}")
        check_clean()
        yield 1


def callbacks(chance: random.Random) -> Iterator[int]:
    """Callbacks, of which some raise while a program runs."""
    shape = jax.ShapeDtypeStruct((4,), np.float32)

    def on_host(x: np.ndarray) -> np.ndarray:
        if x[0] < 0:
            raise PlannedError("in a callback")
        return np.asarray(x) * 2

    def by_pure(x: Any) -> Any:
        return jax.pure_callback(on_host, shape, x, vmap_method="sequential")

    def by_io(x: Any) -> Any:
        return jax.experimental.io_callback(on_host, shape, x)

    def by_debug(x: Any) -> Any:
        jax.debug.callback(on_host, x)
        return x * 2

    functions = [jax.jit(each) for each in (by_pure, by_io, by_debug)]
    functions.append(jax.jit(_loop(by_pure)))
    while True:
        function, fails = chance.choice(functions), chance.random() < 0.3
        try:
            result = np.asarray(function(-VECTOR if fails else VECTOR))
            jax.effects_barrier()
        except Exception as error:
            assert fails and "PlannedError" in f"{type(error)} {error}", error
        else:
            assert not fails, "a callback's error is lost"
            assert np.all(result >= VECTOR * 2), result
        yield 1


# ---- interrupts ----------------------------------------------------------------------------------


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


@contextlib.contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt after so many seconds, as the interpreter does for Ctrl-C."""
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupts(chance: random.Random) -> Iterator[int]:
    """Ctrl-C at a random moment of tracing, compiling and running; afterwards all works."""
    shared = jax.jit(lambda x: jnp.cumsum(x) * 2)
    while True:
        number = chance.random()
        try:
            with interrupted_after(chance.choice((0.002, 0.01, 0.05)) * (0.01 + chance.random())):
                while True:
                    jax.jit(_gradient(_loop(fresh(number))))(VECTOR)
                    shared(np.ones(chance.randrange(1, 40), np.float32))
        except KeyboardInterrupt:
            pass
        check_clean()
        size = chance.randrange(1, 40)
        close(shared(np.ones(size, np.float32)), 2 * np.arange(1, size + 1))
        close(jax.jit(fresh(number))(VECTOR), expected(number, VECTOR))
        yield 1


# ---- threads -------------------------------------------------------------------------------------

THREADS, EACH = 16, 10


class _Shared:
    """What all threads use at once."""

    def __init__(self) -> None:
        self.scaled = jax.jit(lambda x, k: jnp.cumsum(x) * k)
        self.draws = {n: np.asarray(jax.random.normal(jax.random.key(n), (4,))) for n in range(4)}


def _by_shared(shared: _Shared, chance: random.Random) -> None:
    size = chance.randrange(1, 9)
    close(shared.scaled(np.ones(size, np.float32), 3.0), 3 * np.arange(1, size + 1))


def _by_compiling(shared: _Shared, chance: random.Random) -> None:
    next(compilations(chance))


def _by_tracing(shared: _Shared, chance: random.Random) -> None:
    next(traces(chance))


def _by_options(shared: _Shared, chance: random.Random) -> None:
    wide = chance.random() < 0.5
    with jax.enable_x64(wide):
        assert jnp.arange(3.0).dtype == (np.float64 if wide else np.float32)
        assert shared.scaled(np.ones(3), 2.0).dtype == (np.float64 if wide else np.float32)
    with jax.numpy_dtype_promotion("strict"):
        try:
            jnp.ones(2, "float32") + jnp.ones(2, "int32")
        except jax.errors.TypePromotionError:
            return
    raise AssertionError("the option of another thread")


def _by_gradient(shared: _Shared, chance: random.Random) -> None:
    found = jax.grad(lambda x: shared.scaled(x, 2.0).sum())(np.ones(4, np.float32))
    close(found, 2 * np.arange(4, 0, -1))


def _by_errors(shared: _Shared, chance: random.Random) -> None:
    next(exceptions(chance))


def _by_keys(shared: _Shared, chance: random.Random) -> None:
    number = chance.randrange(4)
    close(jax.random.normal(jax.random.key(number), (4,)), shared.draws[number])


def _by_clearing(shared: _Shared, chance: random.Random) -> None:
    if chance.random() < 0.1:
        jax.clear_caches()


TASKS = (
    _by_shared,
    _by_compiling,
    _by_tracing,
    _by_options,
    _by_gradient,
    _by_errors,
    _by_keys,
    _by_clearing,
)


def threads(chance: random.Random) -> Iterator[int]:
    """Sixteen threads that trace, compile, run, set options, raise, and clear caches."""
    shared = _Shared()
    while True:
        errors: list[BaseException] = []

        def work(seed: int, errors: list[BaseException] = errors) -> None:
            own = random.Random(seed)
            try:
                for _ in range(EACH):
                    own.choice(TASKS)(shared, own)
            except BaseException as error:
                errors.append(error)

        group = [
            threading.Thread(target=work, args=(chance.randrange(2**32),)) for _ in range(THREADS)
        ]
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()
        if errors:
            raise errors[0]
        yield THREADS * EACH


ALL: dict[str, Scenario] = {
    each.__name__: each
    for each in (
        threads,
        processes.processes,
        eager,
        traces,
        compilations,
        exceptions,
        interrupts,
        callbacks,
        processes.exits,
    )
}
