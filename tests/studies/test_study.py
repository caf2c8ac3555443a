"""A study gives the same bits however it is split, stopped and resumed, and refuses to mix with another."""

from __future__ import annotations

import warnings
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st
from linkwise.studies.runners import Here

ARM = lw.mechanisms.planar_arm(2)
VARY = {
    "payload.link2.mass": st.distributions.Uniform(0.0, 2.0),
    "payload.link2.com": st.distributions.Normal([0.5, 0.0, 0.0], 0.05),
    "gravity": st.distributions.Offset(st.distributions.Normal(0.0, 0.3)),
    "q0": st.distributions.Offset(st.distributions.Normal(0.0, 0.2)),
    "kd": st.distributions.LogNormal(0.3, 0.2),
    "tau.joint1": st.distributions.Choice([0.0, 1.0]),
}
ROLLOUT = st.Rollout(0.01, 10, every=5, frames=("link2",))


def study(**changes):
    return st.Study(**{"mechanism": ARM, "compute": ROLLOUT, "vary": VARY, "cases": 53, "chunk": 10, **changes})


def same(one, other):
    return set(one) == set(other) and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Interrupted(Executor):
    """Ctrl-C when so many chunks are done."""

    def __init__(self, chunks):
        self.left = chunks

    def submit(self, function, /, *arguments, **options):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return Here().submit(function, *arguments, **options)


def test_rollouts_are_those_of_single_calls():
    results = study().run()
    assert results.complete and results.shape("positions") == (3, 2)
    cases = study().sample()
    for k in (0, 17, 52):
        mech = ARM.with_payload("link2", cases["payload.link2.mass"][k], cases["payload.link2.com"][k])
        feedback = {"kd": cases["kd"][k]}
        tau = [cases["tau.joint1"][k], 0.0]
        state = lw.rollout(
            mech.with_gravity(cases["gravity"][k]), cases["q0"][k], None, tau, 0.01, 10, every=5, feedback=feedback
        )
        assert np.allclose(results["positions"][k], state[0], rtol=0, atol=1e-13)
        assert np.allclose(results["velocities"][k], state[1], rtol=0, atol=1e-12)
        assert np.allclose(results["position.link2"][k], lw.frame_pose(ARM, state[0], "link2")[:, :3, 3], atol=1e-13)
        assert np.array_equal(results["kd"][k], cases["kd"][k])


@pytest.mark.parametrize("chunk", [1, 3, 8, 53])
def test_how_rollouts_are_split_changes_no_bit(chunk):
    """Chunks of one state, of less and of more than SIMD has lanes."""
    assert same(study().run(), study(chunk=chunk).run())


@pytest.mark.parametrize("sampling", ["latin_hypercube", "sobol", "saltelli"])
def test_nor_do_designs(sampling):
    one = study(sampling=sampling, compute=st.Rollout(0.01, 10, final_only=True), cases=6)
    assert one.n_cases == 6 * (14 if sampling == "saltelli" else 1)
    assert same(one.run(), one.with_(chunk=7).run())


@pytest.mark.parametrize("compute", [st.Equilibria(), st.LinearModels("equilibrium")])
def test_nor_does_the_order_of_mechanisms(compute):
    """Case by case, each with a mechanism of its own: last chunks first, and in pieces of other sizes."""
    vary = {name: VARY[name] for name in ("payload.link2.mass", "gravity")} | {"q0": [-1.5, 0.1]}
    one = study(compute=compute, vary=vary, cases=6, chunk=3)
    whole = one.run()
    st.study._with_shared_code.cache_clear()  # as another process would begin
    backwards = [one.with_().arrays(start, 2) for start in (4, 2, 0)][::-1]
    for name in whole:
        assert np.array_equal(np.concatenate([part[name] for part in backwards]), whole[name], equal_nan=True), name
    assert "found" not in whole or whole["found"].all()


def test_singularities_against_manipulability():
    arm = lw.mechanisms.puma560()
    one = st.Study(arm, st.Singularities("link6"), {"q0": st.distributions.WithinLimits()}, cases=40, chunk=7)
    results = one.run()
    assert same(results, one.with_(chunk=40).run())
    assert np.allclose(results["manipulability"], lw.kinematics.manipulability(arm, results["q0"], "link6"), rtol=1e-9)
    assert (np.diff(results["singular_values"], axis=1) <= 0.0).all()


def test_singularities_of_loops():
    """A four-bar linkage is singular with all of its links in one line."""
    mech = lw.mechanisms.four_bar()
    one = st.Study(
        mech, st.Singularities(), {f"q0.{mech.joint_names[0]}": st.distributions.Grid([0.5, 1.0, 1.5])}, cases=1
    ).run()
    assert (one["degrees_of_freedom"] == 1).all() and (one["conditioning"] > 1e-3).all()


