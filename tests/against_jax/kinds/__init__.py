"""Searches for the kin of a fault: each file tries one kind of mistake all over the library.

A file is a corpus, larger than a test may be: `programs(jax, jnp, lax)`. KNOWN maps a part of the
names of its programs to the reason why they differ from jax.

    python -m tests.against_jax.kinds                 all kinds, a row of a table for each
    python -m tests.against_jax.kinds integers orders   some; what differs is printed

It asks the Python with jax that HLOFRONT_ORACLE_PYTHON names, and takes minutes: so it is run by
hand, and what it finds becomes a program of a corpus that the tests run. `derivatives.py` asks
mpmath as well.
"""
