"""Independent coordinates of a linearization: names for coordinates, and K for a choice of them (spencer2004 4.11)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from ..constraints.coordinates import Coordinates, ImplicitCoordinates
from ..constraints.decomposition import Decomposition, orthonormalized
from ..constraints.variations import Independent, dofs_of, numbered
from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import did_you_mean, names_of
from ..mechanism.scales import scales

RATE = ".rate"  # what is added to the name of a coordinate for its velocity
AUTOMATIC = ("partitioning", "null_space")
WELL = 1e-3  # of a unit motion: coordinates of a file that see less of a motion are not those to describe it with
FAILING = 1e8  # motion of joints per unit of a coordinate beyond which that coordinate does not describe the motion


def coordinate_names(mech: Mechanism) -> tuple[str, ...]:
    """One name per number of v: the joint's, or ``joint[k]`` where it has several."""
    return mech.coordinates.names("v")


def named_rows(mech: Mechanism, names: Sequence[str], label: str) -> tuple[tuple[str, ...], Float64Array]:
    """Coordinate names, and rows (k, nv) that map v to their velocities. A joint name stands for all its coordinates;
    single coordinates are ``joint[k]`` or entries of ``v_names``. The row of a mimic joint is its ratio times the row
    of its leader.
    """
    names = names_of(names)
    names_of_rows: list[str] = []
    rows: list[Float64Array] = []
    known, units = coordinate_names(mech), np.eye(mech.nv)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{label} names joints by strings, got {name!r}")
        single = re.fullmatch(r"(.+)\[\d+\]", name)
        if name in mech.joint_names:
            place_of_joint = mech.coordinates.place(name)
            single_name = place_of_joint.v_index.stop - place_of_joint.v_index.start == 1
            names_of_rows += [name] if single_name else known[place_of_joint.v_index]
            rows += list(place_of_joint.ratio * units[place_of_joint.v_index])
        elif (index := mech.coordinates.index("v", name)) is not None:
            names_of_rows.append(known[index])
            rows.append(units[index])
        elif single and single[1] in mech.joint_names:
            raise MechanismError(f"{label} names {name!r}: " + did_you_mean(name, known))
        else:
            mech.v_index(name)  # says what is wrong with it
    if len(set(names_of_rows)) < len(names_of_rows):
        raise MechanismError(f"{label} names a coordinate twice: {', '.join(map(repr, names))}")
    return tuple(names_of_rows), np.array(rows).reshape(len(rows), mech.nv)


def independent_by(mech: Mechanism, svd: Decomposition, wanted: Any) -> Independent:
    """The chosen coordinates.

    With the null space N of G, K = N (R N)^-1 and L = (1 - K R) G^+, so that only R N is inverted (2.28).
    """
    null = orthonormalized(svd.null_of(dofs_of(mech, svd)))
    names, rows = _rows(mech, null, wanted)
    count, free = rows.shape[-2], null.shape[-1]
    if count != free:
        raise MechanismError(
            f"{counted(count, 'independent coordinate')} chosen for mechanism {mech.name!r}, which has "
            f"{counted(free, 'degree')} of freedom here: "
            f"give {free}" + (f", such as {_suggestion(mech, null)}" if free else "")
        )
    seen = rows @ null
    try:
        inverse = np.linalg.inv(seen)
    except np.linalg.LinAlgError:
        inverse = np.full_like(seen, np.inf)
    # How far joints move per unit of each coordinate, dimensionless: 1 at best.
    units = scales(mech).of_v
    with np.errstate(invalid="ignore"):  # a row of zeros times an infinite inverse
        moved = np.linalg.norm(null @ inverse / units[:, None], axis=-2)
        reach = np.linalg.norm(rows * units, axis=-1) * moved
    if not np.all(reach < FAILING):
        raise MechanismError(
            f"the coordinates {', '.join(map(repr, names))} do not describe the motion of mechanism {mech.name!r} "
            "here: a degree of freedom moves none of them, so [R; G] is singular (2.28 is violated); "
            f"{_suggestion(mech, null)} would do"
        )
    basis, closing = null @ inverse, svd.pseudo_inverse
    return Independent(names, rows, null, basis, closing - basis @ (rows @ closing))


