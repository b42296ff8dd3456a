"""Functions that join arrays and split them."""
