"""Helpers for the functions of hlofront.numpy."""
