"""Programs and files drawn by chance, and a ledger of the runs (LEDGER.md).

    python -m tests.fuzz itself --seeds 0:1000    programs, run by hlofront in many ways
    python -m tests.fuzz jax --seeds 0:1000       programs, run by hlofront and by jax
    python -m tests.fuzz files --seeds 0:100000   mutants of files, texts and command lines

`itself` needs no jax: what `jit` gives is compared with what other ways give (`ways.py`). With
`--show` a program that is found is shrunk and printed, and so is what is wrong with a mutant.
A run stops early with `--minutes`, and adds its row to the ledger unless it has `--no-ledger`.
What a run finds is mended and becomes a test, whose name is then written into its row.
"""
