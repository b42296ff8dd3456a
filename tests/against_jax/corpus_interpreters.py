"""Interpreters of other packages: subclasses of Trace and Tracer, under and above our own."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    core = door("extend.core")
    call_p = door("extend.core.primitives").call_p
    doubling = doubling_interpreter(jax, core)

    @jax.custom_jvp
    def forward(x):
        return {"result": lax.sin(x)}

    forward.defjvp(lambda p, t: (forward(*p), {"result": 5 * t[0]}))

    @jax.custom_vjp
    def backward(x, y):
        return {"result": lax.sin(x) * y}

    backward.defvjp(
        lambda x, y: (backward(x, y), (x, y)), lambda r, ct: (ct["result"] * 7 * r[1], None)
    )

    partial_eval = door("interpreters.partial_eval")

    def split(rule, fun, *pvals):
        """Trace a function of split_p, with this rule for it, and print all that comes out."""
        split_p = core.Primitive("split")
        split_p.multiple_results = True
        split_p.def_impl(lambda x, y, *, n: [x * n, x + y])
        split_p.def_abstract_eval(lambda x, y, *, n: [x, x])
        partial_eval.custom_partial_eval_rules[split_p] = rule(split_p)
        info = door("api_util").debug_info("split", lax.sin, (1.0,), {})
        wrapped = door("extend.linear_util").wrap_init(
            lambda *args: fun(split_p, *args), debug_info=info
        )
        known, unknown = partial_eval.PartialVal.known, partial_eval.PartialVal.unknown
        aval = jax.typeof(jnp.float32(0))
        values = [unknown(aval) if x is None else known(jnp.float32(x)) for x in pvals]
        try:
            jaxpr, results, consts = partial_eval.trace_to_jaxpr_nounits(wrapped, values)
        finally:
            del partial_eval.custom_partial_eval_rules[split_p]
        shown = [float(p.get_known()) if p.is_known() else str(p.get_aval()) for p in results]
        return f"{jaxpr} {shown} {[float(x) for x in consts]}"

    def first_result_known(split_p):
        def rule(trace, x, y, *, n):
            if not x.is_known() or y.is_known():
                return trace.default_process_primitive(split_p, [x, y], {"n": n})
            source = door("extend.source_info_util").current()
            aval = x.aval
            tracers = [trace.instantiate_const(x), trace.instantiate_const(y)]
            unknown = partial_eval.PartialVal.unknown(aval)
            results = [partial_eval.JaxprTracer(trace, unknown, None) for _ in range(2)]
            # jax 0.10.2 has this function under a private name, 0.12 under the public one.
            public = hasattr(partial_eval, "new_eqn_recipe")
            module = partial_eval if public else door("_src.interpreters.partial_eval")
            equation = module.new_eqn_recipe(
                trace, tracers, results, split_p, {"n": n}, set(), source
            )
            for result in results:
                result.recipe = equation
            assert results[0].parents == tuple(tracers) or results[0].parents == tracers
            return [trace.new_const(x.pval.get_known() * n), results[1]]

        return rule

    def both(split_p, x, y):
        return [*split_p.bind(lax.sin(x), y, n=3), lax.cos(y)]

    for known in ((2.0, None), (None, 2.0), (2.0, 3.0), (None, None)):
        name = "_".join("unknown" if x is None else "known" for x in known)
        corpus.add(
            f"custom_partial_eval_{name}",
            lambda known=known: split(first_result_known, both, *known),
            modes=("repr",),
        )

    def called(x):
        info = door("api_util").debug_info("called", lax.sin, (1.0,), {})
        sine = door("extend.linear_util").wrap_init(lambda x: [lax.sin(x)], debug_info=info)
        return call_p.bind(x, subfuns=(sine,))[0]

    def inner_gradient(x):
        return jax.grad(lambda y: forward(y)["result"] * x)(2 * x)

    functions = {
        "sine": lax.sin,
        "constants": lambda x: lax.sin(1.0) + x * np.float32(2) + jnp.arange(2.0).sum(),
        "jit": jax.jit(lambda x: lax.sin(x) * x),
        "closure": lambda x: jax.jit(lambda y: x * y)(x * x),
        "cond": lambda x: lax.cond(x > 0, lax.sin, jnp.cos, x),
        "scan": lambda x: lax.scan(lambda c, _: (c * x, c), x, None, length=3)[0],
        "remat": jax.checkpoint(lax.sin),
        "custom_jvp": lambda x: forward(x)["result"],
        "custom_vjp": lambda x: backward(x, x)["result"],
        "custom_jvp_in_jit": jax.jit(lambda x: forward(x)["result"]),
        "call": called,
        "evaluated_program": lambda x: jax.core.eval_jaxpr(
            jax.make_jaxpr(forward)(1.0).jaxpr, [], x
        )[0],
        "inner_gradient": inner_gradient,
        "inner_vmap": lambda x: jax.vmap(lambda y: forward(y)["result"] * x)(
            jnp.stack([x, x])
        ).sum(),
        "twice": doubling(lambda x: forward(x)["result"]),
    }
    for name, fun in functions.items():
        interpreted = doubling(fun)
        corpus.add(name, interpreted, np.float32(0.5))
        corpus.add(f"gradient_of_{name}", jax.grad(interpreted), np.float32(0.5))
        corpus.add(
            f"batched_gradient_of_{name}", jax.vmap(jax.grad(interpreted)), np.float32([0.5, 1])
        )

    def bare(fun):
        """Run a function under a trace without the methods for calls."""
        return doubling_interpreter(jax, core, bare=True)(fun)

    for name in ("custom_jvp", "custom_vjp", "call"):
        corpus.add(f"no_method_for_{name}", bare(functions[name]), np.float32(0.5))
    return corpus


def doubling_interpreter(jax, core, bare=False):
    """Return a transformation that doubles the results of sine.

    Args:
      bare: whether its trace lacks the methods for calls.
    """

    class DoublingTracer(jax.core.Tracer):
        def __init__(self, trace, value):
            super().__init__(trace, jax.typeof(value))
            self.value = value

    class DoublingTrace(jax.core.Trace):
        def __init__(self, parent):
            super().__init__()
            self.parent = parent

        def lowered(self, x):
            mine = isinstance(x, DoublingTracer) and x._trace is self
            return x.value if mine else x

        def bind(self, primitive, tracers, **params):
            with core.set_current_trace(self.parent):
                results = primitive.bind(*map(self.lowered, tracers), **params)
                if primitive.name == "sin":
                    results = results * 2
            if primitive.multiple_results:
                return [DoublingTracer(self, result) for result in results]
            return DoublingTracer(self, results)

        def process_primitive(self, primitive, tracers, params, /):
            return self.bind(primitive, tracers, **primitive.get_bind_params(params))

    class CallsToo(DoublingTrace):
        def process_call(self, primitive, f, tracers, params, /):
            return self.bind(primitive, tracers, subfuns=(f,), **params)

        def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, *, symbolic_zeros):
            subfuns = fun, jvp
            return self.bind(primitive, tracers, subfuns=subfuns, symbolic_zeros=symbolic_zeros)

        def process_custom_vjp_call(
            self, primitive, fun, fwd, bwd, tracers, /, *, out_trees, symbolic_zeros
        ):
            return self.bind(
                primitive,
                tracers,
                subfuns=(fun, fwd, bwd),
                out_trees=out_trees,
                symbolic_zeros=symbolic_zeros,
            )

    def transformation(fun):
        def run(*args):
            with core.take_current_trace() as parent:
                trace = DoublingTrace(parent) if bare else CallsToo(parent)
                with core.set_current_trace(trace):
                    result = fun(*[DoublingTracer(trace, x) for x in args])
            return trace.lowered(result)

        return run

    return transformation
