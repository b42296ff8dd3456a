"""Jaxprs as text, in the format of JAX 0.10.2.

    { lambda a:f32[3]; b:f32[3]. let c:f32[3] = mul b a in (c,) }

Constants precede the semicolon, inputs follow it; unused results are `_`. Variables are named in
the order of printing. A subprogram is printed inside its equation or, if it is long or occurs more
than once, before the program under its own name.

Programs are recognized by their attribute `eqns`, since core/jaxpr.py imports this module.
"""

# Parameters, literals and users' shapes may be anything, so their types stay unknown here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

import importlib
import itertools
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hlofront.base import config, show, source
from hlofront.base.show import Document
from hlofront.base.typing import Params
from hlofront.core import rules
from hlofront.core.names import path_of

# A Jaxpr or ClosedJaxpr, an Equation, and a Var or Literal, whose module imports this one.
AnyJaxpr = Any
AnyEquation = Any
AnyAtom = Any


# The module that only notebooks need.
_NOTEBOOK = "hlotools.html.notebook"


def print_jaxpr(
    jaxpr: AnyJaxpr,
    *,
    use_color: bool | None = None,
    width: int = 80,
    annotation_prefix: str = " # ",
    **options: Any,
) -> str:
    """Return the text of a jaxpr.

    Args:
      jaxpr: a Jaxpr or ClosedJaxpr.
      use_color: whether to color it for a terminal; None: if stdout is one, and the option
        jax_pprint_use_color is on.
      width: the maximum columns of a line, where possible.
      annotation_prefix: the text before source lines and name stacks.
      **options: the options of `Printing`.
    """
    color = _on_terminal() if use_color is None else use_color
    document = Printing(color=color, **options).whole_program(_opened(jaxpr))
    return show.render(document, width, color=color, note_prefix=annotation_prefix)


def jaxpr_html(jaxpr: "AnyJaxpr") -> str:
    """Return a jaxpr as HTML for a notebook: its page with the lines of source, and its text."""
    text = print_jaxpr(jaxpr, source_info=True, use_color=False)
    return importlib.import_module(_NOTEBOOK).program_html("jaxpr", text)


def print_equation(
    equation: AnyEquation,
    *,
    use_color: bool | None = None,
    width: int = 80,
    annotation_prefix: str = " # ",
    **options: Any,
) -> str:
    """Return the text of an equation of a jaxpr.

    Args:
      equation: the equation.
      use_color: whether to color it for a terminal; None: if stdout is one, and the option
        jax_pprint_use_color is on.
      width: the maximum columns of a line, where possible.
      annotation_prefix: the text before source lines and name stacks.
      **options: the options of `Printing`.
    """
    color = _on_terminal() if use_color is None else use_color
    document = Printing(color=color, **options).equation(equation)
    return show.render(document, width, color=color, note_prefix=annotation_prefix)


def _on_terminal() -> bool:
    return config.options["jax_pprint_use_color"].value and bool(sys.stdout and sys.stdout.isatty())


def _opened(program: object) -> AnyJaxpr:
    return getattr(program, "jaxpr", program)


def _is_program(value: object) -> bool:
    return hasattr(type(value), "eqns")


def _calls(program: Any) -> bool:
    """Return whether a program holds others."""
    return any(True for equation in program.eqns for _ in _programs_in(equation))


