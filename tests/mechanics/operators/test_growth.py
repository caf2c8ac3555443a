"""Operations against the number of links, from 4 to 64: in proportion for vectors, by the square for matrices.

Links next to the ground cost less than the others, for there is no motion to carry on, so that counts are straight
lines with a negative intercept.  A power law with a constant, a N^p + b, tells p; that all links cost the same is
checked on its own.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.pipeline import trace_algorithm
from linkwise.mechanics.algorithms import expressions as ex
from linkwise.mechanics.algorithms.catalogue import Algorithm, from_expression
from tests.algorithms import VARIANTS

y, f = op.joint_vector("y"), op.link_vector("f")
MASS_MATRIX = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T + op.R
EXPRESSIONS = {
    **{
        method: make(ex.b - ex.wrenches)
        for method, make in ex.FORWARD_DYNAMICS.items()
        if method != "composite_bodies"  # cubic
    },
    "M^-1 y": MASS_MATRIX.inv @ y,
    "M y": MASS_MATRIX @ y,
    "(I - H psi K) y": ex.WHITENING @ y,
    "(I + H phi K)^-1* y": (op.I + op.H @ op.phi @ op.K).T.inv @ y,
    "psi* H* D^-1 H psi f": op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ f,
    "phi M phi* f": op.phi @ op.M @ op.phi.T @ f,
    "y* M y": y.T @ MASS_MATRIX @ y,
    "P f": op.P @ f,
    "Psi G y": op.Psi @ op.G @ y,
    "I + H phi K": op.I + op.H @ op.phi @ op.K,
    "I - H psi K": ex.WHITENING,
}


def branching(n: int) -> lw.Mechanism:
    """Two links on every link, of general geometry."""
    bodies = lw.mechanisms.chain(n).bodies
    builder = lw.Builder()
    for i, body in enumerate(bodies):
        parent = "ground" if i == 0 else bodies[(i - 1) // 2].link
        builder.link(body.link, body.mass, body.com, body.inertia)
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
    return builder.build(f"branching_{n}")


FAMILIES = {
    "chain": (lw.mechanisms.chain, (4, 8, 16, 32, 64)),
    "planar_arm": (lw.mechanisms.planar_arm, (4, 8, 16, 32, 64)),
    "branching": (branching, (7, 15, 31, 63)),  # as deep everywhere
}
SIX_FREEDOMS = "operational_inertia"  # needs them at the last link: chains of eight and more have them
NAMED = """
inverse_dynamics inverse_dynamics_with_wrenches forward_dynamics forward_dynamics_with_wrenches
forward_link_accelerations acceleration_parts bias_force gravity_force link_poses frame_pose link_velocities
link_accelerations jacobian operational_inertia kinetic_energy potential_energy center_of_mass momentum
momentum_rate static_forces static_forces_with_wrenches frame_velocity frame_acceleration jacobian_rate_times_velocity
effective_inertia momentum_matrix centroidal_momentum centroidal_momentum_matrix centroidal_momentum_matrix_rate
center_of_mass_jacobian
center_of_mass_velocity center_of_mass_acceleration
coordinate_rates integrate difference mass_matrix mass_matrix_inverse coriolis_matrix
""".split()  # vectors and matrices of tree dynamics
CASES = [(family, name) for family in FAMILIES for name in NAMED if family == "chain" or name != SIX_FREEDOMS]
every_family = pytest.mark.parametrize("family", FAMILIES)


@cache
def mechanism(family: str, n: int) -> lw.Mechanism:
    return FAMILIES[family][0](n)


def measured(algorithm: Algorithm, mech: lw.Mechanism) -> tuple[int, int]:
    """Operations, and numbers in the result."""
    options = {"link": mech.link_names[-1]} if "link" in algorithm.options else {}
    program = trace_algorithm(algorithm, mech, options=options)[0]
    return sum(program.op_counts.get(kind, 0) for kind in ("add", "mul", "div")), program.outputs[0].size


def exponent(sizes, counts) -> float:
    """p of the power law a N^p + b with the least squares of relative errors; 0 where nothing grows."""
    sizes, counts = np.array(sizes, dtype=float), np.array(counts, dtype=float)
    if np.ptp(counts) == 0.0:
        return 0.0

    def misfit(p: float) -> float:
        basis = np.stack([sizes**p, np.ones_like(sizes)], axis=1) / counts[:, None]
        return float(np.linalg.norm(basis @ np.linalg.lstsq(basis, np.ones_like(sizes), rcond=None)[0] - 1.0))

    return float(min(np.arange(0.05, 4.0, 0.005), key=misfit))


def check(algorithm: Algorithm, family: str) -> None:
    sizes = [n for n in FAMILIES[family][1] if algorithm.name != SIX_FREEDOMS or n >= 8]
    counts, results = zip(*(measured(algorithm, mechanism(family, n)) for n in sizes), strict=True)
    is_matrix = results[-1] > 3 * results[-2]  # for twice the links
    found = exponent(sizes, counts)
    assert found <= (2.1 if is_matrix else 1.05), f"exponent {found} of {counts} operations for {sizes} links"
    if not is_matrix:
        per_link = np.diff(counts) / np.diff(sizes)
        assert per_link[-1] <= 1.02 * per_link[-2], f"operations of a further link {per_link}"


def test_the_fit_tells_exponents():
    sizes = np.array([4, 8, 16, 32, 64])
    assert exponent(sizes, 171 * sizes - 209) == pytest.approx(1.0, abs=0.01)
    assert exponent(sizes, 16 * sizes**2 + 40) == pytest.approx(2.0, abs=0.01)
    assert exponent(sizes, 100 * sizes + 3 * sizes**2) > 1.3
    assert exponent(sizes, sizes * np.log2(sizes) * 50) > 1.15


@pytest.mark.slow_cases("mass_matrix_inverse", "coriolis_matrix")
@pytest.mark.quick_one_in(3)
@pytest.mark.parametrize(("family", "name"), CASES)
def test_named_algorithms(family, name):
    check(VARIANTS[name], family)


@pytest.mark.quick_one_in(3)
@every_family
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(family, name):
    check(from_expression(EXPRESSIONS[name]), family)


def on_a_free_base(n: int) -> lw.Mechanism:
    """A chain on a floating body: its first links have motion to carry on like all others."""
    chain = lw.mechanisms.chain(n)
    builder = lw.Builder().link("base", 5.0, (0.1, 0.2, 0.05), np.diag([0.3, 0.4, 0.5]) + 0.01)
    builder.joint("free", lw.Floating(), "ground", "base")
    for body in chain.bodies:
        parent = "base" if body.parent < 0 else chain.bodies[body.parent].link
        builder.link(body.link, body.mass, body.com, body.inertia)
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
    return builder.build(f"free_chain_{n}")


@pytest.mark.parametrize(
    ("name", "limit"), [("inverse_dynamics", 1.05), ("forward_dynamics", 1.05), ("mass_matrix", 2.05)]
)
def test_the_plain_power_law_where_no_link_is_next_to_the_ground(name, limit):
    sizes = (4, 8, 16, 32, 64)
    counts = [measured(VARIANTS[name], on_a_free_base(n))[0] for n in sizes]
    assert np.polyfit(np.log(sizes), np.log(counts), 1)[0] <= limit
