"""Results do not depend on where they are stored: memory, a Zarr folder, a Parquet folder."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st

pytest.importorskip("zarr")
pytest.importorskip("pyarrow")
pytest.importorskip("xarray")

ARM = lw.mechanisms.planar_arm(2)
CART = lw.mechanisms.cart_pole()


def measures(cases, t, q, v):
    """Every type and shape that a result may have, in no order of the alphabet."""
    first = q[:, -1, 0]
    return {
        "wave": np.exp(1j * first)[:, None] * np.arange(1, 3),
        "flag": first > 0.2,
        "count": np.rint(10.0 * first).astype(np.int32),
        "small": first.astype(np.float32),
        "swapped": first.astype(">f8"),
        "folder/name": q[:, :, :1] * np.ones((1, 1, 3)),
        "empty": np.zeros((len(first), 0)),
        "holes": np.where(first > 0.2, np.nan, first),
        "alpha": first,
    }


STUDIES = {
    "states": (
        CART,
        st.Rollout(0.01, 4),
        {
            "q0": st.distributions.Offset(st.distributions.Normal(0, 0.1)),
            "gravity": st.distributions.Offset(st.distributions.Normal(0, 0.1)),
        },
    ),
    "measures": (
        ARM,
        st.Rollout(0.01, 4, measure=measures, named_axes={"folder/name": ("t", "q", "xyz")}),
        {"q0": 0.2},
    ),
    "linear models": (
        ARM,
        st.LinearModels("equilibrium"),
        {"mass": st.distributions.Relative(st.distributions.Uniform(0.5, 2.0))},
    ),
    "equilibria": (ARM, st.Equilibria(), {"link2.mass": st.distributions.Uniform(0.5, 2.0)}),
    "singularities": (ARM, st.Singularities("link2", "linear"), {"q0": st.distributions.Uniform(-1.0, 1.0)}),
    "function": (
        ARM,
        st.Function(lambda case: {"z": case["my.x"], "a": [1, case.number]}),
        {"my.x": st.distributions.Uniform(0, 1)},
    ),
}
STORES = ("a.zarr", "a.parquet")


def study(name, **options):
    mech, compute, vary = STUDIES[name]
    vary = {key: st.distributions.Uniform(0.0, x) if isinstance(x, float) else x for key, x in vary.items()}
    return st.Study(mech, compute, vary, **{"cases": 23, "chunk": 5, **options})


def require_same(results, expected):
    assert repr(results) == repr(expected)
    assert results.names == expected.names and results.varied == expected.varied
    assert results.over_time == expected.over_time
    for name in expected:
        assert results[name].dtype == expected[name].dtype and results[name].flags.writeable
        np.testing.assert_array_equal(results[name], expected[name])
        assert results.axes(name) == expected.axes(name) and results.unit(name) == expected.unit(name)
        if not np.iscomplexobj(expected[name]) and expected[name].size:
            assert results.quantiles(name).identical(expected.quantiles(name))
            assert results.summary(name).identical(expected.summary(name))
            if np.isfinite(expected[name]).any():
                assert results.histogram(name, 4).identical(expected.histogram(name, 4))
    assert results.dataset().identical(expected.dataset())
    columns = expected.table(*expected.names)
    assert results.table(*results.names).equals(columns)
    for column in columns:
        np.testing.assert_array_equal(results[column], columns[column])
        assert column in results and results.shape(column) == () and results.axes(column) == ("case",)


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("store", STORES)
def test_results_are_the_same_in_every_store(name, store, tmp_path):
    expected = study(name).run()
    require_same(study(name).run(store=tmp_path / store), expected)
    require_same(st.open_study(tmp_path / store), expected)


@pytest.mark.parametrize("store", STORES)
def test_sensitivities_are_the_same_in_every_store(store, tmp_path):
    one = study("states", cases=60, sampling="saltelli")
    assert one.run(store=tmp_path / store).sensitivity("positions").identical(one.run().sensitivity("positions"))
    other = study("states", cases=200)
    expected = other.run()
    drawn = other.run(store=tmp_path / f"b{store}").sensitivity("positions")
    assert drawn.identical(expected.sensitivity("positions"))
    assert drawn["factor"].values.tolist()[:2] == [f"q0[{name}]" for name in CART.q_names]


class Stopping(Executor):
    """Computes ``left`` chunks, then is interrupted."""

    def __init__(self, left):
        self.left = left

    def submit(self, function, /, *arguments, **options):
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        work = Future()
        work.set_result(function(*arguments, **options))
        return work


@pytest.mark.parametrize("name", ["measures", "linear models"])
def test_parts_of_a_study_are_the_same_in_every_store_and_are_completed(name, tmp_path):
    parts = []
    for store in STORES:
        with pytest.raises(KeyboardInterrupt):
            study(name).run(Stopping(2), tmp_path / store, in_flight=1)
        parts.append(st.open_study(tmp_path / store))
        assert not parts[-1].complete and parts[-1].cases.tolist() == list(range(10))
    require_same(*parts)
    for store in STORES:
        require_same(study(name).run(store=tmp_path / store), study(name).run())


def test_columns_have_units_of_their_own(tmp_path):
    results = study("states").run(store=tmp_path / "a.parquet")
    assert results.unit("positions") == "" and results["positions"].shape == (23, 5, 2)
    assert [results.unit(f"positions[0.04,{name}]") for name in CART.q_names] == ["m", "rad"]
    assert results.quantiles(f"positions[0.04,{CART.q_names[1]}]", 0.5).attrs["units"] == "rad"
    with pytest.raises(KeyError, match="no result 'positions\\[nobody\\]'; available: q0, gravity, positions"):
        results["positions[nobody]"]


def test_parts_of_complex_arrays_have_statistics():
    results = study("measures").run()
    np.testing.assert_array_equal(results["wave.imag"], results["wave"].imag)
    assert results.summary("wave.real").shape == (5, 2)
    with pytest.raises(st.StudyError, match=r"'wave' is complex: statistics are of 'wave.real' or 'wave.imag'"):
        results.summary("wave")


WRONG = {
    "case": (lambda case: {"case": 1.0}, "'case' is the name of the axis of cases"),
    "done": (lambda case: {"done": 1.0}, "'done' is the name of the mark"),
    "text": (lambda case: {"x": "fast"}, "'x' is of type <U4: results are numbers"),
    "object": (lambda case: {"x": {}}, "'x' is of type object"),
    "long": (lambda case: {"x": np.longdouble(1.0)}, "'x' is of type .*128: results are numbers of at most 64 bits"),
    "masked": (lambda case: {"x": np.ma.masked_greater([1.0, 2.0], 1.5)}, "'x' is a masked array"),
    "number": (lambda case: {3: 1.0}, "named by strings, not by 3"),
    "other names": (lambda case: {"x" if case.number < 5 else "y": 1.0}, r"give \['y'\], others \['x'\]"),
    "other shape": (lambda case: {"x": np.zeros(1 + case.number // 5)}, r"'x' is float64 of shape \(2,\) in some"),
    "other type": (lambda case: {"x": 1 if case.number < 5 else 1.0}, "'x' is float64 of shape .* int64 of"),
}


@pytest.mark.parametrize("store", [None, *STORES])
@pytest.mark.parametrize("name", WRONG)
def test_what_some_store_cannot_keep_is_refused_by_all(name, store, tmp_path):
    function, message = WRONG[name]
    with pytest.raises(st.StudyError, match=message):
        st.Study(ARM, st.Function(function), cases=10, chunk=5).run(store=store and tmp_path / store)


def test_two_results_with_one_column(tmp_path):
    compute = st.Function(lambda case: {"x": np.zeros(2), "x[0]": 1.0})
    with pytest.raises(st.StudyError, match=r"two results need a column 'x\[0\]'"):
        st.Study(ARM, compute, cases=2).run(store=tmp_path / "a.parquet")


@pytest.mark.parametrize("store", STORES)
def test_resumed_with_another_shape(store, tmp_path):
    """The layout of a store is that of the chunks it has, also after it was opened again."""
    one = study("function")
    with pytest.raises(KeyboardInterrupt):
        one.run(Stopping(1), tmp_path / store, in_flight=1)
    opened = st.stores.opened(tmp_path / store, one)
    chunk = one.chunk_of(1)
    arrays = one.arrays(chunk.start, chunk.stop - chunk.start) | {"a": np.zeros((5, 3), int)}
    with pytest.raises(st.StudyError, match=r"'a' is int64 of shape \(3,\) in some cases, int64 of \(2,\)"):
        opened.write(chunk, arrays)


def test_tables_of_earlier_versions(tmp_path):
    import pyarrow.parquet

    study("function").run(store=tmp_path / "a.parquet")
    for file in (tmp_path / "a.parquet").glob("part-*"):
        table = pyarrow.parquet.read_table(file)
        pyarrow.parquet.write_table(table.replace_schema_metadata({}), file)
    with pytest.raises(st.StudyError, match="an earlier version of linkwise wrote it. Run the study again"):
        st.open_study(tmp_path / "a.parquet")
