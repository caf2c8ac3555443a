"""Linkages as they are drawn: closed at zero, with the masses and inertias of rods."""

import numpy as np
import pytest

import linkwise as lw

WATT = {"A": (0.0, 0.0), "B": (0.05, 0.08), "C": (0.35, 0.3), "D": (0.4, 0.0), "E": (0.48, 0.22)}
WATT |= {"F": (0.8, 0.3), "G": (0.75, 0.0), "P": (0.25, 0.45)}
LINKS = {"ground": "ADG", "crank": "AB", "coupler": "BCP", "rocker": "DCE", "link": "EF", "output": "GF"}
LINE = {"A": (0, 0), "B": (1, 0), "C": (2, 0)}
DOWN = (0.0, -9.81, 0.0)
RNG = np.random.default_rng(20)


def rods(points, count=2000):
    """(n, 2) points of equal masses along the sides of a polygon."""
    ends = list(zip(points, [*points[1:], points[0]], strict=True))[: 1 if len(points) == 2 else None]
    share = ((np.arange(count) + 0.5) / count)[:, None]
    lengths = [np.linalg.norm(np.subtract(b, a)) for a, b in ends]
    places = np.concatenate([np.array(a) + share * np.subtract(b, a) for a, b in ends])
    return places, np.repeat(np.array(lengths) / count, count)


def test_pins_and_points_are_where_they_are_drawn():
    mech = lw.Builder().linkage(WATT, LINKS).build("watt", DOWN)
    assert mech.joint_names == ("A", "D", "G", "B", "E")  # what is pinned to the ground first
    assert [loop.name for loop in mech.loops] == ["C", "F"]
    zero = np.zeros(mech.nq)
    assert np.abs(lw.constraints.position_error(mech, zero)).max() < 1e-15
    for point, place in WATT.items():
        np.testing.assert_allclose(lw.frame_pose(mech, zero, point)[:3, 3], [*place, 0.0], atol=1e-15)
    assert lw.constraints.degrees_of_freedom(mech, zero) == 1
    q = lw.linkages.follow(mech, zero, {"A": 1.0})
    for link, points in LINKS.items():  # they keep their lengths
        first, *others = (lw.frame_pose(mech, q, point)[:2, 3] for point in points)
        for other, name in zip(others, points[1:], strict=True):
            length = np.linalg.norm(np.subtract(WATT[name], WATT[points[0]]))
            assert np.linalg.norm(other - first) == pytest.approx(length, abs=1e-12), link


def test_links_are_thin_rods():
    mech = lw.Builder().linkage(WATT, LINKS, density=3.0).build("watt", DOWN)
    for name in ("coupler", "output"):
        body = mech.bodies[mech.link_names.index(name)]
        places, weights = rods([WATT[point] for point in LINKS[name]])
        mass = 3.0 * weights.sum()
        centre = 3.0 * weights @ places / mass
        away = places - centre
        assert body.mass == pytest.approx(mass)
        origin = lw.frame_pose(mech, np.zeros(mech.nq), name)[:2, 3]
        np.testing.assert_allclose(body.com[:2] + origin, centre, atol=1e-9)
        moments = 3.0 * np.einsum("n,ni,nj->ij", weights, away, away)
        np.testing.assert_allclose(np.diag(body.inertia)[2], np.trace(moments), rtol=1e-6)
        np.testing.assert_allclose(body.inertia[0, 1], -moments[0, 1], rtol=1e-6)


def plate(points, order, **more):
    """The body of a plate that hangs on a ram, so that its frame stays at its first point."""
    slides = {"plate": ("ground", (1, 0))}
    mech = lw.Builder().linkage(points, {"plate": tuple(order)}, slides=slides, **more).build("plate", DOWN)
    return mech.bodies[0], np.append(points[order[0]], 0.0)


def assert_plate(body, origin, mass, centre, moment, product=0.0):
    """Numbers of a plate, moments about its centre: about z, and along x and y together."""
    assert body.mass == pytest.approx(mass, rel=1e-13)
    np.testing.assert_allclose(body.com + origin, [*centre, 0.0], atol=1e-13 * moment)
    assert body.inertia[2, 2] == pytest.approx(moment, rel=1e-12)
    assert body.inertia[0, 1] == pytest.approx(-product, abs=1e-12 * moment)


