"""The emitter of StableHLO at a position of a function: operations, regions, constants, tokens."""

# The stubs of jaxlib do not name the types of the results of operations and lists.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Concatenate, Self

import numpy as np

from hlofront.base.dtypes import float0
from hlofront.base.elements import ExtendedDType, NumPyDType
from hlofront.base.typing import ArrayLike, NumPyArray
from hlofront.bridge.mlir import Operation, Value, Values, ir
from hlofront.core.aval import AbstractValue, ShapedArray, token_aval
from hlofront.core.effects import Effect, ordered_effects
from hlofront.core.jaxpr import Atom, Equation, Literal
from hlofront.core.names import NameStack, path_of
from hlofront.core.primitive import Primitive
from hlofront.core.sizes.symbolic import SizeExpression, has_symbolic_size
from hlofront.lowering.core import types, unknown_sizes
from hlofront.lowering.core.inlined_program import InlinedProgram
from hlofront.lowering.core.known_nans import has_nan
from hlofront.lowering.core.module_state import ModuleState

_create = Operation.create


class Emitter:
    """The base class of the builder, which emits operations and does not handle jaxprs."""

    __slots__ = (
        "avals_in",
        "avals_out",
        "constants",
        "defined_for",
        "equation",
        "hoisted",
        "ip",
        "is_at_top",
        "loc",
        "module",
        "origin",
        "prefix",
        "program",
        "tokens",
    )

    # The equation that is being lowered, and the avals of its operands and results: ShapedArrays,
    # except for the few operations on tokens.
    equation: Equation | None
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]

    def __init__(
        self,
        module: ModuleState,
        ip: ir.InsertionPoint,
        prefix: NameStack,
        hoisted: dict[int, Value],
        loc: ir.Location | None = None,
    ):
        self.module = module
        self.ip = ip
        # The name stack of the function: ("jit(f)", "attention").
        self.prefix: NameStack = prefix
        # id of a large constant -> the function argument that carries it.
        self.hoisted = hoisted
        if loc is None:
            loc = module.locations.named(path_of(prefix)) if prefix else module.locations.unknown
        self.loc: ir.Location = loc
        # Constants and their broadcasts, cached per block.
        self.constants: dict[Hashable, Value] = {}
        # Per ordered effect, the token of its latest operation.
        self.tokens: dict[Effect, Value] = {}
        self.avals_in = self.avals_out = ()
        self.equation = None
        # The program whose equations are being emitted; None in regions of a single equation.
        self.program: InlinedProgram | None = None
        # The location of the user's operation that the equations being lowered implement; None if
        # they are the user's own.
        self.origin: ir.Location | None = None
        # The equation that the function implements; None if it does not implement one.
        self.defined_for: Equation | None = None
        # Whether operations are emitted directly into a function's body, where no loop of the
        # function repeats them.
        self.is_at_top = False

    @property
    def current(self) -> Equation:
        """Return the equation that is being lowered.

        Raises:
          RuntimeError: if no equation is being lowered.
        """
        if self.equation is None:
            raise RuntimeError("no equation is being lowered here")
        return self.equation

    @property
    def primitive(self) -> Primitive:
        """Return the primitive of the equation that is being lowered."""
        return self.current.primitive

    def location(self, path: str) -> ir.Location:
        """Return the location of an operation of the current equation with this path."""
        if self.origin is not None:
            return self.origin
        traceback = None if self.equation is None else self.equation.traceback
        return self.module.locations.of(path, traceback)

    # ---- operations and regions

    def op(
        self,
        name: str,
        operands: Values,
        result: AbstractValue | None = None,
        /,
        **attributes: ir.Attribute,
    ) -> Value:
        """Emit an operation with one result, and return the result.

        Args:
          name: the name of the operation, such as "stablehlo.add".
          result: the aval of the result; None for that of the equation's first result.
          attributes: the MLIR attributes of the operation, which lowering/core/types.py makes.
        """
        type_ = types.aval_type(self.avals_out[0] if result is None else result)
        return _create(
            name, (type_,), operands, attributes or None, loc=self.loc, ip=self.ip
        ).result

    def ops(
        self,
        name: str,
        operands: Values,
        results: Sequence[AbstractValue],
        /,
        **attributes: ir.Attribute,
    ) -> list[Value]:
        """Emit an operation and return its results, one per aval in `results`."""
        return list(self.operation(name, operands, results, 0, attributes).results)

    def operation(
        self,
        name: str,
        operands: Values,
        results: Sequence[AbstractValue],
        regions: int = 0,
        attributes: dict[str, ir.Attribute] | None = None,
    ) -> ir.Operation:
        """Emit an operation with empty regions, and return it for `region` to fill."""
        return _create(
            name,
            [types.aval_type(aval) for aval in results],
            operands,
            attributes or None,
            regions=regions,
            loc=self.loc,
            ip=self.ip,
        )

    def region(
        self,
        operation: ir.Operation,
        index: int,
        avals: Sequence[AbstractValue],
        body: Callable[Concatenate[Self, ...], Values],
        terminator: str = "stablehlo.return",
    ) -> None:
        """Fill one region of an operation; `body(builder, *arguments)` returns what it yields."""
        arg_types = [types.aval_type(aval) for aval in avals]
        block = operation.regions[index].blocks.append(
            *arg_types, arg_locs=[self.loc] * len(arg_types)
        )
        ip = ir.InsertionPoint(block)
        inner = type(self)(self.module, ip, self.prefix, self.hoisted, self.loc)
        inner.equation, inner.origin = self.equation, self.origin
        inner.defined_for = self.defined_for
        outputs = body(inner, *block.arguments)
        _create(terminator, (), list(outputs), loc=self.loc, ip=inner.ip)

    def with_region(
        self,
        name: str,
        operands: Values,
        results: Sequence[AbstractValue],
        attributes: dict[str, ir.Attribute],
        avals: Sequence[AbstractValue],
        *bodies: Callable[Concatenate[Self, ...], Values],
    ) -> list[Value]:
        """Emit an operation with one region per body, and return its results.

        Args:
          results: the avals of the results.
          avals: the avals of the arguments of each region.
          bodies: `body(builder, *arguments)` returns the values that its region yields.
        """
        operation = self.operation(name, operands, results, len(bodies), attributes)
        for index, body in enumerate(bodies):
            self.region(operation, index, avals, body)
        return list(operation.results)

    def while_loop(
        self,
        condition: Callable[Concatenate[Self, ...], Value],
        body: Callable[Concatenate[Self, ...], Values],
        values: Values,
        avals: Sequence[AbstractValue],
        effects: Iterable[Effect] = (),
    ) -> list[Value]:
        """Emit a while loop of `body(builder, *values)` while `condition(builder, *values)` holds.

        The condition must not have ordered effects, because StableHLO's conditions cannot return
        tokens. If it has some, the caller must evaluate it before the loop and at the end of the
        body, and carry the result among the values.

        Args:
          values: the values before the first iteration, of `avals`.
          effects: the effects of the body.
        """
        ordered = ordered_effects(effects)
        count = len(ordered)
        avals = [*[token_aval] * count, *avals]
        operation = self.operation("stablehlo.while", [*self.tokens_of(ordered), *values], avals, 2)

        def tested(inner: Self, *xs: Value) -> tuple[Value]:
            return (condition(inner, *xs[count:]),)

        def threaded(inner: Self, *xs: Value) -> list[Value]:
            inner.tokens = dict(zip(ordered, xs))
            outputs = body(inner, *xs[count:])
            return [*inner.tokens_of(ordered), *outputs]

        self.region(operation, 0, avals, tested)
        self.region(operation, 1, avals, threaded)
        return self.take_tokens(ordered, operation.results)

    def case(
        self,
        index: Value,
        branches: Sequence[Callable[[Self], Values]],
        avals: Sequence[AbstractValue],
        effects: Iterable[Effect] = (),
    ) -> list[Value]:
        """Emit a `stablehlo.case` of the `index`-th branch, or the last if `index` is out of range.

        Args:
          branches: functions of a builder that emit into it and return values of `avals`; they may
            use values from outside.
          effects: the union of the branches' effects.
        """
        ordered = ordered_effects(effects)
        results = [*[token_aval] * len(ordered), *avals]
        operation = self.operation("stablehlo.case", (index,), results, len(branches))
        tokens = dict(zip(ordered, self.tokens_of(ordered), strict=True))

        def threaded(branch: Callable[[Self], Values], inner: Self) -> list[Value]:
            inner.tokens = dict(tokens)
            outputs = branch(inner)
            return [*inner.tokens_of(ordered), *outputs]

        for i, branch in enumerate(branches):
            self.region(operation, i, (), partial(threaded, branch))
        return self.take_tokens(ordered, operation.results)

    # ---- tokens of ordered effects

    def tokens_of(self, effects: Sequence[Effect]) -> list[Value]:
        """Return the current token of each of these ordered effects."""
        return [self.tokens[effect] for effect in effects]

    def take_tokens(self, effects: Sequence[Effect], results: Iterable[Value]) -> list[Value]:
        """Store the first results as the tokens of these effects, and return the others."""
        results = list(results)
        self.tokens.update(zip(effects, results))
        return results[len(effects) :]

    # ---- constants and helpers

    def constant(
        self, value: ArrayLike, dtype: str | type[Any] | NumPyDType | None = None
    ) -> Value:
        """Return a constant with a NumPy value; equal scalars of one block share one operation."""
        array = np.asarray(value) if dtype is None else np.asarray(value, dtype)
        if array.ndim == 0:
            key = (array.dtype, array.tobytes())
            constant = self.constants.get(key)
            if constant is None:
                constant = self.constants[key] = self._constant(array)
            return constant
        return self._constant(array)

    def size(self, size: int | SizeExpression, aval: ShapedArray) -> Value:
        """Return a size as a scalar of an integer aval."""
        if not isinstance(size, SizeExpression):
            return self.constant(size, aval.dtype)
        value = unknown_sizes.size_value(self, size)
        same = aval.dtype == unknown_sizes.size_aval().dtype
        return value if same else self.convert(value, aval)

    def _constant(self, array: NumPyArray) -> Value:
        if not self.module.may_find_nans:
            self.module.may_find_nans = has_nan(array)
        return _create(
            "stablehlo.constant",
            (types.tensor_type(array.shape, array.dtype),),
            (),
            {"value": types.dense(array)},
            loc=self.loc,
            ip=self.ip,
        ).result

    def full(self, value: ArrayLike, aval: ShapedArray) -> Value:
        """Return an array with this aval whose elements are all `value`, emitted once per block."""
        if aval.dtype == float0:
            value, aval = False, ShapedArray(aval.shape, np.dtype(bool))
        scalar = np.asarray(value, aval.dtype)
        if not aval.shape:
            return self.constant(scalar)
        key = (scalar.dtype, scalar.tobytes(), aval.shape)
        array = self.constants.get(key)
        if array is None:
            array = self.constants[key] = self.broadcast(
                self.constant(scalar), aval.strip_weak_type(), ()
            )
        return array

    def broadcast(self, x: Value, result: ShapedArray, dimensions: Sequence[int]) -> Value:
        """Emit broadcast_in_dim: axis i of x becomes axis dimensions[i] of the result."""
        if isinstance(result.dtype, ExtendedDType):
            physical_rank = len(result.dtype.physical(result.shape)[0])
            dimensions = (*dimensions, *range(result.ndim, physical_rank))
        if self.module.size_variables and has_symbolic_size(result.shape):
            return unknown_sizes.broadcast(self, x, result, dimensions)
        return self.op(
            "stablehlo.broadcast_in_dim",
            (x,),
            result,
            broadcast_dimensions=types.i64_array(dimensions),
        )

    def broadcast_to(self, x: Value, aval: ShapedArray, result: ShapedArray) -> Value:
        """Return x of `aval` broadcast to the shape of `result`; scalars and sizes of 1 expand."""
        if aval.shape == result.shape:
            return x
        target = result if aval.dtype == result.dtype else result.update(dtype=aval.dtype)
        return self.broadcast(x, target, range(len(aval.shape)) if aval.shape else ())

    def broadcast_operands(self, *operands: Value) -> list[Value]:
        """Return the equation's operands, broadcast to the shape of its first result.

        A literal is broadcast once per block, as for primitives without a rule of their own: which
        primitives have one depends on the rule modules that other programs have loaded.
        """
        out = self.avals_out[0]
        if not out.shape:
            return list(operands)
        atoms: Sequence[Atom] = self.equation.invars if self.equation is not None else ()
        wide: list[Value] = []
        for i, (x, aval) in enumerate(zip(operands, self.avals_in)):
            atom = atoms[i] if i < len(atoms) else None
            if type(atom) is Literal and atom.aval is aval and not aval.shape:
                wide.append(self.full(atom.val, out.update(dtype=aval.dtype)))
            else:
                wide.append(self.broadcast_to(x, aval, out))
        return wide

    def reshape(self, x: Value, result: ShapedArray) -> Value:
        if self.module.size_variables and has_symbolic_size(result.shape):
            return unknown_sizes.reshape(self, x, result)
        return self.op("stablehlo.reshape", (x,), result)

    def iota(self, result: ShapedArray, axis: int) -> Value:
        """Return an array in which each element is its index along an axis."""
        if self.module.size_variables and has_symbolic_size(result.shape):
            return unknown_sizes.iota(self, result, axis)
        return self.op("stablehlo.iota", (), result, iota_dimension=types.i64(axis))

    def convert(self, x: Value, result: ShapedArray) -> Value:
        return self.op("stablehlo.convert", (x,), result)

    def compare(
        self, direction: str, x: Value, y: Value, aval: ShapedArray, kind: str | None = None
    ) -> Value:
        """Compare two arrays with equal avals elementwise.

        Args:
          direction: EQ, NE, LT, LE, GT or GE.
          kind: FLOAT, TOTALORDER, SIGNED or UNSIGNED; None for the default of the dtype.
        """
        if kind is None:
            kind = types.compare_type(aval.dtype)
        return self.op(
            "stablehlo.compare",
            (x, y),
            aval.update(dtype=np.dtype(np.bool_), weak_type=False),
            comparison_direction=types.attribute(f"#stablehlo<comparison_direction {direction}>"),
            compare_type=types.attribute(f"#stablehlo<comparison_type {kind}>"),
        )

    def select(self, condition: Value, yes: Value, no: Value, aval: ShapedArray) -> Value:
        """Return `yes` where the condition holds, else `no`; both have this aval."""
        return self.op("stablehlo.select", (condition, yes, no), aval)

    def slice(
        self,
        x: Value,
        starts: Sequence[int],
        limits: Sequence[int],
        strides: Sequence[int] | None = None,
        result: ShapedArray | None = None,
    ) -> Value:
        """Return x from `starts` up to `limits`, exclusive, per axis; strides default to 1."""
        strides = (1,) * len(starts) if strides is None else strides
        if self.module.size_variables and has_symbolic_size((*starts, *limits, *strides)):
            return unknown_sizes.slice(self, x, starts, limits, strides, result)
        return self.op(
            "stablehlo.slice",
            (x,),
            result,
            start_indices=types.i64_array(starts),
            limit_indices=types.i64_array(limits),
            strides=types.i64_array(strides),
        )

    def dynamic_slice(
        self, x: Value, aval: ShapedArray, starts: Values, result: ShapedArray
    ) -> Value:
        """Return the slice of x, of type `result`, that begins at the scalars `starts`.

        Starts are clamped so that the slice is inside x.
        """
        if self.module.size_variables and has_symbolic_size(result.shape):
            return unknown_sizes.dynamic_slice(self, x, aval, starts, result)
        sizes = types.i64_array(result.shape)
        return self.op("stablehlo.dynamic_slice", (x, *starts), result, slice_sizes=sizes)

    def concatenate(
        self,
        operands: Sequence[Value],
        avals: Sequence[ShapedArray],
        axis: int,
        result: ShapedArray,
    ) -> Value:
        """Return arrays with these avals as one array, along an axis."""
        if self.module.guards_for_cpu and result.dtype.name in ("int2", "uint2"):
            # XLA ends the process where it copies elements that are not whole bytes.
            byte = np.dtype(np.int8)
            wide = [aval.update(dtype=byte) for aval in avals]
            operands = [self.convert(x, aval) for x, aval in zip(operands, wide, strict=True)]
            whole = self.concatenate(operands, wide, axis, result.update(dtype=byte))
            return self.convert(whole, result)
        dimension = types.i64(axis)
        return self.op("stablehlo.concatenate", operands, result, dimension=dimension)

    def pad(
        self,
        x: Value,
        filling: Value,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
        result: ShapedArray | None = None,
    ) -> Value:
        """Return x padded with `filling`, by numbers of elements before, after and between."""
        interior = (0,) * len(low) if interior is None else interior
        if self.module.size_variables and has_symbolic_size((*low, *high, *interior)):
            return unknown_sizes.pad(self, x, filling, low, high, interior, result)
        if self.module.several_devices and self.module.guards_for_cpu and min(low, default=0) < 0:
            aval: ShapedArray = self.avals_out[0] if result is None else result
            within_step = [a % (step + 1) for a, step in zip(low, interior, strict=True)]
            if any(
                a < 0 and (remainder or (not has_symbolic_size((size,)) and size <= b))
                for a, remainder, b, size in zip(low, within_step, high, aval.shape, strict=True)
            ):
                # XLA's partitioner aborts the process if negative padding removes other than whole
                # steps of a dilated axis, or all its elements followed by padding: slice
                # afterwards.
                cut = [min(a - rest, 0) for a, rest in zip(low, within_step, strict=True)]
                shape = tuple(size - c for size, c in zip(aval.shape, cut, strict=True))
                first = [a - c for a, c in zip(low, cut, strict=True)]
                x = self._pad(x, filling, first, high, interior, aval.update(shape=shape))
                low, high, interior = cut, [0] * len(cut), [0] * len(cut)
        return self._pad(x, filling, low, high, interior, result)

    def _pad(
        self,
        x: Value,
        filling: Value,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int],
        result: ShapedArray | None,
    ) -> Value:
        return self.op(
            "stablehlo.pad",
            (x, filling),
            result,
            edge_padding_low=types.i64_array(low),
            edge_padding_high=types.i64_array(high),
            interior_padding=types.i64_array(interior),
        )

    def parts(self, x: Value, part: ShapedArray) -> tuple[Value, Value]:
        """Return the real and imaginary parts of a complex array, both with the aval `part`."""
        return self.op("stablehlo.real", (x,), part), self.op("stablehlo.imag", (x,), part)

    def barrier(self, values: Values, avals: Sequence[AbstractValue]) -> list[Value]:
        """Return the values behind an optimization barrier, which XLA does not optimize across."""
        self.module.has_barriers = True
        if not self.is_at_top:
            self.module.has_inner_barriers = True
        return self.ops("stablehlo.optimization_barrier", values, avals)
