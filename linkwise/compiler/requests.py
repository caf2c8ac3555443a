"""Interpret the arguments of ``compile``: the algorithm, and the numbers of the mechanism that are inputs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..mechanics.algorithms.catalogue import ALGORITHMS, Algorithm, from_expression, variants
from ..mechanics.operators.expression import Expression
from ..mechanics.recursions.loops import LENGTH, SIDES
from ..mechanism import Loop, Mechanism, MechanismError, did_you_mean, one_of, require_mechanism, warn_caller
from ..mechanism.checks import names_of
from ..mechanism.elements import CONTACT_FRICTION, NUMBERS_THAT_ACT, OF_SPRINGS_AND_FRICTION
from ..mechanism.family import Numbers
from . import known_targets
from .ir.program import Array, Program
from .registry import NAME_ALIASES, OPTION_ALIASES, OTHER_LIBRARIES, TARGET_ALIASES, array_function

DTYPES = ("float64", "float32")
PARAMETER_SHAPES: dict[str, tuple[int, ...]] = {"mass": (), "com": (3,), "inertia": (3, 3), "pose": (4, 4)}
OF_JOINTS = ("armature", *OF_SPRINGS_AND_FRICTION)  # one number per degree of freedom
Places = list[tuple[tuple[str, int], Any]]  # ((kind, body), index into an input)
MAIN_ALGORITHMS = (
    "available: inverse_dynamics, forward_dynamics, mass_matrix, bias_force, jacobian, link_poses and every other "
    "array function of linkwise by its name; docs/api.md lists all"
)


def too_deep() -> ValueError:
    """The error for expressions nested too deeply for the recursion limit."""
    return ValueError(
        "the expression is too deep: factors and terms within one another are walked part by part, with Python's usual "
        "recursion limit about 100 deep.  Compile parts of it as kernels of their own and call these one after the "
        "other, or raise the limit (sys.setrecursionlimit)"
    )


def checked_settings(
    algorithm: Algorithm, dtype: Any, target: str, options: Mapping[str, Any]
) -> tuple[str, str, dict[str, Any]]:
    """Canonical names of precision, target and options of a request; raises for unknown or missing ones."""
    precision = one_of("dtype", np.dtype(dtype).name if dtype in (float, np.float64, np.float32) else dtype, DTYPES)
    target = one_of("target", target, known_targets.TARGETS, meant=TARGET_ALIASES)
    named = {OPTION_ALIASES.get(x, x) if x not in algorithm.options else x: value for x, value in options.items()}
    for name in named:
        one_of(f"option of {algorithm.name}", name, algorithm.options)
    algorithm.require_options(named)
    return precision, target, named


def find_algorithm(asked: Any, mech: Any, ports: str | Sequence[str] = ()) -> Algorithm:
    """The requested algorithm for a mechanism, with optional inputs."""
    algorithm = _find_algorithm(asked)
    require_mechanism(mech)
    return algorithm.of(mech).with_ports(*names_of(ports))


def _find_algorithm(asked: Any) -> Algorithm:
    if isinstance(asked, Algorithm):
        return asked
    if isinstance(asked, Expression):
        return from_expression(asked)
    if callable(asked):
        return ALGORITHMS[_algorithm_name(asked)]
    if not isinstance(asked, str):
        raise TypeError(f"an algorithm is a name, a function of linkwise or an operator expression, got {asked!r}")
    name = NAME_ALIASES.get(asked.lower(), asked)
    if name not in ALGORITHMS and name in OTHER_LIBRARIES:
        raise ValueError(f"unknown algorithm {asked!r}: it is linkwise.{OTHER_LIBRARIES[name]} here")
    if name not in ALGORITHMS and (former := _formerly_named(name)) is not None:
        return former
    return ALGORITHMS[one_of("algorithm", name, (*ALGORITHMS, *NAME_ALIASES), MAIN_ALGORITHMS)]


def _formerly_named(name: str) -> Algorithm | None:
    """The algorithm with optional inputs that had this name in version 0.1."""
    for algorithm in variants():
        if algorithm.name == name:
            plain = name[: -len("".join(f"_with_{port}" for port in algorithm.given_ports))]
            ports = ", ".join(map(repr, algorithm.given_ports))
            warn_caller(
                f"linkwise: {name!r} is {plain!r} with an optional input, compile({plain!r}, mech, ports=({ports},)); "
                "the old name goes with version 0.3",
                DeprecationWarning,
            )
            return algorithm
    return None


def _algorithm_name(function: Callable[..., Any]) -> str:
    """The algorithm that an array function of linkwise is made from; raises for other functions of any name."""
    made = array_function(function)
    if made is not None and made.algorithm is not None:
        return made.algorithm
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", repr(function))
    full = f"{module}.{name}" if module else name
    if made is not None or getattr(sys.modules.get(module), name, None) is function and module.startswith("linkwise."):
        raise ValueError(f"{full} is no algorithm that can be compiled: {made.advice if made else MAIN_ALGORITHMS}")
    meant = f"did you mean linkwise.{name}?" if name in ALGORITHMS else MAIN_ALGORITHMS
    raise ValueError(
        f"{full} is no function of linkwise, and only those are compiled: {meant} (for a computation of your own give "
        "an operator expression, or a linkwise.extend.Algorithm)"
    )


def parameter_arrays(mech: Mechanism, names: Sequence[Any]) -> tuple[list[Array], list[list[tuple[Any, Any]]]]:
    """One input per name, and the numbers that each of its elements replaces: ((kind, body), index into the array)."""
    if isinstance(names, str):
        names = (names,)
    arrays: list[Array] = []
    entries: list[Places] = []
    taken: set[tuple[str, int]] = set()
    for name in names:
        if isinstance(name, Numbers):  # all numbers that differ between variants of a mechanism, as one vector
            arrays.append(Array("numbers", (name.size,)))
            entries.append(name.places)
            continue
        if not isinstance(name, str):
            raise TypeError(f"a parameter is named by a string such as 'mass' or 'forearm.mass', got {name!r}")
        array, slots = _numbers_named(mech, name)
        clash = taken.intersection(key for key, _ in slots)
        if clash:
            raise ValueError(f"parameter {name!r} repeats numbers that another parameter already makes inputs")
        taken.update(key for key, _ in slots)
        arrays.append(array)
        entries.append(slots)
    return arrays, entries


def _numbers_named(mech: Mechanism, name: str) -> tuple[Array, Places]:
    """The input of one name, and the numbers that it replaces."""
    owner, _, kind = name.rpartition(".")
    if kind in OF_JOINTS:
        return _joint_numbers(mech, name, owner, kind)
    if kind == CONTACT_FRICTION:
        return Array(name, ()), [((kind, k), ...) for k in _contacts(mech, owner)]
    if name == "gravity":
        return Array(name, (3,)), [(("gravity", -1), ...)]
    if name == "drive":
        driven = [k for k, loop in enumerate(mech.loops) if loop.drive is not None]
        return Array(name, (len(mech.constraints.driven), 3)), [(("drive", k), row) for row, k in enumerate(driven)]
    if kind in SIDES or kind == LENGTH:
        return _loop_numbers(mech, name, owner, kind)
    if owner:
        if owner not in mech.frames and any(owner == loop.name for loop in mech.loops):
            one_of(f"parameter of loop {owner!r}", kind, (*SIDES, LENGTH))
        one_of(f"parameter of {owner!r}", kind, (*PARAMETER_SHAPES, *OF_JOINTS, *SIDES, CONTACT_FRICTION))
        return Array(name, PARAMETER_SHAPES[kind]), [((kind, mech.parameters.link_index(owner)), ...)]
    one_of("parameter", kind, (*PARAMETER_SHAPES, "gravity", "drive", *OF_JOINTS, CONTACT_FRICTION))
    array = Array(name, (mech.n_links, *PARAMETER_SHAPES[kind]))
    return array, [((kind, i), i) for i in range(mech.n_links)]


def _joint_numbers(mech: Mechanism, name: str, joint: str, kind: str) -> tuple[Array, Places]:
    """Numbers of one joint, or of all independent joints in the order of v."""
    if joint:
        body = mech.body_index(joint)
        size = mech.bodies[body].kind.nv
        return Array(name, () if size == 1 else (size,)), [((kind, body), ...)]
    independent = [i for i, body in enumerate(mech.bodies) if not body.mimic]
    slots: Places = [((kind, i), mech.v_index(mech.bodies[i].joint)) for i in independent]
    return Array(name, (mech.nv,)), slots


def _loop_numbers(mech: Mechanism, name: str, loop: str, side: str) -> tuple[Array, Places]:
    """The pose of one side of a loop, or the length of a distance."""
    matches = [k for k, closure in enumerate(mech.loops) if closure.name == loop and isinstance(closure, Loop)]
    if not matches:
        known = [closure.name for closure in mech.loops if isinstance(closure, Loop)]
        raise MechanismError(
            f"parameter {name!r}: {side} is that of one loop, 'LOOP.{side}', and mechanism {mech.name!r} has no loop "
            f"{loop!r}: {did_you_mean(loop, known)}"
        )
    if side == LENGTH and not hasattr(getattr(mech.loops[matches[0]], "kind", None), LENGTH):
        raise MechanismError(
            f"parameter {name!r}: only distances have a length (Builder.distance), and loop {loop!r} is none; where "
            f"its sides are, '{loop}.pose_a' and '{loop}.pose_b', can be parameters"
        )
    return Array(name, () if side == LENGTH else PARAMETER_SHAPES["pose"]), [((side, matches[0]), ...)]


def _contacts(mech: Mechanism, owner: str) -> list[int]:
    """Indices into ``mech.contact_pairs``: of one pair, of all pairs of a shape, or of all pairs."""
    if owner and owner not in (pair.name for pair in mech.contact_pairs):
        mech.contact.shape(owner)
    matches = [k for k, pair in enumerate(mech.contact_pairs) if owner in ("", pair.name, *pair.shapes)]
    if not matches:
        whose = f"shape {owner!r} of " if owner else ""
        raise MechanismError(f"{whose}mechanism {mech.name!r} touches nothing: mech.with_ground() gives it a floor")
    return matches


def refuse_unused(algorithm: Algorithm, program: Program) -> None:
    """Raise if a program ignores requested numbers of force elements, as plain dynamics of the bare mechanism does."""
    asked = [k for k, array in enumerate(program.inputs) if array.name.rpartition(".")[2] in NUMBERS_THAT_ACT]
    asked = [k for k in asked if program.inputs[k].name not in algorithm.inputs]
    unread = program.unread if asked else ()
    for k in asked:
        if len(unread[k]) == program.inputs[k].size:
            raise ValueError(
                f"parameter {program.inputs[k].name!r} has no part in {algorithm.name}, which is that of the bare "
                "mechanism: lw.rollout(..., parameters=...) takes numbers of springs, damping, friction and contact"
            )
