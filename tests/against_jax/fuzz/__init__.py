"""Programs drawn by chance, run by hlofront and by jax: what no corpus thought of.

A program is plain data (`generating.draw(seed)`): what it is called with, steps, and layers of
transformations around them. A step is `[name, seed, bodies]`: the operation of that name
(`arrays.py`, `indexing.py`, `loops_and_branches.py`, `surrounding_state.py`) looks at the values
there are, draws by its seed what is done to which, and appends the results; bodies are the steps of
functions that it hands on. As each step adapts to what it finds, any steps can be dropped and a
program remains: so it is shrunk.
`machine.py` runs steps, `layers.py` transforms, and a mistake (`mistakes.py`) spoils one call.

    python -m tests.fuzz jax --seeds 0:1000         hunt; what differs is shrunk, shown
    python -m tests.fuzz jax --seeds 17:18 --show   one program, call by call

It asks the Python with jax that HLOFRONT_ORACLE_PYTHON names. `test_fuzz.py` runs a few, whose
answers are kept.
"""
