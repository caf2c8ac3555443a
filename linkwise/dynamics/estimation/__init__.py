"""Estimation (rodriguez1986, Sections 9 and 12): joint accelerations and forces measured with noise, wrenches on the
links and payloads that nobody measured, by a filter inward and a smoother outward along the tree.

q is (nq,), v, a and tau are (nv,), wrenches (n_links, 6), each with any leading batch shape.
"""

from .encoders import EncoderMotion, encoder_motion
from .kalman import KalmanFilter, gains, kalman
from .noise import Noise
from .payload import PayloadEstimate, estimate_payload
from .smoothing import Estimate, log_likelihood, smooth

__all__ = [
    "EncoderMotion",
    "Estimate",
    "KalmanFilter",
    "Noise",
    "PayloadEstimate",
    "encoder_motion",
    "estimate_payload",
    "gains",
    "kalman",
    "log_likelihood",
    "smooth",
]
