"""The names for `partitioning_answers.txt`: custom partitioning, and shown shardings."""

import contextlib
import importlib
import io
import json
import re

import numpy as np


def names_for(jax):
    """What the calls may use, made with jax or hlofront on eight devices."""
    jnp, lax, sharding = jax.numpy, jax.lax, jax.sharding
    module = importlib.import_module(f"{jax.__name__}.experimental.custom_partitioning")
    devices = jax.devices()
    P, Named = sharding.PartitionSpec, sharding.NamedSharding
    mesh = sharding.Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
    backwards = sharding.Mesh(np.array(devices[::-1]).reshape(4, 2), ("a", "b"))
    explicit = jax.make_mesh((4, 2), ("x", "y"), (sharding.AxisType.Explicit,) * 2)
    host = np.arange(32, dtype=np.float32).reshape(8, 4)

    def put(*entries, mesh=mesh, shape=(8, 4), dtype=np.float32):
        values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
        return jax.device_put(values, Named(mesh, P(*entries)))

    def rule(text, operands, results, **options):
        """Shardy's attribute for a rule, of an operation on these shapes."""
        function = module.custom_partitioning(
            lambda *xs: tuple(jnp.zeros(s) + sum(jnp.sum(x) for x in xs) for s in results)
        )
        function.def_partition(lambda *_: None, sharding_rule=text, **options)
        structs = [jax.ShapeDtypeStruct(s, np.float32, sharding=Named(mesh, P())) for s in operands]
        return re.search(r"rule<(.*?)>}", jax.jit(function).lower(*structs).as_text())[1]

    def partitioned(text, fun=jnp.sin, partition=None, static_argnums=(), **options):
        function = module.custom_partitioning(fun, static_argnums=static_argnums)
        function.def_partition(partition or keeping_shardings(fun), sharding_rule=text, **options)
        return function

    def keeping_shardings(fun):
        """The partition function that splits nothing anew."""

        def partition(*args):
            mesh, operands, results = args[-3:]
            tree_map = jax.tree_util.tree_map
            split = [tree_map(lambda each: each.sharding, x) for x in (results, operands)]
            return mesh, lambda *xs: fun(*xs), *split

        return partition

    def partition_arguments(text, array, fun=jnp.sin, **options):
        """What `partition` is given, and the result."""
        given = []

        def partition(mesh, operands, results):
            flat = jax.tree_util.tree_leaves((operands, results))
            given.append((mesh.axis_names, mesh.axis_sizes, int(mesh.devices.flat[0].id)))
            given.append([(x.shape, str(x.dtype), tuple(x.sharding.spec)) for x in flat])
            return keeping_shardings(fun)(mesh, operands, results)

        result = jax.jit(partitioned(text, fun, partition, **options))(array)
        leaves = jax.tree_util.tree_leaves(result)
        return (
            given,
            [tuple(x.sharding.spec) for x in leaves],
            [round(float(x.sum()), 2) for x in leaves],
        )

    def collectives(function, *args):
        text = jax.jit(function).lower(*args).compile().as_text()
        kinds = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter"
        found = re.findall(rf" ({kinds})(?:-start)?\(.*?(?:groups|pairs)=(\S+?), ", text)
        return sorted((kind, groups_of(text)) for kind, text in found)

    def groups_of(text):
        """Lists of devices, from their text or the text of an iota of them."""
        iota = re.fullmatch(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
        if iota is None:
            return json.loads(text.replace("{", "[").replace("}", "]"))
        shape, dims, order = (
            [int(n) for n in (part or "").split(",") if n] for part in iota.groups()
        )
        numbers = np.arange(np.prod(dims)).reshape(dims)
        return numbers.transpose(order or None).reshape(shape).tolist()

    def inspected_specs(function, *args):
        """The specs that inspect_array_sharding passes, in the order of the calls."""
        specs = []

        def inspect(value):
            def callback(each):
                specs.append(tuple(each.spec) if hasattr(each, "spec") else str(each))

            jax.debug.inspect_array_sharding(value, callback=callback)
            return value

        function(inspect, *args)
        return specs

    def printed(call):
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            call()
        return written.getvalue().splitlines()

    return {
        "jax": jax, "jnp": jnp, "lax": lax, "np": np, "P": P, "Named": Named, "mesh": mesh,
        "backwards": backwards, "explicit": explicit,
        "devices": devices, "host": host, "put": put, "rule": rule,
        "partitioned": partitioned, "partition_arguments": partition_arguments,
        "collectives": collectives, "inspected_specs": inspected_specs,
        "printed": printed, "A": module.ArrayMapping, "C": module.CompoundFactor,
        "R": module.SdyShardingRule, "BATCHING": module.BATCHING,
    }  # fmt: skip
