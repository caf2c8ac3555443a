"""Inertial parameters: the regressor is inverse dynamics, numbers go in and out, torques tell as much as is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

import linkwise as lw
from tests.dynamics.diagonal.trees import every_tree
from tests.physics.trees import Model, close


def product(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", matrix, vector)


def random_parameters(n_links: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Masses, centres of mass and central inertias of random rigid bodies."""
    clouds = rng.normal(size=(n_links, 6, 3))  # six equal points each
    mass, com = rng.uniform(0.5, 3.0, n_links), clouds.mean(axis=1)
    offset = clouds - com[:, None]
    spread = np.einsum("npi,npi->n", offset, offset)[:, None, None] * np.eye(3) - np.einsum(
        "npi,npj->nij", offset, offset
    )
    return mass, com, spread * mass[:, None, None] / 6.0


# -- the regressor --------------------------------------------------------------------------------------


@every_tree
def test_regressor_is_inverse_dynamics(tree):
    """With the mechanism's own numbers, and with any others as inputs of the kernel of inverse dynamics."""
    model = tree()
    mech = model.mech
    q, v, a, _ = model.states(4)
    matrix = model.regressor(q, v, a)
    rotors = lw.estimation.rotor_inertias(mech) * a
    close(product(matrix, lw.estimation.inertial_parameters(mech)) + rotors, model.inverse_dynamics(q, v, a), 1e-11)
    mass, com, inertia = random_parameters(mech.n_links, np.random.default_rng(1))
    numbers = lw.compile("inverse_dynamics", mech, target="numpy", parameters=("mass", "com", "inertia"))
    other = other_numbers(mass, com, inertia)
    close(product(matrix, other) + rotors, numbers(q, v, a, mass, com, inertia), 1e-11)


def other_numbers(mass, com, inertia) -> np.ndarray:
    """The ten numbers of each link by the theorem of parallel axes, written out."""
    rows = []
    for m, (x, y, z), i in zip(mass, com, inertia, strict=True):
        rows.append([m, m * x, m * y, m * z])
        rows[-1] += [i[0, 0] + m * (y * y + z * z), i[0, 1] - m * x * y, i[1, 1] + m * (x * x + z * z)]
        rows[-1] += [i[0, 2] - m * x * z, i[1, 2] - m * y * z, i[2, 2] + m * (x * x + y * y)]
    return np.array(rows).reshape(-1)


def geared() -> lw.Mechanism:
    """Followers and rotors: a revolute joint leads a prismatic and a revolute one, all with armature."""
    kinds = [lw.Revolute((0, 1, 1)), lw.Prismatic((1, 0, 0)), lw.Spherical(), lw.Revolute((1, 1, 0))]
    builder, parent = lw.Builder(), "ground"
    for i, kind in enumerate(kinds, 1):
        mimic = lw.Mimic("joint1", -0.5 * i, 0.2) if i in (2, 4) else None
        builder.link(f"link{i}", 1.0 + i, (0.1, 0.2 * i, 0.3), (0.1, 0.2, 0.25))
        builder.joint(f"joint{i}", kind, parent, f"link{i}", (None, (0.3, 0.1, 0.2)), armature=0.1 * i, mimic=mimic)
        parent = f"link{i}"
    return builder.build("geared")


def test_followers_and_rotors():
    mech = geared()
    np.testing.assert_allclose(lw.estimation.rotor_inertias(mech), [0.1 + 0.2 * 1.0 + 0.4 * 4.0, 0.3, 0.3, 0.3])
    q, v, a, _ = Model(mech).states(6)
    matrix = lw.estimation.regressor(mech, q, v, a)
    assert matrix.shape == (6, mech.nv, 40)
    found = product(matrix, lw.estimation.inertial_parameters(mech)) + lw.estimation.rotor_inertias(mech) * a
    close(found, lw.inverse_dynamics(mech, q, v, a), 1e-12)


def test_batches_broadcast():
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(5, 1, 6)), rng.normal(size=6), rng.normal(size=(3, 6))
    matrix = lw.estimation.regressor(mech, q, v, a)
    assert matrix.shape == (5, 3, 6, 60)
    np.testing.assert_array_equal(matrix[4, 1], lw.estimation.regressor(mech, q[4, 0], v, a[1]))


def test_inner_joints_alone_feel_a_link():
    """A joint that does not carry a link has zeros in that link's columns, at no cost."""
    mech = lw.mechanisms.random_tree(8, 3, joints=("revolute", "prismatic"))
    q, v, a, _ = Model(mech).states(1)
    matrix = lw.estimation.regressor(mech, q[0], v[0], a[0]).reshape(mech.nv, mech.n_links, 10)
    for joint in range(mech.nv):
        for link in range(mech.n_links):
            assert matrix[joint, link].any() == (joint in mech.tree.path(link))


