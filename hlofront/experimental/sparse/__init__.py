"""jax.experimental.sparse: sparse arrays, and functions of dense arrays made for them."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="linalg",
    now={
        "hlofront.primitives.sparse.elements": (
            "bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p bcoo_sum_duplicates_p "
            "bcoo_todense_p bcoo_transpose_p todense_p"
        ),
        "hlofront.primitives.sparse.matrices": (
            "coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p csr_fromdense_p csr_matmat_p "
            "csr_matvec_p csr_todense_p"
        ),
        "hlofront.primitives.sparse.products": (
            "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_spdot_general_p"
        ),
        "hlofront.primitives.sparse.rows": (
            "bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p"
        ),
        "hlofront.sparse.arrays": "JAXSparse todense",
        "hlofront.sparse.bcoo": (
            "BCOO bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_sum_duplicates bcoo_todense "
            "bcoo_transpose"
        ),
        "hlofront.sparse.bcoo_products": (
            "bcoo_conv_general_dilated bcoo_dot_general bcoo_dot_general_sampled "
            "bcoo_multiply_dense bcoo_multiply_sparse"
        ),
        "hlofront.sparse.bcoo_roles": (
            "CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning "
            "bcoo_update_layout"
        ),
        "hlofront.sparse.bcoo_shaping": (
            "bcoo_broadcast_in_dim bcoo_concatenate bcoo_reduce_sum bcoo_reshape bcoo_rev "
            "bcoo_squeeze"
        ),
        "hlofront.sparse.bcoo_slicing": "bcoo_dynamic_slice bcoo_gather bcoo_slice",
        "hlofront.sparse.bcsr": (
            "BCSR bcsr_broadcast_in_dim bcsr_concatenate bcsr_dot_general bcsr_extract "
            "bcsr_fromdense bcsr_sum_duplicates bcsr_todense"
        ),
        "hlofront.sparse.creation": "empty eye random_bcoo",
        "hlofront.sparse.derivatives": "grad jacfwd jacobian jacrev value_and_grad",
        "hlofront.sparse.matrices": (
            "COO CSC CSR coo_fromdense coo_matmat coo_matvec coo_todense csr_fromdense csr_matmat "
            "csr_matvec csr_todense"
        ),
        "hlofront.sparse.sparsify": "SparseTracer sparsify",
    },
)
