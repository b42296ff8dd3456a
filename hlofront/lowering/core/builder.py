"""The builder passed to lowering rules, which emits operations and lowers jaxprs and functions."""

# The stubs of jaxlib do not name the types of the results of operations and lists.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Concatenate, cast

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.dtypes import short_name
from hlofront.base.elements import ExtendedDType
from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType
from hlofront.bridge.mlir import Operation, Value, Values, context, ir
from hlofront.core.aval import AbstractValue, ShapedArray, token_aval
from hlofront.core.compile_time import folding_constants
from hlofront.core.effects import Effect, ordered_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.names import NameStack, frontend_attributes_of, path_of
from hlofront.core.primitive import Primitive
from hlofront.core.programs.digest import LARGE_CONSTANT_BYTES
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import closed_programs_in, subprograms_in
from hlofront.core.references import touches_references
from hlofront.core.rules import LoweringRule, lower
from hlofront.core.sharding.mesh import NamedAxes
from hlofront.core.sharding.sharded_types import plain_aval
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core import types
from hlofront.lowering.core.counting_constants import first_of_counting
from hlofront.lowering.core.emitter import Emitter
from hlofront.lowering.core.extended import EXTENDED, extend_to_elements
from hlofront.lowering.core.frontend_attributes import marked
from hlofront.lowering.core.inlined_program import InlinedProgram
from hlofront.lowering.core.known_nans import may_find_nan
from hlofront.lowering.core.mesh_attributes import is_unreduced, mesh_of_results, typed_attribute
from hlofront.lowering.core.module_state import OperationScope
from hlofront.lowering.core.one_to_one import DIRECT, UNCHANGED
from hlofront.lowering.core.per_platform import INDEX, index_aval, lower_per_platform
from hlofront.lowering.core.pruning import live_equations
from hlofront.lowering.core.unknown_sizes import size_aval, without_unknown_sizes
from hlofront.transforms.discharge import discharge_program
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlofront.transforms.stage import stage

_create = Operation.create
# The number of times that a jaxpr that holds others is inlined before it becomes a function.
_MAX_COPIES = 8


