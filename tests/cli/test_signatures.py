"""Commands from signatures: what a function takes is what its command takes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import click
import pytest

import linkwise as lw
from linkwise import cli
from linkwise.cli import signatures
from linkwise.cli.signatures import command


def called(made: click.Command, *arguments: str) -> Any:
    return made.main([*map(str, arguments)], standalone_mode=False)


def helped(made: click.Command) -> str:
    with click.Context(made) as context:
        return " ".join(made.get_help(context).split())


@pytest.fixture
def simulate_with_another_argument(monkeypatch):
    """``lw.simulate`` with new arguments, and the command made of it again; the calls that it gets."""
    original, calls = lw.simulate, []

    @functools.wraps(original)
    def simulate(*positional, patience=1.5, labels=(), **options):
        calls.append((patience, labels, options))
        return original(*positional, **options)

    signature, kinds = inspect.signature(original), inspect.Parameter
    further = [
        kinds("patience", kinds.KEYWORD_ONLY, default=1.5, annotation="float"),
        kinds("labels", kinds.KEYWORD_ONLY, default=(), annotation="Sequence[str]"),
    ]
    *named, former = signature.parameters.values()
    simulate.__signature__ = signature.replace(parameters=[*named, *further, former])
    simulate.__doc__ = f"{inspect.getdoc(original)}\n\npatience   how long to wait (s), in\n           seconds\n"
    monkeypatch.setattr(lw, "simulate", simulate)
    function = inspect.unwrap(cli.commands.commands["simulate"].callback)
    without = ("output_step", "progress")
    monkeypatch.setitem(cli.commands.commands, "simulate", command("Simulate.", simulate, without)(function))
    return calls


def test_a_new_argument_of_simulate_needs_no_change_of_the_command_line(run, simulate_with_another_argument):
    calls = simulate_with_another_argument
    motion = ("simulate", "builtin:planar_arm:1", "--duration", 0.1, "--json")
    run(*motion)
    run(*motion, "--patience", 3, "--labels", "a", "--labels", "b", "--keep-energy")
    assert "'x' is not a valid float" in run(*motion, "--patience", "x", fails=True)
    assert [call[:2] for call in calls] == [(1.5, ()), (3.0, ("a", "b"))]
    usual = lw.motion.Settings(progress=False)
    assert [call[2]["settings"] for call in calls] == [usual, dataclasses.replace(usual, keep_energy=True)]
    assert "--patience FLOAT How long to wait (s), in seconds. [default: 1.5]" in helped(
        cli.commands.commands["simulate"]
    )


@dataclasses.dataclass(frozen=True)
class Steps:
    """How a motion is integrated.

    method   of integration
    step     of its steps
    """

    method: str | None = None
    step: float | None = None


@pytest.mark.parametrize("default", [None, Steps(step=2e-3)])
def test_arguments_of_simulate_may_become_fields_of_one(monkeypatch, run, default):
    """The command line stays what it was when the function takes several of its arguments as one value."""
    original, calls = lw.simulate, []

    @functools.wraps(original)
    def simulate(*positional, steps=default, **options):
        calls.append((steps, options.get("settings")))
        return original(*positional, **(dataclasses.asdict(steps) if steps else {}), **options)

    *kept, former = [
        parameter
        for parameter in inspect.signature(original).parameters.values()
        if parameter.name not in {field.name for field in dataclasses.fields(Steps)}
    ]
    one = inspect.Parameter("steps", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Steps | None)
    simulate.__signature__ = inspect.Signature([*kept, one, former])
    function = inspect.unwrap(cli.commands.commands["simulate"].callback)
    without, before = ("output_step", "progress"), {one.name for one in cli.commands.commands["simulate"].params}
    monkeypatch.setattr(lw, "simulate", simulate)
    monkeypatch.setitem(cli.commands.commands, "simulate", command("Simulate.", simulate, without)(function))
    assert {one.name for one in cli.commands.commands["simulate"].params} == before
    motion = ("simulate", "builtin:four_bar", "--duration", 0.02, "--json")
    run(*motion)
    run(*motion, "--method", "rk4", "--step", 0.001)
    run(*motion, "--stabilization", "baumgarte", "--baumgarte", 5, 5, "--tolerance", 1e-7)
    settings = lw.motion.Settings(progress=False)
    assert calls == [
        (default, settings),
        (Steps("rk4", 0.001), settings),
        (default, dataclasses.replace(settings, stabilization="baumgarte", baumgarte=(5.0, 5.0), rtol=1e-7, atol=1e-7)),
    ]


def test_every_argument_of_simulate_that_can_be_written_is_an_option():
    options = {option.name for option in cli.commands.commands["simulate"].params}
    for parameter in inspect.signature(lw.simulate).parameters.values():
        plain = parameter.annotation.removesuffix(" | None") in ("str", "float", "int", "bool", "tuple[float, float]")
        named = {"output_step": "every", "progress": None}.get(parameter.name, parameter.name)
        assert not plain or named is None or named in options, parameter


@dataclasses.dataclass
class Place:
    """A group.

    x, y      a coordinate (m)
    degrees   angles in degrees
    """

    x: float = 0.0
    y: float = 0.0
    degrees: bool = False


@dataclasses.dataclass
class Pose(Place):
    """A group with more.

    angle   of rotation
    """

    angle: Annotated[float, "ALPHA"] = 0.0
    degrees: bool = False


@command("Everything.")
def everything(
    number: int,
    pose: Pose,
    size: tuple[float, float] | None = None,
    names: Sequence[Annotated[str, "NAME"]] = (),
    colour: Literal["red", "blue"] = "red",
    bold: bool = False,
    loud: bool | None = None,
    leave_out: str | None = None,
    output: str | None = None,
    degrees: bool = False,
) -> Any:
    """All kinds of options.

    size        width and height (m)
    leave_out   what
                is missing

    \b
    linkwise everything 3
    """
    return number, pose, size, names, colour, bold, loud, leave_out, output, degrees


def test_types_of_annotations():
    assert called(everything, 3) == (3, Pose(), None, (), "red", False, None, None, None, False)
    words = (
        "4 --x 1 --angle 2 --degrees --size 1 2 --names a --names b --colour blue --bold --no-loud --leave-out c -o d"
    )
    expected = (4, Pose(1.0, 0.0, True, 2.0), (1.0, 2.0), ("a", "b"), "blue", True, False, "c", "d", True)
    assert called(everything, *words.split(), "--leave-out", "c") == expected
    for wrong in (("x",), ("3", "--colour", "green"), ("3", "--size", "1"), ()):
        with pytest.raises(click.UsageError):
            called(everything, *wrong)


@command("Options that may be none.")
def lacking(colour: Literal["red", "blue"] | None = "red", width: float | None = 1.0, name: str | None = None) -> Any:
    """Options that may be none."""
    return colour, width, name


def test_the_word_none_where_none_is_allowed_and_not_the_default():
    assert called(lacking) == ("red", 1.0, None)
    assert called(lacking, "--colour", "none", "--width", "None") == (None, None, None)
    assert called(lacking, "--colour", "blue", "--width", "2", "--name", "none") == ("blue", 2.0, "none")
    for wrong in (("--colour", "green"), ("--width", "wide")):
        with pytest.raises(click.UsageError):
            called(lacking, *wrong)


def test_help_from_docstrings():
    text = helped(everything)
    assert "All kinds of options. linkwise everything 3 Options:" in text  # descriptions are at the options alone
    for option in (
        "--x FLOAT A coordinate (m). [default: 0.0]",
        "--y FLOAT A coordinate (m). [default: 0.0]",
        "--angle ALPHA Of rotation. [default: 0.0]",
        "--degrees Angles in degrees.",
        "--size <FLOAT FLOAT>... Width and height (m).",
        "--leave-out TEXT What is missing.",
        "--loud / --no-loud",
        "-o, --output TEXT",
    ):
        assert option in text, option


def test_every_option_of_every_command_has_a_description():
    groups = [group for group in (cli.commands, *cli.commands.commands.values()) if isinstance(group, click.Group)]
    made = [each for group in groups for each in group.commands.values() if not each.hidden]
    self_evident = {"dtype", "language", "target", "threads"}
    missing = {
        (each.name, option.name)
        for each in made
        for option in each.params
        if isinstance(option, click.Option) and not (option.help or option.hidden or option.name in self_evident)
    }
    assert not missing
    assert signatures.DESCRIPTION.match("q0, v0   the state")


@dataclasses.dataclass(frozen=True)
class Tolerances:
    """Of a search.

    relative, absolute   how near
    """

    relative: float = 1e-6
    absolute: float | None = None
    watched: Any = None


def search(goal: str, tolerances: Tolerances = Tolerances(absolute=2.0), rounds: int = 3, patience: float = 1.0):
    """Search.

    rounds     how often
    patience   how long (s)
    """
    return goal, tolerances, rounds, patience


def report(width: int = 80):
    """Report.

    width   of lines
    """
    return width


@command("Search.", of=(search, report), without=("patience",))
def searching(goal: str, rounds: Literal[1, 2] = 1, names: signatures.Joints = (), **options: Any) -> Any:
    """Search for GOAL.

    names   of joints
    """
    results = search(goal, rounds=rounds, **signatures.options_of(search, options))
    return *results, report(**signatures.options_of(report, options)), names


def test_options_of_several_functions_and_of_dataclasses_that_they_take():
    """A function may take its options one by one or as one value: the command line is the same."""
    assert called(searching, "x") == ("x", Tolerances(absolute=2.0), 1, 1.0, 80, ())
    given = ("--relative", 0.1, "--width", 40, "--rounds", 2, "--names", "a, b")
    assert called(searching, "x", *given) == ("x", Tolerances(0.1, 2.0), 2, 1.0, 40, ("a", "b"))
    text = helped(searching)
    assert "--rounds [1|2] How often. [default: 1]" in text  # described by the function
    assert "--absolute FLOAT How near." in text and "--width INTEGER Of lines. [default: 80]" in text
    assert "--patience" not in text and "--watched" not in text and "--names JOINT,JOINT... Of joints." in text
