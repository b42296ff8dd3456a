"""Reductions whose combining function is the user's program."""
