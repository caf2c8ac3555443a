"""Program cache by recipe: a program that a function of the package makes from plain data is made once per machine.

A program is determined by its *recipe*: the function that makes it, the function's arguments, and the sources of the
package.  An *outline* of the program is kept on disk under a digest of the recipe: arrays, counts, and a digest of its
content, which is the key of its machine code.  In a later process ``remembered`` returns a program with this outline
and makes the rest on demand: with machine code on disk nothing is traced, differentiated or simplified.

The digest covers values completely: numbers bit by bit, objects of the package by class and all fields, functions of
the package by name, code and closure.  Values with code from elsewhere (a user's joint, law, algorithm or function of
time) have no digest; programs with such arguments are made every time.  The same holds in a process whose code differs
from the sources: because they changed since the start of imports, or because functions of the package were replaced at
run time.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import hashlib
import importlib.util
import json
import operator
import os
import platform
import struct
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..mechanics.registered import REGISTERED
from ..mechanism import Mechanism
from ..started import STARTED
from .ir.program import Array, Program
from .runtime import cache

FORMAT = 1
_PACKAGE = Path(__file__).parents[1]
#: Folders whose sources do not affect programs: drawing, files, command line.
_RIM = ("casadi", "cli", "demo", "interop", "jax", "notebook", "readers", "studies", "torch", "viewer", "writers")
_VERSIONS = ("numpy", "scipy", "llvmlite")
#: Prefixes of modules whose functions may take part in programs.
_OURS = __name__.partition(".")[0] + "."
_PARTS = tuple(_OURS + part for part in ("compiler.", "mechanics", "mechanism"))
_ONLOOKERS = ("run_passes",)  # tests may replace it; passes come after the cached stage
_NUMBER = struct.Struct("<d")
_enabled = True


class Foreign(TypeError):
    """A value without a digest: it has foreign code, or a state that is not data."""


# -- what is kept ---------------------------------------------------------------------------------------


def _outline_field(name: str) -> Any:
    return property(lambda program: program.__dict__[name])


def _program_field(name: str) -> Any:
    return property(lambda program: getattr(program._whole, name))


class Outlined(Program):
    """A program with a known outline; the rest is made on demand."""

    def __new__(cls, *fields: Any, **named: Any) -> Any:
        return Program(*fields, **named)  # a changed copy is an ordinary program

    @classmethod
    def of(cls, outline: Mapping[str, Any], notes: Any, make: Callable[[], Program]) -> Outlined:
        """A program with this outline, made by ``make`` on demand."""
        program: Outlined = object.__new__(cls)
        program.__dict__.update(outline, _notes=notes, _make=make)
        return program

    @cached_property
    def _whole(self) -> Program:
        program: Program = self.__dict__["_make"]()
        if (program.inputs, program.outputs) != (self.inputs, self.outputs):
            raise RuntimeError(
                f"{self.name}: what was kept on disk is not what its recipe makes now: "
                "linkwise.codegen.cache.clear() deletes it; please report this"
            )
        if program.content != self.content:  # stored by a processor whose linear algebra rounds constants differently
            self.__dict__.update({name: getattr(program, name) for name in (*_PLAIN, "sparsity")})
            if self.recipe is not None:
                cache.store(self.recipe, _written(program, self.__dict__["_notes"]), cache.OUTLINE)
        return program

    def __reduce__(self) -> Any:
        return copy.copy, (self._whole,)

    # Attributes in the outline that programs compute; then fields of programs that the outline lacks.
    size, op_counts, has_loops, sparsity = map(_outline_field, ("size", "op_counts", "has_loops", "sparsity"))
    nodes, results, loops, numbers, cells, sparse = map(
        _program_field, ("nodes", "results", "loops", "numbers", "cells", "sparse")
    )


#: Fields and properties of a program that its outline contains.
_PLAIN = ("name", "size", "op_counts", "constants_in_code", "registers", "content", "has_loops")


def _written(program: Program, notes: Any) -> bytes:
    """The outline as bytes: length of the header, header in JSON, zero patterns as bits."""
    header = {
        "format": FORMAT,
        "inputs": [(x.name, x.shape, x.axes) for x in program.inputs],
        "outputs": [(x.name, x.shape, x.axes) for x in program.outputs],
        "carried": program.carried,
        "notes": notes,
        "recipe": program.recipe,
        **{name: getattr(program, name) for name in _PLAIN},
    }
    text = json.dumps(header).encode()
    patterns = (np.packbits(pattern).tobytes() for pattern in program.sparsity)
    return b"".join((len(text).to_bytes(8, "little"), text, *patterns))


def _read(data: bytes) -> tuple[dict[str, Any], Any] | None:
    """Fields and properties of a program, and its notes; None if the bytes are not an outline."""
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        if header["format"] != FORMAT:
            return None
        outline: dict[str, Any] = {name: header[name] for name in (*_PLAIN, "recipe")}
        for side in ("inputs", "outputs"):
            outline[side] = tuple(Array(name, tuple(shape), tuple(axes)) for name, shape, axes in header[side])
        outline["carried"] = tuple((a, b) for a, b in header["carried"])
        patterns = []
        for array in outline["outputs"]:
            bits = np.frombuffer(data, np.uint8, (array.size + 7) // 8, start)
            patterns.append(np.unpackbits(bits, count=array.size).astype(bool).reshape(array.shape))
            start += len(bits)
        outline["sparsity"] = tuple(patterns)
        return (outline, header["notes"]) if start == len(data) else None
    except (ValueError, KeyError, TypeError, IndexError):
        return None


@dataclasses.dataclass(frozen=True)
class Remembered:
    """A program with its notes, and how to repeat the call that made it."""

    program: Program
    notes: Any
    again: Callable[[], Any]


def remembered(function: Callable[..., Any], *arguments: Any) -> Remembered:
    """Call a function of the package that makes a program, or restore its result by recipe.

    The function returns a program, or an object with a ``program`` and JSON-compatible ``notes``.  It must depend on
    its arguments alone.
    """

    def again() -> Any:
        return function(*arguments)

    key = recipe(function, *arguments) if _enabled else None
    kept = cache.fetch(key, cache.OUTLINE) if key is not None else None
    stored = _read(kept) if kept is not None else None
    if stored is not None:
        outline, notes = stored
        program: Program = Outlined.of(outline, notes, lambda: _program(again()))
        return Remembered(program, notes, again)
    made = again()
    program, notes = _program(made), getattr(made, "notes", None)
    if key is not None and _LOADED.is_installed():  # making it may have loaded modules
        if program.recipe is None:  # otherwise another remembered function made it, under its own recipe
            program.__dict__["recipe"] = key
        cache.store(key, _written(program, notes), cache.OUTLINE)
    return Remembered(program, notes, lambda: made)


def remembered_program(function: Callable[..., Program], *arguments: Any) -> Program:
    """``remembered`` that returns the program alone."""
    return remembered(function, *arguments).program


def known(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the outline of a call is on disk."""
    key = recipe(function, *arguments) if _enabled else None
    return key is not None and cache.fetch(key, cache.OUTLINE) is not None


