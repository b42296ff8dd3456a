"""Only the bridge spells the private members of jaxlib's classes: others use its accessors."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.conventions.source import modules
from tests.conventions.test_imports import report

# In a process without hlofront, which gives jaxlib's classes members of its own.
LIST_PRIVATE_MEMBERS = """
from jaxlib import _jax, xla_client
classes = [x for module in (_jax, xla_client) for x in vars(module).values() if isinstance(x, type)]
names = {name for x in classes if x.__module__.startswith("jaxlib") for name in dir(x)}
print(*sorted(name for name in names if name.startswith("_") and not name.startswith("__")))
"""


@functools.cache
def private_members_of_jaxlib() -> frozenset[str]:
    listed = subprocess.run(
        [sys.executable, "-c", LIST_PRIVATE_MEMBERS], capture_output=True, text=True, check=True
    )
    return frozenset(listed.stdout.split())


def defined_by(class_: ast.ClassDef) -> set[str]:
    """The methods and class attributes of a class, its slots, and what methods set on `self`."""
    names = set()
    for node in ast.walk(class_):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def private_uses(
    tree: ast.AST, private: frozenset[str], own: frozenset[str] = frozenset()
) -> Iterator[tuple[int, str]]:
    """Each line that spells one of these members, but for a class's use of what it defines."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from private_uses(node, private, own | defined_by(node))
            continue
        if isinstance(node, ast.Attribute) and node.attr in private:
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not (of_self and node.attr in own):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Constant) and node.value in private - own:
            yield node.lineno, node.value
        yield from private_uses(node, private, own)


def test_only_the_bridge_spells_private_members_of_jaxlib():
    private = private_members_of_jaxlib()
    spelled = re.compile(rf"\b({'|'.join(private)})\b")
    assert {"_sharding", "_committed", "_npy_value", "_internal_device_list"} <= private
    report(
        [
            f"{module.shown}:{line} spells {name}"
            for module in modules()
            if module.folder != "bridge" and spelled.search(module.text)
            for line, name in private_uses(module.tree, private)
        ],
        "use the accessors in hlofront/bridge/members.py for jaxlib's private members",
    )


def test_private_members_are_noticed_where_no_class_of_ours_defines_them():
    planted = """
def device(self):
    return self._device
def sharding(array):
    return getattr(array, "_sharding")
class Ours:
    __slots__ = ("_device",)
    def __eq__(self, other):
        return self._device == other.mesh._device
"""
    private = frozenset({"_device", "_sharding"})
    assert sorted(private_uses(ast.parse(planted), private)) == [
        (3, "_device"),
        (5, "_sharding"),
        (9, "_device"),
    ]
