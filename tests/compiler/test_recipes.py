"""Programs by recipe: nothing that a program depends on is left out of its recipe, and what is kept on disk is used."""

import copy
import dataclasses
import json
import os
import pickle
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import recipes
from linkwise.compiler.ir.program import Program
from linkwise.compiler.runtime import cache
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS, register_integrator, variants
from linkwise.mechanics.registered import REGISTERED
from linkwise.mechanism.drives import Drive
from tests.acting_arm import ARM
from tools.walk import walk

PACKAGE = Path(lw.__file__).parent


@pytest.fixture(autouse=True)
def no_recipes_of_changed_code():
    """Here they are used."""


def digest(value):
    return recipes._Digests().encode(value)


# -- recipes are complete ---------------------------------------------------------------------------------


def everything():
    """A mechanism with a part of every kind."""
    b = lw.Builder("everything")
    kinds = [
        lw.Revolute((0.0, 0.0, 1.0)),
        lw.Prismatic((1.0, 0.0, 0.0)),
        lw.Helical((0.0, 1.0, 0.0), 0.1),
        lw.Spherical(),
        lw.Universal(),
        lw.Planar(),
        lw.Floating(),
    ]
    parent = "ground"
    for k, kind in enumerate(kinds):
        b.link(f"l{k}", mass=1.0 + k, com=(0.1, 0.2, 0.3), inertia=np.diag((1.0, 1.1, 1.2)))
        b.joint(f"j{k}", kind, parent, f"l{k}", lw.pose((0.1 * k, 0.2, 0.3), rpy=(0.1, 0.2, 0.3)))
        parent = f"l{k}"
    return ARM, b.build()


