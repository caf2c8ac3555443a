"""Studies in files: TOML.

    mechanism = "panda.urdf"              # beside the file, or builtin:NAME; floating_base, loops as in lw.load
    cases = 10000
    seed = 1
    sampling = "random"                   # latin_hypercube, sobol, saltelli
    store = "panda.zarr"                  # or NAME.parquet; may be left out

    [vary]
    "payload.hand.mass" = {uniform = [0.0, 2.0]}
    "payload.hand.com" = {normal = [[0.0, 0.0, 0.1], 0.01]}
    mass = {normal = [1.0, 0.02], as = "factor"}      # times the mechanism's own
    q0 = {normal = [0.0, 0.01], as = "offset"}        # added to the mechanism's own
    "tau.elbow" = 1.5                                 # the same in all cases

    [rollout]                             # or [linear_models], [equilibria], [singularities], [function]
    dt = 0.001
    steps = 100
    final_only = true

A distribution is a table with one of the keys of ``KINDS`` and a list of numbers, or a table of named ones.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import linkwise as lw

from . import computations as c
from . import distributions as d
from .errors import StudyError
from .study import Study

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS: dict[str, Callable[..., d.Distribution]] = {
    "uniform": d.Uniform,
    "normal": d.Normal,
    "lognormal": d.LogNormal,
    "triangular": d.Triangular,
    "multivariate_normal": d.MultivariateNormal,
    "choice": d.Choice,
    "grid": d.Grid,
    "given": d.Given,
    "within_limits": d.WithinLimits,
}
SINGLE_LISTS = ("choice", "grid", "given")  # whose list is one argument
COMPUTATIONS: dict[str, type[c.Computation]] = {
    "rollout": c.Rollout,
    "linear_models": c.LinearModels,
    "equilibria": c.Equilibria,
    "singularities": c.Singularities,
    "function": c.Function,
}
TYPES = {"steps": int, "every": int, "final_only": bool, "dt": float, "method": str, "all_at_once": bool}
TOP = {"mechanism": str, "floating_base": bool, "loops": str, "cases": int, "seed": int, "sampling": str, "chunk": int}
TOP |= {"store": str, "vary": dict}
OPTIONS = ("linear_models", "equilibria")  # whose other keys are options of what they call
WORDS = {str: "a string", bool: "true or false", int: "an integer", float: "a number", dict: "a table", list: "a list"}
CODE = {"rollout": "measure", "function": "function"}  # keys that name a function, FILE.py:NAME


@dataclasses.dataclass(frozen=True)
class StudyFile:
    """Content of a study file: the study, and where its results go."""

    study: Study
    store: Path | None


def load_study(path: str | Path) -> StudyFile:
    """The study in a TOML file; paths in it are relative to it."""
    file = Path(path)
    if not file.is_file():
        raise StudyError(f"there is no file {file}")
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{file}: {error}") from None
    try:
        return _study(table, file.parent)
    except (StudyError, lw.MechanismError) as error:
        raise StudyError(f"{file}: {error}") from None


def _study(table: Mapping[str, Any], folder: Path) -> StudyFile:
    _check_keys("", table, [*TOP, *COMPUTATIONS])
    for name, kind in TOP.items():
        if name in table:
            _check_type(name, table[name], kind)
    chosen = [name for name in COMPUTATIONS if name in table]
    if len(chosen) != 1:
        listed_tables = ", ".join(f"[{name}]" for name in chosen) or "none"
        listed = ", ".join(f"[{name}]" for name in COMPUTATIONS)
        raise StudyError(f"one table says what to compute: {listed}; found: {listed_tables}")
    if "mechanism" not in table:
        raise StudyError('the mechanism is missing: mechanism = "robot.urdf" or "builtin:puma560"')
    mechanism = _mechanism(table, folder)
    compute = _computation(chosen[0], table[chosen[0]], folder)
    try:
        compute.check(mechanism)
    except StudyError as error:
        raise StudyError(f"[{chosen[0]}] {error}") from None
    vary = {name: _distribution(name, value) for name, value in _flat(table.get("vary", {})).items()}
    options = {name: table[name] for name in ("cases", "seed", "sampling", "chunk") if name in table}
    store = folder / table["store"] if "store" in table else None
    return StudyFile(Study(mechanism, compute, vary, **options), store)


def _mechanism(table: Mapping[str, Any], folder: Path) -> lw.Mechanism:
    """The mechanism of a study file, whose paths are relative to the folder."""
    import click

    from ..cli.mechanism import BUILTIN, loaded, report_warnings

    named = table["mechanism"]
    file = named if named.startswith(BUILTIN) else str(folder / named)
    loops = str(folder / table["loops"]) if "loops" in table else None
    try:
        return report_warnings(loaded(file, table.get("floating_base", False), loops), notes=False)
    except click.UsageError as error:
        raise StudyError(f"mechanism: {error.message}") from None
    except FileNotFoundError:
        raise StudyError(f"mechanism: there is no file {file}") from None


def _computation(name: str, table: Any, folder: Path) -> c.Computation:
    _check_type(name, table, dict)
    make, options = COMPUTATIONS[name], dict(table)
    fields = {field.name: field for field in dataclasses.fields(make)}
    if name in OPTIONS:
        named = {key: options.pop(key) for key in list(options) if key in fields and key != "options"}
        options = {**named, "options": options}
    else:
        _check_keys(f"[{name}] ", options, fields)
    for key, parameter in inspect.signature(make).parameters.items():
        if parameter.default is parameter.empty and key not in options:
            raise StudyError(f"[{name}] needs {key}")
    for key, kind in TYPES.items():
        if key in options and key in fields:
            _check_type(f"[{name}] {key}", options[key], kind)
    if CODE.get(name) in options:
        options[CODE[name]] = _function(f"[{name}] {CODE[name]}", options[CODE[name]], folder)
    return make(**options)


def _function(label: str, text: Any, folder: Path) -> Callable[..., Any]:
    """A function that is named as FILE.py:NAME."""
    file, _, name = str(text).rpartition(":")
    path = folder / file
    if not file.endswith(".py") or not name:
        raise StudyError(f"{label} is named as FILE.py:NAME, not {text!r}")
    if not path.is_file():
        raise StudyError(f"{label}: there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, name, None)):
        raise StudyError(f"{label}: {path} has no function {name!r}")
    with contextlib.suppress(ImportError):
        import cloudpickle

        sys.modules.setdefault(module.__name__, module)
        cloudpickle.register_pickle_by_value(module)  # workers elsewhere do not have the file
    return getattr(module, name)


def _flat(table: Mapping[str, Any], lead: str = "") -> dict[str, Any]:
    """{"payload.hand.mass": ...} of tables in tables, as dotted keys of TOML are."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and not ({*value} & {*KINDS, "as"}):
            for key in value:
                if close := get_close_matches(key, KINDS, n=1, cutoff=0.7):
                    raise StudyError(f"vary: {lead}{name}: unknown distribution {key!r}; did you mean {close[0]!r}?")
            flat |= _flat(value, f"{lead}{name}.")
        else:
            flat[f"{lead}{name}"] = value
    return flat


