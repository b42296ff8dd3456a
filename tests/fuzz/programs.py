"""Tries a drawn program in many ways, and shrinks it where it is wrong."""

import gc
import json
import re
from typing import Any

import hlofront as jax
from tests.against_jax.fuzz import running, shrinking
from tests.fuzz import drawing, ways
from tests.support import memory

# Each compiled program takes regions of memory, of which a process may have 65,530.
_MAX_MAPPED = 40_000


def find(seed: int, only: str = "", show: bool = False) -> str:
    """Say what is wrong with the program of a seed; "" if nothing is."""
    if memory.recently_mapped_regions() > _MAX_MAPPED:
        jax.clear_caches()
        gc.collect()
        memory.count_anew()
    program = drawing.draw(seed)
    try:
        program = drawing.pruned(program)
    except Exception as error:
        return f"tracing: {described(error)}"
    found = _difference(program, only)
    if not found or not show:
        return found
    small = shrinking.shrunk(program, lambda one: _difference(one, only))
    return "\n".join(
        [
            _difference(small, only) or found,
            json.dumps(small),
            running.calls_of({**small, "modes": ["jit"]}, jax),
        ]
    )


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {re.sub(r'0x[0-9a-f]+', '0x', str(error))}"


def _difference(program: dict[str, Any], only: str) -> str:
    try:
        return ways.difference(program, only)
    except Exception as error:
        return f"raises {described(error)}"
