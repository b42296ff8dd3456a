"""Files that reproduce a wrong part: a script of jax, and StableHLO with a script that runs it."""

import enum
import os
import pathlib
import shutil
import string
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from hlofront.base.dtypes import ExtendedDType
from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Literal
from hlofront.core.programs.subprograms import (
    branches_of,
    condition_of,
    executed_by,
    split_inputs,
)
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.inspect.comparison.columns import Artifact
from hlofront.inspect.comparison.environments import WORKER
from hlofront.inspect.error.other_jaxlib import host_array
from hlofront.inspect.miscompile.report import MiscompileReport
from hlofront.inspect.miscompile.search import Found
from hlofront.inspect.miscompile.trials import Trials


class Unwritable(Exception):
    """The error that an operation cannot be written in Python; the message says why."""


def written(
    report: MiscompileReport, found: Found, trials: Trials, folder: str | os.PathLike[str]
) -> tuple[str, ...]:
    """Write files that reproduce a wrong part into a folder, and return their paths.

    Raises:
      FileExistsError: if the folder has files in it.
    """
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    if any(path.iterdir()):
        raise FileExistsError(f"the folder for what reproduces it, {folder}, is not empty")
    comment = [f"jaxlib {report.jaxlib}: {x}" for x in (*report.part, report.failure) if x]
    files = [*_stablehlo(found, trials, path, comment)]
    try:
        text = _script(found, comment, path)
    except Unwritable as error:
        text = f"# There is no script of jax: {error}. Run part.mlir instead.\n"
    script = path / "part.py"
    script.write_text(text)
    return (str(script), *map(str, files))


def _stablehlo(
    found: Found, trials: Trials, path: pathlib.Path, comment: Sequence[str]
) -> list[pathlib.Path]:
    """Write a part as StableHLO, its arguments, and a script that runs it under any jaxlib."""
    lowered = trials.lowered(found.part.program, found.operands)
    program, arguments, runner = path / "part.mlir", path / "part.npz", path / "run_mlir.py"
    Artifact(lowered).save_arguments(arguments, list(map(host_array, found.operands)))
    shutil.copyfile(WORKER, runner)
    lines = ["// python run_mlir.py --run part.mlir part.npz", *(f"// {x}" for x in comment)]
    program.write_text("\n".join([*lines, lowered.as_text()]))
    return [program, arguments, runner]


# ---- the script of jax ---------------------------------------------------------------------------


def _script(found: Found, comment: Sequence[str], path: pathlib.Path) -> str:
    arrays = list(map(host_array, found.operands))
    wide = any(x.dtype.itemsize == 8 * (2 if x.dtype.kind == "c" else 1) for x in arrays)
    return "\n".join(
        [
            *(f"# {line}" for line in comment),
            "import jax",
            "import numpy as np",
            "from jax import lax",
            "from jax.extend.core import primitives as p",
            "",
            *(['jax.config.update("jax_enable_x64", True)'] if wide else []),
            f"args = [{', '.join(_array(x, i, path) for i, x in enumerate(arrays))}]",
            "",
            *functions_of("part", found.part.program),
            'print("as a whole:", jax.jit(part)(*args))',
            'print("operation by operation:", part(*map(jax.numpy.asarray, args)))',
            "",
        ]
    )


def functions_of(name: str, program: ClosedJaxpr) -> list[str]:
    """Return the lines of a Python function that binds the primitives of a program.

    The lines need jax, lax, numpy as np, and jax.extend.core.primitives as p. Programs inside an
    equation, such as the body of a loop, become separate functions, which come first.

    Raises:
      Unwritable: if a parameter or a constant cannot be written in Python.
    """
    functions = _Functions()
    functions.write(name, program)
    return [*(_SPLIT if functions.scans else ()), *functions.lines]


_SPLIT = ("def split(results, carried):", "    return results[:carried], results[carried:]", "")


