"""A mechanism, written and read again, has the same dynamics."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

import linkwise as lw

TEXTS = {"urdf": lw.interop.urdf_text, "mjcf": lw.interop.mjcf_text}


def again(mech: lw.Mechanism, form: str) -> lw.Mechanism:
    """What is read of what is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(TEXTS[form](mech))


def assert_same_dynamics(mech: lw.Mechanism, other: lw.Mechanism, tolerance: float = 1e-12) -> None:
    """Inverse dynamics of the trees at random states, and where every frame is."""
    there, rng = lw.interop.to_mechanism(mech, other), np.random.default_rng(0)
    trees = mech.spanning_tree, other.spanning_tree
    q, v = lw.random_state(trees[0], rng, (2,))
    a = rng.normal(size=v.shape)
    states = (q, v, a), (there.q(q), there.v(q, v), there.a(q, v, a))
    found = [lw.compile("inverse_dynamics", m, target="numpy")(*x) for m, x in zip(trees, states, strict=True)]
    scale = max(1.0, np.abs(found[0]).max(initial=0.0))
    np.testing.assert_allclose(there.inverse.tau(states[1][0], found[1]), found[0], rtol=0, atol=tolerance * scale)
    poses = [lw.compile("link_poses", m, target="numpy")(x[0]) for m, x in zip(trees, states, strict=True)]
    for name in set(mech.frames) & set(other.frames):
        ours, theirs = (placed(m, p, name) for m, p in zip((mech, other), poses, strict=True))
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=1e-11, err_msg=name)


def placed(mech: lw.Mechanism, poses: np.ndarray, name: str) -> np.ndarray:
    """(..., 3, 4): a frame in the world."""
    frame = mech.frame(name)
    own = np.column_stack([frame.rotation, frame.position])
    if frame.body < 0:
        return np.broadcast_to(own, (*poses.shape[:-3], 3, 4))
    carrier = poses[..., frame.body, :, :]
    return carrier[..., :3, :3] @ own + np.concatenate([np.zeros((3, 3)), np.ones((3, 1))], 1) * carrier[..., :3, 3:]


def assert_same_numbers(mech: lw.Mechanism, other: lw.Mechanism, leave_out: tuple[str, ...] = ()) -> None:
    """Springs, damping, limits and elements of joints of one name."""
    names = [name for name in ("armature", "damping", "friction", "stiffness", "limits") if name not in leave_out]
    for body in mech.bodies:
        twin = other.bodies[other.body_index(body.joint)]
        for name in names:
            assert getattr(twin, name) == getattr(body, name), (body.joint, name)
    assert _without_noise(other.elements) == _without_noise(mech.elements)


def _without_noise(elements) -> list:
    """Elements in an order of their own, numbers without the last digits; forces of fluids have tests of their own."""

    def rounded(value):
        if isinstance(value, float):
            return float(f"{value:.12g}")
        return tuple(map(rounded, value)) if isinstance(value, tuple) else value

    written = (one for one in elements if not isinstance(one, lw.forces.FluidForce))
    made = (replace(one, **{k: rounded(v) for k, v in vars(one).items()}) for one in written)
    return sorted(map(repr, made))
