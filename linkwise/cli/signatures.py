"""Commands from signatures: the parameters of a function are the options of its command, its docstring their help.

A parameter without a default is an argument; one with a default is an option of its name (``leave_out``: --leave-out).
Its annotation is its type; where None is allowed and not the default, the word none is None.  A dataclass stands for a
group of options: its fields.  A docstring describes parameters as those of the library do, in lines ``name   what it
is``; the rest of it is the text of --help.  A command ``of`` public functions has the options of these too, and their
descriptions of what it does not describe itself.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from click.core import ParameterSource


class ListOfNames(click.ParamType):
    """NAME,NAME,...: a tuple of names of joints, states, ..."""

    def __init__(self, noun: str):
        self.name = f"{noun},{noun}..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        return value if isinstance(value, tuple) else tuple(name.strip() for name in value.split(","))


class OrNone(click.ParamType):
    """Another type, or the word none, for None."""

    def __init__(self, other: click.ParamType):
        self.other, self.name = other, other.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return None if isinstance(value, str) and value.lower() == "none" else self.other(value, param, ctx)


File = Annotated[str, "FILE"]
Folder = Annotated[Path, click.Path(file_okay=False, path_type=Path)]
Count = Annotated[int, click.IntRange(1)]
Joints = Annotated[tuple, ListOfNames("JOINT")]
ARGUMENT, HIDDEN = {"argument": True}, {"hidden": True}  # annotations of parameters that are no usual options

DESCRIPTION = re.compile(r"^(\w+(?:, \w+)*) {2,}(?=\S)")  # "q0, v0   the initial state"
SHORT = {"output": "-o"}
SCALARS = (str, int, float)


def command(
    short_help: str,
    of: Callable[..., Any] | Sequence[Callable[..., Any]] = (),
    without: Sequence[str] = (),
    cls: type[click.Command] = click.Command,
    **settings: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Turn a function into a command; what the function returns is the exit code.

    of        public functions, whose parameters are options too where a command line can write them; those that were
              given come as keyword arguments, ``**options``: as one function takes them, or of several all together, of
              which ``options_of`` gives each function its own
    without   parameters of ``of`` that are no options
    """
    functions = [of] if callable(of) else [*of]

    def turn(function: Callable[..., Any]) -> click.Command:
        inherited: dict[str, str] = {}
        for each in reversed(functions):
            inherited |= {name: text for name, text in descriptions(each).items() if name not in without}
        declared, texts = list(parameters(function, inherited)), inherited | descriptions(function)
        taken, further = {option.name for option in declared}, dict[str, click.Option]()
        for each in functions:
            further |= derived_options(each, {*taken, *without, *further}, texts)

        def run(**values: Any) -> Any:
            source = click.get_current_context().get_parameter_source
            options = {name: values[name] for name in further if source(name) is not ParameterSource.DEFAULT}
            return function(**arguments(function, values), **(options_of(of, options) if callable(of) else options))

        return cls(
            settings.pop("name", None) or function.__name__,
            callback=functools.update_wrapper(run, function),
            params=[*declared, *further.values()],
            help=help_text(function, {*taken, *further}),
            short_help=short_help,
            **settings,
        )

    return turn


