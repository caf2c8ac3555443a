"""What functions of the user look at is part of a study: stored results of another policy are not given for its own."""

from __future__ import annotations

import threading
import types
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st
from linkwise.studies.record import described

GAIN = 1.0
SETTINGS = types.ModuleType("settings_of_the_user")
ARM = lw.mechanisms.planar_arm(1)


def helper(q):
    return -GAIN * q


def by_global(gain, monkeypatch):
    monkeypatch.setitem(globals(), "GAIN", gain)
    return lambda t, q, v: -GAIN * q


def by_function_that_it_calls(gain, monkeypatch):
    monkeypatch.setitem(globals(), "GAIN", gain)
    return lambda t, q, v: helper(q)


def by_attribute_of_a_module(gain, monkeypatch):
    SETTINGS.gain = gain
    return lambda t, q, v: -SETTINGS.gain * q


def by_closure(gain, monkeypatch):
    return lambda t, q, v: -gain * q


def by_array(gain, monkeypatch):
    weights = np.full((1, 1), gain)
    return lambda t, q, v: -q @ weights


def by_function_inside(gain, monkeypatch):
    def policy(t, q, v):
        return [(lambda x: -gain * x)(x) for x in q]

    return policy


def by_default(gain, monkeypatch):
    return lambda t, q, v, gain=gain: -gain * q


def by_partial(gain, monkeypatch):
    return partial(lambda gain, t, q, v: -gain * q, gain)


class Policy:
    def __init__(self, gain):
        self._gain = gain

    def __call__(self, t, q, v):
        return self.act(q)

    def act(self, q):
        return -self._gain * q


@dataclass
class Method:
    gain: float

    def act(self, t, q, v):
        return -self.gain * q


def by_object(gain, monkeypatch):
    return Policy(gain)


def by_method(gain, monkeypatch):
    return Method(gain).act


WAYS = [by_global, by_function_that_it_calls, by_attribute_of_a_module, by_closure, by_array, by_function_inside]
WAYS += [by_default, by_partial, by_object, by_method]


@pytest.mark.parametrize("policy", WAYS)
def test_a_policy_with_another_number_is_another_study(policy, monkeypatch, tmp_path):
    def study(gain):
        tau = lw.motion.held(policy(gain, monkeypatch), 0.01)
        return st.Study(
            ARM, st.Rollout(0.01, 5, tau=tau, final_only=True), {"q0": st.distributions.Uniform(0.1, 0.2)}, cases=2
        )

    store = tmp_path / "a.parquet"
    first = study(1.0).run(store=store)
    assert np.array_equal(study(1.0).run(store=store)["positions[joint1]"], first["positions[joint1]"])
    with pytest.raises(st.StudyError, match="another study: compute.tau.function.* 1.0.* 50.0"):
        study(50.0).run(store=store)
    with pytest.raises(st.StudyError, match="another study: compute.tau"):
        st.Study(ARM, study(1.0).compute, {"q0": st.distributions.Uniform(0.1, 0.2)}, cases=2).with_(
            compute=st.Rollout(0.01, 5, tau=lw.motion.held(lambda t, q, v: 0.0 * q, 0.01), final_only=True)
        ).run(store=store)


def test_measures_are_compared_too(tmp_path):
    def study(offset):
        def measure(cases, t, q, v):
            return {"end": q[:, -1, 0] + offset}

        return st.Study(ARM, st.Rollout(0.01, 5, measure=measure), {"q0": st.distributions.Uniform(0.1, 0.2)}, cases=2)

    study(0.0).run(store=tmp_path / "a.parquet")
    with pytest.raises(st.StudyError, match="compute.measure.captured.offset was 0.0, is 5.0"):
        study(5.0).run(store=tmp_path / "a.parquet")


def test_what_methods_do_is_compared():
    def made(sign):
        class Own(Policy):
            def act(self, q):
                return q if sign > 0 else -q

        return Own(1.0)

    assert described(made(1)) == described(made(1)) != described(made(-1))


def test_networks_are_compared_by_what_they_learn():
    torch = pytest.importorskip("torch")
    network = torch.nn.Linear(2, 1)
    before = described(lambda q: network(q))
    assert described(lambda q: network(q)) == before
    with torch.no_grad():
        network.weight += 1.0
    assert described(lambda q: network(q)) != before


def test_what_cannot_be_compared_is_told(tmp_path):
    lock = threading.Lock()

    def policy(t, q, v):
        with lock:
            return -q

    one = st.Study(ARM, st.Rollout(0.01, 5, tau=lw.motion.held(policy, 0.01), final_only=True), cases=2)
    one.run(store=tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match=r"captured.lock \(lock\) changed since is not known") as caught:
        one.run(store=tmp_path / "a.parquet")
    assert caught[0].filename == __file__


def test_functions_that_look_at_themselves_and_libraries_are_described_by_name():
    def down(n):
        return down(n - 1) if n else np.tanh(np.linalg.norm([n]))

    found = described(down)
    assert found["captured"]["np"] == "numpy" and found["captured"]["down"]["type"] == "what it is a part of"
    assert described(np.linalg.norm) == "numpy.linalg.norm" and described(np.tanh).endswith("tanh")
    assert described(lw.motion.held).startswith("linkwise.")
