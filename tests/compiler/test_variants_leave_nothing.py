"""Variants of a mechanism come and go: neither they nor anything that was computed for them stays in memory."""

from __future__ import annotations

import gc
import weakref
from collections import Counter

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from linkwise.compiler.runtime import llvm_loader
from linkwise.compiler.runtime.gufunc import owners_are_known

ARM, LOOP = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()
X = np.array([0.3, 0.4])
CLOSED = lw.constraints.assemble(LOOP, lw.neutral(LOOP))
REST = np.zeros(LOOP.nv)
MASS_TIMES = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T @ op.joint_vector("a")

VARIANTS = 4

USES = {
    "array functions": (ARM, lambda mech: lw.forward_dynamics(mech, X, X, X)),
    "float32": (ARM, lambda mech: lw.gravity_force(mech, np.float32(X))),
    "large batches": (ARM, lambda mech: lw.gravity_force(mech, np.zeros((300_000, 2)))),
    "rollouts": (ARM, lambda mech: lw.rollout(mech, X, X, None, 0.01, 2)),
    "motions": (ARM, lambda mech: lw.simulate(mech, X, X, 0.01, method="rk4", step=0.005)),
    "linear models": (ARM, lambda mech: lw.linearize(mech, X, X).modes()),
    "loops": (LOOP, lambda mech: lw.forward_dynamics(mech, CLOSED, REST, REST)),
    "expressions": (ARM, lambda mech: lw.compile(MASS_TIMES, mech)(X, X)),
    "plans": (ARM, lambda mech: lw.compile("mass_matrix", mech).plan()),
    "dense operators": (ARM, lambda mech: op.dense(op.H @ op.phi, mech, X)),
    "derivatives": (ARM, lambda mech: lw.jacobian_of(lw.compile("kinetic_energy", mech), "q")(X, X)),
}


@pytest.mark.skipif(not owners_are_known(), reason="ufuncs of this interpreter cannot own machine code")
@pytest.mark.parametrize("what", USES)
def test_variants_leave_nothing(what):
    mech, use = USES[what]

    def used(count):
        """Weak references to variants that have been used and dropped; then what there is, by type."""
        made = []
        for i in range(count):
            variant = mech.with_gravity((0.0, -9.0 - 0.01 * i, 0.0))
            use(variant)
            made.append(weakref.ref(variant))
        del variant
        gc.collect()
        return made, Counter(map(type, gc.get_objects())), len(llvm_loader._loaded)

    gc.freeze()  # what other tests left is not searched
    used(1)  # what is imported and cached once
    _, objects, loaded = used(1)
    made, objects_after, loaded_after = used(VARIANTS)
    assert all(variant() is None for variant in made)
    assert loaded_after <= loaded
    del objects_after[weakref.ref]  # those above
    assert not {kind: more for kind, more in (objects_after - objects).items() if more >= VARIANTS}
