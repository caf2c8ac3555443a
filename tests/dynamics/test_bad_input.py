"""Wrong input at the array functions and ``compile``: a table of calls, each with its error and part of the message.

Files and mechanisms that are wrong in themselves are in tests/readers and tests/mechanism; input that is unusual and
has a defined result is in test_borderline_input.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

ARM = lw.mechanisms.chain(3)
BASE = lw.mechanisms.random_tree(2, 0, joints=("revolute",), floating_base=True)
STILL = lw.Builder().link("pole", 1.0).joint("weld", lw.Fixed(), "ground", "pole").build("still")
LOOP = (
    lw.Builder()
    .link("crank", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    .link("rod", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    .joint("pivot", lw.Revolute((0.0, 1.0, 0.0)), "ground", "crank")
    .joint("pin", lw.Revolute((0.0, 1.0, 0.0)), "crank", "rod")
    .loop("slot", lw.Revolute((0.0, 1.0, 0.0)), "rod", None, "ground", (None, (0.1, 0.0, 0.0)))
    .build("four_bar")
)
Z = np.zeros(3)
Z.flags.writeable = False  # no call may write to its arguments
X = np.array([0.3, -0.2, 0.5])
X.flags.writeable = False


def massless() -> lw.Mechanism:
    """A mechanism whose last joint moves nothing with inertia."""
    builder = lw.Builder().link("arm", 1.0, (0.0, 0.0, 0.5)).link("flag")
    builder.joint("shoulder", lw.Revolute((0.0, 1.0, 0.0)), "ground", "arm")
    builder.joint("hinge", lw.Revolute((1.0, 0.0, 0.0)), "arm", "flag")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return builder.build("flagpole", strict=False)


def read_only() -> np.ndarray:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


def inverse(**options) -> lw.Kernel:
    return lw.compile("inverse_dynamics", ARM, **options)


def single(array) -> np.ndarray:
    return np.asarray(array, dtype=np.float32)


# what is wrong: (call, error, fragment of its message)
REFUSED = {
    # shapes
    "q too short": (
        lambda: lw.inverse_dynamics(ARM, Z[:2], Z, Z),
        lw.KernelError,
        r"q has shape \(2,\), expected \(..., 3\)",
    ),
    "v is a number": (
        lambda: lw.inverse_dynamics(ARM, Z, 1.0, Z),
        lw.KernelError,
        r"v has shape \(\), expected \(..., 3\)",
    ),
    "states along columns": (
        lambda: lw.inverse_dynamics(ARM, Z, Z, np.zeros((3, 2))),
        lw.KernelError,
        r"a has shape \(3, 2\), expected \(..., 3\)",
    ),
    "q of a floating base without its quaternion": (
        lambda: lw.mass_matrix(BASE, np.zeros(7)),
        lw.KernelError,
        r"q has shape \(7,\), expected \(..., 8\)",
    ),
    "batches that do not broadcast": (
        lambda: lw.inverse_dynamics(ARM, np.zeros((2, 3)), np.zeros((5, 3)), Z),
        lw.KernelError,
        r"batch shapes do not broadcast: q \(2,\), v \(5,\), a \(\)",
    ),
    "wrenches for too few links": (
        lambda: lw.inverse_dynamics(ARM, Z, Z, Z, np.zeros((2, 6))),
        lw.KernelError,
        r"wrenches has shape \(2, 6\), expected \(..., 3, 6\)",
    ),
    "wrenches flattened": (
        lambda: lw.forward_dynamics(ARM, Z, Z, Z, np.zeros(18)),
        lw.KernelError,
        r"wrenches has shape \(18,\), expected \(..., 3, 6\)",
    ),
    "coordinates for a mechanism without joints": (
        lambda: lw.inverse_dynamics(STILL, [1.0], [], []),
        lw.KernelError,
        r"q has shape \(1,\), expected \(..., 0\)",
    ),
    "masked arrays": (
        lambda: lw.inverse_dynamics(BASE, np.ma.array(lw.neutral(BASE)), np.zeros(BASE.nv), np.zeros(BASE.nv)),
        lw.KernelError,
        r"q is a masked array: give its numbers with .filled\(value\)",
    ),
    "ragged lists": (lambda: lw.inverse_dynamics(ARM, [1, [2, 3]], Z, Z), lw.KernelError, "q is no array"),
    "an empty list": (lambda: lw.gravity_force(ARM, []), lw.KernelError, r"q has shape \(0,\), expected \(..., 3\)"),
    # types of numbers
    "complex": (
        lambda: lw.inverse_dynamics(ARM, Z + 0j, Z, Z),
        lw.KernelError,
        "q has dtype complex128, but real numbers",
    ),
    "text": (
        lambda: lw.inverse_dynamics(ARM, Z, ["a", "b", "c"], Z),
        lw.KernelError,
        "v has dtype <U1, but real numbers",
    ),
    "None": (lambda: lw.bias_force(ARM, Z, None), lw.KernelError, "v is missing: it is None, and must be"),
    "objects": (lambda: lw.mass_matrix(ARM, Z.astype(object)), lw.KernelError, "q has dtype object, but real numbers"),
    "dates": (
        lambda: lw.mass_matrix(ARM, np.zeros(3, "M8[D]")),
        lw.KernelError,
        r"q has dtype datetime64\[D\], but real numbers",
    ),
    "more digits than float64": (
        lambda: lw.mass_matrix(ARM, Z.astype(np.longdouble)),
        lw.KernelError,
        "real numbers that float64 can hold",
    ),
    "a time step of text": (lambda: lw.integrate(ARM, Z, Z, "1"), lw.KernelError, "dt has dtype <U1"),
    "float64 for a float32 kernel": (
        lambda: inverse(dtype="float32")(Z, single(Z), single(Z)),
        lw.KernelError,
        r"q has dtype float64: convert it with np.asarray\(x, np.float32\)",
    ),
    "a list for a float32 kernel": (
        lambda: inverse(dtype="float32")([0.0] * 3, single(Z), single(Z)),
        lw.KernelError,
        r"q has dtype float64: convert it with np.asarray\(x, np.float32\)",
    ),
    "text for a float32 kernel": (
        lambda: inverse(dtype="float32")(["a"] * 3, single(Z), single(Z)),
        lw.KernelError,
        "q has dtype <U1",
    ),
    # numbers of arguments
    "an array too few": (
        lambda: inverse()(Z, Z),
        lw.KernelError,
        r"inverse_dynamics takes 3 arrays \(q \(3,\), v \(3,\), a \(3,\)\), 2 were given",
    ),
    "an array too many": (lambda: inverse()(Z, Z, Z, np.zeros(3)), lw.KernelError, "takes 3 arrays .* 4 were given"),
    "an array too many, in a batch": (
        lambda: inverse()(np.zeros((9, 3)), Z, Z, np.zeros((9, 3))),
        lw.KernelError,
        "takes 3 arrays .* 4 were given",
    ),
    "an array too few on NumPy": (
        lambda: inverse(target="numpy")(Z, Z),
        lw.KernelError,
        "takes 3 arrays .* 2 were given",
    ),
    "no arrays": (lambda: inverse()(), lw.KernelError, "takes 3 arrays .* 0 were given"),
    "arrays by keyword": (lambda: inverse()(Z, Z, a=Z), TypeError, "'a'"),
    # outputs
    "out of the wrong length": (
        lambda: inverse()(Z, Z, Z, out=np.zeros(4)),
        lw.KernelError,
        r"out has shape \(4,\); a writable array of shape \(3,\) and dtype float64 is needed",
    ),
    "out of another batch": (
        lambda: inverse()(np.zeros((4, 3)), Z, Z, out=np.zeros((5, 3))),
        lw.KernelError,
        r"out has shape \(5, 3\); a writable array of shape \(4, 3\)",
    ),
    "out without the batch": (
        lambda: inverse()(np.zeros((4, 3)), Z, Z, out=np.zeros(3)),
        lw.KernelError,
        r"out has shape \(3,\); a writable array of shape \(4, 3\)",
    ),
    "out of integers": (
        lambda: inverse()(Z, Z, Z, out=np.zeros(3, int)),
        lw.KernelError,
        "out has dtype int64; a writable array .* dtype float64 is needed",
    ),
    "out is read-only": (
        lambda: inverse()(Z, Z, Z, out=read_only()),
        lw.KernelError,
        r"out is read-only; a writable array of shape \(3,\) and dtype float64 is needed",
    ),
    "out is a list": (lambda: inverse()(Z, Z, Z, out=[0.0] * 3), lw.KernelError, "out is no array but a list"),
    "out on NumPy of the wrong length": (
        lambda: inverse(target="numpy")(Z, Z, Z, out=np.zeros(4)),
        lw.KernelError,
        r"out has shape \(4,\)",
    ),
    # mechanisms
    "a file name for a mechanism": (
        lambda: lw.inverse_dynamics("ur5.urdf", Z, Z, Z),
        TypeError,
        "a Mechanism is needed, got str: make one with linkwise.load",
    ),
    "None for a mechanism": (lambda: lw.mass_matrix(None, Z), TypeError, "a Mechanism is needed, got NoneType"),
    "arguments swapped": (lambda: lw.mass_matrix(Z, ARM), TypeError, "a Mechanism is needed, got ndarray"),
    "None for a mechanism to compile for": (
        lambda: lw.compile("mass_matrix", None),
        TypeError,
        "a Mechanism is needed",
    ),
    "neutral of nothing": (lambda: lw.neutral({}), TypeError, "a Mechanism is needed, got dict"),
    "accelerations that open loops": (
        lambda: lw.inverse_dynamics(LOOP, Z[:2], Z[:2], X[:2]),
        lw.MechanismError,
        "the accelerations violate the constraints of loop 'slot' of mechanism 'four_bar'",
    ),
    "loops in the inverse of the mass matrix": (
        lambda: lw.mass_matrix_inverse(LOOP, Z[:2]),
        lw.MechanismError,
        "mass_matrix_inverse would ignore the loops .* mech.spanning_tree",
    ),
    "a joint without inertia": (
        lambda: lw.forward_dynamics(massless(), Z[:2], Z[:2], Z[:2]),
        lw.MechanismError,
        "nothing with inertia moves with joint 'hinge'.*armature, or make it fixed",
    ),
    "a joint without inertia, inverted": (
        lambda: lw.mass_matrix_inverse(massless(), Z[:2]),
        lw.MechanismError,
        "joint 'hinge'",
    ),
    "too few degrees of freedom": (
        lambda: lw.control.operational_inertia(ARM, Z, "link3"),
        lw.MechanismError,
        "'link3' moves with only 3 degrees of freedom.* 6 are needed",
    ),
    "no degrees of freedom": (
        lambda: lw.control.operational_inertia(ARM, Z, "ground"),
        lw.MechanismError,
        "'ground' moves with only 0 degrees of freedom",
    ),
    "centre of no mass": (lambda: lw.center_of_mass(STILL, []), lw.MechanismError, "mass"),
    # names
    "unknown link": (
        lambda: lw.jacobian(ARM, Z, "link33"),
        lw.MechanismError,
        "no link or frame 'link33': did you mean 'link3'",
    ),
    "unknown frame": (
        lambda: lw.frame_pose(ARM, Z, "tool"),
        lw.MechanismError,
        "no link or frame 'tool': known: 'ground', 'link1'",
    ),
    "a number for a link": (lambda: lw.jacobian(ARM, Z, 3), TypeError, "named by a string, got 3"),
    "unknown axes": (
        lambda: lw.jacobian(ARM, Z, "link3", frame="wrld"),
        ValueError,
        "'link', 'world' or 'world_aligned', got 'wrld'",
    ),
    "unknown algorithm": (
        lambda: lw.compile("inverse_dynamic", ARM),
        ValueError,
        "unknown algorithm 'inverse_dynamic': did you mean 'inverse_dynamics'",
    ),
    "a foreign function": (
        lambda: lw.compile(np.sin, ARM),
        ValueError,
        "sin is no function of linkwise, and only those are compiled: available: inverse_dynamics, .*",
    ),
    "compile with swapped arguments": (lambda: lw.compile(ARM, "mass_matrix"), (TypeError, ValueError), "algorithm"),
    "unknown target": (lambda: inverse(target="cpus"), ValueError, "unknown target 'cpus': did you mean 'cpu'"),
    "the graphics card by another name": (
        lambda: inverse(target="gpu"),
        ValueError,
        r"unknown target 'gpu': did you mean 'cuda'\?$",
    ),
    "unknown dtype": (
        lambda: inverse(dtype="float16"),
        ValueError,
        "unknown dtype 'float16': did you mean 'float64' or 'float32'",
    ),
    "dtype of integers": (lambda: inverse(dtype=int), ValueError, "unknown dtype .*int.*: known: 'float64', 'float32'"),
    "unknown parameter": (
        lambda: inverse(parameters=("masses",)),
        ValueError,
        "unknown parameter 'masses': did you mean 'mass'",
    ),
    "parameter of an unknown link": (
        lambda: inverse(parameters=("link9.mass",)),
        ValueError,
        "unknown moving link 'link9': did you mean 'link3'",
    ),
    "parameter of a welded frame": (
        lambda: lw.compile("gravity_force", ARM.with_frame("tool", "link3"), parameters=("tool.mass",)),
        ValueError,
        "'tool' of mechanism .* is welded to 'link3': name that moving link",
    ),
    "unknown parameter of a link": (
        lambda: inverse(parameters=("link1.mas",)),
        ValueError,
        "of 'link1' 'mas': did you mean 'mass'",
    ),
    "a parameter twice": (
        lambda: inverse(parameters=("mass", "link1.mass")),
        ValueError,
        "'link1.mass' repeats numbers",
    ),
    "a parameter of the wrong shape": (
        lambda: inverse(parameters=("mass",))(Z, Z, Z, [1.0, 2.0]),
        lw.KernelError,
        r"mass has shape \(2,\), expected \(..., 3\)",
    ),
    "unknown option": (
        lambda: lw.compile("jacobian", ARM, lnk="link1"),
        ValueError,
        "unknown option of jacobian 'lnk': did you mean 'link'",
    ),
    "an option of another algorithm": (
        lambda: inverse(link="link1"),
        ValueError,
        "unknown option of inverse_dynamics 'link'",
    ),
    "an option missing": (
        lambda: lw.compile("jacobian", ARM),
        TypeError,
        "jacobian needs 'link': pass link=... to compile",
    ),
    "unknown language": (
        lambda: inverse().source("fortran"),
        ValueError,
        "unknown language 'fortran': known: 'llvm', 'c', 'cuda'",
    ),
    "unknown stage": (lambda: inverse().ir("early"), ValueError, "'traced' or 'optimized', got 'early'"),
    "a link for a joint": (
        lambda: ARM.q_index("link3"),
        lw.MechanismError,
        "no moving joint 'link3': that is a link, which joint 'joint3' moves; give the name of a joint",
    ),
    "a welded link for a joint": (
        lambda: lw.mechanisms.planar_arm(2).v_index("tip"),
        lw.MechanismError,
        "no moving joint 'tip': that is a link, which joint 'joint2' moves",
    ),
    "the ground for a joint": (
        lambda: ARM.body_index("ground"),
        lw.MechanismError,
        "no moving joint 'ground': that is a link, which no joint moves",
    ),
    # the rest
    "no number of threads": (
        lambda: lw.codegen.set_num_threads(None),
        ValueError,
        "positive integer, at most 1024, not None",
    ),
    "a million threads": (lambda: lw.codegen.set_num_threads(10**6), ValueError, "at most 1024, not 1000000"),
    "half a thread": (lambda: lw.codegen.set_num_threads(0.5), ValueError, "positive integer, at most 1024, not 0.5"),
    "a seed for a generator": (
        lambda: lw.random_state(ARM, 0),
        TypeError,
        r"numpy.random.Generator such as np.random.default_rng\(0\), got 0",
    ),
    "an old generator": (lambda: lw.random_state(ARM, np.random.RandomState(0)), TypeError, "numpy.random.Generator"),
    "a negative number of states": (
        lambda: lw.random_state(ARM, np.random.default_rng(0), (-1,)),
        ValueError,
        "negative",
    ),
    "gravity in a plane": (
        lambda: ARM.with_gravity((0.0, -9.81)),
        lw.MechanismError,
        r"gravity must have shape \(3,\), not \(2,\)",
    ),
    "gravity that is not finite": (lambda: ARM.with_gravity((0.0, 0.0, np.nan)), lw.MechanismError, "gravity"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, error, fragment = REFUSED[case]
    with pytest.raises(error, match=fragment):
        call()


@pytest.mark.parametrize("shortcut", [True, False])
def test_masked_arrays_are_refused(shortcut):
    """NumPy would compute with the numbers behind the mask."""
    masked = np.ma.masked_array(np.zeros(6), mask=[1, 0, 0, 0, 0, 0])
    one, arm = np.ones(6), lw.mechanisms.puma560()
    before = lw.codegen.get_single_call_shortcut()
    lw.codegen.set_single_call_shortcut(shortcut)
    try:
        for call in (
            lambda: lw.forward_dynamics(arm, np.zeros(6), masked, one),
            lambda: lw.mass_matrix(arm, masked),
            lambda: lw.frame_pose(arm, masked, "link3"),
            lambda: lw.forward_dynamics_derivatives(arm, masked, one, one),
            lambda: lw.compile("mass_matrix", arm)(np.ma.masked_array(np.zeros((3, 6)))),
        ):
            with pytest.raises(lw.KernelError, match="is a masked array: give its numbers with .filled"):
                call()
    finally:
        lw.codegen.set_single_call_shortcut(before)


PUMA = lw.mechanisms.puma560()


def masked(shape, value=0.1):
    """Numbers of which one is masked."""
    values = np.full(shape, value)
    return np.ma.masked_array(values, mask=np.arange(values.size).reshape(shape) == 1)


AT, REST, TARGET = np.full(6, 0.1), np.zeros(6), np.eye(4)
MASKED_CALLS = {
    "q of rollout": lambda: lw.rollout(PUMA, masked(6), REST, None, 1e-3, 2),
    "v of rollout": lambda: lw.rollout(PUMA, AT, masked((3, 6)), None, 1e-3, 2),
    "tau of rollout": lambda: lw.rollout(PUMA, AT, REST, masked((2, 6)), 1e-3, 2),
    "wrenches of rollout": lambda: lw.rollout(PUMA, AT, REST, None, 1e-3, 2, wrenches=masked((6, 6))),
    "target of rollout": lambda: lw.rollout(PUMA, AT, REST, None, 1e-3, 2, feedback={"target": masked(6), "kp": 1.0}),
    "mass of rollout": lambda: lw.rollout(PUMA, AT, REST, None, 1e-3, 2, parameters={"mass": masked(6, 1.0)}),
    "q of held rollout": lambda: lw.rollout(
        PUMA, masked(6), REST, lw.motion.held(lambda t, q, v: 0 * v, 1e-3), 1e-3, 2
    ),
    "q0 of simulate": lambda: lw.simulate(PUMA, masked(6), REST, 0.01),
    "v0 of simulate": lambda: lw.simulate(PUMA, AT, masked(6), 0.01),
    "t_eval of simulate": lambda: lw.simulate(PUMA, AT, REST, 0.01, t_eval=masked(3)),
    "controller": lambda: lw.simulate(PUMA, AT, REST, 0.01, lambda t, q, v: masked(6)),
    "held controller": lambda: lw.rollout(PUMA, AT, REST, lw.motion.held(lambda t, q, v: masked(6), 1e-3), 1e-3, 2),
    "q of linearize": lambda: lw.linearize(PUMA, masked(6)),
    "tau of linearize": lambda: lw.linearize(PUMA, AT, REST, masked(6)),
    "q of find_equilibrium": lambda: lw.find_equilibrium(PUMA, masked(6)),
    "target of inverse_kinematics": lambda: lw.inverse_kinematics(PUMA, {"link6": masked((4, 4))}, AT),
    "q0 of inverse_kinematics": lambda: lw.inverse_kinematics(PUMA, {"link6": TARGET}, masked(6)),
    "q of assemble": lambda: lw.constraints.assemble(lw.mechanisms.four_bar(), masked(3)),
    "waypoints": lambda: lw.trajectories.spline(PUMA, masked((3, 6))),
    "target of joint_feedback": lambda: lw.control.joint_feedback(PUMA, masked(6), 1.0, 1.0),
    "a kernel": lambda: lw.compile("mass_matrix", PUMA)(masked((2, 6))),
    "numpy target": lambda: lw.compile("mass_matrix", PUMA, target="numpy")(masked((2, 6))),
    "rotations": lambda: lw.kinematics.so3.exp(masked(3)),
}


@pytest.mark.parametrize("name", MASKED_CALLS)
def test_masked_arrays_are_refused_wherever_arrays_are_taken(name):
    """NumPy would compute with what is masked.  All say so in the same words, after the name of the array."""
    with pytest.raises(
        ValueError, match=r"[\w'] (array that )?is a masked array: give its numbers with .filled\(value\)"
    ):
        MASKED_CALLS[name]()


def test_masked_arrays_are_refused_by_edits():
    with pytest.raises(lw.MechanismError, match="gravity must be numbers"):
        PUMA.with_gravity(masked(3))
    with pytest.raises(lw.MechanismError, match="numbers of shape"):
        PUMA.with_payload("link6", 1.0, masked(3))
