"""Lower bounds of the time of a compiled program's operations, from a device's published rates."""

import re
from typing import NamedTuple

from hlotools.cost.estimates import Estimates
from hlotools.cost.fusion_needs import Needs, fused_computations, needs_of
from hlotools.cost.links import device_count_of, identity_of, is_collective, link_seconds
from hlotools.cost.products import product_seconds, products_in
from hlotools.cost.rates import DeviceRates
from hlotools.cost.traffic import transfers
from hlotools.ir.hlo import HloModule, Instruction

# Elementwise operations that are not free modifiers of other instructions on any device.
_VECTOR = frozenset({
    "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "exponential",
    "exponential-minus-one", "log", "log-plus-one", "logistic", "tanh", "sine", "cosine", "tan",
    "sqrt", "rsqrt", "cbrt", "power", "atan2", "erf",
})  # fmt: skip
_VIEWS = frozenset({"bitcast", "get-tuple-element", "copy-done", "async-done", "opt-barrier"})
# The share of a convolution's products that Winograd's algorithm for tiles of 4 x 4 computes.
_WINOGRAD = 1 / 4
_CYCLES = re.compile(r'"estimated_cycles":"?(\d{1,18})')


class Bound(NamedTuple):
    """The least seconds of all runs of an operation, by the device's resource."""

    computing: float
    memory: float
    """The transfers to and from the device's memory."""
    cache: float
    """The transfers to and from its cache."""
    links: float
    is_asynchronous: bool
    """Whether other operations run at the same time."""

    @property
    def seconds(self) -> float:
        return max(self.computing, self.memory + self.cache, self.links)

    @property
    def limit(self) -> str:
        """The resource that takes these seconds: "computing", "HBM", "cache" or "links"."""
        if self.links >= self.seconds:
            return "links"
        if self.computing >= self.seconds:
            return "computing"
        return "HBM" if self.memory >= self.cache else "cache"


class Bounds:
    """The bounds of a module's operations, computed in the order in which they run."""

    def __init__(self, module: HloModule, estimates: Estimates, rates: DeviceRates):
        self._estimates = estimates
        self._rates = rates
        self._device_count = device_count_of(module)
        self._read: set[int] = set()
        self._entry = module.entry
        root = module.entry.root
        results = root.operands if root.opcode == "tuple" else [root]
        self._results = {id(_owner(result)) for result in results}
        # By a collective's identity: those that TPUs run in pieces count once.
        self._known: set[object] = set()

    def of(self, instruction: Instruction, times: int, is_asynchronous: bool) -> Bound | None:
        """Return the bound of all runs of an operation; None if its work is unknown."""
        rates = self._rates
        is_unknown = (
            instruction.opcode == "custom-call" and not self._estimates.of(instruction).known
        )
        if not rates.bandwidth or is_unknown:
            return None
        memory, cache = self._moved(instruction, times)
        return Bound(
            self._computing(instruction) * times,
            memory / rates.bandwidth,
            cache / rates.cache_bandwidth if rates.cache_bandwidth else 0.0,
            self._links(instruction) * times,
            is_asynchronous or _starts(instruction),
        )

    def _moved(self, instruction: Instruction, times: int) -> tuple[float, float]:
        """Return the bytes of an operation's runs that come from memory, and from the cache.

        Without a cache all bytes come from memory. With one, arguments come from memory once,
        results of the program go there, and of other values the bytes that exceed the cache.
        """
        always = repeated = 0
        for value, count, is_write in transfers(instruction, self._estimates.needs):
            owner = _owner(value)
            if not self._rates.cache_bytes:
                always += count * times
            elif is_write and id(owner) in self._results:
                always += count
                repeated += count * (times - 1)
            elif not is_write and self._is_argument(owner) and id(owner) not in self._read:
                self._read.add(id(owner))
                always += count
                repeated += count * (times - 1)
            else:
                repeated += count * times
        missed = max(repeated - self._rates.cache_bytes * times, 0)
        return always + missed, repeated - missed

    def _is_argument(self, owner: Instruction) -> bool:
        return owner.opcode == "parameter" and owner.computation is self._entry

    def _computing(self, instruction: Instruction) -> float:
        products = sum(
            product_seconds(each, self._product_flops(each), self._rates.peak_flops) * count
            for each, count in products_in(instruction)
        )
        rate = self._rates.vector_flops
        return max(
            products, _vector_work(instruction, self._estimates.needs) / rate if rate else 0.0
        )

    def _product_flops(self, product: Instruction) -> float:
        flops = self._estimates.of(product).flops
        is_library = product.opcode == "custom-call" and "window" in product.attributes
        return flops * _WINOGRAD if is_library else flops

    def _links(self, instruction: Instruction) -> float:
        links = self._rates.links
        if links is None:
            return 0.0
        inside = instruction.fused.instructions if instruction.fused else [instruction]
        seconds = 0.0
        for step in inside:
            if not is_collective(step.opcode) or step.opcode.startswith(("send", "recv")):
                continue
            identity = identity_of(step)
            if identity not in self._known:
                self._known.add(identity)
                seconds += link_seconds(step, links, self._device_count)
        return seconds


