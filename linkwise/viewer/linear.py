"""Linear models: eigenvalues in the complex plane, frequency responses, responses to steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import style
from .coordinates import UNITS
from .style import BLACK, BLUE, COLOURS, GREY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FREQUENCIES = 2000  # points of a frequency response, evenly on a logarithmic axis
SLIGHT = 1e-9  # damping ratio that decides on which side of a pole or zero on the imaginary axis a response passes
RATE = ".rate"  # at the end of the name of an output that is a velocity
Choice = int | str | Sequence[int | str] | None


@style.styled
def plot_eigenvalues(model: Any, path: str | Path | None = None, ax: Any = None, title: str | None = None) -> Figure:
    """Eigenvalues in the complex plane, growing ones in another colour.

    model   a StateSpace, an array of eigenvalues (n,), several (m, n) of a parameter's change, which are coloured from
            first to last, or a dictionary of those by name
    """
    if isinstance(model, Mapping):
        named = {name: _eigenvalues(values) for name, values in model.items()}
    else:
        named = {"": _eigenvalues(model)}
    if not named:
        raise ValueError("there are no eigenvalues to plot")
    figure = None
    if ax is None:
        figure, ax = style.subplots(width=4.6, height=3.8)
    ax.axvline(0.0, color=BLACK, linewidth=0.8)
    ax.axhline(0.0, color=GREY, linewidth=0.5)
    for k, (name, values) in enumerate(named.items()):
        _plot_values(ax, values, name, k, alone=len(named) == 1)
    every = np.concatenate([values.ravel() for values in named.values()])
    size = max(np.abs(every).max(), 1e-12)
    for set_limits, part in ((ax.set_xlim, every.real), (ax.set_ylim, every.imag)):
        low, high = min(part.min(), 0.0), max(part.max(), 0.0)  # around the origin too
        margin = max(0.12 * (high - low), 0.15 * size - 0.5 * (high - low))  # wider than round-off
        set_limits(low - margin, high + margin)
    ax.set(xlabel="real part (1/s)", ylabel="imaginary part (rad/s)")
    if title:
        ax.set_title(title)
    if len(named) > 1 or any(label for label in ax.get_legend_handles_labels()[1]):
        ax.legend()
    return style.save(figure if figure is not None else ax.figure, path)


def _eigenvalues(model: Any) -> np.ndarray:
    """(m, n) complex."""
    values = model.eigenvalues() if hasattr(model, "eigenvalues") else model
    values = np.asarray(values, dtype=complex)
    if values.ndim == 0 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(f"eigenvalues are an array (n,) or (m, n) of finite numbers, got shape {values.shape}")
    return values.reshape(-1, values.shape[-1])


def _plot_values(ax: Any, values: np.ndarray, name: str, k: int, alone: bool) -> None:
    marker = MARKERS[k % len(MARKERS)]
    if len(values) > 1:
        order = np.repeat(np.arange(len(values)), values.shape[1])
        points = ax.scatter(values.real.ravel(), values.imag.ravel(), c=order, cmap="viridis", s=10, marker=marker)
        if alone:
            ax.figure.colorbar(points, ax=ax, label="number of the model", shrink=0.8)
        return
    eigenvalues = values[0]
    tiny = 1e-9 * max(np.abs(eigenvalues).max(), 1e-300)
    grows = eigenvalues.real > tiny
    colour = BLUE if alone else COLOURS[k % len(COLOURS)]
    look = {"s": 34, "marker": marker, "linewidths": 1.2, "zorder": 3}
    ax.scatter(
        eigenvalues.real[~grows],
        eigenvalues.imag[~grows],
        facecolors="none",
        edgecolors=colour,
        label=name or None,
        **look,
    )
    if grows.any():
        label = "grows" if alone else None
        ax.scatter(
            eigenvalues.real[grows], eigenvalues.imag[grows], color=VERMILLION if alone else colour, label=label, **look
        )


# -- responses ----------------------------------------------------------------------------------------


@style.styled
def plot_bode(
    model: Any, input: Choice = None, output: Choice = None, path: str | Path | None = None, frequencies: Any = None
) -> Figure:
    """Gain and phase over frequency, one row per input, one curve per output.

    At resonances without damping the phase falls by 180 degrees, at zeros without damping it rises, as it does with
    slight damping.

    model           a StateSpace, or a scipy.signal.StateSpace
    input, output   names or numbers, one or several; by default all inputs, and all outputs
    frequencies     (k,) in rad/s; by default a decade beyond the slowest and the fastest eigenvalue
    """
    from matplotlib.ticker import MultipleLocator

    system, inputs, outputs = _chosen(model, input, output)
    if frequencies is None:
        sizes = np.abs(np.linalg.eigvals(system.A))
        sizes = sizes[sizes > 1e-6 * max(sizes.max(initial=0.0), 1e-300)]
        slowest, fastest = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
        frequencies = np.geomspace(0.1 * slowest, 10.0 * fastest, FREQUENCIES)
    omega = np.asarray(frequencies, dtype=float)
    if omega.ndim != 1 or not len(omega) or not np.all(omega > 0.0):
        raise ValueError("frequencies are a list of positive numbers, in rad/s")
    # C (s - A)^-1 B + D at s slightly right of the imaginary axis, as with slight damping: on the axis the phase of an
    # undamped model is arbitrary, and poles are infinite.  Solved directly: scipy.signal goes through the coefficients
    # of polynomials and loses digits.
    shifted = (1j + SLIGHT) * omega[:, None, None] * np.eye(len(system.A)) - system.A
    response = system.C @ np.linalg.solve(shifted, system.B.astype(complex)) + system.D
    figure, grid = style.subplots(len(inputs), 2, style.WIDTH, 0.4 + 2.1 * len(inputs), sharex=True, squeeze=False)
    for row, (i, input_name) in zip(grid, inputs.items(), strict=True):
        for k, (o, name) in enumerate(outputs.items()):
            look = {**style.curve(k), "label": name}
            gain = np.abs(response[:, o, i])
            if not gain.any():
                continue  # this input does not reach this output: minus infinity everywhere
            row[0].semilogx(omega, 20.0 * np.log10(np.maximum(gain, 1e-300)), **look)
            angle = np.unwrap(np.angle(response[:, o, i]))
            angle -= 2.0 * np.pi * (angle[0] > np.pi - 1e-6)  # a response that begins as a negative number lags
            row[1].semilogx(omega, np.degrees(angle), **look)
        row[0].set(ylabel=_gain_label(model, input_name, tuple(outputs.values())), xlim=(omega[0], omega[-1]))
        row[0].set_title(f"input: {input_name}", loc="left")
        row[1].set_ylabel("phase (deg)")
        low, high = row[1].get_ylim()  # a handful of ticks at parts or multiples of right angles
        step = next((step for step in (15.0, 30.0, 45.0, 90.0, 180.0) if high - low <= 6.0 * step), 360.0)
        row[1].yaxis.set_major_locator(MultipleLocator(step))
        _outputs_legend(row[1], row[:1])
    for ax in grid[-1]:
        ax.set_xlabel("frequency (rad/s)")
    return style.save(figure, path)


@style.styled
def plot_step(
    model: Any,
    input: Choice = None,
    output: Choice = None,
    path: str | Path | None = None,
    duration: float | None = None,
) -> Figure:
    """Outputs over time after a unit step of an input, one row per input; displacements left, rates right.

    model, input, output   as of ``plot_bode``
    duration               seconds; by default a few times the slowest time of the model
    """
    from scipy.signal import lsim

    system, inputs, outputs = _chosen(model, input, output)
    duration = _usual_duration(system) if duration is None else float(duration)
    if not (np.isfinite(duration) and duration > 0.0):
        raise ValueError(f"the duration must be positive, got {duration!r}")
    t = np.linspace(0.0, duration, 601)
    by_kind = [{o: name for o, name in outputs.items() if name.endswith(RATE) == is_rate} for is_rate in (False, True)]
    columns = [column for column in by_kind if column]
    figure, grid = style.subplots(
        len(inputs), len(columns), style.WIDTH, 0.4 + 2.1 * len(inputs), sharex=True, squeeze=False
    )
    for row, (i, input_name) in zip(grid, inputs.items(), strict=True):
        single = (system.A, system.B[:, i : i + 1], system.C, system.D[:, i : i + 1])
        response = np.reshape(lsim(single, np.ones(len(t)), t)[1], (len(t), -1))
        for ax, column in zip(row, columns, strict=True):
            for k, (o, name) in enumerate(column.items()):
                ax.plot(t, response[:, o], label=name, **style.curve(k))
            ax.set(xlim=(0.0, duration), ylabel=_response_label(model, tuple(column.values())))
        _outputs_legend(row[-1], row)
        size = f", 1 {_force_unit(model, input_name)}" if _force_unit(model, input_name) else ""
        row[0].set_title(f"unit step of {input_name}{size}", loc="left")
    for ax in grid[-1]:
        ax.set_xlabel("time (s)")
    return style.save(figure, path)


def _chosen(model: Any, input: Choice, output: Choice) -> tuple[Any, dict[int, str], dict[int, str]]:
    """The model for SciPy, and number -> name of the chosen inputs and outputs."""
    system = model.to_scipy() if hasattr(model, "to_scipy") else model
    if not all(hasattr(system, name) for name in "ABCD"):
        raise TypeError(f"a StateSpace is needed, got {type(model).__name__}: make one with lw.linearize")
    names = [
        getattr(model, f"{port}_names", tuple(f"{letter}{i + 1}" for i in range(count)))
        for port, letter, count in (("input", "u", system.B.shape[1]), ("output", "y", system.C.shape[0]))
    ]
    return system, _selection("input", input, names[0]), _selection("output", output, names[1])


def _selection(noun: str, choice: Choice, names: Sequence[str]) -> dict[int, str]:
    if choice is None:
        choice = range(len(names))
    elif isinstance(choice, (int, np.integer, str)):
        choice = (choice,)
    selected = {}
    for option in choice:
        if isinstance(option, str) and option in names:
            option = list(names).index(option)
        if not isinstance(option, (int, np.integer)) or not 0 <= option < len(names):
            raise ValueError(f"the model has no {noun} {option!r}: available: {', '.join(map(repr, names))}")
        selected[int(option)] = names[option]
    if not selected:
        raise ValueError(f"the model has no {noun}s to plot")
    return selected


def _response_label(model: Any, names: Sequence[str]) -> str:
    """Label of the outputs, with their units where known."""
    noun = "rate" if names[0].endswith(RATE) else "response"
    units = [_unit(model.mechanism, name) for name in names] if hasattr(model, "mechanism") else [""]
    return f"{noun} ({', '.join(dict.fromkeys(units))})" if all(units) else noun


def _gain_label(model: Any, input_name: str, names: Sequence[str]) -> str:
    """Label of gains in decibels, with their reference if all outputs share it."""
    force = _force_unit(model, input_name)
    units = {_unit(model.mechanism, name) for name in names} if force else set()
    if len(units) != 1 or "" in units:
        return "gain (dB)"
    return f"gain (dB re 1 {units.pop()}/{f'({force})' if ' ' in force else force})"


def _unit(mech: Any, name: str) -> str:
    """The unit of an output, that of the joint's coordinate; "" for combinations of several."""
    measured = _measured(mech, name.removesuffix(RATE))
    if measured is None:
        return ""
    displacement, rate = UNITS[measured]
    return rate if name.endswith(RATE) else displacement


