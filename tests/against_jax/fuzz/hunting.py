"""Hunts for programs that hlofront and jax disagree on: `python -m tests.fuzz jax`."""

import argparse
import concurrent.futures
import json
import pathlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import hlofront
from tests.against_jax.fuzz import excuses, generating, known_differences, running, shrinking
from tests.against_jax.fuzz.keeping import AnswersOnDisk
from tests.against_jax.oracle import Oracle, find_interpreter

AT_ONCE = 25


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a hunt to those that all generators have."""
    parser.add_argument("--looks", default="", help="written, jit, value: how all are looked at")
    parser.add_argument(
        "--only", default="", help="shape, jit or value: leave out programs looked at otherwise"
    )
    parser.add_argument("--show", action="store_true", help="print each program's calls")
    parser.add_argument("--whole", action="store_true", help="do not shrink")
    parser.add_argument(
        "--answers", type=pathlib.Path, help="a folder that keeps jax's answers for the next hunt"
    )


def hunt(options: argparse.Namespace, seeds: range) -> Iterator[tuple[int, str]]:
    """Yield each seed, with what differs in its program: "" if nothing does.

    A program that kills the process of jax is left out.
    """
    interpreter = find_interpreter()
    if interpreter is None:
        raise SystemExit("set HLOFRONT_ORACLE_PYTHON to a Python that has jax")
    oracle = Reference(interpreter, options.answers)
    differing = raised = killing = 0
    started = time.monotonic()
    for programs, theirs in batches_with_answers(oracle, options, seeds):
        for name, modes in theirs.result().items():
            if modes is None:
                killing += 1
                print(f"==== {name}: kills the process of jax\n", flush=True)
                continue
            ours = running.described(programs[name], hlofront)
            raised += any("error" in one for one in modes.values())
            if options.show:
                calls = running.calls_of(programs[name], hlofront)
                print(f"---- {name}\n{calls}\n", flush=True)
            found = ""
            if int(name) in known_differences.SEEDS:
                print(f"---- {name}: known: {known_differences.SEEDS[int(name)]}", flush=True)
            elif found := compared(oracle, programs[name], ours, modes):
                differing += 1
                tell(oracle, programs[name], whole=options.whole)
            yield int(name), found
        spent = time.monotonic() - started
        counts = f"{differing} differ, {raised} raise, {killing} kill jax"
        print(f"up to {max(programs, default='')}: {counts}, {spent:.0f} s", flush=True)
    oracle.close()


class Reference:
    """The oracle, started again after a program that kills its process.

    XLA aborts on some programs, whoever lowered them: `rev(x.at[None].add(y))` is one. Such a
    program is no difference, and is not run here, where it would be the end of the hunt.
    """

    def __init__(self, interpreter: str, folder: pathlib.Path | None = None):
        self.interpreter = interpreter
        self.kept = None if folder is None else AnswersOnDisk(folder)
        # The process is started by the first question that no kept answer answers.
        self.oracle: Oracle | None = None
        # Batches are asked for by a thread, and what is shrunk by the other.
        self.lock = threading.RLock()

    def ask(self, programs: dict[str, Any]) -> dict[str, Any]:
        """Return name -> mode -> what came out; None for a program that kills the process."""
        if self.kept is None:
            return self.ask_process(programs)
        answers, unknown = self.kept.split(programs)
        if unknown:
            asked = self.ask_process(unknown)
            for name, answer in asked.items():
                self.kept.keep(programs[name], answer)
            answers |= asked
        return {name: answers[name] for name in programs}

    def ask_process(self, programs: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.oracle = self.oracle or Oracle(self.interpreter)
            try:
                return self.oracle.ask("fuzz", "", programs)
            except RuntimeError as error:
                if not isinstance(error.__cause__, BrokenPipeError | EOFError):
                    raise
            self.close()
            if len(programs) == 1:
                return dict.fromkeys(programs)
            return {
                name: self.ask_process({name: program})[name] for name, program in programs.items()
            }

    def close(self) -> None:
        if self.oracle is not None:
            self.oracle.close()
            self.oracle = None


def batches_with_answers(
    oracle: Reference, options: argparse.Namespace, seeds: range
) -> Iterator[tuple[dict[str, Any], concurrent.futures.Future]]:
    """Yield batches of programs by name, each with jax's answers to come.

    The next batch is asked for before the one in hand is yielded: jax's process never waits.
    """
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        previous = None
        for first in range(0, len(seeds), AT_ONCE):
            batch = seeds[first : first + AT_ONCE]
            programs = {str(seed): generating.draw(seed, options.looks) for seed in batch}
            if options.only:
                programs = {
                    name: one for name, one in programs.items() if options.only in one["modes"]
                }
            answers = thread.submit(oracle.ask, programs)
            if previous:
                yield previous
            previous = programs, answers
        if previous:
            yield previous


def answer(oracle: Reference, program: dict[str, Any]) -> dict[str, Any]:
    return oracle.ask({"one": program})["one"] or {}


def compared(
    oracle: Reference, program: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> str:
    """Return in what a program's results differ; "" if in nothing.

    jax writes down programs that nothing can lower, with constants that are tracers, and whose
    shapes are wrong at times, also where a custom_vjp function is pushed forward: with those
    nothing can be compared. What hlofront refuses while a program is written down, jax may refuse
    when it is lowered: a value that outlives its function, or a float as the seed of a key. Such
    programs are compared under jit.

    Where arguments and constants that differ in their last bit give us results as far apart,
    numbers that differ say nothing.
    """
    found = shrinking.difference(program, ours, theirs)
    if shrinking.is_of_numbers(found) and ill_conditioned(program, ours):
        return ""
    written = [mode for mode in ("equations", "shape") if mode in ours]
    if not found or not written:
        return found
    program = {**program, "modes": ["jit"]}
    lowered = answer(oracle, program)
    message = lowered.get("jit", {}).get("message", "")
    if "No constant handler for type" in message:
        return ""
    refused_by_jax = message.startswith(excuses.NO_FORWARD)
    if refused_by_jax or any("error" in ours[mode] for mode in written):
        our_lowered = running.described(program, hlofront)
        if refused_by_jax and "error" in our_lowered["jit"]:
            return ""
        return shrinking.difference(program, our_lowered, lowered) and found
    return found


def ill_conditioned(program: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Whether our results change as much when the arguments change in their last bit."""
    nearby = ({**program, "nudge": seed} for seed in range(3))
    return any(
        shrinking.is_of_numbers(
            shrinking.difference(program, running.described(one, hlofront), ours)
        )
        for one in nearby
    )


def tell(oracle, program, whole):
    """Print the smallest program that differs in the same manner."""

    def differs(one):
        return compared(oracle, one, running.described(one, hlofront), answer(oracle, one))

    if not differs(program):
        print(f"==== {program['seed']}: differed, and then no more\n")
        return
    small = program if whole else shrinking.shrunk(program, differs)
    print(f"==== {program['seed']}: {small['modes']}, x64={small['x64']}")
    print([step[0] for step in small["layers"]], [[s[0], *s[3:]] for s in small["steps"]])
    print(running.calls_of(small, hlofront))
    print(json.dumps(small))
    print("--", differs(small)[:9000], "\n", flush=True)
