"""The views ``mech.parameters`` and ``mech.limits``: numbers of bodies and joints as arrays, and copies with others."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanism import checks, family
from linkwise.mechanism.view import View, kept, read_only

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

NO_JOINTS: Mapping[str, Any] = MappingProxyType({})


class ParametersView(View):
    """Inertial parameters of the bodies; armature, damping, friction and springs of the joints.

    Numbers by velocity or position coordinate leave out joints that mimic others.
    """

    __slots__ = ()

    @kept
    def masses(self) -> NDArray[np.float64]:
        """(n_links,) mass of each body."""
        return read_only(np.array([body.mass for body in self._mech.bodies], dtype=float))

    @kept
    def coms(self) -> NDArray[np.float64]:
        """(n_links, 3): centre of mass of each body in its link frame."""
        return read_only(np.array([body.com for body in self._mech.bodies], dtype=float).reshape(-1, 3))

    @kept
    def inertias(self) -> NDArray[np.float64]:
        """(n_links, 3, 3): inertia of each body about its centre of mass, along the axes of its link frame."""
        return read_only(np.array([body.inertia for body in self._mech.bodies], dtype=float).reshape(-1, 3, 3))

    @kept
    def armature(self) -> NDArray[np.float64]:
        """(nv,) reflected rotor inertias."""
        return _coordinate_values(self._mech, "armature")

    @kept
    def damping(self) -> NDArray[np.float64]:
        """(nv,) viscous damping of the joints."""
        return _coordinate_values(self._mech, "damping")

    @kept
    def friction(self) -> NDArray[np.float64]:
        """(nv,) dry friction of the joints (``frictionloss`` of MJCF)."""
        return _coordinate_values(self._mech, "friction")

    @kept
    def stiffness(self) -> NDArray[np.float64]:
        """(nv,) stiffness of springs in the joints."""
        return _coordinate_values(self._mech, "stiffness")

    @kept
    def spring_rest(self) -> NDArray[np.float64]:
        """(nq,): rest positions of joint springs (``springref`` of MJCF), by default neutral."""
        return _coordinate_values(self._mech, "rest")

    @property
    def singular_joints(self) -> tuple[str, ...]:
        """Independent joints that can move without moving any inertia. They make the tree's mass matrix singular
        everywhere, whatever forces act.
        """
        return tuple(massless.joint for massless in self._mech._massless_joints)

    def link_index(self, link: str) -> int:
        """Index of a moving link among masses, centres of mass and inertias; welded frames have none."""
        mech = self._mech
        if link in mech.link_names:
            return mech.link_names.index(link)
        if link not in mech.frames:
            return mech.link_names.index(checks.one_of("moving link", link, mech.link_names))
        body = mech.frames[link].body
        welded = f"welded to {mech.link_names[body]!r}: name that moving link" if body >= 0 else "fixed to the ground"
        raise ValueError(f"{link!r} of mechanism {mech.name!r} is {welded}")

    def with_inertial(self, parameters: Any, strict: bool = True) -> Mechanism:
        """A copy with these numbers, (10 n_links,) in the order of ``lw.estimation.inertial_parameters``.

        With ``strict``, numbers that no rigid body has are an error; without it they are kept, with a warning. Such
        numbers often result from identification by torques, which depend on some combinations only:
        ``lw.estimation.physical_parameters`` computes the nearest numbers of rigid bodies.
        """
        from linkwise.mechanism.inertial_parameters import with_inertial_parameters

        return with_inertial_parameters(self._mech, parameters, strict)

    def with_armature(self, armature: Mapping[str, Any] | float = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with these reflected rotor inertias: ``{joint name: a number, or one per velocity coordinate}``, or
        joints as keywords; or a number for all joints but floating ones."""
        from linkwise.mechanism.edit import set_joint_numbers

        return set_joint_numbers(self._mech, "armature", armature, named)

    def with_damping(self, damping: Mapping[str, Any] | float = NO_JOINTS, /, **named: Any) -> Mechanism:
        """A copy with this viscous damping in the joints, in the forms of ``with_armature``.

        Like the damping of a file it acts in ``lw.simulate``, ``lw.rollout`` and other functions under all forces; the
        functions of plain dynamics leave it out.
        """
        from linkwise.mechanism.edit import set_joint_numbers

        return set_joint_numbers(self._mech, "damping", damping, named)

    def with_springs(self, stiffness: Mapping[str, Any], /, rest: Mapping[str, Any] = NO_JOINTS) -> Mechanism:
        """A copy with springs of this stiffness in the joints, in the forms of ``with_armature``.

        rest   coordinates of the springs at rest; joints that are left out keep theirs, which are zero without a spring
        """
        from linkwise.mechanism.edit import set_joint_numbers

        return set_joint_numbers(self._mech, "stiffness", stiffness, rest=rest)

    def with_shared_code(self) -> Mechanism:
        """A copy that shares its code with all its variants (``with_payload``, ``with_gravity``, ...): the results of
        one do not depend on the others computed before, to the last bit.
        """
        return family.alike(self._mech)


class LimitsView(View):
    """Limits of the joints by coordinate, infinite if unlimited; mimic joints are not included.

    ``mech.with_limits`` changes them; ``mech.forces.ctrl_range`` has those of control inputs.
    """

    __slots__ = ()

    @kept
    def lower(self) -> NDArray[np.float64]:
        """(nq,): lower limits of q, -inf if unlimited."""
        return _coordinate_values(self._mech, "limits.lower")

    @kept
    def upper(self) -> NDArray[np.float64]:
        """(nq,): upper limits of q, inf if unlimited."""
        return _coordinate_values(self._mech, "limits.upper")

    @kept
    def velocity(self) -> NDArray[np.float64]:
        """(nv,): largest ``|v|``, inf if unlimited."""
        return _coordinate_values(self._mech, "limits.velocity")

    @kept
    def effort(self) -> NDArray[np.float64]:
        """(nv,): largest joint forces and torques, inf if unlimited."""
        return _coordinate_values(self._mech, "limits.effort")


def _coordinate_values(mech: Mechanism, quantity: str) -> NDArray[np.float64]:
    values = map(attrgetter(quantity), (body for body in mech.bodies if not body.mimic))
    return read_only(np.array([x for of_joint in values for x in of_joint], dtype=float))
