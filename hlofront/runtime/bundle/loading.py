"""load and attach: calls of the programs of a bundle, without the function or with it."""

import inspect
import os
from collections.abc import Callable, Sequence

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.bridge import foreign
from hlofront.bridge.client import Device
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.trace import Tracer
from hlofront.pjrt import clients
from hlofront.runtime.bundle.bundle_file import BundleError, BundleFile, read
from hlofront.runtime.bundle.fingerprint import context_text, differing, function_fields
from hlofront.runtime.bundle.programs import BundleWarning, NoExecutable, Program
from hlofront.runtime.compilation.pipeline import compilation_request
from hlofront.runtime.compilation.traced_program import FlatShardings, TracedKey, TracedProgram
from hlofront.runtime.dispatch.executable import CallAnswer
from hlofront.runtime.dispatch.jit import Jitted, make_callable
from hlofront.runtime.dispatch.jit_shardings import JitShardings
from hlofront.runtime.dispatch.stages import Lowered, Traced, Wrapped
from hlofront.runtime.export import header_checks
from hlofront.runtime.export.exported import Exported
from hlofront.runtime.export.header_checks import reading_of
from hlofront.runtime.sharding import placement
from hlofront.transforms.arguments import ArgumentPlan


class _RequestedShardings(JitShardings):
    """The shardings that a bundle's programs were traced with, which replace those of jit."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None)

    def of(self, traced: TracedProgram) -> FlatShardings:
        """Return the sharding of each input and each output of a program, or None."""
        assert traced.shardings is not None
        return traced.shardings


class BundledFunction(Jitted):
    """A jitted function whose programs come from a bundle instead of tracing.

    Args:
      contents: the bundle.
      programs: its programs.
      fun: a function with the name and parameters of the saved function.
      devices: the devices of programs for several.
    """

    __slots__ = ("contents", "devices", "programs")

    def __init__(
        self,
        contents: BundleFile,
        programs: Sequence[Program],
        fun: Callable[..., object],
        devices: Sequence[Device] | None,
    ):
        header = contents.header
        plan = ArgumentPlan(fun, *header["static"], *header["donated"])
        super().__init__(
            fun,
            plan,
            header["keep_unused"],
            compiler_options=tuple((name, value) for name, value in header["compiler_options"]),
            traced_for="bundle",
        )
        self.contents = contents
        self.programs = programs
        self.devices = devices
        self.jit_shardings = _RequestedShardings()

    def start_loading(self) -> None:
        """Start to load the executable of the only program, for calls on the default device.

        If there are several programs, it is not known which will be called.
        """
        program = self.programs[0]
        if len(self.programs) > 1 or not (program.trust and program.entry.executables):
            return
        request = compilation_request(
            self.name,
            placement.default_device(),
            program.entry.donated,
            self.keep_unused,
            self.compiler_options,
        )
        program.start_loading(request)

    def _trace(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        key: TracedKey,
        operands: Sequence[object] = (),
    ) -> TracedProgram:
        names = self.plan.names(args, kwargs)
        for exactly in (True, False):
            for program in self.programs:
                if program.fits(key, exactly):
                    return self.traced_of(program, key, names)
        raise self._no_program(key, names)

    def traced_of(self, program: Program, key: TracedKey, names: tuple[str, ...]) -> TracedProgram:
        """Return a program of the bundle as a traced function of arguments of these types."""
        where = f"{self.name} of {self.contents.path}"
        in_tree, avals, *_ = key
        traced = program.traced(in_tree, avals, names, where)
        devices = clients.devices() if self.devices is None else self.devices
        traced.shardings = FlatShardings(self.jit_shardings, *program.shardings(devices))
        return traced

    def _no_program(self, key: TracedKey, names: tuple[str, ...]) -> TypeError:
        _, avals, static, _ = key
        arguments = [
            *(f"{name}: {aval.str_short()}" for name, aval in zip(names, avals, strict=True)),
            *(f"{argument.where}={argument.value!r}" for argument in static),
        ]
        listed = "".join(f"\n  ({program.entry.signature})" for program in self.programs)
        return TypeError(
            f"{self.contents.path} has no program of {self.name} for the arguments "
            f"({', '.join(arguments)}). It has programs for{listed}\n"
            "Call it with arguments of these types, or save a bundle with this call's as well."
        )


class Bundle:
    """The programs of a bundle, called like the function that they were traced from.

    `bundle(*args, **kwargs)` runs the program for arguments of these types, at the speed of a
    jitted function. It may be traced, batched, exported, and differentiated in reverse mode up to
    the `vjp_order` that was saved.
    """

    __slots__ = ("__call__", "__weakref__", "_function", "_jitted")

    def __init__(self, function: BundledFunction):
        self._function = function
        # `export` and `save` take it as a jitted function.
        self._jitted = function
        self.__call__ = make_callable(function, ())

    @property
    def name(self) -> str:
        """The function's name."""
        return self._function.name

    @property
    def signatures(self) -> list[str]:
        """The types of the arguments of each program, as text."""
        return [program.entry.signature for program in self._function.programs]

    def exported(self, number: int = 0) -> Exported:
        """Return the StableHLO of a program, as `export` wrote it."""
        return self._function.programs[number].exported

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Return the call of a program as a traced stage."""
        return self._function.trace(*args, **kwargs)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Return the call of a program as a lowered stage; its `compile` loads the executable."""
        return self._function.lower(*args, **kwargs)

    def __repr__(self) -> str:
        listed = "".join(f"\n  ({signature})" for signature in self.signatures)
        return f"<Bundle {self.name} of {self._function.contents.path}:{listed}>"


