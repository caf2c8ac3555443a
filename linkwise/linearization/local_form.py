"""The local state-space form (spencer2004 4.8-4.10): compiled where loops can be eliminated, else by their singular
values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile
from ..compiler.store import float64_function, stored
from ..constraints.decomposition import times
from ..constraints.solver import call_kernel, compiled_dofs, is_reliable
from ..constraints.variations import State, applied_force, numbered, variations
from ..dynamics.resolved import resolved
from ..mechanics.algorithms.algorithm import SOLVES_CONSTRAINED, Algorithm
from ..mechanics.algorithms.closed_derivatives import closed_linearization, closed_linearization_by_pivoting
from ..mechanics.algorithms.closed_dynamics import CLUSTERS
from ..mechanics.algorithms.independent_coordinates import closed_partition
from ..mechanism import Mechanism
from ..mechanism.scales import scales
from .coordinates import RATE, WELL, coordinate_names, independent_by, named_rows
from .state_space import StateSpace

_ARRAY, _FLOAT64 = np.ndarray, np.dtype("float64")


class LocalForm(NamedTuple):
    """A linear model in independent coordinates, driven by all joint forces; see ``StateSpace``. Names and rows belong
    to positions, and to velocities unless these have their own.
    """

    names: tuple[str, ...]
    rows: np.ndarray
    a: np.ndarray
    b: np.ndarray
    drift: np.ndarray
    tangent: np.ndarray
    acceleration: np.ndarray
    rate_names: tuple[str, ...] | None = None
    rate_rows: np.ndarray | None = None


def local_form(at: State, wanted: Any) -> LocalForm:
    """The model near ``at``, in the independent coordinates ``wanted``."""
    return _compiled_form(at, wanted) or _reference(at, wanted)


def _reference(at: State, wanted: Any) -> LocalForm:
    of_positions = wanted if isinstance(wanted, str) and wanted == "null_space" else "partitioning"
    near = variations(
        at, partial(independent_by, wanted=wanted), choose_positions=partial(independent_by, wanted=of_positions)
    )
    chosen, positions = near.independent, near.positions
    names_and_rows = () if positions is chosen else (chosen.names, chosen.rows)
    held = np.zeros((*near.response.shape[:-2], positions.rows.shape[-2], at.mech.nv))
    return LocalForm(
        positions.names,
        positions.rows,
        near.own_rates,
        np.concatenate([held, near.response], axis=-2),
        np.concatenate([times(positions.rows, at.v), times(chosen.rows, near.acceleration)], axis=-1),
        near.tangent,
        near.acceleration,
        *names_and_rows,
    )


def _compiled_form(at: State, wanted: Any) -> LocalForm | None:
    """The local form by compiled kernels; None if there is no kernel or its status is not good for some state."""
    if at.active is not None or not compiled_dofs(at.mech):
        return None
    chosen = _choice(at.mech, at.q, wanted)
    if chosen is None:
        return None
    names, rows = chosen
    request = _linearization if at.wrenches is None else _linearization_with_wrenches
    arguments = (at.q, at.v, applied_force(at), rows, *(() if at.wrenches is None else (at.wrenches,)))
    results = call_kernel(at.mech, request, *arguments)
    if results is None:
        return None
    a, b, drift, tangent, acceleration = results
    n, p = at.mech.nv, rows.shape[-2]
    if wanted is None and at.mech.metadata.independent_joints:  # of the file, where they describe the motion well
        units = scales(at.mech).of_v  # K has the inverse singular values of RN
        sizes = np.linalg.norm(rows * units, axis=-1)
        if np.sum((tangent[..., :n, :p] / units[:, None] * sizes) ** 2, axis=(-1, -2)).max() > WELL**-2:
            return None
    if at.passive is not None:
        by_q, by_v = at.passive.derivatives(at.q, at.v)
        a[..., p:, :] += b[..., p:, :] @ (by_q @ tangent[..., :n, :] + by_v @ tangent[..., n:, :])
    return LocalForm(names, rows, a, b, drift, tangent, acceleration)


def _choice(mech: Mechanism, q: np.ndarray, wanted: Any) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Names and R (p, nv) of the chosen coordinates. None for null-space coordinates and for invalid choices, which
    the reference implementation refuses.
    """
    if wanted is None and mech.metadata.independent_joints:
        wanted = mech.metadata.independent_joints
    if wanted is None or (isinstance(wanted, str) and wanted == "partitioning"):
        chosen = _partition(mech, q.reshape(-1, mech.nq)[0])
        return None if chosen is None else (chosen.names, chosen.rows)
    known = (*mech.joint_names, *coordinate_names(mech))
    named = [wanted] if isinstance(wanted, str) else wanted
    if all(isinstance(name, str) for name in named):
        if not set(named) <= set(known) or len(set(named)) < len(named):
            return None
        names, rows = named_rows(mech, named, "independent")
    else:
        rows = np.asarray(wanted, dtype=float) if not hasattr(wanted, "rows") else np.zeros(0)
        names = numbered(rows.shape[-2]) if rows.ndim > 1 else ()
    fits = rows.ndim > 1 and rows.shape[-2:] == (compiled_dofs(mech), mech.nv) and np.isfinite(rows).all()
    return (names, rows) if fits else None


