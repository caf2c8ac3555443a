"""Andrews' squeezing mechanism: seven bodies, three loops that share a link, one freedom, and published solutions
(Hairer and Wanner, Solving Ordinary Differential Equations II, VII.7; Test Set for IVP Solvers, "Andrews")."""

from __future__ import annotations

import numpy as np

import linkwise as lw

ANGLES = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
START = [
    -0.0617138900142764,
    0.0,
    0.455279819163070,
    0.222668390165886,
    0.487364979543843,
    -0.222668390165886,
    1.23054744454982,
]
AFTER_30_MS = [
    15.81077119629904,
    -15.75637105984298,
    0.04082224013073101,
    -0.5347301163226948,
    0.5244099658805304,
    0.5347301163226948,
    1.048080741042263,
]
A, B, SPRING_END = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), np.array([0.014, 0.072])
TORQUE, STIFFNESS, REST = 0.033, 4530.0, 0.07785


def squeezer():
    """Angles as published: each of two chains of two bodies from A, one body from B, and a crank with a rod from O meet
    in one point."""
    bodies = {  # mass, centre of mass, inertia; then joint, parent, place on the parent
        "k1": (0.04325, (0.00092, 0.0, 0.0), 2.194e-6, "beta", "ground", (0.0, 0.0, 0.0)),
        "k2": (0.00365, (-0.0115, 0.0, 0.0), 4.410e-7, "theta", "k1", (0.007, 0.0, 0.0)),
        "k3": (0.02373, (0.01874, 0.01043, 0.0), 5.255e-6, "gamma", "ground", B),
        "k5": (0.07050, (0.02308, 0.00916, 0.0), 1.169e-5, "delta", "ground", A),
        "k4": (0.00706, (0.0, 0.01421 - 0.02, 0.0), 5.667e-7, "phi", "k5", (0.04, 0.0, 0.0)),
        "k7": (0.05498, (0.01228, 0.00449, 0.0), 1.912e-5, "epsilon", "ground", A),
        "k6": (0.00706, (0.02 - 0.01421, 0.0, 0.0), 5.667e-7, "omega", "k7", (0.0, -0.04, 0.0)),
    }
    hinge, builder = lw.Revolute((0, 0, 1)), lw.Builder()
    for name, (mass, com, inertia, joint, parent, place) in bodies.items():
        builder.link(name, mass, com, np.diag([inertia / 2, inertia / 2, inertia]))
        builder.joint(joint, hinge, parent, name, (None, place))
    for name, place in (("k3", (0.0, -0.035, 0.0)), ("k4", (0.0, -0.02, 0.0)), ("k6", (0.02, 0.0, 0.0))):
        builder.loop(f"to_{name}", hinge, "k2", (None, (-0.028, 0.0, 0.0)), name, (None, place))
    return builder.build("squeezer").with_gravity((0.0, 0.0, 0.0))


MECH = squeezer()
PLACES = [MECH.q_index(name).start for name in ANGLES]


def forces(t, q, v):
    """A constant torque at the crank and a spring between the ground and body 3, in closed form."""
    angle = q[MECH.q_index("gamma").start]
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([np.sin(angle), -np.cos(angle)])
    reach = np.array(B[:2]) + 0.02 * along + 0.018 * across - SPRING_END
    length = np.linalg.norm(reach)
    pull = -STIFFNESS * (length - REST) * reach / length
    tau = np.zeros(7)
    tau[PLACES[0]] = TORQUE
    tau[PLACES[2]] = pull @ (0.018 * along - 0.02 * across)
    return tau


def start():
    q = np.zeros(7)
    q[PLACES] = START
    return q


def test_published_accelerations_and_motion():
    q = start()
    assert np.abs(lw.constraints.position_error(MECH, q)).max() < 1e-15
    assert lw.constraints.degrees_of_freedom(MECH, q) == 1
    for method in lw.constraints.ALL_METHODS:
        a = lw.forward_dynamics(MECH, q, np.zeros(7), forces(0.0, q, None), method=method)
        np.testing.assert_allclose(a[PLACES[:2]], [14222.4439199541, -10666.8329399656], rtol=1e-12)
        np.testing.assert_allclose(a[PLACES[2:]], 0.0, atol=1e-8)
    motion = lw.simulate(MECH, q, np.zeros(7), 0.03, control=forces, settings=lw.motion.Settings(rtol=1e-8, atol=1e-8))
    np.testing.assert_allclose(motion.q[-1, PLACES], AFTER_30_MS, atol=1e-6)
