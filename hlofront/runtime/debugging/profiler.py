"""Profiles: timelines of host and devices, annotations in them, and the use of device memory."""

import functools
import glob
import gzip
import http.server
import json
import os
import shutil
import socketserver
import tempfile
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, ParamSpec, Self, TypeVar

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import profiler as bridge
from hlofront.bridge.profiler import ProfileOptions as ProfileOptions
from hlofront.pjrt import clients

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_PERFETTO_PORT = 9001
_SUBFOLDERS = "plugins", "profile"


_lock = threading.Lock()
_running: "ProfileSession | None" = None
_server: Any = None
# The sessions of this process: jaxlib cannot write a ProfileData, and they can.
_sessions: "weakref.WeakSet[ProfileSession]" = weakref.WeakSet()


class _Record(NamedTuple):
    """The bytes that a session of jaxlib recorded, and the session, which can write them."""

    session: Any
    content: bytes


# ---- timelines -----------------------------------------------------------------------------------


class ProfileSession:
    """A recording of what the host and the devices do, between `start` and `stop`.

    TensorBoard's profile plugin, XProf and https://ui.perfetto.dev show what it writes. It is a
    context manager, and may be started again::

        with jax.profiler.ProfileSession() as session:
            step(x).block_until_ready()
        names = [plane.name for plane in session.profile_data.planes]

    Args:
      log_dir: the folder in which `stop` writes subfolders `plugins/profile/TIME`. With None
        nothing is written.
      create_perfetto_link: whether `stop` prints a link to the viewer of Perfetto and waits until
        the link is opened.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` too, which that viewer opens.
      profiler_options: a `ProfileOptions`, which sets the level of detail.
    """

    def __init__(
        self,
        log_dir: os.PathLike[str] | str | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: object = None,
    ):
        self._log_dir = log_dir
        self._link = create_perfetto_link
        self._trace = create_perfetto_trace
        self._options = profiler_options
        self._session: Any = None
        self._data: Any = None
        # The last recording that was converted to data; files are written from it.
        self.record: _Record | None = None
        _sessions.add(self)

    @property
    def is_running(self) -> bool:
        """True while the session records."""
        return self._session is not None

    @property
    def profile_data(self) -> Any:
        """The `ProfileData` of the last recording; None before the first has ended."""
        return self._data

    def start(self) -> Self:
        """Begin to record, and return the session.

        Raises:
          RuntimeError: if a session is already recording.
        """
        global _running
        with _lock:
            if _running is not None:
                raise RuntimeError(
                    "Profile has already been started. Only one profile may be run at a time: call "
                    "stop_trace() first."
                )
            # A device can be profiled only once its client exists.
            clients.client_for()
            chosen = () if self._options is None else (self._options,)
            self._session = bridge.ProfilerSession(*chosen)
            self._data = None
            _running = self
        return self

    def stop(self) -> Any:
        """End the recording, write it where the session has a folder, and return its `ProfileData`.

        Raises:
          RuntimeError: if the session is not recording.
        """
        global _running
        with _lock:
            if self._session is None:
                raise RuntimeError("No profile started: call start_trace(log_dir) first.")
            session, self._session, _running = self._session, None, None
            content = session.stop()
            self._data = bridge.ProfileData.from_serialized_xspace(content)
            self.record = _Record(session, content)
        if self._log_dir is not None:
            self.export_profile_data(self._log_dir, self._link, self._trace)
        return self._data

    def export_profile_data(
        self,
        log_dir: os.PathLike[str] | str,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write the last recording; the arguments are those of the function of this name."""
        export_profile_data(self, log_dir, create_perfetto_link, create_perfetto_trace, session_id)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def export_profile_data(
    profile_data: object,
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write a recording to files.

    Args:
      profile_data: a ProfileSession that has ended, or the `ProfileData` that it returned.
      log_dir: the folder to write to.
      create_perfetto_link: whether to print a link to the viewer of Perfetto and wait until the
        link is opened.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` too, which that viewer opens.
      session_id: the name of the subfolder of `plugins/profile`; by default the time.

    Raises:
      RuntimeError: if the session has not ended.
      TypeError: if `profile_data` is neither of these.
      ValueError: if the data is not that of a ProfileSession which is still referenced.
    """
    record = _record_of(profile_data)
    folder = os.fspath(log_dir)
    if session_id is None:
        record.session.export(record.content, folder)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            record.session.export(record.content, temporary)
            (written,) = glob.glob(os.path.join(temporary, *_SUBFOLDERS, "*"))
            named = os.path.join(folder, *_SUBFOLDERS, session_id)
            shutil.copytree(written, named, dirs_exist_ok=True)
    if create_perfetto_link or create_perfetto_trace:
        path = _write_perfetto_trace(folder)
        if create_perfetto_link:
            _serve_to_perfetto(path)


def _record_of(profile_data: object) -> _Record:
    """Return the record of a session that has ended, or of the data that it returned."""
    if isinstance(profile_data, ProfileSession):
        data = profile_data.profile_data
        if data is None:
            raise RuntimeError("No profile data to export. Ensure the session has completed.")
    elif isinstance(profile_data, bridge.ProfileData):
        data = profile_data
    else:
        raise TypeError(
            f"Expected ProfileData or ProfileSession, got {type(profile_data).__name__}"
        )
    for session in _sessions:
        if session.profile_data is data and session.record is not None:
            return session.record
    raise ValueError(
        "this version of jaxlib writes what a session recorded, as long as the ProfileSession is "
        "there, and not a ProfileData that was read from a file or from bytes: copy the file"
    )


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> ProfileSession:
    """Begin to record what the host and the devices do; `stop_trace` writes it to files.

    Args:
      log_dir: the folder in which subfolders `plugins/profile/TIME` are written.
      create_perfetto_link: whether `stop_trace` prints a link to the viewer of Perfetto and waits
        until the link is opened.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` too, which that viewer opens.
      profiler_options: a `ProfileOptions`, which sets the level of detail.

    Returns:
      The session.

    Raises:
      RuntimeError: if a recording is already running.
    """
    return ProfileSession(
        os.fspath(log_dir), create_perfetto_link, create_perfetto_trace, profiler_options
    ).start()


def stop_trace() -> Any:
    """End the recording that `start_trace` began, write it, and return its `ProfileData`.

    Raises:
      RuntimeError: if no recording is running.
    """
    session = _running
    if session is None:
        raise RuntimeError("No profile started: call start_trace(log_dir) first.")
    return session.stop()


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> Generator[ProfileSession, None, None]:
    """Record what the host and the devices do inside of the block.

    Args:
      log_dir: the folder in which subfolders `plugins/profile/TIME` are written.
      create_perfetto_link: whether the end of the block prints a link to the viewer of Perfetto and
        waits until the link is opened.
      create_perfetto_trace: whether to write `perfetto_trace.json.gz` too, which that viewer opens.
      profiler_options: a `ProfileOptions`, which sets the level of detail.

    Example::

        with jax.profiler.trace("/tmp/profile"):
            step(x).block_until_ready()
    """
    with ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ) as session:
        yield session


