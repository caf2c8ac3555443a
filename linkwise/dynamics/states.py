"""Arguments of public functions: what each array is, declared once, and states with one batch shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiler.runtime.arrays import UnreadableArrayError, plain
from ..mechanism import Mechanism, MechanismError, require_mechanism

Float64Array = NDArray[np.float64]  # results of functions of states; shapes are in their docstrings
ByJoint: TypeAlias = ArrayLike | Mapping[str, Any]  # an array, or {joint: coordinates}
_FLOAT64 = np.dtype("float64")


@dataclass(frozen=True)
class Argument:
    """An array argument (..., *core); "..." is its batch shape.

    name      name in messages
    core      shape of one state: numbers, or names of sizes of the mechanism such as "nv"
    absent    meaning of None: "initial", "zero", or "" if a value is required
    meant     description of its numbers, at the end of messages about its shape
    """

    name: str
    core: tuple[str | int, ...]
    absent: str = ""
    meant: str = ""

    def array(self, mech: Mechanism, values: Any) -> Float64Array:
        """The values as float64; raises MechanismError for anything else."""
        array = real_numbers(self.name, values)
        self.batch(mech, array)
        return array

    def batch(self, mech: Mechanism, array: np.ndarray) -> tuple[int, ...]:
        """The batch shape of an array; raises MechanismError if its core shape is wrong."""
        core = self.core_of(mech)
        lead = array.ndim - len(core)
        if lead >= 0 and array.shape[lead:] == core:
            return array.shape[:lead]
        expected = ", ".join(map(str, core))
        meant = self.meant
        if not meant and self.core in (("nq",), ("nv",)):
            meant = about_length(mech, "q" if self.core == ("nq",) else "v", array.shape[-1] if array.ndim else 0)
        raise MechanismError(
            f"{self.name} has shape {array.shape}, expected (..., {expected}) for mechanism {mech.name!r}{meant}"
        )

    def core_of(self, mech: Mechanism) -> tuple[int, ...]:
        """The shape of one state of a mechanism."""
        return tuple(size if isinstance(size, int) else getattr(mech, size) for size in self.core)

    def otherwise(self, mech: Mechanism) -> Float64Array:
        """The value that replaces None."""
        return mech.initial if self.absent == "initial" else np.zeros(self.core_of(mech))


#: Arguments of functions of states; "q0" and "v0" are like "q" and "v".
STATE = {
    argument.name: argument
    for argument in (
        Argument("q", ("nq",), absent="initial"),
        Argument("q0", ("nq",), absent="initial"),
        Argument("v", ("nv",), absent="zero"),
        Argument("v0", ("nv",), absent="zero"),
        Argument("a", ("nv",), absent="zero"),
        Argument("tau", ("nv",), absent="zero"),
        Argument("wrenches", ("n_links", 6)),
    )
}


def state_arrays(
    mech: Mechanism, named_arrays: Mapping[str, Any], finite: bool = True, optional: bool = False
) -> dict[str, Float64Array]:
    """The named values as float64 arrays with their common batch shape.

    given      "q" (..., nq), "v", "a" and "tau" (..., nv), "wrenches" (..., n_links, 6); "q0" and "v0" likewise; all
               but wrenches also by the names of joints, see ``by_joint.state_by_joint``
    finite     raise for numbers that are not finite
    optional   None stands for the value of ``STATE``: the initial configuration, rest, no forces

    A ``MechanismError`` names the array that is wrong and what it should be.
    """
    require_mechanism(mech)
    named_arrays = _expand_names(mech, named_arrays)
    if optional:
        named_arrays = {
            name: STATE[name].otherwise(mech) if values is None else values for name, values in named_arrays.items()
        }
    arrays = {name: real_numbers(name, values) for name, values in named_arrays.items()}
    batches = {name: _batch(mech, name, array) for name, array in arrays.items()}
    for name, array in arrays.items():
        if finite and not np.isfinite(array).all():
            raise MechanismError(f"{name} has entries that are not finite: {array}")
    batch = common_batch(batches)
    return {
        name: array if batches[name] == batch else np.broadcast_to(array, batch + array.shape[len(batches[name]) :])
        for name, array in arrays.items()
    }


def checked_arrays(mech: Mechanism, wrenches: Any = None, **named_arrays: Any) -> list[Float64Array]:
    """The named values, as for ``state_arrays``, as float64 arrays with their own batch shapes, finite or not.  None is
    zero, except for q.  The batch of wrenches must broadcast with them."""
    require_mechanism(mech)
    named = at_rest(mech, _expand_names(mech, named_arrays))
    arrays = [real_numbers(name, values) for name, values in named.items()]
    batches = {name: _batch(mech, name, array) for name, array in zip(named, arrays, strict=True)}
    if wrenches is not None:
        batches["wrenches"] = _batch(mech, "wrenches", real_numbers("wrenches", wrenches))
    common_batch(batches)
    return arrays


def _expand_names(mech: Mechanism, named_arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Values given by joint names converted to arrays."""
    if not any(isinstance(values, Mapping) for values in named_arrays.values()):
        return named_arrays
    from .by_joint import state_by_joint  # imported late: it closes loops

    return state_by_joint(mech, named_arrays)


