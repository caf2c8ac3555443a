"""Intermediate representation: scalar expression graphs, loops, and the rules of legal programs."""
