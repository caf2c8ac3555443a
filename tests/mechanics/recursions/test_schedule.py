"""Sweeps of small graphs of tasks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwise.mechanics.recursions.schedule import BASE_TO_TIP, TIP_TO_BASE, schedule

OUT, BACK, LOCAL = BASE_TO_TIP, TIP_TO_BASE, None


def sweeps(graph: dict[str, tuple[str | None, str]]) -> list[tuple[str, str]]:
    """``graph``: task -> (direction, its inputs, one letter each); the result has the tasks of a sweep as one word."""
    found = schedule(list(graph), lambda task: graph[task][1], lambda task: graph[task][0])
    return [(sweep.direction, "".join(sweep.tasks)) for sweep in found]


def test_nothing_to_do():
    assert sweeps({}) == []
    assert sweeps({"x": (LOCAL, "")}) == []


@pytest.mark.parametrize("direction", [OUT, BACK])
def test_one_task(direction):
    assert sweeps({"r": (direction, "")}) == [(direction, "r")]


def test_tasks_of_one_direction_share_a_sweep():
    assert sweeps({"r": (BACK, ""), "s": (BACK, "r"), "t": (BACK, "rs")}) == [(BACK, "rst")]


def test_local_tasks_ride_along():
    assert sweeps({"r": (BACK, ""), "x": (LOCAL, "r"), "s": (BACK, "x")}) == [(BACK, "rs")]


def test_directions_alternate():
    assert sweeps({"r": (OUT, ""), "s": (BACK, "r"), "t": (OUT, "s")}) == [(OUT, "r"), (BACK, "s"), (OUT, "t")]


def test_a_local_task_between_two_directions():
    assert sweeps({"r": (BACK, ""), "x": (LOCAL, "r"), "s": (OUT, "x")}) == [(BACK, "r"), (OUT, "s")]


def test_independent_tasks_are_fused_across_branches():
    """The articulated inertias do not wait for the velocities: one inward sweep does for both."""
    graph = {"v": (OUT, ""), "p": (BACK, ""), "z": (BACK, "vp"), "a": (OUT, "zp")}
    assert sweeps(graph) == [(OUT, "v"), (BACK, "pz"), (OUT, "a")]


def test_the_first_direction_is_the_one_that_needs_fewer_sweeps():
    assert sweeps({"p": (BACK, ""), "y": (OUT, "p")}) == [(BACK, "p"), (OUT, "y")]
    assert sweeps({"y": (OUT, ""), "p": (BACK, ""), "z": (OUT, "p")}) == [(BACK, "p"), (OUT, "yz")]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    """Every task once, inputs ready before or in the same sweep, directions respected, and no shorter plan exists."""
    rng = np.random.default_rng(seed)
    tasks = list(range(int(rng.integers(1, 8))))
    ways = [(OUT, BACK, LOCAL)[int(rng.integers(3))] for _ in tasks]
    inputs = [[k for k in range(t) if rng.random() < 0.35] for t in tasks]
    found = schedule(tasks, lambda t: inputs[t], lambda t: ways[t])
    number = {task: k for k, sweep in enumerate(found) for task in sweep.tasks}
    assert sorted(number) == [t for t in tasks if ways[t] is not None]
    assert all(ways[t] == found[k].direction for t, k in number.items())
    assert all(one.direction != other.direction for one, other in itertools.pairwise(found))
    for task, k in number.items():
        assert all(number[earlier] <= k for earlier in moving_inputs(task, inputs, ways))
    assert len(found) == fewest(tasks, inputs, ways)


def moving_inputs(task, inputs, ways):
    """Tasks with a direction that ``task`` waits for, directly or through local ones."""
    for earlier in inputs[task]:
        if ways[earlier] is None:
            yield from moving_inputs(earlier, inputs, ways)
        else:
            yield earlier


def fewest(tasks, inputs, ways) -> int:
    """Sweeps that are needed when each does all it can, for the better first direction."""

    def needed(first: str, second: str) -> int:
        done: set[int] = set()
        moving = {t for t in tasks if ways[t] is not None}
        for count in itertools.count():
            if moving <= done:
                return count
            allowed = (first, second)[count % 2]
            for task in tasks:  # inputs come first, so one pass finds all
                if ways[task] in (allowed, None) and done.issuperset(inputs[task]):
                    done.add(task)

    return min(needed(OUT, BACK), needed(BACK, OUT))