def test_points_inside_a_plate_weigh_nothing():
    """Three rods of an equilateral triangle of side s: m s^2 (1/12 + 1/12) about its centre, however it is named."""
    side = 0.6
    angles = 0.3 + 2.0 * np.pi / 3.0 * np.arange(3)
    corners = {f"P{k}": side / np.sqrt(3) * np.array([np.cos(t), np.sin(t)]) for k, t in enumerate(angles, start=1)}
    inner = {"T": (0.0, 0.0), "U": (0.03, -0.05)}
    on_edge = {"M": 0.25 * corners["P1"] + 0.75 * corners["P2"], "N": 0.5 * (corners["P2"] + corners["P3"])}
    for more in ({}, inner, on_edge, inner | on_edge):
        names = [*corners, *more]
        for _ in range(8):
            body, origin = plate(corners | more, names, density=2.0)
            assert_plate(body, origin, 6.0 * side, (0.0, 0.0), 6.0 * side * side**2 / 6.0)
            RNG.shuffle(names)


@pytest.mark.parametrize("turn", [0.0, 0.5 * np.pi, 0.7])
def test_a_rectangle_with_points_inside_and_on_its_edges(turn):
    """Four rods a and b: by hand, those of length a about the centre a^2 / 12 + b^2 / 4, along y likewise."""
    a, b, there = 0.8, 0.3, np.array([1.0, -2.0])
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    shares = {"A": (0, 0), "B": (1, 0), "C": (1, 1), "D": (0, 1)}
    shares |= {"I": (0.4, 0.9), "J": (0.5, 0.5), "K": (0.2, 0), "L": (1, 0.3), "M": (0, 0.5), "N": (0.99, 0.01)}
    points = {name: there + axes @ ((np.array(at) - 0.5) * (a, b)) for name, at in shares.items()}
    along_x = 2 * a * a**2 / 12 + 2 * b * (a / 2) ** 2  # of x^2
    along_y = 2 * b * b**2 / 12 + 2 * a * (b / 2) ** 2
    second = axes @ np.diag([along_x, along_y]) @ axes.T
    names = list(points)
    for _ in range(12):
        body, origin = plate(points, names)
        assert_plate(body, origin, 2 * (a + b), there, along_x + along_y, second[0, 1])
        RNG.shuffle(names)


def test_a_random_plate_is_its_hull():
    from scipy.spatial import ConvexHull

    for _ in range(20):
        points = {f"P{k}": at for k, at in enumerate(RNG.normal(size=(9, 2)))}
        corners = np.array(list(points.values()))[ConvexHull(np.array(list(points.values()))).vertices]
        places, weights = rods(list(corners), 400)
        body, origin = plate(points, list(points))
        assert body.mass == pytest.approx(weights.sum())
        np.testing.assert_allclose((body.com + origin)[:2], weights @ places / weights.sum(), atol=1e-12)
        np.testing.assert_allclose(plate(points, list(points), masses={"plate": 3.0})[0].com, body.com, atol=1e-15)


def test_points_on_a_line_make_a_single_rod():
    def coupler(between):
        points = {"A": (0, 0), "B": (0.1, 0.17), "C": (0.58, 0.45), "D": (0.6, 0), "M": (0.34, 0.31)}
        links = {"ground": "AD", "crank": "AB", "coupler": between, "rocker": "DC"}
        points = points if "M" in between else {name: at for name, at in points.items() if name != "M"}
        mech = lw.Builder().linkage(points, links).build("four_bar", DOWN)
        return mech.bodies[mech.link_names.index("coupler")]

    plain = coupler("BC")
    assert plain.mass == pytest.approx(np.hypot(0.48, 0.28))
    for between in ("BMC", "BCM", "MCB"):  # the middle of the rod, to be looked at
        seen = coupler(between)
        np.testing.assert_allclose(seen.mass, plain.mass, rtol=1e-15)
        np.testing.assert_allclose(seen.com, plain.com, atol=1e-15)
        np.testing.assert_allclose(seen.inertia, plain.inertia, atol=1e-16)


