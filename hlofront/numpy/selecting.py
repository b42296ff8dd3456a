"""Functions that choose elements of arrays, by masks and by indices."""
