"""Statistics against NumPy, and sensitivity indices against those of Ishigami's function, which are known."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st

ARM = lw.mechanisms.planar_arm(2)
A, B = 7.0, 0.1


def ishigami(cases):
    """Ishigami and Homma 1990, and the same upside down on a second entry."""
    x = cases["my.x"]
    y = np.sin(x[:, 0]) + A * np.sin(x[:, 1]) ** 2 + B * x[:, 2] ** 4 * np.sin(x[:, 0])
    return {"y": np.stack([y, -2.0 * y], axis=1)}


def indices():
    """First and total, by integration."""
    v1, v2, v13 = 0.5 * (1 + B * np.pi**4 / 5) ** 2, A**2 / 8, B**2 * np.pi**8 * (1 / 18 - 1 / 50)
    whole = v1 + v2 + v13
    return np.array([v1, v2, 0.0]) / whole, np.array([v1 + v13, v2, v13]) / whole


def study(**options):
    vary = {"my.x": st.distributions.Uniform([-np.pi] * 3, [np.pi] * 3)}
    compute = st.Function(ishigami, all_at_once=True, named_axes={"y": ("sign",)}, named_units={"y": "m"})
    return st.Study(ARM, compute, vary, **options)


def test_sensitivity_by_design():
    found = study(cases=4096, sampling="saltelli").run().sensitivity("y")
    first, total = indices()
    assert found.attrs["estimator"] == "Saltelli 2010 (first), Jansen 1999 (total)"
    assert found["factor"].values.tolist() == ["my.x[0]", "my.x[1]", "my.x[2]"] and found["first"].dims == (
        "factor",
        "sign",
    )
    for k in range(2):
        assert np.abs(found["first"].values[:, k] - first).max() < 0.02
        assert np.abs(found["total"].values[:, k] - total).max() < 0.02


@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_sensitivity_from_given_data(sampling):
    found = study(cases=8192, sampling=sampling).run().sensitivity("y")
    assert "given data" in found.attrs["estimator"] and "total" not in found
    assert np.abs(found["first"].values[:, 0] - indices()[0]).max() < 0.03


def test_sensitivity_of_single_numbers(tmp_path):
    compute = st.Function(lambda case: {"h": float(case.q[0] + 0.1 * case.q[1])})
    results = st.Study(ARM, compute, {"q0": st.distributions.Offset(st.distributions.Normal(0, 0.1))}, cases=1000).run()
    found = results.sensitivity("h")["first"]
    assert found.dims == ("factor",) and np.abs(found.values - np.array([1.0, 0.01]) / 1.01).max() < 0.05
    results.plot_sensitivity("h", tmp_path / "h.png")


@pytest.mark.parametrize("sampling", ["random", "saltelli"])
def test_no_factor_is_the_reason_for_round_off(sampling):
    compute = st.Function(lambda case: {"same": 0.1 + 1e-16 * case["my.x"], "varies": 1e-9 * case["my.x"]})
    results = st.Study(ARM, compute, {"my.x": st.distributions.Uniform(0, 1)}, cases=64, sampling=sampling).run()
    assert np.isnan(results.sensitivity("same")["first"]).all()
    assert results.sensitivity("varies")["first"].values[0] > 0.8


def test_legends_fit_into_the_picture():
    """Long names of many factors, beside one panel."""
    vary = {f"my.a_number_with_a_long_name_{k}": st.distributions.Uniform(0, 1) for k in range(8)}
    compute = st.Rollout(0.01, 2, measure=lambda cases, t, q, v: {"y": q[..., 0]}, named_axes={"y": ("t",)})
    results = st.Study(ARM, compute, vary | {"q0": st.distributions.Uniform(0, 1)}, cases=64).run()
    figure = results.plot_sensitivity("y", most=8)
    figure.draw_without_rendering()
    shown = figure.legends[0].get_window_extent()
    assert len(figure.legends) == 1 and shown.x0 >= 0.0 and shown.x1 <= figure.bbox.width


def test_quantiles_summary_and_histogram():
    results = study(cases=500).run()
    y = results["y"]
    quantiles = results.quantiles("y", (0.1, 0.9))
    assert quantiles.dims == ("quantile", "sign") and quantiles.attrs["units"] == "m"
    assert np.allclose(quantiles.values, np.quantile(y, [0.1, 0.9], axis=0))
    summary = results.summary("y")
    assert np.allclose(summary.sel(statistic="std"), y.std(axis=0)) and (summary.sel(statistic="count") == 500).all()
    counts = results.histogram("y", 20)
    assert (counts.sum("bin") == 500).all()
    edges = np.linspace(y.min(), y.max(), 21)
    assert np.array_equal(counts.values[:, 0], np.histogram(y[:, 0], edges)[0])
    with pytest.raises(st.StudyError, match="from 0 to 1"):
        results.quantiles("y", (5, 95))
    median = results.quantiles("y", 0.5)
    assert median.dims == ("sign",) and np.allclose(median.values, np.median(y, axis=0))
    for ask in (results.summary, results.plot_quantiles, results.sensitivity, results.shape):
        with pytest.raises(KeyError, match="no result 'z'; available: my.x, y"):
            ask("z")


def test_tables_say_what_they_leave_out():
    results = st.Study(ARM, st.Rollout(0.01, 2), {"q0": st.distributions.Uniform(0, 1)}, cases=3).run()
    with pytest.warns(UserWarning, match="leaves out positions, velocities, which have an axis of time"):
        assert list(results.table()) == ["q0[joint1]", "q0[joint2]"]
    assert results.table("positions").shape == (3, 6)


def test_what_is_not_finite_is_left_out():
    def some(case):
        return {"x": case["my.x"] if case.number % 2 else np.nan, "never": np.inf, "turning": 1j}

    results = st.Study(ARM, st.Function(some), {"my.x": st.distributions.Uniform(0, 1)}, cases=20).run()
    odd = results["my.x"][1::2]
    assert np.isclose(results.quantiles("x", [0.5]).values[0], np.median(odd))
    assert results.summary("x").sel(statistic="count") == 10 and np.isnan(results.summary("never").values).all()
    with pytest.raises(st.StudyError, match="no finite values"):
        results.histogram("never")
    with pytest.raises(st.StudyError, match="'turning' is complex"):
        results.summary("turning")
    with pytest.raises(KeyError, match="no result 'z'; available: my.x, x"):
        results["z"]


def test_tables_and_datasets(tmp_path):
    vary = {
        "gravity": st.distributions.Offset(st.distributions.Normal(0, 0.1)),
        "q0.joint1": st.distributions.Uniform(0, 1),
    }
    results = st.Study(ARM, st.Rollout(0.01, 4, final_only=True), vary, cases=9, chunk=4).run(store=tmp_path / "a.zarr")
    table = results.table()
    assert table.index.name == "case" and "gravity[z]" in table and "positions[joint2]" in table
    assert np.array_equal(table["positions[joint2]"], results["positions"][:, 1])
    results.save_table(tmp_path / "t.csv")
    results.save_table(tmp_path / "t.parquet", "gravity")
    assert (tmp_path / "t.csv").read_text().startswith("case,gravity[x],")
    with pytest.raises(st.StudyError, match=".csv or .parquet"):
        results.save_table(tmp_path / "t.xlsx")
    data = results.dataset()
    assert data["velocities"].sel(v="joint1").shape == (9,) and data["gravity"].attrs["units"] == "m/s^2"
    assert data["positions"].attrs["units"] == "rad" and data["q0.joint1"].attrs["units"] == "rad"
    import xarray

    assert np.array_equal(xarray.open_zarr(tmp_path / "a.zarr", consolidated=False)["positions"], data["positions"])
    cart = st.Study(
        lw.mechanisms.cart_pole(),
        st.Rollout(0.01, 2),
        {"q0": st.distributions.Offset(st.distributions.Normal(0, 0.1))},
        cases=3,
    ).run()
    assert cart.unit("positions") == "" and cart.dataset()["positions_unit"].values.tolist() == ["m", "rad"]
    assert cart.plot_quantiles("velocities").axes[0].get_title().endswith("(m/s)")
    import pandas

    as_table = st.Study(ARM, st.Rollout(0.01, 4, final_only=True), vary, cases=9, chunk=4).run(
        store=tmp_path / "a.parquet"
    )
    read = pandas.read_parquet(tmp_path / "a.parquet")
    assert np.array_equal(read["positions[joint2]"], results["positions"][:, 1]) and len(read) == 9
    assert as_table.varied == ("gravity", "q0.joint1") and as_table.unit("gravity[x]") == "m/s^2"


def test_pictures(tmp_path):
    results = st.Study(
        ARM, st.Rollout(0.01, 20, every=2), {"q0": st.distributions.Offset(st.distributions.Normal(0, 0.1))}, cases=100
    ).run()
    figure = results.plot_quantiles("positions", tmp_path / "a.png")
    assert figure.axes[0].get_ylabel() == "positions (rad)" and figure.axes[1].get_title() == "joint2"
    assert results.plot_histogram("velocities", entries="joint1").axes[0].get_xlabel() == "velocities (rad/s)"
    curves = results.plot_sensitivity("positions", tmp_path / "b.svg")
    assert [line.get_label() for line in curves.axes[0].get_lines()] == ["q0[joint1]", "q0[joint2]"]
    assert results.plot_quantiles("q0").axes[0].get_xticklabels()[0].get_text() == "joint1"
    assert (tmp_path / "a.png").stat().st_size > 1000
    with pytest.raises(st.StudyError, match="no entry 'joint3'"):
        results.plot_quantiles("positions", entries=["joint3"])
