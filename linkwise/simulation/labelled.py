"""Trajectories as arrays with names, of xarray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..motion.trajectory import Trajectory


def dataset(motion: Trajectory) -> Any:
    """A motion, or a batch of them, as an ``xarray.Dataset``: axes "t", "batch0", ..., "q" and "v" (names of
    coordinates), "link", "wrench", "actuator"."""
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install 'linkwise[labelled]'") from None
    mech = motion.mechanism
    lead = ("t", *(f"batch{k}" for k in range(motion.q.ndim - 2)))
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {"positions": ((*lead, "q"), motion.q)}
    for name, values in (("velocities", motion.v), ("accelerations", motion.a), ("tau", motion.tau)):
        arrays[name] = (*lead, "v"), values
    for name in ("kinetic_energy", "potential_energy", "passive_energy", "constraint_error"):
        arrays[name] = lead, getattr(motion, name)
    axes: dict[str, Any] = {"t": motion.t, "q": list(mech.q_names), "v": list(mech.v_names)}
    if motion.ctrl is not None and motion.ctrl.shape[-1]:
        arrays["ctrl"] = (*lead, "actuator"), motion.ctrl
        arrays["actuator_forces"] = (*lead, "actuator"), motion.actuator_forces
        axes["actuator"] = list(mech.forces.actuator_names)
    if motion.wrenches is not None:
        arrays["wrenches"] = (*lead, "link", "wrench"), motion.wrenches
        axes |= {"link": list(mech.link_names), "wrench": ["mx", "my", "mz", "fx", "fy", "fz"]}
    return xarray.Dataset(arrays, axes, {"mechanism": mech.name, "method": motion.settings.method})