class Printing:
    """The state of printing one text: the names of variables so far, and the options.

    A rule of `core.rules.show` is called with an equation and a Printing, and returns the document
    of the equation: usually `printing.laid_out(equation, parameters)` with selected parameters.
    """

    __slots__ = (
        "_annotated",
        "_names",
        "_plain",
        "_spellings",
        "_with_rules",
        "color",
        "print_effects",
        "print_shapes",
        "shared",
    )

    # id of a program with its own name -> the name.
    shared: dict[int, str]

    def __init__(
        self,
        *,
        source_info: bool = False,
        print_shapes: bool = True,
        name_stack: bool = False,
        custom_pp_eqn_rules: bool = True,
        print_effects: bool = False,
        color: bool = False,
    ):
        """Set the options of a text.

        Args:
          source_info: whether to print next to each equation the user line that made it.
          print_shapes: whether to print the types of variables where they are bound.
          name_stack: whether to print next to each equation the named scopes around it.
          custom_pp_eqn_rules: whether primitives may omit parameters and print in their own way;
            else all parameters are printed.
          print_effects: whether to print the effects of programs.
          color: whether the text is for a terminal that shows colors.
        """
        self._annotated = (source_info, name_stack)
        self._with_rules = custom_pp_eqn_rules
        self.print_shapes = print_shapes
        self.print_effects = print_effects
        self.color = color
        self._plain = not (color or source_info or name_stack)
        self._names: dict[AnyAtom, str] = {}
        self.shared = {}
        self._spellings = spellings()

    # ---- atoms -------------------------------------------------------------------------------

    def name(self, variable: AnyAtom) -> str:
        """Return the printed name of a variable, and assign the next free name to a new one."""
        name = self._names.get(variable)
        if name is None:
            dropped = type(variable).__name__ == "DropVar"
            name = self._names[variable] = "_" if dropped else next(self._spellings)
        return name

    def is_dropped(self, variable: AnyAtom) -> bool:
        """Return whether a variable is printed as `_`."""
        return self.name(variable) == "_"

    def bound(self, variable: AnyAtom) -> Document:
        """Return the text of a variable where it is bound, with its type if `print_shapes`."""
        name = self.name(variable)
        if not self.print_shapes:
            return name
        if not self.color:
            return f"{name}:{variable.aval.str_short(True)}"
        return show.concat((name, show.styled(f":{variable.aval.str_short(True)}", "magenta")))

    def used(self, atom: Any) -> str:
        """Return the text of a variable or literal where it is used."""
        if hasattr(type(atom), "val"):
            return f"{_literal_text(atom.val)}:{atom.aval.str_short(True)}"
        return self.name(atom)

    # ---- equations ---------------------------------------------------------------------------

    def equation(self, equation: AnyEquation) -> Document:
        """Return the document of an equation: `results = primitive[parameters] operands`."""
        if not self._with_rules:
            return self.laid_out(equation, sorted(equation.params.items()))
        rule = rules.show.get(equation.primitive)
        if rule is not None:
            return rule(equation, self)
        select = _selections.get(equation.primitive.name)
        if select is None:
            return self.laid_out(equation, sorted(equation.params.items()))
        if equation.primitive.name in _SHARES_NAMES:
            self._share_names(equation, equation.params[_SHARES_NAMES[equation.primitive.name]])
        return self.laid_out(equation, select(equation.params))

    def laid_out(self, equation: AnyEquation, parameters: Sequence[tuple[str, object]]) -> Document:
        """Return the document of an equation with selected (name, value) parameters, in order."""
        parts: list[Document] = []
        if equation.outvars:
            parts.append(show.fill([self.bound(v) for v in equation.outvars]))
            parts.append(" = ")
        parts.append(self._annotate(equation))
        if parameters:
            shown = [self._parameter(name, value) for name, value in parameters]
            parts.append(show.block("[", shown, "]"))
        parts.append(" ")
        if equation.invars:
            parts.append(show.fill([self.used(v) for v in equation.invars]))
        texts = [part for part in parts if isinstance(part, str)]
        if self._plain and len(texts) == len(parts):
            return "".join(texts)
        return show.concat(parts)

    def _annotate(self, equation: AnyEquation) -> Document:
        source_info, name_stack = self._annotated
        name = equation.primitive.name
        notes = []
        if source_info:
            notes.append(source.summarize(equation.traceback))
        if name_stack:
            notes.append(f"[{path_of(equation.name_stack)}]")
        return show.noted(name, notes) if notes else name

    def _parameter(self, name: str, value: object) -> Document:
        text = self.value(value)
        return f"{name}={text}" if type(text) is str else show.concat((f"{name}=", text))

    def value(self, value: Any) -> Document:
        """Return the document of a parameter's value."""
        if _is_program(value):
            return self.program(_opened(value))
        if type(value) in (tuple, list) and value and all(map(_is_program, value)):
            return show.block("(", [self.program(_opened(member)) for member in value], ")")
        fields = getattr(type(value), "_fields", None) if isinstance(value, tuple) else None
        if fields and any(_is_program(member) and _calls(member) for member in value):
            # The text of each member on its own would repeat the programs that they share.
            members = [
                show.concat((f"{field}=", self.value(member)))
                for field, member in zip(fields, value, strict=True)
            ]
            return show.concat((type(value).__name__, show.block("(", members, ")")))
        text = _set_text(value) if type(value) is frozenset else str(value)
        # Addresses of functions are masked, because they differ from run to run.
        return _ADDRESS.sub(_masked, text) if _ADDRESS_MARK in text else text

    def _share_names(self, equation: AnyEquation, program: Any) -> None:
        """Name the variables of a called program after the call's operands and results."""
        if not _is_program(program):
            return  # The equation is invalid, and is printed in the error that reports it.
        program = _opened(program)
        if id(program) in self.shared:
            return
        names = self._names
        seen = set()
        for inner, outer in zip(program.invars, equation.invars):
            # A repeated operand gives its name to the first input only.
            if inner not in names and not hasattr(type(outer), "val") and outer not in seen:
                seen.add(outer)
                names[inner] = self.name(outer)
        for inner, outer in zip(program.outvars, equation.outvars):
            if not hasattr(type(inner), "val") and inner not in names:
                names[inner] = self.name(outer)

    # ---- programs ----------------------------------------------------------------------------

    def whole_program(self, jaxpr: AnyJaxpr) -> Document:
        """Return the document of a program, after its subprograms that have their own names."""
        named = _named_programs(jaxpr)
        self.shared = {id(program): name for name, program in named}
        self._spellings = spellings(frozenset(self.shared.values()))
        parts: list[Document] = []
        for name, program in named:
            parts += [f"let {name} = ", self._block(program), " in", show.LINE]
        self._drop_unused(jaxpr)
        return show.concat((*parts, self._block(jaxpr)))

    def program(self, jaxpr: AnyJaxpr) -> Document:
        """Return the document of a subprogram: its name if it has one, else its text."""
        return self.shared.get(id(jaxpr)) or self._block(jaxpr)

    def _block(self, jaxpr: AnyJaxpr) -> Document:
        inside = [
            self._keyword("lambda "),
            show.fill([self.bound(v) for v in jaxpr.constvars]),
            "; ",
            show.fill([self.bound(v) for v in jaxpr.invars]),
            ". ",
            self._keyword("let"),
            show.nest(
                2,
                show.concat((show.LINE, show.join(_NEXT_EQUATION, map(self.equation, jaxpr.eqns)))),
            ),
            show.LINE,
            self._keyword("in "),
            "(",
            show.fill(_listed([self.used(v) for v in jaxpr.outvars])),
            ")",
        ]
        if self.print_effects:
            inside.append(f" : {{ {', '.join(sorted(map(str, jaxpr.effects)))} }}")
        return show.group(show.concat(("{ ", show.nest(2, show.concat(inside)), " }")))

    def _drop_unused(self, jaxpr: AnyJaxpr) -> None:
        """Name results `_` that no later equation and no output uses."""
        used = set(jaxpr.outvars)
        for equation in reversed(jaxpr.eqns):
            for v in equation.outvars:
                if v not in used:
                    self._names[v] = "_"
            used.update(equation.invars)

    def _keyword(self, word: str) -> Document:
        return show.styled(word, "blue", "bright") if self.color else word


