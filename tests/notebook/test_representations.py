"""What notebooks show of values: text as ever, and beside it small tables, formulas and pictures."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.notebook import html

ARM = lw.mechanisms.planar_arm(2)
DOWN = [-0.5 * np.pi, 0.0]
LARGEST = 100_000  # characters of one representation


class Page(HTMLParser):
    """Text, pictures and the rows of tables; tags must match."""

    def __init__(self, source: str):
        super().__init__()
        self.open: list[str] = []
        self.text, self.pictures, self.rows = "", 0, []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.pictures += dict(attributes)["src"].startswith("data:image/png;base64,")
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def shown(thing) -> Page:
    bundle = thing._repr_mimebundle_()
    assert bundle["text/plain"] == repr(thing)
    assert len(bundle["text/html"]) < LARGEST
    return Page(bundle["text/html"])


def test_a_mechanism_is_a_table_of_joints_and_a_drawing():
    pytest.importorskip("matplotlib")
    loader = lw.mechanisms.loader()
    page = shown(loader)
    assert page.pictures == 1
    assert [row[0] for row in page.rows] == [
        "joint",
        *loader.joint_names,
        "constraint",
        *(x.name for x in loader.loops),
    ]
    assert page.rows[3] == ["lift_piston_joint", "prismatic", "lift_piston", "lift_barrel", "25"]


def test_names_are_text_whatever_they_contain():
    build = lw.Builder()
    build.link("<script>alert(1)</script>", 1.0, com=(0.5, 0.0, 0.0))
    build.joint("a<b", lw.Revolute((0.0, 0.0, 1.0)), "ground", "<script>alert(1)</script>")
    mech = build.build("<b>bold & brave</b>")
    source = mech._repr_mimebundle_()["text/html"]
    assert "<script" not in source and "<b>bold" not in source
    assert shown(mech).rows[1][:3] == ["a<b", "revolute", "<script>alert(1)</script>"]


def test_many_joints_are_folded_away():
    chain = lw.mechanisms.chain(21)
    source = chain._repr_mimebundle_(include=["text/html"])["text/html"]
    assert "5 further rows" in source and len(Page(source).rows) == 23
    assert html.table(("a",), [(k,) for k in range(18)]).count("<details") == 0


def test_a_mechanism_that_cannot_be_drawn_is_a_table():
    build = lw.Builder()
    build.link("stone", 1.0)
    build.joint("weld", lw.Fixed(), "ground", "stone")
    assert shown(build.build("still")).pictures == 0


def test_a_kernel_tells_what_it_takes_costs_and_does():
    kernel = lw.compile("forward_dynamics", ARM)
    page = shown(kernel)
    assert ["takes", "tau", "(2,)"] in page.rows and ["gives", "a", "(2,)"] in page.rows
    assert ["in all", str(sum(kernel.op_counts.values()))] in page.rows
    assert kernel.plan() in page.text
    assert kernel.plan()._repr_mimebundle_()["text/html"].startswith("<pre")


def test_motions_tell_where_they_were_and_batches_how_far_apart():
    pytest.importorskip("matplotlib")
    motion = lw.simulate(ARM, [0.3, 0.2], [0.0, 0.0], 0.2)
    page = shown(motion)
    assert page.pictures == 1 and page.rows[0] == ["q", "first", "last", "lowest", "highest"]
    assert page.rows[1][:3] == ["joint1", "0.3", f"{motion.q[-1, 0]:.4g}"]
    batch = lw.simulate(ARM, [[0.3, 0.2], [0.5, 0.1]], np.zeros((2, 2)), 0.01, method="rk4")
    page = shown(batch)
    assert "batch (2,)" in page.text and page.rows[1][:3] == ["joint1", "0.3", "0.5"]


def test_models_and_modes():
    pytest.importorskip("matplotlib")
    model = lw.linearize(ARM, DOWN)
    page = shown(model)
    assert page.pictures == 1 and page.rows[-1][:3] == ["joint2.rate", f"{model.A[3, 0]:.4g}", f"{model.A[3, 1]:.4g}"]
    assert ["0 + 7.189j"] in page.rows
    modes = shown(model.modes())
    assert [row[0] for row in modes.rows[1:]] == [f"{x:.4g}" for x in model.modes().frequencies_hz]
    assert "joint1.rate" in shown(model.table()).text
    pages = lw.linearize(ARM, np.array([DOWN, DOWN]))._repr_mimebundle_()
    assert "batch (2,)" in pages["text/html"]


T = op.joint_vector("tau")
WRITTEN = {
    r"\left[I - H \psi K\right]^{*} D^{-1} \left[I - H \psi K\right] \tau": (op.I - op.H @ op.psi @ op.K).T
    @ op.D.inv
    @ (op.I - op.H @ op.psi @ op.K)
    @ T,
    r"\left[H \phi M \phi^{*} H^{*}\right]^{-1}": (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T).inv,
    r"B_{\mathrm{left\_hand}}^{*} \phi^{*} H^{*}": op.B("left_hand").T @ op.phi.T @ op.H.T,
    r"D^{1/2} D^{*/2} \mathrm{tau}_{\mathrm{max}}": op.D_half @ op.D_half.T @ op.joint_vector("tau_max"),
    r"D^{-*/2} D^{-1/2} q_{\mathrm{0}}": op.D_half.inv.T @ op.D_half.inv @ op.joint_vector("q0"),
    r"\mathcal{E}_\phi - \mathcal{E}_\psi": op.E_phi - op.E_psi,
    r"-2.5\, \bar{\tau} M": -2.5 * (op.tau_bar @ op.M),
    r"H \phi \left[M \phi^{*} a(v) + b(v)\right]": op.H
    @ op.phi
    @ (op.M @ op.phi.T @ op.bias_acceleration(op.joint_vector("v")) + op.bias_force(op.joint_vector("v"))),
    r"\tau^{*} \tau": T.T @ T,
    "0": op.M - op.M,
}
WRITTEN[r"D^{1/2} D^{*/2} \tau_{\mathrm{max}}"] = WRITTEN.pop(r"D^{1/2} D^{*/2} \mathrm{tau}_{\mathrm{max}}")


@pytest.mark.parametrize("latex", WRITTEN)
def test_expressions_are_written_as_in_the_papers(latex):
    expression = WRITTEN[latex]
    assert expression.latex() == latex
    bundle = expression._repr_mimebundle_()
    assert bundle == {"text/plain": str(expression), "text/latex": rf"$\displaystyle {latex}$"}


def test_every_operator_has_a_letter_that_mathematics_can_set():
    mathtext = pytest.importorskip("matplotlib.mathtext")
    parser = mathtext.MathTextParser("path")
    named = [getattr(op, name) for name in op.__all__ if isinstance(getattr(op, name), op.Expression)]
    assert len(named) > 15
    for one in [*named, *WRITTEN.values()]:
        parser.parse(f"${one.latex()}$")


def test_proofs_are_chains_with_reasons():
    page = shown(op.prove((op.I - op.H @ op.psi @ op.K) @ op.H @ op.phi, op.H @ op.psi))
    assert page.rows[1][:2] == ["(I - H psi K) H phi"] or page.rows[1][1] == "(I - H psi K) H phi"
    assert page.rows[-1][:2] == ["=", "H psi"] and "jain1995 (4.6)" in page.text and "proven" in page.text
    assert "does not hold" in shown(op.prove(op.H @ op.phi, op.H @ op.psi)).text


def test_results_of_other_questions():
    pose = lw.frame_pose(ARM, [0.4, 0.6], "link2")
    assert "solved" in shown(lw.inverse_kinematics(ARM, {"link2": pose}, q0=[0.3, 0.5])).text
    loader = lw.constraints.redundancy(lw.mechanisms.four_bar())
    assert shown(loader).text == str(loader)


def test_ranges_of_motion_have_ends_and_curves():
    pytest.importorskip("matplotlib")
    found = lw.linkages.range_of_motion(lw.mechanisms.four_bar(), "rocker_joint")
    page = shown(found)
    assert page.pictures == 1 and page.rows[1][:3] == ["lowest", f"{found.lower:.4g}", "dead centre"]


def test_one_kind_can_be_asked_for():
    assert set(ARM._repr_mimebundle_(include=["text/plain"])) == {"text/plain"}
    assert set((op.H @ op.phi)._repr_mimebundle_(exclude=["text/plain"])) == {"text/latex"}


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
import linkwise as lw
assert "linkwise.notebook" not in sys.modules and "tqdm" not in sys.modules
page = lw.mechanisms.planar_arm(2)._repr_mimebundle_()["text/html"]
assert "joint2" in page and "<img" not in page
"""


