"""The version of hlofront, defined here alone."""

__version__ = "0.1.0"
