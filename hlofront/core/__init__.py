"""The public `hlofront.core`, the language of programs: avals, jaxprs, primitives and rules."""

from hlofront.base.lazy import lazy as _lazy

# Each name, with the module that defines it and is loaded on first use of the name.
__getattr__, __dir__ = _lazy(
    __name__,
    (),
    {
        "AbstractToken": "hlofront.core.aval",
        "AbstractValue": "hlofront.core.aval",
        "Atom": "hlofront.core.jaxpr",
        "ClosedJaxpr": "hlofront.core.jaxpr",
        "DebugInfo": "hlofront.core.jaxpr",
        "DropVar": "hlofront.core.jaxpr",
        "Effect": "hlofront.core.effects",
        "Effects": "hlofront.core.effects",
        "Equation": "hlofront.core.jaxpr",
        "Jaxpr": "hlofront.core.jaxpr",
        "JaxprTypeError": "hlofront.core.programs.check",
        "Literal": "hlofront.core.jaxpr",
        "ParamDict": "hlofront.core.jaxpr",
        "Primitive": "hlofront.core.primitive",
        "ShapedArray": "hlofront.core.aval",
        "Trace": "hlofront.core.trace",
        "Tracer": "hlofront.core.trace",
        "Value": "hlofront.core.jaxpr",
        "Var": "hlofront.core.jaxpr",
        "check_jaxpr": "hlofront.core.programs.check",
        "current_trace": "hlofront.core.trace",
        "ensure_compile_time_eval": "hlofront.core.compile_time",
        "eval_context": "hlofront.core.compile_time",
        "eval_jaxpr": "hlofront.core.programs.evaluate",
        "jaxpr_as_fun": "hlofront.core.programs.as_function",
        "max_dim": "hlofront.core.sizes.symbolic",
        "min_dim": "hlofront.core.sizes.symbolic",
        "pytype_aval_mappings": "hlofront.core.aval",
        "no_effects": "hlofront.core.effects",
        "subjaxprs": "hlofront.core.programs.subprograms",
        "typeof": "hlofront.core.aval",
    },
)
