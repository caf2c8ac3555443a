"""Settings of a simulation: the caller's, checked, and values determined at the start of the motion."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from .. import constraints
from ..constraints.charts import WORST_CONDITION
from ..constraints.coordinates import Coordinates, ImplicitCoordinates
from ..constraints.tolerances import LOOPS
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.steps_in_variables import SYMPLECTIC, VARIABLES, methods_in
from ..mechanism import Mechanism, MechanismError, did_you_mean, one_of
from ..mechanism.scales import scales
from .integrators import ADAPTIVE, MULTISTEP, whole_steps
from .step import check_method

COORDINATES = ("joint", *VARIABLES, "independent")
STABILIZATIONS = ("projection", "baumgarte", None)
GAINS = (10.0, 10.0)
GIVEN = "given"  # marker of control and wrenches that are not constant, which files do not hold
FORMER_NAMES = {"usual_nearness": "usual_conditioning"}  # in files

T = TypeVar("T")


def _names_checked(cls: type[T]) -> type[T]:
    """Let the constructor of a dataclass suggest a field for an unknown keyword."""
    init: Callable[..., None] = cls.__init__
    known = [field.name for field in fields(cls)]  # type: ignore[arg-type]

    @functools.wraps(init)
    def checked_init(self: T, *args: Any, **options: Any) -> None:
        for name in options:
            if name not in known:
                raise TypeError(
                    f"{cls.__name__}() got an unexpected keyword argument {name!r}: {did_you_mean(name, known)}"
                )
        init(self, *args, **options)

    cls.__init__ = checked_init  # type: ignore[method-assign, assignment]
    return cls


@_names_checked
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of ``simulate`` besides the method and the length of steps.

    rtol, atol        tolerances of adaptive methods, relative and absolute; atol None: 1e-9 in the mechanism's own
                      units
    coordinates       integrated variables: "joint" (q, v); "momentum" (q, p: ``lw.formulations.momenta``), "nu" or "xi"
                      (q, total joint rates: ``lw.formulations.diagonal``); "independent" (independent coordinates of
                      loops, their rates): ``independent`` (see ``kinematics.local_parametrization``) until their
                      condition number exceeds ``worst_condition``
    stabilization     of loops: "projection" after every step, to ``tolerance``; "baumgarte" with gains ``baumgarte``
                      (alpha, beta), (10, 10) by default; or None.  Arcs past singular positions always close loops
    baumgarte         gains (alpha, beta) of stabilization="baumgarte", 1/s
    tolerance         error of loops after projection
    formulation       method of ``forward_dynamics``: "elimination", "svd", "lagrange", "partitioning", "tangent"
                      or "differentiable"
    keep_energy       project onto the initial kinetic and potential energy too; for motions under gravity alone
    independent       the first independent coordinates of coordinates="independent"
    worst_condition   condition number at which other independent coordinates are chosen
    progress          show a progress bar: True, False, or None for ``lw.codegen.progress``; needs tqdm

    ``trajectory.settings`` are settings too, and may be passed to another ``simulate``.  Independent coordinates that
    are functions must be passed again.
    """

    rtol: float = 1e-9
    atol: float | None = None
    coordinates: str = "joint"
    stabilization: str | None = "projection"
    baumgarte: tuple[float, float] | None = None
    tolerance: float = LOOPS.closed
    formulation: str = "elimination"
    keep_energy: bool = False
    independent: Any = None
    worst_condition: float = WORST_CONDITION
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name in ("rtol", "atol", "tolerance", "worst_condition"):
            if name != "atol" or self.atol is not None:
                check_positive(name, getattr(self, name))