class _Functions:
    """The lines of functions that bind the primitives of programs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.scans = False
        # The functions of inner programs, by the id of the program.
        self._names: dict[int, str] = {}

    def write(self, function: str, program: ClosedJaxpr, is_inner: bool = False) -> None:
        """Write a program as a function of its inputs, after those that it needs.

        Args:
          function: the function's name.
          program: the program.
          is_inner: whether it returns a tuple even of a single result.
        """
        names: dict[Atom, str] = {}
        letters = _letters()
        lines: list[str] = []
        for var, value in zip(program.jaxpr.constvars, program.consts, strict=True):
            names[var] = next(letters)
            lines.append(f"    {names[var]} = {_scalar(host_array(value))}")
        names.update(zip(program.jaxpr.invars, letters))
        for equation in program.eqns:
            right = self._call(equation, _texts(equation.invars, names))
            names.update(zip(equation.outvars, letters))
            results = [names[var] for var in equation.outvars]
            left = _tuple(results) if equation.primitive.multiple_results else results[0]
            if equation.primitive is scan_p:
                carried = equation.params["num_carry"]
                left = f"{_tuple(results[:carried])}, {_tuple(results[carried:])}"
            lines.append(f"    {left} = {right}")
        parameters = ", ".join(names[var] for var in program.jaxpr.invars)
        results = _texts(program.jaxpr.outvars, names)
        returned = _tuple(results) if is_inner else ", ".join(results)
        self.lines += [f"def {function}({parameters}):", *lines, f"    return {returned}", ""]

    def _call(self, equation: Equation, operands: list[str]) -> str:
        """Return the Python expression that computes an equation.

        Loops and branches are calls of lax, as the parameters of their primitives differ between
        versions of jax.
        """
        params = equation.params
        body, condition = executed_by(equation), condition_of(equation)
        if equation.primitive is cond_p:
            functions = [self._inner_function(each.closed) for each in branches_of(equation)]
            return f"lax.switch({operands[0]}, [{', '.join(functions)}], {', '.join(operands[1:])})"
        if body is not None and condition is not None:
            read = split_inputs(condition, operands)[0]
            consts, carry, _ = split_inputs(body, operands)
            goes_on, step = map(self._inner_function, (condition.closed, body.closed))
            return (
                f"lax.while_loop(lambda carry: {goes_on}({', '.join([*read, '*carry'])})[0], "
                f"lambda carry: {step}({', '.join([*consts, '*carry'])}), {_tuple(carry)})"
            )
        if equation.primitive is scan_p and body is not None:
            self.scans = True
            consts, carry, xs = split_inputs(body, operands)
            results = (
                f"{self._inner_function(body.closed)}({', '.join([*consts, '*carry', '*row'])})"
            )
            step = f"lambda carry, row: split({results}, {len(carry)})"
            options = f"length={body.iterations}, reverse={params['reverse']}"
            return f"lax.scan({step}, {_tuple(carry)}, {_tuple(xs)}, {options})"
        name = equation.primitive.name.replace("-", "_")
        if "update_jaxpr" in params:
            params = {key: x for key, x in params.items() if not key.startswith("update_")}
            return f"lax.{name}({', '.join([*operands, *_keywords(params)])})"
        name = name if name.endswith("_p") else f"{name}_p"
        return f"p.{name}.bind({', '.join([*operands, *_keywords(params)])})"

    def _inner_function(self, program: ClosedJaxpr) -> str:
        name = self._names.get(id(program))
        if name is None:
            name = self._names[id(program)] = f"inner{len(self._names) + 1}"
            self.write(name, program, is_inner=True)
        return name


def _texts(atoms: Sequence[Atom], names: Mapping[Atom, str]) -> list[str]:
    return [_literal(atom) if isinstance(atom, Literal) else names[atom] for atom in atoms]


def _tuple(texts: Sequence[str]) -> str:
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _keywords(params: Mapping[str, object]) -> list[str]:
    return [f"{key}={text_of(value)}" for key, value in params.items()]


def _letters() -> Iterator[str]:
    yield from string.ascii_lowercase.replace("p", "")
    number = 0
    while True:
        yield f"x{number}"
        number += 1


def _literal(literal: Literal) -> str:
    dtype = literal.aval.dtype
    if isinstance(dtype, ExtendedDType):
        raise Unwritable("a constant is a random key")
    return _scalar(np.asarray(literal.val).astype(dtype))


def _scalar(x: NumPyArray) -> str:
    if x.shape:
        return f"np.array({_nested(x)}, {x.dtype.name!r})"
    return f"np.array({_number(x[()])}, {x.dtype.name!r})"


def _number(x: np.generic) -> str:
    value = x.item()
    text = repr(value)
    return f"float({text!r})" if text in ("nan", "inf", "-inf") else text


def _nested(x: NumPyArray) -> str:
    if not x.shape:
        return _number(x[()])
    return f"[{', '.join(map(_nested, x))}]"


def _array(x: NumPyArray, number: int, path: pathlib.Path) -> str:
    """Return the text of an argument; a large one is saved next to the script."""
    if x.size <= 16 or (x.size <= 256 and x.dtype.kind in "biu"):
        return _scalar(x)
    if (x == x.reshape(-1)[0]).all():
        return f"np.full({x.shape}, {_number(x.reshape(-1)[0])}, {x.dtype.name!r})"
    name = f"argument{number}.npy"
    builtin = x if x.dtype.isbuiltin == 1 else x.view(f"uint{8 * x.dtype.itemsize}")
    np.save(path / name, builtin)
    view = "" if builtin is x else f".view({x.dtype.name!r})"
    return f"np.load({name!r}){view}"


def text_of(value: object) -> str:
    """Return a parameter of an equation as a Python expression.

    Raises:
      Unwritable: if there is no such expression, as for programs and functions.
    """
    if value is None or isinstance(value, bool | int | str):
        return repr(value) if not isinstance(value, enum.Enum) else _enum(value)
    if isinstance(value, float):
        return _number(np.float64(value))
    if isinstance(value, enum.Enum):
        return _enum(value)
    if isinstance(value, np.dtype):
        return f"np.dtype({value.name!r})"
    if isinstance(value, np.generic):
        return _scalar(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = [f"{name}={text_of(getattr(value, name))}" for name in value._fields]
        return f"lax.{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, tuple | list):
        texts = list(map(text_of, value))
        if isinstance(value, list):
            return f"[{', '.join(texts)}]"
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
    raise Unwritable(f"a parameter is {type(value).__name__}, which has no text")


def _enum(value: enum.Enum) -> str:
    return f"lax.{type(value).__name__}.{value.name}"
