"""The version of hlofront, defined only here."""

__version__ = "0.1.0"