def _program(made: Any) -> Program:
    program: Program = made if isinstance(made, Program) else made.program
    return program


@contextmanager
def disabled() -> Iterator[None]:
    """Context in which every program is made anew and none is stored: for code that is patched at run time."""
    global _enabled
    before, _enabled = _enabled, False
    try:
        yield
    finally:
        _enabled = before


# -- digests --------------------------------------------------------------------------------------------


def recipe(function: Callable[..., Any], *arguments: Any) -> str | None:
    """The digest of a call in this version of the package. None if an argument has no digest or is nested too deeply,
    or if the running code differs from the sources."""
    if not _runs_its_sources():
        return None
    try:
        made = _Digests().encode((function, arguments))
        return hashlib.sha256(made + _environment() + _registration_digest()).hexdigest()
    except (Foreign, RecursionError):
        return None


@functools.cache
def _environment() -> bytes:
    """A digest of the package's sources that affect programs, and of the versions of its dependencies."""
    digest = hashlib.sha256(repr((FORMAT, sys.version, platform.machine(), sys.platform)).encode())
    for name in _VERSIONS:
        for file in _version_files(name):
            digest.update(f"{name} ".encode() + file.read_bytes() + b"\0")
    for file in _files():
        digest.update(str(file.relative_to(_PACKAGE)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.digest()


def _runs_its_sources() -> bool:
    """Whether the running code is the code of the sources: none changed between the start of the process and its last
    import, and no function of the package was replaced."""
    return _LOADED.is_unchanged()


def _sources_changed() -> bool:
    """Whether a source changed since this process began."""
    try:
        return max(max(info.st_mtime, info.st_ctime) for info in map(os.stat, _files())) >= STARTED
    except OSError:  # a file is gone
        return True


@functools.cache
def _files() -> tuple[Path, ...]:
    return tuple(sorted(_sources()))


@functools.cache
def _known_folders() -> tuple[str, ...]:
    """Path prefixes of files whose functions may appear in modules of the package: the package, Python, NumPy, SciPy,
    and their generated code."""
    folders = [_PACKAGE, sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    folders += [Path(spec.origin).parent for spec in map(importlib.util.find_spec, _VERSIONS) if spec and spec.origin]
    return (*map(str, folders), "<frozen", "<__")


class _LoadedCode:
    """Functions of loaded modules and of their classes, as they were when first seen."""

    def __init__(self) -> None:
        self._modules: set[str] = set()
        self._count = 0  # number of all loaded modules at the last look
        # Namespaces, getters of their names, and the values: compared without running Python code.
        self._known: list[tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], Any], Any]] = []

    def is_unchanged(self) -> bool:
        """Whether all functions are unchanged and were installed with the package."""
        try:
            return self.is_installed() and all(get(space) == values for space, get, values in self._known)
        except KeyError:  # a function was removed
            return False

    def is_installed(self) -> bool:
        """Whether modules loaded since the last look have their installed functions and unchanged sources."""
        count, modules = len(sys.modules), tuple(sys.modules.items())
        if count == self._count:
            return True
        new = {name: x for name, x in modules if name.startswith(_OURS) and name not in self._modules}
        if new and _sources_changed():
            return False
        for name, module in new.items():
            functions = list(_list_functions(name, module)) if name.startswith(_PARTS) else []
            if not all(_is_installed(value) for _, values in functions for value in values.values()):
                return False
            self._modules.add(name)
            for space, values in functions:
                if values:
                    get = operator.itemgetter(*values)
                    self._known.append((space, get, get(space)))
        self._count = count
        return True


