"""The class custom_partitioning, for functions with user-defined partitioning over devices."""

# pyright: strict

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.errors import UnexpectedTracerError
from hlofront.base.tree import PyTree
from hlofront.core.aval import is_value, typeof
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import calls
from hlofront.core.rules import subprograms
from hlofront.core.trace import Tracer
from hlofront.higher_order.calls.jit_call import run_by_program, split_captured, typed_by_program
from hlofront.higher_order.custom_rules.custom_rule import CustomRule
from hlofront.higher_order.shard_map.sharding_rule import SdyShardingRule, sharding_rule_of
from hlofront.transforms.flatten import stage_tree

custom_partitioning_p = Primitive(
    "custom_partitioning", multiple_results=True, carries_programs=True
)
typed_by_program(custom_partitioning_p, "call")
# Outside jit, XLA splits the function's operations by its own rules.
run_by_program(custom_partitioning_p, "call")
subprograms(custom_partitioning_p)(calls("call"))

# (*static arguments, mesh, types of operands, types of results) -> a rule, or its text.
ShardingRuleFunction = Callable[..., SdyShardingRule | str]
# (*static arguments, mesh, ShapeDtypeStructs of operands, those of results) -> (mesh, function of
# shards, shardings of results, shardings of operands).
PartitionFunction = Callable[..., Any]


