"""After `import hlofront.as_jax`, `import jax` gives hlofront in this process.

This import must come before all others that import jax. Instead of a program's first line, use:

    python -m hlofront as-jax train.py --steps 10   # runs a script
    pytest -p hlofront.as_jax                       # runs tests
    HLOFRONT_AS_JAX=1 python train.py               # where hlofront is installed by pip

`jax.__version__` is the version of JAX whose API hlofront has: 0.10.2, with the additions of
0.12.0.1. HLOFRONT_JAX_API=0.12.0.1 makes it the later one, which hlofront then follows where the
two contradict each other. An installed jax is neither imported nor changed. Private names of JAX
are absent, except for those that libraries are known to use, which `hlofront/jax_names/private.py`
lists.
"""

from hlofront.jax_names import whole_process as _whole_process
from hlofront.jax_names.import_hook import as_jax
from hlofront.jax_names.version import __version__ as jax_version

# The module is imported for its side effect: it opens the names for the whole process.
del _whole_process

__all__ = ["as_jax", "jax_version"]
