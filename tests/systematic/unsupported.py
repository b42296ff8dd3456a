"""Samples that the compilers of GPUs and TPUs refuse, as they refuse what JAX makes of them."""

# platform -> part of the sample's name -> why.
UNSUPPORTED = {
    "cpu": {},
    "cuda": {
        "F16_F16_F16": "the GPU has no such sum",
        "conv_general_dilated_patches(int32": "cuDNN convolves no integers but bytes",
        "schur(": "there is no kernel for it",
        "hessenberg(": "there is no kernel for it",
    },
    "tpu": {
        "F32_F32_F32": "the TPU has products of bfloat16 alone",
        "F16_F16_F16": "as above",
        "F64_F64_F64": "as above",
        "convert(edges, int2)": "the TPU has no such vectors",
        "rfft(float64": "the TPU has transforms of 32 bits alone",
    },
}


def why_not(sample, platform):
    """Why a sample cannot be compiled there; None if it can."""
    found = UNSUPPORTED.get(platform, {})
    return next((why for part, why in found.items() if part in sample.name), None)