def _rows(mech: Mechanism, null: np.ndarray, wanted: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the independent coordinates, and the matrix R (p, nv) of their velocities."""
    known = coordinate_names(mech)
    meant = _coordinates_of_file(mech, null) if wanted is None else None
    if meant is not None:
        return meant
    if wanted is None or (isinstance(wanted, str) and wanted == "partitioning"):
        chosen = _partition(_dimensionless(mech, null))
    elif isinstance(wanted, str) and wanted == "null_space":
        return numbered(null.shape[-1]), np.swapaxes(null, -1, -2)
    elif isinstance(wanted, str) and wanted not in (*mech.joint_names, *known, *mech.v_names):
        choices = (*AUTOMATIC, *mech.joint_names)
        raise MechanismError(
            f"unknown choice of independent coordinates {wanted!r}: "
            + (mech.constraints.hint(wanted) or did_you_mean(wanted, choices))
        )
    elif isinstance(wanted, (Coordinates, ImplicitCoordinates)):
        raise MechanismError(
            "a linearization takes coordinates that are linear in q: give joint names, or the rows of these at q, "
            "coordinates.rows(q), with which they agree to first order"
        )
    elif isinstance(wanted, str) or all(isinstance(name, str) for name in wanted):
        return named_rows(mech, wanted, "independent")
    else:
        rows = np.asarray(wanted, dtype=float)
        if rows.ndim < 2 or rows.shape[-1] != mech.nv or not np.isfinite(rows).all():
            raise MechanismError(
                f"independent must be joint names, {' or '.join(map(repr, AUTOMATIC))}, or finite rows (p, {mech.nv}), "
                f"got an array of shape {rows.shape}"
            )
        return numbered(rows.shape[-2]), rows
    return tuple(known[i] for i in chosen), np.eye(mech.nv)[chosen]


def _coordinates_of_file(mech: Mechanism, null: np.ndarray) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Names and R of the coordinates that the file declares independent; None if they describe the motion badly."""
    names, rows = named_rows(mech, mech.metadata.independent_joints or (), "independent")
    if len(rows) != null.shape[-1]:
        return None
    units = scales(mech).of_v
    seen = rows * units / np.linalg.norm(rows * units, axis=-1, keepdims=True) @ _dimensionless(mech, null)
    if not (np.linalg.svd(seen, compute_uv=False) > WELL).all():
        return None
    return names, rows


def _dimensionless(mech: Mechanism, null: np.ndarray) -> np.ndarray:
    """(..., nv, p): an orthonormal basis of these motions in units of the mechanism's length, and radians."""
    units = scales(mech).of_v
    return np.linalg.qr(null / units[:, None])[0] if (units != 1.0).any() else null


def _partition(null: np.ndarray) -> list[int]:
    """Coordinates that describe the motion well, in the order of v: rows of the dimensionless null space chosen by
    pivoting (2.3.3.1 Remark 2).  In a batch the first state decides."""
    n, free = null.shape[-2:]
    if free == n or not null.size:
        return list(range(free))
    pivots = scipy.linalg.lapack.dgeqp3(null.reshape(-1, n, free)[0].T)[1]
    return sorted((pivots[:free] - 1).tolist())


def _suggestion(mech: Mechanism, null: np.ndarray) -> str:
    known = coordinate_names(mech)
    return ", ".join(repr(known[i]) for i in _partition(_dimensionless(mech, null)))


def counted(count: int, noun: str) -> str:
    """A number with its noun: "1 degree", "2 degrees"."""
    return f"{count} {noun}" + "s" * (count != 1)
