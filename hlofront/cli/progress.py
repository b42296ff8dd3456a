"""Progress messages of the command line on stderr."""

import sys
import threading

# The seconds that an operation may take before its progress is printed.
PATIENCE = 1.0
_timer: threading.Timer | None = None


def say(text: str) -> None:
    """Print a line on stderr, which leaves stdout for the command's output."""
    print(f"hlofront: {text}", file=sys.stderr, flush=True)


def announce(text: str) -> None:
    """Print a progress message on stderr after a delay; the next call or `finish` cancels it."""
    global _timer
    finish()
    if PATIENCE <= 0:
        say(text)
        return
    _timer = threading.Timer(PATIENCE, say, (text,))
    _timer.daemon = True
    _timer.start()


def finish() -> None:
    """Cancel the pending progress message, as the work is done."""
    if _timer is not None:
        _timer.cancel()
