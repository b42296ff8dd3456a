"""What the command line says on stderr while something takes long."""

import sys
import threading

# The seconds that something may take before its progress is said.
PATIENCE = 1.0
_timer: threading.Timer | None = None


def say(text: str) -> None:
    """Print a line on stderr, where it is in nobody's way."""
    print(f"hlofront: {text}", file=sys.stderr, flush=True)


def announce(text: str) -> None:
    """Say what is going on if it takes long: until the next call, or `finish`."""
    global _timer
    finish()
    if PATIENCE <= 0:
        say(text)
        return
    _timer = threading.Timer(PATIENCE, say, (text,))
    _timer.daemon = True
    _timer.start()


def finish() -> None:
    """Say no more about what was going on: it is done."""
    if _timer is not None:
        _timer.cancel()
