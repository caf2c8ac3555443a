"""Loops, gears and belts written in a file (URDF+): a pantograph leg driven by two geared motors at the hip.

python examples/14_loops_in_files.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
GEAR = 6.0


def bar(name: str, length: float, mass: float) -> str:
    """A slender link along x."""
    moment = mass * length**2 / 12.0
    return f"""<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/>
      <inertia ixx="1e-5" iyy="{moment}" izz="{moment}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def rotor(name: str) -> str:
    """All inertia, no mass: that of motors is counted with the body that carries them."""
    return f"""<link name="{name}"><inertial><mass value="0"/>
      <inertia ixx="2e-5" iyy="4e-5" izz="2e-5" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def joint(name: str, parent: str, child: str, x: float = 0.0, independent: bool = False) -> str:
    return f"""<joint name="{name}" type="continuous" independent="{str(independent).lower()}">
      <parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="0 1 0"/></joint>"""


def gear(name: str, link: str, motor: str) -> str:
    return f"""<coupling name="{name}" type="rolling"><predecessor link="{link}"/><successor link="{motor}"/>
      <ratio value="{GEAR}"/></coupling>"""


LEG = f"""<robot name="pantograph">
  <link name="base"/>
  {bar("thigh", 0.2, 0.4)} {bar("shank", 0.3, 0.2)} {bar("crank", 0.1, 0.1)} {bar("rod", 0.2, 0.1)}
  {rotor("hip_rotor")} {rotor("crank_rotor")}
  {joint("hip", "base", "thigh", independent=True)} {joint("knee", "thigh", "shank", 0.2)}
  {joint("lever", "base", "crank", independent=True)} {joint("ankle", "crank", "rod", 0.1)}
  {joint("hip_motor", "base", "hip_rotor")} {joint("lever_motor", "base", "crank_rotor")}
  {gear("hip_gear", "thigh", "hip_rotor")} {gear("lever_gear", "crank", "crank_rotor")}
  <loop name="pin" type="revolute"><axis xyz="0 1 0"/>
    <predecessor link="rod"><origin xyz="0.2 0 0"/></predecessor>
    <successor link="shank"><origin xyz="0.1 0 0"/></successor></loop>
</robot>"""


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    leg = lw.load(LEG)
    print(leg)
    independent = leg.metadata.independent_joints
    print(f"{', '.join(leg.coordinates.mimic_joints)} mimic others; independent: {', '.join(independent)}")

    q = lw.constraints.assemble(leg, [1.2, 0.9, 2.1, -0.9], hold=leg.metadata.independent_joints)
    print(f"degrees of freedom: {lw.constraints.degrees_of_freedom(leg, q)}, nv = {leg.nv}")
    print(f"a parallelogram: knee {q[1]:.6f} = lever - hip {q[2] - q[0]:.6f}")

    still = np.zeros(leg.nv)
    held = lw.inverse_dynamics(leg, q, still, still, actuated=leg.metadata.independent_joints)
    print(f"torques that hold it: {held[0] / GEAR:.4f} and {held[2] / GEAR:.4f} N m at the motors")

    motion = lw.simulate(leg, q, still, 1.0)
    print(
        f"released for 1 s: loop closed to {motion.constraint_error.max():.0e}, energy to {np.ptp(motion.energy):.0e} J"
    )
    model = lw.linearize(leg, q, tau=held)
    frequencies = np.sort(np.abs(model.eigenvalues()))[::2] / (2.0 * np.pi)
    print(f"linear model in {', '.join(model.independent)}: {frequencies[0]:.3f} and {frequencies[1]:.3f} Hz")

    lw.viewer.draw(leg, q, path=FOLDER / "loops_in_files.png")
    print(f"picture: {FOLDER / 'loops_in_files.png'}")


if __name__ == "__main__":
    main()