def test_tables_need_no_matplotlib_and_nothing_is_loaded_before():
    subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], check=True)


# -- progress ---------------------------------------------------------------------------------------------


def test_bars_are_shown_where_they_are_wanted(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr("linkwise.display.SLOW", 0.0)
    fresh = lw.mechanisms.planar_arm(2)
    lw.simulate(fresh, [0.3, 0.2], [0.0, 0.0], 0.1)
    assert capsys.readouterr() == ("", "")
    with lw.codegen.progress():
        lw.compile("kinetic_energy", fresh)
        lw.simulate(fresh, [0.3, 0.2], [0.0, 0.0], 0.1)
        lw.simulate(fresh, [0.3, 0.2], [0.0, 0.0], 0.1, settings=lw.motion.Settings(progress=False))
    out, bars = capsys.readouterr()
    assert out == "" and bars.count("0.100 of 0.1 s") == 1
    assert "compile kinetic_energy: machine code" in bars
    lw.simulate(fresh, [0.3, 0.2], [0.0, 0.0], 0.1)
    assert capsys.readouterr() == ("", "")


def test_bars_without_tqdm_say_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r"pip install 'linkwise\[progress\]'"):
        lw.codegen.progress()
    with pytest.raises(ImportError, match="tqdm"):
        lw.simulate(ARM, [0.3, 0.2], [0.0, 0.0], 0.1, settings=lw.motion.Settings(progress=True))