def pin_loads(mech, points, links, q, load):
    """{pin: size of its force} of a weightless linkage, and the torque between the ground and its first moving link, by
    the balance of each link in the plane; ``load`` is (link, point, force)."""
    moving = [link for link in links if link != "ground"]
    pins = [point for point in points if sum(point in own for own in links.values()) == 2]
    at = {point: lw.frame_pose(mech, q, point)[:2, 3] for point in points}
    rows, given = np.zeros((3 * len(moving), 2 * len(pins) + 1)), np.zeros(3 * len(moving))
    rows[2, -1] = 1.0
    for k, link in enumerate(moving):
        for j, pin in enumerate(pins):
            first, second = (one for one, own in links.items() if pin in own)
            if link in (first, second):
                x, y = at[pin]
                sign = 1.0 if link == second else -1.0
                rows[3 * k : 3 * k + 3, 2 * j : 2 * j + 2] = sign * np.array([[1.0, 0.0], [0.0, 1.0], [-y, x]])
        if link == load[0]:
            (x, y), (fx, fy) = at[load[1]], load[2]
            given[3 * k : 3 * k + 3] = -fx, -fy, -(x * fy - y * fx)
    *forces, torque = np.linalg.solve(rows, given)
    sizes = np.linalg.norm(np.reshape(forces, (-1, 2)), axis=1)
    return dict(zip(pins, sizes, strict=True)), torque


@pytest.mark.parametrize("at", ["link.F", "output.F", "coupler.C", "rocker.C", "link.E", "crank.B"])
def test_a_load_at_a_pin_acts_on_the_link_that_is_named(at):
    masses = dict.fromkeys(("crank", "coupler", "rocker", "link", "output"), 0.0)
    with pytest.warns(lw.MechanismWarning, match="inertia"):
        mech = lw.Builder().linkage(WATT, LINKS, masses=masses).build("watt", strict=False)
    link, point = at.split(".")
    assert mech.frame(at).link == link and repr(mech.frame(at)).startswith(f"<Frame {at!r} on {link!r}: position=(")
    q = lw.linkages.follow_path(mech, lw.neutral(mech), {"A": np.array([0.3, 1.1, 2.5])})
    push = lw.forces.wrenches_at(mech, {at: [0.0, 0.0, 0.0, -20.0, 7.0, 0.0]}, q, frame="world_aligned")
    tau = lw.static_forces(mech, q, actuated="A", wrenches=push)
    joints = lw.joint_wrenches(mech, q, tau=tau, wrenches=push)
    loops = lw.constraints.loop_reactions(mech, q, tau=tau, wrenches=push)
    for k, one in enumerate(q):
        expected, torque = pin_loads(mech, WATT, LINKS, one, (link, point, (-20.0, 7.0)))
        found = dict(zip(mech.joint_names, joints[k], strict=True)) | {"C": loops[k, 0], "F": loops[k, 1]}
        assert {pin: np.linalg.norm(found[pin][3:]) for pin in expected} == pytest.approx(expected, rel=1e-8, abs=1e-8)
        assert tau[k, 0] == pytest.approx(torque)


def test_the_wrist_pin_of_a_piston():
    """1000 N on the piston: the rod, a member of two forces, and so the pin carry 1000 / cos of its angle."""
    crank, rod, angles = 0.1, 0.3, np.array([0.4, 1.3, 2.2])
    points = {"O": (0, 0), "A": (0, crank), "B": (np.sqrt(rod**2 - crank**2), 0)}
    links, slides = {"ground": "O", "crank": "OA", "rod": "AB", "piston": "B"}, {"piston": ("ground", (1, 0))}
    masses = dict.fromkeys(("crank", "rod", "piston"), 0.0)
    with pytest.warns(lw.MechanismWarning, match="inertia"):
        mech = lw.Builder().linkage(points, links, slides=slides, masses=masses).build("engine", strict=False)
    q = lw.linkages.follow_path(mech, lw.neutral(mech), {"O": angles})
    lean = np.arcsin(crank * np.cos(angles) / rod)
    through, wall = 1000 / np.cos(lean), 1000 * np.tan(lean)
    for at, carried in {"piston.B": through, "piston": through, "rod.B": wall, "B": wall}.items():
        push = lw.forces.wrenches_at(mech, {at: [0, 0, 0, -1000, 0, 0]}, q, frame="world_aligned")
        tau = lw.static_forces(mech, q, actuated="O", wrenches=push)
        pin = lw.constraints.loop_reactions(mech, q, tau=tau, wrenches=push)[:, 0, 3:]
        np.testing.assert_allclose(np.linalg.norm(pin, axis=1), np.abs(carried), rtol=1e-9)
        side = lw.joint_wrenches(mech, q, tau=tau, wrenches=push)[:, 1, 4]
        np.testing.assert_allclose(np.abs(side), np.abs(wall), rtol=1e-9)


