"""Trials: programs that XLA compiles as a whole, in this process or in one that may crash."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from hlofront.base.config import enable_x64, options
from hlofront.base.errors import JaxRuntimeError
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.inspect.comparison.columns import Artifact
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.comparison.sessions import JaxlibSession, ProcessEnded
from hlofront.inspect.error.other_jaxlib import host_array, restored, storable
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.dispatch.stages import Lowered
from hlofront.transforms.flatten import ShapeDtypeStruct

_disk_cache = options["hlofront_cache"]
_whole_disk_cache = options["jax_enable_compilation_cache"]
_warn_recompiles = options["hlofront_warn_recompiles"]

# What is wrong with a program:
# - "values": its results differ from those of its operations one by one;
# - "crash": compiling or running it ends the process; "hang": it exceeds the time limit;
# - "error": XLA raises an error, but not for the operations one by one.
Kind = Literal["values", "crash", "hang", "error"]


class Outcome(NamedTuple):
    """The outcome of a program that is compiled as a whole: its results, or its failure."""

    results: ArrayLikes
    kind: Kind = "values"
    failure: str = ""


class Trials:
    """Runs programs that are compiled as a whole.

    Args:
      compiler_options: the user's options of XLA's compiler.
      seconds: the time limit of a program in a separate process.
      isolated: whether programs run in a separate process, which a program may crash.
    """

    def __init__(
        self, compiler_options: Mapping[str, object], seconds: float, isolated: bool = False
    ):
        self.compiler_options = dict(compiler_options)
        self.seconds = seconds
        self.isolated = isolated
        self.count = 0
        self._x64 = enable_x64.value
        self._sessions: dict[str, JaxlibSession] = {}

    def close(self) -> None:
        """End the processes."""
        for session in self._sessions.values():
            session.__exit__()
        self._sessions.clear()

    @contextmanager
    def _settings(self) -> Iterator[None]:
        with (
            enable_x64(self._x64),
            _disk_cache(False),
            _whole_disk_cache(False),
            _warn_recompiles(False),
        ):
            yield

    def lowered(
        self,
        program: ClosedJaxpr,
        operands: ArrayLikes,
        more: Mapping[str, object] = {},
        name: str = "part",
    ) -> Lowered:
        """Return a program that is lowered for operands of these types and devices.

        Args:
          program: the program.
          operands: its operands.
          more: options of XLA's compiler, in addition to the user's.
          name: the program's name in StableHLO.
        """

        def whole(*operands: ArrayLike) -> ArrayLikes:
            return jaxpr_as_fun(program, *operands)

        whole.__name__ = name
        with self._settings():
            return jit(whole, compiler_options={**self.compiler_options, **more}).lower(*operands)

    def run(
        self, program: ClosedJaxpr, operands: ArrayLikes, more: Mapping[str, object] = {}
    ) -> Outcome:
        """Compile a program as a whole and run it; see `lowered` for the arguments."""
        if self.isolated:
            return self.run_under("current", program, operands, more)
        self.count += 1
        try:
            lowered = self.lowered(program, operands, more)
            with self._settings():
                return Outcome(lowered.compile()(*operands))
        except JaxRuntimeError as error:
            return Outcome((), "error", _first_line(error))

    def run_under(
        self,
        jaxlib: str,
        program: ClosedJaxpr,
        operands: ArrayLikes,
        more: Mapping[str, object] = {},
    ) -> Outcome:
        """Compile a program as a whole and run it under a version of jaxlib, in its process.

        Raises:
          NoEnvironment: if there is no environment with this version, or the program cannot run
            there, as it calls back to Python.
        """
        self.count += 1

        def whole(*operands: ArrayLike) -> ArrayLikes:
            return list(map(storable, jaxpr_as_fun(program, *operands)))

        types = [typeof(x) for x in operands]
        avals = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in types]
        try:
            with self._settings():
                settings = {**self.compiler_options, **more}
                artifact = Artifact(jit(whole, compiler_options=settings).lower(*avals))
        except ValueError as error:
            raise NoEnvironment(str(error)) from error
        session = self._sessions.get(jaxlib)
        if session is None:
            session = self._sessions[jaxlib] = JaxlibSession(jaxlib)
        hosts = [host_array(x) for x in operands]
        try:
            results = session.run(self.count, artifact, hosts, self.seconds)
        except ProcessEnded as error:
            self._sessions.pop(jaxlib).__exit__()
            return Outcome((), "hang" if error.is_late else "crash", str(error))
        except NoEnvironment as error:
            return Outcome((), "error", _first_line(error))
        return Outcome(
            [restored(x, aval.dtype) for x, aval in zip(results, program.out_avals, strict=True)]
        )


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
