"""Random trees of all joint kinds, and what the tests of physics need to look at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.library import EVERY_KIND
from tests.algorithms import VARIANTS

# Number of links, seed, floating base; every size from 2 to 40, more of the small ones.
CASES = [
    (n, seed, floating)
    for n, seeds in ((2, 4), (3, 4), (5, 4), (8, 2), (13, 2), (21, 1), (40, 1))
    for seed in range(seeds)
    for floating in (False, True)
]


def trees_of(cases: Sequence[tuple[int, int, bool]]) -> pytest.MarkDecorator:
    """A test with the argument ``tree``, a function that gives the Model, for each of these cases."""
    trees = [lambda case=case: tree_of(*case) for case in cases]
    return pytest.mark.parametrize("tree", trees, ids=["-".join(map(str, case)) for case in cases])


every_tree = trees_of(CASES)
large_trees_are_slow = pytest.mark.slow_cases("[21-", "-21-", "[40-", "-40-")  # links


@cache
def tree_of(n: int, seed: int, floating: bool) -> Model:
    """All moving kinds; every other tree has welded links as well."""
    joints = (*EVERY_KIND, "fixed") if seed % 2 else EVERY_KIND
    return Model(lw.mechanisms.random_tree(n, 1000 * n + seed, joints=joints, floating_base=floating or seed % 2 == 1))


class Model:
    """A mechanism whose algorithms are called by name: ``model.mass_matrix(q)``, on the NumPy target."""

    def __init__(self, mech: lw.Mechanism):
        self.mech = mech
        self._kernels: dict[tuple, lw.Kernel] = {}

    def __getattr__(self, algorithm: str) -> Callable[..., np.ndarray]:
        def call(*arrays, **options):
            key = (algorithm, *sorted(options.items()))
            if key not in self._kernels:
                self._kernels[key] = lw.compile(VARIANTS[algorithm], self.mech, target="numpy", **options)
            return self._kernels[key](*arrays)

        return call

    def states(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Random q, v, a (or joint forces) and wrenches."""
        rng = np.random.default_rng(seed)
        q, v = lw.random_state(self.mech, rng, (count,))
        return q, v, rng.normal(size=v.shape), rng.normal(size=(count, self.mech.n_links, 6))


def close(found, expected, tolerance: float, core: int = 1) -> None:
    """Every state's difference must be small against the size of what is expected (``core`` trailing axes)."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    axes = tuple(range(-core, 0))
    assert found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}"
    difference = np.sqrt(np.sum((found - expected) ** 2, axis=axes))
    size = np.sqrt(np.sum(expected**2, axis=axes))
    worst = np.max(difference / np.maximum(size, 1e-3), initial=0.0)
    assert worst <= tolerance, f"relative error {worst:.2e} is above {tolerance:.0e}"


def rate(function: Callable[[float], np.ndarray], step: float = 4e-3) -> np.ndarray:
    """d/dt at t = 0 by central differences of order eight."""
    weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
    return sum(w * (function(k * step) - function(-k * step)) for k, w in enumerate(weights, 1)) / step


def skew(a: Sequence[float]) -> np.ndarray:
    """(..., 3, 3) from (..., 3): skew(a) @ b = a x b."""
    x, y, z = np.moveaxis(np.asarray(a), -1, 0)
    zero = np.zeros_like(x)
    return np.moveaxis(np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]), (0, 1), (-2, -1))


def rebuilt(mech: lw.Mechanism, order: Sequence[int] | None = None, name: Callable[[str], str] = str) -> lw.Mechanism:
    """The same mechanism declared again: joints and links in another order, with other names."""
    order = range(mech.n_links) if order is None else order
    builder = lw.Builder()
    for body in (mech.bodies[i] for i in order):
        parent = "ground" if body.parent < 0 else name(mech.bodies[body.parent].link)
        builder.link(name(body.link), body.mass, body.com, body.inertia)
        mimic = body.mimic and lw.Mimic(name(body.mimic.joint), body.mimic.ratio, body.mimic.offset)
        builder.joint(
            name(body.joint),
            body.kind,
            parent,
            name(body.link),
            (body.rotation, body.position),
            armature=body.armature,
            mimic=mimic,
        )
    return builder.build("rebuilt", mech.gravity)


def reordering(old: lw.Mechanism, new: lw.Mechanism, name: Callable[[str], str] = str) -> tuple[list[int], ...]:
    """Places in old q, old v and old links of each number of new q, new v and of each new link."""
    back = {name(joint): joint for joint in old.joint_names}
    joints = [back[joint] for joint in new.joint_names]
    free = [joint for joint in joints if old.bodies[old.body_index(joint)].mimic is None]
    q = [i for joint in free for i in range(old.nq)[old.q_index(joint)]]
    v = [i for joint in free for i in range(old.nv)[old.v_index(joint)]]
    return q, v, [old.joint_names.index(joint) for joint in joints]
