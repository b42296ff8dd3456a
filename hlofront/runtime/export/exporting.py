"""export: a jitted function lowered to a portable StableHLO module."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import float0
from hlofront.base.tree import tree_structure
from hlofront.base.typing import ArrayLike
from hlofront.bridge import mlir
from hlofront.bridge.client import NamedSharding, Sharding
from hlofront.core.aval import ShapedArray, Split
from hlofront.core.effects import ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.lowering_request import LoweringRequest
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.subprograms import all_equations
from hlofront.core.references import is_reference
from hlofront.higher_order.calls.exported_call import call_exported_p, unknown_sizes_of
from hlofront.lowering.extension.rules import builder_rule
from hlofront.lowering.rules import lower_program
from hlofront.pjrt import clients
from hlofront.pjrt.compile import mlir_lock
from hlofront.primitives.arrays.creation import full
from hlofront.runtime.compilation.captured_constants import warn_of_constants
from hlofront.runtime.compilation.pipeline import cpu_settings_for
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.runtime.dispatch.jit_shardings import JitShardings
from hlofront.runtime.dispatch.references import without_references
from hlofront.runtime.dispatch.stages import Traced, Wrapped, platforms_named
from hlofront.runtime.export.checks import DisabledSafetyCheck, check_custom_calls
from hlofront.runtime.export.exported import Exported
from hlofront.runtime.export.fields import maximum_supported_calling_convention_version
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.typed import without_kernel_memory
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlofront.transforms.grad import vjp

# Primitives with lowering rules of the form that `interpreters.mlir.register_lowering` takes.
Overrides = Sequence[tuple[Primitive, Callable[..., Any]]]


def default_export_platform() -> str:
    """Return the platform that functions are exported for by default: "cpu", "cuda", "tpu" ..."""
    return clients.lowering_platform(clients.local_devices()[0])


@boundary
def export(
    fun_jit: Wrapped,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Overrides | None = None,
) -> Callable[..., Exported]:
    """Return a function that exports a jitted function for arguments of given types.

    Args:
      fun_jit: a function that `jax.jit` returned.
      platforms: the platforms to lower for, of "cpu", "cuda", "rocm" and "tpu"; by default that of
        the default device. They need not be here.
      disabled_checks: checks to leave out.

    Returns:
      A function of arrays, or ShapeDtypeStructs in their place, that returns an `Exported`. It
      raises NotImplementedError if the function calls Python functions at run time, or takes
      mutable references, and ValueError if it has custom calls without compatibility guarantees.

    Raises:
      ValueError: if `fun_jit` is not a jitted function.

    Example:
      >>> exported = export(jax.jit(jnp.sin), platforms=["cpu", "tpu"])(jnp.zeros(3))
      >>> exported.call(jnp.zeros(3))
      Array([0., 0., 0.], dtype=float32)
    """
    if not isinstance(fun_jit, Wrapped):
        raise ValueError(
            f"Function to be exported must be the result of `jit` but is: {fun_jit}. Pass "
            "jax.jit(f)."
        )

    def export_for(*args: object, **kwargs: object) -> Exported:
        names = platforms_named(platforms) or (default_export_platform(),)
        traced = fun_jit.trace(*args, **kwargs)
        return export_traced(traced, names, disabled_checks, _override_lowering_rules or ())

    return boundary(export_for)


def export_traced(
    traced: Traced,
    platforms: tuple[str, ...],
    disabled: Sequence[DisabledSafetyCheck] = (),
    overrides: Overrides = (),
    out_avals: Sequence[ShapedArray] | None = None,
) -> Exported:
    """Lower a traced function, and return it exported.

    Args:
      traced: the traced function.
      platforms: the platforms to lower for.
      disabled: the checks to leave out.
      overrides: lowering rules that replace hlofront's.
      out_avals: the types of the results, where these stand in for values of dtype float0.
    """
    name = traced.fun_name
    _check_no_references(traced)
    without_refs = without_references(traced._traced)
    program, where = without_refs.program, traced._where
    warn_of_constants(program)
    info = program.debug_info
    unknown_sizes = unknown_sizes_of(program.in_avals, without_refs.in_tree)
    assignment = where if type(where) is DeviceAssignment else None
    platform = platforms[0] if len(platforms) == 1 else platforms
    cpu_settings = cpu_settings_for(platform)
    if unknown_sizes is not None:
        cpu_settings = cpu_settings._replace(fences=False)
    request = LoweringRequest(
        name,
        platform,
        without_refs.donated,
        traced._jitted.keep_unused,
        cpu_settings,
        assignment,
        traced._layouts,
    )
    with mlir_lock:
        module = lower_program(
            program,
            request,
            arg_names=info.arg_names if info else None,
            result_paths=info.result_paths if info else None,
            embed_constants=True,
            overrides={primitive: builder_rule(rule) for primitive, rule in overrides},
            unknown_sizes=unknown_sizes,
        )
        if module.callbacks or module.keepalives or module.partitioned_calls:
            raise NotImplementedError(  # JAX raises this class.
                f"serialization of host_callbacks is not yet implemented: {name} calls functions "
                "of this process while it runs, which no other has. Leave out debug.print, "
                "pure_callback, io_callback, custom_partitioning and similar functions."
            )
        several = len(platforms) > 1 or unknown_sizes is not None or _calls_several(program.jaxpr)
        attribute = mlir.ir.BoolAttr.get(several, mlir.context)
        module.ir_module.operation.attributes["jax.uses_shape_polymorphism"] = attribute
        artifact = mlir.lasting_artifact(module.ir_module)
        # Looking at each operation takes longer than this, and few programs have custom calls.
        if b"custom_call" in artifact:
            check_custom_calls(module.ir_module, disabled)
    in_count, out_count = len(program.in_avals), len(program.out_avals)
    inputs = assignment.inputs if assignment else (None,) * in_count
    outputs = assignment.outputs if assignment and assignment.outputs else (None,) * out_count
    results: Any = program.out_avals if out_avals is None else out_avals
    results = map(without_kernel_memory, results)
    return Exported(
        fun_name=name,
        in_tree=without_refs.in_tree,
        in_avals=tuple(map(_typed, program.in_avals, inputs)),
        out_tree=without_refs.out_tree,
        out_avals=tuple(map(_typed, results, outputs)),
        _has_named_shardings=True,
        _in_named_shardings=tuple(map(_without_devices, inputs)),
        _out_named_shardings=tuple(map(_without_devices, outputs)),
        in_shardings_hlo=(None,) * in_count,
        out_shardings_hlo=(None,) * out_count,
        nr_devices=assignment.device_count if assignment else 1,
        platforms=platforms,
        ordered_effects=module.ordered,
        unordered_effects=tuple(
            sorted(program.effects - set(ordered_effects(program.effects)), key=str)
        ),
        disabled_safety_checks=tuple(disabled),
        mlir_module_serialized=artifact,
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=module.kept_inputs,
        uses_global_constants=several,
        _get_vjp=lambda exported: _exported_vjp(exported, program, overrides, inputs, outputs),
    )


def _check_no_references(traced: Traced) -> None:
    program = traced.jaxpr
    if any(map(is_reference, (*program.in_avals, *(var.aval for var in program.jaxpr.constvars)))):
        raise NotImplementedError(  # JAX raises this class.
            f"{traced.fun_name} takes mutable references, or closes over some, which are of this "
            "process: export a function that takes and returns their arrays"
        )


def _calls_several(jaxpr: Jaxpr) -> bool:
    """Return whether a program calls, at any depth, an exported one with global constants."""
    return any(
        equation.primitive is call_exported_p and equation.params["exported"].uses_global_constants
        for equation in all_equations(jaxpr)
    )


def _typed(aval: object, sharding: Sharding | None) -> Any:
    """Return an aval that says how the explicit axes of its sharding's mesh split it."""
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.explicit_axes:
        return aval
    return aval.update(sharding=Split(sharding.mesh.abstract_mesh, sharding.spec))


