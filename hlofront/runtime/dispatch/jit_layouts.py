"""The layouts of jit: the Formats among its in_shardings and out_shardings, as layout modes."""

from collections.abc import Sequence

from hlofront.base.tree import KeyPath, keystr, tree_flatten, tree_flatten_with_path
from hlofront.base.tree_prefixes import broadcast_prefix, is_none
from hlofront.core.aval import ShapedArray
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt.layouts import Format, LayoutChoice
from hlofront.runtime.compilation.traced_program import TracedProgram
from hlofront.transforms.flatten import ShapeDtypeStruct


class UnspecifiedValue:
    """The class of UNSPECIFIED, with which packages leave a sharding to jit."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = UnspecifiedValue()


def without_formats(tree: object) -> object:
    """Return a tree of shardings with each Format replaced by its sharding, UNSPECIFIED by None."""
    leaves, structure = tree_flatten(tree, is_leaf=is_none)
    return structure.unflatten([_sharding_of(leaf) for leaf in leaves])


def _sharding_of(leaf: object) -> object:
    if isinstance(leaf, Format):
        return leaf.sharding
    return None if leaf is UNSPECIFIED else leaf


class JitLayouts:
    """The layouts requested for the arguments and results of a jitted function, as trees.

    Args:
      inputs: the in_shardings of jit, a prefix of the tuple of positional arguments.
      outputs: the out_shardings of jit, a prefix of the result.
    """

    __slots__ = ("_inputs", "_key", "_outputs")

    def __init__(self, inputs: object, outputs: object):
        self._inputs = _layouts_of(inputs)
        self._outputs = _layouts_of(outputs)
        leaves, structure = tree_flatten((self._inputs, self._outputs), is_leaf=is_none)
        self._key = tuple(leaves), structure

    @staticmethod
    def of_user(inputs: object, outputs: object) -> "JitLayouts | None":
        """Return the layouts that a user passed to jit; None if there is no Format with one."""
        layouts = JitLayouts(inputs, outputs)
        return layouts if any(leaf is not None for leaf in layouts._key[0]) else None

    def __eq__(self, other: object) -> bool:
        return type(other) is JitLayouts and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def requested(self) -> tuple[tuple[object, ...], object]:
        """The layouts, with the structure of the trees that they are leaves of."""
        return self._key

    def modes_of(self, traced: TracedProgram) -> LayoutModes:
        """Return the layout modes of a program's inputs and outputs.

        Raises:
          ValueError: if a layout does not have the axes of its argument or result.
        """
        args, kwargs = traced.in_tree.unflatten(traced.program.in_avals)
        inputs = _modes(self._inputs, tuple(args), "argument")
        inputs += (None,) * len(tree_flatten(kwargs)[0])
        result = traced.out_tree.unflatten(traced.program.out_avals)
        return LayoutModes(inputs, _modes(self._outputs, result, "result"))


def requested_modes(
    layouts: JitLayouts | None, traced: TracedProgram, leaves: Sequence[object] = ()
) -> LayoutModes | None:
    """Return the layout modes of a program; None if neither jit nor an argument requests one.

    Args:
      layouts: the layouts requested of jit, which take precedence over those of arguments.
      traced: the program.
      leaves: its flat arguments, or descriptions of them, which may have a Format.
    """
    formats = [getattr(x, "format", None) if type(x) is ShapeDtypeStruct else None for x in leaves]
    if not any(formats):
        return None if layouts is None else layouts.modes_of(traced)
    program = traced.program
    no_modes = LayoutModes((None,) * len(program.in_avals), (None,) * len(program.out_avals))
    requested = no_modes if layouts is None else layouts.modes_of(traced)
    inputs = tuple(
        [
            mode or (each and each.layout and each.layout.mode(aval, "an argument of jit"))
            for mode, each, aval in zip(requested.inputs, formats, program.in_avals, strict=True)
        ]
    )
    return LayoutModes(inputs, requested.outputs)


def _layouts_of(tree: object) -> object:
    leaves, structure = tree_flatten(tree, is_leaf=is_none)
    return structure.unflatten([x.layout if isinstance(x, Format) else None for x in leaves])


def _modes(prefix: object, tree: object, what: str) -> tuple[str | None, ...]:
    layouts: Sequence[LayoutChoice] = broadcast_prefix(prefix, tree, is_none)
    leaves: Sequence[tuple[KeyPath, ShapedArray]] = tree_flatten_with_path(tree)[0]
    return tuple(
        [
            layout and layout.mode(aval, f"the {what} of jit at {keystr(path) or 'its root'}")
            for layout, (path, aval) in zip(layouts, leaves, strict=True)
        ]
    )
