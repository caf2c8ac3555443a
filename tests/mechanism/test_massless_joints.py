"""Which joints can move while nothing with inertia does: against the rank of the mass matrix, in all units."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import linkwise as lw

KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "planar", "spherical", "pin_in_slot")
NO_INERTIA = np.zeros((3, 3))


def with_bodies(mech: lw.Mechanism, change) -> lw.Mechanism:
    return dataclasses.replace(mech, bodies=tuple(map(change, mech.bodies)))


def with_masses_left_out(seed: int) -> lw.Mechanism:
    """A random tree in which links lack mass, or are point masses or rods, and most joints have no rotor."""
    rng = np.random.default_rng(seed)
    mech = lw.mechanisms.random_tree(int(rng.integers(2, 7)), seed, joints=KINDS, floating_base=bool(seed % 3 == 0))

    def change(body):
        armature = tuple(x * (rng.random() < 0.2) for x in body.armature)
        which, axis = rng.random(), rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        if which < 0.5:
            return dataclasses.replace(body, mass=0.0, inertia=NO_INERTIA, armature=armature)
        if which < 0.65:
            com = body.com * (rng.random() < 0.5)
            return dataclasses.replace(body, com=com, inertia=NO_INERTIA, armature=armature)
        if which < 0.8:
            return dataclasses.replace(body, inertia=np.eye(3) - np.outer(axis, axis), armature=armature)
        return dataclasses.replace(body, armature=armature)

    return with_bodies(mech, change)


def in_units(mech: lw.Mechanism, length: float, mass: float) -> lw.Mechanism:
    """The mechanism in units that are so many metres and kilograms."""

    def change(body):
        measures = body.kind.measures("v")
        armature = [
            x / mass / (1.0 if measure.of == "length" else length**2)
            for x, measure in zip(body.armature, measures, strict=True)
        ]
        kind = lw.Helical(body.kind.axis, body.kind.pitch / length) if isinstance(body.kind, lw.Helical) else body.kind
        return dataclasses.replace(
            body,
            kind=kind,
            position=body.position / length,
            com=body.com / length,
            mass=body.mass / mass,
            inertia=body.inertia / (mass * length**2),
            armature=tuple(armature),
        )

    return with_bodies(mech, change)


def lost_rank(mech: lw.Mechanism) -> int:
    """How much the rank of the mass matrix is too small at a random configuration, by a dense decomposition."""
    q, _ = lw.random_state(mech, np.random.default_rng(5), (3,))
    masses = lw.compile("mass_matrix", mech, target="numpy")(q)
    return mech.nv - max(int((np.linalg.eigvalsh(m) > 1e-10 * np.abs(m).max()).sum()) for m in masses)


def test_the_rank_of_the_mass_matrix_decides():
    singular = 0
    for seed in range(60):
        mech = with_masses_left_out(seed)
        assert bool(mech.parameters.singular_joints) == bool(lost_rank(mech)), seed
        singular += bool(mech.parameters.singular_joints)
        for units in ((1e-3, 1e-3), (1e-6, 1e-12), (1e6, 1e6)):
            assert in_units(mech, *units).parameters.singular_joints == mech.parameters.singular_joints, (seed, units)
    assert 15 < singular < 55  # both answers are tried


def test_armature_at_the_massless_joints_mends_the_mass_matrix():
    """The joints that are named are those that lack inertia: with a rotor at each, the mass matrix is positive."""
    for seed in range(30):
        mech = with_masses_left_out(seed)
        rotors = {
            joint: [1.0] * mech.bodies[mech.body_index(joint)].kind.nv for joint in mech.parameters.singular_joints
        }
        mended = mech.parameters.with_armature(rotors)
        assert not mended.parameters.singular_joints and not lost_rank(mended), seed


def carried(base, top, root=0.0, cart=5.0) -> lw.Mechanism:
    """A cart with inertia on a root that has none unless it is given."""
    builder = lw.Builder().link("root", root, inertia=(root,) * 3)
    builder.link("cart", cart, (0.1, -0.2, 0.05), (0.2 * cart, 0.3 * cart, 0.25 * cart))
    builder.joint("base", base, "ground", "root").joint("top", top, "root", "cart", (0.3, 0.1, 0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.InertiaWarning)
        return builder.build("cart", strict=False)


@pytest.mark.parametrize(
    "base, top, massless",
    [
        (lw.Floating(), lw.Planar(), True),
        (lw.Floating(), lw.Revolute((0, 0, 1)), True),
        (lw.Planar(), lw.Planar((1, 0, 0)), True),
        (lw.Planar(), lw.Revolute((1, 0, 0)), False),
        (lw.Revolute((0, 0, 1)), lw.Revolute((0, 1, 0)), False),
        (lw.Revolute((0, 0, 1)), lw.Prismatic((0, 0, 1)), False),
        (lw.Prismatic((0, 0, 1)), lw.Prismatic((0, 0, 1)), True),
        (lw.Spherical(), lw.Spherical(), True),  # about the line through both centres
        (lw.Spherical(), lw.Universal(), False),
        (lw.Cylindrical((0, 0, 1)), lw.Cylindrical((0, 0, 1)), True),
        (lw.Universal(), lw.Planar(), False),
    ],
)
def test_joints_that_undo_each_other(base, top, massless):
    mech = carried(base, top)
    assert bool(lost_rank(mech)) == massless
    assert mech.parameters.singular_joints == (("base",) if massless else ())
    if massless:
        with pytest.raises(lw.MechanismError, match=r"joint 'base' \(joint 'top' can undo its motion\) of mechanism"):
            lw.forward_dynamics(mech, lw.neutral(mech), np.zeros(mech.nv), np.zeros(mech.nv))


@pytest.mark.filterwarnings("ignore:nothing beyond")
@pytest.mark.parametrize("lever", [1.0, 1e-6, 1e-9, 1e-12])
def test_small_links_on_a_large_arm_are_judged_by_their_own_size(lever):
    """A point mass on two joints at the end of an arm of one metre; it resists the second unless it is on its axis."""
    for axis, massless in (((0, 1, 0), ()), ((1, 0, 0), ("pan",))):
        builder = lw.Builder()
        builder.link("arm", 1.0, (0.5, 0, 0), 0.1 * np.eye(3))
        builder.joint("shoulder", lw.Revolute((0, 0, 1)), "ground", "arm")
        builder.link("fork", 0.0, (0, 0, 0), np.zeros((3, 3)))
        builder.joint("tilt", lw.Revolute((1, 0, 0)), "arm", "fork", (np.eye(3), (1.0, 0, 0)))
        builder.link("point", 1e-3, (lever, 0, 0), np.zeros((3, 3)))
        builder.joint("pan", lw.Revolute(axis), "fork", "point", (np.eye(3), (0, 0.2 * lever, 0)))
        mech = builder.build(strict=False)
        assert mech.parameters.singular_joints == massless


def test_the_mass_of_the_root_does_not_matter_unless_it_is_zero():
    assert carried(lw.Floating(), lw.Planar(), 1e-9).parameters.singular_joints == ()
    assert carried(lw.Floating(), lw.Planar(), 1e-9, 1e9).parameters.singular_joints == ()


def test_a_massless_floating_root_is_reported_by_load():
    text = """<robot name="p"><link name="w"/><link name="cart"><inertial><origin xyz="0.1 -0.2 0.05"/><mass value="5"/>
      <inertia ixx="0.2" iyy="0.3" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="slide"
      type="planar"><parent link="w"/><child link="cart"/><axis xyz="0 0 1"/></joint></robot>"""
    with pytest.warns(lw.files.InertiaWarning, match=r"\(joint 'slide' can undo its motion\)"):
        lw.load(text, floating_base=True)


def test_mimic_joints_may_carry_what_others_lack():
    """A leader without mass, whose follower moves mass; and hubs that only together move none."""

    def built(ratio):
        builder = lw.Builder().link("knob").link("hub").link("arm", 1.0, (0.3, 0, 0), (0.1, 0.1, 0.1))
        builder.joint("turn", lw.Revolute((0, 0, 1)), "ground", "hub").joint(
            "swing", lw.Revolute((0, 0, 1)), "hub", "arm", mimic=lw.Mimic("turn", ratio)
        )
        builder.joint("k", lw.Revolute((0, 1, 0)), "ground", "knob", mimic=lw.Mimic("turn", 2.0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.files.InertiaWarning)
            return builder.build(strict=False)

    for ratio, massless in ((0.5, False), (-0.999, False), (-1.0, True), (0.0, False)):
        mech = built(ratio)
        assert bool(lost_rank(mech)) == massless == bool(mech.parameters.singular_joints), ratio


def test_variants_are_judged_by_their_own_numbers():
    mech = carried(lw.Floating(), lw.Planar())
    assert (
        mech.parameters.singular_joints
        and not mech.with_payload("root", 1.0, inertia=(1, 1, 1)).parameters.singular_joints
    )
    assert not mech.parameters.with_armature(base=1.0).parameters.singular_joints
    assert mech.with_gravity((0, 0, 0)).parameters.singular_joints


# -- one refusal for everything that inverts the mass matrix ------------------------------------------------------

TIP = lw.Builder().link("a", 1.0, (0, 0, 0.3), (1, 1, 1)).link("tip").joint("j", lw.Revolute((0, 1, 0)), "ground", "a")
TIP.joint("k", lw.Revolute((1, 0, 0)), "a", "tip", (0, 0, 0.5))


def massless_tip() -> lw.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.InertiaWarning)
        return TIP.build("arm", strict=False)


CALLS = {
    "forward_dynamics": lambda m, q, v: lw.forward_dynamics(m, q, v, v),
    "forward_dynamics_derivatives": lambda m, q, v: lw.forward_dynamics_derivatives(m, q, v, v),
    "mass_matrix_inverse": lambda m, q, v: lw.mass_matrix_inverse(m, q),
    "operational_inertia": lambda m, q, v: lw.control.operational_inertia(m, q, m.link_names[-1]),
    "forward_link_accelerations": lambda m, q, v: lw.kinematics.forward_link_accelerations(m, q, v, v),
    "step_derivatives": lambda m, q, v: lw.derivatives.step_derivatives(m, q, v, v, 0.01),
    "linearize": lambda m, q, v: lw.linearize(m, q),
    "simulate": lambda m, q, v: lw.simulate(m, q, v, 0.01),
    "rollout": lambda m, q, v: lw.rollout(m, q, v, v, 0.01, 2),
    "rollout_derivatives": lambda m, q, v: lw.derivatives.rollout_derivatives(
        m, np.stack([q] * 3), np.stack([v] * 3), None, 0.01
    ),
    "step_kernel": lambda m, q, v: lw.motion.step_kernel(m),
    "acting": lambda m, q, v: lw.forward_dynamics(m, q, v, forces="all"),
    "diagonal": lambda m, q, v: lw.formulations.diagonal.velocities(m, q, v),
    "diagonal factor": lambda m, q, v: lw.formulations.diagonal.factor(m, q),
    "denoc": lambda m, q, v: lw.formulations.denoc.forward_dynamics(m, q, v, v),
    "denoc udu": lambda m, q, v: lw.formulations.denoc.udu(m, q),
    "control": lambda m, q, v: lw.control.operational_space_control(m, m.link_names[-1], (0.1, 0.2, 0.3)),
    "momenta": lambda m, q, v: lw.formulations.momenta.velocities(m, q, v),
    "closed": lambda m, q, v: lw.forward_dynamics(m, q, v, v),
    "closed by svd": lambda m, q, v: lw.forward_dynamics(m, q, v, v, method="svd"),
    "closed derivatives": lambda m, q, v: lw.forward_dynamics_derivatives(m, q, v, v),
    "closed impact": lambda m, q, v: lw.contact.impact(m, q, v),
    "compile": lambda m, q, v: lw.compile("forward_dynamics", m),
    "compile float32": lambda m, q, v: lw.compile("mass_matrix_inverse", m, dtype="float32", target="numpy"),
    "compile closed": lambda m, q, v: lw.compile("closed_rk4_step", m),
    "expression": lambda m, q, v: lw.compile(lw.operators.parse("(H@phi@M@phi.T@H.T + R).inv"), m),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", [massless_tip, lambda: carried(lw.Floating(), lw.Planar())], ids=["tip", "root"])
def test_all_that_invert_the_mass_matrix_refuse_alike(call, make):
    mech = make()
    q, v = lw.random_state(mech, np.random.default_rng(0))
    with pytest.raises(lw.MechanismError, match="needs a positive mass matrix, but nothing with inertia moves with"):
        CALLS[call](mech, q, v)


def weightless_four_bar(coupler: float) -> lw.Mechanism:
    """A four-bar whose links have no mass but the coupler, perhaps."""
    z, inertia = lw.Revolute((0, 0, 1)), (coupler,) * 3
    builder = lw.Builder().link("crank").link("coupler", coupler, (0.4, 0, 0), inertia).link("rocker")
    builder.joint("A", z, "ground", "crank").joint("B", z, "crank", "coupler", (0.3, 0, 0))
    builder.joint("D", z, "ground", "rocker", (1.0, 0, 0)).loop("C", z, "coupler", (0.9, 0, 0), "rocker", (0.7, 0, 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return builder.build("four_bar", strict=False)


@pytest.mark.parametrize(
    "call", ["linearize", "simulate", "rollout", "closed", "closed by svd", "closed derivatives", "compile closed"]
)
def test_loops_carry_links_without_mass_or_all_refuse(call):
    light, heavy = weightless_four_bar(0.0), weightless_four_bar(1.0)
    q = lw.constraints.assemble(heavy, {"A": 1.0, "D": 1.6}, hold="A")
    assert heavy.parameters.singular_joints == ("D",) and heavy._loops_resist
    CALLS[call](heavy, q, np.zeros(3))
    with pytest.raises(
        lw.MechanismError, match="positive mass matrix, but a degree of freedom of mechanism 'four_bar'"
    ):
        CALLS[call](light, q, np.zeros(3))
