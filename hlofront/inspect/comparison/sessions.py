"""The processes that run programs under other versions of jaxlib, one program at a time."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import Self

import numpy as np

from hlofront.base.typing import NumPyArray
from hlofront.inspect.comparison import environments
from hlofront.inspect.comparison.columns import Artifact, Tell
from hlofront.inspect.comparison.environments import NoEnvironment


class ProcessEnded(NoEnvironment):
    """The error that a program ended the process that ran it, or exceeded its time limit."""

    def __init__(self, message: str, is_late: bool = False):
        super().__init__(message)
        self.is_late = is_late


class JaxlibSession:
    """A process that compiles and runs programs under a version of jaxlib, on a CPU.

    As a context manager it ends the process with the block.

    Args:
      jaxlib: the version, as in "0.8.3", or "current".
      tell: called with a line of text before each slow step.

    Raises:
      NoEnvironment: if there is no environment with this version and none can be made.
    """

    def __init__(self, jaxlib: str, tell: Tell = lambda text: None):
        python = environments.python_with(jaxlib, tell)
        about = environments.about(python)
        self.jaxlib = about["jaxlib"]
        self._stablehlo = about["stablehlo"]
        self._folder = tempfile.TemporaryDirectory()
        self._known: set[int] = set()
        self._errors = open(self._path("errors"), "w+")
        self._process = subprocess.Popen(
            [python, str(environments.WORKER), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def run(
        self,
        key: int,
        program: Artifact,
        arguments: Sequence[NumPyArray],
        seconds: float | None = None,
    ) -> list[NumPyArray]:
        """Return the results of a program, compiled when its key is new.

        Args:
          key: a number that identifies the program in later runs.
          program: the program; its results have dtypes of NumPy's own.
          arguments: an array for each argument of the function that was lowered.
          seconds: the time limit, after which the process is ended; None for no limit.

        Raises:
          ProcessEnded: if the program ends the process, or takes longer.
          NoEnvironment: if this jaxlib does not compile or run the program.
        """
        request: dict[str, object] = {"key": key, "options": program.options_for(self.jaxlib)}
        if key not in self._known:
            path = self._path("artifact")
            path.write_bytes(program.as_bytes(self._stablehlo))
            request["artifact"] = str(path)
        arguments_path, results_path = self._path("arguments.npz"), self._path("results.npz")
        program.save_arguments(arguments_path, arguments)
        request |= {"arguments": str(arguments_path), "results": str(results_path)}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        is_late = threading.Event()
        timer = threading.Timer(seconds or 0, lambda: (is_late.set(), self._process.kill()))
        if seconds is not None:
            timer.start()
        try:
            print(json.dumps(request), file=stdin, flush=True)
            line = stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            status = self._process.wait()
            if is_late.is_set():
                raise ProcessEnded(f"it took more than {seconds:g} seconds", is_late=True)
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines()
            raise ProcessEnded(
                f"the process of jaxlib {self.jaxlib} ended with {status}: "
                + (said[-1] if said else "it said nothing")
            )
        answer = json.loads(line)
        if "error" in answer:
            raise NoEnvironment(f"jaxlib {self.jaxlib} cannot run it: {answer['error']}")
        self._known.add(key)
        with np.load(results_path) as results:
            return [results[f"arr_{i}"] for i in range(len(results.files))]

    def _path(self, name: str) -> pathlib.Path:
        return pathlib.Path(self._folder.name) / name
