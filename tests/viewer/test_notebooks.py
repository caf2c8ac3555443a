"""Figures show themselves in a fresh notebook, once, and are figures of matplotlib all the same."""

from __future__ import annotations

import pickle
import textwrap

import pytest

import linkwise as lw

mpl = pytest.importorskip("matplotlib")
PNG = b"\x89PNG\r\n\x1a\n"


def figures():
    arm = lw.mechanisms.planar_arm(2)
    yield lw.viewer.draw(arm)
    motion = lw.simulate(arm, [0.3, 0.2], [0.0, 0.0], 0.2)
    yield motion.plot()
    yield lw.viewer.snapshots(motion)
    yield lw.viewer.plot_eigenvalues(lw.linearize(arm, [-1.5707963267948966, 0.0]))


def test_every_figure_has_a_picture_of_itself(tmp_path):
    from matplotlib.figure import Figure

    for number, figure in enumerate(figures()):
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(PNG)
        figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(PNG)
    figure.axes[0].set_title("changed")
    assert pickle.loads(pickle.dumps(figure)).axes[0].get_title() == "changed"


CELLS = {
    "a drawing in a fresh kernel": ("""
        import linkwise as lw
        lw.viewer.draw(lw.mechanisms.planar_arm(2))
        """, 1),
    "a motion": ("lw.simulate(lw.mechanisms.planar_arm(2), [0.3, 0.2], [0.0, 0.0], 0.2).plot()", 1),
    "kept, not shown": ("figure = lw.viewer.draw(lw.mechanisms.planar_arm(2))", 0),
    "a mechanism itself": ("lw.mechanisms.planar_arm(2)", 1),
    "a motion itself": ("motion = lw.simulate(lw.mechanisms.planar_arm(2), [0.3, 0.2], [0.0, 0.0], 0.2)\nmotion", 1),
    "a model": ("lw.linearize(lw.mechanisms.planar_arm(2), [-1.5707963267948966, 0.0])", 1),
    "an expression has no picture": ("lw.operators.H @ lw.operators.phi", 0),
    "work with a bar": ("with lw.codegen.progress():\n    motion.resume(0.1)", 0),
    "a page to turn around": ("motion.show()", 0),
    "after the magic": ("""
        %matplotlib inline
        lw.viewer.draw(lw.mechanisms.planar_arm(2))
        """, 1),
    "after a figure of pyplot": ("""
        import matplotlib.pyplot as plt
        plt.plot([1, 2])
        plt.close()
        lw.viewer.draw(lw.mechanisms.planar_arm(2))
        """, 1),
}  # fmt: skip


def pictures(output):
    """How many pictures an output of a cell has: itself one, or in its HTML."""
    data = output.get("data", {})
    return ("image/png" in data) + data.get("text/html", "").count('src="data:image/png;base64,')


def test_a_fresh_kernel_shows_results_once():
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(textwrap.dedent(source).strip()) for source, _ in CELLS.values()]
    )
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for (name, (_, count)), cell in zip(CELLS.items(), notebook.cells, strict=True):
        assert sum(map(pictures, cell.outputs)) == count, name
    formula, bar = (notebook.cells[list(CELLS).index(name)].outputs for name in list(CELLS)[6:8])
    assert r"H \phi" in formula[0].data["text/latex"]
    page = notebook.cells[list(CELLS).index("a page to turn around")].outputs[0].data
    assert page["text/html"].startswith("<iframe") and page["text/plain"].startswith("<Page 'planar_arm_2'")
    assert formula[0].data["text/plain"] == "H @ phi"
    assert "simulate" in str(bar) and "0.100 of 0.1 s" in str(bar), "a bar of widgets, or of letters"
