"""Faults that a hurried contributor might make, one of each kind, all over the code.

The tests must find each of them: `python -m tests.planted` plants them one at a time. A fault that
users report and no test had found is added here, with the test that finds it.
"""

import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]


class Fault(NamedTuple):
    """A fault: a text that occurs once in a file, and the text that replaces it.

    Attributes:
      name: what is wrong, as a sentence.
      kind: what sort of fault it is.
      file: the path of the file in the repository.
      right: the text as it is.
      wrong: the text with the fault.
    """

    name: str
    kind: str
    file: str
    right: str
    wrong: str

    @property
    def layer(self) -> str:
        """The folder of hlofront or hlotools that has the fault, such as "runtime/export"."""
        return str(pathlib.PurePosixPath(self.file).parent).removeprefix("hlofront/")

    def planted(self, source: str) -> str:
        """Return the file's text with the fault.

        Raises:
          ValueError: if the text that the fault replaces is not in the file exactly once.
        """
        count = source.count(self.right)
        if count != 1:
            raise ValueError(f"{self.file} has {self.right!r} {count} times, and not once")
        return source.replace(self.right, self.wrong)


FAULTS = (
    # ---- base and core
    Fault(
        "uint16 and int16 promote to int64",
        "promotion of one pair of dtypes",
        "hlofront/base/promotion_order.py",
        "_u16: (_i32, _u32),",
        "_u16: (_i64, _u32),",
    ),
    Fault(
        "an error while a shared value is computed leaves its lock with the others",
        "a lost lock",
        "hlofront/base/compute_once.py",
        "            if not making or _under_way",
        "            if name in table and _under_way",
    ),
    Fault(
        "the children of a defaultdict are in the order of insertion",
        "order of a pytree's keys",
        "hlofront/base/tree_nodes.py",
        "def _flatten_defaultdict(mapping: collections.defaultdict[Any, PyTree]) -> Level:\n"
        "    keys = sorted(mapping)",
        "def _flatten_defaultdict(mapping: collections.defaultdict[Any, PyTree]) -> Level:\n"
        "    keys = list(mapping)",
    ),
    Fault(
        "programs whose shardings differ in the kind of memory have one digest",
        "cache key",
        "hlofront/core/programs/digest.py",
        "self._members((value.mesh, value.spec, value.memory_kind))",
        "self._members((value.mesh, value.spec))",
    ),
    Fault(
        "an aval with another shape keeps no weak type",
        "weak type",
        "hlofront/core/aval.py",
        "            self.weak_type if weak_type is None else weak_type,\n"
        "            sharding=self.split if keeps_split else sharding,",
        "            (self.weak_type and shape is None) if weak_type is None else weak_type,\n"
        "            sharding=self.split if keeps_split else sharding,",
    ),
    # ---- primitives
    Fault(
        "the cotangent of an imaginary part has the wrong sign",
        "transpose rule for one operand",
        "hlofront/primitives/elementwise/rules.py",
        "neg(unbroadcast(e.imag(cotangent), y)) if is_linear(y) else None,",
        "unbroadcast(e.imag(cotangent), y) if is_linear(y) else None,",
    ),
    Fault(
        "the derivative of acosh of complex numbers is that of real ones",
        "derivative for one dtype",
        "hlofront/primitives/elementwise/rules.py",
        "def _change_of_acosh(t: ArrayLike, result: ArrayLike, x: ArrayLike) -> Array:\n"
        "    if is_complex(typeof(x).dtype):",
        "def _change_of_acosh(t: ArrayLike, result: ArrayLike, x: ArrayLike) -> Array:\n"
        "    if is_complex(typeof(x).dtype) and typeof(x).weak_type:",
    ),
    Fault(
        "the derivative of x ** 0 at 0 is NaN for integer exponents",
        "derivative for one dtype",
        "hlofront/primitives/elementwise/rules.py",
        "lower = sub(y, convert(ne(y, scalar_like(y, 0)), exponent.dtype, exponent.weak_type))",
        "lower = sub(y, scalar_like(y, 1))",
    ),
    Fault(
        "a tangent that broadcasts is not split as the result is",
        "sharding",
        "hlofront/primitives/elementwise/rules.py",
        '"sharding": None if expected.spec is None else expected.sharding,',
        '"sharding": None,',
    ),
    Fault(
        "vmap of stack returns the wrong batch axis where it is the new axis",
        "axis under vmap",
        "hlofront/primitives/arrays/slicing_rules.py",
        "return result, batch_axis + (batch_axis > axis)",
        "return result, batch_axis + (batch_axis >= axis)",
    ),
    Fault(
        "the cotangent of an array that pad cuts on one side keeps the padding of the other",
        "negative padding",
        "hlofront/primitives/arrays/slicing_rules.py",
        "[(-row[0], -row[1], 0) for row in rows]",
        "[(max(-row[0], 0), max(-row[1], 0), 0) for row in rows]",
    ),
    Fault(
        "top_k under vmap takes the batch axis for its own",
        "axis under vmap",
        "hlofront/primitives/arrays/sorting.py",
        '{"k": k, "axis": axis + (axis >= batch_axis)}',
        '{"k": k, "axis": axis + (axis > batch_axis)}',
    ),
    Fault(
        "the cotangent of irfft of odd length counts the last frequency once",
        "derivative for one parity",
        "hlofront/primitives/linalg/fourier.py",
        "alone = [0, length // 2] if length % 2 == 0 else [0]",
        "alone = [0, length // 2]",
    ),
    Fault(
        "the second derivative of eigh is not that of a symmetric function",
        "symmetrization in linear algebra",
        "hlofront/primitives/linalg/spectral.py",
        'x, tangent = symmetrize("eigh", primals[0]), instantiate(tangents[0])',
        "x, tangent = primals[0], instantiate(tangents[0])",
    ),
    Fault(
        "the tangent of gather has the fill value outside of the array",
        "mode of a gather",
        "hlofront/primitives/arrays/gathering.py",
        'params = {**params, "fill_value": 0}',
        "pass",
    ),
    # ---- transforms
    Fault(
        "an error of a batched program names no line of the user's",
        "line in a message",
        "hlofront/transforms/batch.py",
        "        except Exception:\n"
        "            with user_context(equation.traceback):\n"
        "                raise\n"
        "        if not primitive.multiple_results:\n"
        "            results, axes_out = (results,), (axes_out,)",
        "        except Exception:\n"
        "            raise\n"
        "        if not primitive.multiple_results:\n"
        "            results, axes_out = (results,), (axes_out,)",
    ),
    Fault(
        "a known value that is an unknown output is no residual",
        "residuals of linearize",
        "hlofront/transforms/partial_eval.py",
        "for atom in (*(a for e in unknown_equations for a in e.invars), *unknown_outputs):",
        "for atom in (a for e in unknown_equations for a in e.invars):",
    ),
    # ---- higher_order
    Fault(
        "a cond has the effects of its first branch only",
        "effect",
        "hlofront/higher_order/control_flow/cond.py",
        "return no_effects.union(*[branch.effects for branch in branches])",
        "return no_effects.union(branches[0].effects)",
    ),
    Fault(
        "the cotangent of an empty scan is that of its body",
        "transpose rule for no iterations",
        "hlofront/higher_order/control_flow/scan_rules.py",
        "var in reached or (arrives and (no_steps or out in depends))",
        "var in reached or (arrives and out in depends)",
    ),
    Fault(
        "a batched switch stops the derivatives of the branch that is taken",
        "cond under vmap",
        "hlofront/higher_order/control_flow/cond_rules.py",
        "return select_n(self._is(number, typeof(x).shape), constant, x)",
        "return select_n(self._is(number, typeof(x).shape), x, constant)",
    ),
    Fault(
        "rules of custom_vjp take nondiff arguments in the order of nondiff_argnums",
        "nondiff_argnums",
        "hlofront/higher_order/custom_rules/custom_rule.py",
        "self.fixed = {n: owner.fixed_argument(args[n]) for n in sorted(fixed)}",
        "self.fixed = {\n"
        "            n % len(args): owner.fixed_argument(args[n])\n"
        "            for n in owner.nondiff_positions(len(args))\n"
        "        }",
    ),
    Fault(
        "checkify does not check the indices of scatter_sub",
        "check of one operation",
        "hlofront/higher_order/checkify/checkify_rules.py",
        "@error_check(scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p,",
        "@error_check(scatter_p, scatter_add_p, scatter_mul_p,",
    ),
    Fault(
        "shard_map accepts a reduced result under a spec that is not",
        "vma check of shard_map",
        "hlofront/higher_order/shard_map/shard_map_specs.py",
        "- spec.unreduced | (kind.reduced - spec.reduced)",
        "- spec.unreduced",
    ),
    # ---- lowering
    Fault(
        "select_n of five arrays never selects the fourth",
        "off by one",
        "hlofront/lowering/ops/elementwise.py",
        "_select(build, which, which_aval, cases[middle:], offset + middle),",
        "_select(build, which, which_aval, cases[middle:], middle),",
    ),
    Fault(
        "on GPUs eigh reads the lower triangle where it is asked for the upper one",
        "attribute for one platform",
        "hlofront/lowering/linalg/spectral_gpu.py",
        '{"algorithm": f"{_EIGH_ALGORITHMS[algorithm]} : ui8", "lower": flag(lower)}',
        '{"algorithm": f"{_EIGH_ALGORITHMS[algorithm]} : ui8", "lower": flag(True)}',
    ),
    Fault(
        "on TPUs a sum takes out a factor that varies along the summed axis",
        "rewrite for one platform",
        "hlofront/lowering/tpu/reduce.py",
        "if varying and summed.isdisjoint(varying):",
        "if varying:",
    ),
    # ---- pjrt and runtime
    Fault(
        "the key on disk lacks the version of jaxlib",
        "cache key",
        "hlofront/pjrt/cache_key.py",
        "f\"{'.'.join(map(str, state.jaxlib_version))} {state.jaxlib_build}\"",
        "state.jaxlib_build",
    ),
    Fault(
        "jit(f, donate_argnames=) uses the programs of jit(f)",
        "cache key",
        "hlofront/runtime/dispatch/jit.py",
        "            plan.donate_argnums,\n            plan.donate_argnames,\n            *variant",
        "            plan.donate_argnums,\n            *variant",
    ),
    Fault(
        "donated arguments stay as they are",
        "donation",
        "hlofront/runtime/dispatch/jit.py",
        "            traced.donated,\n            self.keep_unused,\n",
        "            (),\n            self.keep_unused,\n",
    ),
    Fault(
        "an exported argument is not weakly typed after it is read",
        "field of a file",
        "hlofront/runtime/export/records.py",
        '"weak_type": aval.weak_type,',
        '"weak_type": False,',
    ),
    Fault(
        "only the first call of a jitted function is checked for NaNs",
        "path of the second call",
        "hlofront/runtime/dispatch/executable.py",
        "if nan_checks.are_on() or array_lines.value or",
        "if array_lines.value or",
    ),
    Fault(
        "jit with one device accepts arguments of another",
        "class of an error",
        "hlofront/runtime/dispatch/jit_shardings.py",
        'check_on_device(device, requested, leaves, lambda i: f"argument {names[i]}")',
        "pass",
    ),
    # ---- the user's vocabulary
    Fault(
        "pad takes the length of the last statistic from that of the first",
        "off by one",
        "hlofront/numpy/arrays/padding.py",
        "bounds = (0, first), (size - last, size)",
        "bounds = (0, first), (size - first, size)",
    ),
    Fault(
        "einsum aligns the axes of ellipses at their start",
        "broadcast",
        "hlofront/numpy/einsum.py",
        'term.replace("...", ellipsis[most - count :])',
        'term.replace("...", ellipsis[:count])',
    ),
    Fault(
        "x[i, 5:2:-1] with a computed i starts one element too early",
        "off by one",
        "hlofront/numpy/indexing/reading.py",
        "start = start + 1 - count if count else stop + 1",
        "start = start - count if count else stop + 1",
    ),
    Fault(
        "segment_sum counts negative segment numbers from the end",
        "default of an argument",
        "hlofront/numpy/statistics/segments.py",
        "        wrap_negative_indices=False,\n",
        "",
    ),
    Fault(
        "one-sided spectra of odd length do not double the highest frequency",
        "off by one",
        "hlofront/scipy/signal/spectra.py",
        "last = None if settings.transformed % 2 else -1",
        "last = -1",
    ),
    Fault(
        "attention with a window and is_causal lets queries look ahead of themselves",
        "mask",
        "hlofront/nn/attention.py",
        "if not is_causal or after < 0:",
        "if not is_causal:",
    ),
    Fault(
        "randint of int8 never returns the greatest number",
        "overflow of one dtype",
        "hlofront/random/discrete.py",
        "max=int(info.max) + 1)",
        "max=int(info.max))",
    ),
    Fault(
        "8 random bits of a number of elements that 4 does not divide lack a word",
        "random bits of one width",
        "hlofront/random/threefry.py",
        "words = -(-bit_width * size // 32)",
        "words = bit_width * size // 32",
    ),
    Fault(
        "a slice of a BCOO array lacks the positions at its start",
        "sparse indices",
        "hlofront/sparse/bcoo_slicing.py",
        "inside = bitwise_and(indices >= first, indices < last)",
        "inside = bitwise_and(indices > first, indices < last)",
    ),
    Fault(
        "antialiasing of images is lost where they become smaller",
        "option without effect",
        "hlofront/image/resizing.py",
        "distances = distances / jnp.maximum(inverse, 1.0)",
        "distances = distances / jnp.minimum(inverse, 1.0)",
    ),
    # ---- pallas
    Fault(
        "the program_id of a batched kernel counts examples",
        "axis of a grid",
        "hlofront/pallas/kernel_call.py",
        "vmapped_dims=(0, *[dim + 1 for dim in mapping.vmapped_dims])",
        "vmapped_dims=tuple([dim + 1 for dim in mapping.vmapped_dims])",
    ),
    Fault(
        "the last block of an array that blocks do not divide begins earlier",
        "padding",
        "hlofront/pallas/interpret/blocks.py",
        "after + (-(before + n + after) % size if size else 0)",
        "after",
    ),
    # ---- tools
    Fault(
        "find_nan blames the operation that passes a NaN on",
        "report",
        "hlofront/inspect/nan/instrumentation.py",
        "bad = bad & ~other",
        "bad = bad & other",
    ),
    Fault(
        "diff --fail-on fails for any difference",
        "exit status",
        "hlofront/cli/diff.py",
        "return 1 if exceeded else 0",
        "return 0 if difference.equal else 1",
    ),
    Fault(
        "the cost of cuDNN's gradient of a kernel takes the image for the result",
        "cost of one operation",
        "hlotools/cost/estimates.py",
        "        second, result = result, second\n",
        "        first, result = result, first\n",
    ),
    Fault(
        "a constant that left a fusion is a change",
        "difference of two programs",
        "hlotools/matching/hlo_changes.py",
        '(change.kind == "added" and change.after in known[0])',
        '(change.kind == "added" and change.after in known[1])',
    ),
    Fault(
        "updates that are padding of a bucket are added by a scatter",
        "rule of padded operands",
        "hlofront/runtime/buckets/index_rules.py",
        "    if batch:\n",
        "    if not batch:\n",
    ),
)
