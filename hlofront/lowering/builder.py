"""What a lowering rule may use: emit operations, make constants, fill regions, call programs."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.dtypes import float0
from hlofront.base.elements import ExtendedDType
from hlofront.bridge.mlir import Operation, context, ir
from hlofront.core import liveness
from hlofront.core.aval import ShapedArray, token_aval
from hlofront.core.derived import once_per_program
from hlofront.core.digest import LARGE_CONSTANT_BYTES
from hlofront.core.effects import Effect, ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.names import NameStack, path_of
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower, simplify
from hlofront.core.subprograms import closed_programs_in
from hlofront.lowering import types
from hlofront.lowering.direct import DIRECT
from hlofront.lowering.extended import EXTENDED, extend_to_elements
from hlofront.lowering.module_state import ModuleState
from hlofront.lowering.per_platform import INDEX, index_aval, lower_per_platform
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlofront.transforms.stage import stage

Value = Any
_create = Operation.create


class Builder:
    """Emits StableHLO at one place of one function; handed to every lowering rule."""

    __slots__ = (
        "avals_in",
        "avals_out",
        "constants",
        "equation",
        "hoisted",
        "ip",
        "loc",
        "module",
        "prefix",
        "tokens",
    )

    # Of the equation that is being lowered.
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    equation: Equation | None

    def __init__(self, module: ModuleState, ip: Any, prefix: NameStack, hoisted: dict[int, Value]):
        self.module = module
        self.ip = ip
        # The names of the functions and scopes around: ("jit(f)", "attention").
        self.prefix: NameStack = prefix
        # id of a large constant -> the function argument that carries it.
        self.hoisted = hoisted
        self.loc = module.locations.named(path_of(prefix)) if prefix else module.locations.unknown
        self.constants: dict[Any, Value] = {}
        # Per ordered effect the token of the latest operation that has it.
        self.tokens: dict[Effect, Value] = {}
        self.avals_in = self.avals_out = ()
        self.equation = None

    # ---- emitting

    def op(
        self, name: str, operands: Sequence[Value], result: Any = None, **attributes: Any
    ) -> Value:
        """Emit an operation with one result, of the equation's result aval unless told.

        `result` is an aval; attributes are MLIR attributes (see lowering/types.py).
        """
        type_ = types.aval_type(self.avals_out[0] if result is None else result)
        return _create(
            name, (type_,), operands, attributes or None, loc=self.loc, ip=self.ip
        ).results[0]

    def ops(
        self, name: str, operands: Sequence[Value], results: Sequence[Any], **attributes: Any
    ) -> list[Value]:
        """Emit an operation with these result avals."""
        return list(self.operation(name, operands, results, 0, attributes).results)

    def operation(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[Any],
        regions: int = 0,
        attributes: dict[str, Any] | None = None,
    ) -> Any:
        """Emit an operation and return it, to fill in its regions."""
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
        operation: Any,
        index: int,
        avals: Sequence[Any],
        body: Callable[..., Sequence[Value]],
        terminator: str = "stablehlo.return",
    ) -> None:
        """Fill in one region: `body(builder, *arguments)` returns the values that it yields."""
        arg_types = [types.aval_type(aval) for aval in avals]
        block = operation.regions[index].blocks.append(
            *arg_types, arg_locs=[self.loc] * len(arg_types)
        )
        inner = Builder(self.module, ir.InsertionPoint(block), self.prefix, self.hoisted)
        inner.loc = self.loc
        inner.equation = self.equation
        outputs = body(inner, *block.arguments)
        _create(terminator, (), list(outputs), loc=self.loc, ip=inner.ip)

    def while_loop(
        self,
        condition: Callable[..., Value],
        body: Callable[..., Sequence[Value]],
        values: Sequence[Value],
        avals: Sequence[Any],
        effects: Iterable[Effect] = (),
    ) -> list[Value]:
        """Repeat `body(builder, *values)` while `condition(builder, *values)`, from these on.

        `effects` are those of the body. The condition has no ordered ones: StableHLO's cannot
        return the token. A condition that has some is run before the loop and at the end of the
        body, and its answer is one of the values.
        """
        ordered = ordered_effects(effects)
        count = len(ordered)
        avals = [*[token_aval] * count, *avals]
        operation = self.operation("stablehlo.while", [*self.tokens_of(ordered), *values], avals, 2)
        self.region(operation, 0, avals, lambda inner, *xs: (condition(inner, *xs[count:]),))

        def threaded(inner: Builder, *xs: Value) -> list[Value]:
            inner.tokens = dict(zip(ordered, xs))
            outputs = body(inner, *xs[count:])
            return [*inner.tokens_of(ordered), *outputs]

        self.region(operation, 1, avals, threaded)
        return self.take_tokens(ordered, operation.results)

    def case(
        self,
        index: Value,
        branches: Sequence[Callable[["Builder"], Sequence[Value]]],
        avals: Sequence[Any],
        effects: Iterable[Effect] = (),
    ) -> list[Value]:
        """Run the `index`-th of the branches, the last one where there is none of that index.

        A branch emits what it does with values from outside into the builder that it is given, and
        returns values of `avals`. `effects` are those of all branches together.
        """
        ordered = ordered_effects(effects)
        results = [*[token_aval] * len(ordered), *avals]
        operation = self.operation("stablehlo.case", (index,), results, len(branches))
        tokens = dict(zip(ordered, self.tokens_of(ordered), strict=True))

        def threaded(branch: Callable[[Builder], Sequence[Value]], inner: Builder) -> list[Value]:
            inner.tokens = dict(tokens)
            outputs = branch(inner)
            return [*inner.tokens_of(ordered), *outputs]

        for i, branch in enumerate(branches):
            self.region(operation, i, (), partial(threaded, branch))
        return self.take_tokens(ordered, operation.results)

    # ---- tokens of ordered effects

    def tokens_of(self, effects: Sequence[Effect]) -> list[Value]:
        """The tokens that wait for all operations so far that have these ordered effects."""
        return [self.tokens[effect] for effect in effects]

    def take_tokens(self, effects: Sequence[Effect], results: Iterable[Value]) -> list[Value]:
        """Keep the first results of an operation as the tokens of these effects; the others."""
        results = list(results)
        self.tokens.update(zip(effects, results))
        return results[len(effects) :]

    # ---- constants and small conveniences

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A constant of this NumPy value; equal scalars of one function are one operation."""
        array = np.asarray(value) if dtype is None else np.asarray(value, dtype)
        if array.ndim == 0:
            key = (array.dtype, array.tobytes())
            found = self.constants.get(key)
            if found is None:
                found = self.constants[key] = self._constant(array)
            return found
        return self._constant(array)

    def _constant(self, array: np.ndarray) -> Value:
        return _create(
            "stablehlo.constant",
            (types.tensor_type(array.shape, array.dtype),),
            (),
            {"value": types.dense(array)},
            loc=self.loc,
            ip=self.ip,
        ).results[0]

    def full(self, value: Any, aval: ShapedArray) -> Value:
        """An array of this aval, every element equal; made once per place in a function."""
        if aval.dtype == float0:
            value, aval = False, ShapedArray(aval.shape, np.dtype(bool))
        scalar = np.asarray(value, aval.dtype)
        if not aval.shape:
            return self.constant(scalar)
        key = (scalar.dtype, scalar.tobytes(), aval.shape)
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = self.broadcast(
                self.constant(scalar), aval.strip_weak_type(), ()
            )
        return found

    def broadcast(self, x: Value, result: ShapedArray, dimensions: Sequence[int]) -> Value:
        """broadcast_in_dim: axis i of x becomes axis dimensions[i] of the result."""
        if isinstance(result.dtype, ExtendedDType):
            physical_rank = len(result.dtype.physical(result.shape)[0])
            dimensions = (*dimensions, *range(result.ndim, physical_rank))
        return self.op(
            "stablehlo.broadcast_in_dim",
            (x,),
            result,
            broadcast_dimensions=types.i64_array(dimensions),
        )

    def broadcast_to(self, x: Value, aval: ShapedArray, result: ShapedArray) -> Value:
        """x of `aval` in the shape of `result`: scalars fit any, sizes of one any size."""
        if aval.shape == result.shape:
            return x
        target = result if aval.dtype == result.dtype else result.update(dtype=aval.dtype)
        return self.broadcast(x, target, range(len(aval.shape)) if aval.shape else ())

    def reshape(self, x: Value, result: ShapedArray) -> Value:
        return self.op("stablehlo.reshape", (x,), result)

    def convert(self, x: Value, result: ShapedArray) -> Value:
        return self.op("stablehlo.convert", (x,), result)

    def compare(
        self, direction: str, x: Value, y: Value, aval: ShapedArray, kind: str | None = None
    ) -> Value:
        """Compare arrays of one aval: EQ NE LT LE GT GE; FLOAT, TOTALORDER, SIGNED, UNSIGNED."""
        if kind is None:
            kind = types.compare_type(aval.dtype)
        return self.op(
            "stablehlo.compare",
            (x, y),
            aval.update(dtype=np.dtype(np.bool_), weak_type=False),
            comparison_direction=types.attribute(f"#stablehlo<comparison_direction {direction}>"),
            compare_type=types.attribute(f"#stablehlo<comparison_type {kind}>"),
        )

    # ---- programs

    def inline(
        self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Value], *scope: str
    ) -> list[Value]:
        """Emit the equations of a program here, and return its outputs.

        `consts` are values of Python, or of MLIR where the caller has made them already.
        `scope` is what the program is to the operation that is being lowered.
        """
        environment: dict[Any, Value] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            if isinstance(const, ir.Value):
                environment[var] = const
            elif var.aval == token_aval:  # What it waits for is done: it is as good as a new one.
                environment[var] = self.op("stablehlo.create_token", (), token_aval)
            else:
                environment[var] = self.hoist(const, var.aval.dtype)
        environment.update(zip(jaxpr.invars, args, strict=True))
        saved = self.loc, self.avals_in, self.avals_out, self.equation, self.prefix
        self.prefix = self.within(*scope) if scope else self.stack()
        self.equation = None
        fences = self.module.fences
        fenced = fences.of(jaxpr) if fences is not None else ()
        for equation in live_equations(jaxpr):
            self.lower_equation(equation, environment)
            if fenced:
                for var in equation.outvars:
                    if var in fenced:
                        environment[var] = self.fence(environment[var], var.aval, equation)
        self.loc, self.avals_in, self.avals_out, self.equation, self.prefix = saved
        return [self.read(atom, environment) for atom in jaxpr.outvars]

    def fence(self, x: Value, aval: Any, equation: Equation) -> Value:
        """A result of an equation, which is stored here and not computed anew at each use."""
        around = self.loc
        name = self.name_of("fence", equation)
        self.loc = self.module.locations.of(name, equation.traceback)
        self.module.fences.place(aval, equation.traceback)
        (result,) = self.barrier((x,), (aval,))
        self.loc = around
        return result

    def barrier(self, values: Sequence[Value], avals: Sequence[Any]) -> list[Value]:
        """The values, which XLA may neither compute anew after this nor see through it."""
        self.module.has_barriers = True
        return self.ops("stablehlo.optimization_barrier", values, avals)

    def read(self, atom: Any, environment: dict[Any, Value]) -> Value:
        if type(atom) is Literal:
            return self.hoist(atom.val, atom.aval.dtype)
        return environment[atom]

    def literal(self, atom: Literal, direct: str | None, outvars: Sequence[Any]) -> Value:
        """A literal operand; in the result's shape for operations that are one HLO operation."""
        aval: Any = atom.aval
        if direct is None or aval.shape:
            return self.hoist(atom.val, aval.dtype)
        return self.full(atom.val, outvars[0].aval.update(dtype=aval.dtype))

    def hoist(self, value: Any, dtype: Any) -> Value:
        """A constant of the program: an argument where it is large, else a constant operation."""
        found = self.hoisted.get(id(value))
        if found is not None:
            return found
        if isinstance(dtype, ExtendedDType):
            return self.constant(np.asarray(value._live_base()))
        return self.constant(np.asarray(value), dtype)

    def lower_equation(self, equation: Equation, environment: dict[Any, Value]) -> None:
        primitive = equation.primitive
        self.loc = self.module.locations.of(
            self.name_of(primitive.name, equation), equation.traceback
        )
        outvars = equation.outvars
        name = None if primitive in lower.on_some else DIRECT.get(primitive)
        if name is not None and equation.params:
            for value in equation.params.values():
                if value is not None:
                    name = None
        operands = [
            environment[atom] if type(atom) is not Literal else self.literal(atom, name, outvars)
            for atom in equation.invars
        ]
        if name is not None:
            out = outvars[0].aval
            for i, atom in enumerate(equation.invars):
                if atom.aval.shape != out.shape and type(atom) is not Literal:
                    operands[i] = self.broadcast_to(operands[i], atom.aval, out)
            environment[outvars[0]] = _create(
                name, (types.aval_type(out),), operands, None, loc=self.loc, ip=self.ip
            ).results[0]
            return
        self.avals_in = [atom.aval for atom in equation.invars]
        self.avals_out = [var.aval for var in outvars]
        self.equation = equation
        params = equation.params
        if primitive in EXTENDED and isinstance(self.avals_in[0].dtype, ExtendedDType):
            operands, params = extend_to_elements(self, operands, params)
        rule = self.rule(primitive)
        if rule is not None:
            results = rule(self, *operands, **params)
        else:
            results = lower_per_platform(self, operands, params)
        if primitive.multiple_results:
            environment.update(zip(outvars, results, strict=True))
        else:
            environment[outvars[0]] = results

    def rule(self, primitive: Any) -> Callable[..., Any] | None:
        """How a primitive is lowered; None where the module is for platforms that differ."""
        platforms = self.module.platforms
        if len(platforms) == 1:
            return lower.for_platform(primitive, platforms[0])
        groups = lower.for_platforms(primitive, platforms)
        return groups[0][0] if len(groups) == 1 else None

    def stack(self) -> NameStack:
        """The scopes around what is emitted now."""
        return (*self.prefix, *self.equation.name_stack) if self.equation else self.prefix

    def within(self, *parts: str) -> NameStack:
        """The scopes around parts of an operation; transformations are around no part of it."""
        return (path_of(self.stack()), *parts) if self.stack() else parts

    def name_of(self, name: str, equation: Equation) -> str:
        """The path of an operation of an equation."""
        key = self.prefix, equation.name_stack
        paths = self.module.paths
        path = paths.get(key)
        if path is None:
            path = paths[key] = path_of((*self.prefix, *equation.name_stack))
        return f"{path}/{name}" if path else name

    def by_tracing(
        self,
        function: Callable[..., Any],
        operands: Sequence[Value],
        avals: Sequence[Any] | None = None,
        **params: Any,
    ) -> list[Value]:
        """Lower what `function(*operands, **params)` does, in terms of other primitives.

        `function` takes arrays of `avals` (by default those of the equation) and returns one
        array or a sequence of them.
        """
        avals = self.avals_in if avals is None else avals
        # The equation may have been traced in a block of enable_x64(True) that has ended.
        with enable_x64(enable_x64.value or any(map(types.is_wide, (*avals, *self.avals_out)))):
            program = stage(lambda *xs: _as_list(function(*xs, **params)), avals)
        return self.inline(program.jaxpr, program.consts, operands)

    def call(self, program: ClosedJaxpr, name: str, args: Sequence[Value]) -> list[Value]:
        """Call a program as a private function; equal programs are one function."""
        return self.call_function(
            program,
            name,
            args,
            program.in_avals,
            program.out_avals,
            lambda inner, *xs: inner.inline(program.jaxpr, program.consts, xs),
            large_constants(program),
            program.effects,
        )

    def call_function(
        self,
        key: Any,
        name: str,
        args: Sequence[Value],
        avals_in: Sequence[Any],
        avals_out: Sequence[Any],
        body: Callable[..., Sequence[Value]],
        constants: Sequence["Constant"] = (),
        effects: Iterable[Effect] = (),
    ) -> list[Value]:
        """Call the private function that `body` defines; made once per `key` and module.

        `constants` are the large constants inside: they are arguments of the module, and travel
        down the calls. So do the tokens of those of the `effects` that are ordered, and back up.
        """
        ordered = ordered_effects(effects)
        constants = self.carried(constants)
        symbol = self.define_function(key, name, avals_in, avals_out, body, constants, ordered)
        extra = self.values_of(constants)
        path = path_of((*self.stack(), f"jit({name})"))
        results = _create(
            "func.call",
            [types.aval_type(aval) for aval in (*[token_aval] * len(ordered), *avals_out)],
            [*extra, *self.tokens_of(ordered), *args],
            {"callee": symbol},
            loc=self.module.locations.of(path, self.equation and self.equation.traceback),
            ip=self.ip,
        ).results
        return self.take_tokens(ordered, results)

    def carried(self, constants: Sequence["Constant"]) -> Sequence["Constant"]:
        """The constants that a function takes: where platforms may differ, which one it is too."""
        several = len(self.module.platforms) > 1 and id(INDEX) in self.hoisted
        return ((INDEX, index_aval), *constants) if several else constants

    def values_of(self, constants: Sequence["Constant"]) -> list[Value]:
        """The arguments of the function around that carry these large constants."""
        return [self.hoisted[id(value)] for value, _ in constants]

    def define_function(
        self,
        key: Any,
        name: str,
        avals_in: Sequence[Any],
        avals_out: Sequence[Any],
        body: Callable[..., Sequence[Value]],
        constants: Sequence["Constant"] = (),
        ordered: Sequence[Effect] = (),
    ) -> Any:
        """The symbol of the private function that `body` defines. See `call_function`.

        It takes the large constants, the tokens of the ordered effects and the arguments, and
        returns the tokens and the results.
        """
        module = self.module
        key = key, module.platforms
        symbol = module.functions.get(key)
        if symbol is not None:
            return symbol
        extra_types = [value.type for value in self.values_of(constants)]
        tokens = [token_aval] * len(ordered)
        in_types = [types.aval_type(aval) for aval in (*tokens, *avals_in)]
        unique = module.unique_symbol(name)
        function = _create(
            "func.func",
            attributes={
                "sym_name": types.string(unique),
                "sym_visibility": types.string("private"),
                "function_type": ir.TypeAttr.get(
                    ir.FunctionType.get(
                        extra_types + in_types,
                        [types.aval_type(aval) for aval in (*tokens, *avals_out)],
                        context=context,
                    ),
                    context=context,
                ),
            },
            regions=1,
            loc=self.loc,
            ip=module.ip,
        )
        symbol = ir.FlatSymbolRefAttr.get(unique, context)
        module.functions[key] = symbol
        block = function.regions[0].blocks.append(
            *extra_types, *in_types, arg_locs=[self.loc] * (len(extra_types) + len(in_types))
        )
        arguments = list(block.arguments)
        hoisted = {
            id(value): argument for (value, _), argument in zip(constants, arguments, strict=False)
        }
        # The prefix is empty: XLA puts the path of each call in front of it.
        inner = Builder(module, ir.InsertionPoint(block), (), hoisted)
        inputs = inner.take_tokens(ordered, arguments[len(extra_types) :])
        outputs = body(inner, *inputs)
        outputs = [*inner.tokens_of(ordered), *outputs]
        _create("func.return", (), outputs, loc=inner.loc, ip=inner.ip)
        return symbol


