"""Passes: program to program, one verb per file."""
