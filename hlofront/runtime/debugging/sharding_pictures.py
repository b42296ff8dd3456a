"""debug.visualize_sharding: tables that show which devices hold which part of an array."""

# rich, which is optional, has no types here.
# pyright: basic

import colorsys
import itertools
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array
from hlofront.bridge.client import Sharding
from hlofront.core.rules import run
from hlofront.core.trace import process
from hlofront.primitives.sharding.placing import inspect_sharding_p

# ---- inspection ----------------------------------------------------------------------------------


@boundary
def inspect_array_sharding(value: PyTree, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of an array, now or when its program is compiled.

    Within `jit`, XLA chooses the shardings of most values. The function is called with that choice
    each time that XLA compiles the program, not when the program runs.

    Example::

        @jax.jit
        def f(x):
            y = x @ x.T
            jax.debug.inspect_array_sharding(y, callback=print)
            return y

    Args:
      value: an array, or a pytree of arrays; the function is called for each of them.
      callback: the function. It takes a NamedSharding over the mesh of the program's arguments and
        constraints, or a GSPMDSharding where there is no mesh or it has no such spec.

    Raises:
      AttributeError: if a value has no sharding, as NumPy arrays and numbers do.
      JaxRuntimeError: if the function raises an exception during a compilation; it is the cause.
    """
    for leaf in tree.tree_leaves(value):
        process(inspect_sharding_p, (leaf,), {"callback": callback})


@run(inspect_sharding_p)
def _(x: Any, *, callback: Callable[[Sharding], None]) -> list[object]:
    if not hasattr(x, "sharding"):
        raise AttributeError(
            f"a {type(x).__name__} has no sharding: put it on devices with device_put"
        )
    callback(x.sharding)
    return []


# A function from a number between 0 and 1 to red, green, blue and opacity between 0 and 1.
Color = tuple[float, float, float, float]
ColorMap = Callable[[float], Color]

# The lines of a table of scale 1, with the line below each row, and the columns of one line.
_LINES = 10
_COLUMNS_PER_LINE = 2.5
# The shades of the default colors, and the number of devices after which they repeat.
_SHADES = ((0.55, 0.45), (0.35, 0.75), (0.65, 0.3), (0.45, 0.6))
_MAX_HUES = 8


class _Cell(NamedTuple):
    """A part of an array: the devices that hold it, and their color."""

    text: str
    color: Color


@boundary
def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Print a table that shows which devices hold which part of an array.

    Within `jit` it is printed when XLA has chosen the sharding: each time that it compiles.

    Args:
      arr: an array with one axis or two.
      **kwargs: the options of `visualize_sharding`.

    Raises:
      ValueError: if the array has no axis, or more than two.
    """
    shape = arr.shape
    _check_rank(shape)
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(shape, s, **kwargs))


