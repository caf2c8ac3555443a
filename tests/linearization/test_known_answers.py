"""Linear models that can be derived by hand: pendulums, a cart with a pole, a spinning body, a sprung parallelogram."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

from .differences import close, matched

G = 9.81


def pendulum(mass=2.0, length=0.7, inertia=0.3, kind=None) -> lw.Mechanism:
    builder = lw.Builder().link("bob", mass, (0.0, 0.0, -length), (inertia, inertia, inertia))
    return builder.joint("pivot", kind or lw.Revolute((0, 1, 0)), "ground", "bob").build("pendulum")


def test_simple_pendulum():
    square = 2.0 * G * 0.7 / (0.3 + 2.0 * 0.49)
    for angle, sign in ((0.0, -1.0), (np.pi, 1.0)):
        model = lw.linearize(pendulum(), [angle])
        close(model.A, np.array([[0.0, 1.0], [sign * square, 0.0]]), 1e-12)
        close(model.B, np.array([[0.0], [1.0 / (0.3 + 2.0 * 0.49)]]), 1e-12)
        assert model.is_equilibrium
    modes = lw.linearize(pendulum(), [0.0], passive=lw.forces.Passive.dampers({"pivot": 0.4})).modes()
    np.testing.assert_allclose(modes.frequencies, [np.sqrt(square)], rtol=1e-12)
    np.testing.assert_allclose(modes.damping_ratios, [0.4 / 1.28 / 2.0 / np.sqrt(square)], rtol=1e-12)
    # At any angle and speed the rate is -square sin(angle): its slope is -square cos(angle).
    model = lw.linearize(pendulum(), [0.8], [3.0])
    close(model.A, np.array([[0.0, 1.0], [-square * np.cos(0.8), 0.0]]), 1e-12)
    close(model.drift, np.array([3.0, -square * np.sin(0.8)]), 1e-12)


def test_spherical_pendulum():
    """Hanging: two equal frequencies, and no restoring moment about its own axis."""
    model = lw.linearize(pendulum(kind=lw.Spherical()), [1.0, 0.0, 0.0, 0.0])
    square = 2.0 * G * 0.7 / (0.3 + 2.0 * 0.49)
    close(model.A[3:, :3], np.diag([-square, -square, 0.0]), 1e-12)
    close(model.A[3:, 3:], np.zeros((3, 3)), 1e-12)
    found = np.sqrt(square) * 1j
    matched(model.eigenvalues(), [found, -found, found, -found, 0.0, 0.0], 1e-7)


def test_spinning_body():
    """Euler's equations about a principal axis, I1 w1' = (I2 - I3) w2 w3 ...; steps of the attitude obey
    u' = w + u x w / 2."""
    inertia, spin = (0.2, 0.3, 0.4), 5.0
    mech = lw.Builder().link("body", 1.0, (0, 0, 0), inertia).joint("ball", lw.Spherical(), "ground", "body").build()
    model = lw.linearize(mech, [0.6, 0.0, 0.8, 0.0], [0.0, 0.0, spin])
    euler = np.zeros((3, 3))
    euler[0, 1] = (inertia[1] - inertia[2]) / inertia[0] * spin
    euler[1, 0] = (inertia[2] - inertia[0]) / inertia[1] * spin
    turning = np.array([[0.0, spin / 2, 0.0], [-spin / 2, 0.0, 0.0], [0.0, 0.0, 0.0]])
    close(model.A, np.block([[turning, np.eye(3)], [np.zeros((3, 3)), euler]]), 1e-12)
    # Spinning about the intermediate axis is unstable, about the others not.
    for axis, grows in ((0, False), (1, True), (2, False)):
        values = lw.linearize(mech, [1.0, 0, 0, 0], spin * np.eye(3)[axis]).A[3:, 3:]
        assert (np.linalg.eigvals(values).real.max() > 1.0) == grows


