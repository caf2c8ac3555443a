"""A mechanism in the files and coordinates of others: written as URDF and MJCF, read again, and computed by MuJoCo.

python examples/18_beside_other_libraries.py [folder for pictures]
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")


def main() -> None:
    warnings.simplefilter("ignore", lw.MechanismWarning)  # what formats cannot say, and names of composed joints
    mech = lw.mechanisms.random_tree(8, 1, joints=("revolute", "universal", "helical", "planar"), floating_base=True)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (50,))
    a = rng.normal(size=v.shape)
    tau = lw.inverse_dynamics(mech, q, v, a)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("urdf", "xml"):
            path = Path(folder) / f"mechanism.{ending}"
            mech.save(path)
            again = lw.load(path)
            there = lw.interop.to_mechanism(mech, again)
            found = lw.inverse_dynamics(again, *there.state(q, v), there.a(q, v, a))
            found = there.inverse.tau(there.q(q), found)
            print(f"{path.name}: nv={again.nv} of {again.n_links} links; torques differ by {_most(found - tau):.0e}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    platform = lw.load(lw.interop.mjcf_text(lw.mechanisms.stewart_platform()))  # its loops are equalities of the file
    lw.viewer.draw(
        platform, lw.constraints.assemble(platform, platform.initial), path=FOLDER / "platform_from_mjcf.png"
    )
    print(f"picture: {FOLDER / 'platform_from_mjcf.png'}")
    if importlib.util.find_spec("mujoco") is None:
        return
    import mujoco

    model = lw.interop.mujoco_model(mech)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    there, data = lw.interop.to_mujoco(mech, model), mujoco.MjData(model)
    found = []
    for qpos, qvel, qacc in zip(there.q(q), there.v(q, v), there.a(q, v, a), strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = qpos, qvel, qacc
        mujoco.mj_inverse(model, data)
        found.append(there.inverse.tau(qpos, data.qfrc_inverse))
    print(f"MuJoCo: nv={model.nv}; torques differ by {_most(np.array(found) - tau):.0e}")


def _most(differences: np.ndarray) -> float:
    return float(np.abs(differences).max())


if __name__ == "__main__":
    main()
