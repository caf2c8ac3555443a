"""Trajectories as tables of pandas and arrays of xarray: names, shapes, numbers."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import linkwise as lw
from tests.simulation.test_elements import ARM, SPEED, START

MOTION = lw.simulate(ARM, START, SPEED, 0.02, method="rk4", ctrl={"servo": 0.3}, wrenches=np.zeros((3, 6)))


def test_pandas():
    pytest.importorskip("pandas")
    frame = MOTION.to_pandas()
    assert frame.index.name == "t" and list(frame.columns) == MOTION.table()[0][1:]
    np.testing.assert_array_equal(frame["q.joint2"], MOTION.q[:, 1])
    np.testing.assert_array_equal(frame.index, MOTION.t)


def test_xarray():
    pytest.importorskip("xarray")
    data = MOTION.to_xarray()
    assert data.positions.dims == ("t", "q") and data.attrs["mechanism"] == ARM.name
    np.testing.assert_array_equal(data.velocities.sel(v="joint3"), MOTION.v[:, 2])
    np.testing.assert_array_equal(data.ctrl.sel(actuator="servo"), MOTION.ctrl[:, 0])
    np.testing.assert_array_equal(data.actuator_forces, MOTION.actuator_forces)
    assert data.wrenches.dims == ("t", "link", "wrench")
    batch = lw.simulate(lw.mechanisms.double_pendulum(), np.zeros((4, 2)), None, 0.01, method="rk4").to_xarray()
    assert batch.positions.sizes == {"t": 11, "batch0": 4, "q": 2} and "ctrl" not in batch
    np.testing.assert_array_equal(batch.kinetic_energy.isel(t=0), np.zeros(4))


@pytest.mark.parametrize("package, method", [("pandas", "to_pandas"), ("xarray", "to_xarray")])
def test_missing_packages_are_named(monkeypatch, package, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{method} needs {package}: pip install 'linkwise\[labelled\]'"):
        getattr(MOTION, method)()