def test_constraints_do_not_change_the_terms():
    """Of the spanning tree, (nv, 10 n_links); test_constrained_identification.py has what constraints do to them."""
    mech = lw.mechanisms.four_bar()
    q, v, a = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_array_equal(
        lw.estimation.regressor(mech, q, v, a), lw.estimation.regressor(mech.spanning_tree, q, v, a)
    )
    assert len(lw.estimation.base_parameters(mech)) < len(lw.estimation.base_parameters(mech.spanning_tree))


# -- numbers in and out ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_numbers_go_in_and_out(seed):
    mech = lw.mechanisms.random_tree(7, seed, floating_base=True)
    parameters = lw.estimation.inertial_parameters(mech)
    same = mech.parameters.with_inertial(parameters)
    for found, expected in (
        (same.parameters.masses, mech.parameters.masses),
        (same.parameters.coms, mech.parameters.coms),
        (same.parameters.inertias, mech.parameters.inertias),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-13)
    mass, com, inertia = random_parameters(mech.n_links, np.random.default_rng(seed))
    other = mech.parameters.with_inertial(other_numbers(mass, com, inertia))
    np.testing.assert_allclose(other.parameters.masses, mass)
    np.testing.assert_allclose(other.parameters.coms, com, atol=1e-14)
    np.testing.assert_allclose(other.parameters.inertias, inertia, atol=1e-13)
    assert other.joint_names == mech.joint_names and tuple(other.frames) == tuple(mech.frames)


@pytest.mark.parametrize("name", ["stanford_arm", "double_pendulum", "cart_pole", "planar_arm"])
def test_numbers_of_built_in_mechanisms_pass_the_builders_checks(name):
    """Point masses and slender rods too: what round-off leaves of a vanishing inertia is no defect."""
    mech = getattr(lw.mechanisms, name)(*([3] if name == "planar_arm" else []))
    same = mech.parameters.with_inertial(lw.estimation.inertial_parameters(mech))
    np.testing.assert_allclose(same.parameters.inertias, mech.parameters.inertias, atol=1e-15)


def test_impossible_numbers_are_refused_or_reported():
    mech = lw.mechanisms.planar_arm(2)
    parameters = lw.estimation.inertial_parameters(mech)
    parameters[9] = 0.1  # Izz of a rod with m l^2 / 4 about its end alone
    with pytest.raises(lw.MechanismError, match="link 'link1': its inertia has a negative principal moment.*strict"):
        mech.parameters.with_inertial(parameters)
    with pytest.warns(lw.files.InertiaWarning, match="link 'link1': its inertia has a negative principal moment"):
        kept = mech.parameters.with_inertial(parameters, strict=False)
    np.testing.assert_allclose(lw.estimation.inertial_parameters(kept), parameters, atol=1e-15)
    parameters[0] = 0.0
    with pytest.raises(lw.MechanismError, match="link 'link1': a first moment .* without mass has no centre"):
        mech.parameters.with_inertial(parameters, strict=False)
    with pytest.raises(lw.MechanismError, match=r"must have shape \(20,\), not \(10,\)"):
        mech.parameters.with_inertial(parameters[:10])
    with pytest.raises(lw.MechanismError, match="must be finite"):
        mech.parameters.with_inertial(np.full(20, np.nan))


def test_a_link_without_mass_keeps_its_place():
    mech = (
        lw.Builder()
        .link("hub", com=(1, 2, 3))
        .link("arm", 1.0, (0, 0, 1), (1, 1, 1))
        .joint("a", lw.Revolute((0, 0, 1)), "ground", "hub")
        .joint("b", lw.Revolute((0, 1, 0)), "hub", "arm")
        .build()
    )
    same = mech.parameters.with_inertial(lw.estimation.inertial_parameters(mech))
    assert same == mech


# -- base parameters ------------------------------------------------------------------------------------


def check_base_parameters(mech: lw.Mechanism) -> lw.estimation.BaseParameters:
    """They explain every torque, at states other than those they were found at, and no fewer would do."""
    base = lw.estimation.base_parameters(mech)
    q, v, a, _ = Model(mech).states(200 if mech.nv < 12 else 60, seed=99)
    matrix = lw.estimation.regressor(mech, q, v, a)
    close(matrix[..., base.columns] @ base.grouping, matrix, 1e-10, core=2)
    stacked = matrix[..., base.columns].reshape(-1, len(base))
    singular = np.linalg.svd(stacked / np.linalg.norm(stacked, axis=0), compute_uv=False)
    assert singular[-1] > 1e-5 * singular[0]
    return base