def test_double_pendulum_anywhere():
    """The textbook's equations of the planar arm (docs/conventions.md), differentiated by complex steps."""
    mech = lw.mechanisms.planar_arm(2)
    q, v, tau = np.array([0.4, -1.1]), np.array([0.9, 1.7]), np.array([3.0, -0.5])

    def acceleration(x):
        q1, q2, v1, v2, t1, t2 = x
        c, s = np.cos(q2), np.sin(q2)
        mass = np.array([[5 / 3 + c, 1 / 3 + c / 2], [1 / 3 + c / 2, 1 / 3 + 0 * c]])
        bias = s / 2 * np.array([-(2 * v1 * v2 + v2**2), v1**2])
        weight = G * np.array([1.5 * np.cos(q1) + 0.5 * np.cos(q1 + q2), 0.5 * np.cos(q1 + q2)])
        return np.linalg.solve(mass, np.array([t1, t2]) - bias - weight)

    x = np.concatenate([q, v, tau])
    slopes = np.stack([acceleration(x + 1e-30j * e).imag / 1e-30 for e in np.eye(6)], axis=1)
    model = lw.linearize(mech, q, v, tau)
    close(model.A[2:], slopes[:, :4], 1e-12)
    close(model.B[2:], slopes[:, 4:], 1e-12)
    hanging = lw.linearize(mech, [-np.pi / 2, 0.0])
    mass, stiffness = np.array([[8 / 3, 5 / 6], [5 / 6, 1 / 3]]), G * np.array([[2.0, 0.5], [0.5, 0.5]])
    squares = np.linalg.eigvals(np.linalg.solve(mass, stiffness))
    np.testing.assert_allclose(hanging.modes().frequencies, np.sort(np.sqrt(squares)), rtol=1e-10)


def cart_pole(cart=1.0, pole=0.2, length=0.5) -> lw.Mechanism:
    """A point mass on a massless pole, q = (position, angle from upright about y)."""
    builder = lw.Builder().link("cart", cart).link("pole", pole, (0.0, 0.0, length), (0.0, 0.0, 0.0))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    return builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "pole").build("cart_pole")


@pytest.mark.filterwarnings("ignore::linkwise.files.InertiaWarning")
def test_cart_and_pole():
    """Upright: x'' = (f - m g theta) / M, theta'' = ((M + m) g theta - f) / (M l)."""
    big, small, length = 1.0, 0.2, 0.5
    model = lw.linearize(cart_pole(), [0.0, 0.0], inputs=("slide",), outputs=("slide", "hinge"))
    expected = np.zeros((4, 4))
    expected[:2, 2:] = np.eye(2)
    expected[2, 1] = -small * G / big
    expected[3, 1] = (big + small) * G / (big * length)
    close(model.A, expected, 1e-12)
    close(model.B, np.array([[0.0], [0.0], [1.0 / big], [-1.0 / (big * length)]]), 1e-12)
    np.testing.assert_array_equal(model.C, np.eye(4)[:2])
    growth = np.sqrt(expected[3, 1])
    matched(model.eigenvalues(), [growth, -growth, 0.0, 0.0], 1e-7)


def test_parallelogram_with_a_spring():
    """Posts and bar of 1 kg and 1 m: 5/3 t'' = 2 g sin t - k t - c t', t the angle of the posts from upright."""
    mech, stiffness, damping = lw.mechanisms.n_four_bar(1), 15.0, 0.8
    passive = lw.forces.Passive.springs({"post0_joint": stiffness}) + lw.forces.Passive.dampers(
        {"post1_joint": damping}
    )
    leaning = lw.find_equilibrium(mech, [1.1, 1.1, -1.1], passive=passive)
    angle = leaning.q[0]
    assert abs(stiffness * angle - 2.0 * G * np.sin(angle)) < 1e-8 and 1.2 < angle < 1.3 and leaning.stable
    upright = lw.find_equilibrium(mech, [0.1, 0.1, -0.1], passive=passive)
    np.testing.assert_allclose(upright.q, 0.0, atol=1e-9)
    assert upright.stable is False
    for found in (leaning, upright):
        t = found.q[0]
        model = lw.linearize(mech, found.q, independent=("post0_joint",), passive=passive)
        expected = [[0.0, 1.0], [-(stiffness - 2.0 * G * np.cos(t)) / (5 / 3), -damping / (5 / 3)]]
        close(model.A, np.array(expected), 1e-9)
        close(model.tangent[:3, :1], np.array([[1.0], [1.0], [-1.0]]), 1e-12)  # the bar stays level
        # The bar's angle instead of the posts': the same model, the other way round.
        close(lw.linearize(mech, found.q, independent=("bar1_joint",), passive=passive).A, np.array(expected), 1e-9)
