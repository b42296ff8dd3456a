"""Bad input to derivatives and vmap: each raises the class that the reference raises."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import complexes, floats, ints

# Where the reference stumbles instead of refusing, ours may raise this class as well.
INSTEAD = {
    "jvp_with_aux_of_one_result": "TypeError",
    "linear_transpose_of_a_square": "TypeError",
    "vmap_axis_size_that_is_no_number": "TypeError",
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    derivatives(corpus, jax, jnp)
    pushes_and_pulls(corpus, jax, jnp)
    linear_functions(corpus, jax, jnp)
    tracers(corpus, jax, jnp)
    batches(corpus, jax, jnp)
    odd_but_right(corpus, jax, jnp)
    for name, class_name in INSTEAD.items():
        corpus.programs[name].instead = class_name
    return corpus


def derivatives(corpus, jax, jnp):
    x, i, z = floats(3), ints(3), complexes(3)
    total = lambda x: jnp.sum(x * x)
    for name, function in {
        "grad_of_no_function": lambda: jax.grad(3),
        "grad_of_an_array": lambda: jax.grad(lambda x: x * 2)(x),
        "grad_of_a_tree": lambda: jax.grad(lambda x: (x[0], x[1]))(x),
        "grad_of_an_array_of_one": lambda: jax.grad(lambda x: x * 2)(np.float32([1])),
        "grad_of_none": lambda: jax.grad(lambda x: None)(x),
        "grad_of_an_integer_result": lambda: jax.grad(lambda x: jnp.argmax(x))(x),
        "grad_of_a_boolean_result": lambda: jax.grad(lambda x: x[0] > 0)(x),
        "grad_of_a_complex_result": lambda: jax.grad(lambda x: x[0] * 1j)(x),
        "grad_of_a_complex_result_of_complex": lambda: jax.grad(lambda z: z[0] * z[1])(z),
        "grad_by_integers": lambda: jax.grad(total)(i),
        "grad_by_a_python_int": lambda: jax.grad(lambda x: x * 2.0)(3),
        "grad_by_a_bool": lambda: jax.grad(lambda x: x * 2.0)(True),
        "grad_by_a_string": lambda: jax.grad(lambda x: 2.0)("text"),
        "grad_by_a_list_with_an_integer": lambda: jax.grad(lambda t: total(t[0]))([x, i]),
        "grad_by_an_object_array": lambda: jax.grad(total)(np.array([1.0, None])),
        "grad_without_arguments": lambda: jax.grad(total)(),
        "grad_by_an_argument_that_is_not_there": lambda: jax.grad(total, argnums=1)(x),
        "grad_by_a_negative_one_that_is_not_there": lambda: jax.grad(total, argnums=-2)(x),
        "grad_by_a_float_argnum": lambda: jax.grad(total, argnums=1.0)(x),
        "grad_by_a_string_argnum": lambda: jax.grad(total, argnums="x")(x),
        "grad_by_keyword": lambda: jax.grad(total)(x=x),
        "grad_with_aux_of_a_single_result": lambda: jax.grad(total, has_aux=True)(x),
        "grad_with_aux_of_three_results": lambda: jax.grad(
            lambda x: (total(x), 1, 2), has_aux=True
        )(x),
        "holomorphic_grad_of_floats": lambda: jax.grad(total, holomorphic=True)(x),
        "holomorphic_grad_of_a_real_result": lambda: jax.grad(
            lambda z: jnp.abs(z).sum(), holomorphic=True
        )(z),
        "value_and_grad_of_an_array": lambda: jax.value_and_grad(lambda x: x * 2)(x),
        "value_and_grad_by_integers": lambda: jax.value_and_grad(total)(i),
        "jacfwd_by_integers": lambda: jax.jacfwd(total)(i),
        "jacfwd_by_complex": lambda: jax.jacfwd(lambda z: z * z)(z),
        "jacrev_by_integers": lambda: jax.jacrev(total)(i),
        "jacrev_of_a_complex_result": lambda: jax.jacrev(lambda z: z * z)(z),
        "jacrev_of_an_integer_result": lambda: jax.jacrev(lambda x: jnp.argmax(x))(x),
        "holomorphic_jacfwd_of_floats": lambda: jax.jacfwd(lambda x: x * x, holomorphic=True)(x),
        "jacfwd_by_an_argument_that_is_not_there": lambda: jax.jacfwd(total, argnums=2)(x),
        "jacrev_by_an_argument_that_is_not_there": lambda: jax.jacrev(total, argnums=(0, 1))(x),
        "jacfwd_without_arguments": lambda: jax.jacfwd(total)(),
        "grad_with_reduce_axes": lambda: jax.grad(total, reduce_axes=("i",))(x),
        "checkpoint_with_concrete": lambda: jax.checkpoint(total, concrete=True)(x),
        "hessian_by_integers": lambda: jax.hessian(total)(i),
        "hessian_of_no_function": lambda: jax.hessian(None)(x),
        "user_error_inside_of_grad": lambda: jax.grad(lambda x: {}["missing"])(x),
    }.items():
        corpus.add(name, function)


def pushes_and_pulls(corpus, jax, jnp):
    x, i, z = floats(3), ints(3), complexes(3)
    sine = lambda x: jnp.sin(x)
    for name, function in {
        "jvp_of_no_function": lambda: jax.jvp(3, (x,), (x,)),
        "jvp_of_an_array": lambda: jax.jvp(sine, x, x),
        "jvp_of_lists": lambda: jax.jvp(sine, [x], (x,)),
        "jvp_of_more_tangents": lambda: jax.jvp(sine, (x,), (x, x)),
        "jvp_of_other_trees": lambda: jax.jvp(lambda t: t[0], ([x],), ((x,),)),
        "jvp_of_another_shape": lambda: jax.jvp(sine, (x,), (x[:2],)),
        "jvp_of_a_scalar_tangent": lambda: jax.jvp(sine, (x,), (1.0,)),
        "jvp_of_another_dtype": lambda: jax.jvp(sine, (x,), (x.astype(np.float16),)),
        "jvp_of_a_complex_tangent": lambda: jax.jvp(sine, (x,), (z,)),
        "jvp_of_an_integer_tangent": lambda: jax.jvp(sine, (x,), (i,)),
        "jvp_of_integers_with_integers": lambda: jax.jvp(lambda i: i * 2, (i,), (i,)),
        "jvp_of_integers_with_floats": lambda: jax.jvp(lambda i: i * 2, (i,), (x,)),
        "jvp_of_floats_with_float0": lambda: jax.jvp(sine, (x,), (np.zeros(3, jax.float0),)),
        "jvp_of_a_string": lambda: jax.jvp(sine, ("x",), ("x",)),
        "jvp_with_aux_of_one_result": lambda: jax.jvp(sine, (x,), (x,), has_aux=True),
        "vjp_of_no_function": lambda: jax.vjp(3, x),
        "vjp_of_a_string": lambda: jax.vjp(sine, "x"),
        "vjp_with_aux_of_one_result": lambda: jax.vjp(sine, x, has_aux=True),
        "pull_back_of_another_shape": lambda: jax.vjp(sine, x)[1](x[:2]),
        "pull_back_of_another_dtype": lambda: jax.vjp(sine, x)[1](x.astype(np.float16)),
        "pull_back_of_integers": lambda: jax.vjp(sine, x)[1](i),
        "pull_back_of_a_tree": lambda: jax.vjp(sine, x)[1]((x,)),
        "pull_back_of_too_few": lambda: jax.vjp(lambda x: (x, x), x)[1]((x,)),
        "pull_back_of_nothing": lambda: jax.vjp(sine, x)[1](),
        "pull_back_of_two": lambda: jax.vjp(sine, x)[1](x, x),
        "pull_back_to_an_integer_result": lambda: jax.vjp(lambda x: jnp.argmax(x), x)[1](1),
    }.items():
        corpus.add(name, function)


def linear_functions(corpus, jax, jnp):
    x, i = floats(3), ints(3)
    for name, function in {
        "linearize_of_no_function": lambda: jax.linearize(3, x),
        "linearized_of_another_shape": lambda: jax.linearize(jnp.sin, x)[1](x[:2]),
        "linearized_of_another_dtype": lambda: jax.linearize(jnp.sin, x)[1](i),
        "linearized_of_two": lambda: jax.linearize(jnp.sin, x)[1](x, x),
        "linear_transpose_of_a_sine": lambda: jax.linear_transpose(jnp.sin, x)(x),
        "linear_transpose_of_a_square": lambda: jax.linear_transpose(lambda x: x * x, x)(x),
        "linear_transpose_by_integers": lambda: jax.linear_transpose(lambda i: i * 2, i)(i),
        "linear_transpose_of_another_shape": lambda: jax.linear_transpose(lambda x: 2 * x, x)(
            x[:2]
        ),
        "linear_transpose_of_a_tree": lambda: jax.linear_transpose(lambda x: 2 * x, x)([x]),
        "linear_transpose_of_an_integer_cotangent": lambda: jax.linear_transpose(
            lambda x: 2 * x, x
        )(i),
    }.items():
        corpus.add(name, function)


def tracers(corpus, jax, jnp):
    x = floats(3)
    for name, function in {
        "branch_on_what_jit_traces_in_grad": lambda: jax.jit(
            jax.grad(lambda x: x.sum() if x[0] > 0 else 0.0)
        )(x),
        "branch_on_what_vmap_maps": lambda: jax.vmap(lambda x: x if x > 0 else -x)(x),
        "int_of_what_vmap_maps": lambda: jax.vmap(lambda x: int(x))(x),
        "float_of_what_is_differentiated_under_jit": lambda: jax.jit(
            jax.grad(lambda x: float(x[0]) * x.sum())
        )(x),
        "float_of_what_is_differentiated": lambda: jax.grad(lambda x: float(x[0]) * x.sum())(x),
        "numpy_of_what_is_differentiated": lambda: jax.grad(lambda x: np.sum(np.asarray(x)))(x),
        "numpy_of_what_vmap_maps": lambda: jax.vmap(lambda x: np.asarray(x))(x),
        "index_of_a_list_by_what_vmap_maps": lambda: jax.vmap(lambda i: [1, 2, 3][i])(ints(3)),
        "range_of_what_vmap_maps": lambda: jax.vmap(lambda i: sum(range(i)))(ints(3)),
        "shape_by_what_vmap_maps": lambda: jax.vmap(lambda i: jnp.zeros(i))(ints(3)),
        "tracer_of_grad_that_escapes": lambda: escaped(jax.grad, jnp.sum, x),
        "tracer_of_vmap_that_escapes": lambda: escaped(jax.vmap, lambda x: x, x),
        "tracer_of_jit_that_escapes": lambda: escaped(jax.jit, lambda x: x, x),
    }.items():
        corpus.add(name, function)

    def escaped(transform, function, x):
        kept = []
        transform(lambda x: (kept.append(x), function(x))[1])(x)
        return jnp.sin(kept[0]) + jax.jit(lambda y: y * kept[0])(x)


def batches(corpus, jax, jnp):
    x, y = floats(3, 2), floats(4, 2)
    add = lambda x, y: x + y
    for name, function in {
        "vmap_of_no_function": lambda: jax.vmap(3),
        "sizes_that_differ": lambda: jax.vmap(add)(x, y),
        "sizes_that_differ_in_a_tree": lambda: jax.vmap(lambda t: t["a"])({"a": x, "b": y}),
        "sizes_that_differ_by_keyword": lambda: jax.vmap(add)(x, y=y),
        "size_that_differs_from_axis_size": lambda: jax.vmap(lambda x: x, axis_size=4)(x),
        "axis_size_that_is_no_number": lambda: jax.vmap(lambda x: x, axis_size="3")(x),
        "nothing_mapped": lambda: jax.vmap(lambda x: x, in_axes=None)(x),
        "no_arguments": lambda: jax.vmap(lambda: 1)(),
        "scalars": lambda: jax.vmap(lambda x: x)(1.0),
        "scalar_beside_an_array": lambda: jax.vmap(add)(x, 1.0),
        "axis_out_of_range": lambda: jax.vmap(lambda x: x, in_axes=2)(x),
        "axis_out_of_range_negative": lambda: jax.vmap(lambda x: x, in_axes=-3)(x),
        "axis_that_is_a_float": lambda: jax.vmap(lambda x: x, in_axes=0.0)(x),
        "axis_that_is_a_boolean": lambda: jax.vmap(lambda x: x, in_axes=False)(x),
        "axis_that_is_a_string": lambda: jax.vmap(lambda x: x, in_axes="0")(x),
        "axis_in_a_tuple_that_is_a_float": lambda: jax.vmap(lambda x: x, in_axes=(0.5,))(x),
        "too_few_axes": lambda: jax.vmap(add, in_axes=(0,))(x, x),
        "too_many_axes": lambda: jax.vmap(add, in_axes=(0, 0, 0))(x, x),
        "axes_as_a_dictionary": lambda: jax.vmap(lambda t: t["a"], in_axes={"a": 0})({"a": x}),
        "axes_of_another_tree": lambda: jax.vmap(lambda t: t[0], in_axes=([0, 0],))([x]),
        "axes_of_another_class": lambda: jax.vmap(lambda t: t[0], in_axes=([0],))((x,)),
        "result_axis_none_of_what_is_mapped": lambda: jax.vmap(lambda x: x, out_axes=None)(x),
        "result_axis_out_of_range": lambda: jax.vmap(lambda x: x, out_axes=2)(x),
        "result_axis_out_of_range_negative": lambda: jax.vmap(lambda x: x, out_axes=-3)(x),
        "result_axis_of_a_scalar": lambda: jax.vmap(lambda x: x.sum(), out_axes=1)(x),
        "result_axis_that_is_a_string": lambda: jax.vmap(lambda x: x, out_axes="0")(x),
        "result_axis_that_is_a_float": lambda: jax.vmap(lambda x: x, out_axes=0.5)(x),
        "result_axes_of_another_tree": lambda: jax.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(x),
        "result_axes_of_a_single_result": lambda: jax.vmap(lambda x: x, out_axes=(0, 0))(x),
        "argument_that_is_a_string": lambda: jax.vmap(lambda x, s: x)(x, "text"),
        "result_that_is_a_string": lambda: jax.vmap(lambda x: "text")(x),
        "result_that_is_a_function": lambda: jax.vmap(lambda x: len)(x),
        "shapes_inside_that_do_not_fit": lambda: jax.vmap(jnp.dot)(x, floats(3, 4)),
        "user_error_inside_of_vmap": lambda: jax.vmap(lambda x: {}["missing"])(x),
        "too_many_positional_arguments": lambda: jax.vmap(lambda x: x)(x, x),
        "sum_over_a_name_that_is_not_bound": lambda: jax.vmap(lambda x: jax.lax.psum(x, "i"))(x),
    }.items():
        corpus.add(f"vmap_{name}", function)


def odd_but_right(corpus, jax, jnp):
    """What looks wrong and is not: the reference gives a result, so ours must."""
    x, z = floats(3), complexes(3)
    for name, function in {
        "grad_of_a_numpy_scalar": lambda: jax.grad(lambda x: x * x)(np.float64(2)),
        "grad_of_a_constant": lambda: jax.grad(lambda x: 1.0)(x),
        "grad_of_a_numpy_result": lambda: jax.grad(lambda x: np.float32(2))(x),
        "grad_of_an_array_without_axes": lambda: jax.grad(lambda x: x[:1].reshape(()))(x),
        "grad_of_a_branch": lambda: jax.grad(lambda x: x.sum() if x[0] > 0 else -x.sum())(x),
        "grad_of_nothing": lambda: jax.grad(lambda t: 2.0)({}),
        "grad_of_none": lambda: jax.grad(lambda t: 2.0)(None),
        "grad_by_a_list_of_arguments": lambda: jax.grad(lambda x, y: (x * y).sum(), [0, 1])(x, x),
        "grad_of_complex_with_a_real_result": lambda: jax.grad(lambda z: jnp.abs(z).sum())(z),
        "jvp_with_numpy_tangents": lambda: jax.jvp(jnp.sin, [x], [np.ones(3, np.float32)]),
        "jvp_of_python_scalars": lambda: jax.jvp(lambda x: x * 2, (3.0,), (1.0,)),
        "jvp_of_a_sum_of_python_scalars": lambda: jax.jvp(lambda x: x + 1, (3.0,), (1.0,)),
        "jvp_of_python_scalars_as_they_are": lambda: jax.jvp(lambda x: x, (3.0,), (1.0,)),
        "jit_of_jvp_of_a_sum": lambda: jax.jit(lambda x: jax.jvp(lambda y: y - 1, (x,), (1.0,)))(
            3.0
        ),
        "jvp_of_nothing": lambda: jax.jvp(lambda: jnp.sin(1.0), (), ()),
        "vjp_of_nothing": lambda: jax.vjp(lambda: 1.0)[1](1.0),
        "pull_back_of_a_python_scalar": lambda: jax.vjp(lambda x: x * 2, 3.0)[1](1.0),
        "vmap_with_a_string_that_is_shared": lambda: jax.vmap(lambda x, s: x * 2, (0, None))(
            x, "text"
        ),
        "vmap_of_a_list": lambda: jax.vmap(lambda t: t[0] + t[1])([x, x]),
        "vmap_with_a_list_of_axes": lambda: jax.vmap(lambda x, y: x + y, in_axes=[0, None])(x, x),
        "vmap_of_numpy_integers_for_axes": lambda: jax.vmap(lambda x: x, in_axes=np.int64(0))(x),
        "vmap_over_a_default_argument": lambda: jax.vmap(lambda x, y=2: x * y)(x),
        "vmap_of_axis_size_as_numpy": lambda: jax.vmap(
            lambda: 1, axis_size=np.int64(3), in_axes=None
        )(),
    }.items():
        corpus.add(f"fine_{name}", function)
