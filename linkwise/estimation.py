"""Parameters and states from measurements: identification, payloads, Kalman filters and smoothing.

Inertial parameters enter the equations of motion linearly (``regressor``); ``base_parameters`` computes the
combinations of them that a motion determines.
"""

from .dynamics.estimation import (
    EncoderMotion,
    Estimate,
    KalmanFilter,
    Noise,
    PayloadEstimate,
    encoder_motion,
    estimate_payload,
    gains,
    kalman,
    log_likelihood,
    smooth,
)
from .dynamics.identification import (
    BaseParameters,
    base_parameters,
    inertial_parameters,
    regressor,
    rotor_inertias,
)
from .dynamics.physical_bodies import physical_parameters

__all__ = [
    "BaseParameters",
    "EncoderMotion",
    "Estimate",
    "KalmanFilter",
    "Noise",
    "PayloadEstimate",
    "base_parameters",
    "encoder_motion",
    "estimate_payload",
    "gains",
    "inertial_parameters",
    "kalman",
    "log_likelihood",
    "physical_parameters",
    "regressor",
    "rotor_inertias",
    "smooth",
]
__dir__ = __all__.copy
