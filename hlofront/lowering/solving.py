"""Direct solutions as calls of LAPACK's; triangular ones as StableHLO on other devices."""

from hlofront.core.rules import lower
from hlofront.lowering import kernels, types
from hlofront.lowering.kernels import character
from hlofront.primitives import solving as s


@lower(s.triangular_solve_p, platform="cpu")
def _triangular_solve_on_cpu(
    build, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal
):
    a_aval, b_aval = build.avals_in
    (result,) = build.avals_out
    if not b_aval.size:
        return b
    letter = kernels.letter(build, b_aval.dtype)
    batch = b_aval.ndim - 2
    if conjugate_a and not transpose_a:
        # LAPACK conjugates only what it transposes.
        (a,) = build.by_tracing(s.conjugate, (a,), (a_aval,))
        conjugate_a = False
    transposed = ("C" if conjugate_a else "T") if transpose_a else "N"
    attributes = {
        "side": character("L" if left_side else "R"),
        "uplo": character("L" if lower else "U"),
        "trans_x": character(transposed),
        "diag": character("U" if unit_diagonal else "N"),
    }
    return kernels.call(
        *(build, f"{letter}trsm", (a, b), build.avals_in, (result,), batch, attributes, {0: 1})
    )[0]


@lower(s.triangular_solve_p)
def _(build, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    a_aval, b_aval = build.avals_in
    if not b_aval.size:
        return b
    if conjugate_a and not transpose_a:
        (a,) = build.by_tracing(s.conjugate, (a,), (a_aval,))
    kind = "NO_TRANSPOSE"
    if transpose_a:
        kind = "ADJOINT" if conjugate_a else "TRANSPOSE"
    return build.op(
        "stablehlo.triangular_solve",
        (a, b),
        left_side=types.boolean(left_side),
        lower=types.boolean(lower),
        unit_diagonal=types.boolean(unit_diagonal),
        transpose_a=types.attribute(f"#stablehlo<transpose {kind}>"),
    )


@lower(s.tridiagonal_solve_p)
def _(build, dl, d, du, b, *, perturb_singular):
    avals = *_, right = build.avals_in
    if not right.size:
        return b
    letter = kernels.letter(build, right.dtype)
    batch = right.ndim - 2
    if perturb_singular:
        name = "tridiagonal_solve_perturbed_ffi"
        return kernels.call(build, name, (dl, d, du, b), avals, (right,), batch)[0]
    aliases = {i: i for i in range(4)}
    results = [*avals, kernels.batch_info(right, batch)]
    *_, x, info = kernels.call(
        build, f"{letter}gtsv", (dl, d, du, b), avals, results, batch, None, aliases
    )
    return kernels.nan_where_failed(build, info, (x,), (right,))[0]
