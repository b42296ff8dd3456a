"""Functions that call themselves for the programs inside a program visit each program once.

A program that is called twice at each of 60 levels consists of 60 programs and runs 2**60 times.
`core.subprograms.all_programs` yields each once, and `core.derived.once_per_program` caches a
function of a program, so that it may call itself.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2] / "hlofront"

# Calls that give the programs inside an equation or a program.
OPENS = {
    "branches_of",
    "called_by",
    "closed_programs_in",
    "closed_programs_of",
    "executed_by",
    "jaxprs_in_params",
    "subjaxprs",
    "subprograms_in",
    "subprograms_of",
}
CACHES = {"once_per_program", "get_or_compute"}

# Functions that visit each call of a program, by module: calls differ in their values.
OF_EACH_CALL = {
    "inspect/nan/instrumentation.py": {"_run"},
    "inspect/miscompile/search.py": {"_inside"},
    "inspect/error/widening.py": {"bind_widened", "evaluate_widened"},
    "pallas/interpret/tpu/steps.py": {"run_jaxpr"},
    "pallas/mosaic/builder.py": {"lower_equation"},
    "transforms/discharge.py": {"discharge_jaxpr", "discharge_equation"},
}


# Methods of objects that are made once per program and keep their results.
OF_OBJECTS = {
    "lowering/core/fences.py": {"uses"},
    "inspect/miscompile/reproducer.py": {"_call"},
}


def names_in(tree):
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)
    }


def recursive_over_programs(text):
    """Return the names of the functions of a module that open programs and call themselves."""
    functions = {n.name: n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
    names = {name: names_in(function) for name, function in functions.items()}
    found = set()
    for name in functions:
        reached, waiting = set(), {name}
        while waiting:
            each = waiting.pop()
            # A cached function ends the search: each program passes through it once.
            for other in names[each] & functions.keys() - reached:
                if not names[other] & CACHES:
                    reached.add(other)
                    waiting.add(other)
        if name in reached and names[name] & OPENS and not names[name] & CACHES:
            found.add(name)
    return found


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("folder", sorted({p.relative_to(ROOT).parts[0] for p in MODULES}))
def test_each_program_is_visited_once(folder):
    for path in MODULES:
        module = path.relative_to(ROOT).as_posix()
        if module.split("/")[0] == folder and any(name in path.read_text() for name in OPENS):
            found = recursive_over_programs(path.read_text())
            found -= OF_EACH_CALL.get(module, set()) | OF_OBJECTS.get(module, set())
            assert not found, f"{module}: {found} follow each call: see the top of this file"


def test_a_function_that_follows_each_call_is_found():
    walk = "def count(p):\n    return 1 + sum(map(count, subjaxprs(p)))\n"
    assert recursive_over_programs(walk) == {"count"}
    assert not recursive_over_programs("@once_per_program\n" + walk)
