"""Imports point down, only the bridge knows jaxlib, nobody knows jax; no circles."""

import ast
import pathlib
import re

from tests.conventions.source import (
    ROOT,
    RUNTIME,
    layer_of,
    module_names,
    modules,
    source_trees,
    table_of_exports,
    walk,
)

LISTED = pathlib.Path(__file__).with_name("late_imports.txt")


def report(found, rule):
    assert not found, rule + ":\n" + "\n".join(found)


def shown_layer(name):
    layer, place = layer_of(name)
    return f"{layer}.{place}" if place else str(layer)


def test_imports_point_down():
    report(
        [
            f"{module.shown}:{used.line} (layer {shown_layer(module.name)}) imports {used.target} "
            f"(layer {shown_layer(used.target)})"
            for module in modules()
            for used in module.imports
            if used.top == "hlofront" and layer_of(used.target) > layer_of(module.name)
        ],
        "a module may import its own layer and those below, in runtime/ its own folder and those "
        f"before it in the order {', '.join(RUNTIME)}",
    )


def test_the_architecture_has_the_order_of_runtime_and_the_dependency_inversions():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert ", ".join(RUNTIME) in text
    _, section = text.split("## Dependency inversions\n")
    listed = set(re.findall(r"`(plug_in_\w+)`", section.partition("\n## ")[0]))
    there = {
        node.name
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("plug_in_")
    }
    assert listed == there


def test_functions_of_the_library_use_loops_that_vary_as_needed():
    """Inside shard_map `lax.scan` refuses what its users can convert, and their callers cannot."""
    loops = {"scan", "while_loop", "cond"}
    report(
        [
            f"{module.shown}:{used.line} imports {used.target}"
            for module in modules()
            for used in module.imports
            if module.folder in ("numpy", "random", "nn", "scipy", "image")
            and used.target in {f"hlofront.higher_order.control_flow.{name}" for name in loops}
        ],
        "import loops and branches from hlofront/higher_order/control_flow/library_loops.py",
    )


def test_tools_that_read_text_stand_alone():
    """hlotools also runs in processes that use jax, where hlofront and jaxlib stay out."""
    report(
        [
            f"{module.shown}:{used.line} imports {used.target}"
            for module in modules()
            for used in module.imports
            if module.is_tool and used.top in ("hlofront", "jaxlib", "numpy", "ml_dtypes")
        ],
        "hlotools imports the standard library and itself",
    )


def test_only_the_bridge_imports_jaxlib():
    report(
        [
            f"{module.shown}:{used.line} imports {used.target}"
            for module in modules()
            for used in module.imports
            if used.top == "jaxlib" and module.folder != "bridge"
        ],
        "jaxlib is imported in hlofront/bridge and nowhere else",
    )


def test_nobody_imports_jax():
    found = [
        f"{module.shown}:{used.line} imports {used.target}"
        for module in modules()
        for used in module.imports
        if used.top == "jax"
    ]
    # These run in processes of their own; so does benchmarks' other side.
    apart = {
        "tests/against_jax/worker.py",
        "tests/against_jax/promotion_table.py",
        "tests/inspect/jax_models.py",
    }
    # Programs for jax, which hlofront runs under that name.
    for_jax = ("tests/libraries/programs/", "examples/libraries/")
    for shown, tree in source_trees().items():
        if shown.startswith(("tests/", "examples/")):
            if shown in apart or shown.startswith(for_jax):
                continue
            for node in walk(tree):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                else:
                    continue
                found += [
                    f"{shown}:{node.lineno} imports {name}"
                    for name in names
                    if name.partition(".")[0] == "jax"
                ]
    report(found, "jax and hlofront cannot live in one process")


def test_no_import_cycles_even_through_late_imports():
    graph = {
        module.name: sorted({used.target for used in module.imports} - {module.name})
        for module in modules()
    }
    cycles, finished, path = [], set(), []

    def visit(name):
        if name in path:
            cycles.append(" -> ".join([*path[path.index(name) :], name]))
        elif name in graph and name not in finished:
            path.append(name)
            for target in graph[name]:
                visit(target)
            path.pop()
            finished.add(name)

    for name in graph:
        visit(name)
    report(cycles, "import cycles")


def test_submodules_are_not_imported_by_the_name_of_a_function():
    """`from hlofront.numpy import shape` gives the function or the file, whichever came last."""
    packages = {module.name: module for module in modules() if module.is_package}
    offered = {
        name: {
            offer
            for node in ast.walk(package.tree)
            if isinstance(node, ast.Call)
            for names in table_of_exports(node, "now").values()
            for offer in names
        }
        for name, package in packages.items()
    }
    report(
        [
            f"{module.shown}:{node.lineno} imports {alias.name} from {node.module}"
            for module in modules()
            for node in walk(module.tree)
            if isinstance(node, ast.ImportFrom)
            and node.module in packages
            and module.name != node.module
            for alias in node.names
            if alias.name in offered[node.module]
            and f"{node.module}.{alias.name}" in module_names()
        ],
        "import the names that you need from such a file, by its full name",
    )


def test_late_imports_are_the_listed_ones():
    lines = (line.partition("#")[0].strip() for line in LISTED.read_text().splitlines())
    listed = {tuple(part.strip() for part in line.split("->")) for line in lines if line}
    used = {
        (module.name, late.target): f"{module.shown}:{late.line} imports {late.target}"
        for module in modules()
        for late in module.imports
        if late.late
    }
    report(
        [where for pair, where in used.items() if pair not in listed],
        f"imports inside functions that {LISTED.relative_to(ROOT)} does not list",
    )
    report(
        [f"{module} -> {target}" for module, target in sorted(listed - set(used))],
        f"entries of {LISTED.relative_to(ROOT)} that no module has any more",
    )
