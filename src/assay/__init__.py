"""Assay: a laboratory for feature learning."""

__version__ = "0.1.0"
