"""The version of hlofront, defined only here."""

__version__ = "0.3.0"
