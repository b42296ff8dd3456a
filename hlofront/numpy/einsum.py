"""Einstein summation: its notation is parsed, and computed by dot_general."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, lattice_result
from hlofront.base.elements import bool_, uint32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sharding.requested_shardings import permuted, requested
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.products.contraction import with_weak_type
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import operands as checked_operands
from hlofront.primitives.arrays import creation, reducing
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze, transpose
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg.dot_general import dot_general
from hlofront.primitives.sharding.resharding import split_as
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.core.aval import ShapedArray
    from hlofront.primitives.linalg.dot_general import PrecisionLike

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# ---- notation ----------------------------------------------------------------------------------


class Notation(NamedTuple):
    """The parsed subscripts of an einsum: one letter per axis of the operands and the result."""

    terms: tuple[str, ...]
    result: str


def _letter(index: int) -> str:
    """Return a letter for the label with this number; letters sort as numbers do."""
    return _LETTERS[index] if index < len(_LETTERS) else chr(index + 192)


def _interleaved(args: Sequence[Any]) -> tuple[str, tuple[ArrayLike, ...]]:
    """Return the subscripts and operands of a call `einsum(x, [0, 1], y, [1, 2], [0, 2])`.

    Raises:
      TypeError: if an argument in the position of a list of labels is not a list.
    """
    lists = [*args[1::2], *(args[-1:] if len(args) % 2 else ())]
    for labels in lists:
        if not isinstance(labels, list | tuple):
            raise TypeError(
                "einsum without a string of subscripts requires each operand followed by the list "
                f"of its labels, as in einsum(x, [0, 1], y, [1, 2], [0, 2]); got {type(labels)} "
                "for a list."
            )
    if len(args) == 1:
        raise TypeError("einsum requires the list of its labels after each operand; got none.")
    known = {label for labels in lists for label in labels if label is not Ellipsis}
    letters = {label: _letter(i) for i, label in enumerate(sorted(known))}
    terms = [
        "".join("..." if label is Ellipsis else letters[label] for label in labels)
        for labels in lists
    ]
    if len(args) % 2:
        return ",".join(terms[:-1]) + "->" + terms[-1], tuple(args[:-1:2])
    return ",".join(terms), tuple(args[::2])


@lru_cache(maxsize=1024)
def parse(subscripts: str, ranks: tuple[int, ...]) -> Notation:
    """Parse einsum subscripts for operands of these ranks.

    Each axis of an ellipsis gets a letter of its own. Without an arrow the result has the axes of
    the ellipsis and then, in order, the letters that occur once.

    Raises:
      ValueError: if the subscripts are malformed, or do not fit the operands.
    """
    text = "".join(subscripts.split())
    before, arrow, after = text.partition("->")
    if "->" in after or ">" in before + after or "-" in before + after:
        raise ValueError(
            f"Subscripts can only contain one '->', and no other '-' or '>'. Got {subscripts!r}."
        )
    terms = before.split(",")
    for term in (*terms, after):
        if "." in term.replace("...", "", 1):
            raise ValueError(
                f"Invalid Ellipses. Got {term!r} in {subscripts!r}: an ellipsis is three dots, at "
                "most once per operand."
            )
    if len(terms) != len(ranks):
        raise ValueError(
            f"Number of einsum subscripts, {len(terms)}, must be equal to the number of operands, "
            f"{len(ranks)}."
        )
    missing = []
    for position, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        ellipsis_rank = rank - len(term.replace("...", ""))
        if ellipsis_rank < 0 or (ellipsis_rank and "..." not in term):
            raise ValueError(
                f"Einstein sum subscript {term!r} does not contain the correct number of indices "
                f"for operand {position}, which has {rank} axes."
            )
        missing.append(ellipsis_rank if "..." in term else 0)
    used = set(before) | set(after)
    most = max(missing, default=0)
    spare = [letter for letter in map(_letter, range(len(used) + most)) if letter not in used]
    ellipsis = "".join(spare[:most])
    named = tuple(
        [
            term.replace("...", ellipsis[most - count :])
            for term, count in zip(terms, missing, strict=True)
        ]
    )
    if arrow:
        result = after.replace("...", ellipsis)
        for letter in result:
            if result.count(letter) > 1:
                raise ValueError(
                    f"Output character {letter!r} appeared more than once in the output."
                )
            if not any(letter in term for term in named):
                raise ValueError(f"Output character {letter!r} did not appear in the input")
    else:
        letters = "".join(before.replace(".", "").split(","))
        result = ellipsis + "".join(
            letter for letter in sorted(set(letters)) if letters.count(letter) == 1
        )
    return Notation(named, result)


def _check_sizes(notation: Notation, shapes: Sequence[tuple[int, ...]]) -> None:
    known: dict[str, int] = {}
    for position, (term, shape) in enumerate(zip(notation.terms, shapes, strict=True)):
        own: dict[str, int] = {}
        for letter, size in zip(term, shape, strict=True):
            others = own.setdefault(letter, size), known.get(letter, size)
            # Axes of different operands broadcast, but two axes of one operand do not.
            if others[0] != size or (others[1] != size and 1 not in (others[1], size)):
                raise ValueError(
                    f"Size of label {letter!r} for operand {position} ({size}) does not match "
                    f"previous terms ({others[0] if others[0] != size else others[1]})."
                )
            if size != 1 or letter not in known:
                known[letter] = size


# ---- the order of products ---------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _plan(
    subscripts: str,
    shapes: tuple[tuple[int, ...], ...],
    optimize: bool | str | tuple[tuple[int, ...], ...],
) -> tuple[Notation, tuple[tuple[int, ...], ...]]:
    """Return the parsed notation, and the operand positions that each step multiplies.

    Each product is appended to the list of operands.
    """
    notation = parse(subscripts, tuple(map(len, shapes)))
    _check_sizes(notation, shapes)
    count = len(shapes)
    if isinstance(optimize, tuple):
        path = tuple([tuple(map(int, step)) for step in optimize])
    elif count <= 2:
        path = (tuple(range(count)),)
    elif optimize is False or any(map(has_symbolic_size, shapes)):
        path = ((0, 1),) * (count - 1)
    else:
        # The optimizer is imported lazily, as few programs need it.
        import opt_einsum

        text = ",".join(notation.terms) + "->" + notation.result
        steps, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=optimize)
        path = tuple(map(tuple, steps))
    for step in path:
        if len(step) > 2:
            raise NotImplementedError(  # JAX raises this class.
                "einsum does not support simultaneous contraction of 3 or more operands, as step "
                f"{step} of the path {list(path)} asks for. Give steps of two operands."
            )
    return notation, path


# ---- sums of products --------------------------------------------------------------------------


def _sum(x: ArrayLike, axes: Sequence[int]) -> ArrayLike:
    if not axes:
        return x
    if typeof(x).dtype == bool_:
        return reducing.reduce_or(x, axes)
    return reducing.reduce_sum(x, axes)


def _without_repeated(x: ArrayLike, term: str, kept_letters: str) -> tuple[ArrayLike, str]:
    """Replace axes that share a letter by their diagonal; sum it if not in `kept_letters`."""
    for letter in dict.fromkeys(term):
        axes = tuple([i for i, other in enumerate(term) if other == letter])
        if len(axes) == 1:
            continue
        aval = typeof(x)
        sizes = tuple([aval.shape[i] for i in axes])
        indices = [creation.broadcasted_iota(uint32, sizes, i) for i in range(len(axes))]
        on = compare.eq(indices[0], indices[1])
        for i in range(2, len(axes)):
            on = elementwise.bitwise_and(on, compare.eq(indices[i - 1], indices[i]))
        if sizes != aval.shape:
            on = broadcast_in_dim(on, aval.shape, axes)
        zero = creation.full_like(x, 0)
        folded = axes[:-1] if letter in kept_letters else axes
        x = _sum(compare.select_n(on, zero, x), folded)
        term = "".join(other for i, other in enumerate(term) if i not in folded)
    return x, term


def _without_unneeded(x: ArrayLike, term: str, kept_letters: str) -> tuple[ArrayLike, str]:
    """Return the operand with one axis per letter, summed over letters not in `kept_letters`."""
    axes = [
        i for i, letter in enumerate(term) if letter not in kept_letters and term.count(letter) == 1
    ]
    x = _sum(x, axes)
    term = "".join(letter for i, letter in enumerate(term) if i not in axes)
    return _without_repeated(x, term, kept_letters)


def _without_ones(
    x: ArrayLike, term: str, other: str, sizes: tuple[int, ...]
) -> tuple[ArrayLike, str]:
    """Return the operand without axes of size 1 that broadcast along axes of the other operand."""
    size_of = dict(zip(other, sizes, strict=True))
    shape = typeof(x).shape
    axes = [i for i, letter in enumerate(term) if shape[i] == 1 != size_of.get(letter, 1)]
    if not axes:
        return x, term
    return squeeze(x, axes), "".join(t for i, t in enumerate(term) if i not in axes)


class Options(NamedTuple):
    """The settings of the products of an einsum."""

    precision: PrecisionLike
    dtype: DType
    dot: Callable[..., Array]
    # The parameter of equations that says how the result of the einsum is split, or None.
    out_sharding: Any


def _pair(
    lhs: tuple[ArrayLike, str],
    rhs: tuple[ArrayLike, str],
    needed: str,
    result: str | None,
    options: Options,
) -> tuple[Array, str]:
    """Multiply two operands by one dot_general, summing over letters not in `needed`.

    Args:
      lhs: an operand, and its letters.
      rhs: the other operand, and its letters.
      needed: the letters that are needed later.
      result: the required order of the result's letters, or None for any.
      options: the settings of the product.

    Returns:
      The product, and its letters.
    """
    (a, s), (b, t) = lhs, rhs
    shapes = typeof(a).shape, typeof(b).shape
    a, s = _without_ones(a, s, rhs[1], shapes[1])
    b, t = _without_ones(b, t, lhs[1], shapes[0])
    a, s = _without_unneeded(a, s, needed + t)
    b, t = _without_unneeded(b, t, needed + s)
    shared = set(s) & set(t)
    batch = [letter for letter in result or s if letter in shared and letter in needed]
    summed = sorted(letter for letter in shared if letter not in needed)
    left = [letter for letter in s if letter not in shared]
    right = [letter for letter in t if letter not in shared]
    names = "".join([*batch, *left, *right])
    # The later operand is the left one, unless the other order saves a transpose.
    if "".join([*batch, *right, *left]) == (names if result is None else result):
        a, s, left, b, t, right = b, t, right, a, s, left
    product = options.dot(
        a,
        b,
        (
            (tuple(map(s.index, summed)), tuple(map(t.index, summed))),
            (tuple(map(s.index, batch)), tuple(map(t.index, batch))),
        ),
        options.precision,
        preferred_element_type=options.dtype,
        **_sharding_of_dot(options.out_sharding, result, [*batch, *left, *right]),
    )
    return product, "".join([*batch, *left, *right])


def _sharding_of_dot(
    requested_sharding: object, result: str | None, letters: Sequence[str]
) -> dict[str, Any]:
    """Return the keyword out_sharding of a dot whose result is transposed to these letters."""
    if requested_sharding is None or result is None:
        return {}
    return {
        "out_sharding": permuted(requested_sharding, [result.index(letter) for letter in letters])
    }


def _common_dtype(avals: Sequence[ShapedArray]) -> np.dtype:
    first = avals[0].dtype
    if all(aval.dtype is first for aval in avals):
        return first
    return lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))[0]


@operation(
    static_argnames=(
        "subscripts",
        "optimize",
        "precision",
        "preferred_element_type",
        "dot",
        "out_sharding",
    )
)
def _einsum(
    *operands: ArrayLike,
    subscripts: str,
    optimize: bool | str | tuple[tuple[int, ...], ...],
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
    dot: Callable[..., Array],
    out_sharding: OutSharding,
) -> Array:
    """Compute the sums of products that the subscripts describe."""
    requested_sharding = requested("einsum", out_sharding)
    if requested_sharding is not None and len(operands) > 2:
        compute = partial(
            _einsum.when_traced,
            subscripts=subscripts,
            optimize=optimize,
            precision=precision,
            preferred_element_type=preferred_element_type,
            dot=dot,
            out_sharding=None,
        )
        return with_sharding("einsum", compute, operands, out_sharding)
    values, avals = checked_operands("einsum", operands)
    notation, path = _plan(subscripts, tuple([aval.shape for aval in avals]), optimize)
    if preferred_element_type is None:
        dtype = _common_dtype(avals)
    else:
        dtype = check_user_dtype_supported(preferred_element_type, "einsum")
    options = Options(precision, dtype, dot, requested_sharding)
    todo = list(zip(values, notation.terms, strict=True))
    for number, step in enumerate(path):
        # The last operand is removed first, as a removal shifts later operands.
        taken = [todo.pop(i) for i in sorted(step, reverse=True)]
        last = number == len(path) - 1
        kept_letters = notation.result if last else notation.result + "".join(t for _, t in todo)
        if len(taken) == 2:
            todo.append(_pair(*taken, kept_letters, notation.result if last else None, options))
        else:
            todo.extend(_without_unneeded(x, term, kept_letters) for x, term in taken)
    ((x, term),) = todo
    x = transpose(x, tuple(map(term.index, notation.result)))
    if typeof(x).dtype != dtype:
        x = convert(x, dtype, False)
    return split_as(with_weak_type(x, preferred_element_type, avals), requested_sharding)


@like(np.einsum)
def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[int],
    out: None = None,
    optimize: str | bool | Sequence[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] = dot_general,
    out_sharding: OutSharding = None,
) -> Array:
    """Compute sums of products in Einstein's notation: `einsum("ij,jk->ik", x, y)`.

    A product of two arrays is one dot_general, after sums over letters that only one of them has.
    More arrays are multiplied two at a time, in the order that opt_einsum finds.

    Args:
      subscripts: one letter per axis of each operand, and after an arrow those of the result;
        "..." stands for axes that broadcast. Without an arrow the result has the letters that occur
        once. Or alternating operands and lists of labels: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.
      *operands: arrays.
      out: must be None.
      optimize: the order in which three or more operands are multiplied: "auto", "optimal",
        "greedy" or another name that opt_einsum knows; True for the best order, False for the
        written one; or a path, a list of pairs of positions, with each product appended.
      precision: see `lax.Precision`.
      preferred_element_type: the dtype of the sums and of the result; by default the operands'
        common one.
      _dot_general: the function to use instead of `lax.dot_general`.
      out_sharding: the sharding of the result.

    Raises:
      ValueError: if the subscripts are malformed, or do not fit the operands.

    Example:
      >>> jnp.einsum('ij,j->i', jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
      Array([12, 34], dtype=int32)
    """
    refuse_out("einsum", out)
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    return _einsum(
        *operands,
        subscripts=subscripts,
        optimize=_hashable(optimize),
        precision=precision,
        preferred_element_type=preferred_element_type,
        dot=_dot_general,
        out_sharding=out_sharding,
    )


def _hashable(
    optimize: bool | str | Sequence[tuple[int, ...]],
) -> bool | str | tuple[tuple[int, ...], ...]:
    if not isinstance(optimize, list | tuple):
        return optimize
    steps = optimize[1:] if optimize and optimize[0] == "einsum_path" else optimize
    return tuple([tuple(step) for step in steps])


@like(np.einsum_path)
def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[int],
    optimize: str | bool | Sequence[tuple[int, ...]] = "auto",
) -> tuple[list[tuple[int, ...]], object]:
    """Return the order in which `einsum` would multiply, and a report of its cost.

    Args:
      subscripts: as for `einsum`.
      *operands: arrays; only their shapes matter.
      optimize: as for `einsum`.

    Returns:
      A list of the positions of operands, step by step, and opt_einsum's report.

    Example:
      >>> x, y = jnp.ones((8, 2)), jnp.ones((2, 8))
      >>> jnp.einsum_path("ij,jk,kl->il", x, y, x)[0]
      [(1, 2), (0, 1)]
    """
    import opt_einsum

    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    shapes = [typeof(x).shape for x in operands]
    notation = parse(subscripts, tuple(map(len, shapes)))
    text = ",".join(notation.terms) + "->" + notation.result
    return opt_einsum.contract_path(text, *shapes, shapes=True, optimize=optimize)
