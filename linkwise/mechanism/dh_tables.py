"""The Denavit-Hartenberg table of any serial arm; conventions as in ``dh.py``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanism.checks import MechanismError, one_of
from linkwise.mechanism.model import Mechanism, require_mechanism
from linkwise.mechanism.scales import scales

PARALLEL = 1e-9  # sine of the angle between two axes, or their distance over the arm's size
COLUMNS = ("theta", "d", "a", "alpha")
LATEX = {"theta": r"\theta", "d": "d", "a": "a", "alpha": r"\alpha"}


@dataclass(frozen=True, eq=False, repr=False)
class DHTable:
    """The DH table of a serial arm, from ``dh_table``.

    rows         one mapping per joint, base to tip, with the keys of ``lw.from_dh``: theta, d, a, alpha, kind, joint,
                 link; metres and radians.  What the joint moves, theta or d, is its value where q is zero
    base         (4, 4): frame 0 in the world; of trees, where the arm begins
    tool         (4, 4): the link or frame that was asked for, in the last frame
    convention   "standard" or "modified"
    """

    rows: tuple[dict[str, Any], ...]
    base: np.ndarray
    tool: np.ndarray
    convention: str

    def __repr__(self) -> str:
        lines = [("", *COLUMNS)]
        for number, row in enumerate(self.rows, 1):
            lines.append((row["joint"], *(_cell(row, key, f"q{number}") for key in COLUMNS)))
        widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS) + 1)]
        shown = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([f"Denavit-Hartenberg table, {self.convention}; metres, degrees", *shown])

    def latex(self) -> str:
        """A ``tabular`` environment."""
        head = " & ".join(["joint", *(f"${LATEX[key]}$" for key in COLUMNS)])
        lines = [
            " & ".join([row["joint"].replace("_", r"\_"), *(f"${_cell(row, key, f'q_{{{k}}}')}$" for key in COLUMNS)])
            for k, row in enumerate(self.rows, 1)
        ]
        body = " \\\\\n".join([head + r" \\ \hline", *lines]).replace(r"\hline \\", r"\hline")
        return f"\\begin{{tabular}}{{l{'r' * len(COLUMNS)}}}\n{body}\n\\end{{tabular}}"


def _cell(row: dict[str, Any], key: str, variable: str) -> str:
    value = math.degrees(row[key]) if key in ("theta", "alpha") else row[key]
    number = f"{0.0 if key in ('theta', 'alpha') and abs(value) < 1e-9 else value:.6g}"
    if key != ("theta" if row["kind"] == "revolute" else "d"):
        return number
    return variable if number == "0" else f"{variable} {'-' if value < 0 else '+'} {number.lstrip('-')}"


def dh_table(mech: Mechanism, link: str | None = None, convention: str = "standard") -> DHTable:
    """The Denavit-Hartenberg table of the arm from the ground to a link or frame, by default to the last link.

    convention   "standard" (frame i at the far end of link i) or "modified" (Craig: at its joint)

    Each joint rotates about or slides along one axis.  Frames are where common normals of neighbouring axes are; where
    axes are parallel or intersect, so that the convention leaves a choice, lengths are zero that can be.
    ``lw.from_dh``, given these rows with masses, makes an arm of the same geometry.
    """
    require_mechanism(mech)
    one_of("convention", convention, ("standard", "modified"))
    frame = mech.frame(mech.link_names[-1] if link is None else link)
    chain = mech.tree.path(frame.body)
    if not chain:
        raise MechanismError(f"{link!r} is fixed to the ground: no joints lead to it")
    poses = _poses_at_zero(mech)
    axes = [_axis(mech, body, poses[body]) for body in chain]
    end = poses[chain[-1]] @ _matrix(frame.rotation, frame.position)
    frames = _standard(axes, end[:3, 3]) if convention == "standard" else _modified(axes)
    rows = []
    for number, body in enumerate(chain):
        joint, kind = mech.bodies[body], mech.bodies[body].kind
        row = _numbers(np.linalg.solve(frames[number], frames[number + 1]), convention, scales(mech).length)
        named = {
            "kind": "revolute" if kind.hinge else "prismatic",
            "joint": joint.joint,
            "link": joint.link,
        }
        rows.append({**dict(zip(COLUMNS, row, strict=True)), **named})
    return DHTable(tuple(rows), frames[0], np.linalg.solve(frames[-1], end), convention)


Axis = tuple[np.ndarray, np.ndarray]  # a point of it, its direction


def _poses_at_zero(mech: Mechanism) -> list[np.ndarray]:
    """(4, 4): pose of each link with all coordinates zero."""
    poses: list[np.ndarray] = []
    for body in mech.bodies:
        pose = _matrix(body.rotation, body.position)
        poses.append(pose if body.parent < 0 else poses[body.parent] @ pose)
    return poses


def _axis(mech: Mechanism, body: int, pose: np.ndarray) -> Axis:
    link = mech.bodies[body]
    if link.kind.only_step is None or link.mimic:
        state = f"mimics {link.mimic.joint!r}" if link.mimic else f"is {link.kind!r}"
        raise MechanismError(
            f"a Denavit-Hartenberg table has joints that rotate about or slide along one axis, and joint "
            f"{link.joint!r} of mechanism {mech.name!r} {state}: lock it (mech.with_locked)"
        )
    return pose[:3, 3], pose[:3, :3] @ np.asarray(link.kind.only_step.axis, float)


def _normals(axes: Sequence[Axis]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For neighbouring axes: the feet of their common normal on both, and its direction."""
    size = max([float(np.linalg.norm(b[0] - a[0])) for a, b in zip(axes, axes[1:], strict=False)], default=1.0) or 1.0
    x = _square_to(axes[0][1], np.array([1.0, 0.0, 0.0]))
    start = axes[0][0] - axes[0][1] * (axes[0][0] @ axes[0][1])  # next to the world's origin
    normals: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for (p, z), (other, direction) in zip(axes, axes[1:], strict=False):
        across = np.cross(z, direction)
        sine = float(np.linalg.norm(across))
        if sine > PARALLEL:
            across = across / sine
            gap = other - p
            foot = p + z * (np.cross(gap, direction) @ across) / sine
            far = other + direction * (np.cross(gap, z) @ across) / sine
            away = float((far - foot) @ across)
            x = across if away > PARALLEL * size else -across if away < -PARALLEL * size else _alike(across, x)
        else:  # any normal: the one through the foot before it
            foot = start + z * ((p - start) @ z) if normals and abs((p - start) @ z) < PARALLEL * size else start
            far = other + direction * ((foot - other) @ direction)
            way = far - foot
            way = way - z * (way @ z)
            x = way / np.linalg.norm(way) if np.linalg.norm(way) > PARALLEL * size else _square_to(z, x)
        normals.append((foot, far, x))
        start = far
    return normals


