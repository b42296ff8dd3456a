# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import Any, Literal, overload

from hlofront import Array
from hlofront.scipy.special.bessel import bessel_jn as bessel_jn
from hlofront.scipy.special.bessel import i0 as i0
from hlofront.scipy.special.bessel import i0e as i0e
from hlofront.scipy.special.bessel import i1 as i1
from hlofront.scipy.special.bessel import i1e as i1e
from hlofront.scipy.special.entropies import boxcox as boxcox
from hlofront.scipy.special.entropies import boxcox1p as boxcox1p
from hlofront.scipy.special.entropies import entr as entr
from hlofront.scipy.special.entropies import expit as expit
from hlofront.scipy.special.entropies import kl_div as kl_div
from hlofront.scipy.special.entropies import logit as logit
from hlofront.scipy.special.entropies import rel_entr as rel_entr
from hlofront.scipy.special.entropies import xlog1py as xlog1py
from hlofront.scipy.special.entropies import xlogy as xlogy
from hlofront.scipy.special.error_functions import erf as erf
from hlofront.scipy.special.error_functions import erfc as erfc
from hlofront.scipy.special.error_functions import erfcinv as erfcinv
from hlofront.scipy.special.error_functions import erfinv as erfinv
from hlofront.scipy.special.error_functions import log_ndtr as log_ndtr
from hlofront.scipy.special.error_functions import ndtr as ndtr
from hlofront.scipy.special.error_functions import ndtri as ndtri
from hlofront.scipy.special.exponential_integrals import exp1 as exp1
from hlofront.scipy.special.exponential_integrals import expi as expi
from hlofront.scipy.special.exponential_integrals import expn as expn
from hlofront.scipy.special.exponential_integrals import spence as spence
from hlofront.scipy.special.faddeeva import dawsn as dawsn
from hlofront.scipy.special.faddeeva import erfcx as erfcx
from hlofront.scipy.special.faddeeva import wofz as wofz
from hlofront.scipy.special.gamma_functions import bernoulli as bernoulli
from hlofront.scipy.special.gamma_functions import beta as beta
from hlofront.scipy.special.gamma_functions import betainc as betainc
from hlofront.scipy.special.gamma_functions import betaln as betaln
from hlofront.scipy.special.gamma_functions import comb as comb
from hlofront.scipy.special.gamma_functions import digamma as digamma
from hlofront.scipy.special.gamma_functions import factorial as factorial
from hlofront.scipy.special.gamma_functions import gamma as gamma
from hlofront.scipy.special.gamma_functions import gammainc as gammainc
from hlofront.scipy.special.gamma_functions import gammaincc as gammaincc
from hlofront.scipy.special.gamma_functions import gammaln as gammaln
from hlofront.scipy.special.gamma_functions import gammasgn as gammasgn
from hlofront.scipy.special.gamma_functions import loggamma as loggamma
from hlofront.scipy.special.gamma_functions import multigammaln as multigammaln
from hlofront.scipy.special.gamma_functions import poch as poch
from hlofront.scipy.special.gamma_functions import polygamma as polygamma
from hlofront.scipy.special.gamma_functions import zeta as zeta
from hlofront.scipy.special.hyp1f1 import hyp1f1 as hyp1f1
from hlofront.scipy.special.hyp2f1 import hyp2f1 as hyp2f1
from hlofront.scipy.special.oscillating_integrals import fresnel as fresnel
from hlofront.scipy.special.oscillating_integrals import owens_t as owens_t
from hlofront.scipy.special.oscillating_integrals import sici as sici
from hlofront.scipy.special.softmax import log_softmax as log_softmax
from hlofront.scipy.special.softmax import softmax as softmax
from hlofront.scipy.special.spherical_harmonics import sph_harm_y as sph_harm_y
from hlofront.typing import ArrayLike

@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any: ...
