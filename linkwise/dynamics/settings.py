"""Keywords of the functions that solve the equation of motion; their docstrings explain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from numpy.typing import ArrayLike

from .states import ByJoint


class InverseDynamicsSettings(TypedDict, total=False):
    """Keywords of ``inverse_dynamics``."""

    actuated: Sequence[str] | None
    unactuated: Sequence[str] | None
    weights: ArrayLike | None
    distribution: ArrayLike | None
    independent: Any
    active: ArrayLike | None
    forces: Any
    ctrl: ArrayLike | Mapping[str, Any] | None
    activation: ArrayLike | None


class JointWrenchesSettings(TypedDict, total=False):
    """Keywords of ``joint_wrenches``."""

    tau: ByJoint | None
    actuated: Sequence[str] | None
    active: ArrayLike | None
    forces: Any
    ctrl: ArrayLike | Mapping[str, Any] | None
    activation: ArrayLike | None


class ForwardDynamicsSettings(TypedDict, total=False):
    """Keywords of ``forward_dynamics``."""

    active: ArrayLike | None
    independent: Any
    baumgarte: tuple[float, float] | None
    damping: float | None
    rank: Any
    tolerance: float | None
    forces: Any
    ctrl: ArrayLike | Mapping[str, Any] | None
    activation: ArrayLike | None


class StaticForcesSettings(TypedDict, total=False):
    """Keywords of ``static_forces``."""

    actuated: Sequence[str] | None
    unactuated: Sequence[str] | None
    weights: ArrayLike | None
    active: ArrayLike | None
    forces: Any
    ctrl: ArrayLike | Mapping[str, Any] | None
    activation: ArrayLike | None


class InverseDerivativesSettings(TypedDict, total=False):
    """Keywords of ``inverse_dynamics_derivatives``."""

    actuated: Sequence[str] | None
    active: ArrayLike | None
    forces: Any
    ctrl: ArrayLike | Mapping[str, Any] | None
    activation: ArrayLike | None


class ForwardDerivativesSettings(TypedDict, total=False):
    """Keywords of ``forward_dynamics_derivatives``."""

    active: ArrayLike | None
    forces: Any
    ctrl: ArrayLike | Mapping[str, Any] | None
    activation: ArrayLike | None
