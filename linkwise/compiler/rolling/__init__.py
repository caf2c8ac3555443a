"""Sweeps over links as ``For`` regions: algorithms traced once per link class, with a body for each."""

from .link_classes_traced import examples_of, rolled

__all__ = ["examples_of", "rolled"]
