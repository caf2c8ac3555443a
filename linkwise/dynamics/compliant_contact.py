"""Compliant contact between shapes: gaps, forces, the wrenches on links and what springs hold.

These are forces of simple shapes that give way (``mech.contact_pairs``); links that are held without giving way are
loops, which ``lw.forward_dynamics`` lets hold or let go.
"""

from __future__ import annotations

from typing import NamedTuple

from numpy.typing import ArrayLike

from ..compiler.store import kernel_function, of_algorithm
from ..mechanism import Mechanism
from .states import Float64Array


class ContactPoints(NamedTuple):
    """Elementary contacts, in the order of ``mech.contact.parts`` and in the axes of the world; batches in front.

    gap        (n,): distance of the shapes, negative where they touch
    position   (n, 3): where they touch, or would
    normal     (n, 3): along which the first shape of the pair is pushed
    force      (n, 3): on the first shape, with friction
    """

    gap: Float64Array
    position: Float64Array
    normal: Float64Array
    force: Float64Array


def _points(numbers: Float64Array) -> ContactPoints:
    return ContactPoints(numbers[..., 0], numbers[..., 1:4], numbers[..., 4:7], numbers[..., 7:10])


@of_algorithm("contact_wrenches")
def contact_wrenches(mech: Mechanism, q: ArrayLike, v: ArrayLike, *, explicit: bool | float = False) -> Float64Array:
    """(n_links, 6): contact wrenches [moment; force] on every link, at its origin in its frame, for ``wrenches=`` of
    ``lw.forward_dynamics``; ``explicit`` as in ``contact_points``. ``lw.simulate`` and ``lw.rollout`` include
    contact already.
    """
    return kernel_function(mech, ("contact_wrenches", ("explicit", explicit)))(q, v)


@of_algorithm("contact_points", _points)
def contact_points(mech: Mechanism, q: ArrayLike, v: ArrayLike, *, explicit: bool | float = False) -> ContactPoints:
    """Gap, position, normal and force of every elementary contact: see ``ContactPoints``.

    explicit   False: friction holds what is inside its cone, as in motions of "semi_implicit" and of adaptive implicit
               methods; True: no steeper than the damper (``ContactLaw.damping``) that it is in adaptive explicit ones;
               a number: the forces of explicit steps ("rk4") of that length, with all their bounds
    """
    return _points(kernel_function(mech, ("contact_points", ("explicit", explicit)))(q, v))


@of_algorithm("contact_energy")
def contact_energy(mech: Mechanism, q: ArrayLike, *, explicit: bool | float = False) -> Float64Array:
    """Potential energy in the springs of all contacts, a scalar per state.

    explicit   the length of the step, for the energy of the softer, bounded springs of explicit methods ("rk4")
    """
    return kernel_function(mech, ("contact_energy", ("explicit", explicit)))(q)
