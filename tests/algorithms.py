"""All algorithms by name, with and without their optional inputs: "forward_dynamics_with_wrenches" takes wrenches."""

from __future__ import annotations

from linkwise.mechanics.algorithms.catalogue import Algorithm, variants

VARIANTS: dict[str, Algorithm] = {algorithm.name: algorithm for algorithm in variants()}
