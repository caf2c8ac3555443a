"""linkwise formulas prints what linkwise.codegen.symbolic gives."""

from __future__ import annotations

import linkwise as lw


def test_text_latex_and_numbers(run):
    arm = lw.mechanisms.planar_arm(2)
    assert run("formulas", "builtin:planar_arm:2", "--of", "mass-matrix").strip() == str(
        lw.codegen.symbolic(arm, "mass_matrix")
    )
    assert run("formulas", "builtin:planar_arm:2", "--latex").strip() == lw.codegen.symbolic(arm).latex()
    assert "M11 = 5/3 + c2" in run("formulas", "builtin:planar_arm:2", "--of", "mass_matrix", "--numbers")
    rod = run("formulas", "builtin:planar_arm:1", "--let", "r1=l1/2", "--let", "I1=m1*l1**2/12")
    assert "tau1 = m1*(l1**2*a1/3 + g*l1*c1/2)" in rod
    assert "J31 = 1" in run("formulas", "builtin:planar_arm:1", "--of", "jacobian", "--link", "tip")


def test_bad_input_is_one_line(run):
    arm = "builtin:planar_arm:1"
    assert "write SYMBOL=FORMULA" in run("formulas", arm, "--let", "r1", fails=True)
    assert "I1 = m1*l1**2/12 does not hold" in run(
        "formulas", arm, "--let", "r1=l1/3", "--let", "I1=m1*l1**2/12", fails=True
    )
    assert "goes with --of jacobian" in run("formulas", arm, "--link", "tip", fails=True)
    assert "formulas are for small mechanisms" in run("formulas", "builtin:chain:4", fails=True)
