"""Many loops that share no joint: each is treated as if it were alone, whatever the others do."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints import decomposition, loop_closure

TURN = lw.Revolute((0, 0, 1))
GUESS = np.array([1.0, -0.3, 1.6])  # near a closed configuration of every four-bar


def four_bars(lengths: np.ndarray, base: bool = False) -> lw.Mechanism:
    """Four-bars with cranks and rockers of these lengths (n, 2), side by side, on the ground or on one free body."""
    builder, carrier = lw.Builder(), "ground"
    if base:
        builder.link("base", 5.0, (0, 0, 0), (1, 1, 1)).joint("base_joint", lw.Floating(), "ground", "base")
        carrier = "base"
    for k, (crank, rocker) in enumerate(lengths):
        for name, parent, at, length in (
            ("crank", carrier, (0.0, 2.0 * k, 0.0), crank),
            ("coupler", f"crank{k}", (crank, 0.0, 0.0), 0.9),
            ("rocker", carrier, (0.8, 2.0 * k, 0.0), rocker),
        ):
            builder.link(f"{name}{k}", 1.0, (length / 2, 0, 0), (0.01, 0.1, 0.1))
            builder.joint(f"{name}{k}_joint", TURN, parent, f"{name}{k}", at)
        builder.loop(f"pin{k}", TURN, f"coupler{k}", (0.9, 0.0, 0.0), f"rocker{k}", (rocker, 0.0, 0.0))
    return builder.build("four_bars", (0.0, -9.81, 0.0))


def lengths_of(count: int) -> np.ndarray:
    return np.random.default_rng(0).uniform((0.3, 0.7), (0.4, 0.8), (count, 2))


def positions(mech: lw.Mechanism, k: int) -> list[int]:
    return [mech.q_index(f"{name}{k}_joint").start for name in ("crank", "coupler", "rocker")]


def by_number(mech: lw.Mechanism, count: int, values: np.ndarray) -> np.ndarray:
    """(nq,): the neutral configuration with these angles (count, 3) of crank, coupler and rocker."""
    q = lw.neutral(mech)
    for k in range(count):
        q[positions(mech, k)] = values[k]
    return q


def tilted(count: int) -> lw.Mechanism:
    """Equal four-bars one above the other, about an axis along which no constraint is zero: what is redundant has to be
    found out."""
    builder, turn = lw.Builder(), lw.Revolute((1, 2, 3))
    for k in range(count):
        for name in ("crank", "coupler", "rocker"):
            builder.link(f"{name}{k}", 1.0, (0.5, 0.05, 0), (0.1, 0.1, 0.1))
        builder.joint(f"a{k}", turn, "ground", f"crank{k}", (0, 0, k)).joint(
            f"b{k}", turn, f"crank{k}", f"coupler{k}", (1, -0.5, 0)
        )
        builder.joint(f"c{k}", turn, "ground", f"rocker{k}", (3, 0, k - 1))
        builder.loop(f"d{k}", turn, f"coupler{k}", (2.2, -1.1, 0.0), f"rocker{k}", (1.2, -0.6, 0.0))
    return builder.build("tilted")


def test_what_is_redundant_is_found_out_for_all_at_once(monkeypatch):
    """As many evaluations of all constraints for twelve four-bars as for two: they were made for each in turn."""
    evaluations, found, at = [], [], loop_closure.LoopEquations.at

    def counted(equations, q):
        evaluations[-1] += 1
        return at(equations, q)

    monkeypatch.setattr(loop_closure.LoopEquations, "at", counted)
    for count in (2, 12):
        evaluations.append(0)
        found.append(lw.constraints.redundancy(tilted(count)))
    assert all((one.rank, one.constraints) == (2, 5) for of_all in found for one in of_all.clusters)
    assert evaluations[1] <= 1.2 * evaluations[0]


@pytest.mark.parametrize("batch", [(), (3,), (2, 2), (0,)])
def test_separate_blocks_are_decomposed_like_the_whole(batch):
    rng = np.random.default_rng(0)
    m, n = 150, 90
    matrix, rows, columns, i, j = np.zeros((*batch, m, n)), rng.permutation(m), rng.permutation(n), 0, 0
    while i < m - 8 and j < n - 8:  # rows and columns of zeros are left
        height, width = rng.integers(1, 7, 2)
        own = rows[i : i + height, None], columns[j : j + width]
        matrix[(..., *own)] = rng.normal(size=(*batch, height, width))
        i, j = i + height, j + width
    assert matrix[..., 0].size == 0 or len(decomposition._blocks(matrix)) > 20
    parts, s = decomposition.decompose(matrix), np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(parts.s, s, atol=1e-13)
    np.testing.assert_array_equal(parts.rank, (s > 1e-8 * s[..., :1]).sum(axis=-1))
    for factor in (parts.u, parts.v):
        unit = np.broadcast_to(np.eye(factor.shape[-1]), factor.shape)
        np.testing.assert_allclose(np.swapaxes(factor, -1, -2) @ factor, unit, atol=1e-13)
    product = (parts.u[..., :n] * parts.s[..., None, :]) @ np.swapaxes(parts.v, -1, -2)
    np.testing.assert_allclose(product, matrix, atol=1e-13)
    null = parts.v * (np.arange(n) >= parts.rank[..., None])[..., None, :]
    np.testing.assert_allclose(matrix @ null, 0.0, atol=1e-12)


def test_each_four_bar_is_assembled_as_alone_by_small_matrices(monkeypatch):
    count, largest = 40, [0]
    lengths, shifts = lengths_of(count), 0.1 * np.random.default_rng(1).normal(size=(count, 3))
    mech, svd = four_bars(lengths), np.linalg.svd

    def watched(matrix, *args, **kwargs):
        largest[0] = max(largest[0], *matrix.shape[-2:])
        return svd(matrix, *args, **kwargs)

    monkeypatch.setattr(np.linalg, "svd", watched)
    q = lw.constraints.assemble(mech, by_number(mech, count, GUESS + shifts))
    assert lw.constraints.degrees_of_freedom(mech, q) == count
    assert largest[0] <= 5
    for k in (0, 7, count - 1):  # but for sizes of loops, which are measured in random configurations
        alone = four_bars(lengths[[k]])
        expected = lw.constraints.assemble(alone, by_number(alone, 1, (GUESS + shifts[k])[None]))
        np.testing.assert_allclose(q[positions(mech, k)], expected[positions(alone, 0)], atol=1e-3)


def test_guesses_anywhere_close_every_four_bar():
    """Some need further guesses: those of one loop do not open the others again."""
    count = 30
    mech = four_bars(lengths_of(count))
    q = lw.constraints.assemble(mech, np.random.default_rng(2).uniform(-np.pi, np.pi, mech.nq))
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-12


def test_one_loop_that_cannot_be_closed_is_named():
    lengths = lengths_of(20)
    lengths[13] = 0.05, 3.0
    mech = four_bars(lengths)
    with pytest.raises(lw.constraints.AssemblyError, match="loop 'pin13'") as failed:
        lw.constraints.assemble(mech, by_number(mech, 20, np.tile(GUESS, (20, 1))), tries=3)
    error = np.abs(lw.constraints.position_error(mech, failed.value.q)).reshape(20, -1).max(axis=-1)
    assert failed.value.loop == "pin13" and np.flatnonzero(error > 1e-10).tolist() == [13]


def test_motions_and_velocities_of_all_are_those_of_each():
    count = 30
    mech = four_bars(lengths_of(count))
    rng = np.random.default_rng(3)
    q = lw.constraints.assemble(mech, by_number(mech, count, np.tile(GUESS, (count, 1))))
    v = rng.normal(size=mech.nv)
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    null = lw.constraints.null_space(mech, q)
    assert null.shape == (mech.nv, count) and lw.constraints.generic_rank(mech, q) == mech.nv - count
    np.testing.assert_allclose(jacobian @ null, 0.0, atol=1e-13)
    np.testing.assert_allclose(null.T @ null, np.eye(count), atol=1e-13)
    dense = v - np.linalg.pinv(jacobian, 1e-8) @ jacobian @ v
    for shift in (1e-5, 0.02):  # by elimination, and by a search
        near, _ = lw.constraints.project(mech, q + shift * rng.normal(size=mech.nq), v)
        assert np.abs(lw.constraints.position_error(mech, near)).max() < 1e-13
    np.testing.assert_allclose(lw.constraints.project(mech, q, v)[1], dense, atol=1e-12)


def test_coordinates_of_links_tie_the_loops_that_move_them():
    """A four-bar on a free body, whose place and angle follow where the coupler is held."""
    mech = four_bars(lengths_of(3), base=True)
    start = lw.constraints.assemble(mech, by_number(mech, 3, np.tile(GUESS, (3, 1))))
    base = mech.q_index("base_joint")
    np.testing.assert_array_equal(start[base], lw.neutral(mech)[base])  # no loop depends on it
    place = lw.frame_pose(mech, start, "coupler1")[:3, 3] + (0.3, -0.2, 0.1)
    wanted = dict(zip(("coupler1.x", "coupler1.y", "coupler1.z"), place, strict=True))
    q = lw.constraints.assemble(mech, wanted)
    np.testing.assert_allclose(lw.frame_pose(mech, q, "coupler1")[:3, 3], place, atol=1e-11)
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-12
    held = lw.constraints.assemble(mech, start, hold=("coupler0.x", "coupler2.y", "crank1_joint"))
    for name, axis in (("coupler0", 0), ("coupler2", 1)):
        before, behind = (lw.frame_pose(mech, x, name)[axis, 3] for x in (start, held))
        assert behind == pytest.approx(before, abs=1e-12)


def test_ranks_of_loops_that_start_flat_are_decided_one_by_one():
    """Parallel cranks in line at the start: each has more motions there than elsewhere, and rounded lengths."""
    builder, count = lw.Builder(), 12
    for k in range(count):
        for j in range(3):
            builder.link(f"post{k}{j}", 1.0, (0.25, 0, 0), (0.01, 0.1, 0.1))
            builder.joint(f"post{k}{j}", TURN, "ground", f"post{k}{j}", (0.7 * j, 3.0 * k, 0.0))
        builder.link(f"bar{k}", 1.0, (0.7, 0, 0), (0.01, 0.1, 0.1))
        builder.joint(f"bar{k}", TURN, f"post{k}0", f"bar{k}", (0.5, 0.0, 0.0))
        for j in (1, 2):
            off = 1e-6 * (j == 2 and k % 2)
            builder.loop(f"pin{k}{j}", TURN, f"bar{k}", (0.7 * j + off, 0, 0), f"post{k}{j}", (0.5, 0, 0))
    mech = builder.build("cranks")
    with pytest.warns(lw.MechanismWarning, match="its numbers are rounded"):
        found = lw.constraints.redundancy(mech)
    ranks = [one.rank for one in found.clusters if one.loops]
    assert found.assembled and ranks == [3] * count
    assert [one.is_rounded for one in found.clusters if one.loops] == [bool(k % 2) for k in range(count)]