def turned(mech: lw.Mechanism) -> lw.Mechanism:
    """In a field of gravity along no axis."""
    return mech.with_gravity((3.0, -4.0, 5.0))


@pytest.mark.parametrize(
    ("mech", "count"),
    [
        (lw.mechanisms.puma560(), 36),  # Mayeda, Yoshida and Osuka (1990)
        (turned(lw.mechanisms.puma560()), 38),
        (lw.mechanisms.stanford_arm(), 7 * 5 + 4 - 4 - 2),
        *((lw.mechanisms.planar_arm(n), 3 * n) for n in (1, 2, 4)),
        (lw.mechanisms.planar_arm(3).with_gravity((0, 0, -9.81)), 3 * 3 - 2),
        (lw.mechanisms.chain(5), 7 * 5 - 4),
        (lw.mechanisms.chain(12), 7 * 12 - 4),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_as_many_as_the_literature_has(mech, count):
    """7 n - 4 b - 2 d for revolute joints: b axes at the base are parallel, d = 1 if gravity is along them too."""
    assert len(check_base_parameters(mech)) == count


TORQUES_SEE = {  # of the ten parameters of a link on a free base; the rest belongs to the link before
    "revolute": 7,
    "prismatic": 4,
    "helical": 9,
    "cylindrical": 9,
    "universal": 9,
    "spherical": 9,
    "planar": 9,
    "pin_in_slot": 9,
    "floating": 10,
}


@pytest.mark.parametrize("kind", TORQUES_SEE)
def test_joints_hide_parameters_behind_a_free_base(kind):
    mech = lw.mechanisms.random_tree(4, 1, joints=(kind,), floating_base=True)
    links = mech.n_links - 1
    assert len(check_base_parameters(mech)) == 10 + TORQUES_SEE[kind] * links


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_hide_what_their_joints_do(seed):
    mech = lw.mechanisms.random_tree(8, seed, floating_base=True)
    seen = {name.replace("_", ""): count for name, count in TORQUES_SEE.items()}
    kinds = [type(body.kind).__name__.lower() for body in mech.bodies[1:]]
    assert len(check_base_parameters(mech)) == 10 + sum(seen[kind] for kind in kinds)


def test_groups_of_a_planar_arm():
    """Closed form: the outer link's mass acts as if it were at the elbow."""
    base = lw.estimation.base_parameters(lw.mechanisms.planar_arm(2))
    assert str(base).splitlines() == [
        "link1.mx +1 link2.m",
        "link1.my",
        "link1.Izz +1 link2.m",
        "link2.mx",
        "link2.my",
        "link2.Izz",
    ]
    assert base.names == ("link1.mx", "link1.my", "link1.Izz", "link2.mx", "link2.my", "link2.Izz")
    again = lw.estimation.base_parameters(lw.mechanisms.planar_arm(2), seed=7)
    np.testing.assert_allclose(again.grouping, base.grouping, atol=1e-12)


def test_followers_are_felt_through_their_leaders():
    check_base_parameters(geared())


def test_nothing_moves():
    still = lw.Builder().link("block", 1.0).joint("weld", lw.Fixed(), "ground", "block").build()
    assert lw.estimation.regressor(still, [], [], []).shape == (0, 0)
    assert lw.estimation.inertial_parameters(still).shape == (0,)
    assert len(lw.estimation.base_parameters(still)) == 0
    assert still.parameters.with_inertial([]) == still


def test_masses_are_identified_from_torques():
    """The loop a user writes: least squares for the base parameters, then any numbers with these values."""
    mech = lw.mechanisms.puma560()
    base = lw.estimation.base_parameters(mech)
    q, v, a, _ = Model(mech).states(100)
    tau = lw.inverse_dynamics(mech, q, v, a) - lw.estimation.rotor_inertias(mech) * a
    stacked = lw.estimation.regressor(mech, q, v, a)[..., base.columns].reshape(-1, len(base))
    found = np.linalg.lstsq(stacked, tau.reshape(-1), rcond=None)[0]
    np.testing.assert_allclose(found, base.grouping @ lw.estimation.inertial_parameters(mech), atol=1e-10)
    rng = np.random.default_rng(3)
    guess = lw.estimation.inertial_parameters(mech) * rng.uniform(0.5, 2.0, 60)
    likely = guess + np.linalg.pinv(base.grouping) @ (found - base.grouping @ guess)
    with pytest.warns(lw.files.InertiaWarning):
        identified = mech.parameters.with_inertial(likely, strict=False)
    q, v, a, _ = Model(mech).states(10, seed=5)
    close(lw.inverse_dynamics(identified, q, v, a), lw.inverse_dynamics(mech, q, v, a), 1e-9)
    assert np.abs(identified.parameters.masses - mech.parameters.masses).max() > 0.1


# -- parameters that rigid bodies have ------------------------------------------------------------------------


def identified(mech: lw.Mechanism, seed: int, deviation: float = 0.05) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Regressor and torques divided by their noise, (k, 10 n) and (k,), and parameters of least squares."""
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (60,))
    a = rng.normal(size=v.shape)
    tau = lw.inverse_dynamics(mech, q, v, a) - lw.estimation.rotor_inertias(mech) * a
    noise = deviation * np.sqrt(np.mean(tau**2, axis=0)) + 1e-9
    matrix = (lw.estimation.regressor(mech, q, v, a) / noise[:, None]).reshape(tau.size, -1)
    measured = (tau / noise + rng.normal(size=tau.shape)).reshape(-1)
    guess = lw.estimation.inertial_parameters(mech) * rng.uniform(0.7, 1.3, matrix.shape[1])
    return matrix, measured, guess + np.linalg.lstsq(matrix, measured - matrix @ guess, rcond=1e-10)[0]


def physical(factors: np.ndarray) -> np.ndarray:
    """Parameters of links whose pseudo-inertias are U U*: those of masses at four points."""
    found = []
    for moments in factors @ factors.swapaxes(-1, -2):
        inertia = np.trace(moments[:3, :3]) * np.eye(3) - moments[:3, :3]
        found += [moments[3, 3], *moments[:3, 3], *(inertia[i, j] for j in range(3) for i in range(j + 1))]
    return np.array(found)


def test_the_fit_of_least_squares_among_physical_parameters():
    """Against a search over factors U of pseudo-inertias U U*, with nothing in common, of a body that moves freely:
    all its parameters are seen."""
    mech = lw.mechanisms.random_tree(1, 0, floating_base=True)
    matrix, measured, likely = identified(mech, 0, deviation=2.0)
    with pytest.raises(lw.MechanismError, match="strict=False"):
        mech.parameters.with_inertial(likely)
    found = lw.estimation.physical_parameters(mech, likely, matrix, nearness=1e-9)
    np.testing.assert_allclose(
        lw.estimation.inertial_parameters(mech.parameters.with_inertial(found)), found, atol=1e-12
    )

    def residuals(entries: np.ndarray) -> np.ndarray:
        return matrix @ physical(entries.reshape(-1, 4, 4)) - measured

    rng = np.random.default_rng(1)
    ends = [least_squares(residuals, rng.normal(size=16 * mech.n_links)).cost for _ in range(3)]
    best, free = min(ends), 0.5 * np.sum((matrix @ likely - measured) ** 2)
    assert best > free + 1e-3  # the bound matters
    assert 0.5 * np.sum((matrix @ found - measured) ** 2) == pytest.approx(best, abs=1e-3 * (best - free) + 1e-6)


def test_physical_parameters_of_arms():
    """They are taken, are no worse at the torques than the true ones, and those that are physical stay."""
    for mech in (lw.mechanisms.stanford_arm(), lw.mechanisms.planar_arm(3)):
        matrix, measured, likely = identified(mech, 2)
        found, truth = lw.estimation.physical_parameters(mech, likely, matrix), lw.estimation.inertial_parameters(mech)
        mech.parameters.with_inertial(found)
        assert np.sum((matrix @ found - measured) ** 2) <= np.sum((matrix @ truth - measured) ** 2)
        mech.parameters.with_inertial(lw.estimation.physical_parameters(mech, likely))
        drawn = physical(np.random.default_rng(3).normal(size=(mech.n_links, 4, 4)))
        np.testing.assert_allclose(lw.estimation.physical_parameters(mech, drawn, matrix), drawn, atol=1e-9)
    chain = lw.mechanisms.chain(2)  # whose first mass is not seen: it stays near
    matrix, _, likely = identified(chain, 0, deviation=0.5)
    assert np.abs(lw.estimation.physical_parameters(chain, likely, matrix) - likely).max() < 10.0
    with pytest.raises(lw.MechanismError, match="must be 30 finite numbers, ten for each link"):
        lw.estimation.physical_parameters(mech, truth[:-1])
