"""Options of the interpreter that models a TPU, and the mode in which it runs all kernels."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

from hlofront.base.option import Option, OptionKind, Override, Refused, optional


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """Options of the interpreter that models a TPU: its memories, copies, semaphores and cores.

    With `pallas_call(..., interpret=InterpretParams())`, a kernel runs on the host, step by step.

    Attributes:
      detect_races: whether to look for reads and writes of the same elements that no semaphore
        orders.
      on_race: "raise" to stop at the first race, "warn" to log each race.
      out_of_bounds_reads: what a read outside of a buffer does: "raise" an IndexError, or return
        "uninitialized" elements.
      skip_floating_point_ops: whether operations whose results are all floating point return
        infinities instead of being computed.
      uninitialized_memory: the contents of memory before it is written to: "nan" for NaN, the
        maximum integer or True; "zero"; "raise" as "nan", but with an error where a kernel reads
        it, which JAX does not have.
      num_cores_or_threads: the number of cores of a device, which share the steps along the leading
        parallel axes of the grid.
      vector_clock_size: accepted if it is greater than the number of all cores; clocks grow as
        needed.
      logging_mode: must be None: the interpreter logs nothing but races.
      dma_execution_mode: when copies happen: "eager" when they start, "on_wait" when a core waits
        for them, "random" at some moment in between, which JAX does not have.
      random_seed: the seed of the order of steps along parallel axes, and of "random" copies.
      grid_point_recorder: a function that is called at each step with a token, which it returns,
        the step's indices, and the number of its core.
      allow_hbm_allocation_in_run_scoped: whether `run_scoped` may allocate in HBM.
      buffer_bounds: the bounds of a buffer: those of its "logical" shape, or of the shape "padded"
        to whole tiles, whose other elements are uninitialized.

    Raises:
      ValueError: if an option's value is invalid.
    """

    detect_races: bool = False
    on_race: Literal["raise", "warn"] = "raise"
    out_of_bounds_reads: Literal["raise", "uninitialized"] = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: Literal["nan", "zero", "raise"] = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Literal[None] = None
    dma_execution_mode: Literal["eager", "on_wait", "random"] = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Callable[[Any, tuple[Any, ...], Any], Any] | None = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: Literal["logical", "padded"] = "logical"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            if get_origin(field.type) is Literal and value not in get_args(field.type):
                wanted = " or ".join(map(repr, get_args(field.type)))
                raise ValueError(f"InterpretParams({name}={value!r}): {name} is {wanted}")
        if self.num_cores_or_threads < 1:
            raise ValueError(
                "Number of cores or threads must be at least 1, but got "
                f"{self.num_cores_or_threads}."
            )
        size = self.vector_clock_size
        if size is not None and size <= self.num_cores_or_threads:
            raise ValueError(
                f"Vector clock size ({size}) must be greater than the total number of "
                f"cores/threads ({self.num_cores_or_threads})."
            )

    @property
    def num_cores_per_device(self) -> int:
        """The number of cores of a device."""
        return self.num_cores_or_threads


# ---- the mode in which all kernels are interpreted -----------------------------------------------


def _check(value: object) -> object:
    if not isinstance(value, InterpretParams):
        raise Refused
    return value


def _parse(text: str) -> object:
    raise Refused


# Programs are traced again where it changes.
_forced = Option(
    "pallas_tpu_interpret_mode_context_manager",
    None,
    optional(OptionKind("a pltpu.InterpretParams", _check, _parse)),
    "is how all kernels are interpreted",
    affects_trace=True,
)


def forced_params() -> InterpretParams | None:
    """Return the options with which all kernels are interpreted, or None."""
    return _forced.value


def force_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> Override:
    """Return a context manager that runs all kernels of this thread with `interpret=params`.

    Args:
      params: the options of the interpreter.

    Example:
      >>> def double(x_ref, y_ref):
      ...     y_ref[...] = 2 * x_ref[...]
      >>> x = jnp.ones((8, 128))
      >>> with pltpu.force_tpu_interpret_mode():
      ...     y = pl.pallas_call(double, out_shape=x)(x)
      >>> float(y[0, 0])
      2.0
    """
    return _forced(params)


def set_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> None:
    """Run all kernels of the process with `interpret=params` from now on.

    Args:
      params: the options of the interpreter; None ends the mode.
    """
    _forced.set(params)


def reset_tpu_interpret_mode_state() -> None:
    """Do nothing: the interpreter keeps no state between calls.

    Each call of a kernel models its own memories and semaphores. They end with the call, even if it
    raises an error, so programs need not call this function, unlike with JAX.
    """
