"""Tracing: run an ordinary Python function on symbols and record its operations as a program."""

from .inline import inline
from .loops import trace
from .tracer import Symbol, symbols

__all__ = ["Symbol", "inline", "symbols", "trace"]
