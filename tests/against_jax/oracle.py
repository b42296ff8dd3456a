"""The real jax in a process of its own, asked over pipes; started once for a whole test session."""

import os
import pathlib
import pickle
import select
import subprocess
import tempfile
import threading

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
PLACE = ROOT / ".venv-oracle" / "bin" / "python"


def find_interpreter() -> str | None:
    """The Python that has jax: the one the environment names, or the usual place."""
    named = os.environ.get("HLOFRONT_ORACLE_PYTHON")
    if named:
        return named
    return str(PLACE) if PLACE.exists() else None


class Oracle:
    """One worker process. `ask` sends a question and waits for its answer."""

    def __init__(self, interpreter: str):
        self.lock = threading.Lock()
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [interpreter, "-P", str(HERE / "worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=ROOT,
            env={
                # JAX_* settings of the developer must not decide what the reference says.
                **{k: v for k, v in os.environ.items() if not k.startswith("JAX_")},
                "JAX_PLATFORMS": "cpu",
                "TF_CPP_MIN_LOG_LEVEL": "2",
            },
        )

    def ask(self, *question, timeout: float = 1200.0):
        data = pickle.dumps(question, protocol=5)
        try:
            with self.lock:
                self.process.stdin.write(len(data).to_bytes(8, "little") + data)
                self.process.stdin.flush()
                length = int.from_bytes(self._read(8, timeout), "little")
                status, answer = pickle.loads(self._read(length, timeout))
        except (BrokenPipeError, EOFError, TimeoutError) as error:
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace")[-4000:]
            raise RuntimeError(
                f"the oracle did not answer ({error!r}); it said:\n{said}"
            ) from error
        if status != "ok":
            raise RuntimeError(f"the oracle could not run {question[:2]}:\n{answer}")
        return answer

    def _read(self, count: int, timeout: float) -> bytes:
        pieces = []
        descriptor = self.process.stdout.fileno()
        while count:
            if not select.select([descriptor], [], [], timeout)[0]:
                raise TimeoutError(f"nothing for {timeout:.0f} s")
            piece = os.read(descriptor, min(count, 1 << 20))
            if not piece:
                raise EOFError("its pipe is closed")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.errors.close()
