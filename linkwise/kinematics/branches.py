"""All configurations that reach poses, for arms that have formulas for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError, require_mechanism
from .closed_form import all_branches
from .geometry import closed_form, why_not
from .inverse import limits_of_coordinates, refined
from .targets import as_poses, goals_and_numbers
from .wrapping import WHOLE, wrapped

ITERATIONS, TOLERANCE = 6, 1e-10  # metres and radians, where axes are not quite as formulas take them
ROUND_OFF = 1e-12  # of whole rotations


def inverse_kinematics_branches(mech: Mechanism, targets: Mapping[str, Any], *, limits: Any = False) -> Float64Array:
    """(..., 8, nq): all configurations in which a frame reaches a pose, NaN where there are fewer than eight.

    targets   {frame: pose}: one frame that six revolute joints carry, and poses (..., 4, 4) or a
              ``linkwise.FrameTarget`` with position and rotation, in the world
    limits    False: angles are between -pi and pi; True: those of the joints, or (lower, upper), each (nq,): revolute
              joints by whole rotations where they are nearest to the middle of the limits, NaN for configurations that
              are not within them

    For arms of which three axes at an end meet and two others do or are parallel (spherical wrists), or three
    neighbouring axes are parallel and two others are or meet (UR arms), by formulas; a ``MechanismError`` says what
    is in the way otherwise.  Axes may deviate by up to 0.02 radians and 2 percent of the arm's length: iterations then
    start from the formulas.  The places of the eight stand for three choices (shoulder, elbow, wrist) and are kept
    along a path; where two of them coincide, both are given; angles that a singular pose leaves open are zero.  Other
    joints than the six are where ``mech.initial`` has them.
    """
    require_mechanism(mech)
    goals, numbers = goals_and_numbers(mech, targets)
    goal = goals[0]
    if len(goals) > 1 or goal.axis or not (goal.position > 0.0 and goal.rotation > 0.0):
        raise MechanismError(
            "branches are those of one pose of one frame; linkwise.inverse_kinematics takes other targets"
        )
    form = closed_form(mech, goal.frame)
    if form is None:
        raise MechanismError(
            f"there are no formulas for the pose of {goal.frame!r} of mechanism {mech.name!r}: "
            f"{why_not(mech, goal.frame)}; linkwise.inverse_kinematics finds one configuration by iterations"
        )
    batch, numbers = numbers.shape[:-1], numbers.reshape(-1, 12)
    with np.errstate(invalid="ignore"):
        angles = all_branches(mech, form, goal.frame)(as_poses(numbers))
    q = np.tile(mech.initial, (*angles.shape[:2], 1))
    q[..., form.places] = angles
    there = np.isfinite(angles[..., 0])
    if not form.exact:
        q[there], error = refined(mech, goals, numbers[np.nonzero(there)[0]], q[there], ITERATIONS, TOLERANCE)
        there[there] = error <= TOLERANCE
    if limits is not False:
        bounds = limits_of_coordinates(mech, limits)
        moved = wrapped(mech, q.reshape(-1, mech.nq), bounds, None).reshape(q.shape)
        rotations = ((moved - q) / WHOLE)[..., form.places]  # whole ones, where these lead into the limits
        there &= (np.abs(rotations - np.rint(rotations)) < ROUND_OFF).all(axis=-1)
        there &= ((moved >= bounds[0]) & (moved <= bounds[1]))[..., form.places].all(axis=-1)
        q = moved
    q[~there] = np.nan
    return q.reshape(*batch, *q.shape[1:])