def _force_unit(model: Any, name: str) -> str:
    """The unit of an input, "" if unknown."""
    measured = _measured(model.mechanism, name) if hasattr(model, "mechanism") else None
    return {"angle": "N m", "length": "N"}.get(measured or "", "")


def _measured(mech: Any, name: str) -> str | None:
    """The measure of a joint's coordinate along its direction of motion; None for combinations of several."""
    match = re.fullmatch(r"(.+?)(?:\[(\d+)\])?", name)
    assert match is not None
    if match[1] not in mech.joint_names:
        return None
    measured = mech.bodies[mech.body_index(match[1])].kind.measures("v")[int(match[2] or 0)].of
    return "angle" if measured == "quaternion" else measured


def _usual_duration(system: Any) -> float:
    """Five periods or times of decay of the slowest motion; three times of growth where something grows."""
    values = np.linalg.eigvals(system.A)
    scale = max(np.abs(values).max(initial=0.0), 1e-300)
    growth = values.real.max(initial=0.0)
    if growth > 1e-6 * scale:
        return 3.0 / growth
    slowest = np.abs(values)[np.abs(values) > 1e-6 * scale]
    return 5.0 / slowest.min() * (2.0 if np.abs(values.imag).max() > 1e-6 * scale else 1.0) if len(slowest) else 1.0


def _outputs_legend(ax: Any, row: Any) -> None:
    """The names of all curves of a row, right of it."""
    curves = [line for panel in row for line in panel.get_lines()]
    ax.legend(handles=curves, loc="center left", bbox_to_anchor=(1.01, 0.5), borderaxespad=0.0)
