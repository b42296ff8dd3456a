"""The public `hlofront.core`, the language of programs: avals, jaxprs, primitives and rules."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    later={
        "hlofront.core.aval": "AbstractToken AbstractValue ShapedArray pytype_aval_mappings typeof",
        "hlofront.core.compile_time": "ensure_compile_time_eval eval_context",
        "hlofront.core.effects": "Effect Effects no_effects",
        "hlofront.core.jaxpr": (
            "Atom ClosedJaxpr DebugInfo DropVar Equation Jaxpr Literal ParamDict Value Var"
        ),
        "hlofront.core.primitive": "Primitive",
        "hlofront.core.programs.as_function": "jaxpr_as_fun",
        "hlofront.core.programs.check": "JaxprTypeError check_jaxpr",
        "hlofront.core.programs.evaluate": "eval_jaxpr",
        "hlofront.core.programs.subprograms": "subjaxprs",
        "hlofront.core.sizes.symbolic": "max_dim min_dim",
        "hlofront.core.trace": "Trace Tracer current_trace",
    },
)
