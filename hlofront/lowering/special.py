"""Special functions as CHLO, or spelt with other primitives."""
