"""Equalities: points and bodies held together become loops, joints tied linearly become mimic joints, sums of joint
coordinates (fixed tendons) couplings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from linkwise.mechanics.joints import Fixed, Spherical
from linkwise.mechanism import GROUND, Builder, Mimic, Pose
from linkwise.mechanism.naming import unused_name
from linkwise.readers.mjcf.compiler import Compiled, rotation_of, tidy
from linkwise.readers.mjcf.forces import Forces
from linkwise.readers.mjcf.tree import Tree, coordinates
from linkwise.readers.protocol import omit, warn

_LEFT_OUT = {  # what they are called, and whether they hold together what is read
    "distance": ("distance equality", True),
    "flex": ("equality of deformable bodies", False),
    "flexvert": ("equality of deformable bodies", False),
    "flexstrain": ("equality of deformable bodies", False),
}
_NOT_READ = "equalities of this kind are not read"


@dataclass(frozen=True)
class Ties:
    """Mimic joints, and joints that are held at a coordinate."""

    mimic_joints: Mapping[str, Mimic]
    held: Mapping[str, float]


def kind_of(compiled: Compiled, equality: int) -> str:
    """The word for an equality's type."""
    return compiled.library.mjtEq(int(compiled.model.eq_type[equality])).name.removeprefix("mjEQ_").lower()


