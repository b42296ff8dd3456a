"""Loads the samples and runs them, alike under hlofront and under the reference.

Imported by both sides: the samples say `from hlofront import lax`, and under the reference that
name is jax. So the files of samples import public names alone, at their top.
"""

import functools
import importlib
import pathlib
import sys
import warnings
from typing import Any

import numpy as np

import tests.samples

FOLDER = pathlib.Path(tests.samples.__file__).parent
ROOT = FOLDER.parents[1]
# How many samples are compiled as one program.
AT_ONCE = 20


@functools.cache
def load() -> dict[str, list[Any]]:
    """The samples of each file, by the file's name."""
    return {path.stem: load_file(path.stem) for path in sorted(FOLDER.glob("[a-z]*.py"))}


def load_file(name: str) -> list[Any]:
    importlib.import_module(f"tests.samples.{name}")
    return [sample for sample in tests.samples.ALL if sample.file == name]


def is_traced(operand: Any) -> bool:
    """Whether an operand is an argument of the compiled program; others are part of it."""
    return isinstance(operand, np.ndarray | np.generic)


def split(sample: Any, values: list[Any]) -> tuple[Any, list[Any]]:
    """The sample as a function of its traced operands alone, and these."""
    places = [i for i, value in enumerate(values) if is_traced(value)]

    def call(*traced):
        operands = list(values)
        for place, value in zip(places, traced, strict=True):
            operands[place] = value
        return sample.call(*operands)

    return call, [values[place] for place in places]


# An option of XLA's that makes it compile twice as fast, to slower programs. (Without its fusion
# emitters it would be twice as fast again, but there it corrupts memory in some scatters.)
COMPILES_FAST = {"xla_backend_optimization_level": 0}


class Together:
    """Functions that are compiled as one program; those that cannot be, without the others."""

    def __init__(self, functions: list[Any], x64: bool, jax: Any):
        self.functions = functions
        self.x64 = x64
        self.jax = jax
        self.groups = [self._compiled(list(range(len(functions))))] if functions else []
        # By a function's place: what it raises.
        self.errors: dict[int, Exception] = {}

    def _compiled(self, places: list[int]) -> tuple[list[int], Any]:
        def together(all_arguments):
            return [
                self.functions[place](*arguments)
                for place, arguments in zip(places, all_arguments, strict=True)
            ]

        return places, self.jax.jit(together, compiler_options=COMPILES_FAST)

    def __call__(self, all_arguments: list[Any]) -> list[Any]:
        """Each function's results of its arguments, as NumPy's arrays, or what it raises."""
        found: dict[int, Any] = {}
        waiting, self.groups = self.groups[::-1], []
        with quiet(), self.jax.enable_x64(self.x64):
            while waiting:
                group = places, program = waiting.pop()
                try:
                    results = program([all_arguments[place] for place in places])
                except Exception as error:
                    middle = len(places) // 2
                    if not middle:
                        self.errors[places[0]] = error
                    else:
                        waiting += [
                            self._compiled(places[middle:]),
                            self._compiled(places[:middle]),
                        ]
                    continue
                self.groups.append(group)
                found.update(zip(places, results, strict=True))
        return [self.errors.get(i) or found[i] for i in range(len(self.functions))]


def describe(result: Any, jax: Any) -> list[tuple[Any, ...]]:
    """(shape, dtype, weak, value) of each array of a result."""
    return [
        (
            tuple(np.shape(leaf)),
            str(leaf.dtype),
            bool(getattr(leaf, "weak_type", False)),
            np.asarray(leaf),
        )
        for leaf in jax.tree_util.tree_leaves(result)
    ]


def run_eager(sample: Any, values: list[Any], jax: Any) -> list[tuple[Any, ...]]:
    """The result of a call outside of jit."""
    with quiet(), jax.enable_x64(sample.needs_x64()):
        return describe(sample.call(*values), jax)


def run_jitted(samples: list[Any], all_values: list[list[Any]], jax: Any) -> list[Any]:
    """For each sample its description under jit, or the error that it raised.

    They are one program. If that cannot be made, halves are, so that errors have names.
    """
    outcomes = []
    for x64 in (False, True):
        chosen = [i for i, sample in enumerate(samples) if sample.needs_x64() is x64]
        for start in range(0, len(chosen), AT_ONCE):
            places = chosen[start : start + AT_ONCE]
            batch = [split(samples[i], all_values[i]) for i in places]
            with quiet(), jax.enable_x64(x64):
                outcomes += zip(places, _run_batch(batch, jax), strict=True)
    return [outcome for _, outcome in sorted(outcomes, key=lambda pair: pair[0])]


def _run_batch(batch: list[Any], jax: Any) -> list[Any]:
    calls = [call for call, _ in batch]

    def together(arguments):
        return [call(*traced) for call, traced in zip(calls, arguments, strict=True)]

    try:
        results = jax.jit(together)([traced for _, traced in batch])
        return [describe(result, jax) for result in results]
    except Exception as error:
        if len(batch) == 1:
            return [f"{type(error).__name__}: {error}"]
        middle = len(batch) // 2
        return _run_batch(batch[:middle], jax) + _run_batch(batch[middle:], jax)


def quiet():
    """Conversions of samples may well warn."""
    return warnings.catch_warnings(action="ignore")


def question_for_reference(sample: Any, place: int, values: list[Any]) -> tuple[int, Any]:
    """The sample's place in its file, and the operands that the reference is handed.

    Operands go by their places; the others it has itself. Samples do not go by their names, which
    are made of the functions' own, and those differ here and there.
    """
    return place, {i: value for i, value in enumerate(values) if is_traced(value)}


def answer_for_reference(
    file: str, questions: dict[str, tuple[int, Any]], jax: Any, *_: Any
) -> dict[str, Any]:
    """Under the reference: by the names of samples of a file what they give of these operands."""
    sys.modules["hlofront"] = jax
    sys.modules["hlofront.lax"] = jax.lax
    sys.modules["hlofront.numpy"] = jax.numpy
    all_samples = load_file(file)
    samples, all_values = [], []
    for place, operands in questions.values():
        samples.append(all_samples[place])
        all_values.append(samples[-1].operand_values())
        for i, value in operands.items():
            all_values[-1][i] = value
    outcomes = [
        # Where the tests lie is not jax's word.
        outcome.replace(f"{ROOT}/", "") if isinstance(outcome, str) else outcome
        for outcome in run_jitted(samples, all_values, jax)
    ]
    return dict(zip(questions, outcomes, strict=True))