def test_functions_of_the_user():
    def energy(case):
        return {"energy": lw.potential_energy(case.mechanism, case.q), "gain": case["my.gain"]}

    def energies(cases):
        return {"energy": lw.potential_energy(cases.mechanism, cases.q)}

    vary = {
        "q0": st.distributions.Offset(st.distributions.Normal(0.0, 0.2)),
        "my.gain": st.distributions.Uniform(1.0, 2.0),
    }
    one = study(compute=st.Function(energy), vary=vary).run()
    expected = lw.potential_energy(ARM, one["q0"])
    assert np.allclose(one["energy"], expected, atol=1e-13) and np.array_equal(one["gain"], one["my.gain"])
    assert np.allclose(study(compute=st.Function(energies, all_at_once=True), vary=vary).run()["energy"], expected)
    speeds = st.Rollout(
        *(0.01, 5),
        measure=lambda cases, t, q, v: {"v2": v**2 + 0 * t[:, None]},
        named_axes={"v2": ("t", "v")},
        named_units={"v2": "1/s^2"},
    )
    found = study(compute=speeds).run().quantiles("v2", [0.5])
    assert found.dims == ("quantile", "t", "v") and found.attrs["units"] == "1/s^2" and found["t"].values[-1] == 0.05


def test_grids_are_crossed_and_have_the_same_random_numbers():
    vary = {
        "kp": st.distributions.Grid([0.0, 10.0, 20.0]),
        "gravity": st.distributions.Grid([[0, 0, -1.6], [0, 0, -9.8]]),
        "q0": VARY["q0"],
    }
    one = study(vary=vary, cases=4)
    assert one.n_cases == 24
    cases = one.sample()
    pairs = {(kp[0], g[2]) for kp, g in zip(cases["kp"], cases["gravity"], strict=True)}
    assert len(pairs) == 6
    assert np.array_equal(cases["q0"].reshape(4, 6, 2), np.repeat(cases["q0"][::6, None], 6, axis=1))
    given = study(vary={"kp": st.distributions.Given(np.arange(53.0))}).sample()
    assert np.array_equal(given["kp"][:, 0], np.arange(53.0))


@pytest.mark.parametrize("store", ["a.zarr", "a.parquet"])
def test_interrupted_and_resumed_gives_the_same_files(store, tmp_path):
    one = study(compute=st.Rollout(0.01, 10, final_only=True, frames=("link2",)))
    whole = one.run(store=tmp_path / "whole" / store)
    path = tmp_path / store
    with pytest.raises(KeyboardInterrupt):
        one.run(Interrupted(2), path, in_flight=1)
    part = st.open_study(path)
    assert (
        not part.complete
        and part.done.sum() == 20
        and same({name: part[name] for name in part}, {name: whole[name][part.done] for name in whole})
    )
    (path / "left.partial").write_bytes(b"by a writer that was killed")
    calls = Interrupted(100)
    resumed = one.run(calls, path)
    assert 100 - calls.left == one.n_chunks - 2
    assert same(resumed, whole) and files(path) == files(tmp_path / "whole" / store)
    again = Interrupted(0)
    assert same(one.run(again, path), whole)  # nothing is left to do


def test_a_chunk_that_was_half_written_is_written_again(tmp_path):
    one = study()
    whole = one.run(store=tmp_path / "whole.zarr")
    broken = tmp_path / "broken.zarr"
    one.run(store=broken)
    (broken / "done" / "c" / "3").unlink()
    (broken / "positions" / "c" / "3" / "0" / "0").write_bytes(b"half")
    (broken / "velocities" / "c" / "3" / "0" / "0").unlink()
    calls = Interrupted(1)
    assert same(one.run(calls, broken), whole) and calls.left == 0
    assert files(broken) == files(tmp_path / "whole.zarr")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"seed": 4}, "seed was 0, is 4"),
        ({"chunk": 5}, "chunk was 10, is 5"),
        ({"vary": {**VARY, "kd": st.distributions.LogNormal(0.4, 0.2)}}, "vary.kd.median was 0.3, is 0.4"),
        ({"vary": {**VARY, "v0": 1.0}}, r"vary.v0 was absent, is Given\(table=1.0, same=True\)"),
        ({"compute": st.Rollout(0.01, 20, every=5, frames=("link2",))}, "compute.steps was 10, is 20"),
        (
            {"mechanism": ARM.metadata.with_actuated("joint1")},
            "mechanism.actuated_joints was absent, is .'joint1'.",
        ),
        ({"mechanism": ARM.with_payload("link1", 1.0)}, r"mechanism.bodies\[0\].mass was"),
    ],
)
def test_another_study_is_not_mixed_in(changes, message, tmp_path):
    st.stores.opened(tmp_path / "a.zarr", study())
    with pytest.raises(st.StudyError, match=f"another study: .*{message}"):
        study(**changes).run(store=tmp_path / "a.zarr")