class Equalities:
    """The equality constraints in force."""

    def __init__(self, tree: Tree, forces: Forces) -> None:
        self._tree, self._forces, self._compiled, self._model = tree, forces, tree.compiled, tree.compiled.model
        self._names = self._compiled.names("equality", self._model.neq)
        off = self._compiled.disables("constraint", "equality")
        self._active = [] if off else [int(i) for i in np.flatnonzero(self._model.eq_active0)]
        self._kinds = {i: kind_of(self._compiled, i) for i in self._active}
        for i, kind in self._kinds.items():
            if kind in _LEFT_OUT:
                feature, constrains = _LEFT_OUT[kind]
                omit(self._compiled.element("equality", i), feature, _NOT_READ, constrains)

    # -- loops --------------------------------------------------------------------------------------------------

    def add_loops(self, builder: Builder) -> None:
        """The loops of ``<connect>`` and ``<weld>``."""
        tree, taken = self._tree, set[str]()
        for i in (i for i, kind in self._kinds.items() if kind in ("connect", "weld")):
            (body_a, pose_a), (body_b, pose_b) = self._sides(i)
            kind = self._kinds[i]
            ball = kind == "connect" or self._model.eq_data[i, 10] == 0.0
            name = self._names[i] or f"{kind}_{tree.names[body_a]}_{tree.names[body_b]}"
            name = unused_name(name, taken)
            if tree.mover(body_a) == tree.mover(body_b):
                names = f"{tree.names[body_a]!r} and {tree.names[body_b]!r}"
                warn(self._compiled.element("equality", i), f"is left out: {names} are parts of the same rigid body")
                continue
            links = [tree.frame_of[body] if body else GROUND for body in (body_a, body_b)]
            builder.loop(name, Spherical() if ball else Fixed(), links[0], pose_a, links[1], pose_b)

    def _sides(self, i: int) -> tuple[tuple[int, Pose], tuple[int, Pose]]:
        """Two bodies, each with the pose in it that meets the other's."""
        model, data = self._model, self._model.eq_data[i]
        first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
        if model.eq_objtype[i] == self._compiled.library.mjtObj.mjOBJ_SITE:
            body_a, body_b = (int(model.site_bodyid[site]) for site in (first, second))
            return (body_a, self._compiled.pose("site", first)), (body_b, self._compiled.pose("site", second))
        if self._kinds[i] == "connect":
            return (first, (np.eye(3), tidy(data[:3]))), (second, (np.eye(3), tidy(data[3:6])))
        # The anchor of the second body meets a point of the first one.
        return (first, (rotation_of(data[6:10]), tidy(data[3:6]))), (second, (np.eye(3), tidy(data[:3])))

    # -- joints -------------------------------------------------------------------------------------------------

    def ties(self, mimic: bool) -> Ties:
        """Couplings of ``<joint>`` equalities, ``y - y0 = a0 + a1 (x - x0) + ...`` for the coordinates y of the first
        joint and x of the second; empty without ``mimic``.
        """
        references, joints = coordinates(self._tree), {joint.index: joint for joint in self._tree.all_joints}
        mimic_joints: dict[str, Mimic] = {}
        held: dict[str, float] = {}
        for i in (i for i, kind in self._kinds.items() if kind == "joint"):
            ends = (int(end) for end in (self._model.eq_obj1id[i], self._model.eq_obj2id[i]) if end >= 0)
            names = [joints[end].name for end in ends]
            offset, ratio, *higher = map(float, self._model.eq_data[i, :5])
            if len(names) == 1:
                held[names[0]] = references[names[0]] + offset
            elif any(higher):
                element = self._compiled.element("equality", i)
                omit(element, "nonlinear joint equality", "both joints are left free", constrains=True)
            else:
                self._add_tie(i, names[0], names[1], offset, ratio, references, mimic_joints)
        return Ties(mimic_joints, _held(mimic_joints, held)) if mimic else Ties({}, {})

    def _add_tie(
        self,
        i: int,
        first: str,
        second: str,
        offset: float,
        ratio: float,
        references: Mapping[str, float],
        mimic_joints: dict[str, Mimic],
    ) -> None:
        offset += references[first] - ratio * references[second]
        if first in mimic_joints and second not in mimic_joints and ratio != 0.0:
            first, second, ratio, offset = second, first, 1.0 / ratio, -offset / ratio
        if first in mimic_joints:
            element = self._compiled.element("equality", i)
            raise element.error(
                f"{element.label}: {first!r} already mimics {mimic_joints[first].joint!r}; keep one of both"
            )
        mimic_joints[first] = Mimic(second, ratio, offset)

    # -- tendons ------------------------------------------------------------------------------------------------

    def add_couplings(self, builder: Builder) -> None:
        """The ``<tendon>`` equalities: ``l - l0 = a0 + a1 (m - m0) + ...`` for the lengths l of the first tendon and m
        of the second, l0 and m0 those in the file's pose."""
        references, tendons = coordinates(self._tree), self._compiled.names("tendon", self._model.ntendon)
        taken: set[str] = set()
        for i in (i for i, kind in self._kinds.items() if kind == "tendon"):
            element = self._compiled.element("equality", i)
            ends = [int(end) for end in (self._model.eq_obj1id[i], self._model.eq_obj2id[i]) if end >= 0]
            arms = [self._forces.fixed_tendon(end) for end in ends]
            offset, ratio, *higher = map(float, self._model.eq_data[i, :5])
            if any(arm is None for arm in arms):
                omit(element, "equality of spatial tendons", _NOT_READ, constrains=True)
            elif len(ends) > 1 and any(higher):
                omit(element, "nonlinear tendon equality", _NOT_READ, constrains=True)
            else:
                ratios: dict[str, float] = {}
                for lever_arms, factor in zip(arms, (1.0, -ratio), strict=False):
                    for joint, coefficient in (lever_arms or {}).items():
                        ratios[joint] = ratios.get(joint, 0.0) + factor * coefficient
                total = offset + sum(arm * references[joint] for joint, arm in ratios.items())
                name = self._names[i] or "_".join(["tendon", *(tendons[end] for end in ends)])
                builder.coupling(unused_name(name, taken), ratios, total)


def _held(mimic_joints: Mapping[str, Mimic], held: Mapping[str, float]) -> dict[str, float]:
    """Locked joints and the leaders of locked mimic joints, with the coordinates that these require."""
    result: dict[str, float] = {}
    for joint, value in held.items():
        chain = [joint]
        while joint in mimic_joints and mimic_joints[joint].ratio and mimic_joints[joint].joint not in chain:
            rule = mimic_joints[joint]
            joint, value = rule.joint, (value - rule.offset) / rule.ratio
            chain.append(joint)
        if joint not in mimic_joints:  # otherwise its own rule holds it
            result.setdefault(joint, value)
    return result