def at_rest(mech: Mechanism, named_arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """The mapping with zeros for velocities, accelerations and forces that are None."""
    return {
        name: np.zeros(mech.nv) if values is None and name in ("v", "a", "tau") else values
        for name, values in named_arrays.items()
    }


def checked_motion(mech: Mechanism, q: Any, v: Any, tau: Any, wrenches: Any = None) -> Sequence[Float64Array]:
    """(q, v, tau), checked, with a fast path for a single state."""
    if (
        wrenches is None
        and type(q) is type(v) is type(tau) is np.ndarray
        and q.dtype is v.dtype is tau.dtype is _FLOAT64
        and isinstance(mech, Mechanism)
        and q.shape == (mech.nq,)
        and v.shape == tau.shape == (mech.nv,)
    ):
        return q, v, tau
    return checked_arrays(mech, wrenches, q=q, v=v, tau=tau)


def common_batch(batches: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The broadcast shape of named batch shapes."""
    shapes = set(batches.values())
    if len(shapes) == 1:
        return shapes.pop()
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(f"{name} {shape}" for name, shape in batches.items())
        raise MechanismError(f"the batch shapes do not broadcast: {listed}") from None


def in_brief(numbers: Any) -> str:
    """Numbers in few words: their common value, or the smallest to the largest."""
    values = np.asarray(numbers, dtype=float)
    least, most = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    return "none" if not values.size else f"{least:g}" if least == most else f"{least:g} to {most:g}"


def real_numbers(name: str, values: Any) -> Float64Array:
    """The values as a float64 array, without a copy if they are one.  Raises for complex numbers, objects and text."""
    if type(values) is np.ndarray and values.dtype is _FLOAT64:
        return values
    return array_of(name, values).astype(_FLOAT64, copy=False)


def array_of(name: str, values: Any) -> np.ndarray:
    """The values as an array of real numbers in their own precision; raises MechanismError otherwise."""
    if values is None:
        raise MechanismError(f"{name} is None, but real numbers are needed")
    if isinstance(values, str):
        raise MechanismError(
            f"{name} is the text {values!r}, but real numbers are needed: configurations by name are mech.postures[...]"
        )
    if isinstance(values, Mapping):
        made = "; linkwise.forces.wrenches_at makes one of pushes on links and frames" if name == "wrenches" else ""
        raise MechanismError(f"{name} is a dictionary, but an array of numbers is needed here{made}")
    try:
        array = np.asarray(plain(values))
    except UnreadableArrayError as error:
        raise MechanismError(f"{name} {error}") from None
    except ValueError as ragged:
        raise MechanismError(f"{name} is no array: {ragged}") from None
    if not np.can_cast(array.dtype, _FLOAT64):
        raise MechanismError(f"{name} has dtype {array.dtype}, but real numbers are needed")
    return array


def _batch(mech: Mechanism, name: str, array: np.ndarray) -> tuple[int, ...]:
    """The batch shape of the array called ``name``: one of ``STATE``, or another over the velocities."""
    return (STATE.get(name) or Argument(name, ("nv",))).batch(mech, array)


def about_length(mech: Mechanism, name: str, length: int) -> str:
    """Hint on an array of the wrong length."""
    if mech.nq != mech.nv and length == (mech.nv if name == "q" else mech.nq):
        other = f"that is the length of {'v' if name == 'q' else 'q'}"
        return f": {other}; q has four numbers for an orientation, v three"
    mimics = sum(body.kind.nq if name == "q" else body.kind.nv for body in mech.bodies if body.mimic)
    expected = mech.nq if name == "q" else mech.nv
    if mimics and length == expected + mimics:
        joints = ", ".join(map(repr, mech.coordinates.mimic_joints))
        return f": numbers of joints that mimic others are not part of it ({joints})"
    hinges = (body for body in mech.bodies if body.kind.hinge and not body.mimic)
    endless = [body.joint for body in hinges if np.isinf(body.limits.upper[0])]
    if name == "q" and endless and length == expected + len(endless):
        joints = ", ".join(map(repr, endless))
        return f": Pinocchio has cosine and sine of unlimited joints ({joints}); lw.interop.from_pinocchio converts"
    return ""
