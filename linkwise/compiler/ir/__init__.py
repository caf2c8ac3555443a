"""Intermediate representation: scalar expression graphs, their meaning-free structure and their legality."""
