"""How far an arm sags under payloads that it knows nothing of: a study, its spread, and which number it is due to.

python examples/26_studies.py [folder for pictures]; needs pip install 'linkwise[cluster,plot]'
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise import studies as st

try:
    import xarray  # noqa: F401
    import zarr  # noqa: F401
except ImportError:
    sys.exit(print("this example needs xarray and Zarr: pip install 'linkwise[cluster]'"))

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
CASES, STEPS, DT = 2048, 200, 0.004


def sagging(arm: lw.Mechanism) -> st.Study:
    """The arm holds a posture by springs and dampers and the torques of the empty hand, and is given a payload."""
    posture = np.array([0.3, 0.6, -1.2, 0.0, 0.9, 0.0])
    hold = {"target": posture, "kp": [900, 900, 500, 100, 60, 20], "kd": [120, 150, 60, 8, 5, 1.5]}
    vary = {
        "payload.link6.mass": st.distributions.Triangular(0.0, 0.5, 2.5),
        "payload.link6.com": st.distributions.Normal([0.0, 0.0, 0.12], [0.03, 0.03, 0.02]),
        "mass": st.distributions.Relative(st.distributions.Normal(1.0, 0.02)),
        "q0": st.distributions.Normal(posture, 0.005),
    }
    compute = st.Rollout(DT, STEPS, every=10, tau=lw.gravity_force(arm, posture), feedback=hold, frames=["link6"])
    return st.Study(arm, compute, vary, cases=CASES, seed=1, sampling="sobol")


if __name__ == "__main__":
    arm = lw.mechanisms.puma560()
    study = sagging(arm)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "sagging.zarr"
        results = study.run(store=store)
        print(results)
        split = study.with_(chunk=1000).run()
        apart = max(np.abs(split[name] - results[name]).max() for name in results)
        print(f"the same in chunks of {study.cases_per_chunk} and 1000: off by {apart:.0e}")
        case = study.sample(7, 1).case(0)
        given = {"feedback": study.compute.feedback, "every": 10}
        alone, _ = lw.rollout(case.mechanism, case.q, None, study.compute.tau, DT, STEPS, **given)
        print(f"case 7 against a rollout of its own mechanism: {np.abs(alone - results['positions'][7]).max():.0e}")

        height = results["position.link6"][:, -1, 2]
        print(f"the hand ends between {height.min():.3f} and {height.max():.3f} m, median {np.median(height):.3f} m")
        indices = results.sensitivity("position.link6")["first"].isel(t=-1).sel(xyz="z")
        most = indices.to_series().nlargest(3)
        print("of its variance, " + ", ".join(f"{100 * part:.0f} % is due to {name}" for name, part in most.items()))
        for name, draw in (("spread", results.plot_quantiles), ("sensitivity", results.plot_sensitivity)):
            path = FOLDER / f"26_{name}.png"
            entries = ["joint2", "joint3", "joint5"]
            draw("positions", path, entries=entries)
            print(f"picture: {path}")
