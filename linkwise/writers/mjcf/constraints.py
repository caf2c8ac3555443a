"""``<equality>``: loops, mimic joints and couplings."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanism import Coupling, Loop, Mechanism
from linkwise.mechanism.naming import unused_name
from linkwise.writers.loops import refuse_functions
from linkwise.writers.mjcf.bodies import FORMAT, Bodies
from linkwise.writers.report import Report
from linkwise.writers.xml import element


def write_equalities(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """All constraints, exactly: MuJoCo's solver keeps them as well as its settings let it."""
    refuse_functions(mech, report)
    section = element(root, "equality")
    for body in mech.bodies:
        if body.mimic:
            value, mimicked = (float(bodies.initial[name][0]) for name in (body.joint, body.mimic.joint))
            offset = body.mimic.offset + body.mimic.ratio * mimicked - value
            rule = (offset, body.mimic.ratio, 0.0, 0.0, 0.0)
            element(section, "joint", joint1=body.joint, joint2=body.mimic.joint, polycoef=rule)
    for loop in mech.loops:
        if isinstance(loop, Coupling) and loop.relation is not None:
            raise report.refuse(
                f"MJCF has no equality for the relation {loop.name!r} of {', '.join(repr(x) for x, _ in loop.ratios)}; "
                "save it as URDF, whose companion file holds it"
            )
        if isinstance(loop, Coupling):
            _coupling(root, section, bodies, loop)
        else:
            _loop(section, mech, bodies, loop, report)
    if not len(section):
        root.remove(section)


def _loop(section: Element, mech: Mechanism, bodies: Bodies, loop: Loop, report: Report) -> None:
    entry = loop.kind.formats.get(FORMAT)
    if entry is None or not entry.loop:
        raise report.refuse(
            f"MJCF has no equality for the loop {loop.name!r}, which {loop.kind!r} closes; save it as URDF, which can "
            "say it, or save mech.spanning_tree, which is without loops"
        )
    axes = entry.directions(loop.kind)
    if not axes:
        _meet(section, bodies, entry.loop, loop, loop.name, np.zeros(3))
    for axis in axes:
        # A hinge holds two points of its axis together; as far from each other as the hinge is from its links.
        reach = max(float(np.linalg.norm(position)) for _, position in (loop.pose_a, loop.pose_b)) or 1.0
        names = loop.name, f"{loop.name}.2"
        _meet(section, bodies, entry.loop, loop, names[0], np.zeros(3))
        _meet(section, bodies, entry.loop, loop, names[1], reach * np.array(axis))
        report.remark("hinges that close loops, as two points of their axes", f"{names[0]} ({', '.join(names)})")


def _meet(section: Element, bodies: Bodies, tag: str, loop: Loop, name: str, at: np.ndarray) -> None:
    """Two sites that coincide, at a point in the frames of the loop."""
    sites = []
    for side, link, (rotation, position) in (("a", loop.link_a, loop.pose_a), ("b", loop.link_b, loop.pose_b)):
        sites.append(bodies.site(link, (rotation, position + rotation @ at), f"{name}.{side}"))
    element(section, tag, name=name, site1=sites[0], site2=sites[1])


def _coupling(root: Element, section: Element, bodies: Bodies, coupling: Coupling) -> None:
    """A fixed tendon whose length is the sum, held where it is to be."""
    tendons = root.find("tendon")
    tendons = element(root, "tendon") if tendons is None else tendons
    name = unused_name(coupling.name, {tendon.get("name", "") for tendon in tendons})
    tendon = element(tendons, "fixed", name=name)
    for joint, ratio in coupling.ratios:
        element(tendon, "joint", joint=joint, coef=ratio)
    length = sum(ratio * float(bodies.initial[joint][0]) for joint, ratio in coupling.ratios)
    element(
        section, "tendon", name=coupling.name, tendon1=name, polycoef=(coupling.offset - length, 0.0, 0.0, 0.0, 0.0)
    )