def test_functions_are_told_apart_by_what_they_do(tmp_path):
    vary = {"my.x": st.distributions.Uniform(0.0, 1.0)}
    first = study(compute=st.Function(lambda case: case["my.x"] + 1.0), vary=vary)
    first.run(store=tmp_path / "a.zarr")
    same_again = study(compute=st.Function(lambda case: case["my.x"] + 1.0), vary=vary)
    same_again.run(store=tmp_path / "a.zarr")
    with pytest.raises(st.StudyError, match="compute.function.code"):
        study(compute=st.Function(lambda case: case["my.x"] + 2.0), vary=vary).run(store=tmp_path / "a.zarr")


def test_few_chunks_are_under_way(tmp_path):
    """What is computed and not stored yet is bounded, however slow storing is."""
    under_way, most = set(), []

    class Counted(Executor):
        _max_workers = 2
        pool = ThreadPoolExecutor(2)

        def submit(self, function, /, *arguments, **options):
            work = self.pool.submit(function, *arguments, **options)
            under_way.add(arguments[1])
            most.append(len(under_way))
            return work

    class Slow(st.stores.Memory):
        def write(self, chunk, arrays):
            super().write(chunk, arrays)
            under_way.discard(chunk.start)

    one, threads = study(chunk=2), lw.codegen.get_num_threads()
    store = Slow(one.record())
    recipe = st.study._dumps(one)
    chunks = [one.chunk_of(k) for k in range(one.n_chunks)]
    for chunk, arrays in st.runners.chunks_done(Counted(), recipe, chunks, one.n_cases, False, None):
        store.write(chunk, arrays)
    assert max(most) <= 4 and store.done.all()
    Counted.pool.shutdown()
    assert lw.codegen.get_num_threads() == threads  # of this process, which has the threads of the pool
    assert same(store.results(), one.run())


def test_warnings_of_workers_are_passed_on_once():
    def warned(case):
        warnings.warn("the water is cold", lw.MechanismWarning, stacklevel=2)
        return 0.0

    with pytest.warns(lw.MechanismWarning) as caught:
        study(compute=st.Function(warned), vary={}).run()
    assert [str(one.message) for one in caught] == ["cases 0 to 9: the water is cold"]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: study(cases=0), "cases must be an integer, at least 1, not 0"),
        (lambda: study(chunk=2.5), "chunk must be an integer"),
        (lambda: study(sampling="monte carlo"), "sampling is one of random, latin_hypercube"),
        (lambda: study(compute="rollout"), "compute must be a Rollout"),
        (lambda: study(mechanism="arm.urdf"), "a study needs a Mechanism, not str"),
        (lambda: study().run(store="a.csv"), "NAME.zarr .* or NAME.parquet"),
        (lambda: study().run("nowhere://x"), "no Dask scheduler at 'nowhere://x'"),
        (lambda: study().run(client=3.5), "is no client of Dask"),
        (lambda: study().run(client=0), "number of processes must be positive"),
        (lambda: study().sample(50, 10), "cases 50 to 59 are not among the 53"),
        (lambda: st.open_study("nowhere.zarr"), "no results of a study"),
        (lambda: st.LinearModels(at="end"), "not at 'end'"),
        (lambda: study(compute=st.Singularities(), vary={}).run(), "say of which link"),
    ],
)
def test_errors(make, message):
    with pytest.raises(st.StudyError, match=message):
        make()


def failing(case):
    if case.number == 12:
        raise RuntimeError("boom")
    return {"x": np.zeros(2 + (case.number == 23))}


def test_errors_name_the_case(tmp_path):
    with pytest.raises(st.StudyError, match="case 12: RuntimeError: boom"):
        study(compute=st.Function(failing), vary={}).run()
    with pytest.raises(st.StudyError, match=r"case 23 gives 'x' of shape \(3,\), case 20 of \(2,\)"):
        study(compute=st.Function(failing), vary={}).arrays(20, 10)
    with pytest.raises(st.StudyError, match="cases 0 to 9: MechanismError: rollout: the mass"):
        study(vary={"link1.mass": st.distributions.Normal(0.0, 1.0)}).run()
    wide = study(compute=st.Rollout(0.01, 200))
    with pytest.raises(st.StudyError, match="columns is too wide"):
        wide.run(store=tmp_path / "a.parquet")
    (tmp_path / "full.zarr").mkdir()
    (tmp_path / "full.zarr" / "file").write_text("mine")
    with pytest.raises(st.StudyError, match="is there already and no study"):
        study().run(store=tmp_path / "full.zarr")
