"""Operational-space inertia of one frame, the inverse of J M^-1 J*, in O(N) through psi.

J M^-1 J* = B* psi* H* D^-1 H psi B: base to tip along the path, Y = T X Y X* T* + H* D^-1 H with T = I - H* G*
(jain1995 and rodriguez1992 use this for the tip).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..links.articulation import Articulation, Factor
from ..mechanism import Frame
from ..recursions.tree import Tree
from ..scalar import Scalar
from ..spatial import ArticulatedInertia, Motion, Transform
from ..spatial.motion import NO_MOTION
from .kinematics import to_frame
from .mass_matrix_inverse import Followers, JointVector, articulations

Matrix = list[list[Scalar]]


def operational_inertia(tree: Tree, q: Sequence[Scalar], frame: Frame) -> Matrix:
    """(6, 6): force per acceleration of ``frame``, in its own axes at its origin."""
    joints = articulations(tree, tree.cross(q))
    mobility: Matrix = [[0.0] * 6 for _ in range(6)]
    for i in tree.mechanism.path(frame.body):
        mobility = _beyond_joint(joints[i], _into(joints[i].crossing.transform, mobility))
    mobility = _into(to_frame(tree, frame), mobility)
    if any(body.mimic for body in tree.mechanism.bodies):
        mobility = _tied(tree, joints, frame, mobility)
    factor = Factor.of(mobility)
    columns = [factor.solve([1.0 if i == j else 0.0 for i in range(6)]) for j in range(6)]
    return [[columns[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]


def _into(change: Transform, mobility: Matrix) -> Matrix:
    """X Y X*.  With angular and linear parts exchanged a mobility changes frames like an inertia, the other way round."""
    swapped = ArticulatedInertia.from_entries(lambda i, j: mobility[(i + 3) % 6][(j + 3) % 6])
    moved = change.inverse().inertia_back(swapped)
    return [[moved.entry((i + 3) % 6, (j + 3) % 6) for j in range(6)] for i in range(6)]


def _beyond_joint(joint: Articulation, mobility: Matrix) -> Matrix:
    """T Y T* + H* D^-1 H."""
    motions = [h.flat() for h in joint.crossing.motion]
    gains = [g.flat() for g in joint.gain]
    n = len(motions)
    seen = [[sum(mobility[i][k] * gains[m][k] for k in range(6)) for m in range(n)] for i in range(6)]  # Y G
    core = [[sum(gains[m][k] * seen[k][p] for k in range(6)) for p in range(n)] for m in range(n)]  # G* Y G
    for p in range(n):
        inverse_column = joint.factor.solve([1.0 if m == p else 0.0 for m in range(n)])
        for m in range(n):
            core[m][p] = core[m][p] + inverse_column[m]

    def entry(i: int, j: int) -> Scalar:
        value = mobility[i][j]
        for m in range(n):
            value = value - motions[m][i] * seen[j][m] - seen[i][m] * motions[m][j]
            for p in range(n):
                value = value + motions[m][i] * core[m][p] * motions[p][j]
        return value

    upper = {(i, j): entry(i, j) for i in range(6) for j in range(i, 6)}
    return [[upper[min(i, j), max(i, j)] for j in range(6)] for i in range(6)]


def _tied(tree: Tree, joints: Sequence[Articulation], frame: Frame, mobility: Matrix) -> Matrix:
    """Mobility once mimic joints follow their leaders: less what the ties hold back, R (A M^-1 A*)^-1 R*."""
    followers = Followers(tree, joints)
    responses = [_frame_motion(tree, joints, frame, response).flat() for response in followers.responses]
    held = [followers.factor.solve([response[j] for response in responses]) for j in range(6)]

    def entry(i: int, j: int) -> Scalar:
        value = mobility[i][j]
        for response, force in zip(responses, held[j], strict=True):
            value = value - response[i] * force
        return value

    upper = {(i, j): entry(i, j) for i in range(6) for j in range(i, 6)}
    return [[upper[min(i, j), max(i, j)] for j in range(6)] for i in range(6)]


def _frame_motion(tree: Tree, joints: Sequence[Articulation], frame: Frame, rates: JointVector) -> Motion:
    """J times a joint vector, followers taken as given."""
    motion = NO_MOTION
    for i in tree.mechanism.path(frame.body):
        motion = joints[i].crossing.transform.motion_into(motion) + joints[i].crossing.relative_motion(rates[i])
    return to_frame(tree, frame).motion_into(motion)
