"""Deprecated public names of version 0.1; using one names its replacement."""
