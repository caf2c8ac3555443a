"""Mechanisms and configurations to draw: all built-in ones, random trees of all joints, one joint of every kind."""

from __future__ import annotations

from functools import cache

import numpy as np

import linkwise as lw
from tests.constraints import built_in

SIZES = {"planar_arm": (3,), "chain": (5,), "n_four_bar": (3,), "random_tree": (12, 3)}
BUILT_IN = tuple(lw.mechanisms.__all__)
FLAT = (
    "cart_pole",
    "double_pendulum",
    "five_bar",
    "four_bar",
    "loader",
    "n_four_bar",
    "parallel_four_bar_robot",
    "planar_arm",
    "slider_crank",
    "snakeboard",
)
KINDS = {
    "revolute": lw.Revolute((1.0, 2.0, 3.0)),
    "prismatic": lw.Prismatic((1.0, -2.0, 0.5)),
    "helical": lw.Helical((0.0, 1.0, 1.0), 0.05),
    "cylindrical": lw.Cylindrical((1.0, 0.0, 1.0)),
    "universal": lw.Universal((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)),
    "spherical": lw.Spherical(),
    "pin_in_slot": lw.PinInSlot((1.0, 0.0, 0.0), (0.0, 1.0, 1.0)),
    "planar": lw.Planar((1.0, 1.0, 0.0)),
    "floating": lw.Floating(),
}


@cache
def mechanism(name: str) -> lw.Mechanism:
    return getattr(lw.mechanisms, name)(*SIZES.get(name, ()))


@cache
def built(name: str) -> tuple[lw.Mechanism, tuple[float, ...]]:
    """A built-in mechanism and a configuration of it, loops closed, away from zero."""
    mech = mechanism(name)
    if mech.loops:
        q = built_in.random_state(name)[0] if name != "n_four_bar" else np.zeros(mech.nq)
    else:
        q = lw.random_state(mech, np.random.default_rng(5))[0]
    return mech, tuple(q)


@cache
def hinged(kind: str) -> lw.Mechanism:
    """A bar of a metre on a post, hinged by a joint of the kind."""
    return (
        lw.Builder()
        .link("post", 1.0, (0.0, 0.0, 0.2), (0.1, 0.1, 0.01))
        .link("bar", 2.0, (0.5, 0.0, 0.0), (0.01, 0.17, 0.17))
        .joint("base", lw.Revolute((0.0, 0.0, 1.0)), "ground", "post")
        .joint("hinge", KINDS[kind], "post", "bar", (None, (0.1, 0.0, 0.4)))
        .build(kind)
    )


def gids(figure, ax: int = 0) -> dict[str, int]:
    """What has been painted: gid -> number of lines, polygons or dots."""
    found: dict[str, int] = {}
    for artist in figure.axes[ax].collections:
        if artist.get_gid():
            count = len(artist.get_offsets()) if artist.get_gid() == "masses" else _count(artist)
            found[artist.get_gid()] = found.get(artist.get_gid(), 0) + count
    return found


def _count(artist) -> int:
    if hasattr(artist, "_segments3d"):
        return len(artist._segments3d)
    if hasattr(artist, "_faces"):
        return len(artist._faces)
    return len(artist.get_paths())
