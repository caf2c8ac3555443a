"""Optimal control with CasADi and IPOPT: a cart swings its pole up, and a weak motor a linkage whose loop stays closed.

python examples/25_optimal_control.py [folder for pictures]; needs pip install 'linkwise[casadi,plot]'
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

try:
    import casadi

    import linkwise.casadi as lwc
except ImportError:
    sys.exit(print("this example needs CasADi: pip install 'linkwise[casadi]'"))

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
QUIET = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}


def least_effort(mech, step, start, end, ending, limit, dt, steps, reach=np.inf):
    """Forces of the first joint, its motor, that move the mechanism from rest to rest with the least integral of their
    squares; the states on the way; and how the solver fared.

    step      a function of q, v, tau and dt that gives the state after it
    ending    how many joints are told where to end, the first ones; with a loop the others follow
    limit     of the forces, and ``reach`` of the first joint
    """
    n = mech.nv
    problem = casadi.Opti()
    states, force = problem.variable(2 * n, steps + 1), problem.variable(1, steps)
    tau = casadi.vertcat(force, casadi.DM.zeros(n - 1, steps))
    after = step.map(steps)(states[:n, :-1], states[n:, :-1], tau, casadi.repmat(dt, 1, steps))
    problem.subject_to(states[:, 1:] == after)
    problem.subject_to(states[:, 0] == casadi.vertcat(start, np.zeros(n)))
    problem.subject_to(states[:ending, -1] == end[:ending])
    problem.subject_to(states[n : n + ending, -1] == 0)
    problem.subject_to(problem.bounded(-limit, force, limit))
    if np.isfinite(reach):
        problem.subject_to(problem.bounded(-reach, states[0, :], reach))
    problem.minimize(dt * casadi.sumsqr(force))
    problem.set_initial(states[:n, :], np.linspace(start, end, steps + 1).T)
    problem.solver("ipopt", QUIET)
    found = problem.solve()
    return found.value(force), found.value(states), found.stats()["iter_count"]


def rolled_out(mech, start, force, dt):
    """The motion under these forces, by the same steps, in machine code."""
    tau = np.column_stack([force, np.zeros((len(force), mech.nv - 1))])
    return lw.rollout(mech, start, np.zeros(mech.nv), tau, dt, len(force))


def show(axes, mech, q, force, dt, limit, angle, unit, trail):
    """Positions on the way, the earlier ones fainter, and what the motor does."""
    times = dt * np.arange(len(q))
    drawing, angles, forces = axes
    lw.viewer.snapshots(mech, q, times, ax=drawing, count=9, trail=trail)
    angles.plot(times, np.degrees(q[:, angle]), color=BLUE)
    angles.set(xlabel="time (s)", ylabel=f"{mech.joint_names[angle]} (degrees)")
    forces.stairs(force, times, baseline=None, color=ORANGE)
    for bound in (-limit, limit):
        forces.axhline(bound, color=GREY, linewidth=0.8, linestyle=":")
    forces.set(xlabel="time (s)", ylabel=unit)


figure, panels = plt.subplots(2, 3, figsize=(12, 6.5), layout="constrained", width_ratios=(1.2, 1, 1))

# A cart swings its pole up, within 0.6 m to both sides.
cart, dt, limit = lw.mechanisms.cart_pole(), 0.02, 20.0
hanging, upright = np.array([0.0, np.pi]), np.zeros(2)
force, states, iterations = least_effort(
    cart, lwc.function("rk4_step", cart), hanging, upright, 2, limit, dt, 100, reach=0.6
)
q, v = rolled_out(cart, hanging, force, dt)
print(f"cart and pole: {iterations} iterations, forces up to {np.abs(force).max():.1f} N")
print(f"  rolled out: upright within {np.abs(q[-1]).max():.0e}, at rest within {np.abs(v[-1]).max():.0e}")
assert np.abs(q.T - states[:2]).max() < 1e-6 and np.abs([*q[-1], *v[-1]]).max() < 1e-6
show(panels[0], cart, q, force, dt, limit, 1, "force (N)", ("pole", (0, 0, 1)))

# A linkage is swung over by a motor at its crank, too weak to lift it.  Steps keep the loop closed, so that
# only the crank is told where to end.
bars, dt, limit = lw.mechanisms.four_bar(), 0.02, 1.5
low, high = lw.find_equilibrium(bars, stable=True).q, lw.find_equilibrium(bars).q
step = lwc.function("closed_rk4_step", bars, result="state")
force, states, iterations = least_effort(bars, step, low, high, 1, limit, dt, 80)
q, v = rolled_out(bars, low, force, dt)
lifting = lw.inverse_dynamics(bars, q, 0 * q, 0 * q, actuated=["crank_joint"])[:, 0]
print(f"linkage: {iterations} iterations, torques up to {np.abs(force).max():.1f} N m")
print(f"  held still on the way it would take {np.abs(lifting).max():.1f} N m")
print(f"  rolled out: at the top within {np.abs(q[-1] - high).max():.0e}, at rest within {np.abs(v[-1]).max():.0e}")
print(
    f"  loop open by at most {np.abs(lw.constraints.position_error(bars, states[:3].T)).max():.0e} m "
    "in the solver's motion"
)
assert np.abs(q.T - states[:3]).max() < 1e-6 and np.abs([*(q[-1] - high), *v[-1]]).max() < 1e-6
show(panels[1], bars, q, force, dt, limit, 0, "torque (N m)", "coupler")

FOLDER.mkdir(parents=True, exist_ok=True)
figure.savefig(FOLDER / "25_optimal_control.png", dpi=100)
print(f"picture: {FOLDER / '25_optimal_control.png'}")