def program_seconds(bounds: list[Bound]) -> float:
    """Return the least time of a program from the bounds of its operations.

    Operations run sequentially, except asynchronous ones, during which others run: these share the
    memory and the links.
    """
    in_order = sum(bound.seconds for bound in bounds if not bound.is_asynchronous)
    return max(
        in_order, sum(bound.memory for bound in bounds), sum(bound.links for bound in bounds)
    )


def compiler_seconds(instruction: Instruction, clock: float | None) -> float | None:
    """Return the compiler's own estimate of an operation's time, None if its text has none.

    The compiler for TPUs writes cycles; the one for GPUs writes times, with the compiler option
    `xla_gpu_collect_cost_model_stats`.
    """
    text = instruction.attributes.get("backend_config", "")
    cycles = _CYCLES.search(text.replace("\\", ""))
    if cycles is not None:
        return int(cycles[1]) / clock if clock else None
    if "exec_time_us" not in text:
        return None
    config = instruction.backend_config
    listed = config.get("reification_cost") if isinstance(config, dict) else None
    for model in listed if isinstance(listed, list) else []:
        # Its first, unnamed model is the one that it chooses fusions by.
        if isinstance(model, dict) and not model.get("name"):
            return float(model.get("exec_time_us", 0.0)) * 1e-6
    return None


def _starts(instruction: Instruction) -> bool:
    """Return whether an operation starts an asynchronous one, which ends at its done."""
    if instruction.opcode.endswith("-start"):
        return True
    # Programs for TPUs run collectives in pieces, in fusions with other work.
    inside = instruction.fused.instructions if instruction.fused else []
    return any("chain_id" in i.attributes.get("frontend_attributes", "") for i in inside)


def _owner(value: Instruction) -> Instruction:
    """Return the operation that made a value, or the value that it is a view of."""
    while value.opcode in _VIEWS and value.operands:
        value = value.operands[0]
    return value


def _vector_work(instruction: Instruction, known: dict[int, Needs]) -> float:
    """Return the number of elementwise operations that take a device's time in any case."""
    if instruction.fused is None:
        return instruction.shape.size if instruction.opcode in _VECTOR else 0
    work = 0.0
    # By the id of a computation: the share of its results that is needed, over all its callers.
    shares = {id(instruction.fused): 1.0}
    for computation, _ in fused_computations(instruction):
        share = shares[id(computation)]
        needs = needs_of(computation, known)
        for each in computation.instructions:
            if each.fused is not None:
                inner = share * needs.share(each)
                shares[id(each.fused)] = shares.get(id(each.fused), 0.0) + inner
            elif each.opcode in _VECTOR:
                work += share * needs.elements.get(id(each), 0)
            elif each.opcode == "reduce" and each.operands:
                combined = max(each.operands[0].shape.size - each.shape.size, 0)
                work += share * needs.share(each) * combined
    return work
