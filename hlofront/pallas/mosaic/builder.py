"""The builder that Mosaic rules take: it emits operations at one position of a TPU's kernel."""

# The stubs of jaxlib do not name the types of the results of operations and lists.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import copy
import dataclasses
from collections.abc import Callable, Hashable, Sequence, Set
from typing import Any, Concatenate, NoReturn, Self

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import bool_, int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.source import user_frame
from hlofront.base.typing import Array, DType
from hlofront.bridge.mlir import Operation, Value, Values, ir
from hlofront.bridge.mosaic import has_operation
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.names import path_of
from hlofront.core.programs.liveness import variables_read
from hlofront.core.programs.subprograms import called_by, inputs_among
from hlofront.core.references import AbstractRef
from hlofront.lowering.core.locations import Locations
from hlofront.lowering.core.types import attribute, unknown
from hlofront.pallas.mosaic.rules import instead_of, mosaic
from hlofront.pallas.mosaic.types import memory_of, no_elements, parsed, value_type
from hlofront.transforms.stage import stage

_create = Operation.create
Shape = tuple[int, ...]
Number = float | np.generic


class KernelRef(NamedTuple):
    """A reference in a kernel: a memref of MLIR.

    Attributes:
      value: the memref.
      aval: the aval of the reference.
      shape: the shape of the memref, including squeezed axes.
      squeezed: the axes of the memref that the reference lacks.
    """

    value: Value
    aval: AbstractRef
    shape: Shape
    squeezed: tuple[int, ...] = ()

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def memory(self) -> str:
        """Mosaic's name of the memory, such as "vmem"."""
        return memory_of(self.aval)


Operand = Value | KernelRef
Environment = dict[Var, Operand]


@dataclasses.dataclass
class KernelState:
    """The state of a kernel while its functions are emitted.

    Attributes:
      name: the name of the kernel.
      grid: the sizes of the grid; None for those that are known only when the kernel runs.
      own_axes: the axes of the grid that are the kernel's own, rather than vmap's.
      uses_barrier: whether it waits at the barrier of several devices.
      barrier_tags: the tags of the barrier.
      communicates: whether it copies to other devices, or signals their semaphores.
      mesh_axes: the names and sizes of the axes of the mesh around the kernel.
    """

    name: str
    grid: Sequence[int | None]
    own_axes: Sequence[int]
    mesh_axes: Sequence[tuple[Hashable, int]] = ()
    uses_barrier: bool = False
    communicates: bool = False
    barrier_tags: set[Hashable] = dataclasses.field(default_factory=set)
    locations: Locations = dataclasses.field(default_factory=Locations)


