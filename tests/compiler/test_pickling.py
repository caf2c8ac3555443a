"""Kernels, mechanisms and what functions return can be pickled, and work in processes that are forked or spawned."""

from __future__ import annotations

import multiprocessing
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

MECH = lw.mechanisms.random_tree(4, 2, joints=("revolute", "spherical"), floating_base=True)
EXPRESSION = op.H @ op.phi @ op.M @ op.phi.T @ op.H.T


def states(count: int) -> tuple[np.ndarray, np.ndarray]:
    return lw.random_state(MECH, np.random.default_rng(0), (count,))


@pytest.mark.parametrize(
    "make",
    [
        lambda: lw.compile("forward_dynamics", MECH),
        lambda: lw.compile(lw.mass_matrix, MECH, dtype="float32"),
        lambda: lw.compile("jacobian", MECH, link=MECH.link_names[-1], frame="world"),
        lambda: lw.compile(EXPRESSION, MECH),
        lambda: lw.compile("gravity_force", MECH, parameters=("mass",)),
        lambda: lw.jacobian_of(lw.compile("gravity_force", MECH), "q"),
        lambda: lw.vjp_of(lw.compile("gravity_force", MECH), "q"),
        lambda: lw.jvp_of(lw.compile("gravity_force", MECH), "q"),
        lambda: lw.motion.step_kernel(MECH, 0.01, inputs=["feedback"]),
    ],
    ids=["name", "function", "options", "expression", "parameters", "jacobian", "vjp", "jvp", "step"],
)
def test_kernels(make):
    kernel = make()
    again = pickle.loads(pickle.dumps(kernel))
    assert (again.name, again.inputs, again.dtype, again.target) == (
        kernel.name,
        kernel.inputs,
        kernel.dtype,
        kernel.target,
    )
    rng = np.random.default_rng(1)
    shapes = kernel.input_shapes.items()
    arrays = [lw.neutral(MECH) if name == "q" else rng.uniform(0.5, 1.0, shape) for name, shape in shapes]
    arrays = [x.astype(kernel.dtype) for x in arrays]
    np.testing.assert_array_equal(again(*arrays), kernel(*arrays))


def test_a_kernel_of_a_local_algorithm_is_refused():
    own = lw.extend.Algorithm("own", ("q",), "result", lambda tree, q: [q[0]], reason="a test", sizes={"result": (1,)})
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(lw.compile(own, MECH))


def test_results():
    """What functions return, and what they are given."""
    arm = lw.mechanisms.planar_arm(2).with_elements(lw.forces.Actuator("motor", "joint1"))
    model = lw.interop.to_mechanism(arm, arm)
    found = [
        arm,
        lw.simulate(arm, None, None, 0.01),
        lw.linearize(arm),
        lw.find_equilibrium(arm),
        lw.forces.Passive.springs({"joint1": 3.0}),
        lw.control.joint_feedback(arm, [0.0, 0.0], 3.0),
        lw.motion.held(np.add, 0.1),
        lw.constraints.Loop("pin", lw.Revolute(), "link1", None, "link2", None),
        EXPRESSION,
        model,
    ]
    for one in found:
        again = pickle.loads(pickle.dumps(one))
        assert type(again) is type(one)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).q([0.1, 0.2]), [0.1, 0.2])


def reference(t):
    return np.array([t, -t])


def first_angle(q, y):
    return [q[0] - y[0]]


def test_controllers_and_coordinates_of_functions():
    """What holds functions of the user, which can be pickled where they are named."""
    arm, linkage = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()
    control = lw.control.computed_torque(arm, reference)
    again, state = pickle.loads(pickle.dumps(control)), (np.array([0.1, 0.2]), np.zeros(2))
    np.testing.assert_allclose(again(0.3, *state), control(0.3, *state), rtol=1e-12)
    q = lw.constraints.assemble(linkage, linkage.initial)
    for coordinates in (["crank_joint"], lw.kinematics.implicit_coordinates(linkage, first_angle, [q[0]])):
        chart = lw.kinematics.local_parametrization(linkage, q, coordinates)
        y = chart.coordinates.value(q) + 0.01
        copy = pickle.loads(pickle.dumps(chart))
        np.testing.assert_allclose(copy.configuration(y), chart.configuration(y), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["spawn", "fork"])
def test_processes(how):
    kernel, (q, v) = lw.compile("bias_force", MECH), states(4)
    with multiprocessing.get_context(how).Pool(2) as pool:
        found = pool.starmap(kernel, zip(q, v, strict=True))
    np.testing.assert_array_equal(found, [kernel(*state) for state in zip(q, v, strict=True)])


@pytest.mark.slow
def test_joblib():
    """Kernels, and functions of a mechanism, in processes of their own."""
    joblib = pytest.importorskip("joblib")
    kernel, (q, v) = lw.compile("bias_force", MECH), states(4)
    with joblib.Parallel(n_jobs=2) as parallel:
        found = parallel(joblib.delayed(kernel)(*state) for state in zip(q, v, strict=True))
        others = parallel(joblib.delayed(lw.bias_force)(MECH, *state) for state in zip(q, v, strict=True))
    expected = [kernel(*state) for state in zip(q, v, strict=True)]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(others, expected, rtol=1e-12)


@pytest.mark.slow
def test_ray():
    """Where it is installed: remote functions take kernels and mechanisms."""
    ray = pytest.importorskip("ray")
    kernel, (q, v) = lw.compile("bias_force", MECH), states(2)
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": "."}})
    try:
        remote = ray.remote(lambda function, *state: function(*state))
        found = ray.get([remote.remote(kernel, *state) for state in zip(q, v, strict=True)])
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(found, [kernel(*state) for state in zip(q, v, strict=True)])


def test_dask():
    """Kernels are generalized ufuncs for ``dask.array``, and tasks of their own."""
    array = pytest.importorskip("dask.array")
    kernel, (q, v) = lw.compile("bias_force", MECH), states(8)
    lazy = [array.from_array(x, chunks=(3, -1)) for x in (q, v)]
    found = array.apply_gufunc(kernel, "(i),(j)->(j)", *lazy, output_dtypes=float)
    np.testing.assert_array_equal(found.compute(scheduler="synchronous"), kernel(q, v))
