"""The names that `dir` and star imports of public modules show are JAX's or listed as our own."""

import json
import math
import sys
import types

import pytest

from hlofront.base.lazy import dir_of, exports
from hlofront.jax_names import public
from tests.conventions.test_public_names import reference
from tests.support.api_names import find

# Our own names that `import jax` also has under `as_jax`; public.ABSENT holds the others.
OWN = {
    "jax.ad_checkpoint": {"checkpoint", "remat", "saved_residuals"},
    "jax.core": {"pytype_aval_mappings", "typeof"},
    "jax.errors": {
        "AbsentDeviceError",
        "DuplicateSpecError",
        "HlofrontError",
        "IndivisibleError",
        "NoEngineError",
        "NoRuleError",
        "PaddingError",
        "PluginError",
        "RecompilationError",
        "ShardingTypeError",
        "TargetError",
        "TracerLeakError",
        "TypePromotionError",
        "ForbiddenCollectiveError",
        "VerificationError",
    },
    # Names of jax 0.12 that are deprecated, and that its `dir` leaves out.
    "jax.experimental.pallas": {"DeviceIdType", "core_map", "reciprocal"},
    "jax.experimental.pallas.tpu": {"create_tensorcore_mesh"},
    # Names of jax 0.10.2 that 0.12 removed.
    "jax.experimental.compute_on": {"compute_on2"},
    "jax.experimental.hijax": {
        "AvalMutableQDD",
        "AvalQDD",
        "HiPrimitive",
        "MutableHiType",
        "VJPHiPrimitive",
    },
    "jax.experimental.scheduling_groups": {"xla_metadata_call_p"},
    "jax.extend.backend": {"ifrt_proxy"},
    "jax.interpreters.partial_eval": {"forwarded_inputs", "inline_jaxpr"},
    "jax.lax": {"custom_linear_solve_p"},
}


def shown_in_vain(module_name, module):
    """Names that a module shows though neither JAX nor the list of our own names has them."""
    starred = {}
    exec(f"from {module.__name__} import *", starred)
    # pytest adds names like "@pytest_ar" to the modules whose assertions it rewrites.
    names = {name for name in {*dir(module), *starred} if name.isidentifier()}
    shown = {name for name in names if not name.startswith("_")}
    wanted = {
        *reference()[module_name],
        *public.ABSENT.get(module_name, ()),
        *public.MOVED.get(module_name, ()),
        *OWN.get(module_name, ()),
    }
    submodules = {name for name in shown if f"{module_name}.{name}" in public.MODULES}
    return sorted(shown - wanted - submodules)


def test_public_modules_show_no_internal_names():
    modules = {name: find(name) for name in reference()}
    shown = [
        f"{module.__name__}: {', '.join(names)}"
        for name, module in modules.items()
        if module and (names := shown_in_vain(name, module))
    ]
    assert not shown, (
        f"{shown}\nA module that imports what it does not offer has `__all__` and "
        "`__dir__ = dir_of(__name__)`; names of our own are in jax_names/public.py"
    )


@pytest.fixture
def package(monkeypatch):
    """A package with a name of its own, a private one, and an imported submodule."""
    made = types.ModuleType("made_package")
    vars(made).update(own=1, _private=2, inner=types.ModuleType("made_package.inner"))
    vars(made).update(json=json)
    monkeypatch.setitem(sys.modules, "made_package", made)
    return made


def public_in(module):
    return [name for name in dir(module) if not name.startswith("__")]


def test_an_imported_submodule_is_shown_only_where_it_is_listed(package):
    package.__getattr__, package.__dir__ = exports("made_package")
    assert public_in(package) == ["_private", "json", "own"]
    assert package.__all__ == ["json", "own"]
    package.__getattr__, package.__dir__ = exports(
        "made_package", submodules="inner", now={"math": "pi=now"}, later={"json": "loads=later"}
    )
    assert public_in(package) == ["_private", "inner", "json", "later", "now", "own"]
    assert (package.now, package.__getattr__("later")) == (math.pi, json.loads)


def test_a_list_of_names_hides_the_imported_ones(package):
    package.__all__ = ["own"]
    package.__dir__ = dir_of("made_package")
    assert public_in(package) == ["_private", "own"]