def test_which_link_a_point_is_on():
    mech = lw.Builder().linkage(WATT, LINKS).build("watt", DOWN)
    for point in WATT:
        holders = [link for link, own in LINKS.items() if point in own]
        assert mech.frame(point).link == holders[0]  # the first in the dictionary
        assert {name for name in mech.frames if name.endswith(f".{point}")} == {
            f"{link}.{point}" for link in holders if len(holders) > 1
        }
    q = lw.linkages.follow(mech, lw.neutral(mech), {"A": 0.7})
    for name in (name for name in mech.frames if "." in name):  # all at the pin, wherever that is
        place = lw.frame_pose(mech, q, name.split(".")[1])[:3, 3]
        np.testing.assert_allclose(lw.frame_pose(mech, q, name)[:3, 3], place, atol=1e-12)
    with pytest.raises(lw.MechanismError, match="'A' is fixed to the ground.*: name a moving link .*, 'crank.A'$"):
        lw.forces.wrenches_at(mech, {"A": [0, 0, 0, 1, 0, 0]})
    assert mech.with_frame("tool", "coupler.C", (0.1, 0, 0)).frame("tool").link == "coupler"
    locked = mech.with_locked(A=0.0)
    assert locked.frame("crank.B").link == "ground" and locked.frame("rocker.C").link == "rocker"


def test_pins_that_close_loops_are_told_as_such():
    mech = lw.Builder().linkage(WATT, LINKS).build("watt", DOWN)
    with pytest.raises(lw.MechanismError, match=r"'C' closes a loop.*with_joint_of_loop\(mech, 'C'\)"):
        mech.q_index("C")
    with pytest.raises(lw.MechanismError, match="'P': that is a link, which joint 'B' moves"):
        mech.q_index("P")


def test_slots_of_the_ground_and_of_links():
    crank, rod = 0.1, 0.4
    points = {"O": (0.0, 0.0), "A": (crank, 0.0), "B": (crank + rod, 0.0)}
    engine = lw.Builder().linkage(points, {"ground": "O", "crank": "OA", "rod": "AB"}, {"B": ("ground", (1.0, 0.0))})
    mech = engine.build("engine", DOWN)
    q = lw.configuration(mech, O=0.7)
    expected = crank * np.cos(0.7) + np.sqrt(rod**2 - (crank * np.sin(0.7)) ** 2)
    np.testing.assert_allclose(lw.frame_pose(mech, q, "B")[:2, 3], [expected, 0.0], atol=1e-10)
    found = lw.linkages.range_of_motion(mech, "B.x", lw.configuration(mech, O=0.7))
    assert (found.lower, found.upper) == pytest.approx((rod - crank, rod + crank))
    points = {"O": (0.0, 0.0), "A": (0.1, 0.0), "M": (0.0, -0.3), "T": (0.2, 0.3)}
    links = {"ground": "OM", "crank": "OA", "lever": "MT"}
    quick = lw.Builder().linkage(points, links, {"A": ("lever", (0.1, 0.3))}).build("quick_return", DOWN)
    found = lw.linkages.range_of_motion(quick, "M")
    assert found.upper - found.lower == pytest.approx(2.0 * np.arcsin(1.0 / 3.0))