def _list_functions(name: str, module: types.ModuleType) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
    """Namespaces of a module and its classes, with their functions and properties."""
    spaces: list[Mapping[str, Any]] = [vars(module)]
    spaces += [vars(x) for x in spaces[0].values() if isinstance(x, type) and x.__module__ == name]
    for space in spaces:
        yield space, {key: value for key, value in space.items() if _is_function(value) and key not in _ONLOOKERS}


def _is_function(value: Any) -> bool:
    return callable(value) or isinstance(value, (staticmethod, classmethod, property, cached_property))


def _is_installed(value: Any) -> bool:
    """Whether a function comes from a known folder and is not a test double."""
    if isinstance(value, property):
        value = value.fget
    value = getattr(value, "func", None) or getattr(value, "__func__", value)
    if isinstance(value, types.FunctionType):
        file, module = value.__code__.co_filename, value.__module__ or ""
        if file == "<string>":  # generated for dataclasses and named tuples
            return module.startswith((*_PARTS, "namedtuple_"))
        return file.startswith(_known_folders())
    return not type(value).__module__.startswith("unittest.mock")


_LOADED = _LoadedCode()


def _version_files(name: str) -> list[Path]:
    """Files with the version of a package: quicker than its metadata or an import."""
    spec = importlib.util.find_spec(name)
    folder = Path(spec.origin or "").parent if spec else None
    return [] if folder is None else [file for file in sorted(folder.glob("*version.py")) if file.is_file()]


