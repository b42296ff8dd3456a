"""hlofront.scipy.special: special functions by SciPy's names."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.scipy.special.bessel": "bessel_jn i0 i0e i1 i1e",
        "hlofront.scipy.special.entropies": (
            "boxcox boxcox1p entr expit kl_div logit rel_entr xlog1py xlogy"
        ),
        "hlofront.scipy.special.error_functions": "erf erfc erfcinv erfinv log_ndtr ndtr ndtri",
        "hlofront.scipy.special.exponential_integrals": "exp1 expi expn spence",
        "hlofront.scipy.special.faddeeva": "dawsn erfcx wofz",
        "hlofront.scipy.special.gamma_functions": (
            "bernoulli beta betainc betaln comb digamma factorial gamma gammainc gammaincc gammaln "
            "gammasgn loggamma multigammaln poch polygamma zeta"
        ),
        "hlofront.scipy.special.hyp1f1": "hyp1f1",
        "hlofront.scipy.special.hyp2f1": "hyp2f1",
        "hlofront.scipy.special.legendre": "sph_harm_y",
        "hlofront.scipy.special.oscillating_integrals": "fresnel owens_t sici",
        "hlofront.scipy.special.softmax": "log_softmax logsumexp softmax",
    },
)