def _without_devices(sharding: Sharding | None) -> NamedSharding | None:
    """Return a sharding over a mesh without devices; None for others, whose devices XLA assigns."""
    if not isinstance(sharding, NamedSharding):
        return None
    return sharding.update(mesh=sharding.mesh.abstract_mesh)


# ---- the derivative ------------------------------------------------------------------------------


def _exported_vjp(
    exported: Exported,
    program: ClosedJaxpr,
    overrides: Overrides,
    inputs: Sequence[Sharding | None],
    outputs: Sequence[Sharding | None],
) -> Exported:
    """Export the function (flat arguments, cotangents of results) -> cotangents of arguments.

    Args:
      exported: the program.
      program: its jaxpr.
      overrides: the lowering rules that it was lowered with.
      inputs, outputs: the shardings of its arguments and results on the devices of this process.
    """
    count = len(exported.in_avals)
    avals = [*exported.in_avals, *(aval.to_tangent_aval() for aval in exported.out_avals)]
    cotangents = [aval.to_tangent_aval() for aval in exported.in_avals]

    def fun_vjp_jax(*args_and_out_cts_flat_jax: ArrayLike) -> tuple[ArrayLike, ...]:
        primals = args_and_out_cts_flat_jax[:count]
        _, pullback = vjp(lambda *xs: jaxpr_as_fun(program, *xs), *primals)
        results = pullback(list(args_and_out_cts_flat_jax[count:]))
        # A module has booleans instead of float0.
        return tuple(
            full(aval.shape, False, np.bool_) if aval.dtype == float0 else x
            for x, aval in zip(results, cotangents, strict=True)
        )

    shardings = None
    if exported.nr_devices > 1:
        shardings = JitShardings.of_user((*inputs, *outputs), tuple(inputs))
    # Not by `jit`, which would count the derivatives of several exports as compiling one again.
    jitted = Jitted(
        fun_vjp_jax, ArgumentPlan(fun_vjp_jax), traced_for="export", jit_shardings=shardings
    )
    specs = [ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals]
    traced = jitted.trace(*specs)
    checks = tuple(exported.disabled_safety_checks)
    derivative = export_traced(traced, exported.platforms, checks, overrides, cotangents)
    assert derivative.out_tree == tree_structure((0,) * count)
    return derivative
