"""Parts of a compiled model that a mechanism does not have, noted with advice."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.readers.mjcf.compiler import Compiled
from linkwise.readers.mjcf.documents import NO_FLEX, NO_SENSOR
from linkwise.readers.protocol import Element, omit

#: What MuJoCo's solver makes of a constraint: numbers of a spring and damper, and how hard it is, by default.
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)
_OF_A_ROPE = (
    "what hangs on it falls: mech.with_loops(lw.constraints.Loop(name, lw.contact.Distance(length), site_a, None, "
    "site_b, None)), or "
    "Builder.distance, keeps two points a length apart, as a rod or a taut rope does (docs/closed.md); the pull of a "
    "rope that goes slack is to be given as wrenches"
)


def note(compiled: Compiled) -> None:
    """Note ignored parts that act or measure, except actuators, equalities and geoms, which have notes of their
    readers.
    """
    model = compiled.model
    for tendon in range(model.ntendon):
        _note_tendon(compiled, tendon)
    flexible = {
        id(soft_body): soft_body for soft_body in (compiled.element("flex", flex) for flex in range(model.nflex))
    }
    for element in flexible.values():
        omit(element, "deformable body", NO_FLEX)
    for sensor in range(model.nsensor):
        omit(compiled.element("sensor", sensor), "sensor", NO_SENSOR)
    asleep = compiled.library.mjtSleepPolicy.mjSLEEP_INIT
    sleeps = model.opt.enableflags & compiled.library.mjtEnableBit.mjENBL_SLEEP
    for body in range(1, model.nbody):
        element = compiled.element("body", body)
        if model.body_mocapid[body] >= 0:
            omit(element, "mocap body", "kept where the file has it")
        tree = int(model.body_treeid[body])
        if sleeps and tree >= 0 and model.tree_sleep_policy[tree] == asleep and model.body_parentid[body] == 0:
            omit(element, "body with sleep", "it moves from the start on, where the file has it asleep")
        if model.body_plugin[body] >= 0:
            omit(_plugin(element), "plugin", "what a plugin does is not in the file")
    for index in np.flatnonzero(model.geom_plugin >= 0):
        omit(_plugin(compiled.element("geom", int(index))), "plugin", "what a plugin does is not in the file")


def _plugin(element: Element) -> Element:
    return element.first("plugin") or element


def is_fixed_tendon(compiled: Compiled, tendon: int) -> bool:
    """Whether a tendon's length is a sum of joint coordinates."""
    model = compiled.model
    return bool(model.wrap_type[model.tendon_adr[tendon]] == compiled.library.mjtWrap.mjWRAP_JOINT)


def note_softness(
    element: Element, feature: str, constraint: str, advice: str, solref: Any, solimp: Any, margin: float = 0.0
) -> None:
    """Note parameters of MuJoCo's solver for a limit or dry friction (``constraint``) of a joint or tendon."""
    names = [f"{name}{constraint}" for name in own_numbers(solref, solimp)] + ["margin"] * bool(margin)
    if names:
        omit(element, f"{feature} with {' and '.join(names)}", advice)


def own_numbers(solref: Any, solimp: Any) -> list[str]:
    """Names of solver parameters that differ from the format's defaults."""
    defaults = (("solref", solref, SOLREF), ("solimp", solimp, SOLIMP))
    return [name for name, numbers, usual in defaults if not np.array_equal(numbers, usual)]


def _note_tendon(compiled: Compiled, tendon: int) -> None:
    """Note forces along spatial tendons, and armature of fixed ones."""
    model, element = compiled.model, compiled.element("tendon", tendon)
    acts = [
        word
        for word in ("stiffness", "damping", "frictionloss", "armature")
        if getattr(model, f"tendon_{word}")[tendon]
    ]
    fixed = is_fixed_tendon(compiled, tendon)
    if fixed:
        acts = [word for word in acts if word == "armature"]
    elif model.tendon_limited[tendon] and not compiled.disables("constraint", "limit"):
        omit(element, "spatial tendon with limits", _OF_A_ROPE, constrains=True)
    if acts:
        kind = "fixed" if fixed else "spatial"
        omit(element, f"{kind} tendon with {', '.join(acts)}", "does not act: give its forces as tau")
    for word, values in (("springyield", model.tendon_springyield), ("actuatorfrcrange", model.tendon_actfrclimited)):
        if fixed and values[tendon]:
            omit(element, f"tendon with {word}", "not read")