def test_a_scotch_yoke_slides_and_has_a_slot():
    points = {"O": (0, 0), "A": (0.1, 0), "T": (0.35, 0)}
    links, guides = {"ground": "O", "crank": "OA", "yoke": "T"}, {"A": ("yoke", (0, 1))}
    sliding = {"yoke": ("ground", (1, 0))}
    mech = lw.Builder().linkage(points, links, guides, slides=sliding, masses={"yoke": 0.5}).build("yoke", DOWN)
    assert mech.joint_names == ("O", "yoke_slide") and mech.bodies[1].mass == 0.5
    angles = np.linspace(0.0, 6.0, 7)
    motion = lw.linkages.driven_motion(mech, {"O": angles}, {"O": 10.0})
    np.testing.assert_allclose(motion.position("T")[:, 0], 0.25 + 0.1 * np.cos(angles), atol=1e-12)
    np.testing.assert_allclose(motion.acceleration("T")[:, 0], -10.0 * np.cos(angles), atol=1e-9)
    # Guided by two points in slots of the ground instead of a slide, it moves the same way.
    points = {"O": (0, 0), "A": (0.1, 0), "S": (0.2, 0), "T": (0.35, 0)}
    guides |= {"S": ("ground", (1, 0)), "T": ("ground", (1, 0))}
    mech = lw.Builder().linkage(points, {**links, "yoke": "ST"}, guides).build("yoke", DOWN)
    again = lw.linkages.driven_motion(mech, {"O": angles}, {"O": 10.0})
    np.testing.assert_allclose(again.position("T"), motion.position("T"), atol=1e-9)


def test_links_that_only_slots_guide():
    slots = {"A": ("ground", (1, 0)), "B": ("ground", (0, 1))}
    points = {"A": (0.3, 0), "B": (0, 0.4), "P": (0.6, -0.4)}
    mech = lw.Builder().linkage(points, {"bar": "ABP"}, slots).build("ellipsograph", DOWN)
    assert lw.constraints.degrees_of_freedom(mech, lw.neutral(mech)) == 1
    q = lw.linkages.range_of_motion(mech, "P.x").path.q
    x, y = lw.frame_pose(mech, q, "P")[:, :2, 3].T
    np.testing.assert_allclose((x / 1.0) ** 2 + (y / 0.5) ** 2, 1.0, atol=1e-9)


def test_an_oldham_coupling_slides_in_two_disks():
    points = {"O": (0, 0), "Q": (0.03, 0), "a": (0.1, 0), "b": (0.03, 0.1), "c": (0.03, 0)}
    links = {"ground": "OQ", "first": "Oa", "second": "Qb", "cross": "c"}
    slides = {"cross": [("first", (1, 0)), ("second", (0, 1))]}
    mech = lw.Builder().linkage(points, links, slides=slides, masses={"cross": 0.1}).build("oldham", DOWN)
    motion = lw.linkages.driven_motion(mech, {"O": np.linspace(0.0, 3.0, 4)}, {"O": 10.0})
    np.testing.assert_allclose(motion.angular_velocity("second")[:, 2], 10.0)  # velocities are the same
    # The cross goes around a circle through both centres twice as fast.
    away = motion.position("c") - [0.015, 0.0, 0.0]
    np.testing.assert_allclose(np.linalg.norm(away, axis=-1), 0.015, atol=1e-12)


def test_a_link_that_hangs_on_its_own_slot():
    points = {"O": (0, 0), "A": (0.1, 0), "B": (-0.3, 0), "C": (-0.3, 0.2)}
    links = {"ground": "O", "crank": "OA", "bar": "BC"}
    mech = lw.Builder().linkage(points, links, {"A": ("bar", (1, 0))}).build("bar", DOWN)
    assert mech.joint_names == ("O", "A", "A_slide")
    place = lw.frame_pose(mech, np.array([0.0, np.pi / 2, 0.1]), "B")[:2, 3]
    np.testing.assert_allclose(place, [0.1, -0.3], atol=1e-15)


def test_three_links_at_one_point_have_two_pins():
    points = {"A": (0, 0), "B": (1, 0), "C": (0, 1), "D": (1, 1)}
    mech = lw.Builder().linkage(points, {"ground": "AB", "a": "AD", "b": "BD", "c": "CD"}).build("fork", DOWN)
    assert mech.n_links == 3 and {*mech.joint_names} | {loop.name for loop in mech.loops} == {"A", "B", "D", "D2"}


