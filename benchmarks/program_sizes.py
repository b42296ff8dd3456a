"""The sizes and times of fourteen small programs: `python benchmarks/program_sizes.py`.

Each program is lowered and compiled on a CPU as it is, without replacements
(HLOFRONT_CPU_FORMULAS=0) and, where $HLOFRONT_ORACLE_PYTHON names a Python that has it, under jax.
Printed are the lines of `main`, of all StableHLO and of the optimized HLO, the milliseconds of
tracing with lowering and of compilation (the least of several), and the microseconds of a call.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 5


def least_ms(function: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, Any]:
    """Return the least processor time of a function in milliseconds, and its last result."""
    times: list[float] = []
    result = None
    for _ in range(rounds):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return 1000 * min(times), result


def lines_of_main(text: str) -> int:
    """Return the number of lines of a module's main function."""
    return len(
        text[text.index("@main") :].split("func.func private")[0].split("\n  }")[0].splitlines()
    )


def measure(jax: Any) -> dict[str, list[float]]:
    """Return the numbers of each program under a module `jax`."""
    from tests.support.readable_programs import programs

    return {name: numbers_of(jax, *program) for name, *program in programs(jax)}


def numbers_of(jax: Any, function: Callable[..., Any], operands: tuple[Any, ...]) -> list[float]:
    """Return the lines of a program, and the times of its lowering, compilation and call."""
    lower_ms, lowered = least_ms(lambda: jax.jit(lambda *xs: function(*xs)).lower(*operands))
    # A lowered program is compiled once.
    others = [jax.jit(lambda *xs: function(*xs)).lower(*operands) for _ in range(3)]
    compile_ms, compiled = least_ms(lambda: others.pop().compile(), 3)
    arrays = jax.device_put(operands)
    call_ms, _ = least_ms(lambda: jax.block_until_ready(compiled(*arrays)), 50)
    text, optimized = lowered.as_text(), compiled.as_text()
    sizes = [lines_of_main(text), len(text.splitlines()), len(optimized.splitlines())]
    return [*sizes, lower_ms, compile_ms, 1000 * call_ms]


def in_process(python: str, module: str, **variables: str) -> dict[str, list[float]]:
    """Return the numbers of each program, measured in a process of its own."""
    code = f"import json, {module} as jax; from benchmarks.program_sizes import measure; "
    code += "print(json.dumps(measure(jax)))"
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    settings = {"HLOFRONT_CACHE": "off", "HLOFRONT_WARN_RECOMPILES": "0", "JAX_PLATFORMS": "cpu"}
    environment = {**os.environ, **settings, "PYTHONPATH": root, **variables}
    done = subprocess.run(
        [python, "-c", code], env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    columns = {
        "hlofront": in_process(sys.executable, "hlofront"),
        "plain": in_process(sys.executable, "hlofront", HLOFRONT_CPU_FORMULAS="0"),
    }
    if oracle := os.environ.get("HLOFRONT_ORACLE_PYTHON"):
        columns["jax"] = in_process(oracle, "jax")
    headers = ("main", "StableHLO", "HLO", "lower ms", "compile ms", "call us")
    print(f"each cell: {' / '.join(columns)}")
    print(f"{'program':20}", *(f"{header:>24}" for header in headers))
    for name in columns["hlofront"]:
        cells = []
        for i in range(len(headers)):
            numbers = [of_name[name][i] for of_name in columns.values()]
            shown = [
                f"{number:.0f}" if i < 3 or number > 99 else f"{number:.1f}" for number in numbers
            ]
            cells.append(f"{' / '.join(shown):>24}")
        print(f"{name:20}", *cells)


if __name__ == "__main__":
    main()
