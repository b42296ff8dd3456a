"""One table says which programs equations hold: `core.rules.subprograms`, and nobody else looks."""

import ast

import hlofront  # noqa: F401  (plugs in the engine, and with it most primitives)
from hlofront import higher_order, lowering, pallas
from hlofront.core import rules
from hlofront.core.primitive import ALL
from tests.conventions.source import modules, walk
from tests.conventions.test_primitives import import_all

# The parameters of operations that hold programs.
PROGRAM_PARAMETERS = set(
    (
        "jaxpr call_jaxpr fun_jaxpr fwd_jaxpr cond_jaxpr body_jaxpr branches jaxprs call callee "
        "update_jaxpr select_jaxpr scatter_jaxpr"
    ).split()
)
# These show or encode all parameters, whatever an operation does with them.
SHOWN_AS_THEY_ARE = {"hlofront.core.programs.print", "hlofront.core.programs.digest"}


def homes() -> set[str]:
    """Return the modules that define rules of operations that hold programs."""
    tables = [table for table in vars(rules).values() if isinstance(table, rules.RuleTable)]
    of_all_platforms = [
        table[primitive]
        for table in tables
        for primitive in rules.subprograms
        if primitive in table
    ]
    of_one_platform = [
        rule
        for (primitive, _), rule in rules.lower.on_platform.items()
        if primitive in rules.subprograms
    ]
    matches = [
        match
        for (primitive, _), found in rules.lower.matches.items()
        if primitive in rules.subprograms
        for match in found
    ]
    every = (*of_all_platforms, *of_one_platform, *matches)
    return {getattr(rule, "__module__", "") for rule in every}


def looks_into_parameters(tree: ast.AST) -> list[int]:
    """Return the lines of functions that go through parameters and ask which are programs."""
    lines: list[int] = []
    if not any(isinstance(n, ast.Attribute) and n.attr in ("values", "items") for n in walk(tree)):
        return lines
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef):
            text = ast.unparse(function)
            goes_through = "params.values()" in text or "params.items()" in text
            if goes_through and ("ClosedJaxpr" in text or "Jaxpr)" in text or "eqns" in text):
                lines.append(function.lineno)
    return lines


def reads_program_parameters(tree: ast.AST) -> list[int]:
    """Return the lines that read a parameter with a program by its name."""
    lines = []
    for node in walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            holder, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            holder, key = node.func.value, node.args[0]
            if node.func.attr != "get":
                continue
        else:
            continue
        is_params = "params" in (getattr(holder, "id", ""), getattr(holder, "attr", ""))
        if is_params and getattr(key, "value", None) in PROGRAM_PARAMETERS:
            lines.append(node.lineno)
    return lines


def lookups_in(name: str, tree: ast.AST, known_homes: set[str]) -> list[str]:
    """Return what a module does that only the homes of operations may do."""
    if name == "hlofront.core.programs.subprograms" or name in SHOWN_AS_THEY_ARE:
        return []
    lines = looks_into_parameters(tree)
    if name not in known_homes:
        lines += reads_program_parameters(tree)
    return [f"{name}:{line} looks for programs in parameters by itself" for line in lines]


def test_operations_that_carry_programs_say_which():
    import_all(lowering)
    missing = [
        name
        for name, primitive in sorted(ALL.items())
        if primitive.carries_programs and primitive not in rules.subprograms
        if any(primitive in table for table in (rules.infer, rules.staged))
        if rules.infer.get(primitive, rules.staged.get(primitive)).__module__.startswith("hlofront")
    ]
    assert not missing, f"no subprograms rule: {', '.join(missing)}"


def test_only_homes_look_for_programs_in_parameters():
    import_all(higher_order)
    import_all(lowering)
    import_all(pallas)
    known_homes = homes()
    found = [
        line
        for module in modules()
        if module.name.startswith("hlofront.")
        for line in lookups_in(module.name, module.tree, known_homes)
    ]
    assert not found, "\n".join(found)


PLANTED = """
def programs(equation):
    for value in equation.params.values():
        if isinstance(value, ClosedJaxpr):
            yield value

def body(params):
    return params["body_jaxpr"]
"""


def test_a_planted_search_is_found():
    found = lookups_in("hlofront.runtime.planted", ast.parse(PLANTED), set())
    assert found == [
        "hlofront.runtime.planted:2 looks for programs in parameters by itself",
        "hlofront.runtime.planted:8 looks for programs in parameters by itself",
    ]
