"""The transformation sparsify, which lets functions of dense arrays accept sparse ones."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hlofront.base import tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, Params
from hlofront.core.aval import ShapedArray, register_value_type
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.trace import Trace, Tracer, current_trace, interpreting_with
from hlofront.sparse.bcoo import BCOO
from hlofront.sparse.bcsr import BCSR

if TYPE_CHECKING:
    from typing_extensions import TypeIs

SparseArray = BCOO | BCSR
# A sparse array, or a value that operations accept as a dense one.
SparseOrDense = SparseArray | ArrayLike
# A rule takes the operands, which are SparseValues or dense arrays, and the parameters.
SparseRule = Callable[..., Any]

# By the class of the sparse operands: primitive -> rule.
RULES: dict[type, dict[Primitive, SparseRule]] = {BCOO: {}, BCSR: {}}


class SparseValue:
    """A sparse array in a sparsified function.

    Attributes:
      array: the sparse array.
      positions: an object shared by all values with the same stored positions.
    """

    __slots__ = ("array", "positions")

    def __init__(self, array: SparseArray, positions: object = None):
        self.array = array
        self.positions = object() if positions is None else positions


class SparseTracer(Tracer):
    """A tracer of sparsify, which stands for a sparse array and looks like a dense one."""

    __slots__ = ("_value",)

    _trace: "SparseTrace"

    def __init__(self, trace: "SparseTrace", value: SparseValue):
        self._trace = trace
        self._value = value
        self.aval = ShapedArray(value.array.shape, value.array.dtype)

    def __repr__(self) -> str:
        return f"SparseTracer<{self.aval.str_short(True)}>"

    def _origin_message(self) -> str:
        return "It stands for a sparse array in a function that sparsify transforms."


register_value_type(SparseTracer, lambda tracer: tracer.aval)


class SparseTrace(Trace):
    """A trace that applies the rules of sparse arrays where an operand is one."""

    __slots__ = ("parent", "programs_of")

    def __init__(self, parent: Trace):
        self.parent = parent
        self.alive = True
        # Programs that captured values of this function; see `StagingTrace.programs_of`.
        self.programs_of: dict[Any, Any] = {}

    def lift(self, x: object) -> Any:
        return self.parent.lift(x)

    def wrap(self, x: object) -> object:
        """Return a sparse array or value as a tracer of this trace, and others unchanged."""
        if isinstance(x, SparseValue):
            return SparseTracer(self, x)
        return SparseTracer(self, SparseValue(x)) if isinstance(x, SparseArray) else x

    def split(self, x: object) -> Any:
        """Return the value that a tracer of this trace stands for, and others unchanged."""
        return x._value if type(x) is SparseTracer and x._trace is self else x

    def process(self, primitive: Primitive, args: tuple[object, ...], params: Params) -> object:
        operands = [self.split(x) for x in args]
        kinds = {type(x.array) for x in operands if isinstance(x, SparseValue)}
        if not kinds:
            return self.parent.process_as_current(primitive, args, params)
        program = _call_of(primitive, params)
        if program is not None:
            return program(*args)
        rule = RULES[kinds.pop()].get(primitive) if len(kinds) == 1 else None
        if rule is None:
            raise NotImplementedError(  # JAX raises this class.
                f"sparse rule for {primitive} is not implemented. To compute a dense "
                "result, convert its arguments with sparse.todense() first."
            )
        with interpreting_with(self.parent):
            results = rule(*operands, **params)
        if primitive.multiple_results:
            return [self.wrap(x) for x in results]
        return self.wrap(results)


def _call_of(primitive: Primitive, params: Params) -> Callable[..., object] | None:
    """Return the function that an operation runs if it only calls a program, else None."""
    parameter = _CALLS.get(primitive.name)
    program = None if parameter is None else params[parameter]
    if isinstance(program, ClosedJaxpr):
        return lambda *args: eval_jaxpr(program.jaxpr, program.consts, *args)
    return program


# Calls by the parameter that holds their program; rules of derivatives in them have no effect.
_CALLS = {"jit": "jaxpr", "closed_call": "jaxpr", "custom_jvp_call": "call_jaxpr"}


def evaluate(program: ClosedJaxpr, *args: SparseOrDense) -> list[SparseOrDense]:
    """Evaluate a program of dense arrays on arguments some of which may be sparse."""
    return run(lambda *xs: eval_jaxpr(program.jaxpr, program.consts, *xs), args)


def run(
    function: Callable[..., Sequence[object]], args: Sequence[SparseOrDense]
) -> list[SparseOrDense]:
    """Call a function of dense arrays on sparse ones, and return its flat results."""
    trace = SparseTrace(current_trace())
    with interpreting_with(trace):
        results = function(*[trace.wrap(x) for x in args])
    trace.alive = False
    values = [trace.split(x) for x in results]
    return [x.array if isinstance(x, SparseValue) else x for x in values]


def is_sparse(x: object) -> "TypeIs[SparseArray]":
    """Return whether a value is a sparse array of a format that sparsify knows."""
    return isinstance(x, SparseArray)


def sparsify(f: Callable[..., PyTree], use_tracer: bool = False) -> Callable[..., PyTree]:
    """Return a function that accepts sparse arrays where `f` accepts dense ones.

    `f` may apply the operations of this module to sparse arrays: products, sums, slices, functions
    that are zero at zero. Results are sparse where theirs are. An operation whose result would be
    dense is refused; `sparse.todense` in `f` allows it.

        >>> from hlofront.experimental import sparse
        >>> m = sparse.BCOO.fromdense(jnp.eye(3))
        >>> sparse.sparsify(lambda m, x: -m @ x)(m, jnp.arange(1.0, 4.0))
        Array([-1., -2., -3.], dtype=float32)

    Args:
      f: a function of pytrees of arrays. Keyword arguments are passed on unchanged.
      use_tracer: has no effect: operations are always replaced while `f` runs.

    Raises:
      NotImplementedError: when called, for operations without a sparse form.
    """

    @boundary
    def sparsified(*args: PyTree, **kwargs: PyTree) -> PyTree:
        leaves, in_tree = tree.tree_flatten(args, is_sparse)
        out_tree: Any = None

        def flat(*values: object) -> Sequence[PyTree]:
            nonlocal out_tree
            result = f(*in_tree.unflatten(values), **kwargs)
            results, out_tree = tree.tree_flatten(result, is_sparse)
            return results

        results = run(flat, leaves)
        return out_tree.unflatten(results)

    named_as(sparsified, f)
    sparsified.__doc__ = getattr(f, "__doc__", None)
    return sparsified