# A constant's value, and its aval in the program.
Constant = tuple[Any, Any]


@once_per_program
def large_constants(program: ClosedJaxpr) -> list[Constant]:
    """The large constants of a program and of those inside it, each once, in order of use."""
    unique: dict[int, Constant] = {}
    for var, const in zip(program.jaxpr.constvars, program.consts, strict=True):
        aval: Any = var.aval
        if isinstance(const, ShapeDtypeStruct):
            raise TypeError(
                "A ShapeDtypeStruct does not have a value and cannot be used as a constant of "
                f"a function that is lowered: got {const}. Use an array, or pass it as an "
                "argument."
            )
        if aval == token_aval:
            continue
        if aval.size * aval.dtype.itemsize > LARGE_CONSTANT_BYTES:
            unique[id(const)] = const, aval
    for inner in closed_programs_in(live_equations(program.jaxpr)):
        unique.update((id(const), (const, aval)) for const, aval in large_constants(inner))
    return list(unique.values())


# Loops and branches: they are lowered without the operands and results that nobody reads. Calls
# keep theirs, as all calls of a program share one function.
PRUNED: set[Primitive] = set()


def live_equations(jaxpr: Jaxpr) -> Sequence[Equation]:
    """Return the equations that the outputs or an effect depend on, in order; once per program."""
    if jaxpr.live is None:
        jaxpr.live = tuple(liveness.live_equations(jaxpr.eqns, jaxpr.outvars, _pruned))
    return jaxpr.live


def _pruned(equation: Equation, needed: set[Var]) -> Equation | None:
    if equation.primitive not in PRUNED:
        return equation
    return simplify[equation.primitive]([var in needed for var in equation.outvars], equation)[1]


def _as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple | list) else [x]
