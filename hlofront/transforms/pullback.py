"""Pullbacks, as vjp returns them: linear functions of cotangents, and pytrees of residuals."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.config import follows_jax_0_12
from hlofront.base.dtypes import float0
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Jaxpr, Value
from hlofront.core.names import TRANSPOSE, transformed
from hlofront.core.references import is_reference
from hlofront.core.symbolic_zeros import Cotangent, UndefinedPrimal, Zero
from hlofront.core.trace import as_array, as_result
from hlofront.primitives.references.rules import RefAccumulator
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.arguments import Signature
from hlofront.transforms.backward_logs import Logs, collecting_in, program_for_logs
from hlofront.transforms.flatten import abstract
from hlofront.transforms.transpose import transpose_jaxpr


class _Mark:
    """A base class of markers: all instances of one class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Mark):
    """A marker for `f_vjp.with_refs`: the cotangent of an argument is requested."""

    __slots__ = ()


class DontWant(_Mark):
    """A marker for `f_vjp.with_refs`: the cotangent of an argument is not requested."""

    __slots__ = ()


class DidntWant(_Mark):
    """A marker instead of a cotangent that was not requested; a pytree without leaves."""

    __slots__ = ()


class NotNeeded(_Mark):
    """A marker instead of an argument that is not a residual; a pytree without leaves."""

    __slots__ = ()


class NotSaveable(_Mark):
    """A marker instead of an argument that is a residual but is excluded by `saveable_args`.

    It is a pytree without leaves. The caller of vjp must replace it with the argument.
    """

    __slots__ = ()


class GradRef(_Mark):
    """A marker instead of a cotangent that was accumulated in a reference.

    It is a pytree without leaves.
    """

    __slots__ = ()


for _mark in (DidntWant, GradRef, NotNeeded, NotSaveable):
    tree.register_pytree_node(_mark, lambda _: ((), None), lambda _, __, of=_mark: of())


def residuals_by_source(
    residuals: Sequence[Value],
    in_tree: PyTreeDef,
    leaves: Sequence[Value],
    saveable: Sequence[bool] | None = None,
) -> tuple[list[Value], list[Value], tuple[int, ...]]:
    """Split residuals into those that are arguments and others.

    Args:
      residuals: arrays that the backward pass reads.
      in_tree: the structure of the tuple of arguments.
      leaves: the arguments' leaves.
      saveable: per leaf, whether it may be held; None if all may.

    Returns:
      Per argument a pytree of its residual leaves, with NotNeeded() for other leaves and
      NotSaveable() for those that may not be held (it consists of tuples, or, with hlofront_jax_api
      0.12.0.1, of the argument's own containers); the other residuals; and per residual the index n
      of its argument leaf, or ~n for its index n among the others.
    """
    positions = {id(leaf): position for position, leaf in enumerate(leaves)}
    sources: list[int] = []
    others: list[Value] = []
    for x in residuals:
        position = positions.get(id(x))
        if position is None:
            position = ~len(others)
            others.append(x)
        sources.append(position)
    # The same array may be passed as several arguments.
    used = {id(leaves[position]) for position in sources if position >= 0}
    residual_leaves = [
        NotNeeded()
        if id(x) not in used
        else x
        if saveable is None or saveable[position]
        else NotSaveable()
        for position, x in enumerate(leaves)
    ]
    if follows_jax_0_12():
        by_argument = tree.tree_unflatten(in_tree, residual_leaves)
    else:
        by_argument = in_tree.walk(lambda parts, _: tuple(parts), lambda x: x, residual_leaves)
    return list(by_argument), others, tuple(sources)


def flags_of_leaves(
    flags: PyTree, structure: PyTreeDef, argument: str, function: str
) -> list[bool]:
    """Return one boolean per leaf of a pytree, from a pytree prefix of booleans.

    Containers of the prefix may have other classes than those of the pytree.

    Args:
      flags: the prefix: a boolean, or a tree of booleans.
      structure: the structure of the pytree.
      argument: the name of the argument that has the flags, for messages.
      function: the name of its function, for messages.

    Raises:
      ValueError: if it is not a prefix, or a leaf is not a boolean.
    """
    where = f"the {argument} argument to jax.{function}"
    if isinstance(flags, bool):
        return [flags] * structure.num_leaves
    children, node = tree.tree_flatten(flags, is_leaf=lambda x: x is not flags)
    if tree.treedef_is_leaf(node):
        raise ValueError(
            f"{where} must be a tree of bools, like a tuple-tree (made of bools and tuples only), "
            f"but it has a leaf {flags!r} of type {type(flags).__name__}"
        )
    parts = structure.children()
    if tree.treedef_is_leaf(structure) or len(parts) != len(children):
        raise ValueError(
            f"{where} must form a tree prefix of the corresponding values (up to container types, "
            f"so containers need only match in their number of children), but {flags!r} has "
            f"{len(children)} children while the values have the structure {structure}"
        )
    return [
        flag
        for child, part in zip(children, parts, strict=True)
        for flag in flags_of_leaves(child, part, argument, function)
    ]