@boundary
def load(
    path: str | os.PathLike[str],
    *,
    trust: bool = False,
    devices: Sequence[Device] | None = None,
) -> Bundle:
    """Load the programs that `save` has written, without the function.

    Args:
      path: the file.
      trust: whether its machine code may be loaded: it runs with all rights of this process, so
        trust only files of your own. With trust, the executable of a file's only program is loaded
        immediately, for the default device. Without trust, another process reads, checks and
        compiles the StableHLO. The StableHLO is also compiled after a change of jaxlib, device or
        processor; a BundleWarning then says which field differs.
      devices: the devices of programs for several; by default the first ones.

    Returns:
      A function of the same arguments.

    Raises:
      BundleError: if the file is damaged, not a bundle, or of a newer version.
      OSError: if it cannot be read.

      A call raises TypeError for arguments that no program is for, and ValueError if the program
      is for other platforms, or for more devices than there are; BundleError if it is damaged, or
      is not trusted and calls code outside of it.

    Example:
      A process without the function calls its program::

        step = load("step.hlob", trust=True)
        weights = step(weights, batch)
    """
    contents = read(os.fspath(path))
    function = _bundled(contents, trust, devices, has_function=False)
    function.start_loading()
    return Bundle(function)


def _bundled(
    contents: BundleFile, trust: bool, devices: Sequence[Device] | None, has_function: bool
) -> BundledFunction:
    if not trust:
        # It is ready when the first program is called.
        foreign.start()
    with reading_of(f"the header of the bundle {contents.path}", BundleError):
        return _function_of(contents, trust, devices, has_function)


def _function_of(
    contents: BundleFile, trust: bool, devices: Sequence[Device] | None, has_function: bool
) -> BundledFunction:
    programs = [Program(contents, entry, trust, has_function) for entry in contents.programs]
    header = contents.header
    if not trust:
        header_checks.harmless_options(header["compiler_options"])

    def function(*args: PyTree, **kwargs: PyTree) -> PyTree:
        # C++ calls it where jit is disabled.
        traced, leaves = jitted.traced(args, kwargs)
        return traced.out_tree.unflatten(jaxpr_as_fun(traced.program, *leaves))

    function.__name__ = function.__qualname__ = header["name"]
    if header["parameters"] is not None:
        function.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect._ParameterKind(kind))
                for name, kind in header["parameters"]
            ]
        )
    jitted = BundledFunction(contents, programs, function, devices)
    return jitted


# ---- a function that starts from a bundle --------------------------------------------------------


class AttachedBundle:
    """The programs of a bundle that a jitted function starts from.

    Args:
      function: the bundle's function.
    """

    def __init__(self, function: BundledFunction):
        self._function = function
        self._traced: dict[Program, TracedProgram] = {}
        self._warned = False

    def call(
        self,
        key: TracedKey,
        leaves: Sequence[object],
        names: Callable[[], tuple[str, ...]],
        run: Callable[[TracedProgram, Sequence[object]], CallAnswer],
    ) -> CallAnswer | None:
        """Run a call of the function and return its result; None if no program is for it."""
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return None
        for program in self._function.programs:
            if not program.fits(key, exactly=True):
                continue
            context = context_text()
            if context != program.entry.context:
                self._warn_of_context(program, context)
                continue
            traced = self._traced.get(program)
            if traced is None:
                traced = self._traced[program] = self._function.traced_of(program, key, names())
            try:
                return run(traced, leaves)
            except NoExecutable:
                continue
        return None

    def _warn_of_context(self, program: Program, context: str) -> None:
        if not self._warned:
            self._warned = True
            source.warn(
                f"{self._function.name} is traced, as its program in {self._function.contents.path}"
                f" is of other options: these were {program.entry.context!r} and are {context!r}",
                BundleWarning,
            )


@boundary
def attach(fun: Wrapped, path: str | os.PathLike[str], *, trust: bool = False) -> Wrapped:
    """Let a jitted function start from a bundle, so that its calls need no tracing or compilation.

    Calls without a program in the bundle are traced and compiled as always. So are all calls if the
    function's source, the options of jit, or the versions of hlofront, Python or NumPy have changed
    since `save`, and calls whose executable was made by another jaxlib, or for another device or
    processor; a BundleWarning then says which field differs. The source is that of the function and
    of everything that it refers to in the user's own modules; other inputs of tracing, such as
    files, are not checked.

    Args:
      fun: a jitted function.
      path: the file.
      trust: whether its machine code may be loaded: see `load`. Without trust, calls compile the
        StableHLO, without tracing.

    Returns:
      The function.

    Raises:
      ValueError: if `fun` is not a jitted function.
      BundleError: if the file is damaged, not a bundle, or of a newer version.
      OSError: if it cannot be read.

    Example:
      A process that has the function starts from the bundle::

        step = attach(jax.jit(step), "step.hlob", trust=True)
    """
    jitted = getattr(fun, "_jitted", None)
    if type(jitted) is not Jitted:
        raise ValueError(f"attach takes a jitted function: got {fun!r}. Pass jax.jit(f).")
    contents = read(os.fspath(path))
    reason = differing(contents.header["function"], function_fields(jitted))
    if reason:
        source.warn(
            f"{contents.path} is not used, and {jitted.name} is traced and compiled: {reason}. "
            "Save the bundle again.",
            BundleWarning,
        )
        return fun
    function = _bundled(contents, trust, None, has_function=True)
    jitted.earlier = AttachedBundle(function)
    return fun
