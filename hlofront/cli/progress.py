"""Progress messages of the command line on stderr."""

import sys
import threading

from hlofront.base.progress import ProgressLine, is_enabled, is_shown

# The seconds that an operation may take before its progress is printed.
PATIENCE = 1.0
_timer: threading.Timer | None = None
_line: ProgressLine | None = None


def say(text: str) -> None:
    """Print a line on stderr, after the end of the progress message; stdout is for the output."""
    finish()
    print(f"hlofront: {text}", file=sys.stderr, flush=True)


def announce(text: str, patience: float = 1.0) -> None:
    """Print on stderr what is being done, if it takes long, until the next call or `finish`.

    On a terminal the line counts the seconds, and is erased at the end. Nothing is printed if the
    option `hlofront_progress` is off.

    Args:
      text: what is being done.
      patience: how many times as long as `PATIENCE` it may take before the line is printed.
    """
    global _timer, _line
    finish()
    if not is_enabled():
        return
    if PATIENCE <= 0:
        say(text)
    elif is_shown():
        _line = ProgressLine(lambda: text, patience * PATIENCE)
        _line.__enter__()
    else:
        _timer = threading.Timer(patience * PATIENCE, say, (text,))
        _timer.daemon = True
        _timer.start()


def finish() -> None:
    """End the progress message, as the work is done."""
    global _line
    if _timer is not None:
        _timer.cancel()
    if _line is not None:
        _line.__exit__()
        _line = None
