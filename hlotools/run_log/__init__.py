"""The log of a run, which hlofront writes with HLOFRONT_LOG: reading, totals, and a page."""