class KernelBuilder:
    """The argument of every Mosaic rule: it emits operations at one position of one function.

    Attributes:
      kernel: the state of the kernel.
      grid_indices: the indices of the current step of the grid.
      equation: the equation that is being lowered.
      avals_in, avals_out: the avals of its operands and results.
    """

    equation: Equation
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]

    def __init__(self, kernel: KernelState, ip: ir.InsertionPoint, grid_indices: Values = ()):
        self.kernel = kernel
        self.ip = ip
        self.grid_indices = tuple(grid_indices)
        self.loc: ir.Location = kernel.locations.unknown
        # The equation that traced equations implement, whose location and messages they have.
        self.origin: Equation | None = None
        # Scalar constants in this block or an enclosing one, by type and value.
        self.constants: dict[Hashable, Value] = {}
        # The variables that the program being emitted reads.
        self.variables_read: Set[Var] = frozenset()

    # ---- operations

    def op(
        self,
        name: str,
        operands: Values,
        result: ir.Type | None = None,
        /,
        **attributes: ir.Attribute,
    ) -> Value:
        """Emit an operation with one result, by default of the type of the equation's first."""
        type_ = self.type_of(self.avals_out[0]) if result is None else result
        return _create(
            name, (type_,), operands, attributes or None, loc=self.loc, ip=self.ip
        ).result

    def effect(self, name: str, operands: Values, /, **attributes: ir.Attribute) -> None:
        """Emit an operation without results."""
        _create(name, (), operands, attributes or None, loc=self.loc, ip=self.ip)

    def with_regions(
        self,
        name: str,
        operands: Values,
        results: Sequence[ir.Type],
        *bodies: tuple[Sequence[ir.Type], Callable[Concatenate[Self, ...], None]],
    ) -> list[Value]:
        """Emit an operation with a region per body, and return its results.

        Args:
          bodies: the types of a region's arguments, and a function `body(builder, *arguments)` that
            emits its operations, with the one at its end.
        """
        operation = _create(
            name, results, operands, None, regions=len(bodies), loc=self.loc, ip=self.ip
        )
        for region, (arg_types, body) in zip(operation.regions, bodies, strict=True):
            block = region.blocks.append(*arg_types, arg_locs=[self.loc] * len(arg_types))
            inner = copy.copy(self)
            inner.ip, inner.constants = ir.InsertionPoint(block), dict(self.constants)
            body(inner, *block.arguments)
        return list(operation.results)

    @staticmethod
    def type_of(aval: ShapedArray) -> ir.Type:
        """Return the type of a value of an aval in registers."""
        return value_type(aval.shape, aval.dtype)

    # ---- constants

    def constant(self, number: Number, dtype: DType, shape: Shape = ()) -> Value:
        """Return a constant: a scalar, or a vector filled with the number."""
        return self._constant(element_attribute(number, dtype), value_type(shape, dtype), shape)

    def index(self, number: int) -> Value:
        """Return a constant of MLIR's type of indices."""
        type_ = parsed("index")
        return self._constant(ir.IntegerAttr.get(type_, number), type_, ())

    def _constant(self, element: ir.Attribute, type_: ir.Type, shape: Shape) -> Value:
        value = self.constants.get(element) if not shape else None
        if value is None:
            elements = ir.DenseElementsAttr.get_splat(type_, element) if shape else element
            value = self.op("arith.constant", (), type_, value=elements)
            if not shape:
                self.constants[element] = value
        return value

    def literal(self, value: object, dtype: DType) -> Value:
        """Return a constant of a jaxpr.

        Raises:
          ValueError: if its elements differ: kernels cannot have such constants.
        """
        array = np.asarray(value)
        first = array.reshape(-1)[:1]
        if array.size == 0 or not (array.tobytes() == first.tobytes() * array.size):
            self.refuse(
                f"a kernel cannot hold the constant array of shape {array.shape} that it closes "
                "over: pass it to pallas_call as an input"
            )
        return self.constant(first[0], dtype, array.shape)

    # ---- shapes

    def reshape(self, x: Value, dtype: DType, old: Shape, new: Shape) -> Value:
        """Return an array with another shape of equally many elements."""
        if old == new:
            return x
        if not new:
            zeros = f"array<i64: {', '.join('0' * len(old))}>"
            return self.op(
                "vector.extract", (x,), value_type((), dtype), static_position=attribute(zeros)
            )
        name = "vector.shape_cast" if old else "vector.broadcast"
        return self.op(name, (x,), value_type(new, dtype))

    def broadcast(
        self, x: Value, dtype: DType, old: Shape, new: Shape, axes: Sequence[int] | None = None
    ) -> Value:
        """Return an array repeated along axes that it lacks, or along which it has one element.

        Args:
          axes: the axis of the result for each axis of x; None for the last ones.
        """
        if old == new:
            return x
        if old:
            places = range(len(new) - len(old), len(new)) if axes is None else axes
            stretched = [1] * len(new)
            for place, size in zip(places, old, strict=True):
                stretched[place] = size
            x = self.reshape(x, dtype, old, tuple(stretched))
            if tuple(stretched) == new:
                return x
        return self.op("vector.broadcast", (x,), value_type(new, dtype))

    def to_index(self, x: Value | int) -> Value:
        """Return an integer as a value of MLIR's type of indices."""
        if isinstance(x, int):
            return self.index(x)
        return self.op("arith.index_cast", (x,), parsed("index"))

    def to_int32(self, x: Value | int) -> Value:
        """Return an integer, whether known or not, as a value of int32."""
        return self.constant(x, int32) if isinstance(x, int) else x

    # ---- programs

    def call(self, program: ClosedJaxpr, args: Sequence[Operand]) -> list[Operand]:
        """Emit the equations of a closed jaxpr here, and return its outputs."""
        return self.inline(program.jaxpr, program.consts, args)

    def inline(
        self, jaxpr: Jaxpr, consts: Sequence[object], args: Sequence[Operand]
    ) -> list[Operand]:
        """Emit the equations of a jaxpr here, and return its outputs.

        Args:
          consts: the values of its constants: arrays, or operands of the caller.
        """
        environment: Environment = dict(zip(jaxpr.invars, args, strict=True))
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            aval: Any = var.aval
            is_emitted = isinstance(const, ir.Value | KernelRef)
            environment[var] = const if is_emitted else self.literal(const, aval.dtype)
        # The equation around the program, with its location, is the current one again after it.
        around = dict(vars(self))
        self.variables_read = variables_read(jaxpr.eqns, jaxpr.outvars)
        for equation in jaxpr.eqns:
            self.lower_equation(equation, environment)
        vars(self).update(around)
        return [self.read(atom, environment) for atom in jaxpr.outvars]

    def by_tracing(
        self,
        function: Callable[..., Sequence[Array]],
        avals: Avals,
        args: Sequence[Operand],
        **params: object,
    ) -> tuple[list[Operand], list[ShapedArray]]:
        """Trace a function of arrays and emit its equations here, for the current equation.

        Args:
          avals: the avals of the operands `args`.
          params: keyword arguments of the function.

        Returns:
          The results and their avals.
        """
        program = stage(lambda *arrays: function(*arrays, **params), avals)
        around, self.origin = self.origin, self.origin or self.equation
        try:
            return self.call(program, args), program.out_avals
        finally:
            self.origin = around

    def lower_equation(self, equation: Equation, environment: Environment) -> None:
        """Emit one equation, with operands read from `environment` and results written to it."""
        primitive, outvars = equation.primitive, equation.outvars
        self.equation = equation
        if self.origin is None:
            name = path_of((*equation.name_stack, primitive.name))
            self.loc = self.kernel.locations.of(name, equation.traceback)
        self.avals_in = [atom.aval for atom in equation.invars]
        self.avals_out = [var.aval for var in outvars]
        rule, called = mosaic.get(primitive), called_by(equation)
        if rule is None and called is None:
            self.refuse(
                f"Unimplemented primitive in Pallas TPU lowering for tc: {primitive.name}. Kernels "
                f"of TPUs have no such operation: {instead_of(primitive.name)}",
                NotImplementedError,
            )
        for aval in self.avals_out:
            lacking = no_elements(aval.dtype) if isinstance(aval, ShapedArray) else None
            if lacking:
                self.refuse(f"{lacking}. Convert to another dtype before", TypeError)
        operands = [self.read(atom, environment) for atom in equation.invars]
        if rule is not None:
            results = rule(self, *operands, **equation.params)
        else:
            results = self.call(called.closed, inputs_among(called, operands))
        if primitive.multiple_results:
            environment.update(zip(outvars, results, strict=True))
        else:
            environment[outvars[0]] = results

    def read(self, atom: Atom, environment: Environment) -> Operand:
        """Return the value or the reference of a variable, or the value of a literal."""
        if isinstance(atom, Literal):
            aval: Any = atom.aval
            return self.literal(atom.val, aval.dtype)
        return environment[atom]

    @property
    def is_read(self) -> bool:
        """Whether the program reads the first result of the equation."""
        return self.equation.outvars[0] in self.variables_read

    # ---- errors

    def refuse(self, message: str, error: type[Exception] = ValueError) -> NoReturn:
        """Raise an error about the current equation, with the user's line."""
        raise error(f"{message}{self.place()}")

    def require(self, operation: str, otherwise: str) -> None:
        """Raise NotImplementedError if this jaxlib's Mosaic lacks an operation.

        Args:
          operation: its name, such as "tpu.annotate".
          otherwise: what to do without it, for the message.
        """
        if not has_operation(operation):
            self.refuse(
                f"this jaxlib's Mosaic has no operation {operation}: use jaxlib 0.12 or later, or "
                f"{otherwise}",
                NotImplementedError,
            )

    def place(self) -> str:
        """Return the equation and the kernel that are being lowered, for the end of a message."""
        equation = self.origin or getattr(self, "equation", None)
        if equation is None:
            return f" (in the kernel {self.kernel.name})"
        frame = user_frame(equation.traceback)
        at = f" at {frame.file}:{frame.line}" if frame is not None else ""
        return f" (in the kernel {self.kernel.name}: {equation.primitive.name}{at})"


def element_attribute(number: Number, dtype: DType) -> ir.Attribute:
    """Return the attribute of one number of a dtype."""
    type_ = value_type((), dtype)
    if dtype == bool_:
        return ir.IntegerAttr.get(type_, int(bool(number)))
    if issubdtype(dtype, np.integer):
        bits = type_.width
        value = int(number)
        # MLIR's integers are signless: 2**32 - 1 is -1.
        return ir.IntegerAttr.get(type_, value - (1 << bits) if value >> (bits - 1) > 0 else value)
    return ir.FloatAttr.get(type_, float(number), loc=unknown)