def _mirrored(structure: PyTreeDef, flags: Iterator[bool]) -> PyTree:
    """Return flags of the leaves of a pytree as a tree of tuples, lists and dicts."""
    if tree.treedef_is_leaf(structure):
        return next(flags)
    node = structure.node_data()
    children = [_mirrored(child, flags) for child in structure.children()]
    kind, data = (tuple, ()) if node is None else node
    if kind is dict:
        keys: Any = data
        return dict(zip(keys, children, strict=True))
    return children if kind is list else tuple(children)


class PullbackSpec(NamedTuple):
    """The auxiliary data of the pytree Pullback: its jaxpr, structures and avals."""

    # The jaxpr of the tangents, to transpose; its constants are the residuals.
    jaxpr: Jaxpr
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    # Per leaf of the arguments, whether its tangent is an input of the jaxpr.
    has_tangent: tuple[bool, ...]
    # Per output of the function, auxiliary ones included, whether it is an output of the jaxpr.
    present: tuple[bool, ...]
    out_avals: tuple[ShapedArray, ...]
    signature: Signature
    # Per residual, the index n of its argument leaf, or ~n among the other residuals.
    sources: tuple[int, ...]
    # Per leaf of the arguments, whether to compute its cotangent; None for all.
    wanted: tuple[bool, ...] | None = None


