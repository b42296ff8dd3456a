"""Runs that go on for minutes or hours, of what breaks only by and by (RECORD.md).

    python -m tests.soak threads --minutes 60
    python -m tests.soak all --minutes 2

A scenario (`scenarios.py`, `processes.py`) makes operations of one sort, for as long as it is told,
and checks what comes of them. A find is an error, no operation in two minutes, or memory: at the
end, three equal bursts of operations must leave no more arrays, objects or lines' allocations
behind, one after the other. Each run adds its row to RECORD.md, unless it has `--no-record`.
"""