def _distribution(name: str, value: Any) -> Any:
    if not isinstance(value, dict):
        if isinstance(value, (int, float, list)) and not isinstance(value, bool):
            return value
        raise StudyError(f"vary: {name} = {value!r} is no number, list or distribution such as {{uniform = [0, 1]}}")
    chosen = [key for key in value if key in KINDS]
    _check_keys(f"vary: {name}: ", value, [*KINDS, "as"])
    if len(chosen) != 1:
        raise StudyError(f"vary: {name}: one distribution is needed, {', '.join(KINDS)}; found: {chosen or 'none'}")
    drawn = _drawn(f"vary: {name}: {chosen[0]}", chosen[0], value[chosen[0]])
    forms = {"factor": d.Relative, "offset": d.Offset}
    if "as" not in value:
        return drawn
    if value["as"] not in forms:
        raise StudyError(f"vary: {name}: as = {value['as']!r} is unknown; available: {', '.join(forms)}")
    return forms[value["as"]](drawn)


def _drawn(label: str, kind: str, numbers: Any) -> d.Distribution:
    """The distribution of a kind with its numbers, a list or a table."""
    make = KINDS[kind]
    if kind == "within_limits":
        return make()
    names = list(inspect.signature(make).parameters)
    if isinstance(numbers, dict):
        _check_keys(f"{label}: ", numbers, names)
    else:
        _check_type(label, numbers, list)
    try:
        if isinstance(numbers, dict):
            return make(**numbers)
        return make(numbers) if kind in SINGLE_LISTS else make(*numbers)
    except StudyError as error:
        raise StudyError(f"{label}: {error}") from None
    except TypeError:
        raise StudyError(f"{label} has the numbers {', '.join(names)}; given: {numbers}") from None


def _check_keys(where: str, table: Mapping[str, Any], known: Collection[str]) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, list(known), n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"available: {', '.join(known)}"
            raise StudyError(f"{where}unknown key {key!r}; {hint}")


def _check_type(label: str, value: Any, kind: type) -> None:
    right = isinstance(value, (int, float)) if kind is float else isinstance(value, kind)
    if not right or (isinstance(value, bool) and kind is not bool):
        raise StudyError(f"{label} must be {WORDS[kind]}, not {value!r}")
