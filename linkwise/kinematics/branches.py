"""All configurations that reach poses, for arms that have formulas for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError, require_mechanism
from .closed_form import all_branches
from .geometry import closed_form, why_not
from .inverse import REFINED, limits_of_coordinates, refined
from .targets import as_numbers, goals_and_poses
from .wrapping import WHOLE, wrapped

ITERATIONS = 6  # where axes are not quite as formulas take them
ROUND_OFF = 1e-12  # of whole rotations


def inverse_kinematics_branches(mech: Mechanism, targets: Mapping[str, Any], *, limits: Any = False) -> Float64Array:
    """(..., 8, nq): all configurations in which a frame reaches a pose, NaN where there are fewer than eight.

    targets   {frame: pose}: one frame that six revolute joints carry, and poses (..., 4, 4) or a
              ``linkwise.kinematics.FrameTarget`` with position and rotation, in the world
    limits    False, unlike ``inverse_kinematics``: limits of joints are not looked at, angles are between -pi and pi;
              True: those of the joints, or (lower, upper), each (nq,): revolute joints by whole rotations where they
              are nearest to the middle of the limits, NaN for configurations that are not within them

    For arms of which three axes at an end meet and two others do or are parallel (spherical wrists), or three
    neighbouring axes are parallel and two others are or meet (UR arms), by formulas; a ``MechanismError`` says what
    is in the way otherwise.  Axes may deviate by up to 0.02 radians and 2 percent of the arm's length: iterations then
    start from the formulas.  The places of the eight stand for three choices (shoulder, elbow, wrist) and are kept
    along a path; where two of them coincide, both are given; angles that a singular pose leaves open are zero.  Other
    joints than the six are where ``mech.initial`` has them.
    """
    require_mechanism(mech)
    goals, poses = goals_and_poses(mech, targets)
    if poses is None:
        raise MechanismError("branches are those of one pose of one frame; linkwise.inverse_kinematics takes more")
    frame = goals[0].frame
    form = closed_form(mech, frame)
    if form is None:
        raise MechanismError(
            f"there are no formulas for the pose of {frame!r} of mechanism {mech.name!r}: {why_not(mech, frame)}; "
            "linkwise.inverse_kinematics finds one configuration by iterations"
        )
    with np.errstate(all="ignore"):
        q = all_branches(mech, form, frame)(poses)
    if form.exact and limits is False and form.places == tuple(range(mech.nq)):
        return q
    there = np.isfinite(q[..., 0])
    if form.places != tuple(range(mech.nq)):
        angles, q = q, np.tile(mech.initial, (*there.shape, 1))
        q[..., form.places] = angles
    if not form.exact:
        poses = np.broadcast_to(poses[..., None, :, :], (*there.shape, 4, 4))
        q[there], error = refined(mech, goals, as_numbers(poses[there]), q[there], ITERATIONS)
        there[there] = error <= REFINED
    if limits is not False:
        bounds = limits_of_coordinates(mech, limits)
        moved = wrapped(mech, q.reshape(-1, mech.nq), bounds, None).reshape(q.shape)
        rotations = ((moved - q) / WHOLE)[..., form.places]  # whole ones, where these lead into the limits
        there &= (np.abs(rotations - np.rint(rotations)) < ROUND_OFF).all(axis=-1)
        there &= ((moved >= bounds[0]) & (moved <= bounds[1]))[..., form.places].all(axis=-1)
        q = moved
    q[~there] = np.nan
    return q