@pytest.mark.parametrize(
    ("points", "links", "slots", "told"),
    [
        (WATT, {"crank": "AB"}, {}, 'give links a "ground"'),
        (WATT, {"ground": "A", "crank": "AX"}, {}, "has a point 'X' that is not given"),
        (WATT, {"ground": "A", "crank": "AB"}, {}, "no link of the linkage has point 'C'"),
        (
            WATT,
            {"ground": "A", "crank": "A"},
            {},
            "'crank' of the linkage needs at least two points, or one and a slide, got A",
        ),
        (WATT, {"ground": "A", "crank": "AA"}, {}, "has a point twice: A, A"),
        (LINE, {"ground": "A", "x": "BC"}, {}, "no pins, slots or slides lead from the ground to link 'x'"),
        ({"A": (0, 0, 0)}, {"ground": "A"}, {}, r"point 'A' of the linkage must have shape \(2,\)"),
        (LINE, {"ground": "A", "x": "ABC"}, {"B": ("y", (1, 0))}, "there is no link 'y'"),
        (LINE, {"ground": "A", "x": "ABC"}, {"A": ("ground", (1, 0))}, "must belong to one other link"),
    ],
)
def test_what_is_wrong_is_told(points, links, slots, told):
    with pytest.raises(lw.MechanismError, match=told):
        lw.Builder().linkage(points, links, slots)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (
            "A1B1",
            r"has a point 'A' that is not given: a string, 'A1B1', names a point by each letter; give longer names "
            r"as a tuple: \('A1', 'B1'\)$",
        ),
        ("B1", r"give longer names as a tuple: \('B1',\)$"),
        ("A1B", r"names a point by each letter; give longer names as a tuple$"),
        (("A1", "B"), "has a point 'B' that is not given: did you mean 'B1'"),
        ("XY", "has a point 'X' that is not given: known: 'A1', 'B1', 'C'$"),
    ],
)
def test_names_of_several_letters_are_given_as_a_tuple(own, told):
    points = {"A1": (0, 0), "B1": (1, 0), "C": (2, 0)}
    with pytest.raises(lw.MechanismError, match=told):
        lw.Builder().linkage(points, {"ground": ("A1",), "x": own})
    mech = lw.Builder().linkage(points, {"ground": ("A1",), "x": ("A1", "B1", "C")}).build("pendulum", DOWN)
    assert mech.joint_names == ("A1",)


def test_points_at_one_place_are_told():
    """A crank without length is a slip of the pen; two pins of one link at one place are possible all the same."""
    points = {"O": (0.1, 0.2), "A": (0.1, 0.2 + 1e-12), "B": (0.4, 0.2)}
    told = r"points 'O' and 'A' of link 'crank' of the linkage are at one place, \(0.1, 0.2\): correct them"
    with pytest.warns(lw.MechanismWarning, match=told):
        lw.Builder().linkage(points, {"ground": "O", "crank": "OA", "rod": "AB"})
    points = {"A": (0, 0), "B": (1, 0), "b": (1, 0), "C": (1, 1), "D": (2, 0)}
    with pytest.warns(lw.MechanismWarning, match="points 'B' and 'b' of link 'bar'"):
        mech = lw.Builder().linkage(points, {"ground": "A", "bar": "ABb", "c": "BC", "d": "bD"}).build("fork", DOWN)
    assert mech.joint_names == ("A", "B", "b") and mech.tree.parents == (-1, 0, 0)
    assert mech.bodies[0].mass == pytest.approx(1.0)


def test_what_is_wrong_of_slides_is_told():
    links = {"ground": "A", "x": "ABC"}
    with pytest.raises(lw.MechanismError, match="the slide of link 'y' of the linkage: there is no link 'y'"):
        lw.Builder().linkage(LINE, links, slides={"y": ("ground", (1, 0))})
    with pytest.raises(lw.MechanismError, match="it slides in another link, not in itself"):
        lw.Builder().linkage(LINE, links, slides={"x": ("x", (1, 0))})
    with pytest.raises(lw.MechanismError, match="the mass of link 'y' of the linkage: there is no link 'y'"):
        lw.Builder().linkage(LINE, links, masses={"y": 1.0})
