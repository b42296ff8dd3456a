"""Coordinates of elements: open grids, flat and multiple indices, masks of matrices."""
