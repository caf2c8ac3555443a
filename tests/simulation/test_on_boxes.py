"""Capsules and boxes on fixed boxes that are narrower than they are, beside MuJoCo; drops that gain no energy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

from .on_the_ground import energy

BLOCK = '<geom name="block" type="box" size=".1 .1 .1" pos="0 0 .1"/>'
FREE = '<body pos="{}"><freejoint/><geom name="g" {} mass="3"/></body>'
AT_REST = {
    "a plate on a block": BLOCK + FREE.format("0.02 0 .31", 'type="box" size=".3 .3 .1"'),
    "a plate that comes down obliquely": BLOCK + FREE.format("0 0 .34", 'type="box" size=".3 .3 .1" euler="5 3 20"'),
    "a capsule on a block": BLOCK + FREE.format("0.03 0 .31", 'type="capsule" size=".1 .4" euler="0 90 0"'),
    "one across its corner": BLOCK + FREE.format("0 0.01 .31", 'type="capsule" size=".05 .4" euler="0 90 30"'),
    "one on two posts": '<geom type="box" size=".02 .1 .1" pos="-.3 0 .1"/>'
    '<geom type="box" size=".02 .1 .1" pos=".2 0 .1"/>'
    + FREE.format("0 0 .3", 'type="capsule" size=".05 .4" euler="0 90 0"'),
    "a shin across the edge of a step": '<geom type="plane" size="5 5 1"/>'
    '<geom type="box" size=".2 1 .1" pos=".2 0 .1"/>'
    + FREE.format("0.08 0 .33", 'type="capsule" size=".03 .3" euler="0 50 0"'),
}


def of_text(world: str) -> tuple[lw.Mechanism, str]:
    text = f'<mujoco><option timestep="0.002"/><worldbody>{world}</worldbody></mujoco>'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        return lw.load(text), text


@pytest.mark.parametrize("case", AT_REST)
def test_they_come_to_rest_where_they_do_in_mujoco(case):
    mujoco = pytest.importorskip("mujoco")
    mech, text = of_text(AT_REST[case])
    q, v = lw.rollout(mech, None, None, None, None, 1500, "semi_implicit", final_only=True)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=1500)
    there = lw.interop.to_mujoco(mech, model)
    np.testing.assert_allclose(there.q(q)[2], data.qpos[2], atol=1e-3)
    np.testing.assert_allclose(there.q(q), data.qpos, atol=2e-2)
    assert np.abs(v).max() < 2e-3
    np.testing.assert_allclose(lw.contact.contact_points(mech, q, v).force.sum(axis=0), [0, 0, 3 * 9.81], atol=0.05)


DROPPED = {
    "capsule": ((0.05, 0.25), (0.1, 0.1, 0.1)),
    "box": ((0.25, 0.2, 0.05), (0.06, 0.08, 0.1)),
}


@pytest.mark.parametrize("kind", DROPPED)
def test_drops_on_narrow_boxes_gain_no_energy(kind):
    size, block = DROPPED[kind]
    body = lw.Builder().link("body", 2.0, inertia=(0.02, 0.03, 0.025)).joint("free", lw.Floating(), "ground", "body")
    mech = body.build().with_shape("skin", "body", kind, size).with_shape("block", "ground", "box", block)
    mech = mech.with_contact(("skin", "block"), friction=0.5)
    count, rng = 60, np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (count,))
    q[:, 4:] = np.column_stack([rng.uniform(-0.15, 0.15, (count, 2)), rng.uniform(0.45, 0.8, count)])
    v = rng.normal(size=(count, 6)) * [3, 3, 3, 1, 1, 1]
    assert (lw.contact.contact_points(mech, q, v).gap > 0.0).all()
    for method in ("rk4", "semi_implicit"):
        path = lw.rollout(mech, q, v, None, 1e-3, 600, method)
        energies = energy(mech, *path, explicit=1e-3 if method == "rk4" else False)
        first = lw.kinetic_energy(mech, q, v)[:, None] + 2.0 * 9.81 * q[:, 6:]
        later = np.maximum.accumulate(energies[:, ::-1], axis=1)[:, ::-1]
        assert ((later - energies) / first).max() < 2e-4
        hit = energies[:, -1] < energies[:, 0] - 1e-3
        assert hit.sum() > count / 3


def test_what_is_held_by_corners_alone_is_told():
    """Crossed beams have no corner in each other; capsules along the edges of one hold it, as the note says."""
    world = '<geom name="low" type="box" size=".05 .5 .05" pos="0 0 .05"/>' + FREE.format(
        "0 0 .151", 'type="box" size=".5 .05 .05"'
    )
    mech, _ = of_text(world)
    (note,) = mech.notes
    assert note.where == ("g/low",) and note.what == "pair of boxes with edges that do not touch"
    assert "capsules along edges of the moving box" in note.advice and not mech.contact.without().notes
    assert lw.rollout(mech, None, None, None, 2e-3, 200, "semi_implicit", final_only=True)[0][6] < 0.0
    for k, side in enumerate((-1, 1)):
        along = lw.pose((0, side * 0.04, -0.04), rpy=(0, np.pi / 2, 0))
        mech = mech.with_shape(f"edge{k}", mech.link_names[0], "capsule", (0.01, 0.49), along)
        mech = mech.with_contact((f"edge{k}", "low"))
    q, v = lw.rollout(mech, None, None, None, 2e-3, 500, "semi_implicit", final_only=True)
    np.testing.assert_allclose(q, [1, 0, 0, 0, 0, 0, 0.15], atol=2e-3)
    assert np.abs(v).max() < 1e-3


def test_feet_on_steps_cost_no_more_parts():
    """Corners of a fixed box count where one of its faces fits into one of the moving box."""
    foot = lw.Builder().link("foot", 1.0, inertia=(0.01,) * 3).joint("free", lw.Floating(), "ground", "foot").build()
    foot = foot.with_shape("sole", "foot", "box", (0.1, 0.05, 0.02)).with_shape("rod", "foot", "capsule", (0.02, 0.1))
    sizes = {"step": (0.15, 1.0, 0.08), "beam": (0.04, 0.08, 1.0), "slab": (0.5, 0.5, 0.01), "post": (0.04, 0.11, 1.0)}
    for name, size in sizes.items():
        foot = foot.with_shape(name, "ground", "box", size)
    parts = {}
    for name in sizes:
        on_it = foot.with_contact(("sole", name), ("rod", name))
        parts[name] = len(on_it.contact.parts)
        assert len(lw.contact.contact_points(on_it, lw.neutral(foot), np.zeros(6)).gap) == parts[name]
    assert parts == {"step": 8 + 2, "beam": 16 + 2, "slab": 8 + 2, "post": 8 + 2}
