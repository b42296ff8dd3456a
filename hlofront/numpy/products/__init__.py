"""Products of vectors, matrices and polynomials."""
