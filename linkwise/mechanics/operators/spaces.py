"""Vector spaces of the algebra: joint space, independent coordinates, link forces, link motions, one link, loops,
numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Space:
    """A vector space; ``link`` names the link of a task space (six numbers at one link)."""

    name: str
    link: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.link!r}" if self.link else self.name

    @property
    def dual(self) -> Space:
        return Space(_DUAL.get(self.name, self.name), self.link)

    @property
    def holds_forces(self) -> bool:
        """Whether its vectors are forces, on all links or on one."""
        return self.name in (FORCE.name, FORCE_AT_LINK.name)

    @property
    def at_link(self) -> bool:
        """Whether its vectors are six numbers at one link."""
        return self.name in (FORCE_AT_LINK.name, MOTION_AT_LINK.name)

    @cached_property
    def is_single(self) -> bool:
        """Whether its vectors have a single value instead of one per link."""
        return self.at_link or self in (SCALAR, COORDINATE, LOOP)

    def at(self, link: str) -> Space:
        """The space itself, or for a space at one link the space at the named link."""
        return Space(self.name, link) if self.at_link and link else self


SCALAR = Space("scalars")
JOINT = Space("joint space")  # one number per degree of freedom of every joint, mimic joints included
COORDINATE = Space("coordinate space")  # of the independent joints: velocities v, forces tau, (nv,)
LOOP = Space("loop space")  # one number per loop constraint: rates of the loops, multipliers, (m,)
FORCE = Space("link force space")
MOTION = Space("link motion space")
FORCE_AT_LINK = Space("force at link")
MOTION_AT_LINK = Space("motion at link")
_DUAL = {
    FORCE.name: MOTION.name,
    MOTION.name: FORCE.name,
    FORCE_AT_LINK.name: MOTION_AT_LINK.name,
    MOTION_AT_LINK.name: FORCE_AT_LINK.name,
}


FORCE_ON_GROUND = FORCE_AT_LINK.at("ground")  # at the world's origin, in its axes


def force_at(link: str) -> Space:
    return FORCE_AT_LINK.at(link)


class SpaceError(TypeError):
    """A sum or product of terms in incompatible spaces."""
