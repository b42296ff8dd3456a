"""Every primitive has its rules and its lowering, and the lower layers need no compiler."""

import importlib
import json
import pkgutil
import subprocess
import sys

import hlofront  # noqa: F401  (plugs in the engine, and with it most primitives)
from hlofront import lowering
from hlofront.core import rules
from hlofront.core.primitive import ALL, Primitive
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import REPLACEMENTS
from hlofront.lowering.rules import MODULES
from hlofront.primitives.rules.high_primitive import HiPrimitive
from tests.conventions.source import ROOT


def import_all(package):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)


def primitives_of_modules():
    """The primitives that modules of hlofront hold: other tests may have defined more."""
    modules = [module for name, module in sys.modules.items() if name.startswith("hlofront.")]
    values = [value for module in modules for value in vars(module).values()]
    return {value for value in values if isinstance(value, Primitive)}


def test_every_primitive_is_complete():
    for folder in ("primitives", "higher_order", "pallas"):
        import_all(importlib.import_module(f"hlofront.{folder}"))
    import_all(lowering)
    missing = []
    primitives = primitives_of_modules()
    for name, primitive in sorted(ALL.items()):
        if primitive not in primitives:
            continue
        if primitive not in rules.infer and primitive not in rules.staged:
            missing.append(f"{name}: no infer rule")
        # What is not compiled when eager is run, and becomes nothing of its own inside a program.
        lowered = primitive in rules.lower or primitive in rules.lower.on_some
        if not lowered and primitive not in rules.run and primitive not in rules.discharge:
            missing.append(f"{name}: no lower rule")
    assert len(primitives) > 200, "few primitives were found"
    assert not missing, "\n".join(missing)


def test_replacements_have_distinct_rows_that_say_what_they_are():
    import_all(lowering)
    assert len(REPLACEMENTS) > 50
    undescribed = [row.primitive.name for row in REPLACEMENTS if not row.description]
    assert not undescribed
    keys = [(row.primitive, row.platform, row.form) for row in REPLACEMENTS]
    assert len(set(keys)) == len(keys)
    assert set(MIN_SIZES) == {row.sizes for row in REPLACEMENTS if row.platform == "cpu"}


# The functions that register rules, recorded by the module whose import calls them.
REGISTERED = """
import collections, json, sys
import hlofront
from hlofront.core.rules import LoweringTable, lower

registered = collections.defaultdict(set)

def record(primitives):
    frame = sys._getframe(2)
    while frame.f_code.co_name != "<module>":
        frame = frame.f_back
    module = frame.f_globals["__name__"].removeprefix("hlofront.lowering.")
    registered[module].update(p.name for p in primitives)

def recording(register):
    def recorded(*arguments, **options):
        primitives = [each for each in arguments if isinstance(each, hlofront.core.Primitive)]
        record(primitives)
        return register(*arguments, **options)
    return recorded

LoweringTable.__call__ = recording(LoweringTable.__call__)
LoweringTable.__setitem__ = recording(LoweringTable.__setitem__)
LoweringTable.match = recording(LoweringTable.match)
from hlofront.lowering.cpu import elementwise as elementwise_cpu
elementwise_cpu.replaced_by_formula = recording(elementwise_cpu.replaced_by_formula)
from hlofront.lowering import rules
at_once = set(registered)
rules.import_all()
print(json.dumps([sorted(at_once), {name: sorted(each) for name, each in registered.items()}]))
"""


def test_the_list_of_lowering_rules_has_each_primitive_of_each_module():
    result = subprocess.run(
        [sys.executable, "-c", REGISTERED], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    at_once, registered = json.loads(result.stdout)
    listed = {module: sorted(names.split()) for module, names in MODULES.items()}
    # The builder imports the rules of one operation, which are all found without the list.
    assert "core.one_to_one" in at_once
    del registered["core.one_to_one"]
    assert registered == listed, "correct the row in hlofront/lowering/rules.py"


# What has no sharding rule, and why: its operands cannot be split along explicit axes.
_NEVER_SPLIT = {
    "no operands": (
        "axis_index create_token dim_as_value empty empty2 empty_ref iota platform_index"
    ),
    "operands without axes": "after_all rng_uniform",
    "of mutable references, which are not split": "addupdate free_ref freeze get new_ref swap",
    "of sparse matrices, which are not split": (
        "bcoo_dot_general bcoo_dot_general_sampled bcoo_extract bcoo_fromdense "
        "bcoo_sort_indices bcoo_spdot_general bcoo_sum_duplicates bcoo_todense bcoo_transpose "
        "bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense coo_fromdense coo_matmat "
        "coo_matvec coo_todense csr_fromdense csr_matmat csr_matvec csr_todense spsolve todense"
    ),
    "foreign functions say nothing of splits": "buffer_callback ffi_call",
    "groups of rows have sizes that only values tell": "ragged_all_to_all",
    "what another device receives has a type of its own": "precv psend",
}


_FOLDERS = ("hlofront.primitives.", "hlofront.higher_order.")


def test_every_primitive_says_how_its_results_are_split():
    for folder in ("primitives", "higher_order", "pallas"):
        import_all(importlib.import_module(f"hlofront.{folder}"))
    without = {
        primitive.name
        for primitive in rules.infer
        if primitive not in rules.sharding
        and primitive not in rules.infers_whole_types
        and not primitive.carries_programs
        and rules.infer[primitive].__module__.startswith(_FOLDERS)
        # HiPrimitives of users, whose rules are methods, say it by their types.
        and not isinstance(getattr(rules.infer[primitive], "__self__", None), HiPrimitive)
    }
    excused = {name for names in _NEVER_SPLIT.values() for name in names.split()}
    assert not without - excused, "add @sharding(...) next to the infer rules"
    assert not excused - without, "they have a sharding rule, or are gone"


# Without MLIR and without a client: the package is a shell, so that its `__init__` does not run.
STAGE = """
import pathlib, sys, types
sys.modules["jaxlib.mlir"] = None
package = types.ModuleType("hlofront")
package.__path__ = [str(pathlib.Path("hlofront").resolve())]
sys.modules["hlofront"] = package
import numpy as np
from hlofront.base.errors import NoEngineError
from hlofront.core.aval import ShapedArray
from hlofront.primitives.elementwise.elementwise import mul, sin
from hlofront.transforms.stage import stage
print(stage(lambda x: [mul(sin(x), x)], [ShapedArray((3,), np.dtype("float32"))]))
try:
    sin(np.ones(3, "float32"))
except NoEngineError as error:
    print("NoEngineError:", error)
above = tuple(f"hlofront.{layer}" for layer in ("lowering", "pjrt", "runtime", "numpy"))
loaded = [name for name in sys.modules if name.startswith(above)]
assert not loaded, loaded
assert "hlofront.bridge.mlir" not in sys.modules and "hlofront.bridge.client" not in sys.modules
"""


def test_lower_floors_stand_alone():
    result = subprocess.run(
        [sys.executable, "-c", STAGE], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert "b:f32[3] = sin a" in result.stdout
    assert "NoEngineError: cannot run sin" in result.stdout
