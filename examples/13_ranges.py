"""Ranges and singular positions: how far a linkage goes, what stops it, and where a robot cannot be controlled.

python examples/13_ranges.py [folder for pictures]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
NEAR, FAR, GAP = 0.8, 1.0, 0.8


def picture(name: str) -> Path:
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"13_{name}.png"
    print(f"picture: {path}")
    return path


def linkage() -> None:
    """A four-bar linkage none of whose links can turn fully: its crank swings between two dead centres."""
    crank, coupler, rocker, base = lengths = 0.8, 0.7, 0.6, 1.0
    mech = lw.mechanisms.four_bar(*lengths)
    found = lw.linkages.range_of_motion(mech, "crank_joint")
    print(found)
    # Coupler and rocker are in line there: the law of cosines.
    most = np.arccos((crank**2 + base**2 - (coupler + rocker) ** 2) / (2.0 * crank * base))
    print(f"difference from the law of cosines: {abs(found.upper - (most - np.pi / 2.0)):.1e}")
    singular = lw.linkages.singular_positions(mech, "crank_joint", outputs="rocker_joint")
    for position in singular:
        print(f"{position.kind:>7} singularity, crank at {np.degrees(position.q[0]) + 90.0:.3f} degrees")
    lw.viewer.plot_range(found, singular, path=picture("range"))


def transmission() -> None:
    """How well a crank-rocker passes on what its crank does, over a full turn."""
    crank, coupler, rocker, base = 0.3, 0.9, 0.8, 1.0
    mech = lw.mechanisms.four_bar(crank, coupler, rocker, base)
    path = lw.linkages.range_of_motion(mech, "crank_joint").path
    ends = ("crank_joint", "rocker_joint")
    angle = lw.linkages.transmission_angle(mech, path.q, *ends)
    advantage = lw.linkages.mechanical_advantage(mech, path.q, *ends)
    turned = path.q[:, 0] + np.pi / 2.0  # the crank is upright at zero
    square = crank**2 + base**2 - 2.0 * crank * base * np.cos(turned)
    formula = np.arccos((coupler**2 + rocker**2 - square) / (2.0 * coupler * rocker))
    off = np.abs(angle - np.minimum(formula, np.pi - formula)).max()
    print(f"transmission angle from {np.degrees(angle.min()):.2f} degrees on, by the law of cosines to {off:.1e}")
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    order = np.argsort(turned % (2.0 * np.pi))
    at = np.degrees(turned % (2.0 * np.pi))[order]
    above.plot(at, np.degrees(angle)[order])
    above.set_ylabel("transmission angle\n(degrees)")
    below.plot(at, np.where(np.abs(advantage) < 20.0, advantage, np.nan)[order])
    below.set_ylabel("mechanical advantage")
    below.set_xlabel("crank (degrees)")
    figure.savefig(picture("transmission"))


def robot() -> lw.Mechanism:
    """Two arms of two links that hold a point together."""
    builder = lw.Builder()
    for side, foot in (("left", 0.0), ("right", GAP)):
        builder.link(f"{side}_near", 1.0, (NEAR / 2, 0, 0), (0.0, 0.05, 0.05))
        builder.link(f"{side}_far", 1.0, (FAR / 2, 0, 0), (0.0, 0.08, 0.08))
        builder.joint(f"{side}_motor", lw.Revolute((0, 0, 1)), "ground", f"{side}_near", (None, (foot, 0, 0)))
        builder.joint(f"{side}_elbow", lw.Revolute((0, 0, 1)), f"{side}_near", f"{side}_far", (None, (NEAR, 0, 0)))
    end = (None, (FAR, 0, 0))
    builder.loop("tip_pin", lw.Revolute((0, 0, 1)), "left_far", end, "right_far", end)
    return builder.build("two_arms", (0.0, -9.81, 0.0)).with_frame("tip", "left_far", end)


def workspace() -> None:
    """Where the point can be with the elbows outside, and where motors at rest do not hold it."""
    mech = robot()
    q = lw.constraints.assemble(mech, [2.2, -1.2, 0.9, 1.2])
    found = lw.linkages.workspace(
        mech, ("tip.x", "tip.y"), ((-1.2, 2.0), (-1.9, 1.9)), q=q, inputs=("left_motor", "right_motor"), points=81
    )
    edge = np.concatenate([curve.points for curve in found.curves_of("boundary")])
    reach = np.stack([np.hypot(edge[:, 0] - foot, edge[:, 1]) for foot in (0.0, GAP)])
    gap = np.minimum(np.abs(reach - NEAR - FAR), np.abs(reach - FAR + NEAR)).min(axis=0).max()
    print(f"{len(edge)} points of the boundary, an arm stretched or folded to {gap:.1e} m")
    lw.viewer.plot_workspace(found, shade="input", path=picture("workspace"))


linkage()
transmission()
workspace()