def _write_perfetto_trace(log_dir: str) -> str:
    """Write the newest timeline in `log_dir` in Perfetto's form, and return the file's path."""
    # A folder for a second has the timelines of all hosts that profiled in it.
    written = glob.glob(os.path.join(log_dir, *_SUBFOLDERS, "*", "*.trace.json.gz"))
    newest = max(written, key=os.path.getmtime)
    with gzip.open(newest, "rt", encoding="utf-8") as file:
        timeline = json.load(file)
    # Perfetto refuses everything except the events.
    path = os.path.join(os.path.dirname(newest), "perfetto_trace.json.gz")
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump({"traceEvents": timeline["traceEvents"]}, file)
    return path


class _PerfettoServer(socketserver.TCPServer):
    """A server of a timeline, on a port that the server before it may have left a moment ago."""

    allow_reuse_address = True
    was_asked = False


class _PerfettoHandler(http.server.SimpleHTTPRequestHandler):
    """A handler of requests for a folder's files, which notifies its server of the first one."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def do_GET(self) -> None:
        assert isinstance(self.server, _PerfettoServer)
        self.server.was_asked = True
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _serve_to_perfetto(path: str) -> None:
    """Print a link that opens a timeline in Perfetto's viewer, and serve the file until it is read.

    The viewer runs in the browser and takes files from this port of the browser's own machine.
    """
    folder, name = os.path.split(os.path.abspath(path))
    handler = functools.partial(_PerfettoHandler, directory=folder)
    with _PerfettoServer(("127.0.0.1", _PERFETTO_PORT), handler) as server:
        url = f"https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{_PERFETTO_PORT}/{name}"
        print(f"Open URL in browser: {url}", flush=True)
        while not server.was_asked:
            server.handle_request()


# ---- annotations ---------------------------------------------------------------------------------


class TraceAnnotation(bridge.TraceMe):
    """A block that the timeline of the host shows under a name.

    Keyword arguments are shown with it. Example::

        with jax.profiler.TraceAnnotation("loading", file=name):
            batch = load(name)
    """


class StepTraceAnnotation(TraceAnnotation):
    """A block that is one step of training: profilers group what devices do by it.

    Example::

        for number, batch in enumerate(batches):
            with jax.profiler.StepTraceAnnotation("train", step_num=number):
                state = step(state, batch)
    """

    def __init__(self, name: str, **kwargs: object):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[Parameters, Result], name: str | None = None, **decorator_kwargs: object
) -> Callable[Parameters, Result]:
    """Show the calls of a function in the host's timeline; a decorator.

    Args:
      func: the function.
      name: what to show, by default the function's name.
      decorator_kwargs: values that the timeline shows with the name.
    """
    shown = getattr(func, "__qualname__", None) or getattr(func, "__name__", repr(func))
    label = shown if name is None else name

    @functools.wraps(func)
    def annotated(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


# ---- memory --------------------------------------------------------------------------------------


def device_memory_profile(backend: str | None = None) -> bytes:
    """Return the current use of device memory, as a compressed profile for `pprof`.

    Args:
      backend: a platform's name, by default that of the default platform.
    """
    return gzip.compress(clients.client_for(backend).heap_profile())


def save_device_memory_profile(
    filename: os.PathLike[str] | str, backend: str | None = None
) -> None:
    """Write the current use of device memory to a file for `pprof`.

    Args:
      filename: the path of the file.
      backend: a platform's name, by default that of the default platform.
    """
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


# ---- servers -------------------------------------------------------------------------------------


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Serve profiles on a port: TensorBoard and XProf connect to it and record when told to.

    Args:
      port: a port of this machine.
      requires_backend: whether to create the default client first, to record its devices.

    Returns:
      The server, which `stop_server` ends.

    Raises:
      ValueError: if a server is already running.
    """
    global _server
    with _lock:
        if _server is not None:
            raise ValueError("Only one profiler server can be active at a time.")
        if requires_backend:
            clients.client_for()
        _server = bridge.start_server(port)
        return _server


def stop_server() -> None:
    """End the server that `start_server` began.

    Raises:
      ValueError: if no server is running.
    """
    global _server
    with _lock:
        if _server is None:
            raise ValueError("No active profiler server.")
        _server = None


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Include profiles of another process, which serves its own, in those of this process.

    Args:
      pid: the number of the process.
      port: the port of its `start_server`.

    Returns:
      A function that excludes it again.
    """
    return bridge.register_subprocess(pid, port)


def get_profiled_instructions_proto(tensorboard_dir: str) -> bytes:
    """Return how long a program's instructions took, as a profile that XLA can recompile it with.

    Pass it as the option `fdo_profile` of `jit`'s `compiler_options`. It is empty except on NVIDIA
    GPUs.

    Args:
      tensorboard_dir: the folder that the profile of one run was written to, such as
        "logs/plugins/profile/2026_01_01_12_00_00".

    Returns:
      A serialized ProfiledInstructionsProto of XLA.

    Raises:
      JaxRuntimeError: if the folder has no profile.
    """
    return bridge.get_profiled_instructions_proto(tensorboard_dir)