@dataclasses.dataclass(slots=True, eq=False, repr=False, weakref_slot=True)
class Pullback:
    """A pullback, as vjp returns it: a linear function of cotangents, and a pytree of residuals.

    Attributes:
      args_res: per argument of the function, a tree of tuples with the leaves that are residuals,
        and NotNeeded() for the others. Entries may be set, for example to restore an argument that
        was removed.
      opaque_residuals: the other residuals.
      references: per leaf of the arguments, the reference to which its cotangent is added, or None;
        empty if there are no references.
    """

    args_res: list[Value]
    opaque_residuals: list[Value]
    spec: PullbackSpec
    references: Sequence[Value] = ()

    @property
    def in_tree(self) -> PyTreeDef:
        """The pytree structure of the arguments of the differentiated function."""
        return self.spec.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """The pytree structure of the result of the differentiated function."""
        return self.spec.out_tree

    @property
    def jaxpr(self) -> Jaxpr:
        """The jaxpr of the tangents, which a call of the pullback transposes."""
        return self.spec.jaxpr

    @property
    def out_nzs(self) -> PyTree:
        """Booleans, in a tree like the result: whether a leaf depends on arguments with tangents.

        Containers other than tuples, lists and dicts are tuples in it.
        """
        return _mirrored(self.spec.out_tree, iter(self.spec.present))

    @property
    def residuals(self) -> list[Value]:
        """The residuals, in the order of the jaxpr's constants."""
        leaves = tree.tree_leaves(
            self.args_res, is_leaf=lambda x: type(x) is NotNeeded or type(x) is NotSaveable
        )
        missing = [n for n in self.spec.sources if n >= 0 and type(leaves[n]) is NotSaveable]
        if missing:
            signature = self.spec.signature
            numbers = ", ".join(map(str, dict.fromkeys(missing)))
            raise ValueError(
                "the VJP function was applied before restoring its not-saveable residuals: "
                f"arrays number {numbers} of the arguments of {signature.where}, which "
                "saveable_args excludes. Assign the arguments to entries of its `args_res` first."
            )
        others = self.opaque_residuals
        return [leaves[n] if n >= 0 else others[~n] for n in self.spec.sources]

    def with_refs(self, *wanted: PyTree) -> Callable[[PyTree], PyTree]:
        """Return a pullback that computes only some of the cotangents, or adds them to references.

        Args:
          wanted: a pytree like the arguments, of GradValue() and DontWant() markers and of mutable
            references, to which the cotangents of their arguments are added.

        Returns:
          A function of a cotangent like the result; its results have DidntWant() instead of
          cotangents that were not requested, and GradRef() instead of those that were added to
          references.

        Raises:
          ValueError: if `wanted` is not a pytree of markers and references like the arguments.
        """
        leaves, structure = tree.tree_flatten(wanted)
        references = [x if is_reference(getattr(x, "aval", None)) else None for x in leaves]
        if structure != self.in_tree or any(
            ref is None and type(x) not in (GradValue, DontWant)
            for x, ref in zip(leaves, references, strict=True)
        ):
            raise ValueError(
                "with_refs requires ad.GradValue(), ad.DontWant() or a reference for each array of "
                f"the arguments, whose structure is {self.in_tree}: got {wanted}."
            )
        flags = tuple([type(x) is GradValue for x in leaves])
        spec = self.spec._replace(wanted=flags)
        return Pullback(self.args_res, self.opaque_residuals, spec, references)

    @boundary
    def __call__(self, cotangent: PyTree) -> tuple[PyTree, ...]:
        return self.spec.in_tree.unflatten(self.flat(self._checked(cotangent)))

    @boundary
    def with_logs(self, cotangent: PyTree) -> tuple[tuple[PyTree, ...], Logs]:
        """Return the cotangents of the arguments, and what backward rules logged.

        Rules log by `custom_vjp.defvjp_with_logs`, `custom_gradient(with_logs=True)` and
        `HiPrim.vjp_bwd`. Under vmap, logged values have the batch axis in front.

        Args:
          cotangent: a pytree like the result.

        Returns:
          The tuple of cotangents that a call returns, and a dict of the logged pytrees by name.

        Raises:
          ValueError: if two rules log the same name, or one is in a loop, a branch or shard_map.
        """
        logs: Logs = {}
        leaves = self.flat(self._checked(cotangent), logs)
        return self.spec.in_tree.unflatten(leaves), logs

    def _checked(self, cotangent: PyTree) -> list[Value]:
        """Return the leaves of a cotangent.

        Raises:
          ValueError: if its structure, shapes or dtypes are not those of the result.
        """
        out_tree = self.spec.out_tree
        leaves, given_tree = tree.tree_flatten(cotangent)
        if given_tree != out_tree:
            raise ValueError(
                "unexpected tree structure.\n\nThe argument to a VJP function returned by "
                "`jax.vjp` must match the pytree structure of the result of the differentiated "
                f"function {self.spec.signature.where}: expected {out_tree}, got {given_tree}."
            )
        for leaf, aval in zip(leaves, self.spec.out_avals, strict=True):
            cotangent_aval, wanted = abstract(leaf), aval.to_cotangent_aval()
            # The cotangent of an integer is ignored, so it may have any dtype.
            fits = wanted.dtype in (float0, cotangent_aval.dtype)
            if cotangent_aval.shape != wanted.shape or not fits:
                raise ValueError(
                    "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                    f"{cotangent_aval.str_short()}, but expected {wanted.str_short()} because the "
                    "corresponding output of the differentiated function had JAX type "
                    f"{aval.str_short()}"
                )
        return leaves

    def flat(self, cotangents: Sequence[Cotangent], logs: Logs | None = None) -> list[Value]:
        """Return the flat cotangents of the primals, from the flat cotangents of the result.

        Args:
          cotangents: the flat cotangents of the result.
          logs: where to add what backward rules log; None drops it.
        """
        spec = self.spec
        jaxpr, present, wanted = spec.jaxpr, spec.present, spec.wanted
        residuals = self.residuals
        if logs is not None:
            program = program_for_logs(jaxpr, residuals)
            jaxpr, residuals = program.jaxpr, program.consts
        # Auxiliary outputs follow those of the result, and have no cotangents.
        missing = len(present) - len(cotangents)
        arriving = [*cotangents, *[None] * missing]
        arriving_cotangents = [
            Zero(atom.aval) if c is None or getattr(c, "dtype", None) == float0 else c
            for atom, c in zip(
                jaxpr.outvars, (c for c, p in zip(arriving, present, strict=True) if p), strict=True
            )
        ]
        references = self.references or [None] * len(spec.has_tangent)
        has_tangent = [ref for ref, flag in zip(references, spec.has_tangent, strict=True) if flag]
        linear = [
            UndefinedPrimal(var.aval, None if ref is None else RefAccumulator(ref.aval, ref))
            for var, ref in zip(jaxpr.invars, has_tangent, strict=True)
        ]
        with transformed(TRANSPOSE), collecting_in(logs):
            linear_cotangents = iter(transpose_jaxpr(jaxpr, residuals, linear, arriving_cotangents))
        cotangents = [
            next(linear_cotangents) if flag else Zero(aval.to_cotangent_aval())
            for aval, flag in zip(spec.in_avals, spec.has_tangent, strict=True)
        ]
        return [
            GradRef()
            if references[position] is not None
            else (as_array(instantiate(c)) if isinstance(c, Zero) else as_result(c))
            if wanted is None or wanted[position]
            else DidntWant()
            for position, c in enumerate(cotangents)
        ]

    def __repr__(self) -> str:
        return f"Pullback(of {self.spec.signature.where}, transposing\n{self.spec.jaxpr}\n)"


tree.register_pytree_node(
    Pullback,
    lambda f: ((f.args_res, f.opaque_residuals, f.references), f.spec),
    lambda spec, children: Pullback(children[0], children[1], spec, children[2]),
)
