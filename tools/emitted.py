"""Emitted code of every algorithm on many mechanisms, before and after a change: what is the same, what costs less.

python -m tools.emitted save FILE          operation counts and digests of the emitted C
python -m tools.emitted compare OLD NEW    what differs between two such files

A change that is meant to change nothing is shown to do so: run ``save`` before it and after it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import linkwise as lw

KINDS = lw.mechanisms.MOVING_KINDS
MIMIC = """<robot name="gripper"><link name="base"/>
<link name="palm"><inertial><mass value="1.5"/><origin xyz="0 0.02 0.1"/>
  <inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0.001" ixz="0" iyz="0.002"/></inertial></link>
<link name="left"><inertial><mass value="0.4"/><origin xyz="0.05 0 0.02"/>
  <inertia ixx="0.002" iyy="0.003" izz="0.001" ixy="0" ixz="0.0001" iyz="0"/></inertial></link>
<link name="right"><inertial><mass value="0.5"/><origin xyz="0.05 0.01 0.02"/>
  <inertia ixx="0.002" iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="wrist" type="revolute"><parent link="base"/><child link="palm"/><axis xyz="0 1 0"/>
  <limit effort="1" velocity="1" lower="-1" upper="1"/></joint>
<joint name="open" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>
  <origin xyz="0 0.1 0.2" rpy="0.3 0 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/></joint>
<joint name="follow" type="revolute"><parent link="palm"/><child link="right"/><axis xyz="0 0 1"/>
  <origin xyz="0 -0.1 0.2" rpy="0 0.2 0.4"/><mimic joint="open" multiplier="-1.5" offset="0.1"/>
  <limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>"""


def _robot(path: str, **options: Any) -> lw.Mechanism:
    import pinocchio  # installed beside example-robot-data, under one prefix

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(Path(pinocchio.__file__).parents[4] / "share/example-robot-data/robots" / path, **options)


MECHANISMS = {
    "ur5": lambda: _robot("ur_description/urdf/ur5_robot.urdf"),
    "z1": lambda: _robot("z1_description/urdf/z1.urdf"),
    "talos": lambda: _robot("talos_data/robots/talos_reduced.urdf", floating_base=True),
    "puma560": lw.mechanisms.puma560,
    "planar_arm": lambda: lw.mechanisms.planar_arm(6),
    "chain_20": lambda: lw.mechanisms.chain(20),
    **{kind: lambda kind=kind: lw.mechanisms.random_tree(5, 3, joints=(kind,)) for kind in KINDS},
    **{f"tree_{seed}": lambda seed=seed: lw.mechanisms.random_tree(12, seed) for seed in range(4)},
    "floating_tree": lambda: lw.mechanisms.random_tree(10, 4, joints=(*KINDS, "fixed"), floating_base=True),
    "mimic": lambda: lw.load(MIMIC),
    "mimic_floating": lambda: lw.load(MIMIC, floating_base=True),
    "five_bar": lw.mechanisms.five_bar,
    "loader": lw.mechanisms.loader,
}
#: Long programs, left out on large mechanisms: derivatives of the rest show what there is to see.
LONG = ("second_derivatives", "mass_matrix_derivatives", "factor_derivatives", "_step")
METHODS = ("filter_and_smoother", "bias_free", "biased", "without_dalembert_forces", "composite_bodies")


def _variants(name: str, mech: lw.Mechanism) -> Iterator[dict[str, Any]]:
    """The options with which an algorithm is compiled."""
    link = mech.link_names[-1]
    if name.startswith(("jacobian",)):
        yield from ({"link": link, "frame": frame} for frame in ("link", "world", "world_aligned"))
    elif name == "frame_acceleration":
        observers = ("link", "world", "world_aligned")
        yield from ({"link": link, "frame": f, "classical": c} for f in observers for c in (False, True))
    elif name in ("frame_velocity", "effective_inertia"):
        yield from ({"link": link, "frame": frame} for frame in ("link", "world", "world_aligned"))
    elif name == "manipulability":
        yield from ({"link": link, "rows": rows} for rows in ((3,), (3, 4, 5), tuple(range(6))))
    elif name in ("frame_pose", "operational_inertia"):
        yield {"link": link}
    elif name.startswith("diagonal_"):
        yield from ({"normalized": choice} for choice in (True, False))
    elif name in ("forward_dynamics", "forward_dynamics_with_wrenches"):
        yield from ({}, *({"method": method} for method in METHODS))
    else:
        yield {}


def snapshot() -> dict[str, Any]:
    """By mechanism, algorithm and options: operations, sweeps and digests of the emitted C; or why it was refused."""
    try:
        from linkwise.mechanics.algorithms.catalogue import variants

        algorithms = {algorithm.name: algorithm for algorithm in variants()}
    except ImportError:  # before version 0.2
        from linkwise.mechanics.algorithms.catalogue import ALGORITHMS as algorithms  # type: ignore[no-redef]
    found: dict[str, Any] = {}
    for where, make in MECHANISMS.items():
        mech = make()
        for name, algorithm in algorithms.items():
            if mech.nv > 12 and any(part in name for part in LONG):
                continue
            for options in _variants(name, mech):
                key = f"{where} {name} " + ",".join(f"{k}={v}" for k, v in options.items())
                try:
                    kernel = lw.compile(algorithm, mech, target="numpy", **options)
                except (ValueError, TypeError) as error:
                    found[key] = {"refused": type(error).__name__}
                    continue
                source = kernel.source("c")
                plain = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.S)
                plain = "\n".join(line.strip() for line in plain.splitlines() if line.strip())
                found[key] = {
                    "counts": kernel.op_counts,
                    "code": hashlib.sha256(plain.encode()).hexdigest()[:16],
                    "text": hashlib.sha256(source.encode()).hexdigest()[:16],
                    "sweeps": [direction for direction, _ in kernel.sweeps],
                }
        print(where, len(found), file=sys.stderr, flush=True)
    return found


def compare(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What differs, and a summary."""
    outcome: Counter[str] = Counter()
    for key, before in old.items():
        after = new.get(key)
        if after is None:
            outcome["gone"] += 1
            yield f"gone: {key}"
        elif "refused" in before or "refused" in after:
            same = ("refused" in before) == ("refused" in after)
            what = "refused in both" if same else "refused before" if "refused" in before else "REFUSED NOW"
            outcome[what] += 1
            if not same:
                yield f"{what}: {key}"
        else:
            operations = [sum(entry["counts"].values()) for entry in (before, after)]
            if before["code"] == after["code"]:
                outcome["same text" if before["text"] == after["text"] else "same code, other comments"] += 1
            else:
                size = (operations[1] > operations[0]) - (operations[1] < operations[0])
                what = {0: "other code, same count", -1: "fewer operations", 1: "MORE OPERATIONS"}[size]
                outcome[what] += 1
                yield f"{what}: {key} {operations[0]} -> {operations[1]}"
    outcome["new"] += sum(key not in old for key in new)
    yield "; ".join(f"{what}: {count}" for what, count in outcome.items())


def main(arguments: list[str]) -> None:
    match arguments:
        case ["save", path]:
            Path(path).write_text(json.dumps(snapshot(), indent=1))
        case ["compare", old, new]:
            print("\n".join(compare(*(json.loads(Path(path).read_text()) for path in (old, new)))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
