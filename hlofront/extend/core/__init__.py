"""jax.extend.core: programs, primitives and tracing, for packages that read or write programs."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="primitives",
    now={
        "hlofront.base.errors": "InconclusiveDimensionOperation JaxprTypeError",
        "hlofront.core.aval": "AbstractToken",
        "hlofront.core.axes": "mapped_aval unmapped_aval",
        "hlofront.core.effects": "Effect Effects no_effects",
        "hlofront.core.jaxpr": "ClosedJaxpr DebugInfo DropVar Equation=JaxprEqn Jaxpr Literal Var",
        "hlofront.core.primitive": "Primitive",
        "hlofront.core.programs.as_function": "jaxpr_as_fun",
        "hlofront.core.programs.check": "check_jaxpr",
        "hlofront.core.programs.extension": (
            "array_types concrete_or_error gensym jaxprs_in_params new_jaxpr_eqn "
            "primal_dtype_to_tangent_dtype valid_jaxtype"
        ),
        "hlofront.core.programs.subprograms": "subjaxprs",
        "hlofront.higher_order.calls.call_primitive": (
            "CallPrimitive call_impl create_call_primitive eval_jaxpr_transpose "
            "register_call_primitive_rules"
        ),
        "hlofront.primitives.calls.barriers": "Token",
        "hlofront.transforms.trace_state": (
            "TraceTag find_top_trace get_opaque_trace_state "
            "nonempty_axis_env=nonempty_axis_env_DO_NOT_USE set_current_trace take_current_trace "
            "unsafe_am_i_under_a_jit=unsafe_am_i_under_a_jit_DO_NOT_USE "
            "unsafe_am_i_under_a_vmap=unsafe_am_i_under_a_vmap_DO_NOT_USE "
            "unsafe_get_axis_names=unsafe_get_axis_names_DO_NOT_USE"
        ),
    },
)
