"""Operators without known properties: identities proven with them hold for any operator."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import numpy as np

from ..recursions.schedule import TIP_TO_BASE
from .algebra import RECORDS
from .expression import Operator
from .record import Action, Record
from .spaces import Space


@lru_cache(maxsize=256)
def symbol(name: str, domain: Space, codomain: Space, self_adjoint: bool = False) -> Operator:
    """An operator between two spaces for ``prove``; the same arguments return the same operator.

    It may represent derivatives of operators, cross products with velocities, and other operators in identities. It has
    no recursion and cannot be compiled; the oracle gives it a random matrix, symmetric if it is its own adjoint.
    """
    if name in RECORDS:
        raise ValueError(f"a symbol must not be called {name!r}: that is an operator, {RECORDS[name].meaning}")

    def matrix(at: Any) -> np.ndarray:
        rows, columns = at.size(codomain, name), at.size(domain, name)
        values = np.random.default_rng(zlib.crc32(name.encode())).normal(size=(rows, columns))
        return (values + values.T) / 2.0 if self_adjoint else values

    def unknown(*arguments: Any) -> Any:
        raise TypeError(f"nothing says how the symbol {name} is applied: it serves proofs only")

    # It may couple any two links, which is declared as a recursion.
    action = Action(name, unknown, TIP_TO_BASE, "unknown")
    meaning = "an operator of which nothing is known but its spaces"
    return Operator(Record(name, domain, codomain, meaning, action, action, self_adjoint, dense=matrix))