_NEXT_EQUATION = show.Break("; ")
_ADDRESS_MARK = " at 0x"
_ADDRESS = re.compile(r"(?<= at 0x)[0-9a-f]+")


def _masked(match: re.Match[str]) -> str:
    return "X" * len(match[0])


def _set_text(members: frozenset[Any]) -> str:
    """Return the text of a set in sorted order, which is equal in each run."""
    try:
        ordered = sorted(members)
    except TypeError:
        ordered = sorted(members, key=repr)
    return f"frozenset({{{', '.join(map(repr, ordered))}}})"


def _listed(atoms: Sequence[str]) -> Sequence[str]:
    """Return the texts of atoms with the commas of a Python tuple."""
    if len(atoms) == 1:
        return [f"{atoms[0]},"]
    return [f"{atom}," for atom in atoms[:-1]] + list(atoms[-1:])


def _literal_text(value: object) -> str:
    if getattr(value, "shape", ()):
        return "[...]"  # The text of a program does not depend on the elements of its arrays.
    if isinstance(value, np.generic | np.ndarray):
        value = value.item()
    return str(value)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def spellings(avoided: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the names of variables, a to z, ba, bb, ..., except `avoided` ones."""
    first: str = _LETTERS
    for further in itertools.count():
        for digits in itertools.product(first, *[_LETTERS] * further):
            name = "".join(digits)
            if name not in avoided:
                yield name
        # Numbers have no leading zeros: after z comes ba.
        first = _LETTERS[1:]


# ---- named programs --------------------------------------------------------------------------

# The number of equations above which a program has its own name even if it occurs once.
_MAX_EQUATIONS_INSIDE = 10


def _named_programs(jaxpr: AnyJaxpr) -> list[tuple[str, AnyJaxpr]]:
    """Return (name, subprogram) pairs, in order, of the subprograms that are printed by name."""
    labels: dict[int, str] = {}
    met: dict[int, AnyJaxpr] = {}
    repeated: set[int] = set()
    waiting = deque([jaxpr])
    while waiting:
        for equation in waiting.popleft().eqns:
            for program in _programs_in(equation):
                key = id(program)
                if key in met:
                    _mark_with_inner(program, repeated)
                    continue
                met[key] = program
                labels[key] = str(equation.params.get("name") or "jaxpr").strip("<>")
                waiting.append(program)
    visible = [
        key
        for key, program in met.items()
        if key in repeated or len(program.eqns) > _MAX_EQUATIONS_INSIDE
    ]
    names = _distinct(labels[key] for key in visible)
    return [(name, met[key]) for name, key in zip(names, visible)]


def _mark_with_inner(program: AnyJaxpr, repeated: set[int]) -> None:
    """Add the ids of a program and of all programs inside it to `repeated`."""
    waiting = [program]
    while waiting:
        program = waiting.pop()
        if id(program) not in repeated:
            repeated.add(id(program))
            for equation in program.eqns:
                waiting.extend(_programs_in(equation))


def _programs_in(equation: AnyEquation) -> Iterator[AnyJaxpr]:
    for value in equation.params.values():
        if _is_program(value):
            yield _opened(value)
        elif isinstance(value, tuple | list):
            for member in value:
                if _is_program(member):
                    yield _opened(member)


def _distinct(labels: Iterable[str]) -> list[str]:
    """Return labels with numbers appended to repeated ones."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}
    names = []
    for label in labels:
        name = label
        while name in taken:
            numbers[label] = numbers.get(label, 0) + 1
            name = f"{label}{numbers[label]}"
        taken.add(name)
        names.append(name)
    return names


# ---- selections of parameters ----------------------------------------------------------------

Parameters = list[tuple[str, Any]]
_Selection = Callable[[dict[str, Any]], Parameters]

# Primitives that call a program whose variables then take the names of operands and results.
_SHARES_NAMES = {"jit": "jaxpr"}


def says_nothing(value: object) -> bool:
    """Return whether a parameter's value is a default that is not shown: None, False, (), ..."""
    if value is None or value is False:
        return True
    if type(value) is tuple:
        return all(map(says_nothing, value))
    return type(value).__name__ == "UnspecifiedValue" or getattr(value, "empty", None) is True


def hiding(*silent: str, implied: Sequence[str] = ()) -> _Selection:
    """Return a selection of parameters without `implied` ones, and `silent` ones with defaults."""

    def select(params: Params) -> Parameters:
        return [
            (name, value)
            for name, value in sorted(params.items())
            if name not in implied and not (name in silent and says_nothing(value))
        ]

    return select


def _of_jit(params: Params) -> Parameters:
    rest = [
        (name, value)
        for name, value in sorted(params.items())
        if name not in ("jaxpr", "name") and not says_nothing(value)
    ]
    return [("name", params["name"]), *sorted([*rest, ("jaxpr", params["jaxpr"])])]


def _of_dot_general(params: Params) -> Parameters:
    contracting, batch = params["dimension_numbers"]
    lists = (tuple(map(list, contracting)), tuple(map(list, batch)))
    return _hide_precision({**params, "dimension_numbers": lists})


_hide_precision = hiding("precision", "preferred_element_type", implied=("out_sharding",))


def _of_custom_rule(functions: dict[str, str], hidden: Sequence[str]) -> _Selection:
    """Return a selection that shows functions by name; `functions`: parameter -> printed name."""

    def select(params: Params) -> Parameters:
        shown = {
            functions.get(name, name): _function_name(value) if name in functions else value
            for name, value in params.items()
            if name not in hidden and not (name == "num_consts" and value == 0)
        }
        info = getattr(params["call_jaxpr"], "debug_info", None)
        return [("name", info.func_name if info else "<unknown>"), *sorted(shown.items())]

    return select


def _function_name(function: object) -> str:
    return getattr(function, "__name__", "<unknown>")


_selections: dict[str, _Selection] = {
    "jit": _of_jit,
    "dot_general": _of_dot_general,
    "check": hiding(implied=("error_type", "structures")),
    "broadcast_in_dim": hiding("broadcast_dimensions", implied=("shape", "sharding")),
    "convert_element_type": hiding(implied=("sharding",)),
    "mul": hiding("out_dtype"),
    "reshard": hiding(implied=("dst_sharding", "concrete_mesh", "source_mesh")),
    "polynomial": hiding("unroll"),
    "custom_jvp_call": _of_custom_rule({"jvp_jaxpr_fun": "jvp"}, ()),
    "custom_vjp_call": _of_custom_rule({"fwd_jaxpr_thunk": "fwd", "bwd": "bwd"}, ("out_trees",)),
}
_selections |= dict.fromkeys(
    (
        "cbrt",
        "cos",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log1p",
        "log2",
        "logistic",
        "rsqrt",
        "sin",
        "sqrt",
        "tan",
        "tanh",
    ),
    hiding("accuracy"),
)
