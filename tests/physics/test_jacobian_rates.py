"""Derivatives of Jacobians: against differences in fifty digits, along motions, and against what velocities and
accelerations of links say."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS
from linkwise.mechanics.recursions.tree import build_tree
from tests.dynamics.diagonal.precise import DIGITS, STEP, Precise, array, derivatives
from tests.dynamics.diagonal.trees import every_tree
from tests.physics.trees import Model, close, tree_of

FRAMES = ("link", "world", "world_aligned")
JOINTS = lw.mechanisms.EVERY_KIND


def deepest(mech: lw.Mechanism) -> str:
    return mech.link_names[max(range(mech.n_links), key=lambda i: len(mech.tree.path(i)))]


def with_mimic_joints() -> lw.Mechanism:
    """A chain in which a helical and a prismatic joint follow a revolute one, before and behind a planar joint."""
    kinds = [lw.Revolute((1, 2, 0)), lw.Helical((0, 1, 1), 0.3), lw.Planar((1, 0, 1)), lw.Prismatic((1, 0, 0))]
    builder, parent = lw.Builder(), "ground"
    for i, kind in enumerate(kinds, 1):
        mimic = lw.Mimic("joint1", 0.4 * i, 0.1) if i in (2, 4) else None
        builder.link(f"link{i}", 1.0, (0.1, 0.2, 0.3), (0.1, 0.1, 0.15))
        builder.joint(f"joint{i}", kind, parent, f"link{i}", (None, (0.3, 0.1, -0.2)), mimic=mimic)
        parent = f"link{i}"
    builder.link("tool").joint("weld", lw.Fixed(), parent, "tool", pose=(None, (0.2, -0.1, 0.3)))
    return builder.build()


@every_tree
@pytest.mark.parametrize("frame", FRAMES)
def test_rates_are_derivatives_along_the_velocities(tree, frame):
    """dJ/dt = (dJ/dq) v, and J v, dJ/dt v + J a are what ``link_velocities`` and ``link_accelerations`` give."""
    model = tree()
    q, v, a, _ = model.states(3)
    link = deepest(model.mech)
    number = model.mech.link_names.index(link)
    of = {"link": link, "frame": frame}
    rate = model.jacobian_rate(q, v, **of)
    close(np.einsum("...ijk,...k->...ij", model.jacobian_derivatives(q, **of), v), rate, 1e-11, core=2)
    if frame == "link":
        expected = model.link_accelerations(q, v, a)[:, number]
        found = np.einsum("...ij,...j->...i", model.jacobian(q, link=link), a) + np.einsum("...ij,...j->...i", rate, v)
        close(found, expected, 1e-10)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_against_differences_in_fifty_digits(kind, frame):
    mech = lw.mechanisms.random_tree(3, 5, joints=(kind,))
    check_against_differences(mech, deepest(mech), frame)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("mech", [with_mimic_joints(), tree_of(5, 1, True).mech], ids=["followers", "tree"])
def test_trees_and_followers_against_differences_in_fifty_digits(mech, frame):
    check_against_differences(mech, "tool" if "tool" in mech.frames else deepest(mech), frame)


def check_against_differences(mech: lw.Mechanism, link: str, frame: str) -> None:
    """The derivatives, and the second rates along a motion with changing velocities."""
    model = Model(mech)
    q, v, a, _ = (x[0] for x in model.states(1, seed=3))
    of = {"link": link, "frame": frame}
    close(model.jacobian_derivatives(q, **of), derivatives(mech, "jacobian", q, **of), 1e-12, core=3)
    close(model.jacobian_second_rate(q, v, a, **of), second_difference(mech, q, v, a, of), 1e-12, core=2)


def second_difference(
    mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray, of: dict[str, str]
) -> np.ndarray:
    """d2J/dt2 where a step along v t + a t^2 / 2 has led: there the velocity is v + a t but for terms in t^2."""
    tree, step = build_tree(mech), mpmath.sqrt(STEP)

    def at(t: mpmath.mpf) -> np.ndarray:
        way = array([x * t + y * (t * t / 2) for x, y in zip(v.tolist(), a.tolist(), strict=True)])
        moved = ALGORITHMS["integrate"].function(tree, array(q), way, Precise(1))
        return np.array(ALGORITHMS["jacobian"].function(tree, array(moved), **of), dtype=object)

    with mpmath.workdps(DIGITS):
        bend = at(step) - 2.0 * at(mpmath.mpf(0)) + at(-step)
        return np.array([float(Precise(x) / Precise(STEP)) for x in bend.ravel()]).reshape(bend.shape)


@pytest.mark.parametrize("frame", FRAMES)
def test_batches_broadcast_and_machine_code_agrees(frame):
    mech = lw.mechanisms.random_tree(5, 2, floating_base=True)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (3, 1))
    a, link, model = rng.normal(size=(4, mech.nv)), deepest(mech), Model(mech)
    found = lw.derivatives.jacobian_second_rate(mech, q, v, a, link, frame)
    assert found.shape == (3, 4, 6, mech.nv)
    expected = model.jacobian_second_rate(q + 0 * q[:1], v, a, link=link, frame=frame)
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert lw.derivatives.jacobian_rate(mech, q, v, link, frame).shape == (3, 1, 6, mech.nv)
    assert lw.derivatives.jacobian_derivatives(mech, q, link, frame).shape == (3, 1, 6, mech.nv, mech.nv)
    narrow = lw.derivatives.jacobian_rate(mech, np.float32(q), np.float32(v), link, frame)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, lw.derivatives.jacobian_rate(mech, q, v, link, frame), atol=2e-3)


@pytest.mark.parametrize("frame", FRAMES)
def test_the_ground_and_mechanisms_without_freedoms(frame):
    mech = lw.mechanisms.planar_arm(2)
    assert not lw.jacobian(mech, [0.1, 0.2], "ground", frame).any()
    assert not lw.derivatives.jacobian_rate(mech, [0.1, 0.2], [1.0, 1.0], "ground", frame).any()
    assert not lw.derivatives.jacobian_derivatives(mech, [0.1, 0.2], "ground", frame).any()
    still = lw.Builder().link("block", 1.0).joint("weld", lw.Fixed(), "ground", "block").build()
    assert lw.jacobian(still, [], "block", frame).shape == (6, 0)
    assert lw.derivatives.jacobian_rate(still, [], [], "block", frame).shape == (6, 0)
    assert lw.derivatives.jacobian_second_rate(still, [], [], [], "block", frame).shape == (6, 0)
    assert lw.derivatives.jacobian_derivatives(still, [], "block", frame).shape == (6, 0, 0)


def test_unknown_names_are_told():
    mech = lw.mechanisms.planar_arm(2)
    with pytest.raises(ValueError, match="frame must be 'link', 'world' or 'world_aligned', got 'tool'"):
        lw.derivatives.jacobian_rate(mech, [0, 0], [0, 0], "link1", frame="tool")
    with pytest.raises(ValueError, match="frame must be 'link', 'world' or 'world_aligned', got 'tool'"):
        lw.jacobian(mech, [0, 0], "link1", frame="tool")
    for frame in FRAMES:
        with pytest.raises(lw.MechanismError, match="no link or frame 'lnk1'.*did you mean 'link1'"):
            lw.derivatives.jacobian_derivatives(mech, [0, 0], "lnk1", frame=frame)


def operations(mech: lw.Mechanism, algorithm: str, frame: str) -> int:
    counts = lw.compile(algorithm, mech, target="numpy", link=deepest(mech), frame=frame).op_counts
    return counts["add"] + counts["mul"]


@pytest.mark.parametrize("n", [6, 20])
def test_the_cost_grows_with_the_length_of_the_way_and_no_faster(n):
    """Per joint on the way, in the general geometry of ``chain``: the paper's recursions over columns cost n^2."""
    mech = lw.mechanisms.chain(n)
    for frame in FRAMES:
        assert operations(mech, "jacobian_rate", frame) < 110 * n
        assert operations(mech, "jacobian_second_rate", frame) < 200 * n
    for frame in FRAMES[1:]:
        assert operations(mech, "jacobian", frame) < 62 * n


def test_the_world_does_not_cost_more_than_the_link():
    mech = lw.mechanisms.chain(20)
    for frame in FRAMES[1:]:
        assert operations(mech, "jacobian", frame) < operations(mech, "jacobian", "link")