@dataclass(frozen=True, kw_only=True)
class Setup(Settings):
    """How a motion was simulated, as plain data: numbers, strings and tuples, hashable; without functions.

    step                 length of fixed steps; largest adaptive step, None if unlimited
    time_unit            of the mechanism, or of its motion if neither gravity nor springs set one
    baumgarte            (alpha, beta), also if not in use
    rank                 number of independent constraints away from singular positions, (nested) tuples for a batch;
                         None without loops
    usual_conditioning   smallest over largest singular value of G there; None without loops
    energy               kinetic and potential energy kept by projection, or None
    control, wrenches, ctrl, independent   None, constant numbers (independent: also names), or "given"
    events               names of the events
    """

    method: str
    step: float | None
    rank: Any = None
    usual_conditioning: float | None = None
    energy: Any = None
    control: Any = None
    wrenches: Any = None
    events: tuple[str, ...] = ()
    ctrl: Any = None
    time_unit: float | None = None

    @staticmethod
    def of(settings: Settings, method: str, step: float | None) -> Setup:
        """The setup from the arguments of a caller."""
        asked = {field.name: getattr(settings, field.name) for field in fields(Settings)}
        return Setup(
            method=method, step=step, **{**asked, "independent": _recorded(settings.independent), "progress": None}
        )

    def settings(self) -> Settings:
        """The settings with which ``simulate`` sets up another motion like this one."""
        if self.independent == GIVEN:
            raise MechanismError(
                "the independent coordinates are functions, which are no part of a recorded motion: give them again "
                "with settings=dataclasses.replace(trajectory.settings, independent=...)"
            )
        asked = {field.name: getattr(self, field.name) for field in fields(Settings)}
        if self.stabilization != "baumgarte" and self.baumgarte == GAINS:  # a default, not set by the caller
            asked["baumgarte"] = None
        return Settings(**asked)

    def completed(self, **values: Any) -> Setup:
        """The setup with values determined at the start of the motion; arrays and lists become tuples."""
        return replace(self, **{name: _plain(value) for name, value in values.items()})

    @property
    def gains(self) -> tuple[float, float] | None:
        """(alpha, beta) of Baumgarte's terms if in use, else None."""
        return self.baumgarte if self.stabilization == "baumgarte" else None

    def array(self, name: str, kind: type, batch: tuple[int, ...]) -> Float64Array | None:
        """``rank`` or ``energy`` of every state as an array; tuples of an empty batch have no shape and type."""
        value = getattr(self, name)
        return None if value is None else np.array(value, dtype=kind).reshape(batch)

    def to_data(self) -> dict[str, Any]:
        """The setup as a dictionary for files."""
        return asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Setup:
        """The inverse of ``to_data``, from decoded JSON."""
        named = {FORMER_NAMES.get(name, name): _plain(value) for name, value in data.items()}
        known = {field.name for field in fields(Setup)}
        return Setup(**{name: value for name, value in named.items() if name in known})


def checked(mech: Mechanism, settings: Settings, method: str, step: Any, duration: Any) -> Setup:
    """The setup of a simulation with defaults filled in and numbers as floats; raises on contradictions."""
    asked = Setup.of(settings, method, step)
    one_of("coordinates", asked.coordinates, COORDINATES)
    check_method(asked.method, asked.coordinates, tuple(ADAPTIVE))
    _check_stabilization(mech, asked)
    one_of("formulation", asked.formulation, constraints.ALL_METHODS)
    step = scales(mech).step if asked.step is None and asked.method not in ADAPTIVE else asked.step
    setup = with_floats(replace(asked, step=step, baumgarte=_gains(asked.baumgarte)), duration)
    _check_coordinates(mech, setup, settings.independent)
    return setup


def with_floats(settings: Setup, duration: Any) -> Setup:
    """The setup with its numbers checked for a motion of ``duration`` seconds, and converted to floats for files."""
    check_positive("duration", duration)
    names = ["rtol", "tolerance", "worst_condition", *["atol"] * (settings.atol is not None)]
    if settings.step is not None:
        names.append("step")
        check_positive("step", settings.step, "number of seconds")
        if settings.method not in ADAPTIVE:
            whole_steps(duration, settings.step)
    floats: dict[str, Any] = {name: float(getattr(settings, name)) for name in names}
    return replace(settings, **floats)