def _sources() -> Iterator[Path]:
    for part in _PACKAGE.iterdir():
        if part.is_dir() and part.name not in _RIM:
            yield from part.rglob("*.py")
        elif part.suffix == ".py":
            yield part


def _registration_digest() -> bytes:
    """A digest of user registrations, which algorithms may look up by name."""
    return _Digests().encode(dict(REGISTERED)) if REGISTERED else b""


_DIGEST = "_digest"  # cached data of a mechanism: equal mechanisms may have different initial configurations
_ATOMS = (bool, int, bytes, complex, type(None), type(...))
_BUILTIN = ("builtins", "math", "operator", "itertools", "collections", "numpy")


class _Digests:
    """Values as bytes within one recipe; equal bytes if and only if the values are equal. Atoms are encoded directly,
    other values as digests. Repeated objects are visited once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[bytes, Any]] = {}  # keyed by id, with the object to keep the id valid
        self._open: list[int] = []  # objects under way, to detect cycles

    def encode(self, value: Any) -> bytes:
        kind = type(value)
        if kind is float:
            return b"f" + _NUMBER.pack(value)
        if kind is str:
            text = value.encode("utf-8", "surrogatepass")
            return b"s%d:" % len(text) + text
        if kind in _ATOMS:
            text = repr(value).encode()
            return b"%s %d:" % (kind.__name__.encode(), len(text)) + text
        number = id(value)
        if number in self._known:
            return self._known[number][0]
        if number in self._open:  # a function that encloses itself
            return b"open %d" % (len(self._open) - self._open.index(number))
        self._open.append(number)
        content = self._encode_object(value)
        self._open.pop()
        self._known[number] = content, value
        return content

    def _all(self, tag: str, *parts: Any) -> bytes:
        return b"#" + hashlib.sha256(f"{tag} {len(parts)} ".encode() + b"".join(map(self.encode, parts))).digest()

    def _encode_object(self, value: Any) -> bytes:
        if isinstance(value, Mechanism):
            return self._encode_mechanism(value)
        kind = type(value)
        if kind in (tuple, list):
            return self._all(kind.__name__, len(value), *value)
        if kind in (dict, types.MappingProxyType):
            return self._all("dict", len(value), *(part for item in value.items() for part in item))
        if kind in (set, frozenset):
            return self._all("set", *sorted(map(self.encode, value)))
        if isinstance(value, np.ndarray):
            return self._encode_array(value)
        if isinstance(value, (np.generic, np.dtype)):
            return self._all(kind.__name__, repr(value))
        if kind is slice:
            return self._all("slice", value.start, value.stop, value.step)
        if isinstance(value, Program):
            return self._encode_program(value)
        if isinstance(value, type):
            return self._all("type", *_place(value))
        if isinstance(value, enum.Enum):
            return self._all("enum", type(value), value.name)
        content = self._encode_callable(value)
        return self._encode_fields(value) if content is None else content

    def _encode_mechanism(self, mech: Mechanism) -> bytes:
        """All data that dynamics may depend on: without notes, pictures and caches."""
        known: bytes | None = mech.__dict__.get(_DIGEST)
        if known is None:
            self.encode(type(mech))
            names = [x.name for x in dataclasses.fields(mech) if x.init]
            fields = {name: getattr(mech, name) for name in names}
            fields["annotations"] = dataclasses.replace(mech.annotations, notes=(), looks=())
            known = mech.__dict__[_DIGEST] = self._all("mechanism", fields, sorted(mech._changed))
        return known

    def _encode_array(self, array: np.ndarray) -> bytes:
        if array.dtype.hasobject:
            return self._all("objects", array.shape, array.ravel().tolist())
        self.encode(type(array))
        return self._all("array", array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes())

    def _encode_program(self, program: Program) -> bytes:
        if program.recipe is None:
            raise Foreign("a program that was made without a recipe")
        return self._all("program", program.recipe)

    def _encode_callable(self, value: Any) -> bytes | None:
        if isinstance(value, types.FunctionType):
            _require_ours(value.__code__.co_filename, value)
            try:
                cells = [cell.cell_contents for cell in value.__closure__ or ()]
            except ValueError:
                raise Foreign(f"{value!r} encloses what is not there yet") from None
            identity = (value.__module__, value.__qualname__, value.__defaults__, value.__kwdefaults__)
            return self._all("function", *identity, self._encode_code(value.__code__), cells)
        if isinstance(value, types.MethodType):
            return self._all("method", value.__func__, value.__self__)
        if isinstance(value, functools.partial):
            return self._all("partial", value.func, value.args, value.keywords)
        if isinstance(value, (types.BuiltinFunctionType, np.ufunc)):
            module, name = "numpy" if isinstance(value, np.ufunc) else value.__module__ or "", value.__name__
            if module.partition(".")[0] not in _BUILTIN or getattr(sys.modules[module], name, None) is not value:
                raise Foreign(f"{value!r} of {module or 'no module'}")
            return self._all("builtin", module, name)
        if hasattr(value, "__wrapped__") and hasattr(value, "cache_info"):
            return self._all("cached", value.__wrapped__)
        return None

    def _encode_code(self, code: types.CodeType) -> bytes:
        constants = [self._encode_code(x) if isinstance(x, types.CodeType) else x for x in code.co_consts]
        return self._all("code", code.co_firstlineno, code.co_code, code.co_names, constants)

    def _encode_fields(self, value: Any) -> bytes:
        """Class and all fields of an object of the package."""
        kind = type(value)
        qualified_name = _place(kind)
        if qualified_name[0] in ("builtins", "numpy"):
            raise Foreign(f"{kind.__name__} is no data")
        if dataclasses.is_dataclass(kind):
            names = [x.name for x in dataclasses.fields(kind)]
        else:
            names = [name for name in _names(value) if not isinstance(getattr(kind, name, None), cached_property)]
        more: tuple[Any, ...] = (tuple(value),) if isinstance(value, tuple) else ()
        more += (dict(value),) if isinstance(value, Mapping) and isinstance(value, dict) else ()
        return self._all("object", *qualified_name, names, *(getattr(value, name) for name in names), *more)


def _names(value: Any) -> list[str]:
    """The attributes of an object whose class declares no fields."""
    names = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ()) if hasattr(value, name)]
    held = getattr(value, "__dict__", None)
    if held is None and not names and not isinstance(value, tuple):
        raise Foreign(f"{type(value).__name__} holds what cannot be seen")
    hidden = ("__dict__", "__weakref__")
    return [*(name for name in names if name not in hidden), *(held or ())]


def _place(kind: type) -> tuple[str, str]:
    """Module and name of a class of the package, of Python or of NumPy."""
    module = sys.modules.get(kind.__module__)
    value: Any = module
    for part in kind.__qualname__.split("."):
        value = getattr(value, part, None)
    if value is not kind:
        raise Foreign(f"{kind.__qualname__} is not to be found in {kind.__module__}")
    if kind.__module__ not in ("builtins", "numpy"):
        _require_ours(getattr(module, "__file__", None) or "", kind)
    return kind.__module__, kind.__qualname__


def _require_ours(file: str, value: Any) -> None:
    path = Path(file)
    if not path.is_relative_to(_PACKAGE) or path.relative_to(_PACKAGE).parts[0] in _RIM:
        raise Foreign(f"{value!r} is not of the package")