def leaves(value, path=(), depth=0):
    """All numbers, words and flags in a value, as paths of fields and places."""
    if isinstance(value, np.ndarray):
        yield from (((*path, index), value[index]) for index in np.ndindex(value.shape))
    elif isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        for k, one in enumerate(value):
            yield from leaves(one, (*path, k), depth + 1)
    elif isinstance(value, tuple):
        for name, one in zip(value._fields, value, strict=True):
            yield from leaves(one, (*path, name), depth + 1)
    elif hasattr(value, "items"):
        for name, one in value.items():
            yield from leaves(one, (*path, name), depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if not field.name.startswith("_"):
                yield from leaves(getattr(value, field.name), (*path, field.name), depth + 1)
    else:
        yield path, value


def other(value):
    if isinstance(value, (bool, np.bool_)):
        return not value
    if isinstance(value, (int, float, np.number)):
        return value + 1 if np.isfinite(value) else 0.0
    return f"{value} changed"


def with_changed(value, path):
    """A copy with another value at the end of a path, whatever checks would say of it."""
    if not path:
        return other(value)
    first, *rest = path
    if isinstance(value, np.ndarray):
        changed = value.copy()
        changed[first] = other(value[first])
        return changed
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._replace(**{first: with_changed(getattr(value, first), rest)})
    if isinstance(value, (tuple, list)):
        return type(value)([with_changed(one, rest) if k == first else one for k, one in enumerate(value)])
    if hasattr(value, "items"):
        return {name: with_changed(one, rest) if name == first else one for name, one in value.items()}
    changed = object.__new__(type(value))
    changed.__dict__.update(value.__dict__)
    changed.__dict__.pop(recipes._DIGEST, None)
    changed.__dict__[first] = with_changed(getattr(value, first), rest)
    return changed


@pytest.mark.slow_cases("quadruped")
@pytest.mark.parametrize(
    "make",
    [
        *(partial(lambda k: everything()[k], k) for k in (0, 1)),
        lw.mechanisms.four_bar,
        lw.mechanisms.quadruped,
        lw.mechanisms.bicycle,
        lambda: lw.mechanisms.planar_arm().with_shape("tip", "link3", "sphere", 0.1, (0.1, 0.0, 0.0)).with_ground(),
    ],
    ids=["acting arm", "all kinds of joints", "four-bar", "quadruped", "bicycle", "contact"],
)
def test_every_field_of_a_mechanism_is_in_its_digest(make):
    mech = make()
    before, count = digest(mech), 0
    assert digest(make()) == before
    for path, _ in leaves(mech):
        if path[0].startswith("_") or path[:2] in (("annotations", "notes"), ("annotations", "looks")):
            continue
        assert digest(with_changed(mech, path)) != before, path
        count += 1
    assert count > 50


def test_digests_tell_values_apart():
    values = [
        *(0, 0.0, -0.0, False, None, "", b"", "0", 1, 1.0, True, np.nan, np.inf, 1e-300, 5e-324),
        *((), [], {}, set(), (0,), [0], ((),), ("a", "b"), ("ab",), ("a", ("b",)), {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        *(np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.zeros(2, int), np.float64(0.0), slice(0, 1)),
        *(np.sin, np.cos, partial(np.sin, 1), lw.Revolute, lw.Revolute((0.0, 0.0, 1.0)), lw.Revolute((0.0, 1.0, 0.0))),
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"x", "y", "z"}) == digest({"z", "y", "x"})


def test_functions_are_told_apart_by_what_they_enclose():
    def of(name):
        return ALGORITHMS[name].recursion or ALGORITHMS[name].expression

    assert digest(of("rk4_step")) != digest(of("semi_implicit_step"))
    found = [algorithm for algorithm in variants()]
    assert len({digest(algorithm) for algorithm in found}) == len(found)


@dataclasses.dataclass(frozen=True)
class OwnHinge(lw.Revolute):
    pass


@pytest.mark.parametrize(
    "value",
    [
        lambda x: x,
        OwnHinge((0.0, 0.0, 1.0)),
        OwnHinge,
        Drive(lambda t: (t, 1.0, 0.0)),
        dataclasses.replace(ALGORITHMS["mass_matrix"], recursion=lambda tree, q: q),
        object(),
        sys,
        iter(()),
        np.random.default_rng(0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_code_from_elsewhere_has_no_recipe(value):
    with pytest.raises(recipes.Foreign):
        digest(value)
    assert recipes.recipe(digest, value) is None


def test_methods_that_callers_register_are_in_every_recipe(monkeypatch):
    monkeypatch.setattr("linkwise.mechanics.algorithms.integration.METHODS", dict(_methods()))
    before = recipes.recipe(len, "rk4")
    known = set(ALGORITHMS)
    try:
        register_integrator("heun of a test", lw.extend.Tableau(((), (1.0,)), (0.5, 0.5)))
        with_heun = recipes.recipe(len, "rk4")
        REGISTERED["method", "heun of a test"] = lw.extend.Tableau(((), (0.5,)), (0.0, 1.0))
        assert len({before, with_heun, recipes.recipe(len, "rk4")}) == 3
    finally:
        REGISTERED.pop(("method", "heun of a test"), None)
        for name in set(ALGORITHMS) - known:
            del ALGORITHMS[name]
    assert recipes.recipe(len, "rk4") == before


def _methods():
    from linkwise.mechanics.algorithms.integration import METHODS

    return METHODS


def test_sources_are_in_every_recipe(tmp_path, monkeypatch):
    before = recipes._environment.__wrapped__()
    copy = tmp_path / "linkwise"
    for file in recipes._sources():
        to = copy / file.relative_to(PACKAGE)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(file.read_bytes())
    monkeypatch.setattr(recipes, "_PACKAGE", copy)
    monkeypatch.setattr(recipes, "_files", lambda: tuple(sorted(recipes._sources())))
    assert recipes._environment.__wrapped__() == before
    changed = copy / "mechanics" / "links" / "factor.py"
    changed.write_text(changed.read_text().replace("1", "2", 1))
    assert recipes._environment.__wrapped__() != before


def test_programs_are_made_of_sources_that_are_in_the_recipe():
    """What is imported to make a program is in no folder that the digest of the sources leaves out."""
    code = (
        "import linkwise as lw, sys; from linkwise.compiler.pipeline import compile\n"
        "import linkwise.motion.rollout, linkwise.motion.gradients, linkwise.dynamics.derivatives\n"
        "compile('forward_dynamics', lw.mechanisms.puma560())\n"
        "print(*(name for name in sys.modules if name.startswith('linkwise.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folders = {name.split(".")[1] for name in done.stdout.split()}
    assert not folders & (set(recipes._RIM) - {"readers", "writers"}), "they are imported, so they may have a part"


# -- what is kept -----------------------------------------------------------------------------------------


@pytest.fixture
def own_directory(tmp_path):
    before = os.environ.get("LINKWISE_CACHE_DIR")
    os.environ["LINKWISE_CACHE_DIR"] = str(tmp_path / "cache")
    yield tmp_path / "cache"
    if before is None:
        del os.environ["LINKWISE_CACHE_DIR"]
    else:
        os.environ["LINKWISE_CACHE_DIR"] = before


CASES = [
    ("forward_dynamics", lw.mechanisms.puma560, {}),
    ("mass_matrix", lambda: lw.mechanisms.chain(60), {}),
    ("forward_dynamics", lambda: lw.mechanisms.chain(100), {}),
    ("closed_motion", lw.mechanisms.quadruped, {}),
    ("rk4_step", lw.mechanisms.double_pendulum, {}),
    ("rk4_step_derivatives", lw.mechanisms.puma560, {}),
    ("frame_pose", lw.mechanisms.puma560, {"link": "link6"}),
    ("forward_dynamics", lw.mechanisms.puma560, {"parameters": ("mass", "gravity")}),
    ("forward_dynamics", lw.mechanisms.puma560, {"ports": "wrenches"}),
]


def results(found):
    return found if isinstance(found, tuple) else (found,)


def described(kernel):
    return (
        *(kernel.name, kernel.inputs, kernel.input_shapes, kernel.output_shapes, kernel.op_counts, kernel.sweeps),
        repr(kernel),
    )


@pytest.mark.parametrize(("name", "make", "options"), CASES, ids=[f"{name} {k}" for k, (name, *_) in enumerate(CASES)])
def test_a_kernel_from_disk_is_the_kernel_that_was_made(own_directory, name, make, options):
    mech = make()
    options = {key: mech.link_names[-1] if key == "link" else value for key, value in options.items()}
    first, again = (lw.compile(name, make(), **options) for _ in range(2))
    assert type(first.traced) is Program and isinstance(again.traced, recipes.Outlined)
    assert "_whole" not in again.traced.__dict__
    assert described(first) == described(again)
    for one, other_one in zip(results(first.sparsity), results(again.sparsity), strict=True):
        assert np.array_equal(one, other_one)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, *shape)) for shape in first.input_shapes.values()]
    for one, other_one in zip(results(first(*arrays)), results(again(*arrays)), strict=True):
        assert np.array_equal(one, other_one, equal_nan=True)
    assert "_whole" not in again.traced.__dict__, "calls need nothing more"
    assert first.ir() == again.ir() and first.source("c") == again.source("c")
    assert first.plan() == again.plan() and first.ir("traced") == again.ir("traced")


def test_derivatives_of_a_kernel_from_disk(own_directory):
    def made():
        kernel = lw.compile("forward_dynamics", lw.mechanisms.puma560())
        return [
            lw.jacobian_of(lw.jacobian_of(kernel, "q"), "v"),
            lw.vjp_of(kernel, ("q", "tau")),
            lw.jvp_of(kernel, "v"),
            lw.jacobian_of(lw.compile("rk4_step", lw.mechanisms.double_pendulum()), "q", tangent_result=True),
        ]

    for first, again in zip(made(), made(), strict=True):
        assert isinstance(again.traced, recipes.Outlined) and "_whole" not in again.traced.__dict__
        assert described(first) == described(again)
        assert first.ir() == again.ir()


@pytest.mark.parametrize("harm", ["cut", "emptied", "changed", "not JSON", "other format"])
def test_damaged_outlines_count_as_absent(own_directory, harm):
    first = lw.compile("bias_force", lw.mechanisms.double_pendulum())
    for file in own_directory.glob("*.outline"):
        data = file.read_bytes()
        content = data[len(cache._magic(cache.OUTLINE)) + 32 :]
        if harm in ("not JSON", "other format"):
            new = content[:8] + content[8:].replace(
                b'"format": 1', b'"format" 1' if harm == "not JSON" else b'"format": 0'
            )
            cache.store(file.stem, new, cache.OUTLINE)
        else:
            file.write_bytes({"cut": data[:-3], "emptied": b"", "changed": data[:-1] + bytes([data[-1] ^ 1])}[harm])
    again = lw.compile("bias_force", lw.mechanisms.double_pendulum())
    assert type(again.traced) is Program and described(first) == described(again)
    assert isinstance(lw.compile("bias_force", lw.mechanisms.double_pendulum()).traced, recipes.Outlined), "kept again"


def test_no_part_of_an_outline_is_taken_for_an_outline(own_directory):
    kernel = lw.compile("mass_matrix", lw.mechanisms.double_pendulum())
    data = recipes._written(kernel.traced, [])
    assert recipes._read(data) is not None
    for end in range(len(data)):
        assert recipes._read(data[:end]) is None


def test_machine_code_that_was_deleted_is_made_again(own_directory):
    lw.compile("mass_matrix", lw.mechanisms.stanford_arm())
    for file in own_directory.glob("*.object"):
        file.unlink()
    kernel = lw.compile("mass_matrix", lw.mechanisms.stanford_arm())
    assert isinstance(kernel.traced, recipes.Outlined)
    mech = lw.mechanisms.stanford_arm()
    assert np.isfinite(kernel(mech.initial)).all()


def test_an_outline_of_another_program_is_found_out(own_directory):
    lw.compile("mass_matrix", lw.mechanisms.double_pendulum())
    (file,) = own_directory.glob("*.outline")
    outline, _ = recipes._read(cache.fetch(file.stem, cache.OUTLINE))
    other_program = lw.compile("mass_matrix", lw.mechanisms.puma560()).traced
    wrong = recipes.Outlined.of(outline, [], lambda: other_program)
    with pytest.raises(RuntimeError, match="clear"):
        _ = wrong.nodes


def test_an_outline_of_a_processor_that_rounds_otherwise_is_replaced(own_directory):
    """Constants of a program may differ in their last digit: then it is the one that this machine makes."""
    kernel = lw.compile("mass_matrix", lw.mechanisms.double_pendulum())
    (file,) = own_directory.glob("*.outline")
    here, (_, notes) = kernel.traced, recipes._read(cache.fetch(file.stem, cache.OUTLINE))
    there = lw.compile("mass_matrix", lw.mechanisms.double_pendulum().parameters.with_armature(1e-12)).traced
    there = copy.copy(there)
    there.__dict__["recipe"] = file.stem
    cache.store(file.stem, recipes._written(there, notes), cache.OUTLINE)
    for code in own_directory.glob("*.object"):
        code.unlink()
    again = lw.compile("mass_matrix", lw.mechanisms.double_pendulum())
    assert again.traced.content == here.content and len(again.traced.nodes) == len(here.nodes)
    outline, _ = recipes._read(cache.fetch(file.stem, cache.OUTLINE))
    assert outline["content"] == here.content
    assert np.array_equal(again([0.1, 0.2]), kernel([0.1, 0.2]))


def test_programs_from_disk_can_be_copied(own_directory):
    _, kernel = (lw.compile("mass_matrix", lw.mechanisms.double_pendulum()) for _ in range(2))
    for made in (copy.copy, copy.deepcopy, lambda program: pickle.loads(pickle.dumps(program))):
        assert made(kernel.traced).content == kernel.traced.content


REPLACED = """
import json, sys
import linkwise as lw
from linkwise.mechanics.joints.prismatic import Prismatic
from linkwise.mechanics.spatial import Transform, Translation, Vector3

{change}
mech = lw.mechanisms.cart_pole()
print(lw.compile("frame_pose", mech, link=mech.link_names[0])(mech.initial + 0.3)[0, 3])
"""
CHANGES = {
    "a method": "Prismatic.transform = lambda self, q: Transform((Translation(Vector3(0.0, 0.0, 2.0 * q[0])),))",
    "a file": "import pathlib, sys; pathlib.Path(sys.modules[Prismatic.__module__].__file__).touch()",
}


@pytest.mark.parametrize("change", CHANGES)
def test_code_that_is_not_that_of_the_sources_leaves_nothing_behind(tmp_path, change):
    """What a process makes with functions that were replaced, or with sources that changed since, is its own."""
    package = tmp_path / "package"
    shutil.copytree(PACKAGE, package / "linkwise", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "LINKWISE_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(package)}

    def said(change):
        done = subprocess.run(
            [sys.executable, "-c", REPLACED.format(change=change)], env=environment, cwd=tmp_path, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        return float(done.stdout)

    first = said(CHANGES[change])
    assert not list((tmp_path / "cache").glob("*.outline"))
    plain = said("")
    assert (first == plain) == (change == "a file") and list((tmp_path / "cache").glob("*.outline"))
    assert said(CHANGES[change]) == first


def test_functions_that_numpy_makes_of_a_callers_have_no_digest():
    with pytest.raises(recipes.Foreign):
        digest(np.frompyfunc(lambda x: 2.0 * x, 1, 1))
    assert digest(np.sin) != digest(np.cos)


def test_changed_numbers_of_loops_are_not_taken_from_disk(own_directory):
    """Code with loops has numbers as data: mechanisms that differ in these share the code, not the numbers."""
    state = np.full(60, 0.1), np.full(60, 0.2), np.full(60, 0.3)
    for _ in range(2):
        plain = lw.mechanisms.chain(60)
        found = lw.forward_dynamics(plain, *state)
        heavy = plain.parameters.with_inertial(1.5 * lw.estimation.inertial_parameters(plain))
        assert np.allclose(lw.inverse_dynamics(plain, state[0], state[1], found), state[2])
        found = lw.forward_dynamics(heavy, *state)
        assert np.allclose(lw.inverse_dynamics(heavy, state[0], state[1], found), state[2])


SECOND_PROCESS = """
import json, sys
import numpy as np
import linkwise as lw
from linkwise import derivatives

count = [0]
def look(frame, event, _):  # replaced functions of the package would switch recipes off
    count[0] += event == "call" and frame.f_code.co_name == "run_on_symbols"

sys.setprofile(look)
arm, quadruped = lw.mechanisms.puma560(), lw.mechanisms.quadruped()
z = np.zeros(6)
results = [lw.forward_dynamics(arm, z, z, z), *lw.forward_dynamics_derivatives(arm, z, z, z)]
q, v = lw.rollout(arm, z, z, None, 1e-3, 5)
results += [q, v, *derivatives.rollout_derivatives(arm, q, v, None, 1e-3)]
results += derivatives.step_derivatives(arm, z, z, z, 1e-3)
results.append(lw.jacobian_of(lw.compile("forward_dynamics", arm), "q")(z, z, z))
start = quadruped.initial, np.zeros(quadruped.nv)
results.append(lw.forward_dynamics(quadruped, *start, np.zeros(quadruped.nv)))
q, v = lw.rollout(quadruped, *start, None, 1e-3, 3)
results += [q, v, *derivatives.rollout_derivatives(quadruped, q, v, None, 1e-3)]
print(json.dumps([count[0], [np.asarray(x).tobytes().hex() for x in results]]))
"""


def test_a_first_call_with_code_on_disk_is_a_short_walk():
    names = walk(cold=False)
    assert "linkwise.compiler.recipes" in names and "linkwise.compiler.pipeline" not in names
    assert len(names) <= 40


@pytest.mark.slow
def test_a_second_process_traces_nothing_and_computes_the_same(tmp_path):
    environment = {**os.environ, "LINKWISE_CACHE_DIR": str(tmp_path / "cache")}
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SECOND_PROCESS], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0][0] > 10 and found[1][0] == 0
    assert found[0][1] == found[1][1]
