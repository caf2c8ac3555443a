"""Friction of pins and slides by what they carry, as docs/howto/linkages.md iterates it: mu r |F| and mu |N|."""

import warnings

import numpy as np
import pytest
from scipy.optimize import fsolve

import linkwise as lw

CRANK, ROD, GAS, MU, RADIUS = 0.1, 0.3, 1000.0, 0.1, 0.02
PINS = {"O": ("ground", "crank"), "A": ("crank", "rod"), "B": ("rod", "piston")}


@pytest.fixture(scope="module")
def engine():
    points = {"O": (0, 0), "A": (CRANK, 0), "B": (CRANK + ROD, 0)}
    links, slides = {"ground": "O", "crank": "OA", "rod": "AB", "piston": "B"}, {"piston": ("ground", (1, 0))}
    made = lw.Builder().linkage(points, links, slides=slides, masses={"piston": 0.5})
    return made.build("engine", gravity=(0, 0, 0))


def iterated(mech, moving, speed):
    """The torque with friction, and the power that this takes; statics while ``speed`` is 0."""
    q = moving.q
    spin = {"ground": 0.0} | {link: moving.angular_velocity(link)[2] for link in mech.link_names}
    sliding = moving.velocity("B")[0]
    gas = lw.forces.wrenches_at(mech, {"piston.B": [0, 0, 0, -GAS, 0, 0]}, q, frame="world_aligned")
    rubbing, v = np.zeros_like(gas), speed * moving.v
    for _ in range(20):
        acting = {"wrenches": gas + rubbing}
        torque = lw.inverse_dynamics(mech, q, v, {"O": 0.0}, actuated="O", **acting)
        carried = dict(
            zip(mech.joint_names, lw.joint_wrenches(mech, q, v, tau=torque, wrenches=gas + rubbing), strict=True)
        )
        carried["B"] = lw.constraints.loop_reactions(mech, q, v, torque, **acting)[0]
        pushes = {link: np.zeros(6) for link in mech.link_names}
        pushes["piston"][3] = -MU * abs(carried["piston_slide"][4]) * np.sign(sliding)
        lost = MU * abs(carried["piston_slide"][4] * sliding)
        for pin, (a, b) in PINS.items():
            moment = -MU * RADIUS * np.linalg.norm(carried[pin][3:]) * np.sign(spin[b] - spin[a])
            lost -= moment * (spin[b] - spin[a])
            pushes[b][2] += moment
            if a != "ground":
                pushes[a][2] -= moment
        rubbing = lw.forces.wrenches_at(mech, pushes, q, frame="world_aligned")
    return torque[0], lost


def by_hand(angle, sense):
    """The torque by the balance of the crank, the rod and the piston, without weight."""
    lean = np.arcsin(CRANK * np.sin(angle) / ROD)
    pin = CRANK * np.array([np.cos(angle), np.sin(angle)])
    rod = ROD * np.array([np.cos(lean), -np.sin(lean)])
    turning = -sense * CRANK * np.cos(angle) / (ROD * np.cos(lean))
    sliding = -sense * CRANK * np.sin(angle) - turning * rod[1]

    def unbalanced(unknown):
        ax, ay, bx, by, wall, torque = unknown  # of the crank on the rod, of the rod on the piston
        at_o = -MU * RADIUS * np.hypot(ax, ay) * np.sign(sense)
        at_a = -MU * RADIUS * np.hypot(ax, ay) * np.sign(turning - sense)
        at_b = -MU * RADIUS * np.hypot(bx, by) * np.sign(-turning)
        of_rod = -rod[0] * by + rod[1] * bx + at_a - at_b
        of_crank = torque + at_o - at_a - (pin[0] * ay - pin[1] * ax)
        return [bx - GAS - MU * abs(wall) * np.sign(sliding), by + wall, ax - bx, ay - by, of_rod, of_crank]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of progress that rounding ends: the residual tells
        found = fsolve(unbalanced, [GAS, 0, GAS, 0, 0, 0], xtol=1e-13)
    assert np.abs(unbalanced(found)).max() < 1e-8 * GAS
    return found[-1]


@pytest.mark.parametrize("angle", [0.5, 1.2, 2.5, 3.6, 5.0])
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_of_a_slider_crank(engine, angle, sense):
    q = lw.linkages.follow(engine, lw.neutral(engine), {"O": angle})  # the piston stays on its side
    moving = lw.linkages.driven_motion(engine, q, {"O": sense})
    torque, lost = iterated(engine, moving, 0.0)
    assert torque == pytest.approx(by_hand(angle, sense), rel=1e-9)
    # What the motor gives is what the gas takes and what is lost.
    assert torque * sense == pytest.approx(GAS * moving.velocity("B")[0] + lost, rel=1e-9)


def test_in_motion_by_the_balance_of_power(engine):
    speed = 30.0
    moving = lw.linkages.driven_motion(engine, {"O": 1.2}, {"O": 1.0})
    torque, lost = iterated(engine, moving, speed)
    energies = []
    for side in (-1e-5, 1e-5):
        beside = lw.linkages.driven_motion(engine, {"O": 1.2 + side}, {"O": speed})
        energies.append(lw.kinetic_energy(engine, beside.q, beside.v))
    rate = np.diff(energies)[0] / (2e-5 / speed)
    assert torque * speed == pytest.approx(speed * (GAS * moving.velocity("B")[0] + lost) + rate, rel=1e-6)