def options_of(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a function among the ``options`` of a command; fields are put into their dataclasses."""
    chosen = {}
    for parameter in _named_parameters(function):
        group = _group(function, parameter)
        is_option = group is not None and parameter.default is not parameter.empty
        fields = options_of(group, options) if is_option else {}
        value = options.get(parameter.name, parameter.default)
        if fields:
            chosen[parameter.name] = (
                dataclasses.replace(value, **fields) if isinstance(value, group) else group(**fields)
            )
        elif parameter.name in options:
            chosen[parameter.name] = value
    return chosen


def parameters(function: Callable[..., Any], inherited: Mapping[str, str] | None = None) -> Iterator[click.Parameter]:
    """Arguments and options of a function or a group, each name once; ``inherited`` are descriptions of the rest."""
    texts, names = {**(inherited or {}), **descriptions(function)}, set()
    for parameter in _named_parameters(function):
        hint = _hint(function, parameter)
        form, required = _form(hint) or {}, parameter.default is parameter.empty
        options: list[click.Parameter]
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            options = list(parameters(hint, inherited))
        elif form.pop("argument", required):
            options = [click.Argument([parameter.name], required=required, **form)]
        else:
            options = [_option(parameter, hint, form, texts.get(parameter.name))]
        yield from (parameter for parameter in options if parameter.name not in names)
        names |= {parameter.name for parameter in options}


def arguments(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a call; groups are made of the values of their fields."""
    keywords = {}
    for parameter in _named_parameters(function):
        hint = _hint(function, parameter)
        group = dataclasses.is_dataclass(hint)
        keywords[parameter.name] = hint(**arguments(hint, values)) if group else values[parameter.name]
    return keywords


def derived_options(
    function: Callable[..., Any], taken: set[str | None], texts: dict[str, str]
) -> dict[str, click.Option]:
    """Options of a public function by name: parameters with a default, of types that a command line can write, and the
    fields of dataclasses that stand for several.  ``texts`` describes them in place of the function's own docstring."""
    texts, options = descriptions(function) | texts, dict[str, click.Option]()
    for parameter in _named_parameters(function):
        hint, group = _hint(function, parameter), _group(function, parameter)
        form = _form(hint)
        if parameter.name in taken or parameter.default is parameter.empty:
            continue
        if group is not None:
            options |= derived_options(group, {*taken, *options}, texts)
        elif form is not None:
            options[parameter.name] = _option(parameter, hint, form, texts.get(parameter.name))
    return options


def descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Descriptions of parameters in a docstring; a group has those of its bases too."""
    texts: dict[str, str] = {}
    for each in reversed(function.__mro__) if isinstance(function, type) else [function]:
        for names, lines in _blocks(each):
            sentence = " ".join(DESCRIPTION.sub("", line).strip() for line in lines).replace("``", "")
            sentence = sentence[:1].upper() + sentence[1:] + "." * (not sentence.endswith("."))
            texts |= dict.fromkeys(names, sentence)
    return texts


def help_text(function: Callable[..., Any], names: set[str | None]) -> str:
    """The docstring without its descriptions of the parameters ``names``."""
    kept = [lines for described, lines in _blocks(function) if not described or not {*described} <= names]
    return "\n".join(line for lines in kept for line in lines)


def _blocks(function: Callable[..., Any]) -> list[tuple[list[str], list[str]]]:
    """(names, lines) of the entries ``name   text`` of a docstring, with the indented lines below them.

    Every other line is a block without names.
    """
    blocks: list[tuple[list[str], list[str]]] = []
    for line in (inspect.getdoc(function) or "").splitlines():
        entry = DESCRIPTION.match(line)
        if not entry and blocks and blocks[-1][0] and line.startswith(" "):
            blocks[-1][1].append(line)
        else:
            blocks.append((entry[1].split(", ") if entry else [], [line]))
    return blocks


def _option(parameter: inspect.Parameter, hint: Any, form: dict[str, Any], text: str | None) -> click.Option:
    """An option named as its parameter; a switch that has no default of its own can be turned on and off."""
    name, default = parameter.name.rstrip("_").replace("_", "-"), parameter.default
    flags = f"--{name}/--no-{name}" if form == {"is_flag": True} and default is None else f"--{name}"
    short = [SHORT[parameter.name]] if parameter.name in SHORT else []
    if default is not None and type(None) in get_args(hint) and "type" in form:
        form = {**form, "type": OrNone(click.types.convert_type(form["type"]))}
    shown = not (default is None or default is False or default == ())
    return click.Option([flags, *short, parameter.name], default=default, show_default=shown, help=text, **form)


def _form(hint: Any) -> dict[str, Any] | None:
    """How click reads a type; None if a command line cannot write it."""
    if get_origin(hint) in (Union, types.UnionType):
        alternatives = [each for each in get_args(hint) if each is not type(None)]
        return _form(alternatives[0]) if len(alternatives) == 1 else None
    if get_origin(hint) is Annotated:
        inner, about = get_args(hint)
        if isinstance(about, str):
            about = {"metavar": about}
        return (_form(inner) or {}) | (about if isinstance(about, dict) else {"type": about})
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint))}
    if get_origin(hint) is collections.abc.Sequence:
        element = _form(get_args(hint)[0])
        return None if element is None else {**element, "multiple": True}
    if get_origin(hint) is tuple:
        return {"type": get_args(hint), "nargs": len(get_args(hint))} if set(get_args(hint)) <= set(SCALARS) else None
    if hint is bool:
        return {"is_flag": True}
    if hint is Path:
        return {"type": click.Path(path_type=Path)}
    return {"type": hint} if hint in SCALARS else None


def _group(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The dataclass of a parameter's annotation, which may allow None; None for other annotations."""
    hint = _hint(function, parameter)
    alternatives = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    groups = [each for each in alternatives if each is not type(None)]
    is_group = len(groups) == 1 and isinstance(groups[0], type) and dataclasses.is_dataclass(groups[0])
    return groups[0] if is_group else None


def _named_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [each for each in inspect.signature(function).parameters.values() if each.kind not in several]


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The annotation as a type; None where it names something that only type checkers import."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    names = vars(sys.modules[inspect.unwrap(function).__module__])
    try:
        return eval(parameter.annotation, dict(names))
    except NameError:
        return None