class Builder(Emitter):
    """The argument of every lowering rule, which emits StableHLO at one position of a function."""

    __slots__ = ()

    # ---- programs

    def inline_closed(self, program: ClosedJaxpr, args: Values, *scope: str) -> list[Value]:
        """Emit the equations of a closed jaxpr at this position, and return its outputs.

        A jaxpr that holds others and was emitted several times becomes a private function: if each
        of 60 functions runs the one below it in two branches, the module would have 2**60 of them.
        """
        # Unused arguments may have no value.
        if self._is_repeated(program) and type(None) not in map(type, args):
            return self.call(program, "_".join(scope) or "closed_call", args)
        return self.inline(program.jaxpr, program.consts, args, *scope)

    def _is_repeated(self, program: ClosedJaxpr) -> bool:
        """Count the uses of a jaxpr, and return whether it should become a function."""
        if self.origin is not None or self.module.is_scalar_region:
            return False
        count = self.module.emitted.get(program, 0)
        self.module.emitted[program] = count + 1
        return count >= _MAX_COPIES and any(True for _ in subprograms_in(program.jaxpr.eqns))

    def inline(
        self, jaxpr: Jaxpr, consts: Sequence[object], args: Values, *scope: str
    ) -> list[Value]:
        """Emit the equations of a jaxpr at this position, and return its outputs.

        Args:
          consts: the values of the constants: arrays, or MLIR values that the caller has emitted.
          scope: the name scopes of the jaxpr in the current equation, such as "body" for a loop.
        """
        environment: dict[Var, Value] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            aval: Any = var.aval
            if isinstance(const, ir.Value):
                environment[var] = const
            elif aval == token_aval:  # The effects for which it waits are complete: emit a new one.
                environment[var] = self.op("stablehlo.create_token", (), token_aval)
            else:
                environment[var] = self.hoist(const, aval.dtype)
        environment.update(zip(jaxpr.invars, args, strict=True))
        saved = self.loc, self.avals_in, self.avals_out, self.equation, self.prefix, self.program
        self.prefix = self.within(*scope) if scope else self.stack()
        self.equation = None
        fences = self.module.fences
        fenced = fences.of(jaxpr) if fences is not None else ()
        typed_mesh = self.module.typed_mesh
        if typed_mesh is not None:
            for var in jaxpr.invars:
                value: Any = environment[var]
                # An unused input has no value.
                if value is not None and is_unreduced(var.aval):
                    environment[var] = self.split_by_type(value, var.aval)
        after_equation = self.module.after_equation if self.origin is None else None
        # The mesh of each value that is not on the program's mesh.
        elsewhere: dict[Var, NamedAxes] = {}
        if not self.module.may_find_nans:
            self.module.may_find_nans = may_find_nan(jaxpr)
        program = self.program = InlinedProgram(jaxpr, environment)
        for equation in program.equations:
            mesh = mesh_of_results(equation, elsewhere)
            if mesh is not None:
                elsewhere.update(dict.fromkeys(equation.outvars, mesh))
                self.module.typed_mesh = mesh if mesh.explicit_axes else None
            self.lower_equation(equation, environment)
            if after_equation is not None:
                after_equation(self, equation, environment)
            if self.module.typed_mesh is not None:
                constrains = not equation.primitive.carries_programs
                for var in equation.outvars:
                    # # XLA assumes that values are whole unless each use says that they are
                    # unreduced.
                    if constrains or is_unreduced(var.aval):
                        environment[var] = self.split_by_type(environment[var], var.aval)
            self.module.typed_mesh = typed_mesh
            if fenced and not fenced.isdisjoint(equation.outvars):
                for var in equation.outvars:
                    if var in fenced:
                        environment[var] = self.fence(environment[var], var.aval, equation)
        self.loc, self.avals_in, self.avals_out, self.equation, self.prefix, self.program = saved
        return [self.read(atom, environment) for atom in jaxpr.outvars]

    def split_by_type(self, x: Value, aval: AbstractValue) -> Value:
        """Return a value constrained to the split by explicit mesh axes that is in its type."""
        mesh = self.module.typed_mesh
        if mesh is None or not isinstance(aval, ShapedArray):
            return x
        attribute = typed_attribute(self.module, mesh, aval)
        return self.op("sdy.sharding_constraint", (x,), aval, sharding=attribute)

    def fence(self, x: Value, aval: AbstractValue, equation: Equation) -> Value:
        """Return an equation's result behind an optimization barrier, so that XLA stores it."""
        around = self.loc
        if self.origin is None:
            name = self.scope_of(equation).name_of("fence")
            self.loc = self.module.locations.of(name, equation.traceback)
            if self.module.fences is not None:
                self.module.fences.record(aval, equation.traceback)
        (result,) = self.barrier((x,), (aval,))
        self.loc = around
        return result

    def read(self, atom: Atom, environment: Mapping[Var, Value]) -> Value:
        """Return the MLIR value of a variable of the environment, or of a literal."""
        if isinstance(atom, Literal):
            aval: Any = atom.aval
            return self.hoist(atom.val, aval.dtype)
        return environment[atom]

    def literal(self, atom: Literal, direct: str | None, outvars: Sequence[Var]) -> Value:
        """Return a literal operand, broadcast to the result's shape if the rule is an operation.

        Args:
          direct: the name of that operation, or None.
          outvars: the results of the equation.
        """
        aval: Any = atom.aval
        if direct is None or aval.shape:
            return self.hoist(atom.val, aval.dtype)
        result: Any = outvars[0].aval
        return self.full(atom.val, result.update(dtype=aval.dtype))

    def hoist(self, value: Any, dtype: DType) -> Value:
        """Return the value of a constant: a function argument if it is large, else an operation."""
        argument = self.hoisted.get(id(value))
        if argument is not None:
            return argument
        if isinstance(dtype, ExtendedDType):
            return self.constant(np.asarray(value._live_base()))
        first = first_of_counting(value)
        if first is not None:
            aval = ShapedArray(value.shape, dtype)
            # 64-bit NumPy integers may be too large for the 32 bits to which they are narrowed.
            first = int(np.array(first).astype(dtype))
            return self.op("stablehlo.add", (self.iota(aval, 0), self.full(first, aval)), aval)
        return self.constant(np.asarray(value), dtype)

    def lower_equation(self, equation: Equation, environment: dict[Var, Value]) -> None:
        """Emit one equation, with operands read from `environment` and results written to it."""
        scope = self.scope_of(equation)
        if scope.attributes:
            with marked(self.ip.block, scope.attributes):
                self._lower_equation(equation, scope, environment)
        else:
            self._lower_equation(equation, scope, environment)

    def _lower_equation(
        self, equation: Equation, scope: OperationScope, environment: dict[Var, Value]
    ) -> None:
        primitive = equation.primitive
        if primitive in UNCHANGED and primitive not in self.module.overrides:
            environment[equation.outvars[0]] = self.read(equation.invars[0], environment)
            return
        if self.origin is None:
            traceback = equation.source_info.traceback
            self.loc = self.module.locations.of(scope.name_of(primitive.name), traceback)
        outvars = equation.outvars
        name = DIRECT.get(primitive)
        if name is not None:
            if primitive.name in lower.modules:
                lower.load_for(primitive, self.module.platforms, outvars[0].aval)
            if primitive in lower.on_some or primitive in self.module.overrides:
                name = None
            for value in equation.params.values():
                if value is not None:
                    name = None
        operands = [
            self.literal(atom, name, outvars) if isinstance(atom, Literal) else environment[atom]
            for atom in equation.invars
        ]
        if name is not None:
            out: Any = outvars[0].aval
            for i, atom in enumerate(equation.invars):
                aval: Any = atom.aval
                if aval.shape != out.shape and type(atom) is not Literal:
                    operands[i] = self.broadcast_to(operands[i], aval, out)
            environment[outvars[0]] = _create(
                name, (types.aval_type(out),), operands, None, loc=self.loc, ip=self.ip
            ).result
            return
        self.avals_in = [atom.aval for atom in equation.invars]
        self.avals_out = [var.aval for var in outvars]
        self.equation = equation
        params = equation.params
        if primitive in EXTENDED and isinstance(self.avals_in[0].dtype, ExtendedDType):
            operands, params = extend_to_elements(self, operands, params)
        rule = self.rule(primitive)
        # One value, or a sequence with a value per result.
        results: Any
        try:
            if rule is not None:
                results = rule(self, *operands, **params)
            else:
                results = lower_per_platform(self, operands, params)
        except InconclusiveDimensionOperation as error:
            raise without_unknown_sizes(primitive.name, params, error) from None
        if primitive.multiple_results:
            environment.update(zip(outvars, results, strict=True))
        else:
            environment[outvars[0]] = results

    def rule(self, primitive: Primitive) -> LoweringRule | None:
        """Return the lowering rule of a primitive; None if its platforms have different ones."""
        platforms, overrides = self.module.platforms, self.module.overrides
        if primitive in overrides:
            return overrides[primitive]
        if len(platforms) == 1:
            return lower.for_platform(primitive, platforms[0], self)
        groups = lower.for_platforms(primitive, platforms, self)
        return groups[0][0] if len(groups) == 1 else None

    @property
    def is_undivided(self) -> bool:
        """Return whether the current equation runs on one device and all its sizes are known."""
        if self.module.several_devices:
            return False
        avals = (*self.avals_in, *self.avals_out)
        return not any(has_symbolic_size(aval.shape) for aval in avals)

    def stack(self) -> NameStack:
        """Return the name stack at the current position."""
        return (*self.prefix, *self.equation.name_stack) if self.equation else self.prefix

    def within(self, *parts: str) -> NameStack:
        """Return a name stack for a region of the current equation: its path, then `parts`."""
        return (path_of(self.stack()), *parts) if self.stack() else parts

    def scope_of(self, equation: Equation) -> OperationScope:
        """Return the path and the frontend attributes of the operations of an equation."""
        scopes = equation.source_info.scopes
        key = self.prefix, scopes
        scope = self.module.scopes.get(key)
        if scope is None:
            path = path_of((*self.prefix, *scopes))
            scope = OperationScope(path, frontend_attributes_of(scopes))
            self.module.scopes[key] = scope
        return scope

    def by_tracing(
        self,
        function: Callable[..., ArrayLike | ArrayLikes],
        operands: Values,
        avals: Sequence[AbstractValue] | None = None,
        **params: object,
    ) -> list[Value]:
        """Trace `function(*operands, **params)` and emit the jaxpr inline.

        All operations implement the current equation, and have its location.

        Args:
          function: takes arrays and returns one array or a sequence of them.
          avals: the avals of the operands; None for those of the equation.
        """
        avals = [plain_aval(aval) for aval in (self.avals_in if avals is None else avals)]
        # The equation may have been traced under enable_x64(True), which no longer applies.
        wide = enable_x64.value or any(map(types.is_wide, (*avals, *self.avals_out)))
        with enable_x64(wide), folding_constants(False):
            program = stage(lambda *xs: _as_list(function(*xs, **params)), avals)
        if touches_references(program.effects):  # They never leave the function.
            program = discharge_program(program).program
        return self.inline_traced(program, operands)

    def inline_traced(self, program: ClosedJaxpr, operands: Values) -> list[Value]:
        """Emit a closed jaxpr whose equations all implement the current one, at its location."""
        around, self.origin = self.origin, self.loc
        try:
            with self.module.without_types():
                return self.inline_closed(program, operands)
        finally:
            self.origin = around

    def call(
        self, program: ClosedJaxpr, name: str, args: Values, **attributes: ir.Attribute
    ) -> list[Value]:
        """Emit a call of a closed jaxpr as a private function, which equal programs share.

        Args:
          attributes: further attributes of the call.
        """
        return self.call_function(
            program,
            name,
            args,
            program.in_avals,
            program.out_avals,
            lambda inner, *xs: inner.inline(program.jaxpr, program.consts, xs),
            large_constants(program),
            program.effects,
            **attributes,
        )

    def call_function(
        self,
        key: Hashable,
        name: str,
        args: Values,
        avals_in: Sequence[AbstractValue],
        avals_out: Sequence[AbstractValue],
        body: Callable[Concatenate["Builder", ...], Values],
        constants: Sequence["Constant"] = (),
        effects: Iterable[Effect] = (),
        **attributes: ir.Attribute,
    ) -> list[Value]:
        """Emit a call of the private function that `body` defines once per `key` and module.

        Args:
          body: `body(builder, *args)` returns the results.
          constants: the large constants inside, which are arguments of the module's main function
            and passed down through calls.
          effects: the effects of the body. Tokens of ordered effects are passed in and returned.
          attributes: further attributes of the call.
        """
        ordered = ordered_effects(effects)
        constants = self.carried(constants)
        symbol = self.define_function(key, name, avals_in, avals_out, body, constants, ordered)
        results = _create(
            "func.call",
            [types.aval_type(aval) for aval in (*[token_aval] * len(ordered), *avals_out)],
            [*self.values_of(constants), *self.tokens_of(ordered), *args],
            {"callee": symbol, **attributes},
            loc=self.location(path_of((*self.stack(), f"jit({name})"))),
            ip=self.ip,
        ).results
        return self.take_tokens(ordered, results)

    def as_function(
        self,
        rule: LoweringRule,
        operands: Values,
        params: Mapping[str, Any],
        avals: Sequence[AbstractValue] | None = None,
        key: Hashable = None,
        **facts: Hashable,
    ) -> Any:
        """Lower the current equation by a rule in a private function, and emit a call of it.

        Equations with equal types and parameters share the function. It is named after the
        primitive, and XLA gives the location of each call to all operations of the body.

        Args:
          rule: `rule(builder, *operands, **params, **facts)`, which emits several operations.
          avals: the avals of the operands; None for those of the equation.
          key: the key of the rule in the comparison of functions; None for the rule itself. facts:
              known facts about the operands, which are arguments of the function.

        Returns:
          The result of the rule: a value, or a sequence of them.
        """
        equation, avals_in, avals_out = self.current, self.avals_in, self.avals_out
        is_in_place = self.module.is_scalar_region or equation is self.defined_for
        if is_in_place or self.scope_of(equation).attributes:
            # Regions of reductions cannot call functions; attributes are set on each operation.
            return rule(self, *operands, **params, **facts)
        is_one = not equation.primitive.multiple_results

        def body(inner: Builder, *xs: Value) -> Values:
            function: Any = inner.ip.block.owner
            function.attributes["hlofront.primitive"] = types.string(equation.primitive.name)
            inner.equation = inner.defined_for = equation
            inner.avals_in, inner.avals_out = avals_in, avals_out
            results = rule(inner, *xs, **params, **facts)
            return [results] if is_one else results

        aval = (*avals_in, *avals_out)[0]
        name = f"{equation.primitive.name}_{short_name(aval.dtype)}"
        avals = avals_in if avals is None else avals
        values = _distinct({**params, **facts})
        key = (
            key or rule,
            equation.primitive,
            *avals_in,
            *avals_out,
            *values,
            *avals,
            enable_x64.value,
        )
        around, self.origin = self.origin, self.loc
        try:
            results = self.call_function(_hashable(key), name, operands, avals, avals_out, body)
        finally:
            self.origin = around
        return results[0] if is_one else results

    def carried(self, constants: Sequence["Constant"]) -> Sequence["Constant"]:
        """Return a function's large constants, after the platform index and the size variables."""
        variables = self.module.size_variables
        if variables:
            aval = size_aval()
            constants = *(Constant(variable, aval) for variable in variables.values()), *constants
        several = len(self.module.platforms) > 1 and id(INDEX) in self.hoisted
        return (Constant(INDEX, index_aval), *constants) if several else constants

    def values_of(self, constants: Sequence["Constant"]) -> list[Value]:
        """Return the arguments of the current function that carry these large constants."""
        return [self.hoisted[id(constant.value)] for constant in constants]

    def define_function(
        self,
        key: Hashable,
        name: str,
        avals_in: Sequence[AbstractValue],
        avals_out: Sequence[AbstractValue],
        body: Callable[Concatenate["Builder", ...], Values],
        constants: Sequence["Constant"] = (),
        ordered: Sequence[Effect] = (),
    ) -> ir.FlatSymbolRefAttr:
        """Return the symbol of the private function that `body` defines, for `call_function`.

        The function takes the large constants, the tokens of the ordered effects and the arguments,
        and returns the tokens and the results.
        """
        module, is_traced = self.module, self.origin is not None
        state = module.typed_mesh, module.manual, module.may_find_nans, is_traced
        key = key, module.platforms, *state
        symbol = module.functions.get(key)
        if symbol is None:
            symbol = self._defined(key, name, avals_in, avals_out, body, constants, ordered)
        if key in module.functions_with_barriers:
            module.has_barriers = True
            module.has_inner_barriers |= not self.is_at_top
        return symbol

    def _defined(
        self,
        key: Hashable,
        name: str,
        avals_in: Sequence[AbstractValue],
        avals_out: Sequence[AbstractValue],
        body: Callable[Concatenate["Builder", ...], Values],
        constants: Sequence["Constant"],
        ordered: Sequence[Effect],
    ) -> ir.FlatSymbolRefAttr:
        """Add a function to the module, and return its symbol; see `define_function`."""
        module = self.module
        extra_types = [value.type for value in self.values_of(constants)]
        tokens = [token_aval] * len(ordered)
        in_types = [types.aval_type(aval) for aval in (*tokens, *avals_in)]
        unique = module.unique_symbol(name)
        out_types = [types.aval_type(aval) for aval in (*tokens, *avals_out)]
        in_types = extra_types + in_types
        # The operations of a function that implements an equation have the location of each call.
        origin = None if self.origin is None else module.locations.unknown
        loc = origin or self.loc
        function = module.create_function(unique, "private", in_types, out_types, loc)
        symbol = ir.FlatSymbolRefAttr.get(unique, context)
        module.functions[key] = symbol
        block = function.regions[0].blocks.append(*in_types, arg_locs=[loc] * len(in_types))
        arguments = list(block.arguments)
        hoisted = hoisted_arguments(constants, arguments)
        # The name stack is empty: XLA prepends the path of each call.
        inner = Builder(module, ir.InsertionPoint(block), (), hoisted)
        inner.origin, inner.is_at_top = origin, True
        inputs = inner.take_tokens(ordered, arguments[len(extra_types) :])
        barriers, module.has_barriers = module.has_barriers, False
        outputs = body(inner, *inputs)
        if module.has_barriers:
            module.functions_with_barriers.add(key)
        module.has_barriers |= barriers
        outputs = [*inner.tokens_of(ordered), *outputs]
        _create("func.return", (), outputs, loc=inner.loc, ip=inner.ip)
        return symbol


