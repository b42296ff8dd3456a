"""Runs the programs of a corpus and says what came out as plain data, alike under hlofront and jax.

Imported by both sides, so it names neither: the namespaces are handed in.
"""

import dataclasses
import importlib.util
import pathlib
import traceback
import warnings
from collections.abc import Collection
from typing import Any

from tests.support.cases import Case
from tests.support.outcomes import classes_of, describe_leaf, own_name, without_addresses

HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(kw_only=True)
class Program(Case):
    """A function of a corpus, what it is called with, and how it is looked at."""

    # Any of: jaxpr (the text of make_jaxpr), value (called as it is), jit (called under jit),
    # repr (its result printed), shape (eval_shape), equations (how many its jaxpr has).
    modes: tuple[str, ...]
    x64: bool = False
    # Relative and absolute tolerance, where the dtype's own are too tight.
    tolerance: float | None = None
    # An error's class that ours may raise where the reference raises another.
    instead: str | None = None
    # For make_jaxpr and jit.
    static_argnums: tuple[int, ...] = ()


class Corpus:
    """What a corpus fills: `@corpus.program(x, y)` above a function adds it by its name."""

    def __init__(self, modes: tuple[str, ...]):
        self.modes = modes
        self.programs: dict[str, Program] = {}

    def program(self, *args: Any, modes: tuple[str, ...] | None = None, **options: Any):
        def register(function):
            self.add(function.__name__, function, *args, modes=modes, **options)
            return function

        return register

    def add(self, name, function, *args, modes=None, **options):
        if name in self.programs:
            raise ValueError(f"two programs are called {name}")
        self.programs[name] = Program(
            function=function, operands=args, modes=modes or self.modes, **options
        )


class Anything:
    """Stands in for a namespace where only the names of a corpus's programs are wanted."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        return self

    def __mro_entries__(self, bases):
        return ()

    def __getitem__(self, index):
        return self

    def __iter__(self):
        return iter(())


def load(corpus_name: str, jax: Any, jnp: Any, lax: Any) -> Corpus:
    """Run the corpus file: its `programs(jax, jnp, lax)` returns a Corpus."""
    path = HERE / f"{corpus_name}.py"
    spec = importlib.util.spec_from_file_location(corpus_name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.programs(jax, jnp, lax)


def names_of(corpus_name: str) -> list[str]:
    anything = Anything()
    return list(load(corpus_name, anything, anything, anything).programs)


def describe_some(
    corpus_name: str, names: Collection[str], jax: Any, jnp: Any, lax: Any
) -> dict[str, Any]:
    """name -> mode -> what came out, for these programs of a corpus."""
    programs = load(corpus_name, jax, jnp, lax).programs
    found = {name: describe(programs[name], jax) for name in names}
    for modes in found.values():
        for described in modes.values():
            described.pop("traceback", None)
    return found


def describe(program: Program, jax: Any) -> dict[str, Any]:
    described = {}
    for mode in program.modes:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            described[mode] = _look(mode, program, jax)
        # What users are told of; NumPy's own warnings about divisions and casts come and go.
        if warned := sorted({w.category.__name__ for w in caught} & {"UserWarning"}):
            described[mode]["warned"] = warned
    return described


def _look(mode: str, program: Program, jax: Any) -> dict[str, Any]:
    function, args, kwargs = program.function, program.operands, program.keywords
    try:
        with jax.enable_x64(program.x64):
            if mode == "jaxpr":
                made = jax.make_jaxpr(function, static_argnums=program.static_argnums)
                return {"text": without_addresses(str(made(*args, **kwargs)))}
            if mode == "equations":
                made = jax.make_jaxpr(function, static_argnums=program.static_argnums)
                jaxpr = made(*args, **kwargs)
                return {"count": count_equations(jaxpr.jaxpr), "text": str(jaxpr)}
            if mode == "repr":
                return {"text": repr(function(*args, **kwargs))}
            if mode == "jit":
                function = jax.jit(function, static_argnums=program.static_argnums)
            if mode == "shape":
                result = jax.eval_shape(function, *args, **kwargs)
            else:
                result = function(*args, **kwargs)
            leaves, structure = jax.tree_util.tree_flatten(result)
            return {
                "structure": own_name(str(structure)),
                "leaves": [describe_leaf(leaf, jax) for leaf in leaves],
            }
    except Exception as error:
        return {
            "error": classes_of(error),
            "message": str(error),
            "traceback": traceback.format_exc(),
        }


def count_equations(jaxpr: Any) -> int:
    """How many equations a jaxpr has, with those of the programs that they hold."""
    return sum(
        1 + sum(map(count_equations, _programs_in(equation.params.values())))
        for equation in jaxpr.eqns
    )


def _programs_in(values: Any) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, tuple | list):
            found += _programs_in(value)
        elif hasattr(value, "jaxpr"):  # one with its constants
            found.append(value.jaxpr)
        elif hasattr(value, "eqns"):
            found.append(value)
    return found