# -- kernels ------------------------------------------------------------------------------------------


def _linearization(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    return compile(_linearization_algorithm(mech), mech, dtype, parameters=parameters)


def _linearization_with_wrenches(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    return compile(_linearization_algorithm(mech), mech, dtype, parameters=parameters, ports="wrenches")


def _linearization_by_pivoting(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    base = _linearization_algorithm(mech)
    algorithm = replace(
        base,
        name="closed_linearization_by_pivoting",
        inputs=base.inputs[:-1],
        output=(*base.outputs, "places"),
        recursion=closed_linearization_by_pivoting,
        ports=(),
    )
    return compile(algorithm, mech, dtype, parameters=parameters)


def _linearization_algorithm(mech: Mechanism) -> Algorithm:
    p, n = compiled_dofs(mech), mech.nv
    sizes = {"rows": (p, n), "A": (2 * p, 2 * p), "B": (2 * p, n), "drift": (2 * p,), "tangent": (2 * n, 2 * p)}
    return Algorithm(
        "closed_linearization",
        ("q", "v", "tau", "rows"),
        ("A", "B", "drift", "tangent", "a", "reliability"),
        closed_linearization,
        ("fronts",),
        reason=CLUSTERS,
        ports=("wrenches",),
        sizes={**sizes, "places": (p,)},
        requires=SOLVES_CONSTRAINED,
    )


def _partition_kernel(mech: Mechanism, dtype: str, parameters: Sequence[Any]) -> Kernel:
    algorithm = Algorithm(
        "closed_partition",
        ("q",),
        ("places", "reliability"),
        closed_partition,
        ("fronts",),
        reason=CLUSTERS,
        sizes={"places": (compiled_dofs(mech),)},
    )
    return compile(algorithm, mech, dtype, parameters=parameters)


# -- the usual question, with the least of Python around the kernels ----------------------------------


def plain_model(mech: Mechanism, q: Any, v: Any, tau: Any) -> StateSpace | None:
    """The model in coordinates chosen by pivoting, for states given as plain arrays of one batch shape. None for other
    requests, and for states that need the reference implementation.
    """
    if not type(q) is type(v) is type(tau) is _ARRAY or not q.dtype is v.dtype is tau.dtype is _FLOAT64:
        return None
    return _model_of_one_state(mech, q, v, tau) if q.ndim == 1 else _model_of_batch(mech, q, v, tau)


class _OneState(NamedTuple):
    """The kernel of models of one state, None for mechanisms that it does not serve; the shape of q, v and tau; and the
    shared data of models, by the indices of their coordinates.
    """

    run: Any
    shape: tuple[int, ...]
    shared: dict[bytes, dict[str, Any]]

    @classmethod
    def of(cls, mech: Mechanism) -> _OneState:
        run = float64_function(mech, _linearization_by_pivoting) if _is_plain(mech) else None
        return cls(run, (mech.nv,), {})


def _model_of_one_state(mech: Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> StateSpace | None:
    try:
        run, shape, shared = mech._kernels[_OneState]
    except AttributeError:  # no mechanism
        return None
    except KeyError:  # not compiled yet
        run, shape, shared = stored(mech, _OneState, lambda: _OneState.of(mech))
    if run is None or not q.shape == v.shape == tau.shape == shape:
        return None
    a, b, drift, tangent, acceleration, reliability, independent = run(q, v, tau)
    if not is_reliable(reliability):
        return None
    try:
        fields = shared[independent.tobytes()].copy()  # much quicker than a dictionary made key by key
    except KeyError:
        fields = shared.setdefault(independent.tobytes(), _partition_at(mech, independent).fields).copy()
    fields["q"], fields["v"], fields["tau"], fields["acceleration"] = q, v, tau, acceleration
    fields["A"], fields["B"], fields["drift"], fields["tangent"] = a, b, drift, tangent
    return _model(fields)


def _model_of_batch(mech: Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> StateSpace | None:
    batch = q.shape[:-1]
    if not _is_plain(mech) or not q.size or not q.shape == v.shape == tau.shape == (*batch, mech.nv):
        return None
    chosen = _partition(mech, q.reshape(-1, q.shape[-1])[0])
    if chosen is None:
        return None
    results = call_kernel(mech, _linearization, q, v, tau, chosen.rows)
    if results is None:
        return None
    a, b, drift, tangent, acceleration = results
    fields = {"q": q, "v": v, "tau": tau, "acceleration": acceleration}
    fields |= {"A": a, "B": b, "drift": drift, "tangent": tangent}
    return _model(
        chosen.fields | {name: _broadcast(batch, chosen.fields[name]) for name in ("C", "D", "rows")} | fields
    )


def _model(fields: dict[str, Any]) -> StateSpace:
    model = object.__new__(StateSpace)  # its __init__, which sets one field after the other, takes as long as a kernel
    object.__setattr__(model, "__dict__", fields)
    return model


def _is_plain(mech: Any) -> bool:
    """Whether the kernel's results suffice: no quaternions, no coordinates named by a file, no force elements."""
    plain = (
        isinstance(mech, Mechanism) and mech.coordinates.rates_are_velocities and not mech.metadata.independent_joints
    )
    return plain and compiled_dofs(mech) > 0 and resolved(mech) is None


class _Partition(NamedTuple):
    """Coordinates chosen by pivoting, and the data that all models of one state in them share."""

    names: tuple[str, ...]
    rows: np.ndarray
    fields: dict[str, Any]


def _partition(mech: Mechanism, q: np.ndarray) -> _Partition | None:
    """Coordinates that describe the motion near q well; None if the elimination is not reliable."""
    results = call_kernel(mech, _partition_kernel, q)
    return None if results is None else _partition_at(mech, results[0])


def _partition_at(mech: Mechanism, independent: np.ndarray) -> _Partition:
    indices = sorted(map(int, independent))
    return stored(mech, (_partition, *indices), lambda: _partition_of_columns(mech, indices))


def _partition_of_columns(mech: Mechanism, independent: list[int]) -> _Partition:
    known, p = coordinate_names(mech), len(independent)
    names = tuple(known[i] for i in independent)
    rows, c, d = np.eye(mech.nv)[independent], np.eye(2 * p)[:p], np.zeros((p, mech.nv))
    for array in (rows, c, d):
        array.flags.writeable = False
    fields = {
        **dict.fromkeys(field.name for field in dataclasses.fields(StateSpace)),
        "mechanism": mech,
        "C": c,
        "D": d,
        "independent": names,
        "state_names": (*names, *(name + RATE for name in names)),
        "input_names": known,
        "output_names": names,
        "rows": rows,
        "form": "local",
    }
    return _Partition(names, rows, fields)


def _broadcast(batch: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    """``numpy.broadcast_to``, ten times faster."""
    return np.ndarray((*batch, *x.shape), _FLOAT64, x, 0, (*(0,) * len(batch), *x.strides))