@boundary
def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Print a table that shows which devices hold which part of an array of this shape.

    The rows are of the first axis, the columns of the second. On a terminal, and if the package
    rich is installed, the cells have colors; elsewhere the table is plain text.

    With four devices, `jax.debug.visualize_sharding((8, 8), NamedSharding(mesh, P("x", "y")))`
    prints::

        ┌───────┬───────┐
        │ CPU 0 │ CPU 1 │
        ├───────┼───────┤
        │ CPU 2 │ CPU 3 │
        └───────┴───────┘

    Args:
      shape: the sizes of one axis or two.
      sharding: how the array is split.
      use_color: whether cells have colors where they can have them.
      scale: the size of the table, as a factor.
      min_width: the least width of a column.
      max_width: the greatest width of the table.
      color_map: from the place of a cell's first device among all, between 0 and 1, to its color.

    Raises:
      IndivisibleError: if an axis is not a multiple of the number of its parts.
      ValueError: if the shape has no axis, or more than two.
    """
    rows = _cells(tuple(shape), sharding, color_map or _default_color)
    height = max(1, int(_LINES * scale) // len(rows) - 1) if len(shape) == 2 else 1
    aspect = shape[1] / max(shape[0], 1) if len(shape) == 2 else 1.0
    wanted = int(int(_LINES * scale) * aspect * _COLUMNS_PER_LINE) // len(rows[0])
    widest = (max_width - 1) // len(rows[0]) - 1
    longest = max(len(cell.text) for row in rows for cell in row)
    width = max(1, min(max(wanted, min_width, longest + 2) - 2, widest))
    console = _terminal() if use_color else None
    if console is None:
        print(_plain(rows, width, height))
    else:
        console.print(_colored(rows, width, height))


def _check_rank(shape: Sequence[int]) -> None:
    if len(shape) not in (1, 2):
        raise ValueError(
            f"visualize_sharding shows arrays with 1 and 2 axes: got the shape {tuple(shape)}. "
            "Show a part of the array, such as x[0]"
        )


def _cells(shape: tuple[int, ...], sharding: Sharding, color_map: ColorMap) -> list[list[_Cell]]:
    """Return the parts of an array, in rows."""
    _check_rank(shape)
    holders: dict[tuple[int, ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        holders.setdefault(tuple(part.start or 0 for part in index), []).append(device)
    count = len(sharding.device_set)
    in_order = sorted(sharding.device_set, key=lambda device: device.id)
    starts = [sorted(set(axis)) for axis in zip(*holders, strict=True)]
    cells: list[_Cell] = []
    for start in itertools.product(*starts):
        devices = sorted(holders[start], key=lambda device: device.id)
        ids = ",".join(str(device.id) for device in devices)
        color = color_map(in_order.index(devices[0]) / count)
        cells.append(_Cell(f"{devices[0].platform.upper()} {ids}", color))
    columns = len(starts[-1])
    return [cells[i : i + columns] for i in range(0, len(cells), columns)]


def _lines_of(text: str, width: int, height: int) -> list[str]:
    """Return the lines of a cell, with its text centered, and broken after commas if necessary."""
    spaced = text.replace(",", ", ")
    lines = [text] if len(text) <= width else textwrap.wrap(spaced, width)
    above = max(0, (height - len(lines)) // 2)
    below = max(0, height - len(lines) - above)
    return (
        [" " * width] * above + [_centered(line, width) for line in lines] + [" " * width] * below
    )


def _centered(line: str, width: int) -> str:
    left = (width - len(line)) // 2
    return " " * left + line + " " * (width - len(line) - left)


def _plain(rows: list[list[_Cell]], width: int, height: int) -> str:
    """Return the table as text, with lines between cells."""
    columns = len(rows[0])

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join(["─" * width] * columns) + right

    parts: list[str] = []
    for row in rows:
        cells = [_lines_of(cell.text, width, height) for cell in row]
        lines = itertools.zip_longest(*cells, fillvalue=" " * width)
        parts.append("\n".join(f"│{'│'.join(line)}│" for line in lines))
    between = "\n" + rule("├", "┼", "┤") + "\n"
    return "\n".join([rule("┌", "┬", "┐"), between.join(parts), rule("└", "┴", "┘")])


def _terminal() -> Any:
    """Return rich's console on the terminal, or None without a terminal or rich."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console()


def _colored(rows: list[list[_Cell]], width: int, height: int) -> Any:
    """Return the table as rich draws it, with cells in color."""
    from rich.text import Text

    table = Text()
    for row in rows:
        cells = [(_lines_of(cell.text, width, height), cell.color) for cell in row]
        for number in range(max(len(lines) for lines, _ in cells)):
            for lines, color in cells:
                line = lines[number] if number < len(lines) else " " * width
                table.append(f" {line} ", style=_style(color))
            table.append("\n")
    table.rstrip()
    return table


def _style(color: Color) -> str:
    """Return rich's style of a background color, with dark text on a light one."""
    red, green, blue = (round(255 * part) for part in color[:3])
    is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 150
    return f"{'black' if is_light else 'white'} on rgb({red},{green},{blue})"


def _default_color(position: float) -> Color:
    """Return a color for a position between 0 and 1; neighboring ones differ in hue and shade."""
    number = int(position * _MAX_HUES * len(_SHADES))
    lightness, saturation = _SHADES[number % len(_SHADES)]
    return (*colorsys.hls_to_rgb(position, lightness, saturation), 1.0)
