"""All algorithms by name, with and without their optional inputs: "forward_dynamics_with_wrenches" takes wrenches."""

from __future__ import annotations

import linkwise as lw
from linkwise.mechanics.algorithms.catalogue import Algorithm, variants

VARIANTS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in variants()}


def needed_options(algorithm: Algorithm, mech: lw.Mechanism) -> dict[str, object]:
    """Options without which an algorithm is not compiled: about the last link."""
    last = mech.link_names[-1]
    return {name: value for name, value in {"link": last, "frames": (last,)}.items() if name in algorithm.options}