class custom_partitioning(CustomRule):
    """A function that is partitioned over devices by a user-defined rule instead of XLA's.

    Within `jit`, over several devices, XLA calls `partition` to get the function that each device
    applies to its shards. On one device, and outside `jit`, the function itself runs.

    Example, a product whose contracted axis is split, so that the shards' products are summed::

        @custom_partitioning
        def product(a, b):
            return a @ b

        def partition(mesh, args, result):
            a, b = (arg.sharding for arg in args)
            summed = a.spec[1]
            on_shards = lambda a, b: jax.lax.psum(a @ b, summed) if summed else a @ b
            return mesh, on_shards, result.sharding, (a, b)

        product.def_partition(
            partition, sharding_rule="i k, k j -> i j", reduction_factors=("k",)
        )

    There is no derivative and no batch rule: wrap the function in `custom_vjp` or `custom_vmap`.

    Args:
      fun: a function of pytrees of arrays.
      static_argnums: the positions of static arguments, which are part of the program; `partition`
        takes them first.

    Raises:
      AttributeError: when called before `def_partition`.
      TypeError: when called with an argument that is not an array and not static, or with keyword
        arguments that have no position.
      UnexpectedTracerError: when called with a traced value as a static argument, or if `fun`
        refers to a traced value other than its arguments.
    """

    def __init__(self, fun: Callable[..., PyTree], static_argnums: Sequence[int] = ()):
        super().__init__(fun, tuple(static_argnums))
        self.static_argnums = self.nondiff_argnums
        self.partition: PartitionFunction | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.decode_shardings = True
        self.sharding_rule: SdyShardingRule | ShardingRuleFunction | None = None

    def def_partition(
        self,
        partition: PartitionFunction,
        infer_sharding_from_operands: Callable[..., object] | None = None,
        propagate_user_sharding: Callable[..., object] | None = None,
        decode_shardings: bool = True,
        sharding_rule: SdyShardingRule | ShardingRuleFunction | str | None = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> None:
        """Define how the function is partitioned over devices.

        Args:
          partition: `partition(*static_args, mesh, args, result) -> (mesh, function, result
            shardings, args shardings)`. `args` are the arguments with a ShapeDtypeStruct for each
            array, and `result` is the same for the result: global shapes, with the shardings that
            XLA chose. It returns the shardings that XLA must give to the results and the arguments,
            in the same structures, and the function from the shards of the arguments to those of
            the result, which may use collectives along the axes of the mesh.
          infer_sharding_from_operands: a callback of XLA's former partitioner, GSPMD. Shardy, which
              partitions all programs here, uses `sharding_rule` instead.
          propagate_user_sharding: another callback of GSPMD.
          decode_shardings: whether `partition` receives NamedShardings over the program's mesh; if
            not, or if there is no mesh, it receives GSPMDShardings.
          sharding_rule: how shardings propagate between operands and results before `partition`
            is called: an SdyShardingRule, its text such as "i k, k j -> i j", or a function
            `rule(*static_args, mesh, operand types, result types)` of MLIR types that returns
            one of them. None propagates none.
          reduction_factors: the factors of a rule's text that the function reduces over.
          need_replication_factors: the factors along which it cannot be split.
          permutation_factors: the factors along which it exchanges data between shards.
          **factor_sizes: the sizes of factors that occur only in compound factors.

        Raises:
          TypeError: if the rule is not a string, or a size is not an integer.
          ValueError: if the rule's text is invalid, or options for texts are passed with another
            rule.
        """
        options: dict[str, Any] = {
            **({"reduction_factors": reduction_factors} if reduction_factors else {}),
            **(
                {"need_replication_factors": need_replication_factors}
                if need_replication_factors
                else {}
            ),
            **({"permutation_factors": permutation_factors} if permutation_factors else {}),
            **factor_sizes,
        }
        if sharding_rule is None or isinstance(sharding_rule, SdyShardingRule):
            rule = sharding_rule
        elif callable(sharding_rule):
            rule = sharding_rule
        else:
            rule, options = sharding_rule_of(sharding_rule, **options), {}
        if options:
            raise ValueError(
                f"{', '.join(sorted(options))} are for a sharding_rule that is a text: put them "
                "into the SdyShardingRule"
            )
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.decode_shardings = decode_shardings
        self.sharding_rule = rule

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        name = self.signature.name
        if self.partition is None:
            raise AttributeError(
                f"{name} does not say how it is split over devices: call "
                f"{name}.def_partition(partition, sharding_rule=...) before {name}"
            )
        arguments = self.positional(args, kwargs)
        static = {n % len(arguments) for n in self.nondiff_positions(len(arguments))}
        static_args = [arguments[n] for n in sorted(static)]
        for leaf in tree.tree_leaves(static_args):
            if isinstance(leaf, Tracer):
                raise UnexpectedTracerError(
                    f"{name} has a traced value, {leaf}, as a static argument: static_argnums "
                    f"{self.static_argnums} are of values that are part of the program"
                )
        dynamic = tuple(x for n, x in enumerate(arguments) if n not in static)
        leaves, in_tree = tree.tree_flatten(dynamic)
        for leaf in leaves:
            if not is_value(leaf):
                raise TypeError(
                    f"{name} takes arrays, and values at its static_argnums: got {leaf!r} of type "
                    f"{type(leaf)}, which is not a valid JAX type"
                )

        def on_arrays(*arrays: PyTree) -> PyTree:
            rest = iter(arrays)
            whole = (x if n in static else next(rest) for n, x in enumerate(arguments))
            return self.fun(*whole)

        signature = self.signature
        info = DebugInfo("custom_partitioning", signature.find_where, lambda: ())
        no_keywords: dict[str, PyTree] = {}
        program, out_tree = stage_tree(
            on_arrays,
            tree.tree_structure((dynamic, no_keywords)),
            [typeof(x) for x in leaves],
            info,
        )
        program, captured = split_captured(program)
        if captured:
            raise UnexpectedTracerError(
                f"{name} refers to a traced value, {captured[0]}, that is not among its "
                "arguments, so that partition could not say how it is split: pass it as one"
            )
        results = custom_partitioning_p.bind(
            *leaves,
            call=program,
            partition=self.partition,
            propagate_user_sharding=self.propagate_user_sharding,
            infer_sharding_from_operands=self.infer_sharding_from_operands,
            decode_shardings=self.decode_shardings,
            sharding_rule=self.sharding_rule,
            in_tree=in_tree,
            out_tree=out_tree,
            static_args=tuple(static_args),
        )
        return out_tree.unflatten(results)
