"""The named algorithms of estimation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import estimation, filter_gains
from .algorithm import Algorithm

INPUTS = ("q", "residuals", "of_rates", "of_forces", "variances")
SENSORS = ("sensed", "weights")
ESTIMATED = ("estimated_joints", "wrenches", "wrench_covariances", "innovations")


def _estimation(name: str, inputs: tuple[str, ...], output: Any, recursion: Callable[..., Any]) -> Algorithm:
    return Algorithm(name, inputs, output, recursion, reason=estimation.REASON, ignores_loops=True, link_by_link=True)


ESTIMATION_ALGORITHMS: tuple[Algorithm, ...] = (
    _estimation("estimate", INPUTS, ESTIMATED, estimation.estimate),
    _estimation("estimate_with_sensors", (*INPUTS, *SENSORS), ESTIMATED, estimation.estimate),
    _estimation("estimation_innovations", INPUTS, "innovations", estimation.innovations),
    _estimation("estimation_innovations_with_sensors", (*INPUTS, *SENSORS), "innovations", estimation.innovations),
    _estimation("weighted_residuals", INPUTS, "weighted", estimation.weighted_residuals),
    _estimation(
        "kalman_filter",
        ("q", "residuals", "of_forces"),
        ("filter_covariances", "filtered_joints", "forces_and_co_states"),
        estimation.kalman,
    ),
    _estimation("filter_gains", ("q", "deviations"), "gains_and_variances", filter_gains.filter_gains),
)