def check_positive(name: str, value: Any, kind: str = "number") -> None:
    """Raise unless ``value`` is one positive number."""
    is_number = isinstance(value, numbers.Real) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if not (is_number and not isinstance(value, bool) and np.isfinite(value) and value > 0.0):
        raise MechanismError(f"{name} must be a positive {kind}, not {value!r}")


def _check_stabilization(mech: Mechanism, asked: Setup) -> None:
    stabilization, method, coordinates = asked.stabilization, asked.method, asked.coordinates
    keep_energy = asked.keep_energy
    if stabilization not in STABILIZATIONS:
        raise ValueError(f"stabilization must be 'projection', 'baumgarte' or None, not {stabilization!r}")
    if asked.baumgarte is not None and stabilization != "baumgarte":
        raise ValueError("baumgarte=(alpha, beta) needs stabilization='baumgarte'")
    if keep_energy and mech.constraints.driven:
        raise ValueError("keep_energy is for free motions: drives change the energy")
    if keep_energy and (stabilization != "projection" or coordinates != "joint"):
        raise ValueError("keep_energy needs stabilization='projection' and coordinates='joint'")
    projects = stabilization == "projection" and (mech.loops or keep_energy)
    if (projects or coordinates == "independent") and method in MULTISTEP:
        raise ValueError(
            f"{method} works with values of earlier steps, which projection would falsify: use 'baumgarte' or None, or "
            f"one of {', '.join(name for name in (*methods_in('joint'), *ADAPTIVE) if name not in MULTISTEP)}"
        )


def _gains(baumgarte: Any) -> tuple[float, float]:
    if baumgarte is None:
        return GAINS
    try:
        alpha, beta = (float(gain) for gain in baumgarte)
    except (TypeError, ValueError):
        raise MechanismError(f"baumgarte must be two numbers (alpha, beta), not {baumgarte!r}") from None
    if not (0.0 <= alpha < math.inf and 0.0 <= beta < math.inf):
        raise MechanismError(f"baumgarte=(alpha, beta) must not be negative, which drives loops open: {baumgarte!r}")
    return alpha, beta


def _check_coordinates(mech: Mechanism, asked: Setup, independent: Any) -> None:
    coordinates = asked.coordinates
    if independent is not None and coordinates != "independent":
        raise ValueError("independent=... needs coordinates='independent'")
    if mech.constraints.driven and not mech.constraints.waits_for_time:
        raise MechanismError(
            f"mechanism {mech.name!r} is what drives make of it at one time: simulate the mechanism itself, and not "
            "what at_time(t) gives"
        )
    if mech.constraints.driven and coordinates != "joint":
        raise MechanismError(f"drives of mechanism {mech.name!r} move joints: use coordinates='joint'")
    if mech.loops and asked.method in SYMPLECTIC:
        law = "; nonholonomic constraints leave no such coordinates" if mech.constraints.is_nonholonomic else ""
        raise MechanismError(
            f"method={asked.method!r} is symplectic in canonical coordinates, and momenta that the loops of mechanism "
            f"{mech.name!r} tie together are none{law}: take an adaptive method or 'rk4'"
        )
    if mech.loops and coordinates in VARIABLES and asked.stabilization == "baumgarte":
        raise ValueError("stabilization='baumgarte' pulls on accelerations, and needs coordinates='joint'")
    if mech.nv == 0:
        raise MechanismError(f"mechanism {mech.name!r} has no joint that moves: there is nothing to simulate")


def _recorded(independent: Any) -> Any:
    """Independent coordinates as plain data: tuples of names or numbers, "given" for functions."""
    if isinstance(independent, str):
        return (independent,)
    is_given = isinstance(independent, (Coordinates, ImplicitCoordinates))
    return GIVEN if is_given else _plain(independent)


def _plain(value: Any) -> Any:
    """Arrays and lists as (nested) tuples."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    return tuple(_plain(entry) for entry in value) if isinstance(value, (list, tuple)) else value
