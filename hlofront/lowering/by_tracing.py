"""The primitives that are spelt with other primitives: each row is traced and inlined."""
