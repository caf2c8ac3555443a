"""Sweeps over links as ``For`` regions: algorithms traced once per link class, with a body for each."""

from .link_classes_traced import list_examples, rolled

__all__ = ["list_examples", "rolled"]
