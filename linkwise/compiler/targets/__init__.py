"""Targets: programs become source text (or, for the NumPy reference, are evaluated directly)."""
