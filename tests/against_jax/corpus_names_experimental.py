"""Each name of jax.experimental that no other corpus uses, in a program that has its name."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    sparse, checkify = door("experimental.sparse"), door("experimental.checkify")
    multihost, core = door("experimental.multihost_utils"), door("extend.core")

    def program(name, **options):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function, **options)

    def primitives_of(jaxpr):
        found = []
        for equation in jaxpr.eqns:
            found.append(equation.primitive)
            for inner in core.jaxprs_in_params(equation.params):
                found += primitives_of(inner)
        return found

    def binds(primitive, function, *args):
        """Return the name of a primitive, and whether a function binds it."""
        found = primitives_of(jax.make_jaxpr(function)(*args).jaxpr)
        return str(primitive), primitive.multiple_results, primitive in found

    dense = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
    vector = np.array([1, -1, 2, 0.5], np.float32)
    matrix = np.arange(8, dtype="float32").reshape(4, 2)

    def bcoo():
        return sparse.BCOO.fromdense(dense, nse=5)

    def bcsr():
        return sparse.BCSR.fromdense(dense, nse=5)

    def coo_parts():
        made = sparse.coo_fromdense(dense, nse=5)
        return made.data, made.row, made.col

    # ---- sparse: functions

    @program("sparse.bcoo_fromdense")
    def _():
        batched = sparse.bcoo_fromdense(np.stack([dense, 2 * dense]), n_batch=1, nse=5)
        rows = sparse.bcoo_fromdense(dense, n_dense=1)
        return sparse.bcoo_fromdense(dense), batched, rows

    @program("sparse.bcoo_todense")
    def _():
        derivative = jax.grad(
            lambda data: jnp.sum(
                sparse.bcoo_todense(sparse.BCOO((data, bcoo().indices), shape=(3, 4))) * dense
            )
        )
        return sparse.bcoo_todense(bcoo()), derivative(bcoo().data)

    @program("sparse.bcoo_sort_indices")
    def _():
        shuffled = sparse.BCOO((bcoo().data[::-1], bcoo().indices[::-1]), shape=(3, 4))
        sorted_ = sparse.bcoo_sort_indices(shuffled)
        return shuffled.indices_sorted, sorted_.indices_sorted, sorted_.data, sorted_.indices

    @program("sparse.bcoo_transpose")
    def _():
        turned = sparse.bcoo_transpose(bcoo(), permutation=(1, 0))
        return turned.todense(), turned.shape, turned.indices

    @program("sparse.bcoo_update_layout")
    def _():
        rows = sparse.bcoo_update_layout(bcoo(), n_dense=1, on_inefficient=None)
        batch = sparse.bcoo_update_layout(bcoo(), n_batch=1, on_inefficient=None)
        return rows.n_dense, rows.todense(), batch.n_batch, batch.todense()

    @program("sparse.bcoo_update_layout that is inefficient")
    def _():
        return sparse.bcoo_update_layout(bcoo(), n_batch=1)

    @program("sparse.bcsr_fromdense")
    def _():
        made = sparse.bcsr_fromdense(dense)
        return made.data, made.indices, made.indptr, made.shape

    @program("sparse.bcsr_todense")
    def _():
        return sparse.bcsr_todense(bcsr()), jax.jit(sparse.bcsr_todense)(bcsr())

    @program("sparse.coo_fromdense")
    def _():
        made = sparse.coo_fromdense(dense)
        return made.data, made.row, made.col, made.shape, made.nse

    @program("sparse.coo_todense")
    def _():
        return sparse.coo_todense(sparse.coo_fromdense(dense, nse=5))

    @program("sparse.coo_matvec")
    def _():
        made = sparse.coo_fromdense(dense, nse=5)
        return sparse.coo_matvec(made, vector), sparse.coo_matvec(made, vector[:3], transpose=True)

    @program("sparse.coo_matmat")
    def _():
        made = sparse.coo_fromdense(dense, nse=5)
        return sparse.coo_matmat(made, matrix), sparse.coo_matmat(made, matrix[:3], transpose=True)

    @program("sparse.csr_fromdense")
    def _():
        made = sparse.csr_fromdense(dense)
        return made.data, made.indices, made.indptr, made.shape

    @program("sparse.csr_todense")
    def _():
        return sparse.csr_todense(sparse.csr_fromdense(dense, nse=5))

    @program("sparse.csr_matvec")
    def _():
        made = sparse.csr_fromdense(dense, nse=5)
        return sparse.csr_matvec(made, vector), sparse.csr_matvec(made, vector[:3], transpose=True)

    @program("sparse.csr_matmat")
    def _():
        made = sparse.csr_fromdense(dense, nse=5)
        return sparse.csr_matmat(made, matrix), sparse.csr_matmat(made, matrix[:3], transpose=True)

    @program("sparse.jacobian")
    def _():
        def f(x):
            return jnp.sin(x @ vector)

        rows = sparse.jacobian(f)(bcoo())
        return rows.todense() if hasattr(rows, "todense") else rows

    # ---- sparse: classes

    @program("sparse.JAXSparse")
    def _():
        made = bcoo()
        texts = [name for name in ("data", "shape", "dtype", "size", "ndim") if hasattr(made, name)]
        return isinstance(made, sparse.JAXSparse), isinstance(bcsr(), sparse.JAXSparse), texts

    @program("sparse.SparseTracer")
    def _():
        seen = []

        def f(x):
            seen.append(isinstance(x, sparse.SparseTracer))
            return x * 2

        return sparse.sparsify(f, use_tracer=True)(bcoo()).todense(), seen

    @program("sparse.SparseEfficiencyError")
    def _():
        return issubclass(sparse.SparseEfficiencyError, ValueError)

    @program("sparse.SparseEfficiencyWarning")
    def _():
        warning = sparse.SparseEfficiencyWarning
        return issubclass(warning, UserWarning), issubclass(
            sparse.CuSparseEfficiencyWarning, warning
        )

    # ---- sparse: primitives

    def add_primitive(name, function, *args):
        corpus.add(f"sparse.{name}", lambda: binds(getattr(sparse, name), function(), *args))

    def of_bcoo(function):
        made = bcoo()
        return lambda: lambda *args: function(made, *args)

    def of_bcsr(function):
        made = bcsr()
        return lambda: lambda *args: function(made, *args)

    if not isinstance(jax, Anything):
        numbers = (((1,), (0,)), ((), ()))
        other = sparse.BCOO.fromdense(dense.T, nse=5)
    else:
        numbers = other = None
    add_primitive(
        "bcoo_dot_general_p",
        of_bcoo(lambda m, v: sparse.bcoo_dot_general(m, v, dimension_numbers=numbers)),
        vector,
    )
    add_primitive(
        "bcoo_dot_general_sampled_p",
        of_bcoo(
            lambda m, a, b: sparse.bcoo_dot_general_sampled(
                a, b, m.indices, dimension_numbers=numbers
            )
        ),
        dense,
        np.ones((4, 4), np.float32),
    )
    add_primitive("bcoo_extract_p", of_bcoo(lambda m, x: sparse.bcoo_extract(m, x)), dense)
    add_primitive("bcoo_fromdense_p", lambda: lambda x: sparse.bcoo_fromdense(x, nse=5), dense)
    add_primitive(
        "bcoo_sort_indices_p",
        of_bcoo(
            lambda m: sparse.bcoo_sort_indices(sparse.BCOO((m.data, m.indices), shape=m.shape))
        ),
    )
    add_primitive(
        "bcoo_spdot_general_p",
        of_bcoo(lambda m: sparse.bcoo_dot_general(m, other, dimension_numbers=numbers)),
    )
    add_primitive("bcoo_sum_duplicates_p", of_bcoo(lambda m: sparse.bcoo_sum_duplicates(m, nse=5)))
    add_primitive("bcoo_todense_p", of_bcoo(lambda m: sparse.bcoo_todense(m)))
    add_primitive(
        "bcoo_transpose_p", of_bcoo(lambda m: sparse.bcoo_transpose(m, permutation=(1, 0)))
    )
    add_primitive(
        "bcsr_dot_general_p",
        of_bcsr(lambda m, v: sparse.bcsr_dot_general(m, v, dimension_numbers=numbers)),
        vector,
    )
    add_primitive(
        "bcsr_extract_p", of_bcsr(lambda m, x: sparse.bcsr_extract(m.indices, m.indptr, x)), dense
    )
    add_primitive("bcsr_fromdense_p", lambda: lambda x: sparse.bcsr_fromdense(x, nse=5), dense)
    add_primitive("bcsr_todense_p", of_bcsr(lambda m: sparse.bcsr_todense(m)))
    add_primitive("coo_fromdense_p", lambda: lambda x: sparse.coo_fromdense(x, nse=5).data, dense)
    add_primitive(
        "coo_todense_p", lambda: lambda: sparse.coo_todense(sparse.COO(coo_parts(), shape=(3, 4)))
    )
    add_primitive(
        "coo_matvec_p",
        lambda: lambda v: sparse.coo_matvec(sparse.COO(coo_parts(), shape=(3, 4)), v),
        vector,
    )
    add_primitive(
        "coo_matmat_p",
        lambda: lambda v: sparse.coo_matmat(sparse.COO(coo_parts(), shape=(3, 4)), v),
        matrix,
    )
    add_primitive("csr_fromdense_p", lambda: lambda x: sparse.csr_fromdense(x, nse=5).data, dense)
    add_primitive(
        "csr_todense_p", lambda: lambda x: sparse.csr_todense(sparse.csr_fromdense(x, nse=5)), dense
    )
    add_primitive(
        "csr_matvec_p",
        lambda: lambda x, v: sparse.csr_matvec(sparse.csr_fromdense(x, nse=5), v),
        dense,
        vector,
    )
    add_primitive(
        "csr_matmat_p",
        lambda: lambda x, v: sparse.csr_matmat(sparse.csr_fromdense(x, nse=5), v),
        dense,
        matrix,
    )
    add_primitive("todense_p", lambda: lambda x: sparse.todense(x) * 2, dense)

    @program("sparse.linalg.spsolve_p")
    def _():
        linalg = door("experimental.sparse.linalg")
        square = sparse.csr_fromdense(jnp.asarray(dense[:, 1:] + 5 * np.eye(3, dtype="float32")))

        def solve(b):
            return linalg.spsolve(square.data, square.indices, square.indptr, b)

        return binds(linalg.spsolve_p, solve, vector[:3]), solve(vector[:3])

    # ---- jet

    jet = door("experimental.jet")

    @program("jet.JetTrace and JetTracer")
    def _():
        seen = []

        def f(x):
            seen.append(isinstance(x, jet.JetTracer))
            return jnp.sin(x)

        result = jet.jet(f, (0.5,), ((1.0, 0.0),))
        return result, seen, isinstance(jet.JetTrace, type)

    @program("jet.zero_series")
    def _():
        _, series = jet.jet(lambda x: (x * 0 + 1, 2.0), (0.5,), ((1.0, 0.0),))
        return series, isinstance(jet.zero_series, jet.ZeroSeries)

    def jet_of_new_primitive(register):
        p = core.Primitive("with a rule for series")
        p.def_abstract_eval(lambda aval: aval)
        p.def_impl(lambda x: x * 3)
        door("interpreters.ad").deflinear(p, lambda t: [p.bind(t)])
        register(p)
        return jet.jet(p.bind, (jnp.float32(0.5),), ((jnp.float32(1), jnp.float32(2)),))

    @program("jet.deflinear and linear_prop")
    def _():
        def by_hand(p):
            jet.jet_rules[p] = lambda primals, series, **params: jet.linear_prop(
                p, primals, series, **params
            )

        return jet_of_new_primitive(jet.deflinear), jet_of_new_primitive(by_hand)

    @program("jet.defzero and zero_prop")
    def _():
        def by_hand(p):
            jet.jet_rules[p] = lambda primals, series, **params: jet.zero_prop(
                p, primals, series, **params
            )

        return jet_of_new_primitive(jet.defzero), jet_of_new_primitive(by_hand)

    # ---- layouts, executables, meshes

    @program("layout.Layout")
    def _():
        layouts = door("experimental.layout")
        layout = layouts.Layout(major_to_minor=(1, 0))
        x = jax.device_put(
            dense,
            layouts.Format(
                layout, jax.devices()[0] and jax.sharding.SingleDeviceSharding(jax.devices()[0])
            ),
        )
        return x, layout.major_to_minor, layout == layouts.Layout((1, 0)), str(layout)

    @program("layout.with_layout_constraint")
    def _():
        layouts = door("experimental.layout")

        def f(x):
            return layouts.with_layout_constraint(x * 2, layouts.Layout((1, 0))) + 1

        return jax.jit(f)(dense), "LayoutConstraint" in jax.jit(f).lower(dense).as_text()

    @program("serialize_executable")
    def _():
        serialize = door("experimental.serialize_executable")
        compiled = jax.jit(lambda x: {"a": jnp.sin(x), "b": x * 2}).lower(vector).compile()
        payload, in_tree, out_tree = serialize.serialize(compiled)
        loaded = serialize.deserialize_and_load(payload, in_tree, out_tree)
        return loaded(vector), isinstance(payload, bytes), str(in_tree), str(out_tree)

    @program("mesh_utils")
    def _():
        utils = door("experimental.mesh_utils")
        made = utils.create_device_mesh((1, 1), jax.devices()[:1])
        return made.shape, made[0, 0] == jax.devices()[0], sorted(utils.device_kind_handler_dict)

    @program("mesh_utils.create_device_mesh of other sizes")
    def _():
        return door("experimental.mesh_utils").create_device_mesh((3,), jax.devices()[:1])

    @program("mesh_utils.create_hybrid_device_mesh")
    def _():
        utils = door("experimental.mesh_utils")
        made = utils.create_hybrid_device_mesh(
            (1, 1), (1, 1), jax.devices()[:1], process_is_granule=True
        )
        return made.shape

    @program("topologies")
    def _():
        topologies = door("experimental.topologies")
        here = topologies.get_attached_topology()
        mesh = topologies.make_mesh(here, (len(here.devices),), ("i",))
        return isinstance(here, topologies.TopologyDescription), mesh.axis_names

    # ---- several processes, as one of them

    @program("multihost_utils.process_allgather")
    def _():
        stacked = multihost.process_allgather({"a": vector, "b": np.float32(2)})
        tiled = multihost.process_allgather(vector, tiled=True)
        return stacked, tiled, type(tiled).__name__

    @program("multihost_utils.broadcast_one_to_all")
    def _():
        return multihost.broadcast_one_to_all({"a": vector, "b": 3})

    @program("multihost_utils.sync_global_devices")
    def _():
        return multihost.sync_global_devices("here")

    @program("multihost_utils.assert_equal")
    def _():
        return multihost.assert_equal({"a": vector}, "not equal")

    @program("multihost_utils.live_devices")
    def _():
        with multihost.live_devices(jax.devices()[:1]) as alive:
            return len(alive)

    @program("multihost_utils.ProcessFailureError")
    def _():
        return issubclass(multihost.ProcessFailureError, Exception)

    @program("multihost_utils.reached_preemption_sync_point")
    def _():
        return multihost.reached_preemption_sync_point(3)

    def one_mesh():
        return jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))

    @program("multihost_utils between local and global arrays")
    def _():
        whole = multihost.host_local_array_to_global_array(vector, one_mesh(), jax.P("i"))
        local = multihost.global_array_to_host_local_array(whole, one_mesh(), jax.P("i"))
        return whole, local, whole.sharding.spec == jax.P("i")

    @program("multihost_utils primitives between local and global arrays")
    def _():
        to_global = multihost.host_local_array_to_global_array_p
        to_local = multihost.global_array_to_host_local_array_p
        params = {"global_mesh": one_mesh(), "pspec": jax.P("i")}
        whole = to_global.bind(vector, **params)
        local = to_local.bind(whole, **params)
        types = jax.core.ShapedArray((4,), np.dtype("float32"))
        batched = jax.vmap(lambda x: to_global.bind(x, **params))(matrix.T)
        return (
            (str(to_global), str(to_local), whole, local, batched),
            multihost.ltg_abstract_eval(types, **params).shape,
            multihost.gtl_abstract_eval(types, **params).shape,
            multihost.host_local_array_to_global_array_impl(vector, **params),
            multihost.global_array_to_host_local_array_impl(whole, **params),
        )

    # ---- checks

    def checked(kinds):
        def f(x, i):
            return jnp.log(x)[i] / (x[0] - x[0])

        error, _ = checkify.checkify(f, errors=kinds)(vector, 7)
        return error.get()

    for kind in ("nan_checks", "index_checks", "div_checks", "float_checks"):
        corpus.add(
            f"checkify.{kind}", lambda kind=kind: checked(getattr(checkify, kind)) is not None
        )

    @program("checkify.Error and init_error")
    def _():
        error = checkify.init_error
        return isinstance(error, checkify.Error), error.get(), error.throw()

    @program("checkify.ErrorCategory")
    def _():
        category: checkify.ErrorCategory = next(iter(checkify.user_checks))
        return isinstance(category, type), category in checkify.all_checks

    # ---- callbacks, places, partitions

    @program("buffer_callback")
    def _():
        callbacks = door("experimental.buffer_callback")
        seen = []

        def twice(context, out, x):
            seen.append(isinstance(context, callbacks.ExecutionContext))
            seen.append(isinstance(x, callbacks.Buffer))
            seen.append(context.stage == callbacks.ExecutionStage.EXECUTE)
            np.asarray(out)[...] = 2 * np.asarray(x)

        struct = jax.ShapeDtypeStruct(vector.shape, vector.dtype)
        result = np.asarray(callbacks.buffer_callback(twice, struct)(vector))
        return result, seen[-3:]

    @program("colocated_python")
    def _():
        colocated = door("experimental.colocated_python")
        devices = colocated.colocated_cpu_devices(jax.devices()[:1])
        return len(devices), devices[0].platform, callable(colocated.colocated_python)

    @program("compute_on.compute_on2")
    def _():
        on = door("experimental.compute_on")
        f = jax.jit(
            lambda x: (
                on.compute_on2(
                    lambda x: x * 2,
                    compute_type="device_host",
                    out_memory_spaces=jax.memory.Space.Device,
                )(x)
                + 1
            )
        )
        return f(vector)

    @program("compilation_cache")
    def _():
        cache = door("experimental.compilation_cache.compilation_cache")
        return cache.reset_cache(), callable(cache.set_cache_dir)

    @program("profiler.get_profiled_instructions_proto")
    def _():
        return door("experimental.profiler").get_profiled_instructions_proto("/nowhere")

    @program("scheduling_groups.xla_metadata_call_p")
    def _():
        groups = door("experimental.scheduling_groups")
        return binds(groups.xla_metadata_call_p, groups.xla_metadata_call(jnp.sin, key="1"), vector)

    @program("custom_partitioning")
    def _():
        parts = door("experimental.custom_partitioning")

        @parts.custom_partitioning
        def f(x):
            return jnp.sin(x)

        def infer(mesh, arg_shapes, result_shape):
            return arg_shapes[0].sharding

        def partition(mesh, arg_shapes, result_shape):
            sharding = arg_shapes[0].sharding
            return mesh, jnp.sin, sharding, (sharding,)

        f.def_partition(
            infer_sharding_from_operands=infer, partition=partition, sharding_rule="i -> i"
        )
        return f(vector), jax.jit(f)(vector), binds(parts.custom_partitioning_p, f, vector)

    @program("custom_partitioning of sharding rules")
    def _():
        parts = door("experimental.custom_partitioning")
        rule = parts.SdyShardingRule(
            (parts.ArrayMapping(parts.BATCHING, "i", parts.CompoundFactor("j", "k")),),
            (parts.ArrayMapping(parts.BATCHING, "i"),),
            j=2,
            k=3,
        )
        return str(rule), parts.BATCHING

    # ---- hijax

    hijax = door("experimental.hijax")

    @program("hijax.AvalQDD")
    def _():
        aval = jax.typeof(1.0)
        return hijax.AvalQDD(aval, "state").qdd, hijax.AvalMutableQDD(aval, "own").mutable_qdd

    @program("hijax.aval_method and aval_property")
    def _():
        class Own(hijax.HiType):
            doubled = hijax.aval_method(lambda self: 2)
            size_of_own = hijax.aval_property(lambda self: 3)

        return isinstance(vars(Own)["doubled"], hijax.aval_method), isinstance(
            vars(Own)["size_of_own"], hijax.aval_property
        )

    @program("hijax.TransformedRef")
    def _():
        seen = []

        def f(ref):
            part = ref.at[1:3]
            seen.append(isinstance(part, hijax.TransformedRef))
            return part[...]

        return jax.jit(f)(jax.new_ref(jnp.arange(4.0))), seen

    return corpus
