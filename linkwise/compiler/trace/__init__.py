"""Tracing: run an ordinary Python function on symbols and keep what it computed as a program."""

from .inline import inline
from .loops import trace_with_loops
from .tracer import Symbol, symbols, trace

__all__ = ["Symbol", "inline", "symbols", "trace", "trace_with_loops"]
