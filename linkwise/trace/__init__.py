"""Tracing: run an ordinary Python function on symbols and keep what it computed as a program."""

from .tracer import Symbol, trace

__all__ = ["Symbol", "trace"]
