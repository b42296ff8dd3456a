"""The classes of jax.experimental.hijax in use: operations that are objects with methods."""

import dataclasses
import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        hijax = jax
    else:
        hijax = importlib.import_module(f"{jax.__name__}.experimental.hijax")
    P = jax.sharding.PartitionSpec

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    @dataclasses.dataclass(frozen=True)
    class PairType(hijax.HiType):
        first: object
        second: object

        def lo_ty(self):
            return [self.first, self.second]

        def lower_val(self, pair):
            return [pair.a, pair.b]

        def raise_val(self, a, b):
            return Pair(a, b)

        def to_tangent_aval(self):
            return PairType(self.first.to_tangent_aval(), self.second.to_tangent_aval())

        def vspace_zero(self):
            return Pair(jnp.zeros(self.first.shape), jnp.zeros(self.second.shape))

        def vspace_add(self, x, y):
            return Pair(x.a + y.a, x.b + y.b)

        def str_short(self, short_dtypes=False, **_):
            return "Pair"

        def shard(self, mesh, manual_axes, check_vma, spec):
            return self

        def unshard(self, mesh, check_vma, spec):
            return self

    hijax.register_hitype(Pair, lambda pair: PairType(jax.typeof(pair.a), jax.typeof(pair.b)))

    class Scaled(hijax.VJPHiPrimitive):
        """x * factor * y, whose cotangents are ten times too large."""

        def __init__(self, x, y, factor):
            self.in_avals = (x, y)
            self.out_aval = x
            self.params = {"factor": factor}
            super().__init__()

        def expand(self, x, y):
            return x * self.factor * y

        def vjp_fwd(self, nzs_in, x, y):
            return self(x, y), (x, y)

        def vjp_bwd_retval(self, residuals, g):
            x, y = residuals
            return 10 * self.factor * g * y, 10 * self.factor * jnp.sum(g * x)

        def jvp(self, primals, tangents):
            (x, y), (dx, dy) = primals, map(hijax.instantiate_zeros, tangents)
            return self(x, y), 3 * self.factor * (dx * y + x * dy)

        def batch_dim_rule(self, axis_data, dims):
            x, y = dims
            return x if y is None else x or 0

    def scaled(x, y, factor=2.0):
        return Scaled(jax.typeof(x), jax.typeof(y), factor)(x, y)

    class Linear(hijax.VJPHiPrimitive):
        """A product with a known array, linear in the other, whose rules are optional ones."""

        def __init__(self, x, c):
            self.in_avals = (x, c)
            self.out_aval = {"product": x, "c": c}
            self.params = {}
            super().__init__()

        def expand(self, x, c):
            return {"product": x * c, "c": c}

        def lin(self, nzs_in, x, c):
            return self(x, c), c

        def linearized(self, c, dx, dc):
            return {"product": 5 * dx * c, "c": jnp.zeros_like(c)}

        def vjp_fwd(self, nzs_in, x, c):
            return self(x, c), c

        def vjp_bwd(self, c, g, x_sum, c_sum):
            x_sum.accum(g["product"] * c)
            x_sum.accum(g["product"])

        def batch(self, axis_data, args, dims):
            x, c = args
            moved = jnp.moveaxis(x, dims[0], 0)
            return Linear(jax.typeof(moved), jax.typeof(c))(moved, c), {"product": 0, "c": None}

        def dce(self, used):
            return (True, True), True, self

    class Twice(hijax.VJPHiPrimitive):
        """The double of an array, which is linear."""

        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()

        def expand(self, x):
            return 2 * x

        def jvp(self, primals, tangents):
            return self(*primals), self(*tangents)

        def transpose(self, g, x):
            x.accum(7 * g)

        def batch_dim_rule(self, axis_data, dims):
            return dims[0]

    class Total(hijax.VJPHiPrimitive):
        """The sum of the arrays of a pair."""

        def __init__(self, pair):
            self.in_avals, self.out_aval, self.params = (pair,), pair.first, {}
            super().__init__()

        def expand(self, pair):
            return pair.a + pair.b

        def vjp_fwd(self, nzs_in, pair):
            return self(pair), None

        def vjp_bwd_retval(self, _, g):
            return (Pair(g, 4 * g),)

    class MakePair(hijax.HiPrimitive):
        def abstract_eval(self, a, b):
            return PairType(a, b), set()

        def to_lojax(self, a, b):
            return Pair(a, b)

        def jvp(self, primals, tangents):
            return make_pair(*primals), make_pair(*map(hijax.instantiate_zeros, tangents))

        def transpose(self, cotangent, a, b):
            return [cotangent.a, cotangent.b]

    make_pair = jax if isinstance(jax, Anything) else MakePair("make_pair of names").bind

    x = np.array([0.5, -1.0, 2.0], np.float32)
    y = np.float32(3.0)
    rows = np.arange(6, dtype=np.float32).reshape(2, 3)

    def loss(x, y):
        return jnp.sum(jnp.sin(scaled(x, y)))

    @corpus.program(x, y, modes=("value", "jit"))
    def operation(x, y):
        return scaled(x, y), scaled(x, y, factor=0.5)

    @corpus.program(x, y, modes=("value", "jit"))
    def gradient(x, y):
        return jax.grad(loss, argnums=(0, 1))(x, y)

    @corpus.program(x, y, modes=("value", "jit"))
    def gradient_of_jitted(x, y):
        return jax.grad(jax.jit(loss), argnums=(0, 1))(x, y)

    @corpus.program(x, y, modes=("value", "jit"))
    def tangents(x, y):
        return jax.jvp(loss, (x, y), (x, y)), jax.jacfwd(jax.jit(loss))(x, y)

    @corpus.program(x, y, modes=("value", "jit"))
    def second_derivatives(x, y):
        inner = jax.grad(loss)
        return jax.grad(lambda x: jnp.sum(inner(x, y)))(x), jax.jacfwd(inner)(x, y)

    @corpus.program(rows, y, modes=("value", "jit"))
    def batches(rows, y):
        by_row = jax.vmap(scaled, in_axes=(0, None))
        by_column = jax.vmap(scaled, in_axes=(1, None), out_axes=1)
        both = jax.vmap(jax.vmap(scaled, in_axes=(0, None)), in_axes=(0, None))
        shared = jax.vmap(scaled, in_axes=(None, 0))(rows[0], rows[0])
        return by_row(rows, y), by_column(rows, y), both(jnp.stack([rows, 2 * rows]), y), shared

    @corpus.program(rows, y, modes=("value", "jit"))
    def gradients_of_batches(rows, y):
        def total(rows, y):
            return jnp.sum(jnp.sin(jax.vmap(scaled, in_axes=(0, None))(rows, y)))

        each = jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=(0, None))(rows, y)
        whole = jax.grad(total, argnums=(0, 1))(rows, y)
        return each, whole, jax.grad(jax.jit(total), argnums=1)(rows, y)

    @corpus.program(rows, y, modes=("value", "jit"))
    def tangents_of_batches(rows, y):
        def one(row):
            return jax.jvp(lambda row: scaled(row, y), (row,), (row,))

        mapped = jax.vmap(lambda row: scaled(row, y))
        return jax.vmap(one)(rows), jax.jvp(jax.jit(mapped), (rows,), (rows,))

    @corpus.program(x, y, modes=("value", "jit"))
    def in_loops(x, y):
        def body(carry, y):
            return scaled(carry, y), jnp.sum(carry)

        def total(x):
            last, sums = lax.scan(body, x, jnp.stack([y, y / 3]))
            return jnp.sum(last) + jnp.sum(sums)

        return total(x), jax.grad(total)(x)

    @corpus.program(x, modes=("value", "jit"))
    def accumulators_and_pytrees(x):
        def total(x):
            result = Linear(jax.typeof(x), jax.typeof(x))(x, x + 1)
            return jnp.sum(result["product"]) + jnp.sum(result["c"])

        return total(x), jax.grad(total)(x)

    @corpus.program(x)
    def linearized_by_its_own_rule(x):
        result, f_jvp = jax.linearize(
            lambda x: Linear(jax.typeof(x), jax.typeof(x))(x, x)["product"], x
        )
        return result, f_jvp(x)

    @corpus.program(rows)
    def own_rule_of_batches(rows):
        def one(row):
            return Linear(jax.typeof(row), jax.typeof(row))(row, jnp.ones(3))["product"]

        return jax.vmap(one)(rows), jax.vmap(jax.grad(lambda row: jnp.sum(one(row))))(rows)

    @corpus.program(x, modes=("value", "jit"))
    def transposed_by_its_own_rule(x):
        def twice(x):
            return Twice(jax.typeof(x))(x)

        gradient = jax.grad(lambda x: jnp.sum(jnp.sin(twice(x))))(x)
        batched = jax.grad(lambda x: jnp.sum(jax.vmap(twice)(x.reshape(3, 1))))
        return gradient, batched(x), jax.linear_transpose(twice, x)(x)

    @corpus.program(x, modes=("value", "jit"))
    def values_of_several_arrays(x):
        def total(x):
            pair = make_pair(x, 2 * x)
            return jnp.sum(jnp.sin(Total(jax.typeof(pair))(pair)))

        return total(x), jax.grad(total)(x)

    @corpus.program(x, y)
    def equality_and_text(x, y):
        first = Scaled(jax.typeof(x), jax.typeof(y), 2.0)
        same = Scaled(jax.typeof(x), jax.typeof(y), 2.0)
        other = Scaled(jax.typeof(x), jax.typeof(y), 3.0)
        return first == same, hash(first) == hash(same), first == other, repr(first)

    @corpus.program(x, modes=("jaxpr",))
    def equation(x):
        return Twice(jax.typeof(x))(x)

    def incomplete(**attributes):
        class Incomplete(hijax.VJPHiPrimitive):
            def __init__(self):
                vars(self).update(attributes)
                super().__init__()

        return Incomplete()

    @corpus.program()
    def without_types_of_operands():
        return incomplete(out_aval=1, params={})

    @corpus.program()
    def without_type_of_result():
        return incomplete(in_avals=(), params={})

    @corpus.program()
    def without_parameters():
        return incomplete(in_avals=(), out_aval=1)

    @corpus.program()
    def without_implementation():
        return incomplete(in_avals=(), out_aval=jax.typeof(1.0), params={})()

    @corpus.program(x)
    def without_backward_rule(x):
        return jax.grad(lambda x: jnp.sum(Twice(jax.typeof(x))(x)))(x)

    @corpus.program(x)
    def without_forward_rule(x):
        return jax.jvp(lambda x: Linear(jax.typeof(x), jax.typeof(x))(x, x), (x,), (x,))

    @corpus.program(x)
    def without_linear_rule(x):
        return jax.linearize(lambda x: Twice(jax.typeof(x))(x), x)

    @corpus.program(x)
    def with_two_backward_rules(x):
        class Both(Twice):
            def vjp_bwd(self, residuals, g, x):
                pass

            def vjp_bwd_retval(self, residuals, g):
                pass

        return Both(jax.typeof(x))

    @corpus.program(x)
    def split_by_a_spec_of_their_own(x):
        @dataclasses.dataclass(frozen=True)
        class PairSpec(hijax.HiPspec):
            parts: tuple

            def to_lo(self):
                return self.parts

            def to_tangent_spec(self):
                return self

            def to_ct_spec(self):
                return self

        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        spec = PairSpec((P("i"), P()))

        @jax.jit
        def f(a, b):
            made = jax.shard_map(
                make_pair, mesh=mesh, in_specs=(P("i"), P()), out_specs=spec, check_vma=False
            )(a, b)
            return jax.shard_map(
                lambda pair: Total(jax.typeof(pair))(pair),
                mesh=mesh,
                in_specs=(spec,),
                out_specs=P("i"),
                check_vma=False,
            )(made)

        return f(x, x)

    return corpus
