"""Each name that the extension modules offer is called by a program that jax runs too."""

import importlib
import types

import pytest

from tests.against_jax.describe import names_of

# module: the corpora whose programs call its names, as "ad.jvp" or "core.Trace".
MODULES = {
    "api_util": "linear_util",
    "core": "core",
    "debug": "core",
    "dtypes": "core",
    "extend.backend": "extend",
    "extend.core": "extend",
    "extend.linear_util": "linear_util",
    "extend.lowering": "extend",
    "extend.random": "extend",
    "extend.source_info_util": "extend",
    "ffi": "stages",
    "interpreters.ad": "interpreters",
    "interpreters.batching": "interpreters",
    "interpreters.mlir": "mlir modules",
    "interpreters.partial_eval": "interpreters",
    "interpreters.pxla": "interpreters",
    "interpreters.xla": "interpreters",
    "profiler": "stages",
    "ref": "core",
    "sharding": "stages",
    "stages": "stages",
    "tree": "trees",
    "tree_util": "trees",
}
# Names that jax 0.10.2 does not have in the module, but newer versions, or code for older ones.
NOT_IN_JAX = {
    "core": "AbstractToken ClosedJaxpr DebugInfo DropVar Effect Effects Equation Jaxpr "
    "JaxprTypeError Literal Primitive Var check_jaxpr current_trace jaxpr_as_fun no_effects "
    "pytype_aval_mappings subjaxprs typeof",
    "extend.core": "create_call_primitive eval_jaxpr_transpose register_call_primitive_rules",
    "ffi": "abstract_token",
    "interpreters.ad": "backward_pass jvp_jaxpr",
    "interpreters.batching": "batch_jaxpr_axes batch_subtrace zero_if_mapped",
    "interpreters.mlir": "IrTypes IrValues",
    "interpreters.partial_eval": "abstract_eval_fun close_jaxpr convert_constvars_jaxpr "
    "forwarded_inputs inline_jaxpr lower_jaxpr lower_jaxpr2 move_binders_to_back new_eqn_recipe "
    "partial_eval_jaxpr_nounits prune_closed_jaxpr_outputs",
    "profiler": "ProfileLine ProfileSession export_profile_data",
    "sharding": "UnreducedKind no_collectives",
}
# Names that no program calls, and why.
OTHERWISE = {
    "debug.breakpoint": "it asks the terminal: runtime/test_callbacks.py",
    "debug.visualize_array_sharding": "jax needs rich for it: many_devices/cases_partitioning.py",
    "debug.visualize_sharding": "jax needs rich for it: many_devices/cases_partitioning.py",
    "extend.backend.clear_backends": "no device is left after it: extension/test_backend.py",
    "extend.core.Value": "a type",
    "extend.lowering.LoweringRuleContext": "mlir.LoweringRuleContext",
    "interpreters.ad.jvp": "it takes a private class of jax's",
    "interpreters.ad.linearize": "it takes a private class of jax's",
    "interpreters.mlir.DEVICE_TO_DEVICE_TYPE": "a number, in a program of corpus_names_modules",
    "interpreters.mlir.MeshAxisName": "a type, in the program of mlir.Mesh",
    "interpreters.mlir.RECV_FROM_HOST_TYPE": "a number, beside DEVICE_TO_DEVICE_TYPE",
    "interpreters.mlir.SEND_TO_HOST_TYPE": "a number, beside DEVICE_TO_DEVICE_TYPE",
    "profiler.ProfileEvent": "profiler.ProfileData",
    "profiler.ProfilePlane": "profiler.ProfileData",
    "profiler.register_subprocess": "it needs a server in another process",
    "profiler.start_server": "it opens a port: runtime/test_profiler.py",
}


@pytest.mark.parametrize("module", MODULES)
def test_each_name_is_called_by_a_program(module):
    corpora = [f"corpus_names_{corpus}" for corpus in MODULES[module].split()]
    programs = {name.split(" ")[0] for corpus in corpora for name in names_of(corpus)}
    found = importlib.import_module(f"hlofront.{module}")
    offered = getattr(found, "__all__", None) or [n for n in dir(found) if not n.startswith("_")]
    last = module.split(".")[-1]
    missing = [
        name
        for name in offered
        if f"{last}.{name}" not in programs
        and f"{module}.{name}" not in OTHERWISE
        and name not in NOT_IN_JAX.get(module, "").split()
        and not isinstance(getattr(found, name), types.ModuleType)
    ]
    assert not missing, f"no program of {corpora} calls {missing}"
