"""Derivatives of forward dynamics of Talos on two feet against Pinocchio's ``computeConstraintDynamicsDerivatives``, in
one process, on one core, in float64.

Pinocchio is called per state, ``constraintDynamics`` first, as its derivatives need it; ours take a batch in one call.
The least of alternating rounds counts on both sides.  A ratio above 1 means that linkwise is faster.
"""

from __future__ import annotations

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that has threads is loaded

import numpy as np
import pinocchio as pin
from closed_peers import PinocchioPeer, states, talos

import linkwise as lw
from benchmarks.speed import cpu_name

BATCHES, ROUNDS, PEER_STATES = (64, 128, 256, 512), 80, 16


def main() -> None:
    lw.codegen.set_num_threads(1)
    mech, q = talos()
    q, v, tau = states(mech, q, max(BATCHES))
    peer = PinocchioPeer(mech)
    model, data = peer.model, peer.model.createData()
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in peer.loops:  # as contacts of one joint with the ground: derivatives of others change from call to call
        contact = pin.RigidConstraintModel(
            loop.type, model, loop.joint1_id, loop.joint1_placement, pin.ReferenceFrame.LOCAL
        )
        models.append(contact)
        datas.append(contact.createData())
    pin.initConstraintDynamics(model, data, models, datas)
    theirs = [
        [np.ascontiguousarray(row[order]) for row in array[:PEER_STATES]]
        for array, order in ((q, peer.q_order), (v, peer.v_order), (tau, peer.v_order))
    ]

    def pinocchio() -> None:
        for state in zip(*theirs, strict=True):
            pin.constraintDynamics(model, data, *state, models, datas)
            pin.computeConstraintDynamicsDerivatives(model, data, models, datas)

    begin = time.perf_counter()
    *_, by_tau = lw.forward_dynamics_derivatives(mech, q, v, tau)
    print(f"{cpu_name()}, Pinocchio {pin.__version__}; first call {time.perf_counter() - begin:.1f} s")
    pinocchio()
    own, other = by_tau[PEER_STATES - 1][np.ix_(peer.v_order, peer.v_order)], np.array(data.ddq_dtau)
    error = np.abs(own - other).max() / np.abs(other).max()
    if not error < 1e-8:
        raise SystemExit(f"the answers differ by {error:.1e} (relative)")
    for batch in BATCHES:
        ours, peers = [], []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            pinocchio()
            middle = time.perf_counter()
            lw.forward_dynamics_derivatives(mech, q[:batch], v[:batch], tau[:batch])
            peers.append((middle - begin) / PEER_STATES)
            ours.append((time.perf_counter() - middle) / batch)
        print(
            f"batch {batch:4}: {min(ours) * 1e6:6.2f} us a state, Pinocchio {min(peers) * 1e6:6.1f}, "
            f"RATIO {min(peers) / min(ours):.1f}"
        )


if __name__ == "__main__":
    main()
