"""Recursions over a tree of links: the tree in internal frames, sweeps in both directions."""