def in_function(rule: LoweringRule) -> LoweringRule:
    """Return a lowering rule that calls a private function with the operations of another rule."""

    @functools.wraps(rule)
    def call(build: Builder, *operands: Value, **params: Any) -> Any:
        return build.as_function(rule, operands, params)

    return call


class Constant(NamedTuple):
    """A constant of a program and its aval in that program."""

    value: Any
    aval: ShapedArray


def hoisted_arguments(constants: Sequence[Constant], arguments: Values) -> dict[int, Value]:
    """Map the id of each constant to the function argument that carries it."""
    return {id(constant.value): argument for constant, argument in zip(constants, arguments)}


@once_per_program
def large_constants(program: ClosedJaxpr) -> list[Constant]:
    """Return the large constants of a program and its subprograms, once each, in order of use.

    Raises:
      TypeError: if a constant is a ShapeDtypeStruct.
    """
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
        is_large = aval.size * aval.dtype.itemsize > LARGE_CONSTANT_BYTES
        if is_large and first_of_counting(const) is None:
            unique[id(const)] = Constant(const, aval)
    for inner in closed_programs_in(live_equations(program.jaxpr)):
        unique.update((id(constant.value), constant) for constant in large_constants(inner))
    return list(unique.values())


def _distinct(params: Mapping[str, object]) -> list[Hashable]:
    """Return parameters as parts of a key that distinguishes 0.0 from -0.0, which are equal."""
    return [
        (name, type(value), repr(value) if isinstance(value, float) else value)
        for name, value in params.items()
    ]


def _hashable(key: Hashable) -> Hashable:
    """Return a key, or a unique one if it has parts that cannot be compared."""
    try:
        hash(key)
    except TypeError:
        return object()
    return key


def _as_list(x: ArrayLike | ArrayLikes) -> list[ArrayLike]:
    return list(x) if isinstance(x, tuple | list) else [cast(Array, x)]
