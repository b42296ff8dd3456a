"""pl.select_ref: one of several references, chosen when the kernel runs, to copy from or to."""

from collections.abc import Sequence

from hlofront.base.typing import ArrayLike, DType
from hlofront.core.aval import typeof
from hlofront.primitives.references.references import RefIndex, RefLike


class SelectedRef:
    """One of several references of the same type, for copies.

    Attributes:
      index: the number of the reference: a scalar of integers.
      refs: the references, or views `ref.at[...]`.
    """

    __slots__ = ("index", "refs")

    def __init__(self, index: ArrayLike, refs: Sequence[RefLike]):
        types = [(ref.shape, ref.dtype) for ref in refs]
        if any(each != types[0] for each in types):
            raise TypeError(
                "Cannot select from Refs of different types: "
                f"{', '.join(f'{dtype.name}{list(shape)}' for shape, dtype in types)}. Take equal "
                "parts by ref.at[...]"
            )
        self.index = index
        self.refs = tuple(refs)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.refs[0].shape

    @property
    def dtype(self) -> DType:
        return self.refs[0].dtype

    @property
    def at(self) -> "_Indexer":
        return _Indexer(self)


class _Indexer:
    """The value of `selected.at`, which is indexed to get a view of the selected reference."""

    __slots__ = ("ref",)

    def __init__(self, ref: SelectedRef):
        self.ref = ref

    def __getitem__(self, index: RefIndex) -> SelectedRef:
        parts = [ref.at[index] for ref in self.ref.refs]  # pyright: ignore[reportAttributeAccessIssue]
        return SelectedRef(self.ref.index, parts)


def select_ref(idx: ArrayLike, *refs: RefLike) -> SelectedRef:
    """Return one of several references, chosen when the kernel runs, to copy from or to.

    Args:
      idx: the number of the reference: a scalar of integers.
      *refs: references of the same shape and dtype, or views `ref.at[...]`.

    Returns:
      An object for `pltpu.make_async_copy` and the other functions that copy; it has `at`.

    Raises:
      ValueError: for fewer than two references, and an index that is not a scalar.
      TypeError: if the references have different shapes or dtypes.
    """
    if len(refs) < 2:
        raise ValueError(
            f"At least two refs are required for pl.select_ref: got {len(refs)}. Copy from or to "
            "the reference itself"
        )
    if typeof(idx).shape:
        raise ValueError(f"pl.select_ref takes a scalar index, got {typeof(idx).str_short()}")
    return SelectedRef(idx, refs)
