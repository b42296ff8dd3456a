"""Sets of elements: unique ones, and what several arrays have in common."""
