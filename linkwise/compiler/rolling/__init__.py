"""Re-rolled sweeps: algorithms traced once per kind of link, and made programs with loops over the links."""

from .kinds_traced import examples_of, rolled

__all__ = ["examples_of", "rolled"]