def _standard(axes: Sequence[Axis], end: np.ndarray) -> list[np.ndarray]:
    """Frames 0 to n: frame i lies along the axis of joint i + 1, at the foot of the normal to the axis before; the
    last one at the end of the arm.
    """
    normals = _normals(axes)
    z = axes[0][1]
    first = axes[0][0] - z * (axes[0][0] @ z)
    frames = [_frame(first, _square_to(z, normals[0][2] if normals else np.array([1.0, 0.0, 0.0])), z)]
    frames += [_frame(far, x, axis[1]) for (_, far, x), axis in zip(normals, axes[1:], strict=True)]
    last, z = frames[-1], axes[-1][1]
    way = end - last[:3, 3]
    aside = way - z * (way @ z)
    x = aside / np.linalg.norm(aside) if np.linalg.norm(aside) > PARALLEL * np.linalg.norm(way) else last[:3, 0]
    return [*frames, _frame(end, x, z)]


def _modified(axes: Sequence[Axis]) -> list[np.ndarray]:
    """Frames 0 to n: frame i lies along the axis of joint i, at the foot of the normal to the next axis."""
    normals = _normals(axes)
    frames = [_frame(foot, x, axis[1]) for (foot, _, x), axis in zip(normals, axes, strict=False)]
    p, z = axes[-1]
    origin, x = (normals[-1][1], normals[-1][2]) if normals else (p - z * (p @ z), np.array([1.0, 0.0, 0.0]))
    frames.append(_frame(origin, _square_to(z, x), z))
    return [frames[0], *frames]


def _numbers(step: np.ndarray, convention: str, length: float) -> tuple[float, float, float, float]:
    """theta, d, a and alpha of the step (4, 4) from a frame to the next, in a mechanism of this length."""
    r, p = step[:3, :3], step[:3, 3]
    if convention == "standard":
        theta = math.atan2(r[1, 0], r[0, 0])
        numbers = theta, p[2], math.cos(theta) * p[0] + math.sin(theta) * p[1], math.atan2(r[2, 1], r[2, 2])
    else:
        alpha = math.atan2(-r[1, 2], r[2, 2])
        numbers = math.atan2(-r[0, 1], r[0, 0]), math.cos(alpha) * p[2] - math.sin(alpha) * p[1], p[0], alpha
    units = (1.0, length, length, 1.0)
    theta, d, a, alpha = (0.0 if abs(x) < 1e-14 * unit else float(x) for x, unit in zip(numbers, units, strict=True))
    return theta, d, a, alpha


def _alike(direction: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The direction or its opposite, whichever is nearer to ``other``."""
    return direction if direction @ other >= -PARALLEL else -direction


def _square_to(axis: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The direction square to an axis nearest to the wanted one."""
    for direction in (wanted, np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])):
        left = direction - axis * (direction @ axis)
        if np.linalg.norm(left) > 1e-6:
            return left / np.linalg.norm(left)
    raise AssertionError("an axis is square to x or to y")


def _frame(origin: np.ndarray, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return _matrix(np.stack([x, np.cross(z, x), z], axis=1), origin)


def _matrix(rotation: Any, position: Any) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix
